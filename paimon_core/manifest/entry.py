"""Manifest entries: a file was added, a file was deleted; and what remains of a sequence of them (format 4.6)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from paimon_core.errors import CorruptedError
from paimon_core.manifest.bucket import BucketLocation, InCountedBucket
from paimon_core.manifest.data_file import DataFileMeta

ADD: Final = 0
DELETE: Final = 1

Identity: TypeAlias = tuple[bytes, int, int, str, tuple[str, ...], bytes | None, str | None]


@dataclass(frozen=True, slots=True)
class ManifestEntry(InCountedBucket):
    """``file`` was added to, or deleted from, a bucket of the partition (a serialised row).

    ``total_buckets`` is the number of buckets the partition had for the writer; -1 dynamic or unaware, -2 postponed.
    """

    kind: int
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def identity(self) -> Identity:
        """What a DELETE must repeat of the ADD it undoes; a file moved to another level has a new identity."""
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
    """Return the files of each bucket, in their order; buckets are in the order of their first file."""
    found: dict[tuple[bytes, int, int], list[DataFileMeta]] = {}
    for entry in entries:  # plain tuples are made faster than named ones, and equal to them
        found.setdefault((entry.partition, entry.bucket, entry.total_buckets), []).append(entry.file)
    return {BucketLocation(*bucket): files for bucket, files in found.items()}


def merge_entries(entries: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    """What remains, in order, when each DELETE cancels the ADD before it.

    A DELETE whose ADD is not among the entries stays, for the ADD is in an older manifest; over all manifests of a
    snapshot none is left. Raises CorruptedError when a file is added twice, or added after its lone DELETE.
    """
    seen = Counter([entry.file.file_name for entry in entries])
    if len(seen) == len(entries):  # names are unique in all but the busiest manifests: nothing to cancel
        return list(entries)
    merged: dict[Identity | int, ManifestEntry] = {}
    for place, entry in enumerate(entries):
        if seen[entry.file.file_name] == 1:
            merged[place] = entry
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
        f"{entry.partition.hex()}) that they have {before} before: two commits have registered the same file"
    )
