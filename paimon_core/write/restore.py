"""What the buckets of a table already hold, read once for the buckets a writer meets."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

from paimon_core.datafile.deletions import by_bucket, vector_entries
from paimon_core.errors import InvalidInputError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, ManifestEntry, merge_entries
from paimon_core.manifest.index_entry import HASH, IndexManifestEntry
from paimon_core.manifest.manifests import ManifestFileMeta
from paimon_core.manifest.prune import keep
from paimon_core.options.bucket import BUCKET, POSTPONED
from paimon_core.scan.entries import manifest_metas, partitions_predicate
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore


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
    """Bucket states at one snapshot; partitions are looked up the first time a writer meets them.

    ``find`` gives the snapshot, ``None`` for an empty table; it is called once, when the snapshot is first needed.
    ``with_stats``: files are told with their statistics, as those need who write them into manifests again.
    """

    def __init__(self, store: FileStore, find: Callable[[], Snapshot | None], *, with_stats: bool = False) -> None:
        self._store, self._find, self._with_stats = store, find, with_stats
        self._states: dict[tuple[bytes, int], BucketState] = {}
        self._marks: dict[tuple[bytes, int], tuple[IndexManifestEntry, ...]] | None = None
        self._known: set[bytes] = set()
        self._metas: list[ManifestFileMeta] | None = None
        self._totals: dict[bytes, int] = {}
        self._filled: dict[bytes, set[int]] = {}
        self._indexes: dict[bytes, dict[int, IndexManifestEntry]] | None = None
        self._entries: dict[str, list[ManifestEntry]] = {}  # by manifest, each read once

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The moment these are the states of."""
        return self._find()

    def load(self, partitions: Collection[bytes]) -> None:
        """Read the state of these partitions, all in one go; only manifests that can hold one of them are read.

        Raises InvalidInputError when one holds files of another number of buckets than the table has now.
        """
        new = set(partitions) - self._known
        self._known |= new
        if not new or self.snapshot is None:
            return
        if self._metas is None:
            self._metas = manifest_metas(self._store, self.snapshot)
        metas = keep(self._metas, partitions_predicate(self._store, new), self._store.schema.partition_fields)
        unread = [m for m in metas if m.file_name not in self._entries]
        self._entries.update(zip((m.file_name for m in unread), parallel_map(self._read, unread), strict=True))
        found = [e for m in metas for e in self._entries[m.file_name] if e.partition in new]
        buckets: dict[tuple[bytes, int], list[DataFileMeta]] = {}
        for entry in (e for e in merge_entries(found) if e.kind == ADD):
            self._check_buckets(entry)
            buckets.setdefault((entry.partition, entry.bucket), []).append(entry.file)
            self._filled.setdefault(entry.partition, set()).add(entry.bucket)
        vectors = self._vectors()
        self._states.update((at, BucketState(tuple(files), vectors.get(at, ()))) for at, files in buckets.items())

    def _read(self, meta: ManifestFileMeta) -> list[ManifestEntry]:
        return self._store.manifests.read(meta.file_name, meta.file_size, with_stats=self._with_stats)

    def _vectors(self) -> dict[tuple[bytes, int], tuple[IndexManifestEntry, ...]]:
        if self._marks is None:
            self._marks = by_bucket(vector_entries(self._store, self.snapshot))
        return self._marks

    def hash_indexes(self, partition: bytes) -> dict[int, IndexManifestEntry]:
        """The hash index of every bucket of a partition that has one."""
        if self._indexes is None:
            name = None if self.snapshot is None else self.snapshot.index_manifest
            entries = [] if name is None else self._store.manifests.read_index(name)
            self._indexes = {}
            for entry in entries:
                if entry.index_type == HASH:
                    self._indexes.setdefault(entry.partition, {})[entry.bucket] = entry
        return dict(self._indexes.get(partition, {}))

    def total_buckets(self, partition: bytes) -> int | None:
        """How many buckets the rows of a partition were dealt out to; None where it has none. REQUIRES: loaded."""
        return self._totals.get(partition)

    def filled(self, partition: bytes) -> set[int]:
        """The buckets of a partition that have files. REQUIRES: it was loaded."""
        return self._filled.get(partition, set())

    def state(self, partition: bytes, bucket: int) -> BucketState:
        """The state of one bucket. REQUIRES: its partition was loaded."""
        return self._states.get((partition, bucket), BucketState())

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
