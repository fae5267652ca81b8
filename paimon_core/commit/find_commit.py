"""Was it me? Looking for the snapshot that an earlier attempt at a commit has made."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from paimon_core.commit.prepared_snapshot import Identity
from paimon_core.fileio.parallel import parallel_map
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.snapshot.snapshots import Snapshots

_FEW = 16  # snapshots that are asked for one by one, rather than listed


class AlreadyCommitted(Exception):
    """A commit was found done by an earlier run, whose files are others: these here are not part of it."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(f"done by snapshot {snapshot.id}")
        self.snapshot = snapshot


class HistoryExpired(Exception):
    """Of the snapshots that an earlier run can have made some are not there any more, and none of the others is it.

    ``attempted``: whether this run may have published something by now.
    """

    def __init__(self, after: int, attempted: bool) -> None:
        super().__init__(f"snapshots after {after} are gone")
        self.attempted = attempted


@dataclass(slots=True)
class CommitSearch:
    """The search of one commit for its own traces; it goes on where it ended before.

    ``checked_until``: the newest snapshot that needs no look, None where nothing of ours can be there at first.
    """

    identity: Identity
    kind: str
    checked_until: int | None
    own_manifest_lists: set[str] = field(default_factory=set)  # manifest lists of this run's attempts
    some_expired: bool = False  # snapshots that could have been ours had expired before they were looked at

    def find(self, snapshots: Snapshots, latest: Snapshot | None) -> Snapshot | None:
        """The snapshot that made this commit, if one up to ``latest`` did.

        Where earlier runs can have made it, with files of their own, one of theirs raises AlreadyCommitted, and
        HistoryExpired says that nobody can tell.
        """
        after, self.checked_until = self.checked_until, 0 if latest is None else latest.id
        if latest is None or after is None or after >= latest.id:
            return None
        seen = 0
        for snapshot in parallel_map(snapshots.find, _ids(snapshots, after, latest.id)):
            if snapshot is None:
                continue
            seen += 1
            if self._is_it(snapshot):
                if self.identity.after is not None and snapshot.delta_manifest_list not in self.own_manifest_lists:
                    raise AlreadyCommitted(snapshot)
                return snapshot
        self.some_expired = self.some_expired or seen < latest.id - after
        if self.identity.after is not None and self.some_expired:
            raise HistoryExpired(after, bool(self.own_manifest_lists))
        return None

    def _is_it(self, snapshot: Snapshot) -> bool:
        """A commit may make two snapshots, of its rows and of their compaction: one of the kind looked for."""
        ours, of = self.identity, (snapshot.commit_user, snapshot.commit_identifier)
        has_compaction = CommitKind.COMPACT in (self.kind, snapshot.commit_kind)
        return of == (ours.user, ours.identifier) and (not has_compaction or snapshot.commit_kind == self.kind)


def _ids(snapshots: Snapshots, after: int, until: int) -> Sequence[int]:
    wanted = range(after + 1, until + 1)
    return wanted if len(wanted) <= _FEW else [i for i in snapshots.ids() if i in wanted]
