"""The metadata of a manifest in a manifest list (format 4.2)."""

from dataclasses import dataclass

from paimon_core.manifest.stats import SimpleStats


@dataclass(frozen=True, slots=True)
class ManifestFileMeta:
    """The metadata of one manifest, which readers use to prune it.

    ``partition_stats`` covers the partition columns of all entries, including DELETE. Ranges of buckets, levels and row
    ids include both ends; `None`: the writer recorded no range.
    """

    file_name: str
    file_size: int
    num_added_files: int
    num_deleted_files: int
    partition_stats: SimpleStats
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None
