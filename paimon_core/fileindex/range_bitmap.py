"""The index kind range-bitmap: sorted distinct values, and bit slices of each row's index in them (format 9.5)."""

import struct
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from paimon_core.fileindex.bsi import check_digits
from paimon_core.fileindex.collect import Collected, grouped
from paimon_core.fileindex.index import Found, Test, check_root, check_rows
from paimon_core.fileindex.records import big_endian, key_sizes, key_width, read_records, records
from paimon_core.fileindex.roaring import bitmap, decode_mask
from paimon_core.fileindex.values import (
    FLOAT_ROOTS,
    NUMBER_ROOTS,
    TIMESTAMP_ROOTS,
    ascending,
    gathered,
    matching,
    restored,
    stored,
)
from paimon_core.options.parse import memory_size
from paimon_core.row.stored_values import is_bytes
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import TEXT_ROOTS, AtomicType

_ROOTS = NUMBER_ROOTS | FLOAT_ROOTS | TEXT_ROOTS | {"BOOLEAN", "DECIMAL"}
_VERSION = 1
_CHUNK, _UNCHUNKED = "16 kb", "0 b"
_SMALL_ROOTS = ("BOOLEAN", "TINYINT", "SMALLINT")
_FINEST = 6
_MOST_SLICES = 32


class RangeBitmap:
    """``range-bitmap``. Option: ``chunk-size``, the bytes of a chunk of the dictionary."""

    name = "range-bitmap"

    def check(self, kind: AtomicType, options: Mapping[str, str]) -> None:
        """See `FileIndex.check`."""
        check_root(kind, _ROOTS)
        check_digits(kind)
        if kind.root in TIMESTAMP_ROOTS and (kind.precision or 0) > _FINEST:
            raise ValueError(f"{kind} has more than {_FINEST} digits of a second")
        _chunk_size(kind, options)

    def builder(self, kind: AtomicType, options: Mapping[str, str]) -> "RangeBitmapBuilder":
        """See `FileIndex.builder`."""
        return RangeBitmapBuilder(kind, _chunk_size(kind, options))

    def search(self, data: bytes, kind: AtomicType, test: Test, rows: int) -> Found:
        """See `FileIndex.search`."""
        head, version, count, cardinality = struct.unpack_from(">ibii", data)
        if version != _VERSION:
            raise ValueError(f"unknown version {version} of a range bitmap; the supported version is {_VERSION}")
        check_rows(count, rows)
        key_type = stored(pa.array([], to_arrow(kind)), kind).type
        (length,) = struct.unpack_from(">i", data, head)  # the last number of the head, after the bounds
        keys = _read_dictionary(data, 4 + head, key_type) if cardinality else pa.array([], key_type)
        if len(keys) != cardinality:
            raise ValueError(f"it has {len(keys)} keys, but its head says {cardinality}")
        values = restored(keys, kind)
        chosen = matching(test, pa.concat_arrays([values, pa.nulls(1, values.type)]), kind)
        codes = _read_codes(data, 4 + head + length, rows, cardinality)
        mask: np.ndarray = chosen[codes]
        return mask


def _chunk_size(kind: AtomicType, options: Mapping[str, str]) -> int:
    return memory_size(options.get("chunk-size", _UNCHUNKED if kind.root in _SMALL_ROOTS else _CHUNK))


class RangeBitmapBuilder:
    """A builder of the dictionary and slices of one column of one file."""

    def __init__(self, kind: AtomicType, chunk: int) -> None:
        self._kind, self._chunk = kind, chunk
        self._rows = Collected(kind)

    def add(self, values: pa.Array) -> None:
        """See `Builder.add`."""
        self._rows.add(values)

    def finish(self) -> bytes | None:
        """See `Builder.finish`."""
        keys, codes = self._rows.coded()
        order = ascending(keys, self._kind)
        rank = np.empty(len(keys) + 1, np.int64)
        rank[order], rank[-1] = np.arange(len(keys)), -1
        keys = keys.take(pa.array(order))
        bounds = records(keys.take(pa.array([0, len(keys) - 1])))[0].tobytes() if len(keys) else b""
        dictionary = _dictionary(keys, self._chunk)
        head = struct.pack(">bii", _VERSION, len(codes), len(keys)) + bounds + struct.pack(">i", len(dictionary))
        return struct.pack(">i", len(head)) + head + dictionary + _sliced(rank[codes], len(keys))


