"""Explanations of reads: every count equals the count of a real read, and every step of pruning is found."""

import json
import pickle

import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.inspect.explain.explain import filter_uses
from paimon_core.inspect.explain.parts import FilterUse, Totals
from paimon_core.merge import MERGE_ENGINES
from paimon_core.predicate.filter import bound_filter
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from tests.support.tables import ORDERS, append_table, keyed_table, orders

PARTS = pa.schema([pa.field("dt", pa.string(), nullable=False), *ORDERS])
LATE = {
    "deduplicate": "which would reappear",
    "first-row": "which would appear",
    "partial-update": "takes each column from the newest row that has it",
    "aggregation": "computes it from all rows of the key",
}


def checked(table: Table, text: str | None = None, columns=None, **when):
    """The explanation of an executed read; every count is compared with the read itself."""
    actual = table.explain(columns, text, analyze=True, **when)
    rows, scan = table.to_arrow(columns, text, **when), table.scan(columns, text, **when)
    plan, live = scan.plan(), live_entries(table.store, scan.snapshot).live
    names = {file.file_name for split in plan.splits for file in split.files}
    totals, executed = actual.totals, actual.executed
    assert (totals.files, executed.files) == (len(names), len(names))
    assert (totals.splits, executed.splits) == (len(plan.splits), len(plan.splits))
    assert totals.rows == executed.rows_stored == sum(split.row_count for split in plan.splits)
    assert totals.bytes == sum(split.size for split in plan.splits)
    assert executed.rows == rows.num_rows
    if actual.pruning:
        counts = [actual.pruning[0].before, *(step.after for step in actual.pruning)]
        assert counts == [len(live), *(step.before for step in actual.pruning[1:]), len(names)]
    planned = table.explain(columns, text, **when)
    assert planned.executed is None
    assert str(actual).startswith(str(planned).splitlines()[0])
    assert json.loads(json.dumps(actual.to_dict()))["totals"]["files"] == len(names)
    return actual


def left_out(found) -> dict[str, int]:
    """The files that each step left out, without steps that left out none."""
    return {step.by: step.left_out for step in found.pruning if step.left_out}


def late(found, text: str) -> FilterUse:
    """The use of one conjunct."""
    return next(use for use in found.filters if use.text == text)


# ---- pruning, by each thing


def test_partition_filter_skips_partitions_and_manifests(tmp_path):
    partitioned = Table.create(str(tmp_path / "p"), Schema(PARTS, ["dt", "id"], ["dt"], {"bucket": "1"}))
    for day in ("a", "b", "c"):
        partitioned.write(pa.table([[day, day], [1, 2], ["x", "y"], pa.array([1, 2], pa.int32())], schema=PARTS))
    actual = checked(partitioned, "dt = 'b' AND id > 0")
    assert left_out(actual) == {"partition": 2}
    assert (actual.manifests, actual.manifests_read) == (3, 1)
    assert late(actual, "dt = 'b'").stage == "partition"
    assert "dt=b bucket 0: 1 file raw" in str(actual)


def test_buckets_and_keys(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="4", write_only="true")
    table.write(orders(*((i, "a", 1) for i in range(100))))
    assert left_out(checked(table, "id = 7")) == {"bucket": 3}
    one = keyed_table(tmp_path / "one", bucket="1", write_only="true")
    for low in (0, 100, 200):
        one.write(orders((low, "a", 1), (low + 50, "b", 2)))
    assert left_out(checked(one, "id BETWEEN 100 AND 160")) == {"key": 2}


@pytest.mark.parametrize("keyed", [False, True], ids=["append", "keys"])
def test_statistics_skip_files(tmp_path, keyed):
    made = keyed_table if keyed else append_table
    table = made(tmp_path / "t", **({"bucket": "1", "write_only": "true"} if keyed else {}))
    for number in range(3):
        table.write(orders((1, "a", number), (2, "b", number + 1)))
    actual = checked(table, "n > 2")
    # versions of one key stay together: an older one must not come back
    assert left_out(actual) == ({} if keyed else {"statistics": 2})
    assert left_out(checked(table, "n > 7")) == {"statistics": 3}
    note = next(step.note for step in actual.pruning if step.by == "statistics")
    assert note == ("overlapping files only together with their whole bucket" if keyed else None)


@pytest.mark.parametrize("place", ["embedded", "beside"])
def test_file_indexes_skip_files(tmp_path, place):
    options = {"file-index.bitmap.columns": "id", "metadata.stats-mode": "none"}
    options["file-index.in-manifest-threshold"] = "1 mb" if place == "embedded" else "1 b"
    table = append_table(tmp_path / "t", **options)
    for number in range(3):
        table.write(orders((number, "a", 1), (number + 10, "b", 2)))
    actual = checked(table, "id = 11")
    if place == "embedded":
        assert left_out(actual) == {"index": 2}
    else:  # asked when a file is read
        assert (left_out(actual), actual.totals.index_files, actual.executed.files_skipped) == ({}, 3, 2)
        assert "3 files, 3 with an index file, " in str(actual)


