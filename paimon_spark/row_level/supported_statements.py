"""Checks that a table supports a statement. A statement whose new rows a merge would hide is refused by name."""

from collections.abc import Collection, Iterable

from paimon_core import TableSchema
from paimon_core.engine import TableTraits, check_deletes
from paimon_core.engine import check_updates as engine_check
from paimon_core.errors import UnsupportedError
from paimon_core.options.merge import SEQUENCE_FIELD
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
    engine_check(schema, columns, operation)


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
