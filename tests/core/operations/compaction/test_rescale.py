"""Rescaling changes the number of buckets and no row, for tables with any options."""

import pickle

import pyarrow as pa
import pytest

from paimon_core.commit.overwrite_partitions import replace_files
from paimon_core.commit.publisher import Publisher
from paimon_core.errors import CommitConflictError, InvalidInputError
from paimon_core.operations.compaction.rescale import RescaleTask
from paimon_core.operations.jobs.runner import LOCAL
from paimon_core.operations.table_maintenance import TableMaintenance
from paimon_core.row.binary_row import EMPTY_ROW
from paimon_core.scan.entries import live_entries, partitions_predicate
from paimon_core.schema.change import SetOption
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.tables import append_table, keyed_table, orders, rows_of

LATER = {"write-only": "true"}
TABLES = {
    "keys": {},
    "partial-update": {"merge-engine": "partial-update"},
    "sums": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
    "first row, not compacted": {"merge-engine": "first-row", **LATER},
    "marked, not compacted": {"deletion-vectors.enabled": "true", **LATER},
    "lookup": {"changelog-producer": "lookup", **LATER},
    "marked lookup": {"changelog-producer": "lookup", "deletion-vectors.enabled": "true"},
    "full compaction": {"changelog-producer": "full-compaction"},
}


def totals(table):
    entries = live_entries(table.store, table.snapshot(), with_stats=False).live
    return {e.total_buckets for e in entries}, {e.bucket for e in entries}


def written(table, *, kinds=False):
    table.write(orders(*((k, f"v{k}", k) for k in range(12))))
    table.write(orders(*((k, f"w{k}", k) for k in range(6, 20))))
    if kinds:
        table.write(orders((3, None, 3)), ["-D"])


@pytest.mark.parametrize("name", TABLES)
def test_rescaling_changes_no_row_and_emits_no_change(tmp_path, name):
    table = keyed_table(tmp_path / "t", **TABLES[name])
    written(table, kinds=name in ("keys", "lookup", "marked lookup", "full compaction"))
    once = keyed_table(tmp_path / "same", **TABLES[name])
    written(once, kinds=name in ("keys", "lookup", "marked lookup", "full compaction"))
    once.compact(full=True)
    expected = rows_of(once.to_arrow())
    assert table.maintenance.rescale(5).commit_kind in ("OVERWRITE", "COMPACT")
    table = Table.open(table.path)
    assert table.schema.options["bucket"] == "5"
    assert totals(table) == ({5}, set(range(5)))
    assert rows_of(table.to_arrow()) == expected
    assert table.maintenance.rescale() is None
    if "changelog-producer" in TABLES[name]:
        last = table.snapshot().id
        Table.open(table.path).compact(full=True)
        assert table.changes(last).num_rows == 0
        assert sorted(map(str, table.changes(0).to_pylist())) == sorted(map(str, once.changes(0).to_pylist()))
    table.write(orders((100, "x", 1)))
    table.compact(full=True)
    assert [row for row in rows_of(table.to_arrow()) if row["id"] == 100] == [{"id": 100, "v": "x", "n": 1}]
    table.maintenance.rescale(1)
    assert totals(Table.open(table.path)) == ({1}, {0})
    assert rows_of(Table.open(table.path).to_arrow())[:-1] == expected


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true"}])
def test_partition_by_partition(tmp_path, options):
    schema = pa.schema([pa.field("p", pa.int32()), pa.field("k", pa.int64())])
    settings = {"bucket": "2", "bucket-key": "k", **options}
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["p"], options=settings))
    rows = [{"p": p, "k": k} for p in (1, 2, None) for k in range(20)]
    table.write(pa.Table.from_pylist(rows, schema))
    table.delete("k = 7")
    table.delete("p = 2 and k >= 0")  # nothing is left of its rows, and maybe of its files
    left = [row for row in rows if row["p"] != 2 and row["k"] != 7]
    sizes: list[tuple[int, int]] = []
    table.maintenance.rescale(3, partitions=[{"p": None}], progress=lambda done, whole: sizes.append((done, whole)))
    assert len(sizes) == 1
    assert sizes[0][0] == sizes[0][1] > 0
    table = Table.open(table.path)
    table.write(pa.table({"p": [None], "k": [99]}, schema))
    with pytest.raises(InvalidInputError, match="has files written with 2 buckets"):
        table.write(pa.table({"p": [1], "k": [99]}, schema))
    table.maintenance.rescale()
    table.write(pa.table({"p": [1], "k": [99]}, schema))
    assert totals(table)[0] == {3}
    left += [{"p": None, "k": 99}, {"p": 1, "k": 99}]
    assert sorted(table.to_arrow().to_pylist(), key=str) == sorted(left, key=str)


