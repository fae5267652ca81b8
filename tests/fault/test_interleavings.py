"""Concurrent committers: in any order of their FileIO calls, no change is lost or applied twice.

Every pair is stepped in an order drawn by hypothesis, with a reader in between that must only ever see a state some
snapshot has. A last test lets real processes meet on a real directory.
"""

import multiprocessing

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import AlreadyExistsError, CommitConflictError
from paimon_core.fileio.fileio import FileIO
from paimon_core.manifest.entry import ADD
from paimon_core.schema.change import AddColumn, DropColumn, RenameColumn
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.compaction import check_levels, delta, only_levels
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO
from tests.support.schedule import interleave
from tests.support.tables import ORDERS, append_table, files_below, orders, rows_of

ROOT = "memory://w/t"
FAST = {"commit.min-retry-wait": "0 ms", "commit.max-retry-wait": "0 ms"}
EXAMPLES = 20
TOLD, MARKED = {"changelog-producer": "lookup"}, {"deletion-vectors.enabled": "true"}

turns = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 12)), max_size=24)


def open_table(io: FileIO) -> Table:
    schema = Schemas(io, ROOT).latest()
    assert schema is not None
    return Table(FileStore(io, ROOT, schema))


def base(*, keyed: bool) -> MemoryIO:
    io = MemoryIO()
    options = {"bucket": "1", **FAST} if keyed else FAST
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"] if keyed else [], options=options))
    open_table(io).write(orders((1, "old", 1), (2, "old", 2)))
    return io


def write(*rows):
    return lambda io: open_table(io).write(orders(*rows)).id


def overwrite(*rows):
    return lambda io: open_table(io).overwrite(orders(*rows)).id


def look(io: FileIO):
    """A reader that looks three times: which snapshot it saw, and its rows."""
    seen = []
    for _ in range(3):
        table = open_table(io)
        snapshot = table.snapshot()
        seen.append((snapshot.id, ordered(table.to_arrow(columns=["id", "v"], snapshot_id=snapshot.id))))
    return seen


def ordered(table: pa.Table) -> list[tuple]:
    return sorted((row["id"], row["v"]) for row in table.to_pylist())


def play(io: MemoryIO, operations, turns_) -> tuple[list, Table]:
    """Run, then check what holds for every pair; returns the results of the operations and the table after."""
    *results, seen = interleave(io, [*operations, look], turns_)
    for result in (*results, seen):
        if isinstance(result, Exception):
            raise result
    table = open_table(io)
    ids = [s.id for s in table.snapshots()]
    assert ids == list(range(1, len(ids) + 1))
    for snapshot_id, rows in seen:
        assert ordered(table.to_arrow(columns=["id", "v"], snapshot_id=snapshot_id)) == rows
    assert [snapshot_id for snapshot_id, _ in seen] == sorted(snapshot_id for snapshot_id, _ in seen)
    return results, table


@draws(EXAMPLES)
@given(turns=turns, options=st.sampled_from([TOLD, MARKED, TOLD | MARKED]))
def test_concurrent_upserts_show_all_rows_after_compaction(turns, options):
    """Two upserts with conflicting compactions: the loser compacts again, and emits its changes."""
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"], options={"bucket": "1", **FAST, **options}))
    open_table(io).write(orders(*((k, "old", 1) for k in range(4))))
    results = interleave(io, [write((1, "a", 1), (9, "a", 1)), write((2, "b", 2), (8, "b", 2)), look], turns)
    assert not [r for r in results if isinstance(r, Exception)], results
    table = open_table(io)
    check_levels(table)
    shown = [(row["id"], row["v"]) for row in rows_of(table.to_arrow())]
    assert shown == [(0, "old"), (1, "a"), (2, "b"), (3, "old"), (8, "b"), (9, "a")]
    if "changelog-producer" in options:
        held: dict[int, dict] = {}
        for row in table.changes(0).to_pylist():
            if row.pop("rowkind") in ("+I", "+U"):
                held[row["id"]] = row
            else:
                assert held.pop(row["id"]) == row
        assert sorted(held.values(), key=lambda row: row["id"]) == rows_of(table.to_arrow())


@draws(EXAMPLES)
@given(turns)
def test_two_appends_are_both_committed_once(turns_):
    io = base(keyed=False)
    results, table = play(io, [write((3, "a", 1), (4, "a", 1)), write((3, "b", 1), (5, "b", 1))], turns_)
    assert sorted(results) == [2, 3]
    expected = [(1, "old"), (2, "old"), (3, "a"), (3, "b"), (4, "a"), (5, "b")]
    assert ordered(table.to_arrow()) == expected
    assert table.snapshot().total_record_count == len(expected)
    assert unreferenced(io, table) == set()


