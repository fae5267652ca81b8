"""Entries of the index manifest: hash indexes, deletion vectors and others (format 8.1)."""

from dataclasses import dataclass
from typing import Final

from paimon_core.manifest.bucket import InBucket

HASH: Final = "HASH"
HASH_PART: Final = "HASH_PART"
"""New hashes of a bucket, in commit messages only: the committer merges them into the hash index of the bucket."""
DELETION_VECTORS: Final = "DELETION_VECTORS"


@dataclass(frozen=True, slots=True)
class DeletionRange:
    """The range of bytes in an index file that stores the deletion vector of a data file.

    ``cardinality`` is the number of deleted rows; `None`: unknown.
    """

    data_file: str
    offset: int
    length: int
    cardinality: int | None = None


@dataclass(frozen=True, slots=True)
class GlobalIndex:
    """The coverage of a global index: a range of row ids, both ends included, and columns by field id."""

    row_range_start: int
    row_range_end: int
    index_field_id: int
    extra_field_ids: tuple[int, ...] | None = None
    index_meta: bytes | None = None
    source_meta: bytes | None = None


@dataclass(frozen=True, slots=True)
class IndexManifestEntry(InBucket):
    """One index file of a bucket. ``index_type`` is free text: entries of unknown types are copied unchanged."""

    kind: int
    partition: bytes
    bucket: int
    index_type: str
    file_name: str
    file_size: int
    row_count: int
    deletion_ranges: tuple[DeletionRange, ...] | None = None
    external_path: str | None = None
    global_index: GlobalIndex | None = None