def _dictionary(keys: pa.Array, limit: int) -> bytes:
    """Encode sorted keys in chunks: the first key of a chunk is in its head, the other keys are in its body."""
    offsets, heads, bodies = [], [], []
    at = body_at = code = 0
    while code < len(keys):
        rest = keys.slice(code + 1)
        size = _chunk_rows(rest, limit)
        body, last = _chunk(rest.slice(0, size))
        first = records(keys.slice(code, 1))[0].tobytes()
        head = struct.pack(">b", _VERSION) + first + struct.pack(">iii", code, body_at, size) + last
        offsets.append(at)
        heads.append(head)
        bodies.append(body)
        at, body_at, code = at + len(head), body_at + len(body), code + 1 + size
    head_offsets = big_endian(np.array(offsets, np.int64), 4).tobytes()
    start = struct.pack(">ibiii", 13, _VERSION, len(offsets), len(head_offsets), at)
    return b"".join([start, head_offsets, *heads, *bodies])


def _chunk_rows(keys: pa.Array, limit: int) -> int:
    width = key_width(keys)
    if width is not None:
        return min(len(keys), limit // width)
    keys = keys.slice(0, limit // 4)  # the offsets of the keys also fit the limit
    sizes = key_sizes(keys)
    return int(np.searchsorted(np.cumsum(sizes), limit, "right"))


def _chunk(keys: pa.Array) -> tuple[bytes, bytes]:
    """Return the bytes of the keys, and the two lengths at the end of their chunk's head."""
    data, starts = records(keys)
    width = key_width(keys)
    if width is not None:
        return data.tobytes(), struct.pack(">ii", len(data), width)
    return big_endian(starts[:-1], 4).tobytes() + data.tobytes(), struct.pack(">ii", 4 * len(keys), len(data))


def _read_dictionary(data: bytes, at: int, key_type: pa.DataType) -> pa.Array:
    length, version, count, offsets_length, heads_length = struct.unpack_from(">ibiii", data, at)
    if version != _VERSION:
        raise ValueError(f"unknown version {version} of a dictionary; the supported version is {_VERSION}")
    at += 4 + length
    bodies = at + offsets_length + heads_length
    parts = []
    for start in np.frombuffer(data, ">i4", count, at).tolist():
        first, _, position = read_records(data, at + offsets_length + start + 1, 1, key_type, 0)
        _, body, size, *lengths = struct.unpack_from(">iiiii", data, position)
        parts += [first, _read_chunk(data, bodies + body, size, key_type, (lengths[0], lengths[1]))]
    return pa.concat_arrays(parts)


def _read_chunk(data: bytes, at: int, size: int, key_type: pa.DataType, lengths: tuple[int, int]) -> pa.Array:
    if not is_bytes(key_type):
        return read_records(data, at, size, key_type, 0)[0]
    offsets_length, keys_length = lengths
    starts = np.frombuffer(data, ">i4", size, at).astype(np.int64)
    raw = np.frombuffer(data, np.uint8, keys_length, at + offsets_length)
    ends = np.append(starts[1:], keys_length)
    return gathered(raw, starts + 4, ends - starts - 4)


def _sliced(codes: np.ndarray, count: int) -> bytes:
    """Encode the rows that have a code, and, for each bit of the codes, the rows with this bit."""
    _, rows = grouped(codes)
    rows = np.sort(rows)
    bits = max(1, (count - 1).bit_length()) if count else _MOST_SLICES * 2
    held = codes[rows]
    slices = [bitmap(rows[held >> bit & 1 == 1]) for bit in range(bits)]
    sizes = np.array([len(s) for s in slices], np.int64)
    index = np.stack([np.cumsum(sizes) - sizes, sizes], axis=1)
    present = bitmap(rows)
    head = struct.pack(">bbii", _VERSION, bits, len(present), 8 * bits) + big_endian(index.ravel(), 4).tobytes()
    return b"".join([struct.pack(">i", len(head)), head, present, *slices])


def _read_codes(data: bytes, at: int, rows: int, cardinality: int) -> np.ndarray:
    """Return the code of each row; null rows have the code ``cardinality``."""
    codes = np.full(rows, cardinality, np.int64)
    if not cardinality:
        return codes
    length, version, bits, present_length, _ = struct.unpack_from(">ibbii", data, at)
    if version != _VERSION or not 0 < bits <= _MOST_SLICES:
        raise ValueError(f"{bits} slices of version {version} are not possible")
    body = at + 4 + length
    present, _ = decode_mask(data, body, rows)
    held = np.zeros(rows, np.int64)
    index = np.frombuffer(data, ">i4", 2 * bits, at + 14).reshape(-1, 2).tolist()
    for bit, (offset, _) in enumerate(index):
        held |= decode_mask(data, body + present_length + offset, rows)[0].astype(np.int64) << bit
    codes[present] = held[present]
    if int(codes[present].max(initial=0)) >= cardinality:
        raise ValueError(f"the code of a row is not below the number of keys, {cardinality}")
    return codes
