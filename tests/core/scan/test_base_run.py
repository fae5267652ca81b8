"""The base run of a plan: its rows without the keys of newer rows, and the newer rows, are the rows of the table."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.operations.row_changes.delete import shows_all
from paimon_core.read.newer_rows import newer_rows
from paimon_core.read.table_read import TableRead
from paimon_core.scan import base_run as module
from paimon_core.scan.base_run import base_run
from tests.core.write.test_bucket_compaction import table_in_memory
from tests.core.write.test_equal_numbers import commit_at_once
from tests.support.tables import keyed_table, orders, rows_of

OLD = 40
WAYS = {
    "plain": {},
    "full changelog": {"changelog-producer": "full-compaction"},
    "looks up": {"changelog-producer": "lookup"},
    "many files": {"target-file-size": "1 b"},
    "vectors": {"deletion-vectors.enabled": "true"},
}


def whole(table):
    """Return a scan of all rows, also of the rows that no compaction has shown yet."""
    scan = table.scan()
    return replace(scan, store=scan.store.with_options(shows_all(scan.store.schema)))


def divided(table):
    scan = whole(table)
    return base_run(scan.store, scan.plan())


def all_rows(table):
    scan = whole(table)
    read = TableRead(scan.store, scan.store.schema.fields)
    return rows_of(pa.Table.from_batches([b for s in scan.plan().splits for b in read.to_batches(s)], read.schema))


def rows(table, found):
    """Return the rows of the table from its base run and its newer rows."""
    store = whole(table).store
    read = TableRead(store, store.schema.fields)
    base = pa.Table.from_batches([b for s in found.plan.splits for b in read.to_batches(s)], read.schema)
    newer = newer_rows(store, found.newer)
    kept = base.filter(pc.invert(pc.is_in(base["id"], newer["id"])))
    adds = newer.filter(pc.equal(pc.bit_wise_and(newer.column(0), 1), 0)).drop_columns("_VALUE_KIND")
    return rows_of(pa.concat_tables([kept, adds]))


batches = st.lists(st.tuples(st.sampled_from(["+I", "-D"]), st.integers(0, OLD + 4)), max_size=4)


@pytest.mark.cases(3)
@pytest.mark.parametrize("way", WAYS)
@given(
    compact=st.booleans(),
    steps=st.lists(st.tuples(st.booleans(), st.lists(batches, min_size=1, max_size=2)), max_size=3),
)
def test_base_run_with_newer_rows_equals_table(way, compact, steps):
    table = table_in_memory(**WAYS[way], **{"write-only": "true"})
    table.write(orders(*((i, "old", i) for i in range(OLD))))
    if compact:
        table.compact(full=True)
    for compacts, writes in steps:  # the second writer of a step may have older numbers than rows that are committed
        commit_at_once(table, writes, list(range(len(writes))))
        if compacts:
            table.compact()
    result = divided(table)
    if result is not None:
        assert rows(table, result) == all_rows(table)


def test_few_newer_rows_are_split_from_base_run(tmp_path, monkeypatch):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(orders(*((i, "old", i) for i in range(OLD))))
    assert divided(table).newer == ()
    table.write(orders((3, "new", 0), (99, "new", 0)))
    table.write(orders((3, "", 0), (4, "", 0)), ["-D", "+I"])
    result = divided(table)
    assert [len(split.files) for split in (*result.plan.splits, *result.newer)] == [1, 2]
    assert rows(table, result) == rows_of(table.to_arrow())
    monkeypatch.setattr(module, "MOST_NEWER_ROWS", 3)
    assert divided(table) is None
    monkeypatch.setattr(module, "MOST_NEWER_ROWS", 4)
    monkeypatch.setattr(module, "MOST_NEWER_BYTES", 10)
    assert divided(table) is None


def test_levels_with_deletion_vectors_are_one_base_run(tmp_path):
    options = {"deletion-vectors.enabled": "true", "write-only": "true"}
    table = keyed_table(tmp_path / "t", bucket="1", **options)
    table.write(orders(*((i, "old", i) for i in range(OLD))))
    table.compact(full=True)
    table.write(orders((3, "newer", 0), (99, "newer", 0)))
    table.compact()
    table.write(orders((3, "newest", 0), (4, "", 0)), ["+I", "-D"])
    result = divided(table)
    assert [(len(split.files), len(split.vectors)) for split in (*result.plan.splits, *result.newer)] == [
        (2, 1),
        (1, 0),
    ]
    assert rows(table, result) == all_rows(table)


@pytest.mark.parametrize(
    "options",
    [
        {"sequence.field": "n"},
        {"ignore-delete": "true"},
        {"merge-engine": "partial-update"},
        {"merge-engine": "first-row"},
    ],
)
def test_base_run_is_refused_unless_newest_row_wins(tmp_path, options):
    table = keyed_table(tmp_path / "t", bucket="1", **{"write-only": "true", **options})
    table.write(orders(*((i, "old", i) for i in range(OLD))))
    table.write(orders((3, "new", 0)))
    assert divided(table) is None


def test_base_run_with_deletes_or_late_rows_is_refused(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    table.write(orders(*((i, "old", i) for i in range(OLD))), ["-D", *["+I"] * (OLD - 1)])
    table.write(orders((3, "new", 0)))
    assert divided(table) is None
    late = keyed_table(tmp_path / "late", bucket="1", write_only="true")
    with late.writer() as writer:
        writer.write(orders((3, "late", 0)))
        late.write(orders(*((i, "old", i) for i in range(OLD))))
        late.compact(full=True)
        late.committer().commit(writer.prepare_commit(), started_from=writer.started_from)
    assert divided(late) is None
    assert rows_of(late.to_arrow())[3]["v"] == "old"