@pytest.mark.parametrize("change", ["write", "compact", "delete"])
def test_rows_changed_since_read_are_not_overwritten(tmp_path, change):
    options = {"bucket": "2", "bucket-key": "id", "deletion-vectors.enabled": "true", "write-only": "true"}
    table = append_table(tmp_path / "t", **options)
    for start in range(0, 30, 10):
        table.write(orders(*((k, "v", k) for k in range(start, start + 10))))
    read_at = table.snapshot()
    if change == "delete":
        table.delete("id = 4")
    else:
        table.write(orders((77, "v", 7))) if change == "write" else table.compact(full=True)
    before = rows_of(table.to_arrow())
    where = partitions_predicate(table.store, {EMPTY_ROW})
    with pytest.raises(CommitConflictError, match="files to rewrite have changed"):
        replace_files(Publisher(table.store), (), where, only={EMPTY_ROW}, read_at=read_at)
    assert rows_of(table.to_arrow()) == before
    replace_files(Publisher(table.store), (), where, only={EMPTY_ROW}, read_at=table.snapshot())
    assert table.to_arrow().num_rows == 0


def test_other_tables_are_not_rescaled(tmp_path):
    table = append_table(tmp_path / "free")
    with pytest.raises(InvalidInputError, match="no fixed number of buckets"):
        table.maintenance.rescale()
    for buckets in (4, 0):
        with pytest.raises(InvalidInputError, match=f"cannot be given {buckets}"):
            table.maintenance.rescale(buckets)
    fixed = keyed_table(tmp_path / "fixed")
    with pytest.raises(InvalidInputError, match="cannot be given -1"):
        fixed.maintenance.rescale(-1)
    assert fixed.maintenance.rescale() is None
    assert fixed.alter([SetOption("bucket", "3")]).maintenance.rescale() is None


class PickledTasks:
    """A runner that runs tasks as other processes would."""

    parts = 4

    def __init__(self):
        self.tasks = []

    def run_all(self, store, tasks, run, progress):
        tasks, run = pickle.loads(pickle.dumps((tasks, run)))
        self.tasks += tasks
        return LOCAL.run_all(store, tasks, run, progress)


@pytest.mark.parametrize("function", ["default", "mod"])
@pytest.mark.parametrize(("old", "new", "reads"), [(4, 8, 1), (4, 2, 2), (3, 4, 3), (6, 4, 3), (1, 3, 1)])
def test_task_for_each_new_bucket_reads_buckets_that_can_hold_its_rows(tmp_path, function, old, new, reads):
    options = {"bucket": str(old), "bucket-function.type": function}
    table = keyed_table(tmp_path / "t", **options)
    table.write(orders(*((k, f"v{k}", k) for k in range(-60, 60))))
    table.write(orders(*((k, f"w{k}", k) for k in range(20))))
    expected, runner = rows_of(table.to_arrow()), PickledTasks()
    TableMaintenance(table.store, runner).rescale(new)
    table = Table.open(table.path)
    assert rows_of(table.to_arrow()) == expected
    assert totals(table) == ({new}, set(range(new)))
    written = [task for task in runner.tasks if isinstance(task, RescaleTask)]
    assert {len({split.bucket for split in task.splits}) for task in written} == {reads}
    assert table.get({"id": -59}) is not None  # each row is where a look-up expects it


@pytest.mark.parametrize("name", ["keys", "marked lookup", "full compaction"])
def test_tasks_write_same_files_as_this_process(tmp_path, name):
    table, same = keyed_table(tmp_path / "t", **TABLES[name]), keyed_table(tmp_path / "same", **TABLES[name])
    written(table, kinds=True)
    written(same, kinds=True)
    TableMaintenance(table.store, PickledTasks()).rescale(5)
    same.maintenance.rescale(5)
    table, same = Table.open(table.path), Table.open(same.path)
    assert rows_of(table.to_arrow()) == rows_of(same.to_arrow())
    assert table.snapshot().commit_kind == same.snapshot().commit_kind
    assert totals(table) == totals(same)
