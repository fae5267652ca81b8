"""Vectorised decoding of manifest blocks: first all fields as columns, then the entries from the columns."""

import io
import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
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
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.manifest.entry_list import count_columns
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
_FIELD_OF: Final = dict(zip((f.name for f in fields(DataFileMeta)), _FILE, strict=True))
_WITHOUT_STATS: Final = [name for name, kind in _FILE.items() if kind != "stats" and name != "_VALUE_STATS_COLS"]
_LAYOUT: Final = ("_FILE_NAME", "_SCHEMA_ID", "_VALUE_STATS_COLS", "_WRITE_COLS", "_EXTERNAL_PATH")
_NO_ROWS: Final = np.zeros(0, np.int64)
_COUNTS_TYPE: Final = ["null", {"type": "array", "items": ["null", "long"]}]
_HEAD: Final = 7  # bytes of the version, the kind, and the partition's length and number of columns
_CHUNK: Final = 8  # bytes that one step compares
_MIN_GATHER: Final = 64  # values from which one gather is faster than slices

_data_files, _entries, _simple_stats = map(fast_list_constructor, (DataFileMeta, ManifestEntry, SimpleStats))


def decode_entry_blocks(
    schema: Schema,
    blocks: Sequence[tuple[int, bytes]],
    *,
    with_stats: bool,
    only: EntryFilter | None = None,
    in_steps: bool = True,
) -> list[ManifestEntry]:
    """Return the entries of decompressed blocks. Arguments as for `decode_entry_columns`.

    Raises `NotVectorizableError`, KeyError, TypeError or ValueError for data that needs the slow decoder.
    """
    columns = _decoded(schema, blocks, _FILE if with_stats else _WITHOUT_STATS, only, in_steps)
    with collection_paused():
        files = _data_files(*columns.file_fields(with_stats))
        kinds, buckets, totals = (columns.numbers((n,)).tolist() for n in ("_KIND", "_BUCKET", "_TOTAL_BUCKETS"))
        return _entries(kinds, columns.partitions(), buckets, totals, files)


def decode_entry_columns(
    schema: Schema,
    blocks: Sequence[tuple[int, bytes]],
    attributes: Collection[str],
    only: EntryFilter | None = None,
    *,
    in_steps: bool = True,
) -> "EntryColumns":
    """Return columns of the entries of decompressed blocks, without building the entries.

    Args:
        schema: the Avro schema of the blocks.
        blocks: the blocks; none is empty.
        attributes: the attributes of `DataFileMeta` to decode, without ``key_stats``.
        only: a filter of entries; `None`: all entries.
        in_steps: as for `avro_columns.decode_columns`.

    Raises as `decode_entry_blocks`, and NotVectorizableError if an entry deletes a file, if a file has an external
    path, or if files differ in their schema or in the columns of their statistics.
    """
    columns = _decoded(schema, blocks, {*_LAYOUT, *(_FIELD_OF[name] for name in attributes)}, only, in_steps)
    columns.check_plain()
    return columns


def _decoded(
    schema: Schema,
    blocks: Sequence[tuple[int, bytes]],
    file_fields: Collection[str],
    only: EntryFilter | None,
    in_steps: bool,
) -> "EntryColumns":
    columns = EntryColumns(schema, blocks, file_fields, in_steps)
    if (columns.numbers(("_VERSION",)) != MANIFEST_VERSION).any():
        raise NotVectorizableError("another version")
    if only is not None:
        columns.filter(only)
    return columns


