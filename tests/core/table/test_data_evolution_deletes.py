"""Deleted rows of tables whose columns may be in several files: reads, deletes, updates, compaction, conflicts."""

import random
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.commit.commit_messages import commit_messages
from paimon_core.commit.publisher import Publisher
from paimon_core.datafile.deletion_vectors import write_vectors
from paimon_core.deletion.vector import DeletionVector
from paimon_core.errors import CommitConflictError, CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.lsm.row_ranges import anchor, group_by_row_range
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.operations.jobs.task import PlanRequest
from paimon_core.operations.row_changes import delete as deletes
from paimon_core.operations.row_changes.data_evolution import NewValues, RowRanges, plan_row_ranges, run
from paimon_core.predicate.filter import bound_filter
from paimon_core.schema.schema import Schema
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.table import Table
from tests.support.draws import rounds
from tests.support.tables import append_table, files_below, orders

MARKED = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"}


def values(**columns):
    return pa.table({("_ROW_ID" if name == "row" else name): column for name, column in columns.items()})


def by_id(table, columns=("id", "v", "n"), **selection):
    rows = table.to_arrow([*columns, "_ROW_ID"], **selection).to_pylist()
    found = {row["_ROW_ID"]: tuple(row[c] for c in columns) for row in rows}
    assert len(found) == len(rows)
    return found


def at(table, snapshot_id):
    return table.with_options({"scan.snapshot-id": str(snapshot_id)})


def deleted(table, text):
    """Delete rows, and return their number."""
    return deletes.delete_rows(table.store, bound_filter(text, table.schema.fields)).rows


def live(table):
    """The files of each row range, and the location of their bucket."""
    (split, *others) = table.scan().plan().splits
    assert not others
    return group_by_row_range(split.files), split.location


def mark(table, file, positions):
    """Commit a deletion vector of a file, as another engine may."""
    _, location = live(table)
    entries = write_vectors(table.store, location.ref, {file.file_name: DeletionVector.of(positions)})
    return commit_messages(Publisher(table.store), [CommitMessage(*location, new_indexes=entries)]).snapshot


@pytest.fixture
def table(tmp_path):
    """Row ids 0 to 2 in two files, 3 and 4 in one."""
    made = append_table(tmp_path / "t", **MARKED)
    made.write(orders((1, "a", 1), (2, "b", 2), (3, "c", 3)))
    made.write(orders((4, "d", 4), (5, "e", 5)))
    made.update_columns(values(row=[0, 1], v=["A", "B"]))
    return made


# ---- reads


@pytest.mark.parametrize("file_format", ["parquet", "orc", pytest.param("avro", marks=pytest.mark.more)])
def test_vector_of_oldest_file_hides_rows_of_all_files(tmp_path, file_format):
    table = append_table(tmp_path / "t", **MARKED, **{"file.format": file_format, "read.batch-size": "3"})
    table.write(orders(*((i, f"v{i}", i) for i in range(10))))
    table.update_columns(values(row=[8, 1], v=["eight", "one"]))
    table.update_columns(values(row=[9], n=pa.array([99], pa.int32())))
    (group,), _ = live(table)
    assert anchor(group) == min(group, key=lambda f: f.max_sequence_number)
    mark(table, anchor(group), [0, 2, 3, 8])
    remaining = {i: (i, "one" if i == 1 else f"v{i}", 99 if i == 9 else i) for i in (1, 4, 5, 6, 7, 9)}
    assert by_id(table) == remaining
    for column, at in (("id", 0), ("v", 1), ("n", 2)):
        assert by_id(table, (column,)) == {row_id: (row[at],) for row_id, row in remaining.items()}
    assert table.to_arrow([]).num_rows == 6
    assert by_id(table, filter="v = 'eight' or n = 99 or v = 'v7'") == {i: remaining[i] for i in (7, 9)}
    assert by_id(table, filter="_ROW_ID >= 3 and _ROW_ID < 8") == {i: remaining[i] for i in (4, 5, 6, 7)}
    assert table.to_arrow(limit=4).num_rows == 4


def test_vector_counts_positions_from_first_row_of_range_in_all_blob_files(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("b", pa.large_binary())])
    options = {**MARKED, "blob-field": "b", "compaction.min.file-num": "2"}
    table = Table.create(str(tmp_path / "t"), Schema(schema, options=options))
    for low in (0, 3):
        rows = pa.table({"id": range(low, low + 3), "b": [b"b%d" % i for i in range(low, low + 3)]}, schema)
        table.write(rows)
    table.delete("id in (1, 3)")
    table.compact(full=True)
    (group,), _ = live(table)
    assert [(f.first_row_id, f.row_count) for f in group] == [(0, 6), (0, 3), (3, 3)]
    expected = {i: (i, b"b%d" % i) for i in (0, 2, 4, 5)}
    assert by_id(table, ("id", "b")) == expected
    assert by_id(table, ("b",)) == {i: row[1:] for i, row in expected.items()}
    assert by_id(table, ("b",), filter="_ROW_ID = 4 or _ROW_ID = 3") == {4: (b"b4",)}
    assert by_id(table, ("b",), filter="_ROW_ID < 2") == {0: (b"b0",)}
    table.update_columns(values(row=[4], b=pa.array([b"new"], pa.large_binary())))
    table.delete("id = 5")
    assert by_id(table, ("b",)) == {0: (b"b0",), 2: (b"b2",), 4: (b"new",)}


