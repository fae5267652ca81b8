"""Maintenance while other jobs compact and expire: files that are gone with their snapshot are not damage."""

import pyarrow as pa
import pytest

from paimon_core.errors import CommitConflictError, CorruptedError, OutOfRangeError
from paimon_core.operations.compaction import append_compact, compact, compact_postponed, rescale, sort_compact
from paimon_core.operations.jobs.runner import LOCAL
from paimon_core.operations.row_changes import data_evolution, delete
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.system_fields import ROW_ID
from paimon_core.write import bucket_compaction
from tests.support.tables import files_below, rows_of

ROWS = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("v", pa.string())]
)
SLICED = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
MARKS = {"deletion-vectors.enabled": "true"}
TABLES = {
    "keys": (["p", "id"], {"bucket": "1"}),
    "keys, marked": (["p", "id"], {"bucket": "1", **MARKS}),
    "rows": ([], {}),
    "rows, marked": ([], MARKS),
    "rows in buckets": ([], {"bucket": "1", "bucket-key": "id"}),
    "slices": ([], SLICED),
}
UNKEYED = [name for name in TABLES if "keys" not in name and name != "slices"]


def rows(p, *ids, v="old"):
    return pa.table({"p": [p] * len(ids), "id": list(ids), "v": [v] * len(ids)}, ROWS)


def table_of(path, name, **more):
    """A table of two partitions with three files each; none is compacted by who writes it."""
    keys, options = TABLES[name]
    options = {"write-only": "true", "compaction.min.file-num": "2", **options, **more}
    table = Table.create(str(path), Schema(ROWS, primary_keys=keys, partition_keys=["p"], options=options))
    for p in (1, 2):
        for start in (0, 10, 20):
            table.write(rows(p, *range(start, start + 10)))
    return table


def expire(table):
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than=2**62)


def overtaken(table, **where):
    """Another process compacts the table, and nothing else is left of it."""
    table.compact(full=True, **where)
    expire(table)


class Late:
    """A runner of this process that comes too late: before it runs its tasks, the next of `others` does its part."""

    parts = 1

    def __init__(self, *others):
        self.others = list(others)

    def run_all(self, store, tasks, run, progress):
        if self.others:
            self.others.pop(0)()
        return LOCAL.run_all(store, tasks, run, progress)


def contents(table):
    """All rows, including rows that only a compaction makes visible."""
    marked = table.schema.primary_keys and "deletion-vectors.enabled" in table.schema.options
    shown = table.with_options({"deletion-vectors.merge-on-read": "true"}) if marked else table
    return rows_of(shown.to_arrow(), ("p", "id"))


def no_file_is_left(table):
    """Only files are there that a snapshot names."""
    live = {e.file.file_name for s in table.snapshots() for e in live_entries(table.store, s).live}
    there = {f.split("/")[-1] for f in files_below(table.path) if "/bucket-" in f}
    return there <= live


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("name", TABLES)
def test_files_compacted_by_others_are_skipped_and_the_others_compacted(tmp_path, name, full):
    table = table_of(tmp_path / "t", name, **{"num-sorted-run.compaction-trigger": "2"})
    before = contents(table)
    late = Late(lambda: overtaken(table, partitions=[{"p": 1}]))
    result = table.compact(full=full, runner=late)
    assert (result.commit_kind, late.others) == ("COMPACT", [])
    live = live_entries(table.store, result).live
    assert sorted(table.store.partition_path(e.partition) for e in live) == ["p=1", "p=2"]
    assert contents(table) == before
    assert no_file_is_left(table)


@pytest.mark.parametrize("name", TABLES)
def test_table_that_others_fully_compacted_needs_no_compaction(tmp_path, name):
    table = table_of(tmp_path / "t", name)
    before = contents(table)
    assert table.compact(full=True, runner=Late(lambda: overtaken(table))) is None
    assert contents(table) == before
    assert no_file_is_left(table)


