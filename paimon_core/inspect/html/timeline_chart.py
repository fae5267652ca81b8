"""The last snapshots of a table, with the tags, branches and consumers that keep them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from paimon_core.fileio.parallel import parallel_map
from paimon_core.snapshot.branches import branch_root, list_branches, tag_of_branch
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import MAIN_BRANCH
from paimon_core.types.human_text import count, moment, short

MOST_SNAPSHOTS = 40
_MOST_NAMES = 12
_MOST_BRANCHES = 50  # branches whose first snapshot is read
_MOST_TAGS = 200  # tags that are read, newest file first
_ABOVE, _UNDER = 52, 26  # pixels above the axis for added rows and below it for removed rows
_LETTERS = {CommitKind.APPEND: "A", CommitKind.COMPACT: "C", CommitKind.OVERWRITE: "O", CommitKind.ANALYZE: "S"}
KINDS = (
    ("append", "A", "append"),
    ("compact", "C", "compaction"),
    ("overwrite", "O", "overwrite"),
    ("analyze", "S", "statistics"),
)
"""The style class, letter and name of each kind of commit."""


@dataclass(frozen=True, slots=True)
class SnapshotColumn:
    """A snapshot in the timeline. Horizontal positions are in percent of the width, vertical ones in pixels."""

    id: int
    kind: str
    letter: str
    x: float
    width: float
    y: float
    height: float
    lines: tuple[str, ...]
    names: tuple[str, ...]
    """The kinds of names that keep the snapshot: tag, branch, consumer."""
    shown: bool
    """True for the snapshot that the summary shows."""


@dataclass(frozen=True, slots=True)
class Name:
    """A tag, a branch or a consumer, and the snapshot it names; `None`: unknown."""

    kind: str
    name: str
    snapshot: int | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """The last snapshots, oldest first, and the names that keep snapshots."""

    columns: tuple[SnapshotColumn, ...]
    names: tuple[Name, ...]
    more_names: int
    total: int
    baseline: int
    height: int
    first: str
    last: str


def timeline_of(store: FileStore, shown: Snapshot | None) -> Timeline:
    """Return at most `MOST_SNAPSHOTS` snapshots: the newest ones up to and including the snapshot ``shown``.

    Reads the file of each snapshot and its delta manifest list.
    """
    ids = store.snapshots.ids()
    until = [snapshot_id for snapshot_id in ids if shown is None or snapshot_id <= shown.id]
    snapshots = [s for s in parallel_map(store.snapshots.find, until[-MOST_SNAPSHOTS:]) if s is not None]
    names, more = _names(store)
    keeping: dict[int, list[str]] = {}
    for name in names:
        if name.snapshot is not None and name.kind not in keeping.setdefault(name.snapshot, []):
            keeping[name.snapshot].append(name.kind)
    changed = parallel_map(lambda snapshot: _changed_files(store, snapshot), snapshots)
    most = max((abs(s.delta_record_count or 0) for s in snapshots), default=0)
    removes = any((s.delta_record_count or 0) < 0 for s in snapshots)
    width = 100 / max(len(snapshots), 12)
    columns = tuple(
        _column(s, n * width, width, most, files, tuple(keeping.get(s.id, ())), shown is not None and s.id == shown.id)
        for n, (s, files) in enumerate(zip(snapshots, changed, strict=True))
    )
    times = [moment(s.time_millis) for s in snapshots] or [""]
    height = _ABOVE + (4 + _UNDER if removes else 9)
    return Timeline(columns, names[:_MOST_NAMES], more, len(ids), _ABOVE + 2, height, times[0], times[-1])


def _column(
    snapshot: Snapshot, x: float, width: float, most: int, files: str, names: tuple[str, ...], shown: bool
) -> SnapshotColumn:
    delta = snapshot.delta_record_count or 0
    part = math.log1p(abs(delta)) / math.log1p(most) if most else 0
    height = max(3.0, round(part * (_ABOVE if delta > 0 else _UNDER), 1)) if delta else 0
    y = _ABOVE + 2 - height if delta > 0 else _ABOVE + 2
    total = "" if snapshot.total_record_count is None else f", {count(snapshot.total_record_count)} in total"
    lines = [
        f"snapshot {snapshot.id}: {snapshot.commit_kind}",
        moment(snapshot.time_millis),
        f"{delta:+,} rows{total}" if delta else f"no row added or removed{total}",
        files,
        f"by {short(snapshot.commit_user, 80)}",
        short(snapshot.operation or "", 80),
    ]
    return SnapshotColumn(
        snapshot.id,
        snapshot.commit_kind.lower() if snapshot.commit_kind in _LETTERS else "other",
        _LETTERS.get(snapshot.commit_kind, "?"),
        round(x, 2),
        round(width, 2),
        round(y, 1),
        height,
        tuple(line for line in lines if line),
        names,
        shown,
    )


def _changed_files(store: FileStore, snapshot: Snapshot) -> str:
    """Return the numbers of files that a snapshot added and removed; empty if its manifest list cannot be read."""
    try:
        metas = store.manifests.read_list(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
    except Exception:  # an old snapshot's list may be gone without harm to the table
        return ""
    added, removed = sum(m.num_added_files for m in metas), sum(m.num_deleted_files for m in metas)
    return f"+{count(added, 'file')}, -{count(removed, 'file')}"


def _names(store: FileStore) -> tuple[tuple[Name, ...], int]:
    """Return the names that keep snapshots, newest snapshot first, and the number of names left out."""
    written = store.tags.modified()
    newest = sorted(written, key=lambda name: (-written[name], name))[:_MOST_TAGS]
    tags = {tag.name: tag.snapshot.id for tag in parallel_map(store.tags.find, newest) if tag is not None}
    branches = [] if store.branch != MAIN_BRANCH else list_branches(store.io, store.root)
    of_branches = {tag_of_branch(name) for name in branches}
    consumers = Consumers(store.io, store.branch_root).list()
    names = [Name("tag", name, snapshot_id) for name, snapshot_id in tags.items() if name not in of_branches]
    starts = parallel_map(lambda name: tags.get(tag_of_branch(name)) or _start(store, name), branches[:_MOST_BRANCHES])
    names += [Name("branch", name, start) for name, start in zip_longest(branches, starts)]
    names += [Name("consumer", name, following) for name, following in consumers.items()]
    ordered: Sequence[Name] = sorted(names, key=lambda name_: (-(name_.snapshot or 0), name_.kind, name_.name))
    return tuple(ordered), max(0, len(ordered) - _MOST_NAMES) + len(written) - len(newest)


def _start(store: FileStore, branch: str) -> int | None:
    """Return the id of the first snapshot of a branch; `None` if the table does not have this snapshot."""
    first = Snapshots(store.io, branch_root(store.root, branch)).earliest()
    shared = None if first is None else store.snapshots.find(first.id)
    return first.id if first is not None and shared is not None and first.fingerprint == shared.fingerprint else None