def test_among_equally_old_files_the_first_name_has_the_vector(table):
    group = live(table)[0][0]
    tied = tuple(replace(f, max_sequence_number=7) for f in group)
    assert anchor(tied).file_name == anchor(tied[::-1]).file_name == min(f.file_name for f in group)


def test_vector_of_younger_file_is_refused(table):
    younger = live(table)[0][0][0]
    mark(table, younger, [0])
    for act in (
        lambda: table.to_arrow(),
        lambda: table.delete("id = 3"),
        lambda: table.compact(full=True),
        lambda: table.update_columns(values(row=[2], v=["x"])),
    ):
        with pytest.raises(CorruptedError, match=f"file {younger.file_name} has a deletion vector"):
            act()


def test_vector_past_the_end_of_its_file_is_refused(table):
    mark(table, anchor(live(table)[0][0]), [3])
    with pytest.raises(CorruptedError, match="deletes row 3 of 3"):
        table.to_arrow()


# ---- deletes


def test_deleted_rows_leave_all_columns_and_ids_stay(table):
    before, files = by_id(table), files_below(table.path)
    assert deleted(table, "v = 'B' or n = 4") == 2
    assert by_id(table) == {i: row for i, row in before.items() if i not in (1, 3)}
    assert all("bucket" not in name for name in files_below(table.path) - files)
    snapshot = table.snapshot()
    assert deleted(table, "v = 'b' or v = 'B' or id = 2") == 0  # an older value, and a deleted row
    assert table.snapshot() == snapshot
    table.write(orders((6, "f", 6)))
    assert by_id(table)[5] == (6, "f", 6)
    assert deleted(table, "n <= 3") == 2
    assert by_id(table) == {4: (5, "e", 5), 5: (6, "f", 6)}
    assert by_id(at(table, 3)) == before
    assert deleted(table, "id > 0") == 2
    assert by_id(table) == {}
    table.compact(full=True)
    table.write(orders((7, "g", 7)))
    assert by_id(table) == {6: (7, "g", 7)}


def test_partition_is_deleted_whole(tmp_path):
    schema = pa.schema([("p", pa.string()), ("k", pa.int64())])
    table = Table.create(str(tmp_path / "t"), Schema(schema, partition_keys=["p"], options=MARKED))
    table.write(pa.table({"p": ["a", "a", "b", "b"], "k": [1, 2, 3, 4]}, schema))
    ids = {row["k"]: row["_ROW_ID"] for row in table.to_arrow(["k", "_ROW_ID"]).to_pylist()}
    table.update_columns(values(row=[ids[1], ids[3]], k=[10, 30]))
    assert deleted(table, "k = 2 or k = 3 or k = 30") == 2
    assert by_id(table, ("p", "k")) == {ids[1]: ("a", 10), ids[4]: ("b", 4)}
    assert deleted(table, "p = 'a'") == 1
    assert by_id(table, ("p", "k")) == {ids[4]: ("b", 4)}


def test_rows_without_deletion_vectors_are_not_deleted(tmp_path):
    plain = append_table(tmp_path / "t", **{k: v for k, v in MARKED.items() if "deletion" not in k})
    plain.write(orders((1, "a", 1)))
    with pytest.raises(UnsupportedError, match=r"only be deleted with 'deletion-vectors\.enabled' = 'true'"):
        plain.delete("id = 1")


def test_vectors_are_not_materialized(table):
    assert table.maintenance.materialize_deletion_vectors() is None
    table.delete("id = 2")
    with pytest.raises(UnsupportedError, match=r"cannot be materialized.*'data-evolution\.enabled'"):
        table.maintenance.materialize_deletion_vectors()


# ---- replaced columns


def test_columns_of_deleted_rows_are_not_replaced(table):
    table.delete("id = 2")
    files = files_below(table.path)
    with pytest.raises(InvalidInputError, match="no row with _ROW_ID 1"):
        table.update_columns(values(row=[0, 1, 3], v=["x", "y", "z"]))
    assert files_below(table.path) == files
    table.update_columns(values(row=[0, 3], v=["x", "z"]))
    table.update_columns(values(row=[4], id=[50]))
    assert by_id(table) == {0: (1, "x", 1), 2: (3, "c", 3), 3: (4, "z", 4), 4: (50, "e", 5)}


