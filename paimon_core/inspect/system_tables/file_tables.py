"""The system tables of data files: ``files`` and ``file_key_ranges``."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from paimon_core.errors import UnsupportedError
from paimon_core.inspect.system_tables.kind import (
    LOCAL_TIME,
    SOME_INT,
    SOME_LONG,
    SOME_TEXT,
    Column,
    Fixed,
    Part,
    Request,
    SystemTableKind,
    batch_of,
    columns,
)
from paimon_core.inspect.system_tables.value_text import (
    braced,
    braced_columns,
    braced_predicate,
    bracketed,
    object_text,
)
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.stats import SimpleStats, stats_schema
from paimon_core.row.binary_row import decode_rows
from paimon_core.scan.entries import live_in_parts
from paimon_core.scan.file_filter import files_of_equal_stats, stats_fields
from paimon_core.store.file_store import FileStore
from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import BIGINT, STRING, ArrayType, DataField

_FILES = columns(
    ("partition", STRING),
    ("bucket", SOME_INT),
    ("file_path", SOME_TEXT),
    ("file_format", SOME_TEXT),
    ("schema_id", SOME_LONG),
    ("level", SOME_INT),
    ("record_count", SOME_LONG),
    ("file_size_in_bytes", SOME_LONG),
    ("min_key", STRING),
    ("max_key", STRING),
    ("null_value_counts", SOME_TEXT),
    ("min_value_stats", SOME_TEXT),
    ("max_value_stats", SOME_TEXT),
    ("min_sequence_number", BIGINT),
    ("max_sequence_number", BIGINT),
    ("creation_time", LOCAL_TIME),
    ("deleteRowCount", BIGINT),
    ("file_source", STRING),
    ("first_row_id", BIGINT),
    ("write_cols", ArrayType(STRING)),
)
_OF_RANGES: Final = {
    *("partition", "bucket", "file_path", "file_format", "schema_id", "level", "record_count", "file_size_in_bytes"),
    *("min_key", "max_key", "first_row_id"),
}
_FILE_KEY_RANGES = columns(*((f.name, f.type) for f in _FILES if f.name in _OF_RANGES))
_STATS: Final = frozenset({"null_value_counts", "min_value_stats", "max_value_stats"})
_NO_KEY: Final = bytes(4)
_SOURCES: Final = {FileSource.APPEND: "APPEND", FileSource.COMPACT: "COMPACT", None: None}
_COMPRESSED: Final = frozenset({"gz", "bz2", "deflate", "snappy", "lz4", "zst", "zstd"})


def files_of(request: Request, *, with_stats: bool = False) -> Iterator[list[ManifestEntry]]:
    """Yield the live files that a filter on ``partition``, ``bucket`` and ``level`` does not exclude."""
    if request.snapshot is None:
        return iter(())
    return live_in_parts(
        request.store,
        request.snapshot,
        partition=braced_predicate(request.store, request.pinned("partition")),
        buckets=request.pinned("bucket"),
        levels=request.pinned("level"),
        with_stats=with_stats,
    )


def _read(fields: Sequence[DataField], request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each live file, except files of postponed buckets, whose rows reads do not show."""
    with_stats, locations = not _STATS.isdisjoint(request.columns), Locations(request.store)
    for entries in files_of(request, with_stats=with_stats):
        for group in files_of_equal_stats([entry for entry in entries if entry.bucket >= 0]):
            yield batch_of(fields, request.columns, _columns(request.store, group, locations))


@dataclass(slots=True)
class Locations:
    """The texts of partitions and the directories of buckets, each computed once."""

    store: FileStore
    _partitions: dict[bytes, str] = field(default_factory=dict)
    _directories: dict[tuple[bytes, int], str] = field(default_factory=dict)

    def partition(self, entry: ManifestEntry) -> str:
        """Return the text of the entry's partition."""
        text = self._partitions.get(entry.partition)
        if text is None:
            text = self._partitions[entry.partition] = braced(self.store, entry.partition)
        return text

    def path(self, entry: ManifestEntry) -> str:
        """Return the path of the entry's file, in the notation of the table's own path."""
        if entry.file.external_path:
            return entry.file.external_path
        bucket = entry.partition, entry.bucket
        directory = self._directories.get(bucket)
        if directory is None:
            directory = self._directories[bucket] = self.store.bucket_path(entry.bucket_ref)
        return f"{directory}/{entry.file.file_name}"


