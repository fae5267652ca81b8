"""Entries of the index manifest: hash indexes, deletion vectors and others (format 8.1)."""

from dataclasses import dataclass
from typing import Final

from paimon_core.manifest.bucket import InBucket

HASH: Final = "HASH"
HASH_PART: Final = "HASH_PART"
"""Hashes to be added to those of a bucket: a kind for messages only, made a whole index by the committer."""
DELETION_VECTORS: Final = "DELETION_VECTORS"


@dataclass(frozen=True, slots=True)
class DeletionRange:
    """Where in an index file the deletion vector of a data file lies, in bytes, and how many rows it deletes."""

    data_file: str
    offset: int
    length: int
    cardinality: int | None = None


@dataclass(frozen=True, slots=True)
class GlobalIndex:
    """What a global index covers: a range of row ids, both ends included, and columns by field id."""

    row_range_start: int
    row_range_end: int
    index_field_id: int
    extra_field_ids: tuple[int, ...] | None = None
    index_meta: bytes | None = None
    source_meta: bytes | None = None


@dataclass(frozen=True, slots=True)
class IndexManifestEntry(InBucket):
    """One index file of a bucket. ``index_type`` is free text: kinds this engine does not know are carried along."""

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
