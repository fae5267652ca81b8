"""The facts that checks use: files, buckets and timeline of one snapshot, each read on first access."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from paimon_core.datafile.spec import target_rows, target_size
from paimon_core.datafile.writer import local_millis
from paimon_core.fileio.parallel import parallel_map
from paimon_core.inspect.advice.buckets import Buckets, Kind, measured
from paimon_core.inspect.advice.live_files import Files, read_files
from paimon_core.inspect.advice.remedies import Partition, Remedies, partition_of
from paimon_core.inspect.advice.report import Scope
from paimon_core.lsm.append_compaction import AppendCompactionPolicy
from paimon_core.lsm.universal import num_levels
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.scan.entries import manifest_metas
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.selection import Mask, Positions
from paimon_core.write.routing import BucketMode, bucket_mode

DAY = 24 * 3_600_000
_RECENT = 50
_MOST_PLACES = 10


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds of the checks that are not table options."""

    worth: int = 16 << 20
    """Smallest number of bytes read more slowly than necessary for which a hint is given."""
    share: float = 0.1
    """Smallest fraction of the table, or of a partition, that these bytes must be."""
    saved_files: int = 10
    """Smallest number of files that a compaction must save."""
    deleted: float = 0.2
    """Fraction of the stored rows that are deleted."""
    bucket_size: int = 512 << 20
    """Recommended bytes of a bucket; Paimon recommends 200 MB to 1 GB."""
    large_bucket: int = 2 << 30
    small_bucket: int = 32 << 20
    many_buckets: int = 16
    skew: float = 4.0
    """Ratio of a bucket's size to the mean size of the other buckets of its partition."""
    skewed_size: int = 1 << 30
    old_days: float = 7.0
    idle_days: float = 1.0
    tag_days: float = 30.0
    tiny_partition: int = 8 << 20
    many_partitions: int = 1000
    manifests: int = 60
    dead_entries: int = 20_000
    statistics_rows: int = 10_000_000
    rewriting_commits: int = 5


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Group:
    """Positions of buckets of one partition, or of the whole table if ``partition`` is `None`."""

    scope: Scope
    buckets: Positions
    partition: Partition | None = None


@dataclass(frozen=True)
class Facts:
    """The facts of a table at a snapshot; ``snapshot``: `None` if the table has no snapshot."""

    store: FileStore
    snapshot: Snapshot | None
    limits: Limits = DEFAULT_LIMITS

    @cached_property
    def now(self) -> int:
        """The current time (epoch ms)."""
        return self.store.now()

    @cached_property
    def clock(self) -> int:
        """The current time as files store it: local wall clock (ms)."""
        return local_millis(self.now)

    @cached_property
    def mode(self) -> BucketMode:
        """The bucket mode of the table."""
        return bucket_mode(self.store.schema)

    @cached_property
    def kind(self) -> Kind:
        """The table properties on which the measures of buckets depend."""
        store, traits = self.store, self.store.traits
        return Kind(
            keyed=traits.keyed,
            levels=num_levels(store.options),
            disjoint=traits.disjoint_levels,
            hidden=traits.hides_level_0,
            ordered=self.mode is not BucketMode.BUCKET_UNAWARE,
            target=target_size(store),
            policy=AppendCompactionPolicy.of(store.options, target_size(store), target_rows(store)),
            by_row_range=traits.data_evolution,
        )

    @cached_property
    def remedies(self) -> Remedies:
        """The remedies for this table."""
        return Remedies(self.store)

    @cached_property
    def files(self) -> Files:
        """The live files."""
        return read_files(self.store, self.snapshot)

    @cached_property
    def buckets(self) -> Buckets:
        """The measures of each bucket."""
        return measured(self.files, self.kind)

    @cached_property
    def manifests(self) -> list[ManifestFileMeta]:
        """The manifests of the snapshot."""
        return [] if self.snapshot is None else manifest_metas(self.store, self.snapshot)

    @cached_property
    def recent(self) -> list[Snapshot]:
        """The last `_RECENT` snapshots, newest last."""
        if self.snapshot is None:
            return []
        newest = self.snapshot.id
        snapshots = parallel_map(self.store.snapshots.find, range(max(1, newest - _RECENT + 1), newest + 1))
        return [snapshot for snapshot in snapshots if snapshot is not None]

    @cached_property
    def partition(self) -> Positions:
        """The partition number of each bucket, from 0, in bucket order."""
        keys = [bucket.partition for bucket in self.files.buckets]
        starts = [number > 0 and keys[number] != keys[number - 1] for number in range(len(keys))]
        return np.cumsum(np.array(starts, np.int64)) if keys else np.zeros(0, np.int64)

    def by_partition(self, values: Positions) -> Positions:
        """Return the sum of the buckets' values for each partition."""
        sums = np.zeros(int(self.partition[-1]) + 1 if len(self.partition) else 0, np.int64)
        np.add.at(sums, self.partition, values)
        return sums

    def groups(self, mask: Mask) -> Iterator[Group]:
        """Yield the buckets of the mask by partition, or as one group if they are in many partitions."""
        positions = np.flatnonzero(mask)
        if not len(positions):
            return
        partitions = np.unique(self.partition[positions])
        if not self.store.schema.partition_keys or len(partitions) > _MOST_PLACES:
            yield Group(self._scope(None, positions), positions)
            return
        for number in partitions.tolist():
            members = positions[self.partition[positions] == number]
            partition = partition_of(self.store, self.files.buckets[members[0]].partition)
            yield Group(self._scope(partition.name, members), members, partition)

    def _scope(self, partition: str | None, members: Positions) -> Scope:
        single = len(members) == 1 and self.mode is not BucketMode.BUCKET_UNAWARE
        if partition is None and self.store.schema.partition_keys:
            return Scope()
        return Scope(partition, self.files.buckets[members[0]].bucket if single else None)

    def partition_names(self) -> pa.Array:
        """Return the name of the partition of each bucket; null without partitions."""
        keys, buckets = self.store.schema.partition_keys, self.files.buckets
        if not keys or not buckets:
            return pa.nulls(len(buckets), pa.string())
        first = np.flatnonzero(np.r_[True, self.partition[1:] != self.partition[:-1]])
        names = [partition_of(self.store, buckets[i].partition).name for i in first.tolist()]
        return pa.array(names, pa.string()).take(pa.array(self.partition))


def count(number: float, one: str, several: str | None = None) -> str:
    """Return a number with its noun: ``1 file``, ``1,200 files``."""
    return f"{number:,.0f} {one if number == 1 else several or one + 's'}"


def size(number: float) -> str:
    """Return bytes with about three digits: ``1.5 GB``; a GB has 1024 MB."""
    units = ["bytes", "KB", "MB", "GB", "TB"]
    while number >= 1024 and len(units) > 1:
        number /= 1024
        units.pop(0)
    return f"{number:,.0f} {units[0]}" if units[0] == "bytes" or number >= 100 else f"{number:,.1f} {units[0]}"


def percent(part: float, whole: float) -> float:
    """Return a part in percent of a whole; 0 if the whole is 0."""
    return 100.0 * part / whole if whole else 0.0
