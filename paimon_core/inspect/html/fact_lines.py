"""The text facts of the summary: the kind of table, its numbers, its health, its columns, its options."""

from dataclasses import dataclass

import numpy as np

from paimon_core.datafile.deletion_vectors import vector_entries
from paimon_core.datafile.spec import target_size
from paimon_core.errors import hide_secrets
from paimon_core.inspect.advice.advise import advise
from paimon_core.inspect.advice.report import HINT, SEVERE, WARNING
from paimon_core.inspect.html.file_sums import FileColumns
from paimon_core.inspect.system_tables.value_text import shown_options
from paimon_core.lsm.append_compaction import AppendCompactionPolicy
from paimon_core.lsm.universal import num_levels, stop_trigger
from paimon_core.options import ALL_OPTIONS
from paimon_core.options.bucket import BUCKET
from paimon_core.options.listing import Listed
from paimon_core.options.lsm import COMPACTION_DELETE_RATIO_THRESHOLD, NUM_SORTED_RUN_COMPACTION_TRIGGER
from paimon_core.options.merge import MERGE_ENGINE
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import MAIN_BRANCH
from paimon_core.types.human_text import count, share, size, wall_clock

MOST_COLUMNS = 100
MOST_OPTIONS = 60
_SYMBOLS = {SEVERE: "act", WARNING: "watch", HINT: "plain"}


@dataclass(frozen=True, slots=True)
class Tile:
    """One number in the header of the summary."""

    value: str
    name: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Measure:
    """A health measure. ``state``: good, watch, act, or plain if no option sets a limit."""

    name: str
    value: str
    note: str = ""
    state: str = "plain"


@dataclass(frozen=True, slots=True)
class AdviceLine:
    """One piece of advice. ``state``: the class of its symbol; ``command``: a shell, SQL or Python line, or empty."""

    state: str
    severity: str
    scope: str
    text: str
    measure: str
    command: str


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
    facts.append(
        count(number, "bucket") if number > 0 else "dynamic buckets" if keys and number == -1 else
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


def tiles_of(store: FileStore, snapshot: Snapshot | None, files: FileColumns | None) -> tuple[Tile, ...]:
    """Return the numbers of the header; ``files``: `None` if the files are not read."""
    total = None if snapshot is None else snapshot.total_record_count
    tiles = []
    if total is not None:
        tiles.append(Tile(_brief(total), "rows stored", "before merging" if store.traits.keyed else ""))
    if files is not None:
        ready = files.ready
        tiles.append(Tile(size(int(files.size[ready].sum())), "in data files", count(int(ready.sum()), "file")))
        if store.schema.partition_keys:
            partitions = len(files.partitions)
            tiles.append(Tile(f"{partitions:,}", "partition" if partitions == 1 else "partitions"))
        buckets = int((files.by_bucket(ready) > 0).sum())
        tiles.append(Tile(f"{buckets:,}", "bucket" if buckets == 1 else "buckets"))
    return tuple(tiles)


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
    policy = AppendCompactionPolicy.of(store.options, target_size(store))
    small = (files.size < policy.small_size) & files.ready
    most = int(files.by_bucket(small).max(initial=0))
    note = f"smaller than {size(policy.small_size)}; {count(policy.min_files)} of a bucket are compacted together"
    number = f"{int(small.sum()):,} of {int(files.ready.sum()):,}"
    return [Measure("small files", number, note, "watch" if most >= policy.min_files else "good")]


def advice_of(store: FileStore, snapshot: Snapshot | None) -> tuple[AdviceLine, ...]:
    """Return the advice about the newest snapshot, the most urgent first; no advice about an older snapshot."""
    if snapshot is None or store.snapshots.latest_id() != snapshot.id:
        return ()
    return tuple(
        AdviceLine(
            _SYMBOLS[advice.severity],
            advice.severity,
            str(advice.scope),
            hide_secrets(advice.text),
            str(advice.measure),
            hide_secrets(advice.command or advice.sql or advice.python or ""),
        )
        for advice in advise(store)
    )


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
