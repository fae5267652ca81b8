"""Scan statistics for Spark's optimizer, about the files to read, and about columns if the table was analyzed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from paimon_core import DataSplit, TableScan, TableSchema
from paimon_core.engine import ColumnStatistics, read_statistics
from paimon_core.types.datatype import INTEGER_ROOTS, TEXT_ROOTS

_WITH_BOUNDS = {*INTEGER_ROOTS, *TEXT_ROOTS, "DATE", "DECIMAL", "BOOLEAN"}
"""Types whose minimum and maximum are stored as the text of Spark's internal value."""


def scan_statistics(scan: TableScan, splits: Sequence[DataSplit]) -> str:
    """Return rows, bytes and columns of a scan as JSON, for ``PaimonScan.java``.

    For files that must be merged, the number of rows is the sum of the rows of the files.

    Args:
        scan: the scan to measure.
        splits: the splits of its plan.
    """
    rows, size = sum(split.row_count for split in splits), sum(split.size for split in splits)
    columns: Mapping[str, dict[str, Any]] = {}
    analysed = None if scan.snapshot is None else read_statistics(scan.store, scan.snapshot)
    if analysed is not None:
        columns = {
            name: column for name, c in analysed.columns.items() if (column := _column(scan.store.schema, name, c))
        }
    return json.dumps({"rows": rows, "bytes": size, "columns": columns})


def _column(schema: TableSchema, name: str, statistics: ColumnStatistics) -> dict[str, Any] | None:
    """Return the statistics of a column as JSON; `None`: the table no longer has the column."""
    field = next((f for f in schema.fields if f.name == name and f.id == statistics.column_id), None)
    if field is None:
        return None
    counted = {
        "distinct_count": statistics.distinct_count,
        "null_count": statistics.null_count,
        "avg_len": statistics.avg_len,
        "max_len": statistics.max_len,
    }
    bounds = {"min": statistics.min, "max": statistics.max} if getattr(field.type, "root", None) in _WITH_BOUNDS else {}
    return {**counted, **bounds}