def _columns(store: FileStore, entries: Sequence[ManifestEntry], locations: Locations) -> dict[str, Column]:
    """Return functions that compute the columns. REQUIRES: all files have one schema and equal statistics columns."""
    files = [entry.file for entry in entries]
    stats = _Stats(store, files)
    return {
        "partition": lambda: [locations.partition(entry) for entry in entries],
        "bucket": lambda: [entry.bucket for entry in entries],
        "file_path": lambda: [locations.path(entry) for entry in entries],
        "file_format": lambda: [_format(file.file_name) for file in files],
        "schema_id": lambda: [file.schema_id for file in files],
        "level": lambda: [file.level for file in files],
        "record_count": lambda: [file.row_count for file in files],
        "file_size_in_bytes": lambda: [file.file_size for file in files],
        "min_key": lambda: _keys(store, files[0].schema_id, [file.min_key for file in files]),
        "max_key": lambda: _keys(store, files[0].schema_id, [file.max_key for file in files]),
        "null_value_counts": stats.null_counts,
        "min_value_stats": lambda: stats.bounds(lambda s: s.min_values),
        "max_value_stats": lambda: stats.bounds(lambda s: s.max_values),
        "min_sequence_number": lambda: [file.min_sequence_number for file in files],
        "max_sequence_number": lambda: [file.max_sequence_number for file in files],
        "creation_time": lambda: [file.creation_time for file in files],
        "deleteRowCount": lambda: [file.delete_row_count for file in files],
        "file_source": lambda: [_SOURCES[file.file_source] for file in files],
        "first_row_id": lambda: [file.first_row_id for file in files],
        "write_cols": lambda: [file.write_cols for file in files],
    }


def _format(name: str) -> str:
    """Return the file format from a file name: ``csv`` for ``x.csv.gz``."""
    stem, _, suffix = name.rpartition(".")
    return stem.rpartition(".")[2] if suffix in _COMPRESSED and "." in stem else suffix


def _keys(store: FileStore, schema_id: int, rows: Sequence[bytes]) -> pa.Array:
    """Return serialised keys as texts; null for a file without keys."""
    fields = store.schemas.get(schema_id).key_fields
    has_key = np.array([row[:4] != _NO_KEY for row in rows], bool)
    if not fields or not has_key.any():
        return pa.nulls(len(rows), pa.string())
    schema = store.schemas.get(schema_id).key_arrow
    decoded = decode_rows([row for row, keyed in zip(rows, has_key, strict=True) if keyed], schema)
    texts = bracketed([object_text(decoded.column(i), f.type) for i, f in enumerate(fields)], decoded.num_rows)
    positions = np.where(has_key, np.cumsum(has_key) - 1, 0)
    return texts.take(pa.array(positions, pa.int64(), mask=~has_key))


class _Stats:
    """The statistics of files as texts, for the table's current columns."""

    def __init__(self, store: FileStore, files: Sequence[DataFileMeta]) -> None:
        self._files, self._fields = files, store.schema.fields
        self._then = {f.id: f for f in store.schemas.get(files[0].schema_id).fields}
        stored = stats_fields(store, files[0])
        self._stored = stored if all(_arity(file.value_stats) == len(stored) for file in files) else ()
        self._position = {f.id: i for i, f in enumerate(self._stored)}
        self._counts: list[tuple[int | None, ...]] = []

    def null_counts(self) -> pa.Array:
        """Return the null counts of each file as one text; a column that the file lacks is null in all rows."""
        counts = [file.value_stats.null_counts for file in self._files]
        width = len(self._stored)
        regular = all(len(values) == width for values in counts)
        self._counts = list(zip(*(counts if regular else (_padded(values, width) for values in counts)), strict=True))
        texts = [self._counts_of(f).cast(pa.string()) for f in self._fields]
        return braced_columns([f.name for f in self._fields], texts, len(self._files))

    def _counts_of(self, column: DataField) -> pa.Array:
        at = self._position.get(column.id)
        if at is not None:
            return pa.array(self._counts[at], pa.int64())
        if column.id in self._then:
            return pa.nulls(len(self._files), pa.int64())
        return pa.array([f.row_count for f in self._files], pa.int64())

    def bounds(self, side: Callable[[SimpleStats], bytes]) -> pa.Array:
        """Return the smallest or the largest values of each file as one text."""
        positions = [i for i, f in enumerate(self._stored) if f.id in {now.id for now in self._fields}]
        rows = [side(file.value_stats) for file in self._files]
        decoded = decode_rows(rows, stats_schema(self._stored), positions) if positions else None
        index = {self._stored[i].id: at for at, i in enumerate(positions)}
        texts = []
        for column in self._fields:
            at = index.get(column.id)
            values = None if at is None or decoded is None else decoded.column(at)
            texts.append(_bound_text(values, self._then.get(column.id), column, len(self._files)))
        return braced_columns([f.name for f in self._fields], texts, len(self._files))


def _bound_text(values: Any, stored_field: DataField | None, field: DataField, rows: int) -> pa.Array:
    """Return the bounds of a column as texts of its current type; ``stored_field``: the column in the file's schema."""
    if values is None or stored_field is None or pa.types.is_null(values.type):
        return pa.nulls(rows, pa.string())
    try:
        return object_text(cast_array(values, stored_field.type, field.type), field.type)
    except UnsupportedError:  # reads of rows refuse this cast; here the stored value is the best text
        return object_text(values, stored_field.type)


def _padded(counts: Sequence[int | None], width: int) -> tuple[int | None, ...]:
    """Return the counts padded with `None` (unknown) to one for each column."""
    return (*counts[:width], *[None] * (width - len(counts)))


def _arity(stats: SimpleStats) -> int:
    return int.from_bytes(stats.min_values[:4], "big")


FILES = SystemTableKind("files", Fixed(_FILES), partial(_read, _FILES), travels=True)
FILE_KEY_RANGES = SystemTableKind(
    "file_key_ranges", Fixed(_FILE_KEY_RANGES), partial(_read, _FILE_KEY_RANGES), travels=True
)
