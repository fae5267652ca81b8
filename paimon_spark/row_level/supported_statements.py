"""Checks that a table supports a statement. A statement whose new rows a merge would hide is refused by name."""

from collections.abc import Collection, Iterable

from paimon_core import TableSchema
from paimon_core.engine import BucketMode, TableTraits, bucket_mode, check_deletes
from paimon_core.errors import UnsupportedError
from paimon_core.options.merge import FIELDS_DEFAULT_AGGREGATE_FUNCTION, ROWKIND_FIELD, SEQUENCE_FIELD
from paimon_core.options.per_field import split_field_option, split_list
from paimon_core.types.datatype import DataField, DataType, RowType, without_finer_digits
from paimon_spark.row_level.rows import Clause


def check_delete(schema: TableSchema, operation: str) -> None:
    """Raise UnsupportedError if the table does not accept deletes. `operation`: the statement, for errors."""
    check_deletes(schema)
    if schema.primary_keys:
        values = not TableTraits(
            schema
        ).keeps_rows  # a merge engine that computes values retracts the values of the row
        read = {*schema.primary_keys, *schema.partition_keys, *schema.options.value(SEQUENCE_FIELD)}
        _check_exact((f for f in schema.fields if values or f.name in read), operation)


def check_merge(schema: TableSchema, clauses: Collection[Clause]) -> None:
    """Raise UnsupportedError for a clause whose effect a merge of the table would discard."""
    for clause in clauses:
        if clause.action == "delete":
            check_delete(schema, "MERGE INTO")
        if clause.action == "update" and clause.values is not None:
            check_updates(schema, clause.values.names, "MERGE INTO")


def check_updates(schema: TableSchema, columns: Collection[str], operation: str) -> None:
    """Raise UnsupportedError for new values that a merge would discard, or that would move a row with a primary key.

    Except in data evolution tables, the other columns of a changed row are rewritten, so Spark must read them exactly.
    """
    if not TableTraits(schema).data_evolution:
        _check_exact((f for f in schema.fields if f.name not in columns), operation)
    if not schema.primary_keys:
        moving = sorted(set(schema.partition_keys) & set(columns))
        if moving and TableTraits(schema).data_evolution:
            raise UnsupportedError(
                f"{operation} cannot change {', '.join(moving)}: rows of a table with 'data-evolution.enabled' do not "
                "move to other partitions; delete and insert them instead"
            )
        return
    if bucket_mode(schema) is BucketMode.POSTPONE:
        raise UnsupportedError(
            f"{operation} of a table with 'bucket' = -2 is not possible: its reads show writes only after a compaction"
        )
    if schema.options.value(ROWKIND_FIELD) is not None:
        raise UnsupportedError(
            f"{operation} of a table with 'rowkind.field' is not possible: write rows with their kinds"
        )
    engine = TableTraits(schema).engine_type.name
    if engine not in ("deduplicate", "partial-update"):
        raise UnsupportedError(
            f"{operation} of a table with merge engine {engine} is not possible: its merge would discard new values; "
            "insert rows instead"
        )
    if merged := sorted(_merged_otherwise(schema) & set(columns)):
        raise UnsupportedError(
            f"{operation} cannot change {', '.join(merged)}: a sequence group or an aggregate function of "
            "partial-update computes the value; insert rows instead"
        )
    wrong = sorted({*schema.primary_keys, *schema.partition_keys} & set(columns))
    if wrong:
        raise UnsupportedError(
            f"{operation} cannot change {', '.join(wrong)}: columns of the key or the partition; delete the rows and "
            "insert new ones"
        )


def _merged_otherwise(schema: TableSchema) -> set[str]:
    """Return the columns of partial-update with a sequence group or an aggregate function."""
    names: set[str] = set()
    for key, value in schema.options.items():
        parts = split_field_option(key)
        if parts is not None and parts[1] in ("sequence-group", "aggregate-function"):
            names.update(parts[0], split_list(value) if parts[1] == "sequence-group" else ())
    if schema.options.has(FIELDS_DEFAULT_AGGREGATE_FUNCTION):
        names.update(field.name for field in schema.fields)
    return names if TableTraits(schema).engine_type.name == "partial-update" else set()


def _check_exact(read: Iterable[DataField], operation: str) -> None:
    """Raise UnsupportedError for a column with times finer than Spark's microseconds."""
    finer = [f for f in read if _is_finer(f.type)]
    if finer:
        raise UnsupportedError(
            f"{operation} is not possible: column {finer[0].name} of type {finer[0].type} would lose its digits beyond "
            "microseconds, the precision of Spark"
        )


def _is_finer(kind: DataType) -> bool:
    """Return True for a type that holds timestamps finer than microseconds."""
    if isinstance(kind, RowType):
        return any(_is_finer(field.type) for field in kind.fields)
    parts = (getattr(kind, name, None) for name in ("element", "key", "value"))
    return without_finer_digits(kind) != kind or any(_is_finer(part) for part in parts if part is not None)
