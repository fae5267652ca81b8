"""The partitions of a table for ``PartitionedTable.java``: texts of Spark's internal values, or `None`."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from paimon_core.scan.entries import live_entries
from paimon_core.table import Table

Texts = Sequence[str | None]


def list_partitions(table: Table, names: Sequence[str], values: Texts) -> list[list[str | None]]:
    """Return the partitions with data, in order of their values, `None` first.

    Args:
        table: the table.
        names: the partition columns that are given.
        values: the text of each of them; only partitions with these values are returned.
    """
    snapshot = table.snapshot()
    if snapshot is None:
        return []
    schema = table.schema.partition_arrow
    given = dict(zip(names, values, strict=True))
    serialised = {entry.partition for entry in live_entries(table.store, snapshot, with_stats=False).live}
    rows = sorted(map(table.store.partition_values, serialised), key=lambda row: [(v is not None, v) for v in row])
    found = [[_text(value, field.type) for value, field in zip(row, schema, strict=True)] for row in rows]
    return [texts for texts in found if given.items() <= dict(zip(schema.names, texts, strict=True)).items()]


def partition_spec(table: Table, values: Texts) -> dict[str, Any]:
    """Return a partition as {column: value}, as `Table.drop_partitions` takes it."""
    schema = table.schema.partition_arrow
    return {field.name: _value(text, field.type) for text, field in zip(values, schema, strict=True)}


def _text(value: Any, kind: pa.DataType) -> str | None:
    if value is None:
        return None
    if kinds.is_timestamp(kind):
        return str(pa.scalar(value, pa.int64()).cast(kind).cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).as_py())
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(text: str | None, kind: pa.DataType) -> Any:
    if text is None:
        return None
    if kinds.is_timestamp(kind):
        return pa.scalar(int(text), pa.int64()).cast(pa.timestamp("us", kind.tz)).as_py()
    if kinds.is_date(kind):
        return pa.scalar(int(text), pa.int32()).cast(kind).as_py()
    if kinds.is_boolean(kind):
        return text == "true"
    if kinds.is_integer(kind):
        return int(text)
    if kinds.is_floating(kind):
        return float(text)
    return Decimal(text) if kinds.is_decimal(kind) else text
