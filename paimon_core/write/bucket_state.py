"""The state of the buckets that a writer adds rows to, read from a snapshot."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from paimon_core.datafile.deletion_vectors import vectors_by_bucket
from paimon_core.errors import InvalidInputError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.bucket_filter import BucketFilter
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, ManifestEntry, merge_entries
from paimon_core.manifest.index_entry import HASH, IndexManifestEntry
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.manifest.prune import prune_manifests
from paimon_core.options.bucket import BUCKET, POSTPONED
from paimon_core.scan.entries import manifest_metas, partitions_predicate
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

_CACHE_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class BucketState:
    """The files of a bucket before a writer adds to it."""

    files: tuple[DataFileMeta, ...] = ()
    vectors: tuple[IndexManifestEntry, ...] = ()
    """The index files with the deletion vectors of the files."""

    @property
    def max_sequence_number(self) -> int:
        """The largest sequence number of a row; -1: an empty bucket."""
        return max((file.max_sequence_number for file in self.files), default=-1)


class Restore:
    """The states of buckets at one snapshot, read on first use.

    Args:
        store: the table to read.
        find: returns the snapshot, or `None` for an empty table. Called once, when the snapshot is first needed.
        with_stats: True to read file statistics too. REQUIRES: True if files may be upgraded, because the new entry of
            an upgraded file repeats its statistics.
        replaced: the snapshot whose rows a job is about to replace; ``find`` then returns `None`. `None`: the job
            replaces no rows.

    Memory: the decoded entries of the requested buckets, and a cache of up to 16 MiB of manifests.
    """

    def __init__(
        self,
        store: FileStore,
        find: Callable[[], Snapshot | None],
        *,
        with_stats: bool = False,
        replaced: Snapshot | None = None,
    ) -> None:
        self._store, self._find, self._with_stats = store, find, with_stats
        self._read_snapshot: tuple[()] | tuple[Snapshot | None] = ()
        self._replaced = replaced
        self._keys: dict[bytes, int] | None = None  # the number of keys of each partition
        self._mean_keys = 0  # of a partition
        self._states: dict[BucketRef, BucketState] = {}
        self._vector_entries: dict[BucketRef, tuple[IndexManifestEntry, ...]] | None = None
        self._loaded: set[BucketRef] = set()
        self._loaded_partitions: set[bytes] = set()
        self._metas: list[ManifestFileMeta] | None = None
        self._totals: dict[bytes, int] = {}
        self._totals_loaded: set[bytes] = set()
        self._filled: dict[bytes, set[int]] = {}
        self._indexes: dict[bytes, dict[int, IndexManifestEntry]] | None = None
        self._cache: dict[str, bytes] = {}  # manifests as stored

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot of the states. `None`: an empty table."""
        if not self._read_snapshot:  # a cached property would hold a lock that all writers of the process share
            self._read_snapshot = (self._find(),)
        return self._read_snapshot[0]

    def load(self, buckets: Collection[BucketRef]) -> None:
        """Read the states of these buckets together, from the manifests that can contain them.

        Raises InvalidInputError if a partition has files written with another number of buckets than the table's.
        """
        new = {at for at in buckets if at not in self._loaded and at.partition not in self._loaded_partitions}
        self._loaded |= new
        if not new or self.snapshot is None:
            return
        self._load(BucketFilter.for_buckets(new))
        if self._store.options.value(BUCKET) > 0:
            self.load_totals({at.partition for at in new if at.bucket >= 0})

    def load_partitions(self, partitions: Collection[bytes]) -> None:
        """Read the states of all buckets of these partitions, as `load` does."""
        new = set(partitions) - self._loaded_partitions
        self._loaded_partitions |= new
        self._totals_loaded |= new
        if new and self.snapshot is not None:
            self._load(BucketFilter(frozenset(new)))

    def load_totals(self, partitions: Collection[bytes]) -> None:
        """Read the number of buckets of these partitions, from the newest manifests that have it.

        Raises InvalidInputError as `load` does.
        """
        missing = set(partitions) - self._totals_loaded - set(self._totals)
        self._totals_loaded |= missing
        if self.snapshot is None:
            return
        newer: list[ManifestEntry] = []
        for meta in reversed(self._manifests_of(BucketFilter(frozenset(missing))) if missing else []):
            newer = [*self._read(meta, BucketFilter(frozenset(missing))), *newer]
            for entry in merge_entries(newer):
                if entry.kind == ADD and entry.bucket >= 0:
                    self._check_buckets(entry)
            missing -= set(self._totals)
            newer = [entry for entry in newer if entry.partition in missing]
            if not missing:
                break

    def _load(self, buckets: BucketFilter) -> None:
        """Read the states of these buckets. REQUIRES: no state of them was read before."""
        files: dict[BucketRef, list[DataFileMeta]] = {}
        entries_by_manifest = parallel_map(lambda meta: self._read(meta, buckets), self._manifests_of(buckets))
        for entry in (
            e for e in merge_entries([e for entries in entries_by_manifest for e in entries]) if e.kind == ADD
        ):
            self._check_buckets(entry)
            files.setdefault(entry.bucket_ref, []).append(entry.file)
            self._filled.setdefault(entry.partition, set()).add(entry.bucket)
        vectors = self._vectors()
        self._states.update(
            (bucket, BucketState(tuple(members), vectors.get(bucket, ()))) for bucket, members in files.items()
        )

    def _manifests_of(self, buckets: BucketFilter) -> list[ManifestFileMeta]:
        """Return the manifests, oldest first, that can hold entries of these buckets."""
        if self._metas is None:
            assert self.snapshot is not None
            self._metas = manifest_metas(self._store, self.snapshot)
        numbers = None if buckets.buckets is None else {bucket for _, bucket in buckets.buckets}
        where = partitions_predicate(self._store, buckets.partitions)
        return prune_manifests(self._metas, where, self._store.schema.partition_fields, buckets=numbers)

    def _read(self, meta: ManifestFileMeta, buckets: BucketFilter) -> list[ManifestEntry]:
        manifests, data = self._store.manifests, self._cache.get(meta.file_name)
        if data is None:
            data = manifests.load(meta.file_name, meta.file_size)
            if sum(map(len, list(self._cache.values()))) + len(data) <= _CACHE_BYTES:
                self._cache[meta.file_name] = data
        return manifests.decode(meta.file_name, data, with_stats=self._with_stats, only=buckets)

    def _vectors(self) -> dict[BucketRef, tuple[IndexManifestEntry, ...]]:
        if self._vector_entries is None:
            self._vector_entries = vectors_by_bucket(self._store, self.snapshot)
        return self._vector_entries

    def hash_indexes(self, partition: bytes) -> dict[int, IndexManifestEntry]:
        """Return the hash index of each bucket of a partition. Buckets without a hash index are absent."""
        return dict(self._live_indexes().get(partition, {}))

    def _live_indexes(self) -> dict[bytes, dict[int, IndexManifestEntry]]:
        if self._indexes is None:
            self._indexes = self._read_indexes(self.snapshot)
        return self._indexes

    def _read_indexes(self, snapshot: Snapshot | None) -> dict[bytes, dict[int, IndexManifestEntry]]:
        name = None if snapshot is None else snapshot.index_manifest
        indexes: dict[bytes, dict[int, IndexManifestEntry]] = {}
        for entry in [] if name is None else self._store.manifests.read_index(name):
            if entry.index_type == HASH:
                indexes.setdefault(entry.partition, {})[entry.bucket] = entry
        return indexes

    def expected_keys(self, partition: bytes) -> int | None:
        """Estimate the number of new keys that one job adds to a partition, from the snapshot's keys.

        For a partition with n keys: ``n // 2``, or n if the job replaces them. For an empty partition: the mean number
        of keys per partition. `None`: no estimate, because the table has no keys and no partition columns.
        """
        if self._keys is None:
            indexes = self._live_indexes() if self._replaced is None else self._read_indexes(self._replaced)
            self._keys = {p: sum(e.row_count for e in entries.values()) for p, entries in indexes.items()}
            self._mean_keys = sum(self._keys.values()) // max(1, len(self._keys))
        keys = self._keys.get(partition, 0)
        if keys:
            return keys if self._replaced else keys // 2
        return self._mean_keys if self._keys or self._store.schema.partition_keys else None

    def total_buckets(self, partition: bytes) -> int | None:
        """Return the number of buckets of a partition. `None`: no buckets. REQUIRES: `load_totals` has read it."""
        return self._totals.get(partition)

    def filled(self, partition: bytes) -> set[int]:
        """Return the buckets of a partition that have files. REQUIRES: the whole partition was loaded."""
        return self._filled.get(partition, set())

    def state(self, bucket: BucketRef) -> BucketState:
        """Return the state of one bucket. REQUIRES: the bucket or its partition was loaded."""
        return self._states.get(bucket, BucketState())

    def _check_buckets(self, entry: ManifestEntry) -> None:
        total = self._totals.get(entry.partition, entry.total_buckets)
        if entry.bucket < 0 or (entry.partition in self._totals and entry.total_buckets == total):
            return
        buckets = self._store.options.value(BUCKET)
        if entry.total_buckets != (total if buckets == POSTPONED else buckets):
            path = self._store.partition_path(entry.partition) or "the table"
            raise InvalidInputError(
                f"cannot write {self._store.root} with {buckets} buckets: {path} "
                f"has files written with {entry.total_buckets} buckets. Overwrite the partition to change its number "
                f"of buckets, or set the option bucket back to {entry.total_buckets}"
            )
        self._totals[entry.partition] = total
