"""The system tables of data files: ``files`` and ``file_key_ranges``."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice, repeat
from operator import methodcaller
from typing import Any, Final, TypeVar

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
    braced_all,
    braced_columns,
    braced_predicate,
    bracketed,
    object_text,
)
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import FileSource, StatsLayout
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.entry_list import EntryList
from paimon_core.manifest.stats import stats_schema
from paimon_core.manifest.vectorized_decode import EntryColumns
from paimon_core.row.binary_row import decode_rows
from paimon_core.scan.entries import live_columns_in_parts, live_in_parts
from paimon_core.scan.file_filter import files_of_equal_stats, stats_fields
from paimon_core.store.file_store import FileStore
from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import BIGINT, STRING, ArrayType, DataField

T = TypeVar("T")

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
_STORED: Final = {
    "schema_id": "schema_id",
    "level": "level",
    "record_count": "row_count",
    "file_size_in_bytes": "file_size",
    "min_sequence_number": "min_sequence_number",
    "max_sequence_number": "max_sequence_number",
    "creation_time": "creation_time",
    "deleteRowCount": "delete_row_count",
    "first_row_id": "first_row_id",
    "write_cols": "write_cols",
}
"""Columns that are attributes of files."""
_ATTRIBUTES: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: (attribute,) for name, attribute in _STORED.items()},
    **dict.fromkeys(("null_value_counts", "min_value_stats", "max_value_stats"), ("value_stats", "row_count")),
    **dict.fromkeys(("partition", "bucket", "file_path", "file_format"), ()),
    **{name: (name,) for name in ("min_key", "max_key", "file_source")},
}
"""The attributes of files that a column needs, besides the attributes that columns of entries always have."""
_IS_PARQUET: Final = methodcaller("endswith", ".parquet")
_NO_KEY: Final = bytes(4)
_SOURCES: Final = {FileSource.APPEND: "APPEND", FileSource.COMPACT: "COMPACT", None: None}
_COMPRESSED: Final = frozenset({"gz", "bz2", "deflate", "snappy", "lz4", "zst", "zstd"})


def files_of(request: Request, *, with_stats: bool = False) -> Iterator[list[ManifestEntry]]:
    """Yield the live files that a filter on ``partition``, ``bucket`` and ``level`` does not exclude."""
    if request.snapshot is None:
        return iter(())
    return live_in_parts(request.store, request.snapshot, with_stats=with_stats, **_filters(request))


def columns_of(request: Request, attributes: Collection[str]) -> Iterator[EntryColumns | list[ManifestEntry]]:
    """Yield the files of `files_of`, as columns where that is possible; see `live_columns_in_parts`."""
    if request.snapshot is None:
        return iter(())
    return live_columns_in_parts(request.store, request.snapshot, attributes, **_filters(request))


def _filters(request: Request) -> dict[str, Any]:
    return {
        "partition": braced_predicate(request.store, request.pinned("partition")),
        "buckets": request.pinned("bucket"),
        "levels": request.pinned("level"),
    }


def _read(fields: Sequence[DataField], request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each live file, except files of postponed buckets, whose rows reads do not show."""
    attributes = {attribute for name in request.columns for attribute in _ATTRIBUTES[name]}
    locations = Locations(request.store)
    for files in columns_of(request, attributes):
        for group in _groups(files):
            yield batch_of(fields, request.columns, _columns(request.store, group, locations))


def _groups(files: EntryColumns | list[ManifestEntry]) -> list[EntryColumns | EntryList]:
    """Return the files outside postponed buckets, in groups of one layout of statistics."""
    if isinstance(files, EntryColumns):
        files.take(np.flatnonzero(files.buckets() >= 0))
        return [files] if len(files) else []
    return list(map(EntryList, files_of_equal_stats([entry for entry in files if entry.bucket >= 0])))