# ---- compaction


def test_compaction_moves_vectors_and_keeps_ids(table):
    table.delete("id = 2 or id = 4")
    rows = by_id(table)
    assert table.compact(full=True) is not None
    (group,), _ = live(table)
    assert [(f.first_row_id, f.row_count) for f in group] == [(0, 5)]
    assert by_id(table) == rows
    assert deleted(table, "v = 'e'") == 1
    assert table.compact(full=True) is None
    table.update_columns(values(row=[2], v=["C"]))
    table.compact(full=True)
    assert by_id(table) == {0: (1, "A", 1), 2: (3, "C", 3)}
    assert table.verify(deep=True)


def test_compaction_divides_vector_among_files(tmp_path):
    table = append_table(tmp_path / "t", **MARKED, **{"target-file-row-num": "4"})
    table.write(orders(*((i, "v", i) for i in range(7))))
    table.update_columns(values(row=list(range(7)), v=[f"w{i}" for i in range(7)]))
    table.delete("id in (1, 3, 4, 6)")
    rows = by_id(table)
    assert rows == {i: (i, f"w{i}", i) for i in (0, 2, 5)}
    table.compact(full=True)
    assert by_id(table) == rows


# ---- others at the same time


def late(monkeypatch, act, between):
    """Run `act`, whose first commit comes after `between`."""
    publish = Publisher.publish

    def publish_late(self, *arguments):
        monkeypatch.setattr(Publisher, "publish", publish)
        between()
        return self.publish(*arguments)

    monkeypatch.setattr(Publisher, "publish", publish_late)
    return act()


@pytest.mark.parametrize(
    ("between", "remaining"),
    [
        (lambda t: t.update_columns(values(row=[1, 2], v=["kept", "B"])), {0: "A", 1: "kept", 3: "d", 4: "e"}),
        (lambda t: t.compact(full=True), {0: "A", 2: "c", 3: "d", 4: "e"}),
        (lambda t: t.delete("id = 1 or id = 4"), {2: "c", 4: "e"}),
        (lambda t: t.overwrite(orders((9, "B", 9), (8, "x", 8))), {6: "x"}),
    ],
    ids=["update", "compaction", "delete", "overwrite"],
)
def test_delete_searches_again_after_other_commits(table, monkeypatch, between, remaining):
    late(monkeypatch, lambda: table.delete("v = 'B'"), lambda: between(table))
    assert {i: v for i, (v,) in by_id(table, ("v",)).items()} == remaining


def test_delete_does_not_wait_for_other_ranges(table, monkeypatch):
    plans, plan = [], deletes._plan
    monkeypatch.setattr(deletes, "_plan", lambda *given: plans.append(given) or plan(*given))
    late(monkeypatch, lambda: table.delete("v = 'B'"), lambda: table.update_columns(values(row=[3], v=["D"])))
    assert len(plans) == 1
    assert {i: v for i, (v,) in by_id(table, ("v",)).items()} == {0: "A", 2: "c", 3: "D", 4: "e"}


def test_columns_of_rows_deleted_in_the_meantime_are_a_conflict(table, monkeypatch):
    table.delete("id = 5")
    with pytest.raises(CommitConflictError, match="another commit deleted some of the rows from id 0"):
        late(monkeypatch, lambda: table.update_columns(values(row=[1], v=["x"])), lambda: table.delete("id = 2"))
    assert {i: v for i, (v,) in by_id(table, ("v",)).items()} == {0: "A", 2: "c", 3: "d"}
    late(monkeypatch, lambda: table.update_columns(values(row=[3], v=["x"])), lambda: table.delete("id = 3"))
    assert {i: v for i, (v,) in by_id(table, ("v",)).items()} == {0: "A", 3: "x"}


@pytest.mark.parametrize("already", [False, True], ids=["first delete", "second delete"])
def test_compaction_that_missed_a_delete_is_left_out(table, already):
    if already:
        table.delete("id = 1")
    (task,) = plan_row_ranges(table.store, PlanRequest(full=True))
    files = files_below(table.path)
    message = run(table.store, task)
    assert len(files_below(table.path) - files) == 1 + already
    table.delete("id = 2")
    rows, files = by_id(table), files_below(table.path) - files_below(table.path).difference(files)
    assert table.committer().compact([message])[0] is None
    assert by_id(table) == rows
    assert 1 not in rows
    assert len([name for name in files_below(table.path) if "/data-" in name]) == 3


# ---- streams and changes


