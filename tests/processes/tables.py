"""The tables of a run, the rows of a write, and the check that a read saw whole writes, each once."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core import Schema
from tests.processes.history import Counts

PARTS = 3
"""A write adds one row for each part: in `log` to three partitions, in the other tables to buckets by the key."""
_ROW = [("writer", pa.string()), ("number", pa.int64()), ("part", pa.int32()), ("touched", pa.int64())]
_ROW_COLUMNS = pa.schema([pa.field(name, kind, name == "touched") for name, kind in _ROW])
_SUM = [("writer", pa.string()), ("part", pa.int32()), ("n", pa.int64()), ("newest", pa.int64())]
_SUM_COLUMNS = pa.schema([pa.field(name, kind, name in ("n", "newest")) for name, kind in _SUM])
_KEPT = {"snapshot.num-retained.min": "60", "snapshot.num-retained.max": "1000000", "snapshot.time-retained": "1 d"}
SCHEMAS = {
    "log": Schema(_ROW_COLUMNS, partition_keys=["part"], options=_KEPT),
    "keyed": Schema(
        _ROW_COLUMNS,
        primary_keys=["writer", "number", "part"],
        options={**_KEPT, "bucket": "2", "num-sorted-run.compaction-trigger": "4"},
    ),
    "sums": Schema(
        _SUM_COLUMNS,
        primary_keys=["writer", "part"],
        options={
            **_KEPT,
            "bucket": "2",
            "merge-engine": "aggregation",
            "fields.n.aggregate-function": "sum",
            "fields.newest.aggregate-function": "max",
            "num-sorted-run.compaction-trigger": "4",
        },
    ),
    "copy": Schema(_ROW_COLUMNS, options=_KEPT),
}
"""``copy`` is what a stream makes of `log`; clients write to the others."""
WRITTEN = ("log", "keyed", "sums")


class TornError(AssertionError):
    """A read saw a part of a write, a write twice, or a later write of a writer without an earlier one."""


def rows_of(table: str, writer: str, number: int) -> list[dict[str, object]]:
    """Return the rows of a write."""
    if table == "sums":
        return [{"writer": writer, "part": part, "n": 1, "newest": number} for part in range(PARTS)]
    return [{"writer": writer, "number": number, "part": part, "touched": 0} for part in range(PARTS)]


def arrow_rows(table: str, writer: str, number: int) -> pa.Table:
    """Return the rows of a write as an Arrow table."""
    columns = _SUM_COLUMNS if table == "sums" else _ROW_COLUMNS
    return pa.Table.from_pylist(rows_of(table, writer, number), schema=columns)


def counts_of(table: str, rows: pa.Table) -> Counts:
    """Return the number of writes of each writer in the rows of a table.

    Raises TornError if a writer has other rows than the rows of its writes 0 to n - 1, each of them once.
    """
    if table == "sums":
        return _counts_of_sums(rows)
    keys = rows.group_by(["writer", "number", "part"]).aggregate([([], "count_all")])
    if (twice := keys.filter(pc.greater(keys["count_all"], 1))).num_rows:
        raise TornError(f"{table}: rows that are there more than once: {twice.to_pylist()[:5]}")
    writers = rows.group_by("writer").aggregate([([], "count_all"), ("number", "max"), ("number", "min")])
    whole = pc.and_(
        pc.equal(writers["count_all"], pc.multiply(pc.add(writers["number_max"], 1), PARTS)),
        pc.equal(writers["number_min"], 0),
    )
    _check(table, writers, whole)
    return dict(zip(writers["writer"].to_pylist(), pc.add(writers["number_max"], 1).to_pylist(), strict=True))


def _counts_of_sums(rows: pa.Table) -> Counts:
    least_and_most = [(name, how) for name in ("n", "newest") for how in ("min", "max")]
    writers = rows.group_by("writer").aggregate([([], "count_all"), *least_and_most])
    whole = pc.equal(writers["count_all"], PARTS)
    for name in ("n_max", "newest_min", "newest_max"):
        expected = writers["n_min"] if name == "n_max" else pc.subtract(writers["n_min"], 1)
        whole = pc.and_(whole, pc.equal(writers[name], expected))
    _check("sums", writers, whole)
    return dict(zip(writers["writer"].to_pylist(), writers["n_min"].to_pylist(), strict=True))


def _check(table: str, writers: pa.Table, whole: pa.ChunkedArray) -> None:
    if (torn := writers.filter(pc.invert(whole))).num_rows:
        raise TornError(f"{table}: not the rows of whole writes, each once and in order: {torn.to_pylist()[:5]}")


def check_touched(rows: pa.Table, updates: Sequence[tuple[str, int, bool]]) -> int:
    """Check that each row has the acknowledged updates of its writer; return their number.

    An update adds 1 to ``touched`` of all rows of a writer.

    Args:
        rows: the rows of `log`.
        updates: the writer, the number of its writes before the update, and True if the update was acknowledged; an
            update that was not acknowledged may be there or not.

    Raises TornError if a row lacks an update or has one twice.
    """
    for writer in {writer for writer, _, _ in updates}:
        own = rows.filter(pc.equal(rows["writer"], writer)).group_by("number")
        for row in own.aggregate([("touched", "min"), ("touched", "max")]).to_pylist():
            later = [sure for name, before, sure in updates if name == writer and before > row["number"]]
            if not sum(later) <= row["touched_min"] <= row["touched_max"] <= len(later):
                raise TornError(f"log: write {row} of {writer} has not the updates {later}")
    return sum(sure for _, _, sure in updates)
