"""The text facts of the summary: the kind of table, its numbers, its health, its columns, its options."""

from dataclasses import dataclass, replace

import numpy as np

from paimon_core.datafile.deletion_vectors import vector_entries
from paimon_core.datafile.spec import target_rows, target_size
from paimon_core.errors import hide_secrets
from paimon_core.inspect.advice.advise import advise
from paimon_core.inspect.advice.history_bytes import HistoryBytes
from paimon_core.inspect.advice.report import HINT, SEVERE, WARNING
from paimon_core.inspect.html.file_sums import FileColumns
from paimon_core.inspect.system_tables.value_text import shown_options
from paimon_core.lsm.append_compaction import AppendCompactionPolicy
from paimon_core.lsm.universal import num_levels, stop_trigger
from paimon_core.options import ALL_OPTIONS
from paimon_core.options.bucket import BUCKET
from paimon_core.options.listing import Listed
from paimon_core.options.lsm import COMPACTION_DELETE_RATIO_THRESHOLD, NUM_SORTED_RUN_COMPACTION_TRIGGER
from paimon_core.options.merge import MERGE_ENGINE, RECORD_LEVEL_EXPIRE_TIME
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import MAIN_BRANCH
from paimon_core.types.human_text import count, share, size, wall_clock

MOST_COLUMNS = 100
MOST_OPTIONS = 60
BUCKETS_SECTION, TIMELINE_SECTION, OPTIONS_SECTION = "buckets", "timeline", "options"
"""The sections of the page to which advice and measures link."""
_SECTIONS = {
    **dict.fromkeys(("due-snapshots", "waiting-consumer", "ageless-tag", "many-manifests"), TIMELINE_SECTION),
    **dict.fromkeys(
        ("no-changelog", "never-compacted", "rewriting-deletes", "useless-option", "missing-file-index"),
        OPTIONS_SECTION,
    ),
}
"""The section for a kind of advice; other kinds are about files: `BUCKETS_SECTION`."""
SEVERITY_SYMBOLS = {SEVERE: "act", WARNING: "watch", HINT: "plain"}
"""The style class of the symbol of each severity."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One number in the header of the summary."""

    value: str
    name: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """A health measure.

    Args:
        name: the name of the measure.
        value: the measured number as text.
        note: further numbers or the limit.
        state: good, watch, act, or plain if no option sets a limit.
        section: the section of the page that shows the files of this measure.
    """

    name: str
    value: str
    note: str = ""
    state: str = "plain"
    section: str = BUCKETS_SECTION


