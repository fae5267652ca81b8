"""Vectorised decoding of manifest blocks: first all fields as columns, then the entries from the columns."""

import io
import itertools
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, Final, cast

import fastavro
import numpy as np

from paimon_core.fileio.paths import are_file_names
from paimon_core.format.avro_columns import NotVectorizableError, decode_columns, variable_numbers
from paimon_core.lazy import collection_paused
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.bucket_filter import EntryFilter
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.fast_constructor import fast_list_constructor
from paimon_core.manifest.serializers import DATA_FILE_SCHEMA, MANIFEST_SCHEMA, MANIFEST_VERSION
from paimon_core.manifest.stats import EMPTY_STATS, SimpleStats

Schema = Any
Path = tuple[str, ...]


def _kind(schema: Schema) -> str:
    """Return the kind of decoding for a field of this type: "number", "bytes", "stats" or "raw"."""
    value = schema[-1] if isinstance(schema, list) else schema
    name = value["type"] if isinstance(value, dict) else value
    return {"record": "stats", "array": "raw", "string": "bytes", "bytes": "bytes"}.get(name, "number")


_ENTRY: Final = {field["name"]: _kind(field["type"]) for field in MANIFEST_SCHEMA["fields"] if field["name"] != "_FILE"}
_FILE: Final = {field["name"]: _kind(field["type"]) for field in DATA_FILE_SCHEMA["fields"]}
"""The fields of a file, in the order of DataFileMeta; the statistics consist of the fields in _STATS."""
_STATS: Final = {"_MIN_VALUES": "bytes", "_MAX_VALUES": "bytes", "_NULL_COUNTS": "raw"}
_TEXTS: Final = ("_FILE_NAME", "_EXTERNAL_PATH")
_MAY_BE_MISSING: Final = frozenset(list(_FILE)[list(_FILE).index("_EXTRA_FILES") :])
_COUNTS_TYPE: Final = ["null", {"type": "array", "items": ["null", "long"]}]
_HEAD: Final = 7  # bytes of the version, the kind, and the partition's length and number of columns
_CHUNK: Final = 8  # bytes that one step compares
_MIN_GATHER: Final = 64  # values from which one gather is faster than slices

_data_files, _entries, _simple_stats = map(fast_list_constructor, (DataFileMeta, ManifestEntry, SimpleStats))


def decode_entry_blocks(
    schema: Schema, blocks: Sequence[tuple[int, bytes]], *, with_stats: bool, only: EntryFilter | None = None
) -> list[ManifestEntry]:
    """Return the entries of decompressed blocks. ``only``: a filter of entries. REQUIRES: no block is empty.

    Raises `NotVectorizableError`, KeyError, TypeError or ValueError for data that needs the slow decoder.
    """
    columns = _Columns(schema, blocks, with_stats)
    if (columns.numbers(("_VERSION",)) != MANIFEST_VERSION).any():
        raise NotVectorizableError("another version")
    if only is not None:
        columns.filter(only)
    with collection_paused():
        files = _data_files(*columns.file_fields(with_stats))
        kinds, buckets, totals = (columns.numbers((n,)).tolist() for n in ("_KIND", "_BUCKET", "_TOTAL_BUCKETS"))
        return _entries(kinds, columns.partitions(), buckets, totals, files)


