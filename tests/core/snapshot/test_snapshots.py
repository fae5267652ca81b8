"""Reads of the snapshot directory, with stale hints and with concurrent expiry and rollback."""

from dataclasses import replace

import pytest

from paimon_core.commit import publisher
from paimon_core.errors import CommitConflictError, CorruptedError, NotFoundError, OutOfRangeError
from paimon_core.snapshot.branches import branch_root, list_branches
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.snapshots import Snapshots
from tests.support.faulty_io import FaultyIO, MemoryIO
from tests.support.tables import append_table, orders, rows_of

ROOT = "memory://t"


def snapshot(number, millis=None, **changes):
    base = Snapshot(
        id=number,
        schema_id=0,
        base_manifest_list="b",
        delta_manifest_list="d",
        commit_user="u",
        commit_identifier=number,
        commit_kind="APPEND",
        time_millis=number * 1000 if millis is None else millis,
    )
    return replace(base, **changes)


def timeline(*snapshots, **hints):
    io = MemoryIO({f"{ROOT}/snapshot/snapshot-{one.id}": one.to_json() for one in snapshots})
    for name, text in hints.items():
        io.write(f"{ROOT}/snapshot/{name}", text)
    return Snapshots(io, ROOT)


class Vanishing(MemoryIO):
    """Loses a file right when it is about to be read."""

    def __init__(self, files, doomed):
        super().__init__(files)
        self.doomed = set(doomed)

    def read(self, path):
        for name in self.doomed if path in self.doomed else ():
            self.files.pop(name, None)
        return super().read(path)


def test_empty_table_has_no_snapshots():
    empty = timeline()
    assert (empty.latest(), empty.earliest(), empty.latest_id(), empty.earliest_id()) == (None, None, None, None)
    assert (empty.ids(), list(empty.all()), empty.at_or_before(5)) == ([], [], None)
    with pytest.raises(OutOfRangeError, match=r"snapshot 1 of memory://t does not exist; the table has no snapshots"):
        empty.get(1)


@pytest.mark.parametrize("hint", [b"5", b"4", b"3", b"1", b"", b"x", b"7", b"99"])
def test_latest_is_right_with_any_hint(hint):
    snapshots = timeline(*map(snapshot, (3, 4, 5)), LATEST=hint)
    assert snapshots.latest().id == snapshots.latest_id() == 5


def test_table_that_has_lost_its_only_snapshot_is_not_empty():
    lost = timeline(LATEST=b"3")
    for call in (lost.latest, lost.latest_id):
        with pytest.raises(OutOfRangeError, match="hint LATEST names snapshot 3"):
            call()


def test_table_that_is_dropped_between_hint_and_listing_is_empty():
    class Dropping(MemoryIO):
        def exists(self, path):
            self.files.clear()
            return False

    assert Snapshots(Dropping(timeline(snapshot(1), LATEST=b"1").io.files), ROOT).latest() is None


def test_latest_by_good_hint_takes_three_calls():
    inner = timeline(*map(snapshot, (3, 4, 5)), LATEST=b"5").io
    io = FaultyIO(inner)
    assert Snapshots(io, ROOT).latest() == snapshot(5)
    assert [verb for verb, _ in io.log] == ["read", "exists", "read"]


def test_latest_survives_rollback_between_listing_and_reading():
    whole = timeline(*map(snapshot, (1, 2, 3)))
    io = Vanishing(whole.io.files, {whole.path(3), whole.path(2)})
    assert Snapshots(io, ROOT).latest().id == 1


def test_earliest_and_all_skip_snapshots_expired_during_call():
    whole = timeline(*map(snapshot, (1, 2, 3, 4)))
    assert Snapshots(Vanishing(whole.io.files, {whole.path(1), whole.path(2)}), ROOT).earliest().id == 3
    gone = Snapshots(Vanishing(whole.io.files, {whole.path(1)}), ROOT)
    assert [one.id for one in gone.all()] == [2, 3, 4]


def test_get_of_missing_snapshot_names_available_range():
    snapshots = timeline(*map(snapshot, (3, 4, 5)))
    assert snapshots.get(4) == snapshot(4)
    for number in (2, 6):
        with pytest.raises(OutOfRangeError, match=f"snapshot {number} of memory://t does not exist; available: 3 to 5"):
            snapshots.get(number)


def test_broken_snapshot_is_corrupted_not_missing():
    snapshots = timeline(snapshot(1), LATEST=b"1")
    snapshots.io.write(snapshots.path(1), b"{")
    with pytest.raises(CorruptedError, match="memory://t/snapshot/snapshot-1"):
        snapshots.latest()


