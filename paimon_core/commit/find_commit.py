"""The search for the snapshot that an earlier attempt of a commit may have created."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from paimon_core.commit.prepared_snapshot import Identity
from paimon_core.fileio.parallel import parallel_map
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.snapshot.snapshots import Snapshots

_FEW = 16  # up to this number, snapshots are read one by one, without a listing


class AlreadyCommitted(Exception):
    """An earlier run of the commit has created its snapshot, from other files: the files of this run are not in it."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(f"committed by snapshot {snapshot.id}")
        self.snapshot = snapshot


class HistoryExpired(Exception):
    """Snapshots that an earlier run could have created have expired, and no remaining snapshot is from the commit.

    It is therefore unknown if the commit was done. ``attempted``: True if this run may have published a snapshot.
    """

    def __init__(self, after: int, attempted: bool) -> None:
        super().__init__(f"snapshots after {after} have expired")
        self.attempted = attempted


@dataclass(slots=True)
class CommitSearch:
    """The search of one commit for its own snapshot. Each call continues where the previous call ended.

    If a rollback has replaced snapshots that were checked, all are checked again.

    ``checked_until``: the id of the newest snapshot that need not be checked. ``None``: no snapshot that exists at the
    first call can be ours. ``fingerprint``: the fingerprint of this snapshot; ``None``: unknown.
    """

    identity: Identity
    kind: str
    checked_until: int | None
    fingerprint: str | None = None
    own_manifest_lists: set[str] = field(default_factory=set)  # delta manifest lists of this run's attempts
    some_expired: bool = False  # snapshots that could have been ours expired before they were checked

    @staticmethod
    def of(identity: Identity, kind: str, checked_until: int | None) -> "CommitSearch":
        """Return the search for the snapshot of a commit, as the attributes say."""
        is_known = checked_until is not None and checked_until == identity.after
        return CommitSearch(identity, kind, checked_until, identity.after_fingerprint if is_known else None)

    def find(self, snapshots: Snapshots, latest: Snapshot | None) -> Snapshot | None:
        """Return the snapshot of this commit, searched up to ``latest``. ``None``: not committed so far.

        An earlier run may have made the commit from other files (``identity.after``). Raises AlreadyCommitted if its
        snapshot is found, and HistoryExpired if snapshots that could be it have expired.
        """
        after = 0 if self._rolled_back(snapshots, latest) else self.checked_until
        self.checked_until, self.fingerprint = (0, None) if latest is None else (latest.id, latest.fingerprint)
        if latest is None or after is None or after >= latest.id:
            return None
        count = 0
        for snapshot in parallel_map(snapshots.find, _ids(snapshots, after, latest.id)):
            if snapshot is None:
                continue
            count += 1
            if self._matches(snapshot):
                if self.identity.after is not None and snapshot.delta_manifest_list not in self.own_manifest_lists:
                    raise AlreadyCommitted(snapshot)
                return snapshot
        self.some_expired = self.some_expired or count < latest.id - after
        if self.identity.after is not None and self.some_expired:
            raise HistoryExpired(after, bool(self.own_manifest_lists))
        return None

    def _rolled_back(self, snapshots: Snapshots, latest: Snapshot | None) -> bool:
        """Return True if the last checked snapshot has left the history, other than by expiry."""
        after = self.checked_until
        if not after or latest is None:
            return False
        if after > latest.id:
            return True
        now = latest if after == latest.id else snapshots.find(after) if self.fingerprint is not None else None
        return now is not None and self.fingerprint not in (None, now.fingerprint)

    def _matches(self, snapshot: Snapshot) -> bool:
        """Return True if the snapshot is from this commit, and of the kind that is searched for.

        A commit may publish two snapshots: one with its rows, one with their compaction.
        """
        ours, author = self.identity, (snapshot.commit_user, snapshot.commit_identifier)
        has_compaction = CommitKind.COMPACT in (self.kind, snapshot.commit_kind)
        return author == (ours.user, ours.identifier) and (not has_compaction or snapshot.commit_kind == self.kind)


def _ids(snapshots: Snapshots, after: int, until: int) -> Sequence[int]:
    span = range(after + 1, until + 1)
    return span if len(span) <= _FEW else [i for i in snapshots.ids() if i in span]