class _Columns:
    """The fields of all records as columns of numbers or byte ranges, and their conversion to Python values."""

    def __init__(self, schema: Schema, blocks: Sequence[tuple[int, bytes]], with_stats: bool) -> None:
        kinds: dict[Path, str] = {(name,): kind for name, kind in _ENTRY.items()}
        for name, kind in _FILE.items():
            if kind != "stats":
                kinds["_FILE", name] = kind
            elif with_stats:
                kinds.update({("_FILE", name, part): how for part, how in _STATS.items()})
        self._data, self._columns = decode_columns(schema, blocks, kinds, _HEAD)
        self._schema = schema

    def filter(self, only: EntryFilter) -> None:
        """Remove the records that the filter does not accept."""
        starts, sizes = self._partition_runs()
        buckets = self.numbers(("_BUCKET",))
        partitions = self.contents(("_PARTITION",), starts)
        run = np.repeat(np.arange(len(starts)), sizes)
        _, heads, ref_of = np.unique(run << 32 | buckets & 0xFFFFFFFF, return_index=True, return_inverse=True)
        refs = [BucketRef(partitions[r], b) for r, b in zip(run[heads].tolist(), buckets[heads].tolist(), strict=True)]
        accepted = only.accepted(set(refs))
        rows = np.flatnonzero(np.array([ref in accepted for ref in refs], bool)[ref_of])
        if len(rows) < len(buckets):
            self._columns = {path: (first[rows], second[rows]) for path, (first, second) in self._columns.items()}

    def partitions(self) -> list[bytes]:
        """Return the partition of each record. Equal partitions of adjacent records are one object."""
        starts, sizes = self._partition_runs()
        shared: dict[bytes, bytes] = {}
        runs = (shared.setdefault(p, p) for p in self.contents(("_PARTITION",), starts))
        return list(itertools.chain.from_iterable(map(repeat, runs, sizes.tolist())))

    def _partition_runs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first record and the number of records of each run of adjacent records with equal partitions."""
        first, second = self._columns[("_PARTITION",)]
        size = second - first
        changes = np.ones(len(size), bool)
        changes[1:] = (size[1:] != size[:-1]) | (size[1:] < _CHUNK) | (first[1:] < 0)
        chunks = np.ndarray((len(self._data) - _CHUNK + 1,), np.dtype("<u8"), self._data, strides=(1,))
        for offset in range(0, int(size.max(initial=0)), _CHUNK):
            same = np.flatnonzero(~changes & (size > offset))
            last = np.minimum(offset, size[same] - _CHUNK)  # the last chunk may overlap the chunk before it
            changes[same] = chunks[first[same] + last] != chunks[first[same - 1] + last]
        starts = np.flatnonzero(changes)
        return starts, np.diff(starts, append=len(size))

    def file_fields(self, with_stats: bool) -> list[Iterable[Any]]:
        """Return one iterable for each argument of `DataFileMeta`."""
        columns: list[Iterable[Any]] = []
        for name, kind in _FILE.items():
            path = ("_FILE", name)
            if kind == "stats":
                columns.append(self._stats(path) if with_stats else repeat(EMPTY_STATS))
            elif name == "_VALUE_STATS_COLS" and not with_stats:
                columns.append(repeat(()))
            elif path not in self._columns and name in _MAY_BE_MISSING:
                columns.append(repeat(() if name == "_EXTRA_FILES" else None))
            elif kind == "number":
                columns.append(self._numbers_or_none(path))
            elif name == "_EXTRA_FILES":
                columns.append(_names(self._arrays(path, ())))
            elif kind == "raw":
                columns.append(self._arrays(path, None))
            elif name == "_FILE_NAME":
                columns.append(_names(self._file_names()))
            elif name in _MAY_BE_MISSING or name in _TEXTS:
                columns.append(self._bytes(path, text=name in _TEXTS))
            else:
                columns.append(self.contents(path))
        return columns

    def numbers(self, path: Path) -> np.ndarray:
        """Return the integers of a field that is never null."""
        return self._columns[path][0]

    def contents(self, path: Path, rows: np.ndarray | None = None) -> list[bytes]:
        """Return the bytes of a field that is never null, of these records. ``rows``: `None`: all records."""
        first, second = self._columns[path]
        if rows is not None:
            first, second = first[rows], second[rows]
        if (first < 0).any():
            raise NotVectorizableError(f"{path[-1]} is null")
        size = second - first
        if len(size) < _MIN_GATHER or size[0] == 0 or (size != size[0]).any():
            data = self._data
            return [data[a:b] for a, b in zip(first.tolist(), second.tolist(), strict=True)]
        return cast("list[bytes]", self._windows(int(size[0]))[first].tolist())

    def _windows(self, width: int) -> np.ndarray:
        """Return the ``width`` bytes from each position of the data."""
        return np.ndarray((len(self._data) - width + 1,), f"V{width}", self._data, strides=(1,))

    def _file_names(self) -> list[str]:
        names = self.contents(("_FILE", "_FILE_NAME"))
        text = b"\n".join(names).decode().split("\n")
        return text if len(text) == len(names) else [name.decode() for name in names]

    def _bytes(self, path: Path, *, text: bool) -> Iterable[Any]:
        first, second = self._columns[path]
        missing = first < 0
        if missing.all():
            return repeat(None)
        data, ends = self._data, zip(first.tolist(), second.tolist(), strict=True)
        if text:
            return [data[a:b].decode() if a >= 0 else None for a, b in ends]
        return [data[a:b] if a >= 0 else None for a, b in ends]

    def _numbers_or_none(self, path: Path) -> Iterable[int | None]:
        values, is_known = self._columns[path]
        if is_known.all():
            same = len(values) > 0 and (values == values[0]).all()
            return repeat(int(values[0])) if same else cast("list[int]", values.tolist())
        if not is_known.any():
            return repeat(None)
        return [value if present else None for value, present in zip(values.tolist(), is_known.tolist(), strict=True)]

    def _stats(self, path: Path) -> list[SimpleStats]:
        counts = self._counts((*path, "_NULL_COUNTS"))
        low, high = self.contents((*path, "_MIN_VALUES")), self.contents((*path, "_MAX_VALUES"))
        return _simple_stats(low, high, counts)

    def _counts(self, path: Path) -> Sequence[tuple[Any, ...]]:
        """Return the null counts. If they have equal lengths and no count is unknown, they are read as one table."""
        first, second = self._columns[path]
        if self._type(path) == _COUNTS_TYPE and len(first):
            numbers, width = variable_numbers(self._data, first, second)
            table = numbers.reshape(len(first), -1) if (width == width[0]).all() else None
            if table is not None and _all_known(table):
                return list(zip(*table[:, 3::2].T.tolist(), strict=True))
        return self._arrays(path, ())

    def _arrays(self, path: Path, null: tuple[()] | None) -> list[Any]:
        """Return arrays as tuples. Equal arrays are decoded once and shared."""
        arrays = _Arrays(self._type(path), null)
        data = self._data
        first, second = self._columns[path]
        codes = np.frombuffer(data, np.uint8)[first]
        if len(first) and (second - first == 1).all() and (codes == codes[0]).all():
            return [arrays[data[first[0] : second[0]]]] * len(first)
        return [arrays[data[a:b]] for a, b in zip(first.tolist(), second.tolist(), strict=True)]

    def _type(self, path: Path) -> Schema:
        schema = self._schema
        for name in path:
            schema = next(f["type"] for f in schema["fields"] if f["name"] == name)
        return schema


def _names(values: list[Any]) -> list[Any]:
    """Return the file names, or tuples of file names. Raises NotVectorizableError if one of them is a path."""
    names = values if values and isinstance(values[0], str) else [name for group in set(values) for name in group]
    if not are_file_names(names):
        raise NotVectorizableError("a file name is a path")
    return values


def _all_known(table: np.ndarray) -> bool:
    """Return True if each row is: not null, n items, n times (not null, a number), end of the array, with n > 0."""
    width = table.shape[1]
    frame = [1, (width - 3) // 2, *[1] * ((width - 3) // 2), 0]
    return width > 3 and width % 2 == 1 and bool((table[:, [0, 1, *range(2, width - 1, 2), width - 1]] == frame).all())


class _Arrays(dict[bytes, Any]):
    """A cache from encoded arrays to tuples, which decodes on first access. ``null``: the value of a null array."""

    def __init__(self, schema: Schema, null: tuple[()] | None) -> None:
        super().__init__()
        self._parsed, self._null = fastavro.parse_schema(schema, _force=True), null

    def __missing__(self, raw: bytes) -> Any:
        source = io.BytesIO(raw)
        values = fastavro.schemaless_reader(source, self._parsed)
        if source.tell() != len(raw):
            raise NotVectorizableError("bytes follow the end of an array")
        value = self[raw] = self._null if values is None else tuple(values)
        return value
