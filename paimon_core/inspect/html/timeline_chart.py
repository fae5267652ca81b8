"""The last snapshots of a table, with the tags, branches and consumers that keep them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from paimon_core.fileio.parallel import parallel_map
from paimon_core.inspect.html.chart import Bar
from paimon_core.inspect.html.snapshot_files import FileChanges, changed_bytes, file_changes
from paimon_core.snapshot.branches import branch_root, list_branches, tag_of_branch
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.snapshot import NO_WATERMARK, CommitKind, Snapshot
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import MAIN_BRANCH
from paimon_core.types.human_text import count, moment, short, size

MOST_SNAPSHOTS = 40
_MOST_NAMES = 12
_MOST_BRANCHES = 50  # branches whose first snapshot is read
_MOST_TAGS = 200  # tags that are read, newest file first
_ABOVE, _UNDER = 52, 26  # pixels above the axis for added rows and below it for removed rows
_GROWTH = 24  # pixels of the charts of all rows and all bytes
_SKEWED = 10_000  # from this ratio of the largest to the smallest change, heights are logarithmic
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
    facts: "SnapshotFacts"


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """The facts of a snapshot as texts; an empty text: unknown."""

    time: str
    rows: str
    total: str
    files: str
    schema: int
    watermark: str
    user: str
    operation: str


@dataclass(frozen=True, slots=True)
class Name:
    """A tag, a branch or a consumer, and the snapshot it names; `None`: unknown."""

    kind: str
    name: str
    snapshot: int | None


@dataclass(frozen=True, slots=True)
class Growth:
    """A chart of a number over the snapshots: a bar for each snapshot with a known number, on a linear scale."""

    title: str
    most: str
    """The largest number as text."""
    bars: tuple[Bar, ...]
    height: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The last snapshots, oldest first, and the names that keep snapshots.

    ``scale``: the meaning of the heights as text; empty if no snapshot changes the number of rows.
    """

    columns: tuple[SnapshotColumn, ...]
    names: tuple[Name, ...]
    more_names: int
    total: int
    baseline: int
    height: int
    first: str
    last: str
    scale: str
    growth: tuple[Growth, ...]

    @property
    def ids(self) -> frozenset[int]:
        """The ids of the snapshots."""
        return frozenset(column.id for column in self.columns)


def timeline_of(store: FileStore, shown: Snapshot | None, live_bytes: int | None) -> Timeline:
    """Return at most `MOST_SNAPSHOTS` snapshots: the newest ones up to and including the snapshot ``shown``.

    Reads the file of each snapshot, its delta manifest list, and the manifests in these lists, newest first, up to
    `snapshot_files.MOST_ENTRIES` entries.

    Args:
        store: the table.
        shown: the snapshot that the summary shows; `None` if the table has no snapshot.
        live_bytes: the bytes of its live files; `None`: unknown.
    """
    ids = store.snapshots.ids()
    until = [snapshot_id for snapshot_id in ids if shown is None or snapshot_id <= shown.id]
    snapshots = [s for s in parallel_map(store.snapshots.find, until[-MOST_SNAPSHOTS:]) if s is not None]
    names, more = _names(store)
    keeping: dict[int, list[str]] = {}
    for name in names:
        if name.snapshot is not None and name.kind not in keeping.setdefault(name.snapshot, []):
            keeping[name.snapshot].append(name.kind)
    changed = list(parallel_map(lambda snapshot: file_changes(store, snapshot), snapshots))
    changes = [abs(s.delta_record_count) for s in snapshots if s.delta_record_count]
    most, skewed = max(changes, default=0), max(changes, default=0) >= _SKEWED * min(changes, default=1)
    removes = any((s.delta_record_count or 0) < 0 for s in snapshots)
    width = 100 / max(len(snapshots), 12)
    columns = tuple(
        _column(
            s,
            (n * width, width),
            lambda rows: _share(rows, most, skewed),
            "" if files is None else str(files),
            tuple(keeping.get(s.id, ())),
            shown is not None and s.id == shown.id,
        )
        for n, (s, files) in enumerate(zip(snapshots, changed, strict=True))
    )
    times = [moment(s.time_millis) for s in snapshots] or [""]
    height = _ABOVE + (4 + _UNDER if removes else 9)
    largest = max(snapshots, key=lambda s: abs(s.delta_record_count or 0), default=None)
    scale = ""
    if largest is not None and largest.delta_record_count:
        scale = f"largest change: {largest.delta_record_count:+,} rows" + (", logarithmic heights" if skewed else "")
    return Timeline(
        columns,
        names[:_MOST_NAMES],
        more,
        len(ids),
        _ABOVE + 2,
        height,
        times[0],
        times[-1],
        scale,
        _growth(store, snapshots, changed, live_bytes, width),
    )