# ---- the merge


@pytest.mark.parametrize("engine", MERGE_ENGINES)
def test_every_merge_engine_has_reason_for_late_filters(tmp_path, engine):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true", merge_engine=engine)
    for number in range(3):
        table.write(orders((1, "a", number), (2 + number, "b", number)))
    if engine == "first-row":  # shows level 0 after a compaction only: two overlapping levels are made by hand
        assert left_out(checked(table)) == {"visibility": 3}
        bound = bound_filter("n > 1", table.schema.fields)
        (use,) = filter_uses(table.store, bound, Totals(merged_sections=1))
    else:
        actual = checked(table, "id < 3 AND n > 1 AND (id = 1 AND n = 2 OR id = 2 AND n = 3)")
        assert late(actual, "id < 3").stage == "before the merge"
        assert [use.weaker for use in actual.filters] == [None, None, "id = 1 OR id = 2"]
        assert actual.executed.rows_merged == 2
        use = late(actual, "n > 1")
        statistics = next(step for step in actual.pruning if step.by == "statistics")
        assert (engine in statistics.note) == (engine in ("partial-update", "aggregation"))
    assert use.stage == "after the merge"
    assert use.reason.startswith("n ")
    assert LATE[engine] in use.reason


def test_no_filter_waits_where_nothing_overlaps(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1")
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.compact(full=True)
    actual = checked(table, "n > 1 AND id > 0")
    assert {use.stage for use in actual.filters} == {"read"}
    assert (actual.totals.raw, actual.totals.sections) == (1, 0)


def test_late_rows_are_level_0_above_compacted_rows(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(orders(*((i, "a", 1) for i in range(10))))
    table.with_options({"write-only": "false"}).compact(full=True)
    table.write(orders((3, "b", 2)), ["-D"])
    table.write(orders((2, "b", 2), (20, "c", 3)))
    actual = checked(table)
    assert [(one.level, one.files, one.rows) for one in actual.levels] == [(0, 2, 3), (5, 1, 10)]
    (split,) = actual.splits
    (section,) = split.sections
    assert [run.level for run in section.runs] == [0, 0, 5]
    assert (actual.totals.merged_sections, actual.totals.most_runs) == (1, 3)
    assert (actual.executed.rows_retracted, actual.executed.rows_merged, actual.executed.rows) == (1, 2, 10)
    assert "section 1: L0x1 + L0x1 + L5x1, 13 rows: merge of 3 runs" in str(actual)
    assert "rows in: 13\n    - 2 merged into newer rows\n    - 1 retracted\n  rows out: 10" in str(actual)


def test_deleted_rows_are_counted(tmp_path):
    table = append_table(tmp_path / "t", **{"deletion-vectors.enabled": "true"})
    table.write(orders((1, "a", 1), (2, "b", 2), (3, "c", 3)))
    table.delete("id = 2")
    actual = checked(table)
    assert (actual.totals.vectors, actual.totals.deleted_rows, actual.executed.rows_deleted) == (1, 1, 1)
    assert "1 with deleted rows (1 row)" in str(actual)


def test_level_0_is_hidden_with_deletion_vectors(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true", **{"deletion-vectors.enabled": "true"})
    table.write(orders((1, "a", 1)))
    actual = checked(table)
    assert left_out(actual) == {"visibility": 1}
    assert "with deletion-vectors.enabled, a batch read does not show level 0" in str(actual)


def test_read_optimized_view(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(orders((1, "a", 1)))
    actual = checked(table.read_optimized())
    assert left_out(actual) == {"visibility": 1}
    assert actual.table.endswith("t$ro")


def test_filter_on_partition_and_key_waits_for_merge(tmp_path):
    table = Table.create(
        str(tmp_path / "t"), Schema(PARTS, ["dt", "id"], ["dt"], {"bucket": "1", "write-only": "true"})
    )
    for n in (1, 2):
        table.write(pa.table([["a", "b"], [1, 1], ["x", "y"], pa.array([n, n], pa.int32())], schema=PARTS))
    (use,) = checked(table, "dt = 'a' OR id = 1").filters
    assert (use.stage, use.reason) == ("after the merge", "dt is not a key column within a partition")


def test_columns_of_one_row_in_several_files(tmp_path):
    table = append_table(tmp_path / "t", **{"row-tracking.enabled": "true", "data-evolution.enabled": "true"})
    table.write(orders((1, "a", 1), (2, "b", 2)))
    table.update_columns(pa.table({"_ROW_ID": [0, 1], "n": pa.array([5, 6], pa.int32())}))
    actual = checked(table, "n > 5")
    (use,) = actual.filters
    assert (use.stage, actual.totals.join, actual.executed.rows) == ("after the merge", 1, 1)
    assert "stored in several files" in use.reason
    assert left_out(actual) == {}
    assert "with columns of 1 range of rows" in str(actual)


def test_rows_without_bucket_are_hidden(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="-2", **{"postpone.batch-write-fixed-bucket": "false"})
    table.write(orders((1, "a", 1)))
    actual = checked(table)
    assert left_out(actual) == {"visibility": 1}
    assert "bucket -2 are not shown until a compaction" in str(actual)


# ---- which rows


def test_branches_tags_and_moments(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(orders((1, "a", 1)))
    table.tags.create("one")
    table.branches.create("b", tag="one")
    table.write(orders((2, "b", 2)))
    assert checked(table).totals.files == 2
    for when in ({"tag": "one"}, {"snapshot_id": 1}, {"version": "one"}):
        actual = checked(table, **when)
        assert (actual.snapshot_id, actual.totals.files) == (1, 1)
    actual = checked(Table.open(table.path, branch="b"))
    assert (actual.totals.files, actual.table) == (1, f"{table.path}$branch_b")


def test_explanation_of_empty_table(tmp_path):
    table = append_table(tmp_path / "t")
    actual = table.explain(analyze=True)
    assert (actual.snapshot_id, actual.totals, actual.splits) == (None, Totals(), ())
    assert repr(actual) == "Explanation(no snapshot)"
    assert str(actual) == f"{table.path}: no snapshot, nothing to read"
    assert actual.executed.rows == 0


def test_reads_of_changes_and_bad_arguments_are_refused(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    with pytest.raises(UnsupportedError, match=r"incremental-"):
        table.with_options({"incremental-between": "0,1"}).explain()
    for listed in (-1, True, "3", None):
        with pytest.raises(InvalidInputError, match="0 or more"):
            table.explain(listed=listed)
    with pytest.raises(InvalidInputError, match="nothing"):
        table.explain(filter="nothing = 1")


# ---- as a value


def test_hostile_names_do_not_reach_terminal(tmp_path):
    schema = pa.schema([pa.field("a\nfiles: 0\x1b[2J", pa.string(), nullable=False), ("‮n", pa.int32())])
    table = Table.create(str(tmp_path / "t"), Schema(schema, [], schema.names[:1]))
    table.write(pa.table([["x\x1b[31m\ny"], pa.array([1], pa.int32())], schema=schema))
    actual = table.explain(schema.names, "`‮n` > 0 AND `a\nfiles: 0\x1b[2J` <> '\x1b'", analyze=True)
    assert all(line.isprintable() for line in str(actual).splitlines())
    assert sum(line.startswith("files: ") for line in str(actual).splitlines()) == 1


def test_many_splits_are_counted_and_few_listed(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true", **{"source.split.target-size": "1 b"})
    for number in range(30):
        table.write(orders((2 * number, "a", 1), (2 * number + 1, "b", 2)))
    actual = checked(table)
    assert (len(actual.splits), actual.totals.splits) == (20, 30)
    assert "  and 10 further splits" in str(actual)
    assert sum(split.executed.rows for split in table.explain(analyze=True, listed=30).splits) == 60
    assert table.explain(listed=0).splits == ()
    wide = table.with_options({"source.split.target-size": "1 gb"}).explain(listed=3)
    (split,) = wide.splits
    assert (len(split.sections), split.further_sections, wide.totals.sections) == (3, 27, 30)
    assert "and 27 further sections" in str(wide)
    assert pickle.loads(pickle.dumps(actual)) == actual
    assert repr(actual) == "Explanation(snapshot 30, 30 of 30 files, 30 splits)"


def test_many_runs_are_counted_and_few_listed(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    for number in range(5):
        table.write(orders((1, "a", number)))
    (section,) = table.explain(listed=2).splits[0].sections
    assert (len(section.runs), section.further_runs, section.rows) == (2, 3, 5)
    assert "section 1: L0x1 + L0x1 + 3 further runs, 5 rows: merge of 5 runs" in str(table.explain(listed=2))


def test_only_analyze_reads_data_files(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    (entry,) = live_entries(table.store, table.snapshot()).live
    table.store.io.delete(table.store.file_path(entry.bucket_ref, entry.file))
    assert table.explain().totals.files == 1
    with pytest.raises(Exception, match="is missing"):
        table.explain(analyze=True)
