"""The files to compare for the difference of two snapshots (behaviour 9.3)."""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from paimon_core.datafile.deletion_vectors import stored_vectors, vector_entries
from paimon_core.deletion.vector_files import StoredVector
from paimon_core.errors import UnsupportedError
from paimon_core.lsm.intervals import sections
from paimon_core.manifest.bucket import BucketLocation, BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.predicate.expr import Predicate
from paimon_core.scan.change_units import ChangeUnit, RowSource
from paimon_core.scan.entries import live_entries
from paimon_core.scan.read_rules import check_same_rules
from paimon_core.scan.split import DataSplit
from paimon_core.scan.split_plan import Packing
from paimon_core.scan.table_scan import TableScan, snapshot_splits
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore


@dataclass(frozen=True, slots=True)
class ComparedSplits:
    """Splits of an older and of a newer snapshot, whose rows are compared."""

    before: tuple[DataSplit, ...]
    after: tuple[DataSplit, ...]

    @property
    def files(self) -> tuple[DataFileMeta, ...]:
        """The files of both sides; a file on both sides is listed twice, because it is read twice."""
        return tuple(file for split in (*self.before, *self.after) for file in split.files)

    @property
    def row_count(self) -> int:
        """Return the number of stored rows; there may be fewer differences."""
        return sum(split.row_count for split in (*self.before, *self.after))

    @property
    def size(self) -> int:
        """Return the bytes of the files."""
        return sum(split.size for split in (*self.before, *self.after))


@dataclass(frozen=True, slots=True)
class DiffSplit(ComparedSplits):
    """Buckets of a table with a primary key at two snapshots; on each side they hold all rows of their keys.

    Files that are equal on both sides may be left out.
    """


def compared_buckets(
    store: FileStore,
    before: Snapshot | None,
    after: Snapshot | None,
    partition: Predicate | None = None,
    buckets: Collection[BucketRef] | None = None,
) -> list[DiffSplit]:
    """Return the splits that compare two snapshots of a table with a primary key; `None`: a table without rows.

    The rows are the rows that batch reads of the snapshots show. If keys cannot have moved between buckets, each bucket
    is compared by itself.

    Args:
        store: the table.
        before: the older snapshot.
        after: the newer snapshot.
        partition: a bound predicate on partition columns, which selects partitions; `None`: all.
        buckets: the buckets in which the snapshots may differ; `None`: all.
    """
    sides = [visible_buckets(store, snapshot, partition, buckets) for snapshot in (before, after)]
    counts: dict[bytes, set[int]] = {}
    for bucket in itertools.chain(*sides):
        counts.setdefault(bucket.partition, set()).add(bucket.total_buckets)
    groups: dict[object, tuple[list[BucketLocation], list[BucketLocation]]] = {}
    for number, side in enumerate(sides):
        for bucket in side:
            rescaled = len(counts[bucket.partition]) > 1
            groups.setdefault(_unit(store, bucket, rescaled=rescaled), ([], []))[number].append(bucket)
    splits = (_compared(store, sides, *buckets) for buckets in groups.values())
    return [split for split in splits if split.before or split.after]


def added_files(
    store: FileStore, before: Snapshot | None, after: Snapshot | None, partition: Predicate | None = None
) -> list[ChangeUnit]:
    """Return the rows of files that snapshot ``after`` of an append table has and the older ``before`` has not.

    Raises UnsupportedError if the newer snapshot lacks rows, or stores them in other files: then the files do not show
    which rows are new.
    """
    if store.traits.data_evolution:
        raise UnsupportedError(
            f"snapshots of {store.root} cannot be compared, because the columns of a row are in several files: compare "
            "the rows of both snapshots with EXCEPT ALL"
        )
    old, new = (visible_buckets(store, snapshot, partition) for snapshot in (before, after))
    old_vectors = {name: vector for side in old.values() for name, vector in side.vectors.items()}
    new_vectors = {name: vector for side in new.values() for name, vector in side.vectors.items()}
    names = [{e.file.file_name for bucket in side.values() for e in bucket.entries} for side in (old, new)]
    if not names[0] <= names[1] or any(_deletes(new_vectors, n) != _deletes(old_vectors, n) for n in names[0]):
        raise UnsupportedError(
            f"rows of {store.root} were deleted or compacted into other files between the two snapshots, so its files "
            "do not show which rows are new: read the written rows, 'incremental-between-scan-mode' = 'delta' with "
            "'incremental-between-tag-to-snapshot', or compare the rows of both snapshots with EXCEPT ALL"
        )
    if after is None:
        return []
    entries = [e for side in new.values() for e in side.entries if e.file.file_name not in names[0]]
    splits = snapshot_splits(store, after, entries, Packing.of(store.options))
    return [ChangeUnit(RowSource.INSERTED, split) for split in splits]