@pytest.mark.parametrize("name", ["keys", "rows", "slices"])
def test_files_that_others_compact_repeatedly_are_skipped(tmp_path, name):
    table = table_of(tmp_path / "t", name)
    many = range(100, 200, 10)
    others = [lambda n=n: (table.write(rows(1, n)), overtaken(table), table.write(rows(1, n + 1))) for n in many]
    late = Late(*others)
    assert table.compact(full=True, runner=late) is None
    assert len(late.others) == 5
    assert table.to_arrow().num_rows == 60 + 2 * 5
    assert no_file_is_left(table)


@pytest.mark.parametrize("parts", [1, 3])
def test_partitions_are_sorted_again(tmp_path, parts):
    table = table_of(tmp_path / "t", "rows")
    sorted_by = table.with_options({"target-file-size": "1 b"})  # so small that partitions are parted
    before = contents(table)
    late = Late(lambda: overtaken(table, partitions=[{"p": 1}]))
    late.parts = parts
    result = sorted_by.compact(order_by=["id"], runner=late)
    assert (result.commit_kind, late.others) == ("COMPACT", [])
    assert contents(table) == before
    assert no_file_is_left(table)
    late = Late(*[lambda: (table.write(rows(1, 5)), overtaken(table))] * 20)
    late.parts = parts
    with pytest.raises(CommitConflictError, match="p=1"):
        sorted_by.compact(order_by=["id"], runner=late)
    assert len(late.others) == 15
    assert no_file_is_left(table)


@pytest.mark.parametrize("name", UNKEYED)
def test_rows_to_delete_are_searched_again(tmp_path, name):
    table = table_of(tmp_path / "t", name)
    left = [r for r in contents(table) if r["id"] % 20 != 5]
    late = Late(*[lambda: (table.write(rows(1, 100)), table.write(rows(1, 45)), overtaken(table))] * 2)
    result = table.delete("id in (5, 25, 45)", runner=late)
    assert (result.commit_kind, late.others) == ("OVERWRITE", [])
    assert contents(table) == sorted([*left, *rows(1, 100, 100).to_pylist()], key=lambda r: (r["p"], r["id"]))
    assert no_file_is_left(table)
    late = Late(*[lambda: (table.write(rows(1, 5)), table.write(rows(1, 45)), overtaken(table))] * 20)
    table.write(rows(1, 5))
    with pytest.raises(OutOfRangeError, match=r"expired while .* snapshot.time-retained"):
        table.delete("id = 5", runner=late)
    assert len(late.others) == 10
    assert no_file_is_left(table)


class Meddler:
    """A function before which others come once."""

    def __init__(self, function, other):
        self.function, self.others = function, [other]

    def __call__(self, *args, **more):
        if self.others:
            self.others.pop()()
        return self.function(*args, **more)


@pytest.fixture
def meddle(monkeypatch):
    """Let others come before a function of a module is called the first time."""

    def put(module, name, other):
        meddler = Meddler(getattr(module, name), other)
        monkeypatch.setattr(module, name, meddler)
        return meddler

    return put


@pytest.mark.parametrize(
    ("name", "module"),
    [("keys", compact), ("rows", append_compact), ("slices", data_evolution), ("rows", sort_compact)],
)
def test_snapshot_that_expires_during_planning_is_planned_again(tmp_path, meddle, name, module):
    table = table_of(tmp_path / "t", name)
    before = contents(table)
    meddler = meddle(module, "live_files", lambda: overtaken(table, partitions=[{"p": 1}]))
    by = {"order_by": ["id"]} if module is sort_compact else {"full": True}
    assert table.compact(**by).commit_kind == "COMPACT"
    assert meddler.others == []
    assert contents(table) == before


@pytest.mark.parametrize(
    ("name", "where"),
    [
        *((name, where) for name in ("keys", "keys, marked") for where in ("TableScan", "TableWrite")),
        *((name, where) for name in UNKEYED for where in ("TableScan", "vectors_by_bucket")),
    ],
)
def test_delete_uses_newest_snapshot_if_its_snapshot_expires(tmp_path, meddle, name, where):
    table = table_of(tmp_path / "t", name)
    meddler = meddle(delete, where, lambda: (overtaken(table), table.write(rows(1, 45))))
    table.delete("id in (5, 25, 45)")
    assert meddler.others == []
    assert [r["id"] for r in contents(table)] == [k for k in range(30) if k not in (5, 25)] * 2