def _share(rows: int, most: int, skewed: bool) -> float:
    """Return the height of a number of rows as a fraction of the largest height."""
    return math.log1p(rows) / math.log1p(most) if skewed else math.sqrt(rows / most)


def _growth(
    store: FileStore,
    snapshots: Sequence[Snapshot],
    changed: Sequence[FileChanges | None],
    live_bytes: int | None,
    width: float,
) -> tuple[Growth, ...]:
    """Return the charts of all rows and of all bytes; a number that is unknown has no bar."""
    if len(snapshots) < 2:
        return ()
    rows = [snapshot.total_record_count for snapshot in snapshots]
    totals = _bytes(store, snapshots, changed, live_bytes)
    charts = (
        _chart("rows stored", snapshots, rows, width, lambda number: f"{number:,}"),
        _chart("bytes in live files", snapshots, totals, width, size),
    )
    return tuple(chart for chart in charts if chart.bars)


def _chart(
    title: str, snapshots: Sequence[Snapshot], values: Sequence[int | None], width: float, text: Callable[[int], str]
) -> Growth:
    most = max((value for value in values if value is not None), default=0)
    bars = []
    for number, (snapshot, value) in enumerate(zip(snapshots, values, strict=True)):
        if value is not None and value >= 0 and most:
            height = round(_GROWTH * value / most, 1)
            lines = (f"snapshot {snapshot.id}: {text(value)}",)
            bars.append(
                Bar("growth", round(number * width, 2), round(width, 2), round(_GROWTH - height, 1), height, lines)
            )
    return Growth(title, text(most), tuple(bars), _GROWTH)


def _bytes(
    store: FileStore, snapshots: Sequence[Snapshot], changed: Sequence[FileChanges | None], live_bytes: int | None
) -> list[int | None]:
    """Return the bytes of the live files of each snapshot: the last known bytes minus the changes after it."""
    totals: list[int | None] = [None] * len(snapshots)
    if live_bytes is None:
        return totals
    totals[-1] = total = live_bytes
    net = changed_bytes(store, changed)
    for at in range(len(snapshots) - 1, 0, -1):
        change = net[at]
        if change is None or snapshots[at].id != snapshots[at - 1].id + 1:
            break
        total -= change
        totals[at - 1] = total
    return totals


def _column(
    snapshot: Snapshot,
    span: tuple[float, float],
    share: Callable[[int], float],
    files: str,
    names: tuple[str, ...],
    shown: bool,
) -> SnapshotColumn:
    """Return the bar of a snapshot.

    Args:
        snapshot: the snapshot.
        span: its left edge and its width, in percent.
        share: returns the height of a number of rows as a fraction of the largest height.
        files: the changed files as text.
        names: the kinds of names that keep the snapshot.
        shown: True for the snapshot that the summary shows.
    """
    delta, (x, width) = snapshot.delta_record_count or 0, span
    height = max(3.0, round(share(abs(delta)) * (_ABOVE if delta > 0 else _UNDER), 1)) if delta else 0
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
        _facts(snapshot, files),
    )


def _facts(snapshot: Snapshot, files: str) -> SnapshotFacts:
    delta, total, watermark = snapshot.delta_record_count, snapshot.total_record_count, snapshot.watermark
    return SnapshotFacts(
        moment(snapshot.time_millis),
        "" if delta is None else f"{delta:+,}",
        "" if total is None else f"{total:,}",
        files,
        snapshot.schema_id,
        "" if watermark in (None, NO_WATERMARK) else moment(watermark),
        short(snapshot.commit_user, 80),
        short(snapshot.operation or "", 80),
    )


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
