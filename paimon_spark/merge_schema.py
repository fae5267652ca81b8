"""Schema changes that a write makes: the option ``write.merge-schema``."""

from collections.abc import Sequence

from pyspark.sql.types import NullType, StructType

from paimon_core import Table, TableSchema
from paimon_core.engine import MergeRules, SchemaChange, apply_changes, merge_changes
from paimon_core.types.columns import ColumnNames
from paimon_spark.types import paimon_fields


def merge_columns(table: Table, columns: StructType, rules: MergeRules) -> Table:
    """Add the missing columns to a table in one schema change; return the changed table.

    Raises InvalidInputError for columns that cannot be merged, UnsupportedError for a type that Paimon lacks.
    """
    return table.alter(lambda schema: _changes(schema, columns, rules))


def with_merged_columns(table: Table, columns: StructType, rules: MergeRules) -> Table | None:
    """Return the table that `merge_columns` would return, without changing it; `None`: no change is needed.

    The schema is not stored, so the returned table is for planning only.
    """
    changes = _changes(table.schema, columns, rules)
    if not changes:
        return None
    return table.with_store(table.store.with_schema(apply_changes(table.schema, changes, has_snapshots=True)))


def _changes(schema: TableSchema, columns: StructType, rules: MergeRules) -> Sequence[SchemaChange]:
    names = ColumnNames(field.name for field in schema.fields)
    untyped = {f.name for f in columns.fields if isinstance(f.dataType, NullType) and names.positions(f.name)}
    return merge_changes(schema.fields, paimon_fields(columns, without=untyped), rules)