class EntryColumns:
    """The fields of all entries as columns of numbers or byte ranges, and their conversion to Python values."""

    def __init__(
        self, schema: Schema, blocks: Sequence[tuple[int, bytes]], file_fields: Collection[str], in_steps: bool
    ) -> None:
        kinds: dict[Path, str] = {(name,): kind for name, kind in _ENTRY.items()}
        for name in file_fields:
            if _FILE[name] == "stats":
                kinds.update({("_FILE", name, part): how for part, how in _STATS.items()})
            else:
                kinds["_FILE", name] = _FILE[name]
        self._data, self._columns = decode_columns(schema, blocks, kinds, _HEAD, in_steps=in_steps)
        self._schema = schema

    def __len__(self) -> int:
        return len(self.numbers(("_VERSION",)))

    def check_plain(self) -> None:
        """Raise NotVectorizableError unless all entries add files of one layout that have no external paths."""
        if (self.numbers(("_KIND",)) != ADD).any():
            raise NotVectorizableError("an entry deletes a file")
        first, _ = self._columns.get(("_FILE", "_EXTERNAL_PATH"), (_NO_ROWS, _NO_ROWS))
        if (first >= 0).any():
            raise NotVectorizableError("a file has an external path")
        schema_ids = self.numbers(("_FILE", "_SCHEMA_ID"))
        if (schema_ids != schema_ids[:1]).any() or len(set(self.values("value_stats_cols"))) > 1:
            raise NotVectorizableError("files have several layouts")
        if len(set(self.values("write_cols"))) > 1:
            raise NotVectorizableError("files have several layouts")

    def values(self, attribute: str) -> Sequence[Any] | np.ndarray:
        """Return an attribute of the file of each entry. REQUIRES: it was decoded, and is not a statistic."""
        name = _FIELD_OF[attribute]
        path = ("_FILE", name)
        if name == "_FILE_NAME":
            return _names(self._file_names())
        if path not in self._columns and name in _MAY_BE_MISSING:
            return [None] * len(self)
        if _FILE[name] == "number":
            values, is_known = self._columns[path]
            return values if is_known.all() else list(itertools.islice(self._numbers_or_none(path), len(self)))
        return self._arrays(path, None) if _FILE[name] == "raw" else self.contents(path)

    def buckets(self) -> np.ndarray:
        """Return the bucket of each entry."""
        return self.numbers(("_BUCKET",))

    def total_buckets(self) -> np.ndarray:
        """Return the number of buckets that each entry stores."""
        return self.numbers(("_TOTAL_BUCKETS",))

    def bounds(self, *, largest: bool) -> list[bytes]:
        """Return the smallest or the largest values of each file as a serialised row."""
        return self.contents(("_FILE", "_VALUE_STATS", "_MAX_VALUES" if largest else "_MIN_VALUES"))

    def null_counts(self, width: int) -> list[Any]:
        """Return the null counts of each of the ``width`` columns of statistics, one item for each file."""
        path = ("_FILE", "_VALUE_STATS", "_NULL_COUNTS")
        table = self._count_table(path)
        if table is not None and table.shape[1] == width:
            return list(table.T)
        return count_columns(self._arrays(path, ()), width)

    def take(self, rows: np.ndarray) -> None:
        """Remove all entries but these, given by their positions in order."""
        if len(rows) < len(self):
            self._columns = {path: (first[rows], second[rows]) for path, (first, second) in self._columns.items()}

    def filter(self, only: EntryFilter) -> None:
        """Remove the records that the filter does not accept."""
        starts, sizes = self._partition_runs()
        buckets = self.numbers(("_BUCKET",))
        partitions = self.contents(("_PARTITION",), starts)
        run = np.repeat(np.arange(len(starts)), sizes)
        _, heads, ref_of = np.unique(run << 32 | buckets & 0xFFFFFFFF, return_index=True, return_inverse=True)
        refs = [BucketRef(partitions[r], b) for r, b in zip(run[heads].tolist(), buckets[heads].tolist(), strict=True)]
        accepted = only.accepted(set(refs))
        self.take(np.flatnonzero(np.array([ref in accepted for ref in refs], bool)[ref_of]))

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
        """Return the null counts of each record."""
        table = self._count_table(path)
        return self._arrays(path, ()) if table is None else list(zip(*table.T.tolist(), strict=True))

    def _count_table(self, path: Path) -> np.ndarray | None:
        """Return the null counts as a table; `None` if records have different numbers of counts, or a count is null."""
        first, second = self._columns[path]
        if self._type(path) == _COUNTS_TYPE and len(first):
            numbers, width = variable_numbers(self._data, first, second)
            table = numbers.reshape(len(first), -1) if (width == width[0]).all() else None
            if table is not None and _all_known(table):
                return table[:, 3::2]
        return None

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
