"""The live files of a snapshot as columns, and their sums by bucket and by partition."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from paimon_core.inspect.system_tables.value_text import named_all
from paimon_core.lsm.intervals import ranks
from paimon_core.manifest.data_file import FileSource
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.row.binary_row import decode_rows
from paimon_core.scan.entries import live_in_parts, manifest_metas
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import POSTPONE_BUCKET
from paimon_core.types.selection import Mask, Positions

MOST_FILES = 100_000
"""Above this number of files, manifests are not read: the summary must not keep a notebook waiting."""
_UNKNOWN = -1


@dataclass(frozen=True)
class FileColumns:
    """The live files of a snapshot as columns with one position for each file.

    ``partition``: indexes into ``partitions``; ``created``: wall clock in ms; ``deletes``: stored rows of kind -D and
    -U. -1: unknown.
    """

    partitions: tuple[bytes, ...]
    partition: Positions
    bucket: Positions
    level: Positions
    rows: Positions
    size: Positions
    created: Positions
    deletes: Positions
    sequence: Positions
    compacted: Mask
    names: Sequence[str]
    min_keys: Sequence[bytes]
    max_keys: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def group(self) -> Positions:
        """The number of each file's bucket among `buckets`."""
        return self._grouped[1]

    @cached_property
    def buckets(self) -> tuple[tuple[int, int], ...]:
        """The partition and the number of each bucket that has files."""
        first = self._grouped[0]
        return tuple(zip(self.partition[first].tolist(), self.bucket[first].tolist(), strict=True))

    @cached_property
    def _grouped(self) -> tuple[Positions, Positions]:
        combined = (self.partition << 32) + self.bucket - POSTPONE_BUCKET
        _, first, inverse = np.unique(combined, return_index=True, return_inverse=True)
        return first, inverse.reshape(-1)

    @cached_property
    def ready(self) -> Mask:
        """True for files that reads show; the other files wait in the postponed bucket."""
        ready: Mask = self.bucket != POSTPONE_BUCKET
        return ready

    @cached_property
    def runs(self) -> Positions:
        """The number of sorted runs of each bucket: its files of level 0, plus its higher levels with files."""
        number = len(self.buckets)
        low = np.bincount(self.group[self.level == 0], minlength=number)
        high = np.unique((self.group[self.level > 0] << 8) + self.level[self.level > 0])
        return (low + np.bincount(high >> 8, minlength=number)).astype(np.int64)

    def by_bucket(self, values: Positions | Mask) -> Positions:
        """Return the sum of the files' values for each bucket."""
        return _sums(self.group, values, len(self.buckets))

    def by_partition(self, values: Positions | Mask) -> Positions:
        """Return the sum of the files' values for each partition."""
        return _sums(self.partition, values, len(self.partitions))

    def of_bucket(self, number: int) -> Positions:
        """Return the positions of the files of one bucket; ``number`` is an index into `buckets`."""
        return np.flatnonzero(self.group == number)


def _sums(groups: Positions, values: Positions | Mask, number: int) -> Positions:
    sums: Positions = np.bincount(groups, weights=values.astype(np.float64), minlength=number).astype(np.int64)
    return sums


def number_of_files(store: FileStore, snapshot: Snapshot) -> int:
    """Return the number of live files from the manifest list of a snapshot, without reading a manifest."""
    return sum(meta.num_added_files - meta.num_deleted_files for meta in manifest_metas(store, snapshot))


def live_files(store: FileStore, snapshot: Snapshot | None) -> FileColumns:
    """Return the live files of a snapshot in manifest order; no files if the snapshot is `None`."""
    entries: list[ManifestEntry] = []
    if snapshot is not None:
        entries = [e for part in live_in_parts(store, snapshot, with_stats=False) for e in part]
    files = [entry.file for entry in entries]
    partitions: dict[bytes, int] = {}
    for entry in entries:
        partitions.setdefault(entry.partition, len(partitions))

    def numbers(values: Sequence[int | None]) -> Positions:
        return np.array([_UNKNOWN if value is None else value for value in values], np.int64)

    return FileColumns(
        tuple(partitions),
        numbers([partitions[entry.partition] for entry in entries]),
        numbers([entry.bucket for entry in entries]),
        numbers([file.level for file in files]),
        numbers([file.row_count for file in files]),
        numbers([file.file_size for file in files]),
        numbers([file.creation_time for file in files]),
        numbers([file.delete_row_count for file in files]),
        numbers([file.min_sequence_number for file in files]),
        np.array([file.file_source == FileSource.COMPACT for file in files], np.bool_),
        [file.file_name for file in files],
        [file.min_key for file in files],
        [file.max_key for file in files],
    )


def partition_order(store: FileStore, files: FileColumns) -> Positions:
    """Return the partition numbers, sorted by partition value."""
    if not files.partitions:
        return np.zeros(0, np.int64)
    return np.argsort(ranks(decode_rows(files.partitions, store.schema.partition_arrow)), kind="stable")


def partition_name(store: FileStore, partition: bytes) -> str:
    """Return a partition as ``k1=v1/k2=v2``; an empty text for a table without partitions."""
    return named_all(store, [partition])[0]
