"""The metadata of a data file in a manifest (format 4.4)."""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from paimon_core.manifest.stats import EMPTY_STATS, SimpleStats


class FileSource:
    """The kind of writer that made a file: a flush or a compaction. Values as stored."""

    APPEND: Final = 0
    COMPACT: Final = 1


class StatsLayout(NamedTuple):
    """The attributes of a file that decide which columns its statistics cover; see `DataFileMeta`."""

    schema_id: int
    value_stats_cols: tuple[str, ...] | None
    write_cols: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class DataFileMeta:
    """The metadata of one data file.

    Keys and statistics stay serialised rows: planning decodes the rows of many files at once. ``creation_time`` is the
    wall clock of the writing machine in milliseconds, as if its zone were UTC. ``value_stats_cols`` names the columns
    of ``value_stats``; `None`: every column of the schema ``schema_id``, or of ``write_cols`` if given.
    """

    file_name: str
    file_size: int
    row_count: int
    min_key: bytes
    max_key: bytes
    key_stats: SimpleStats
    value_stats: SimpleStats
    min_sequence_number: int
    max_sequence_number: int
    schema_id: int
    level: int
    extra_files: tuple[str, ...] = ()
    creation_time: int | None = None
    delete_row_count: int | None = None
    embedded_index: bytes | None = None
    file_source: int | None = None
    value_stats_cols: tuple[str, ...] | None = None
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None
    write_cols_sequences: tuple[int, ...] | None = None

    @property
    def may_delete(self) -> bool:
        """Return True if rows of the file may delete older rows of their keys, or if this is unknown."""
        return self.delete_row_count != 0

    def without_stats(self) -> "DataFileMeta":
        """Return the file without statistics: ``value_stats_cols`` is empty."""
        return replace(self, key_stats=EMPTY_STATS, value_stats=EMPTY_STATS, value_stats_cols=())

    def extra_file(self, name: str) -> "DataFileMeta":
        """Return an extra file, such as an index, as a separate file in the same directory."""
        directory = None if self.external_path is None else self.external_path.rpartition("/")[0]
        path = None if directory is None else f"{directory}/{name}"
        return replace(self, file_name=name, extra_files=(), embedded_index=None, external_path=path)