@dataclass(slots=True)
class Locations:
    """The texts of partitions and the directories of buckets, each computed once."""

    store: FileStore
    _partitions: dict[bytes, str] = field(default_factory=dict)
    _directories: dict[tuple[bytes, int], str] = field(default_factory=dict)

    def partitions(self, files: EntryColumns | EntryList) -> list[str]:
        """Return the text of the partition of each file."""
        runs = list(_runs(files.partitions()))
        new = list({partition for partition, _ in runs} - self._partitions.keys())
        self._partitions.update(zip(new, braced_all(self.store, new), strict=True))
        return [text for partition, count in runs for text in repeat(self._partitions[partition], count)]

    def paths(self, files: EntryColumns | EntryList) -> list[str]:
        """Return the path of each file, in the notation of the table's own path."""
        runs = list(_runs(zip(files.partitions(), _listed(files.buckets()), strict=True)))
        self._add_directories([bucket for bucket, _ in runs])
        names, paths = iter(files.values("file_name")), []
        for bucket, count in runs:
            directory = self._directories[bucket]
            paths += [f"{directory}/{name}" for name in islice(names, count)]
        if isinstance(files, EntryList):  # columns have no external paths
            return [entry.file.external_path or path for entry, path in zip(files.entries, paths, strict=True)]
        return paths

    def _add_directories(self, buckets: Iterable[tuple[bytes, int]]) -> None:
        new = list(set(buckets) - self._directories.keys())
        for bucket, directory in zip(new, self.store.bucket_paths([BucketRef(*b) for b in new]), strict=True):
            self._directories[bucket] = directory


def _runs(values: Iterable[T]) -> Iterator[tuple[T, int]]:
    """Yield each value and the number of adjacent equal values."""
    return ((value, sum(1 for _ in run)) for value, run in groupby(values))


def _columns(store: FileStore, files: EntryColumns | EntryList, locations: Locations) -> dict[str, Column]:
    """Return functions that compute the columns. REQUIRES: all files have one schema and equal statistics columns."""

    def keys(attribute: str) -> pa.Array:
        return _keys(store, _first(files, "schema_id"), _listed(files.values(attribute)))

    def stats() -> _Stats:
        return _Stats(store, files)

    return {
        "partition": lambda: locations.partitions(files),
        "bucket": files.buckets,
        "file_path": lambda: locations.paths(files),
        "file_format": lambda: _formats(files.values("file_name")),
        "min_key": lambda: keys("min_key"),
        "max_key": lambda: keys("max_key"),
        "null_value_counts": lambda: stats().null_counts(),
        "min_value_stats": lambda: stats().bounds(largest=False),
        "max_value_stats": lambda: stats().bounds(largest=True),
        "file_source": lambda: [_SOURCES[source] for source in _listed(files.values("file_source"))],
        **{name: partial(files.values, attribute) for name, attribute in _STORED.items()},
    }


def _first(files: EntryColumns | EntryList, attribute: str) -> Any:
    return _listed(files.values(attribute)[:1])[0]


def _listed(values: Sequence[Any] | np.ndarray) -> Sequence[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _formats(names: Sequence[str] | np.ndarray) -> list[str]:
    """Return the format of each file from its name."""
    if all(map(_IS_PARQUET, names)):
        return ["parquet"] * len(names)
    return list(map(_format, names))


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

    def __init__(self, store: FileStore, files: EntryColumns | EntryList) -> None:
        self._files, self._fields = files, store.schema.fields
        layout = StatsLayout(*(_first(files, name) for name in ("schema_id", "value_stats_cols", "write_cols")))
        self._then = {f.id: f for f in store.schemas.get(layout.schema_id).fields}
        stored = stats_fields(store, layout)
        arities = {row[:4] for row in files.bounds(largest=False)}
        self._stored = stored if arities == {len(stored).to_bytes(4, "big")} else ()
        self._position = {f.id: i for i, f in enumerate(self._stored)}
        self._counts: list[Any] = []

    def null_counts(self) -> pa.Array:
        """Return the null counts of each file as one text; a column that the file lacks is null in all rows."""
        self._counts = self._files.null_counts(len(self._stored))
        texts = [self._counts_of(f).cast(pa.string()) for f in self._fields]
        return braced_columns([f.name for f in self._fields], texts, len(self._files))

    def _counts_of(self, column: DataField) -> pa.Array:
        at = self._position.get(column.id)
        if at is not None:
            return pa.array(self._counts[at], pa.int64())
        if column.id in self._then:
            return pa.nulls(len(self._files), pa.int64())
        return pa.array(self._files.values("row_count"), pa.int64())

    def bounds(self, *, largest: bool) -> pa.Array:
        """Return the smallest or the largest values of each file as one text."""
        positions = [i for i, f in enumerate(self._stored) if f.id in {now.id for now in self._fields}]
        rows = self._files.bounds(largest=largest)
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


FILES = SystemTableKind("files", Fixed(_FILES), partial(_read, _FILES), travels=True)
FILE_KEY_RANGES = SystemTableKind(
    "file_key_ranges", Fixed(_FILE_KEY_RANGES), partial(_read, _FILE_KEY_RANGES), travels=True
)