@dataclass(frozen=True, slots=True)
class AdviceLine:
    """One piece of advice.

    Args:
        state: the class of its symbol.
        severity: the severity.
        kind: the stable name of the advice.
        scope: the part of the table.
        text: one or two sentences.
        measure: the measure behind the advice.
        command: a shell, SQL or Python line, or empty.
        also: the kinds of less urgent advice with the same command.
        section: the section of the page that the advice is about.
    """

    state: str
    severity: str
    kind: str
    scope: str
    text: str
    measure: str
    command: str
    also: tuple[str, ...]
    section: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the schema."""

    name: str
    type: str
    role: str
    comment: str


@dataclass(frozen=True, slots=True)
class Setting:
    """An option that differs from its default; the default of an unknown option is empty."""

    key: str
    value: str
    default: str


def kind_of(store: FileStore, view: str | None) -> tuple[str, ...]:
    """Return short phrases that characterise the table."""
    keys, parts, options = store.schema.primary_keys, store.schema.partition_keys, store.options
    facts = [f"primary key {', '.join(keys)}" if keys else "append table"]
    if keys:
        facts.append(str(options.value(MERGE_ENGINE)))
    if parts:
        facts.append(f"partitioned by {', '.join(parts)}")
    number = options.value(BUCKET)
    buckets = count(number, "bucket") + (" a partition" if parts else "")
    facts.append(
        buckets if number > 0 else "dynamic buckets" if keys and number == -1 else
        "no buckets" if number == -1 else "buckets chosen later"
    )  # fmt: skip
    if store.traits.deletion_vectors:
        facts.append("deletion vectors")
    if store.traits.changelog_producer != "none":
        facts.append(f"changelog by {store.traits.changelog_producer}")
    if store.traits.data_evolution:
        facts.append("data evolution")
    if store.branch != MAIN_BRANCH:
        facts.append(f"branch {store.branch}")
    if view is not None:
        facts.append(f"view ${view}")
    return tuple(facts)


def tiles_of(
    store: FileStore, snapshot: Snapshot | None, files: FileColumns | None, history: HistoryBytes | None
) -> tuple[Tile, ...]:
    """Return the numbers of the header.

    Args:
        store: the table.
        snapshot: the snapshot; `None` if the table is empty.
        files: its live files; `None` if the files are not read.
        history: the bytes that only history needs; `None`: not measured.
    """
    tiles = [*_rows_tile(store, snapshot, files)]
    if files is not None:
        ready = files.ready
        tiles.append(Tile(size(int(files.size[ready].sum())), "in live files", count(int(ready.sum()), "file")))
    if history is not None and (history.bytes or not history.complete):
        least = "" if history.complete else "at least "
        tiles.append(Tile(f"{least}{size(history.bytes)}", "of history", "old snapshots, tags, branches, orphans"))
    if files is not None:
        if store.schema.partition_keys:
            partitions = len(files.partitions)
            tiles.append(Tile(f"{partitions:,}", "partition" if partitions == 1 else "partitions"))
        if store.schema.primary_keys and store.options.value(BUCKET) <= 0:  # else `kind_of` has the number
            buckets = int((files.by_bucket(files.ready) > 0).sum())
            tiles.append(Tile(f"{buckets:,}", "bucket" if buckets == 1 else "buckets"))
    return tuple(tiles)


def _rows_tile(store: FileStore, snapshot: Snapshot | None, files: FileColumns | None) -> tuple[Tile, ...]:
    """Return the number of rows that a read returns, exactly or at most; no tile if the number is unknown."""
    if files is None or store.traits.data_evolution:
        total = None if snapshot is None else snapshot.total_record_count
        return () if total is None else (Tile(_brief(total), "rows stored", "some may be hidden or merged"),)
    visible, hidden = files.ready, hidden_rows(store, snapshot)
    if store.traits.hides_level_0:
        visible = visible & (files.level > 0)
    rows = int(files.rows[visible].sum()) - (hidden or 0)
    exact, note = hidden is not None and store.options.value(RECORD_LEVEL_EXPIRE_TIME) is None, ""
    if store.traits.keyed:
        single = bool((files.runs[files.by_bucket(files.ready) > 0] <= 1).all())
        marked = store.traits.deletion_vectors and store.traits.hides_level_0  # vectors hide each replaced row
        exact = exact and (single or marked) and bool((files.deletes[visible] == 0).all())
        compacted = int(files.rows[visible & (files.level >= num_levels(store.options) - 1)].sum())
        note = "" if exact or not compacted else f"{compacted:,} on the last level"
    text = _brief(rows) if exact else f"at most {_brief(rows)}"
    return (Tile(text, "row" if rows == 1 else "rows", note),)


def hidden_rows(store: FileStore, snapshot: Snapshot | None) -> int | None:
    """Return the number of rows that deletion vectors hide; `None`: unknown, because a vector has no number of rows."""
    if not store.traits.deletion_vectors:
        return 0
    numbers = [r.cardinality for e in vector_entries(store, snapshot) for r in e.deletion_ranges or ()]
    return None if None in numbers else sum(number or 0 for number in numbers)


def _brief(number: int) -> str:
    """Return a number with about three digits: ``1.25 M``."""
    for limit, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if number >= limit:
            return f"{number / limit:.2f} {unit}"
    return f"{number:,}"


def health_of(store: FileStore, snapshot: Snapshot | None, files: FileColumns) -> tuple[Measure, ...]:
    """Return measures of the files, with the limits that the table's options set."""
    if not len(files):
        return ()
    measures = [*(_of_runs(store, files) if store.traits.keyed else _of_small_files(store, files))]
    stored = int(files.rows[files.ready].sum())
    if store.traits.deletion_vectors:
        deleted = sum(r.cardinality or 0 for e in vector_entries(store, snapshot) for r in e.deletion_ranges or ())
        limit = store.options.value(COMPACTION_DELETE_RATIO_THRESHOLD)
        state = "watch" if deleted > limit * stored else "good"
        measures.append(Measure("rows in deletion vectors", share(deleted, stored), count(deleted, "row"), state))
    waiting = ~files.ready
    if waiting.any():
        rows = count(int(files.rows[waiting].sum()), "row")
        note = f"{rows} in {count(int(waiting.sum()), 'file')}, invisible to reads until a compaction"
        measures.append(Measure("waiting for a bucket", size(int(files.size[waiting].sum())), note, "watch"))
    sizes = np.sort(files.by_bucket(files.size * files.ready))
    sizes = sizes[sizes > 0]
    if len(sizes) > 1:
        middle, largest = int(np.median(sizes)), int(sizes[-1])
        note = f"{size(largest)}; the median has {size(middle)}"
        measures.append(Measure("largest bucket", f"{largest / max(1, middle):.1f} × the median", note))
    return tuple(measures)


