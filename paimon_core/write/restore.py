"""What the buckets of a table already hold, looked up for the buckets that a writer meets."""

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

_KEPT_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class BucketState:
    """What a bucket holds before this writer adds to it."""

    files: tuple[DataFileMeta, ...] = ()
    vectors: tuple[IndexManifestEntry, ...] = ()
    """Index files that say which of their rows are deleted."""

    @property
    def max_sequence_number(self) -> int:
        """The newest row's; -1 in an empty bucket."""
        return max((file.max_sequence_number for file in self.files), default=-1)


class Restore:
    """Bucket states at one snapshot; a bucket is looked up the first time a writer meets it.

    ``find`` gives the snapshot, ``None`` for an empty table; it is called once, when the snapshot is first needed.
    ``with_stats``: files are told with their statistics, as those need who write them into manifests again.
    ``replaced``: what the table holds where a job is about to replace it; ``find`` gives ``None`` then.
    Of manifests only the entries asked for are decoded and held, and up to 16 MiB of the files' bytes, which later
    questions are answered from.
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
        self._found: tuple[()] | tuple[Snapshot | None] = ()
        self._replaced = replaced
        self._keys: dict[bytes, int] | None = None  # in each partition
        self._typical = 0  # keys in a partition, on average
        self._states: dict[BucketRef, BucketState] = {}
        self._marks: dict[BucketRef, tuple[IndexManifestEntry, ...]] | None = None
        self._known: set[BucketRef] = set()
        self._whole: set[bytes] = set()
        self._metas: list[ManifestFileMeta] | None = None
        self._totals: dict[bytes, int] = {}
        self._counted: set[bytes] = set()
        self._filled: dict[bytes, set[int]] = {}
        self._indexes: dict[bytes, dict[int, IndexManifestEntry]] | None = None
        self._kept: dict[str, bytes] = {}  # manifests as stored

    @property
    def snapshot(self) -> Snapshot | None:
        """The moment these are the states of."""
        if not self._found:  # a cached property would hold a lock that all writers of the process share
            self._found = (self._find(),)
        return self._found[0]

    def load(self, buckets: Collection[BucketRef]) -> None:
        """Read the state of these buckets, all in one go; only manifests that can hold one of them are read.

        Raises InvalidInputError where the partition of one holds files of another number of buckets than the table
        has now.
        """
        new = {at for at in buckets if at not in self._known and at.partition not in self._whole}
        self._known |= new
        if not new or self.snapshot is None:
            return
        self._take(BucketFilter.for_buckets(new))
        if self._store.options.value(BUCKET) > 0:
            self.load_totals({at.partition for at in new if at.bucket >= 0})

    def load_partitions(self, partitions: Collection[bytes]) -> None:
        """Read the state of all buckets of these partitions, as :meth:`load` does."""
        new = set(partitions) - self._whole
        self._whole |= new
        self._counted |= new
        if new and self.snapshot is not None:
            self._take(BucketFilter(frozenset(new)))

    def load_totals(self, partitions: Collection[bytes]) -> None:
        """Find out how many buckets these partitions have, from the newest manifests that tell.

        Raises InvalidInputError as :meth:`load`.
        """
        left = set(partitions) - self._counted - set(self._totals)
        self._counted |= left
        if self.snapshot is None:
            return
        newer: list[ManifestEntry] = []
        for meta in reversed(self._may_hold(BucketFilter(frozenset(left))) if left else []):
            newer = [*self._read(meta, BucketFilter(frozenset(left))), *newer]
            for entry in merge_entries(newer):
                if entry.kind == ADD and entry.bucket >= 0:
                    self._check_buckets(entry)
            left -= set(self._totals)
            newer = [entry for entry in newer if entry.partition in left]
            if not left:
                break

    def _take(self, places: BucketFilter) -> None:
        """Read the entries of places that nothing is known of yet."""
        buckets: dict[BucketRef, list[DataFileMeta]] = {}
        found = parallel_map(lambda meta: self._read(meta, places), self._may_hold(places))
        for entry in (e for e in merge_entries([e for entries in found for e in entries]) if e.kind == ADD):
            self._check_buckets(entry)
            buckets.setdefault(entry.bucket_ref, []).append(entry.file)
            self._filled.setdefault(entry.partition, set()).add(entry.bucket)
        vectors = self._vectors()
        self._states.update((at, BucketState(tuple(files), vectors.get(at, ()))) for at, files in buckets.items())

    def _may_hold(self, places: BucketFilter) -> list[ManifestFileMeta]:
        """Return the manifests, oldest first, that can hold entries of these places."""
        if self._metas is None:
            assert self.snapshot is not None
            self._metas = manifest_metas(self._store, self.snapshot)
        numbers = None if places.buckets is None else {bucket for _, bucket in places.buckets}
        where = partitions_predicate(self._store, places.partitions)
        return prune_manifests(self._metas, where, self._store.schema.partition_fields, buckets=numbers)

    def _read(self, meta: ManifestFileMeta, places: BucketFilter) -> list[ManifestEntry]:
        manifests, data = self._store.manifests, self._kept.get(meta.file_name)
        if data is None:
            data = manifests.load(meta.file_name, meta.file_size)
            if sum(map(len, list(self._kept.values()))) + len(data) <= _KEPT_BYTES:
                self._kept[meta.file_name] = data
        return manifests.decode(meta.file_name, data, with_stats=self._with_stats, only=places)

    def _vectors(self) -> dict[BucketRef, tuple[IndexManifestEntry, ...]]:
        if self._marks is None:
            self._marks = vectors_by_bucket(self._store, self.snapshot)
        return self._marks

    def hash_indexes(self, partition: bytes) -> dict[int, IndexManifestEntry]:
        """Return the hash index of each bucket of a partition; buckets without one are absent."""
        return dict(self._live_indexes().get(partition, {}))

    def _live_indexes(self) -> dict[bytes, dict[int, IndexManifestEntry]]:
        if self._indexes is None:
            self._indexes = self._read_indexes(self.snapshot)
        return self._indexes

    def _read_indexes(self, snapshot: Snapshot | None) -> dict[bytes, dict[int, IndexManifestEntry]]:
        name = None if snapshot is None else snapshot.index_manifest
        found: dict[bytes, dict[int, IndexManifestEntry]] = {}
        for entry in [] if name is None else self._store.manifests.read_index(name):
            if entry.index_type == HASH:
                found.setdefault(entry.partition, {})[entry.bucket] = entry
        return found

    def expected_keys(self, partition: bytes) -> int | None:
        """Return the number of new keys that one job may bring to a partition, judged by the keys of the snapshot.

        A partition that has keys gets half as many, or as many where it is replaced; another one what the partitions
        have on average. ``None``: the table has no keys and no partitions, so nothing says how large a job may be.
        """
        if self._keys is None:
            indexes = self._live_indexes() if self._replaced is None else self._read_indexes(self._replaced)
            self._keys = {p: sum(e.row_count for e in entries.values()) for p, entries in indexes.items()}
            self._typical = sum(self._keys.values()) // max(1, len(self._keys))
        held = self._keys.get(partition, 0)
        if held:
            return held if self._replaced else held // 2
        return self._typical if self._keys or self._store.schema.partition_keys else None

    def total_buckets(self, partition: bytes) -> int | None:
        """Return how many buckets a partition has; None where it has none. REQUIRES: `load_totals` was asked for it."""
        return self._totals.get(partition)

    def filled(self, partition: bytes) -> set[int]:
        """Return the buckets of a partition that have files. REQUIRES: the whole partition was loaded."""
        return self._filled.get(partition, set())

    def state(self, bucket: BucketRef) -> BucketState:
        """Return the state of one bucket. REQUIRES: it was loaded, or its partition."""
        return self._states.get(bucket, BucketState())

    def _check_buckets(self, entry: ManifestEntry) -> None:
        if entry.bucket < 0:
            return
        buckets = self._store.options.value(BUCKET)
        found = self._totals.setdefault(entry.partition, entry.total_buckets)
        if entry.total_buckets != (found if buckets == POSTPONED else buckets):
            place = self._store.partition_path(entry.partition) or "the table"
            raise InvalidInputError(
                f"cannot write {self._store.root} with {buckets} buckets: {place} "
                f"holds files hashed into {entry.total_buckets}. Overwrite the partition to give it the new number, "
                f"or set the option bucket back to {entry.total_buckets}"
            )