def test_changes_of_columns_and_deletes_in_one_commit(table, monkeypatch):
    """As MERGE commits them. Streams refuse the commit by name."""
    groups, location = live(table)

    def commit(started_from):
        ranges = RowRanges.of(table.store, table.snapshot())
        new = NewValues(np.array([0]), pa.table({"v": ["x"]}))
        message = ranges.replace_columns(table.store, 0, [table.schema.field("v")], new)
        entries = write_vectors(table.store, location.ref, {anchor(groups[1]).file_name: DeletionVector.of([0])})
        message = replace(message, new_indexes=entries)
        return Publisher(table.store).publish_or_delete(commit_messages, [message], started_from=started_from).snapshot

    read = StartedFrom.of(table.snapshot())
    for between, said in (
        (lambda: table.update_columns(values(row=[1], v=["theirs"])), "replaced columns of the rows from id 0"),
        (lambda: table.update_columns(values(row=[4], n=pa.array([7], pa.int32()))), "columns of the rows from id 3"),
    ):
        with pytest.raises(CommitConflictError, match=said):
            late(monkeypatch, partial(commit, read), between)
        read = StartedFrom.of(table.snapshot())
    snapshot = commit(read)
    assert snapshot.commit_kind == "OVERWRITE"
    assert by_id(table) == {0: (1, "x", 1), 1: (2, "theirs", 2), 2: (3, "c", 3), 4: (5, "e", 7)}
    options = {"scan.snapshot-id": str(snapshot.id), "streaming-read-append-overwrite": "true"}
    stream = table.with_options(options).stream()
    with pytest.raises(UnsupportedError, match="updates some columns of existing rows"):
        list(stream.to_batches())


# ---- histories


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.more), pytest.param(3, marks=pytest.mark.more)])
def test_random_histories_agree_with_dictionary(tmp_path, seed):
    rng = random.Random(seed)
    table = append_table(tmp_path / "t", **MARKED, **{"target-file-row-num": "9", "compaction.min.file-num": "2"})
    model, following, history = {}, 0, {}
    for turn in range(rounds(60)):
        step = rng.choice(["write", "v", "n", "both", "delete", "delete range", "compact", "full"])
        if step == "write" or not model:
            count = rng.randint(1, 5)
            table.write(orders(*((turn, f"w{turn}", i) for i in range(count))))
            model |= {following + i: (turn, f"w{turn}", i) for i in range(count)}
            following += count
        elif step in ("compact", "full"):
            table.compact(full=step == "full")
        elif step == "delete":
            chosen = rng.choice(list(model.values()))
            table.delete(f"v = '{chosen[1]}' and n <= {chosen[2]}")
            model = {i: row for i, row in model.items() if row[1] != chosen[1] or row[2] > chosen[2]}
        elif step == "delete range":
            low = rng.randrange(following)
            chosen = {model[i][0] for i in range(low, low + 3) if i in model}
            if chosen:
                table.delete(f"id in ({', '.join(map(str, chosen))}) and n > 0")
            model = {i: row for i, row in model.items() if row[0] not in chosen or row[2] <= 0}
        else:
            rows = sorted(rng.sample(sorted(model), min(len(model), rng.randint(1, 4))))
            text, numbers = [f"{step}{turn}"] * len(rows), pa.array([turn] * len(rows), pa.int32())
            new = {"v": {"v": text}, "n": {"n": numbers}, "both": {"n": numbers, "v": text}}[step]
            table.update_columns(values(row=rows, **new))
            for i in rows:
                key, v, n = model[i]
                model[i] = (key, text[0] if "v" in new else v, turn if "n" in new else n)
        assert by_id(table) == model, (turn, step)
        number, text = rng.randrange(turn + 1), rng.choice(["w", "v", "n", "both"]) + str(rng.randrange(turn + 1))
        for where, ids in (
            (f"v = '{text}'", [i for i, (_, v, _) in model.items() if v == text]),
            (f"v >= '{text}' and n < {number}", [i for i, (_, v, n) in model.items() if v >= text and n < number]),
            (f"n = {number} or id = {number}", [i for i, (key, _, n) in model.items() if number in (key, n)]),
        ):
            assert by_id(table, filter=where) == {i: model[i] for i in ids}, (turn, where)
        history[table.snapshot().id] = model.copy()
        gone = sorted(set(range(following)) - set(model))
        if gone and turn % 5 == 0:
            with pytest.raises(InvalidInputError, match="no row with _ROW_ID"):
                table.update_columns(values(row=[rng.choice(gone)], v=["x"]))
    for snapshot_id, rows in rng.sample(sorted(history.items()), min(len(history), 8)):
        assert by_id(at(table, snapshot_id)) == rows
        wanted = np.array(sorted(rows), np.int64)
        some = set(rng.sample(wanted.tolist(), min(len(wanted), 3)))
        assert by_id(at(table, snapshot_id), filter=f"_ROW_ID in ({', '.join(map(str, some or {-1}))})") == {
            i: rows[i] for i in some
        }
    assert table.verify(deep=True)