def _of_runs(store: FileStore, files: FileColumns) -> list[Measure]:
    options = store.options
    trigger, stop = options.value(NUM_SORTED_RUN_COMPACTION_TRIGGER), stop_trigger(options)
    ready = files.by_bucket(files.ready) > 0
    runs = files.runs[ready]
    if not len(runs):
        return []
    most, due = int(runs.max()), int((runs >= trigger).sum())
    note = f"a compaction is due from {trigger}, writers wait above {stop}"
    state = "act" if most > stop else "watch" if most >= trigger else "good"
    unsorted = (files.level == 0) & files.ready
    rows, stored = int(files.rows[unsorted].sum()), int(files.rows[files.ready].sum())
    in_files = f"{count(rows, 'row')} in {count(int(unsorted.sum()), 'file')}"
    deletes = int(np.maximum(files.deletes, 0)[files.ready].sum())
    deleting = count(deletes, "row of kind -D or -U", "rows of kind -D or -U")
    full = files.created[files.ready & (files.level >= num_levels(options) - 1)]
    last = int(full.max()) if len(full) else -1
    return [
        Measure("sorted runs to merge, at most", count(most), note, state),
        Measure("buckets due for compaction", f"{due:,} of {len(runs):,}", "", "watch" if due else "good"),
        Measure("rows on level 0", share(rows, stored), in_files),
        Measure("rows that delete", share(deletes, stored), deleting),
        Measure("newest file of the last level", wall_clock(last) if last >= 0 else "none", "the last full compaction"),
    ]


def _of_small_files(store: FileStore, files: FileColumns) -> list[Measure]:
    policy = AppendCompactionPolicy.of(store.options, target_size(store), target_rows(store))
    small = (files.size < policy.small_size) & files.ready
    most = int(files.by_bucket(small).max(initial=0))
    note = f"smaller than {size(policy.small_size)}; {count(policy.min_files)} of a bucket are compacted together"
    number = f"{int(small.sum()):,} of {int(files.ready.sum()):,}"
    return [Measure("small files", number, note, "watch" if most >= policy.min_files else "good")]


def advice_of(store: FileStore, snapshot: Snapshot | None) -> tuple[AdviceLine, ...]:
    """Return the advice about the newest snapshot, the most urgent first; no advice about an older snapshot.

    Advice with the command of more urgent advice becomes a part of it: `AdviceLine.also`.
    """
    if snapshot is None or store.snapshots.latest_id() != snapshot.id:
        return ()
    lines: list[AdviceLine] = []
    for advice in advise(store):
        command = hide_secrets(advice.command or advice.sql or advice.python or "")
        same = next((at for at, line in enumerate(lines) if command and line.command == command), None)
        if same is not None:
            lines[same] = replace(lines[same], also=tuple(dict.fromkeys((*lines[same].also, advice.kind))))
            continue
        line = AdviceLine(
            SEVERITY_SYMBOLS[advice.severity],
            advice.severity,
            advice.kind,
            str(advice.scope),
            hide_secrets(advice.text),
            str(advice.measure),
            command,
            (),
            _SECTIONS.get(advice.kind, BUCKETS_SECTION),
        )
        lines.append(line)
    return tuple(lines)


def columns_of(store: FileStore) -> tuple[Column, ...]:
    """Return the first columns of the schema."""
    roles = (("primary key", store.schema.primary_keys), ("partition", store.schema.partition_keys))
    return tuple(
        Column(f.name, str(f.type), ", ".join(r for r, names in roles if f.name in names), f.description or "")
        for f in store.schema.fields[:MOST_COLUMNS]
    )


def settings_of(store: FileStore) -> tuple[Setting, ...]:
    """Return the options that differ from their defaults, by name and without passwords."""
    settings = []
    for key, value in sorted(shown_options(store.options).items()):
        option = ALL_OPTIONS.get(key)
        default = "" if option is None else Listed.of(option).default
        if option is None or value != default:
            settings.append(Setting(key, value, default))
    return tuple(settings[:MOST_OPTIONS])