def unreferenced(io: MemoryIO, table: Table) -> set[str]:
    """Metadata files that no snapshot refers to: what the loser wrote must be gone."""
    manifests = table.store.manifests
    used = set()
    for snapshot in table.snapshots():
        lists = {snapshot.base_manifest_list, snapshot.delta_manifest_list}
        used |= lists | {meta.file_name for name in lists for meta in manifests.read_list(name)}
    return {path for path in io.files if "/manifest/" in path and path.rsplit("/", 1)[1] not in used}


@draws(EXAMPLES)
@given(turns)
def test_upserts_of_different_keys_are_both_committed(turns_):
    _, table = play(base(keyed=True), [write((1, "a", 1), (3, "a", 1)), write((2, "b", 1))], turns_)
    assert ordered(table.to_arrow()) == [(1, "a"), (2, "b"), (3, "a")]


@draws(EXAMPLES)
@given(turns)
def test_concurrent_upserts_of_one_key_leave_one_row(turns_):
    _, table = play(base(keyed=True), [write((1, "a", 1)), write((1, "b", 1))], turns_)
    rows = ordered(table.to_arrow())
    assert rows in ([(1, "a"), (2, "old")], [(1, "b"), (2, "old")])
    assert ordered(table.to_arrow(filter="id = 1")) == rows[:1]
    assert ordered(table.with_options({"source.split.target-size": "1 b"}).to_arrow()) == rows


@draws(EXAMPLES)
@given(turns)
def test_upsert_and_overwrite_are_serializable(turns_):
    upsert, replace = (1, "up", 1), (2, "over", 1)
    (upserted, overwrote), table = play(base(keyed=True), [write(upsert), overwrite(replace, (3, "over", 1))], turns_)
    expected = [(2, "over"), (3, "over")] if upserted < overwrote else [(1, "up"), (2, "over"), (3, "over")]
    assert ordered(table.to_arrow()) == expected


@draws(EXAMPLES)
@given(turns, st.booleans())
def test_later_of_two_overwrites_stays(turns_, keyed):
    (one, other), table = play(base(keyed=keyed), [overwrite((7, "a", 1)), overwrite((8, "b", 1))], turns_)
    assert sorted([one, other]) == [2, 3]
    assert ordered(table.to_arrow()) == ([(8, "b")] if one < other else [(7, "a")])
    assert table.snapshot().total_record_count == 1


# ---- compactors


def compact(*, full):
    def run(io: FileIO):
        snapshot = open_table(io).compact(full=full)
        return None if snapshot is None else snapshot.id

    return run


def upsert_and_compact(io: FileIO):
    table = open_table(io).with_options({"write-only": "false"})
    return table.write(orders((1, "new", 1), (9, "new", 9))).id


def many_runs() -> MemoryIO:
    io = MemoryIO()
    options = {"bucket": "1", "write-only": "true", "num-sorted-run.compaction-trigger": "3", **FAST}
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"], options=options))
    for i in range(4):
        open_table(io).write(orders((i, f"v{i}", i), (i + 1, f"v{i}", i)))
    open_table(io).write(orders((2, None, None)), ["-D"])
    return io


four = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 25)), max_size=30)


@draws(EXAMPLES)
@given(four, st.booleans(), st.booleans())
def test_compactors_and_a_writer_that_compacts_lose_nothing(turns_, one_full, other_full):
    io = many_runs()
    _, table = play(io, [compact(full=one_full), compact(full=other_full), upsert_and_compact], turns_)
    expected = [(0, "v0"), (1, "new"), (3, "v3"), (4, "v3"), (9, "new")]
    assert ordered(table.to_arrow()) == expected
    check_levels(table)
    for snapshot in table.snapshots():
        table.to_arrow(snapshot_id=snapshot.id)
    assert data_files(io) == named_files(table)
    table.compact(full=True)
    assert ordered(table.to_arrow()) == expected
    assert [run.level for run in only_levels(table).runs] == [3]


@draws(EXAMPLES)
@given(four, st.booleans(), st.booleans())
def test_sums_count_each_row_once_during_compactions(turns_, one_full, inline):
    io = MemoryIO()
    options = {"bucket": "1", "write-only": "true", "num-sorted-run.compaction-trigger": "2", **FAST}
    sums = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    create_table(io, ROOT, Schema(ORDERS, primary_keys=["id"], options=options | sums))
    for i in range(3):
        open_table(io).write(orders((1, f"v{i}", 1), (2 + i, f"v{i}", 10)))

    def add(own):
        table = open_table(own).with_options({"write-only": str(not inline).lower()})
        return table.write(orders((1, "new", 100), (9, "new", 1))).id

    _, table = play(io, [compact(full=one_full), compact(full=True), add], turns_)
    assert sorted((row["id"], row["n"]) for row in table.to_arrow().to_pylist()) == [
        (1, 103), (2, 10), (3, 10), (4, 10), (9, 1)
    ]  # fmt: skip
    check_levels(table)
    assert data_files(io) == named_files(table)


