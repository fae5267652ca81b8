"""The search for the snapshot of an earlier attempt."""

import pytest

from paimon_core.commit.find_commit import AlreadyCommitted, CommitSearch, HistoryExpired
from paimon_core.commit.prepared_snapshot import Identity
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.snapshot.snapshots import Snapshots
from tests.support.faulty_io import MemoryIO
from tests.support.manifests import snapshot

OURS = Identity("we", 7)
RERUN = Identity("we", 7, after=1)


def stored(*given: Snapshot) -> tuple[Snapshots, Snapshot]:
    """The snapshots as files, and the newest of them."""
    io = MemoryIO()
    snapshots = Snapshots(io, "memory://t")
    for one in given:
        io.write(snapshots.path(one.id), one.to_json())
    return snapshots, given[-1]


def search(identity=OURS, kind=CommitKind.APPEND, checked_until=0):
    return CommitSearch(identity, kind, checked_until)


def test_commit_is_found_by_user_and_identifier():
    mine = snapshot(2, commit_user="we", commit_identifier=7)
    others = snapshot(1, commit_user="they", commit_identifier=7), snapshot(3, commit_user="we", commit_identifier=8)
    assert search().find(*stored(others[0], mine, others[1])) == mine
    assert search().find(*stored(*others)) is None


def test_compaction_of_commit_is_another_snapshot():
    rows = snapshot(1, commit_user="we", commit_identifier=7)
    compaction = snapshot(2, commit_user="we", commit_identifier=7, commit_kind=CommitKind.COMPACT)
    assert search().find(*stored(rows, compaction)) == rows
    assert search(kind=CommitKind.COMPACT).find(*stored(rows, compaction)) == compaction
    assert search(kind=CommitKind.OVERWRITE).find(*stored(rows, compaction)) == rows


def test_each_call_continues_after_snapshots_that_were_checked():
    mine, next_one = snapshot(1, commit_user="we", commit_identifier=7), snapshot(2)
    actual = search(checked_until=1)
    assert actual.find(*stored(mine, next_one)) is None
    assert actual.checked_until == 2


def test_search_is_skipped_without_candidates():
    mine = snapshot(1, commit_user="we", commit_identifier=7)
    actual = search(checked_until=None)
    assert actual.find(*stored(mine)) is None
    later = snapshot(2, commit_user="we", commit_identifier=7)
    assert actual.find(*stored(mine, later)) == later


def test_empty_table_has_no_commit():
    assert search().find(Snapshots(MemoryIO(), "memory://t"), None) is None


def test_commit_of_earlier_run_has_other_files():
    mine = snapshot(2, commit_user="we", commit_identifier=7)
    found = search(RERUN, checked_until=1)
    with pytest.raises(AlreadyCommitted) as raised:
        found.find(*stored(snapshot(1), mine))
    assert raised.value.snapshot == mine
    own = search(RERUN, checked_until=1)
    own.own_manifest_lists.add(mine.delta_manifest_list)
    assert own.find(*stored(snapshot(1), mine)) == mine


@pytest.mark.parametrize("attempted", [False, True])
def test_expired_snapshots_leave_earlier_run_undecided(attempted):
    found = search(RERUN, checked_until=1)
    found.own_manifest_lists.update(["mine"] if attempted else [])
    with pytest.raises(HistoryExpired) as raised:
        found.find(*stored(snapshot(3), snapshot(4)))
    assert raised.value.attempted == attempted
    assert search(checked_until=1).find(*stored(snapshot(3), snapshot(4))) is None


def test_search_of_many_snapshots_starts_with_listing():
    mine = snapshot(60, commit_user="we", commit_identifier=7)
    actual = search()
    assert actual.find(*stored(mine, snapshot(100))) == mine
    assert actual.checked_until == 100
