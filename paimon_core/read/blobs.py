"""Blobs in place of the descriptors that data files hold (format 7.7).

A descriptor may come from a stranger, so a file is opened only where `FileStore.blob_path` allows it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from paimon_core.errors import CorruptedError, UnsupportedError, hide_secrets
from paimon_core.fileio.parallel import parallel_map
from paimon_core.format.blob_descriptor import Described, begins_as_descriptor, described
from paimon_core.memory import MemoryShares
from paimon_core.store.file_store import FileStore
from paimon_core.types.map_entries import map_entries

_GAP: Final = 64  # bytes between two blobs that one request reads; the frame of a record has 16
_MAX_BYTES: Final = 2**31 - 1  # of all blobs in one Arrow array


Owner: TypeAlias = Callable[[str], FileStore]
"""A function from the path of a file to the table through which it is read."""


@dataclass(frozen=True, slots=True)
class _Source:
    """The files of the blobs in a column. ``shown``: the column and its table, for messages."""

    owner: Owner
    shown: str

    @contextmanager
    def opened(self, path: str) -> Iterator[pa.NativeFile]:
        """Open a file that a descriptor names."""
        store = self.owner(path)
        allowed = store.blob_path(path)
        try:
            with store.io.open(allowed) as file:
                yield file
        except FileNotFoundError as cause:
            shown = hide_secrets(path)
            raise CorruptedError(f"{self.shown} has a descriptor of the file {shown}, which is missing") from cause


def with_blobs(
    store: FileStore, batches: Iterable[pa.RecordBatch], owners: Mapping[str, Owner | None]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with blobs in place of descriptors; batches get smaller, so that they have about 32 MiB of blobs.

    Args:
        store: the table.
        batches: the rows.
        owners: the columns with descriptors, each with the tables through which its blobs are read (`None`: the table
            itself); other names are ignored.

    Raises CorruptedError for a value that is no descriptor, and for a file that is missing or too short. Raises
    InvalidInputError for a file outside of the allowed directories, UnsupportedError for a row with more than 2 GiB.
    """
    for batch in batches:
        found = {name: _source(store, name, owners[name]) for name in batch.schema.names if name in owners}
        if not found:
            yield batch
            continue
        begin = 0
        sizes = [_row_bytes(source, batch.column(name)) for name, source in found.items()]
        for end in _part_ends(np.sum(sizes, axis=0), MemoryShares.of(store.options).batches):
            part = batch.slice(begin, end - begin)
            read = {name: _read_column(source, part.column(name)) for name, source in found.items()}
            arrays = [read.get(name, array) for name, array in zip(batch.schema.names, part.columns, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
            begin = end


def with_copies(store: FileStore, rows: pa.RecordBatch, names: Collection[str]) -> Iterator[pa.RecordBatch]:
    """Yield rows to write with blobs in place of values that begin as descriptors, in parts of about 32 MiB of blobs.

    Args:
        store: the table to write.
        rows: rows with columns of the table, in their Arrow types.
        names: the columns that store blobs.

    Raises as `with_blobs`.
    """
    described_bytes = np.zeros(rows.num_rows, np.int64)
    found = []
    for name in names:
        items, counts, _ = elements(rows.column(name))
        given = begins_as_descriptor(items)
        if given.any():
            found.append(name)
            owners = np.repeat(np.arange(rows.num_rows), counts)[given]
            source = _source(store, name)
            lengths = _sized(source, described(items.filter(pa.array(given)), source.shown)).lengths
            described_bytes += np.bincount(owners, lengths, rows.num_rows).astype(np.int64)
    if not found:
        yield rows
        return
    begin = 0
    for end in _part_ends(described_bytes, MemoryShares.of(store.options).batches):
        part = rows.slice(begin, end - begin)
        copied = {name: _with_copies(store, part.column(name), name) for name in found}
        arrays = [copied.get(name, array) for name, array in zip(part.schema.names, part.columns, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=rows.schema)
        begin = end


def _with_copies(store: FileStore, column: pa.Array, name: str) -> pa.Array:
    items, counts, keys = elements(column)
    given = begins_as_descriptor(items)
    copies = _read_values(_source(store, name), items.filter(pa.array(given)))
    chosen = np.where(given, len(items) + given.cumsum() - 1, np.arange(len(items)))
    return with_elements(column, pa.concat_arrays([items, copies]).take(pa.array(chosen)), counts, keys)


def _part_ends(row_bytes: np.ndarray, most: int) -> Iterator[int]:
    """Yield the end of each part of the rows, which has at most ``most`` bytes of blobs, or one row."""
    total, end = row_bytes.cumsum(), 0
    while end < len(total):
        before = int(total[end - 1]) if end else 0
        end = max(end + 1, int(np.searchsorted(total, before + most, "right")))
        yield end


def _row_bytes(source: _Source, column: pa.Array) -> np.ndarray:
    """Return the bytes of the blobs in each row (int64)."""
    items, counts, _ = elements(column)
    rows = np.repeat(np.arange(len(column)), counts)[_valid(items)]
    lengths = _sized(source, described(items, source.shown)).lengths
    return np.bincount(rows, lengths, len(column)).astype(np.int64)


def _read_column(source: _Source, column: pa.Array) -> pa.Array:
    """Return the column with blobs in place of descriptors."""
    items, counts, keys = elements(column)
    return with_elements(column, _read_values(source, items), counts, keys)


def read_parts(store: FileStore, values: pa.Array, name: str) -> Iterator[tuple[int, pa.Array]]:
    """Yield the blobs of descriptors (binary) of a column in parts of about 32 MiB, with the index of the first value.

    Raises as `with_blobs`.
    """
    begin, source = 0, _source(store, name)
    for end in _part_ends(_row_bytes(source, values), MemoryShares.of(store.options).batches):
        yield begin, _read_values(source, values.slice(begin, end - begin))
        begin = end


def with_elements(column: pa.Array, items: pa.Array, counts: np.ndarray, keys: pa.Array | None) -> pa.Array:
    """Return a column with other binary values. ``counts`` and ``keys``: as `elements` returns them for the column."""
    kind = column.type
    if not pa.types.is_list(kind) and not pa.types.is_map(kind):
        return items
    child = items if keys is None else map_entries(keys, items, kind)
    offsets = pa.py_buffer(np.concatenate([[0], counts.cumsum()]).astype(np.int32))
    return pa.Array.from_buffers(kind, len(column), [_validity(_valid(column)), offsets], children=[child])


def elements(column: pa.Array) -> tuple[pa.Array, np.ndarray, pa.Array | None]:
    """Return the binary values in a column, their number in each row, and the keys of a map; `None`: it is no map."""
    kind = column.type
    if not pa.types.is_list(kind) and not pa.types.is_map(kind):
        return column, np.ones(len(column), np.int64), None
    if column.null_count:  # take drops elements that belong to a NULL
        column = column.take(pa.array(np.arange(len(column))))
    bounds = column.offsets.to_numpy().astype(np.int64)
    child = column.values.slice(bounds[0], bounds[-1] - bounds[0])
    if pa.types.is_list(kind):
        return child, np.diff(bounds), None
    return child.field(1), np.diff(bounds), child.field(0)


def _read_values(source: _Source, values: pa.Array) -> pa.Array:
    """Return the blobs that descriptors (binary) describe; NULL stays NULL."""
    found = _sized(source, described(values, source.shown))
    valid = _valid(values)
    lengths = np.zeros(len(values), np.int64)
    lengths[valid] = found.lengths
    ends = lengths.cumsum()
    if len(ends) and ends[-1] > _MAX_BYTES:
        raise UnsupportedError(
            f"a row has {ends[-1]} bytes of blobs in {source.shown}, more than 2 GiB: read its descriptors with "
            "'blob-as-descriptor' = 'true'"
        )
    offsets = pa.py_buffer(np.concatenate([[0], ends]).astype(np.int32))
    data = pa.py_buffer(b"".join(_read_blobs(source, found)))
    return pa.Array.from_buffers(pa.binary(), len(values), [_validity(valid), offsets, data])


def _read_blobs(source: _Source, found: Described) -> Sequence[memoryview]:
    """Return the bytes of blobs. The blobs of a file are read in the order of their positions, neighbours at once."""
    order = np.lexsort((found.starts, found.file_of))
    file_of, starts, ends = (part[order] for part in (found.file_of, found.starts, found.starts + found.lengths))
    gaps = starts[1:] - ends[:-1]
    apart = (np.diff(file_of) != 0) | (gaps < 0) | (gaps > _GAP)
    firsts = np.concatenate([[0], np.flatnonzero(apart) + 1]) if len(order) else np.zeros(0, np.int64)
    lasts = np.concatenate([firsts[1:], [len(order)]]) - 1 if len(order) else firsts
    runs: dict[str, list[tuple[int, int]]] = {}
    for file, first, last in zip(file_of[firsts].tolist(), firsts.tolist(), lasts.tolist(), strict=True):
        runs.setdefault(found.files[file], []).append((first, last))

    def read(path: str) -> list[memoryview]:
        parts = []
        with source.opened(path) as file:
            for first, last in runs[path]:
                begin, end = int(starts[first]), int(ends[last])
                if not begin <= end <= file.size():  # checked first: the numbers may be absurd
                    shown = hide_secrets(path)
                    raise CorruptedError(
                        f"{source.shown} has a descriptor of bytes {begin} to {end} of {shown}, which ends earlier"
                    )
                file.seek(begin)
                data = memoryview(file.read(end - begin))
                bounds = zip(
                    (starts[first : last + 1] - begin).tolist(), (ends[first : last + 1] - begin).tolist(), strict=True
                )
                parts += [data[low:high] for low, high in bounds]
        return parts

    in_order = [part for parts in parallel_map(read, runs) for part in parts]
    positions = np.empty(len(order), np.int64)
    positions[order] = np.arange(len(order))
    return [in_order[position] for position in positions.tolist()]


def _sized(source: _Source, found: Described) -> Described:
    """Return the blobs with the lengths of the blobs that reach to the end of their file.

    Raises UnsupportedError for a blob of more than 2 GiB.
    """
    largest = found.lengths.max(initial=0)
    if largest > _MAX_BYTES:
        raise UnsupportedError(
            f"{source.shown} has a blob of {largest} bytes, more than 2 GiB: read its descriptor with "
            "'blob-as-descriptor' = 'true'"
        )
    open_ended = np.flatnonzero(found.lengths < 0)
    if not len(open_ended):
        return found

    def size(number: int) -> int:
        with source.opened(found.files[number]) as file:
            return int(file.size())

    numbers = np.unique(found.file_of[open_ended])
    sizes = np.zeros(len(found.files), np.int64)
    sizes[numbers] = list(parallel_map(size, numbers.tolist()))
    lengths = found.lengths.copy()
    lengths[open_ended] = np.maximum(0, sizes[found.file_of[open_ended]] - found.starts[open_ended])
    return _sized(source, replace(found, lengths=lengths))


def _source(store: FileStore, name: str, owner: Owner | None = None) -> _Source:
    """Return the source of the blobs in a column of a table. ``owner``: `None`: the table itself."""
    return _Source(owner or (lambda _: store), f"column {name!r} of {hide_secrets(store.root)}")


def _valid(values: pa.Array) -> np.ndarray:
    if not values.null_count:
        return np.ones(len(values), bool)
    valid: np.ndarray = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _validity(valid: np.ndarray) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
