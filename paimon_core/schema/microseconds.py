"""A table's schema with timestamps in microseconds, for engines such as Spark that cut finer digits.

Finer digits are then not decoded. So timestamps before 1677 and after 2262, which 64-bit nanoseconds cannot hold, can
also be read.
"""

import re
from collections.abc import Collection
from dataclasses import replace

from paimon_core.merge import engine_type
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import DataField, without_finer_digits

_WORD = re.compile(r"[^\s.,;:=]+")


def finer_columns(schema: TableSchema) -> frozenset[int]:
    """Return the ids of the top-level timestamp columns whose digits beyond microseconds can be cut without effect.

    Key columns, and columns that an option names (such as a sequence field), are left out. A merge engine that computes
    with values needs all digits of all columns.
    """
    if schema.primary_keys and not engine_type(schema.options).keeps_rows:
        return frozenset()
    named = {*schema.primary_keys, *schema.partition_keys}
    for key, value in schema.options.items():
        named.update(_WORD.findall(key), _WORD.findall(value))
    return frozenset(field.id for field in schema.fields if _is_finer(field) and field.name not in named)


def in_microseconds(schema: TableSchema, columns: Collection[int]) -> TableSchema:
    """Return the schema with the timestamps of ``columns`` (field ids) in microseconds."""
    fields = tuple(_cut(field) if field.id in columns and _is_finer(field) else field for field in schema.fields)
    return schema if fields == schema.fields else replace(schema, fields=fields)


def _is_finer(field: DataField) -> bool:
    return without_finer_digits(field.type) != field.type


def _cut(field: DataField) -> DataField:
    return replace(field, type=without_finer_digits(field.type))