def test_at_or_before_agrees_with_scan():
    times = [10, 20, 20, 30, 55]
    snapshots = timeline(*(snapshot(number, millis) for number, millis in enumerate(times, 4)))
    for moment in range(70):
        expected = max((number for number, millis in enumerate(times, 4) if millis <= moment), default=None)
        actual = snapshots.at_or_before(moment)
        assert (actual.id if actual else None) == expected


def test_at_or_before_searches_again_if_oldest_snapshot_expires():
    whole = timeline(*map(snapshot, range(1, 9)))
    io = Vanishing(whole.io.files, {whole.path(number) for number in range(1, 6)})
    assert Snapshots(io, ROOT).at_or_before(6500).id == 6
    assert Snapshots(Vanishing(whole.io.files, {whole.path(n) for n in range(1, 6)}), ROOT).at_or_before(3000) is None


def test_hints_are_written_as_plain_decimals():
    snapshots = timeline(snapshot(12))
    assert snapshots.write_hint("LATEST", 12)
    assert snapshots.io.files[f"{ROOT}/snapshot/LATEST"] == b"12"


def test_branches_have_their_own_timeline():
    io = MemoryIO()
    assert branch_root("/t", "main") == "/t"
    assert branch_root("/t", "b1") == "/t/branch/branch-b1"
    for name in ("b2", "b1"):
        io.write(f"{branch_root(ROOT, name)}/snapshot/snapshot-1", snapshot(1).to_json())
    io.write(f"{ROOT}/branch/branch-file", b"")
    assert list_branches(io, ROOT) == ["b1", "b2"]
    assert list_branches(MemoryIO(), ROOT) == []
    assert Snapshots(io, branch_root(ROOT, "b1")).latest_id() == 1
    with pytest.raises((NotFoundError, OutOfRangeError)):
        Snapshots(io, ROOT).get(1)


# ---- snapshots that were built on another history


def orphaned(tmp_path):
    """A table with snapshots 1 and 2, and snapshot 3 of a commit that died while others rolled back."""
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    newest = table.write(orders((2, "b", 2)))
    orphan = replace(newest, id=3, delta_manifest_list="orphan", parent_delta_manifest_list="rolled back")
    table.store.io.write(table.store.snapshots.path(3), orphan.to_json())
    return table, newest, orphan


@pytest.mark.parametrize("hint", [None, b"1", b"2", b"3x"])
def test_orphan_is_not_newest_snapshot(tmp_path, hint):
    table, newest, _ = orphaned(tmp_path)
    path = tmp_path / "t" / "snapshot" / "LATEST"
    path.unlink() if hint is None else path.write_bytes(hint)
    assert table.store.snapshots.latest() == newest
    assert table.store.snapshots.latest_id() == 2
    assert [row["id"] for row in rows_of(table.to_arrow())] == [1, 2]


def test_commit_that_orphan_blocks_removes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(publisher, "ORPHAN_SECONDS", 0.0)
    table, _, _ = orphaned(tmp_path)
    result = table.write(orders((3, "c", 3)))
    assert result.id == 3
    assert [row["id"] for row in rows_of(table.to_arrow())] == [1, 2, 3]
    assert table.verify().sound


def test_orphan_is_left_alone_while_its_committer_may_remove_it(tmp_path):
    table, _, orphan = orphaned(tmp_path)
    impatient = table.with_options({"commit.max-retries": "2", "commit.min-retry-wait": "0 ms"})
    with pytest.raises(CommitConflictError, match="lost against other writers"):
        impatient.write(orders((3, "c", 3)))
    assert table.store.snapshots.get(3) == orphan


def test_missing_snapshot_below_newest_is_refused(tmp_path):
    """A rollback is in progress, or the file was lost: either history may be the right one."""
    table, _, _ = orphaned(tmp_path)
    (tmp_path / "t" / "snapshot" / "LATEST").unlink()
    table.store.io.delete(table.store.snapshots.path(2))
    with pytest.raises(OutOfRangeError, match="roll back to snapshot 1, or to 3"):
        table.store.snapshots.latest()


def test_snapshots_of_other_engines_have_no_parent(tmp_path):
    table, newest, _ = orphaned(tmp_path)
    foreign = replace(newest, id=3, delta_manifest_list="java", parent_delta_manifest_list=None)
    table.store.io.write(table.store.snapshots.path(3), foreign.to_json())
    assert table.store.snapshots.latest() == foreign


def test_hint_is_set_back_if_rollback_removed_snapshot(tmp_path):
    table = append_table(tmp_path / "t")
    for number in (1, 2):
        table.write(orders((number, "a", 1)))
    snapshots = table.store.snapshots
    table.store.io.delete(snapshots.path(2))
    snapshots.point_to(2)
    assert (tmp_path / "t" / "snapshot" / "LATEST").read_text() == "1"
    table.store.io.delete(snapshots.path(1))
    snapshots.point_to(1)
    assert not (tmp_path / "t" / "snapshot" / "LATEST").exists()