def test_partitions_of_expired_snapshot_are_dropped(tmp_path, meddle):
    table = table_of(tmp_path / "t", "rows")
    meddler = meddle(delete, "live_entries", lambda: overtaken(table))
    assert table.delete("p = 1").commit_kind == "OVERWRITE"
    assert meddler.others == []
    assert {r["p"] for r in contents(table)} == {2}


def test_waiting_rows_that_others_routed_are_skipped(tmp_path, meddle):
    options = {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false"}
    table = Table.create(
        str(tmp_path / "t"), Schema(ROWS, primary_keys=["p", "id"], partition_keys=["p"], options=options)
    )
    for place in ("waiting_rows", "live_entries"):
        table.write(pa.concat_tables([rows(p, 1, 2) for p in (1, 2)]))
        meddler = meddle(compact_postponed, place, lambda: overtaken(table, partitions=[{"p": 1}]))
        table.compact()
        assert meddler.others == []
        assert [(r["p"], r["id"]) for r in contents(table)] == [(1, 1), (1, 2), (2, 1), (2, 2)]
        assert no_file_is_left(table)


@pytest.mark.parametrize("where", ["live_entries", "TableRead", "TableWrite"])
def test_rescale_reads_again(tmp_path, meddle, where):
    table = table_of(tmp_path / "t", "keys")
    before = contents(table)
    meddler = meddle(rescale, where, lambda: overtaken(table))
    table.maintenance.rescale(2)
    assert meddler.others == []
    assert contents(table) == before
    assert {e.total_buckets for e in live_entries(table.store, table.snapshot()).live} == {2}


@pytest.mark.parametrize("name", ["keys", "keys, marked"])
def test_write_that_compacts_expired_snapshot_is_repeated(tmp_path, meddle, name):
    table = table_of(tmp_path / "t", name)
    compacting = table.with_options({"write-only": "false", "num-sorted-run.compaction-trigger": "2"})
    before = contents(table)
    meddler = meddle(bucket_compaction, "compact", lambda: overtaken(table))
    compacting.write(rows(1, 45))
    assert meddler.others == []
    assert contents(table) == sorted([*before, *rows(1, 45).to_pylist()], key=lambda r: (r["p"], r["id"]))
    assert no_file_is_left(table)


@pytest.mark.parametrize("where", ["live_entries", "_write_row_range"])
def test_columns_of_expired_snapshot_are_not_corrupted(tmp_path, meddle, where):
    table = table_of(tmp_path / "t", "slices")
    (first, *_), before = table.to_arrow(columns=[ROW_ID.name]).column(0).to_pylist(), contents(table)
    meddle(data_evolution, where, lambda: overtaken(table))
    with pytest.raises(OutOfRangeError, match="expired"):
        table.update_columns(pa.table({ROW_ID.name: [first], "v": ["new"]}))
    assert contents(table) == before
    assert no_file_is_left(table)


@pytest.mark.parametrize("overtake", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_missing_file_of_existing_snapshot_is_corruption(tmp_path, name, overtake):
    table = table_of(tmp_path / "t", name)
    (lost, *_) = [f for f in sorted(files_below(table.path)) if "p=2/bucket-" in f]
    (tmp_path / "t" / lost).unlink()
    last = table.snapshot().id

    def other():
        table.compact(full=True, partitions=[{"p": 1}])
        expire(table)

    others = [other] if overtake else []
    calls = [lambda: table.compact(full=True, runner=Late(*others))]
    if name != "slices":
        calls.append(lambda: table.delete("id >= 0 and v = 'old'", runner=Late(*others)))
    if name == "rows":
        calls.append(lambda: table.compact(order_by=["id"], runner=Late(*others)))
    for call in calls:
        with pytest.raises(CorruptedError, match=lost.split("/")[-1]):
            call()
    assert table.snapshot().id == last + overtake
