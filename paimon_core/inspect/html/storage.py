"""The storage part of the summary: sums by partition, histograms, and the buckets that need attention first."""

from dataclasses import dataclass

import numpy as np

from paimon_core.datafile.spec import target_rows, target_size
from paimon_core.inspect.html.chart import Bar, Histogram, divided, histogram
from paimon_core.inspect.html.file_sums import FileColumns, partition_name, partition_order
from paimon_core.inspect.html.run_profile import RunProfile, run_profile_of
from paimon_core.inspect.html.tree import Tree, tree_of
from paimon_core.lsm.append_compaction import AppendCompactionPolicy
from paimon_core.options.lsm import NUM_SORTED_RUN_COMPACTION_TRIGGER
from paimon_core.store.file_store import FileStore
from paimon_core.types.human_text import count, size
from paimon_core.types.selection import Positions

MOST_PARTITIONS = 10
MOST_BUCKETS = 6
_PROFILE = 100  # bars of the profile of all partitions
_RUNS = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, None))
_MIB = 1 << 20
_SIZES = ((0, 1), (1, 4), (4, 16), (16, 64), (64, 128), (128, 256), (256, None))  # MiB


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition; ``width``: its bytes in percent of the largest partition."""

    name: str
    rows: int
    files: int
    size: str
    width: float


@dataclass(frozen=True, slots=True)
class Partitions:
    """The largest partitions, the number and total size of the other partitions, and a profile of all partitions."""

    rows: tuple[PartitionRow, ...]
    total: int
    more: int
    more_size: str
    profile: tuple[Bar, ...]
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class BucketCard:
    """A bucket with its chart: a merge tree for a table with a primary key, else a run profile."""

    partition: str
    bucket: int
    runs: int
    files: int
    rows: int
    size: str
    due: bool
    """True if the bucket has enough sorted runs, or enough small files, to start a compaction."""
    tree: Tree | None
    run_profile: RunProfile | None


@dataclass(frozen=True, slots=True)
class Storage:
    """The files of a snapshot as the summary shows them."""

    partitions: Partitions | None
    """`None` for a table without partitions."""
    histograms: tuple[Histogram, ...]
    cards: tuple[BucketCard, ...]
    buckets: int
    order: str
    """The order in which the buckets were chosen."""
    first_key: str
    """The first key column, by which files are sorted; empty for a table without a primary key."""


def storage_of(store: FileStore, files: FileColumns) -> Storage:
    """Return the charts and sums of the files. Memory and cost: a few arrays with one number for each file."""
    keyed = store.traits.keyed
    policy = AppendCompactionPolicy.of(store.options, target_size(store), target_rows(store))
    small = files.size < policy.small_size
    trigger = store.options.value(NUM_SORTED_RUN_COMPACTION_TRIGGER)
    number_of_files, sizes = files.by_bucket(files.ready), files.by_bucket(files.size)
    weight = files.runs if keyed else files.by_bucket(small)
    ready = np.flatnonzero(number_of_files > 0)
    buckets = ready[np.lexsort((-sizes[ready], -weight[ready]))][:MOST_BUCKETS]
    limit = trigger if keyed else policy.min_files
    cards = tuple(_card(store, files, int(number), policy, weight[number] >= limit, trigger) for number in buckets)
    histograms = [_histogram_of_sizes(files, policy)]
    if keyed:
        histograms.insert(0, _histogram_of_runs(files.runs[ready], trigger))
    return Storage(
        _partitions(store, files) if store.schema.partition_keys else None,
        tuple(histograms),
        cards,
        len(ready),
        "most sorted runs first" if keyed else "most small files first",
        store.schema.trimmed_primary_keys[0] if keyed else "",
    )


def _card(
    store: FileStore, files: FileColumns, number: int, policy: AppendCompactionPolicy, due: bool, trigger: int
) -> BucketCard:
    partition, bucket = files.buckets[number]
    members = files.of_bucket(number)
    keyed = store.traits.keyed
    return BucketCard(
        partition_name(store, files.partitions[partition]),
        bucket,
        int(files.runs[number]),
        len(members),
        int(files.rows[members].sum()),
        size(int(files.size[members].sum())),
        bool(due),
        tree_of(store, files, members, trigger) if keyed else None,
        None if keyed else run_profile_of(files, members, policy.target_size, policy.small_size),
    )


def _partitions(store: FileStore, files: FileColumns) -> Partitions:
    sizes, rows, number = (files.by_partition(v * files.ready) for v in (files.size, files.rows, files.ready))
    order = partition_order(store, files)
    largest = order[np.argsort(-sizes[order], kind="stable")][:MOST_PARTITIONS]
    most = max(1, int(sizes.max(initial=0)))
    partition_rows = tuple(
        PartitionRow(
            partition_name(store, files.partitions[i]),
            int(rows[i]),
            int(number[i]),
            size(int(sizes[i])),
            round(100 * int(sizes[i]) / most, 1),
        )
        for i in sorted(largest.tolist(), key=order.tolist().index)
    )
    profile: tuple[Bar, ...] = ()
    if len(order) > MOST_PARTITIONS:
        profile = _profile(store, files, order, sizes)
    ends = [partition_name(store, files.partitions[i]) for i in (order[0], order[-1])] if len(order) else ["", ""]
    other_bytes = int(sizes.sum()) - int(sizes[largest].sum())
    return Partitions(
        partition_rows, len(order), len(order) - len(largest), size(other_bytes), profile, ends[0], ends[1]
    )


def _profile(store: FileStore, files: FileColumns, order: Positions, sizes: Positions) -> tuple[Bar, ...]:
    """Return bars of the partition sizes, sorted by partition value; adjacent partitions share a bar of their mean."""
    parts = divided(order, _PROFILE)
    means = [float(sizes[part].mean()) for part in parts]
    top = max(1.0, *means)
    bars = []
    for i, (part, mean) in enumerate(zip(parts, means, strict=True)):
        height = round(max(1.0, 36 * mean / top), 1)
        ends = [partition_name(store, files.partitions[number]) for number in dict.fromkeys((part[0], part[-1]))]
        total = size(int(sizes[part].sum()))
        note = total if len(part) == 1 else f"{count(len(part), 'partition')}, {total}"
        width = 100 / len(parts)
        bars.append(Bar("profile", round(i * width, 2), round(width, 2), round(36 - height, 1), height, (*ends, note)))
    return tuple(bars)


def _histogram_of_runs(runs: Positions, trigger: int) -> Histogram:
    names = [str(low) if low == high else f"{low}+" if high is None else f"{low}-{high}" for low, high in _RUNS]
    numbers = [int(((runs >= low) & (runs <= (high or np.iinfo(np.int64).max))).sum()) for low, high in _RUNS]
    above = [low >= trigger for low, _ in _RUNS]
    return histogram("Buckets by sorted runs", names, numbers, above, f"compaction is due from {trigger} runs")


def _histogram_of_sizes(files: FileColumns, policy: AppendCompactionPolicy) -> Histogram:
    sizes = files.size[files.ready]
    names = [f"{low}+" if low else f"< {high}" for low, high in _SIZES]
    bounds = [(low * _MIB, np.iinfo(np.int64).max if high is None else high * _MIB) for low, high in _SIZES]
    numbers = [int(((sizes >= low) & (sizes < high)).sum()) for low, high in bounds]
    small = [high <= policy.small_size for _, high in bounds]
    return histogram("Files by size in MiB", names, numbers, small, f"a full file has {size(policy.target_size)}")