@dataclass(frozen=True, slots=True)
class VisibleBucket:
    """The visible files of one bucket at one snapshot, and their deletion vectors by name."""

    snapshot_id: int
    entries: list[ManifestEntry]
    vectors: Mapping[str, StoredVector]


_Side = Mapping[BucketLocation, VisibleBucket]


def visible_buckets(
    store: FileStore,
    snapshot: Snapshot | None,
    partition: Predicate | None = None,
    buckets: Collection[BucketRef] | None = None,
) -> Mapping[BucketLocation, VisibleBucket]:
    """Return the buckets of a snapshot, with the files that batch reads show; the arguments of `compared_buckets`."""
    if snapshot is None:
        return {}
    check_same_rules(store, snapshot)
    with raise_if_expired(store, snapshot):
        live = live_entries(store, snapshot, partition=partition, buckets=buckets, with_stats=False).live
        vectors = stored_vectors(store, vector_entries(store, snapshot))
    by_bucket: dict[BucketLocation, list[ManifestEntry]] = {}
    for entry in TableScan(store, snapshot).visible(live):
        if buckets is None or BucketRef(entry.partition, entry.bucket) in buckets:
            by_bucket.setdefault(entry.location, []).append(entry)
    return {
        location: VisibleBucket(
            snapshot.id, entries, {n: vectors[n] for n in (e.file.file_name for e in entries) if n in vectors}
        )
        for location, entries in by_bucket.items()
    }


def _unit(store: FileStore, bucket: BucketLocation, *, rescaled: bool) -> object:
    """Return the key of the group of buckets that ``bucket`` is compared with; rows' keys never leave the group."""
    if store.schema.is_cross_partition:
        return None
    return bucket.partition if rescaled or store.schema.bucket == -1 else bucket


def _deletes(vectors: Mapping[str, StoredVector], name: str) -> object:
    """Return a value that changes when rows of a file are deleted: the number of deleted rows, if it is stored."""
    vector = vectors.get(name)
    return vector if vector is None or vector.range.cardinality is None else vector.range.cardinality


def _compared(
    store: FileStore, sides: Sequence[_Side], old: Collection[BucketLocation], new: Collection[BucketLocation]
) -> DiffSplit:
    """Return the split of some buckets, without sections whose files are the same on both sides."""
    dropped: dict[BucketLocation, set[str]] = {}
    for location in set(old) & set(new):
        dropped[location] = _same_on_both_sides(store, *(side[location] for side in sides))
    before, after = (
        tuple(itertools.chain.from_iterable(_split(location, side[location], dropped) for location in locations))
        for side, locations in zip(sides, (old, new), strict=True)
    )
    return DiffSplit(before, after)


def _split(
    location: BucketLocation, bucket: VisibleBucket, dropped: Mapping[BucketLocation, set[str]]
) -> Iterable[DataSplit]:
    """Return the split of a bucket without the dropped files; empty if no file is left."""
    names = dropped.get(location, set())
    files = tuple(e.file for e in bucket.entries if e.file.file_name not in names)
    vectors = tuple(vector for name, vector in bucket.vectors.items() if name not in names)
    return [DataSplit(bucket.snapshot_id, *location, files, False, vectors)] if files else []


def _same_on_both_sides(store: FileStore, before: VisibleBucket, after: VisibleBucket) -> set[str]:
    """Return the names of the files in sections that have the same files, levels and deletion vectors on both sides."""
    old, new = ({(e.file.file_name, e.file.level): e.file for e in bucket.entries} for bucket in (before, after))
    same: set[str] = set()
    files = [*old.values(), *(file for key, file in new.items() if key not in old)]
    for runs in sections(files, store.schema.key_arrow):
        members = [file for run in runs for file in run.files]
        alike = all(
            (f.file_name, f.level) in old
            and (f.file_name, f.level) in new
            and before.vectors.get(f.file_name) == after.vectors.get(f.file_name)
            for f in members
        )
        same |= {f.file_name for f in members} if alike else set()
    return same