@draws(EXAMPLES)
@given(four, st.sampled_from(["compact", "sort"]), st.booleans())
def test_append_files_are_compacted_during_writes(turns_, other, bucketed):
    io = MemoryIO()
    buckets = {"bucket": "1", "bucket-key": "id", "write-only": "true"} if bucketed else {}
    create_table(io, ROOT, Schema(ORDERS, options={"file.format": "avro", **buckets, **FAST}))
    for i in range(3):
        open_table(io).write(orders((i, "old", -i)))

    def sort(own):
        return open_table(own).compact(order_by=["n"]).id

    second = sort if other == "sort" and not bucketed else compact(full=True)
    _, table = play(io, [compact(full=True), second, write((7, "new", 7))], turns_)
    assert ordered(table.to_arrow()) == [(0, "old"), (1, "old"), (2, "old"), (7, "new")]
    assert table.snapshot().total_record_count == 4
    assert data_files(io) == named_files(table)


@draws(EXAMPLES)
@given(turns)
def test_compaction_and_new_column_both_succeed(turns_):
    def alter_and_write(own):
        table = open_table(own).alter([AddColumn("extra", "INT")])
        rows = orders((1, "new", 1)).append_column("extra", pa.array([5], pa.int32()))
        return table.write(rows).id

    io = many_runs()
    compacted, written, _ = interleave(io, [compact(full=True), alter_and_write, look], turns_)
    assert isinstance(written, int)
    assert not isinstance(compacted, Exception) or "open the table again" in str(compacted)
    table = open_table(io)
    expected = {0: None, 1: 5, 3: None, 4: None}
    assert {row["id"]: row["extra"] for row in table.to_arrow().to_pylist()} == expected
    table.compact(full=True)
    assert {row["id"]: row["extra"] for row in table.to_arrow().to_pylist()} == expected
    assert data_files(io) == named_files(table)


def data_files(io: MemoryIO) -> set[str]:
    """Names of all data files there are."""
    return {path.rsplit("/", 1)[1] for path in io.files if "/bucket-" in path}


def named_files(table: Table) -> set[str]:
    """Names of the data files that snapshots have added."""
    return {e.file.file_name for s in table.snapshots() for e in delta(table, s) if e.kind == ADD}


@draws(EXAMPLES)
@given(turns)
def test_compaction_and_overwrite_are_serializable(turns_):
    _, table = play(many_runs(), [compact(full=True), overwrite((7, "over", 1))], turns_)
    assert ordered(table.to_arrow()) == [(7, "over")]
    check_levels(table)


MARKS = {"deletion-vectors.enabled": "true"}
DELETING = {
    "marked": MARKS,
    "marked in a bucket": {**MARKS, "bucket": "1", "bucket-key": "id", "write-only": "true"},
    "rewritten": {},
}


@draws(2 * EXAMPLES)
@given(four, st.sampled_from(sorted(DELETING)), st.sampled_from(["compact", "sort", "delete", "overwrite"]))
def test_concurrent_commits_lose_no_delete(turns_, kind, other):
    """Of two deletes, a writer and one more the rows that either deletes stay away, and no other goes."""
    io = MemoryIO()
    create_table(io, ROOT, Schema(ORDERS, options={"file.format": "avro", **DELETING[kind], **FAST}))
    for i in range(2):
        open_table(io).write(orders(*((k, "old", -k) for k in range(4 * i, 4 * i + 4))))
    open_table(io).delete("id = 0")

    def delete(text):
        return lambda own: open_table(own).delete(text).id

    def sort(own):
        return open_table(own).compact(order_by=["n"]).id

    bucketed = "bucket" in DELETING[kind]
    third = {
        "delete": delete("id in (3, 7)"),
        "sort": compact(full=True) if bucketed else sort,
        "compact": compact(full=True),
        "overwrite": overwrite((9, "over", 9)),
    }[other]
    if other == "overwrite":  # what either would delete may be gone
        deletes = [
            lambda own, text=text: open_table(own).delete(text) and 0 for text in ("id in (1, 5)", "id in (2, 5)")
        ]
    else:
        deletes = [delete("id in (1, 4)"), delete("id in (2, 5)")]
    _, table = play(io, [*deletes, third], turns_)
    expected = {"delete": [6], "overwrite": [9]}.get(other, [3, 6, 7])
    assert [row for row, _ in ordered(table.to_arrow())] == expected
    table.compact(full=True)
    assert [row for row, _ in ordered(table.to_arrow())] == expected
    assert data_files(io) == named_files(table)
    named = {
        e.file_name for s in table.snapshots() if s.index_manifest
        for e in table.store.manifests.read_index(s.index_manifest)
    }  # fmt: skip
    assert {path.rsplit("/", 1)[1] for path in io.files if "/index/" in path} == named


