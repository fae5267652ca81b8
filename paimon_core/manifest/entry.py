"""Manifest entries, which add or delete a data file, and the merging of entries (format 4.6)."""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, TypeAlias

import numpy as np

from paimon_core.errors import CorruptedError
from paimon_core.manifest.bucket import BucketLocation, InCountedBucket
from paimon_core.manifest.data_file import DataFileMeta

ADD: Final = 0
DELETE: Final = 1

Identity: TypeAlias = tuple[bytes, int, int, str, tuple[str, ...], bytes | None, str | None]

_BUCKET_OF: Final = attrgetter("partition", "bucket", "total_buckets")
_FILE_OF: Final = attrgetter("file")


@dataclass(frozen=True, slots=True)
class ManifestEntry(InCountedBucket):
    """A line of a manifest: ``file`` was added to, or deleted from, a bucket of the partition (a serialised row).

    ``total_buckets`` is the writer's number of buckets of the partition; -1: dynamic or unaware, -2: postponed.
    """

    kind: int
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def identity(self) -> Identity:
        """The fields that a DELETE shares with the ADD that it cancels. A file has another identity at each level."""
        file = self.file
        return (
            self.partition,
            self.bucket,
            file.level,
            file.file_name,
            file.extra_files,
            file.embedded_index,
            file.external_path,
        )


def files_by_bucket(entries: Iterable[ManifestEntry]) -> dict[BucketLocation, list[DataFileMeta]]:
    """Return the files of each bucket, in their order. Buckets are in the order of their first files."""
    groups: dict[tuple[bytes, int, int], list[DataFileMeta]] = {}
    for bucket, run in itertools.groupby(entries, _BUCKET_OF):  # files of a bucket are often adjacent
        groups.setdefault(bucket, []).extend(map(_FILE_OF, run))
    return {BucketLocation(*bucket): files for bucket, files in groups.items()}


def merge_entries(entries: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    """Return the entries, in order, without each ADD that a later DELETE cancels and without that DELETE.

    A DELETE whose ADD is not among the entries stays: the ADD is in an older manifest. Merging all manifests of a
    snapshot leaves no DELETE. Raises CorruptedError if a file is added twice, or added after a DELETE without an ADD.
    """
    file_names = [entry.file.file_name for entry in entries]
    hashes = np.sort(np.fromiter(map(hash, file_names), np.int64, len(file_names)))  # a set of names would be larger
    if (hashes[1:] != hashes[:-1]).all():  # names are unique in all but the busiest manifests: nothing to cancel
        return list(entries)
    names = Counter(file_names)
    merged: dict[Identity | int, ManifestEntry] = {}
    for position, entry in enumerate(entries):
        if names[entry.file.file_name] == 1:
            merged[position] = entry
            continue
        identity = entry.identity
        if entry.kind == DELETE:
            if identity in merged:
                del merged[identity]
            else:
                merged[identity] = entry
        elif identity in merged:
            raise CorruptedError(_added_again(entry, merged[identity]))
        else:
            merged[identity] = entry
    return list(merged.values())


def _added_again(entry: ManifestEntry, earlier: ManifestEntry) -> str:
    before = "added" if earlier.kind == ADD else "deleted"
    return (
        f"manifests add the file {entry.file.file_name} (bucket {entry.bucket}, level {entry.file.level}, partition "
        f"{entry.partition.hex()}) that they {before} before: two commits have registered the same file"
    )
