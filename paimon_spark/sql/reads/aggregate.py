"""Aggregations that metadata can answer. Their rows become a local scan, see ``PaimonLocalScan.java``."""

import json
from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as spark

from paimon_core import TableScan, TableSchema
from paimon_core.engine import AggregateFunction, LiveRows, aggregate_metadata
from paimon_core.types.arrow import timestamp_unit
from paimon_core.types.datatype import INTEGER_ROOTS, TEXT_ROOTS, AtomicType, DataField
from paimon_spark.sql.reads.pushdown import Tree
from paimon_spark.types import spark_type

_PLAIN_ROOTS = {*INTEGER_ROOTS, *TEXT_ROOTS, "DATE", "DECIMAL", "BOOLEAN"}
_MICROSECONDS = {"ms": 1000, "us": 1}


def local_rows(scan: TableScan, aggregation: Tree, description: str, live_rows: LiveRows | None = None) -> str | None:
    """Return the rows of an aggregation as JSON; `None`: metadata cannot answer it.

    Args:
        scan: the scan, with timestamps in microseconds and a predicate on partition columns only.
        aggregation: the aggregation as ``Trees.java`` describes it.
        description: the text of the scan in a plan.
        live_rows: counts the rows of a plan whose files are merged; `None`: rows of merged files must be read.
    """
    schema = scan.store.schema
    groups = [_column(tree, schema) for tree in aggregation["groups"]]
    functions = [_function(tree, schema) for tree in aggregation["functions"]]
    if None in groups or None in functions:
        return None
    named = [field for field in groups if field is not None]
    translated = [function for function in functions if function is not None]
    shown = list(named)
    shown += [schema.field(f.column) for f in translated if f.column is not None and f.name != "count"]
    if not all(map(_is_shown, shown)):
        return None
    rows = aggregate_metadata(scan, [field.name for field in named], translated, live_rows)
    if rows is None:
        return None
    outputs = [*named, *(None if f.name == "count" or f.column is None else schema.field(f.column) for f in translated)]
    return json.dumps(
        {
            "schema": _schema_of(outputs).json(),
            "rows": [[_text(value, field) for value, field in zip(row, outputs, strict=True)] for row in rows],
            "description": description,
        }
    )


def _column(tree: Tree, schema: TableSchema) -> DataField | None:
    """Return the table column that a reference names; `None`: it does not name a table column."""
    path = tree.get("column", ())
    return next((field for field in schema.fields if [field.name] == list(path)), None)


def _function(tree: Tree, schema: TableSchema) -> AggregateFunction | None:
    if tree["name"] == "count(*)":
        return AggregateFunction("count")
    field = _column(tree["args"][0], schema) if tree["args"] else None
    return None if field is None or tree["name"] == "?" else AggregateFunction(tree["name"], field.name)


def _is_shown(field: DataField) -> bool:
    """Return True if `_text` can represent the values of the column."""
    type_ = field.type
    if not isinstance(type_, AtomicType):
        return False
    return type_.root in _PLAIN_ROOTS or (
        type_.root.startswith("TIMESTAMP") and timestamp_unit(type_.precision or 0) in _MICROSECONDS
    )


def _schema_of(outputs: Sequence[DataField | None]) -> spark.StructType:
    types = [spark.LongType() if field is None else spark_type(field.type, field.name) for field in outputs]
    return spark.StructType([spark.StructField(f"c{n}", type_) for n, type_ in enumerate(types)])


def _text(value: Any, field: DataField | None) -> str | None:
    """Return a value as the text of Spark's internal value."""
    if value is None:
        return None
    root = "" if field is None else getattr(field.type, "root", "")
    if field is not None and root.startswith("TIMESTAMP"):
        return str(value * _MICROSECONDS[timestamp_unit(getattr(field.type, "precision", None) or 0)])
    return str(value).lower() if root == "BOOLEAN" else str(value)