CHANGES = {
    "add": [AddColumn("extra", "INT")],
    "drop": [DropColumn("n")],
    "drop and add again": [DropColumn("n"), AddColumn("n", "INT")],
    "rename": [RenameColumn("n", "m")],
}


@draws(EXAMPLES)
@given(turns, st.sampled_from(sorted(CHANGES)), st.booleans())
def test_commit_and_schema_change_both_succeed(turns_, change, keyed):
    io = base(keyed=keyed)
    before = open_table(io).schema

    def write_as_opened_before(own):
        return Table(FileStore(own, ROOT, before)).write(orders((3, "a", 33))).id

    def alter(own):
        return open_table(own).alter(CHANGES[change]).schema.id

    (_, schema_id), table = play(io, [write_as_opened_before, alter], turns_)
    assert schema_id == table.schema.id == 1
    rows = rows_of(table.to_arrow())
    assert [(r["id"], r["v"]) for r in rows] == [(1, "old"), (2, "old"), (3, "a")]
    if change == "rename":
        assert [r["m"] for r in rows] == [1, 2, 33]
    elif change == "add":
        assert [r["extra"] for r in rows] == [None] * 3
        assert [r["n"] for r in rows] == [1, 2, 33]
    elif change == "drop":
        assert table.arrow_schema.names == ["id", "v"]
    else:  # the new column is another one: what was written into the old one stays unseen
        assert [r["n"] for r in rows] == [None] * 3


@draws(EXAMPLES)
@given(turns)
def test_two_schema_changes_both_hold(turns_):
    alter = lambda name: lambda io: open_table(io).alter([AddColumn(name, "INT")]).schema.id  # noqa: E731
    results, table = play(base(keyed=False), [alter("x"), alter("y")], turns_)
    assert sorted(results) == [1, 2]
    assert set(table.arrow_schema.names) == {"id", "v", "n", "x", "y"}
    assert len({f.id for f in table.schema.fields}) == 5


@draws(EXAMPLES)
@given(turns)
def test_of_two_creators_one_wins(turns_):
    io = MemoryIO()

    def create(name):
        return lambda own: create_table(own, ROOT, Schema(pa.schema([(name, pa.int32())]))).fields[0].name

    one, other = interleave(io, [create("a"), create("b")], [(who % 2, calls) for who, calls in turns_])
    won, lost = (other, one) if isinstance(one, Exception) else (one, other)
    assert isinstance(lost, AlreadyExistsError)
    assert Schemas(io, ROOT).latest().names == (won,)


def test_writer_of_recreated_table_is_refused_and_leaves_nothing():
    io = base(keyed=False)
    stale = open_table(io)
    io.delete_directory(ROOT)
    create_table(io, ROOT, Schema(ORDERS), lambda: 1)
    files = set(io.files)
    with pytest.raises(CommitConflictError, match="open it and write again"):
        stale.write(orders((9, "x", 9)))
    assert set(io.files) == files


# ---- processes


def _commit_often(path: str, number: int, commits: int) -> None:
    table = Table.open(path, options={"commit.min-retry-wait": "5 ms", "commit.max-retries": "1000"})
    for i in range(commits):
        table.write(orders((number * 1000 + i, f"{number}", i)))


def test_processes_that_commit_at_once_lose_nothing(tmp_path):
    path = str(tmp_path / "t")
    append_table(path)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_commit_often, args=(path, n, 6)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 3
    table = Table.open(path)
    assert [s.id for s in table.snapshots()] == list(range(1, 19))
    assert [s.total_record_count for s in table.snapshots()] == list(range(1, 19))
    ids = sorted(table.to_arrow(columns=["id"]).column("id").to_pylist())
    assert ids == [n * 1000 + i for n in range(3) for i in range(6)]
    assert len([f for f in files_below(path) if f.endswith(".parquet")]) == 18
    assert not [f for f in files_below(path) if f.endswith(".tmp")]
