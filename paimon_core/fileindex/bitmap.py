"""The index kind bitmap: a bitmap of rows for every distinct value (format 9.4)."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paimon_core.fileindex.collect import Collected, grouped
from paimon_core.fileindex.hash_table import key_hashes, walk
from paimon_core.fileindex.index import Found, Test, check_root, check_rows
from paimon_core.fileindex.records import filled, key_sizes, read_records, records
from paimon_core.fileindex.roaring import bitmaps, decode
from paimon_core.fileindex.values import FLOAT_ROOTS, NUMBER_ROOTS, ascending, matching, restored, stored
from paimon_core.options.parse import memory_size
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import TEXT_ROOTS, AtomicType

_ROOTS = NUMBER_ROOTS | FLOAT_ROOTS | TEXT_ROOTS | {"BOOLEAN"}
_VERSIONS = (1, 2)
_BLOCK = "16 kb"
_SINGLE_ROW = -1  # the length of the bitmap of a key with a single row, which is not stored
_LENGTH_OF_ONE = 18  # the bytes of a bitmap of one row


class Bitmap:
    """``bitmap``. Options: ``version`` (2, or 1) and ``index-block-size`` of version 2."""

    name = "bitmap"

    def check(self, kind: AtomicType, options: Mapping[str, str]) -> None:
        """See `FileIndex.check`."""
        check_root(kind, _ROOTS)
        _settings(options)

    def builder(self, kind: AtomicType, options: Mapping[str, str]) -> "BitmapBuilder":
        """See `FileIndex.builder`."""
        return BitmapBuilder(kind, *_settings(options))

    def search(self, data: bytes, kind: AtomicType, test: Test, rows: int) -> Found:
        """See `FileIndex.search`."""
        content = _read(data, kind)
        check_rows(content.rows, rows)
        values = restored(content.keys, kind)
        with_null = pa.concat_arrays([values, pa.nulls(1, values.type)])
        chosen = matching(test, with_null, kind)
        if not content.has_null:
            chosen = chosen[:-1]
        # Every row has one key or is null: decode the smaller half of the keys, and invert the mask if necessary.
        inverse = int(chosen.sum()) * 2 > len(chosen)
        mask = np.full(rows, inverse)
        offsets = np.append(content.offsets, content.null_offset)[: len(chosen)]
        offsets = offsets[chosen ^ inverse]
        singles = offsets[offsets < 0]
        mask[_checked(-1 - singles, rows)] = not inverse
        for offset in offsets[offsets >= 0].tolist():
            mask[decode(data, content.body + offset, rows)[0]] = not inverse
        return mask


@dataclass(frozen=True, slots=True)
class _Content:
    """The decoded head of an index."""

    rows: int
    keys: pa.Array
    offsets: np.ndarray  # offsets of the keys' bitmaps in the body; -1 - row: the key has only this row
    has_null: bool
    null_offset: int
    body: int


def _checked(positions: np.ndarray, rows: int) -> np.ndarray:
    if len(positions) and int(positions.max()) >= rows:
        raise ValueError(f"it contains row {int(positions.max())} of a file with {rows} rows")
    return positions


def _read(data: bytes, kind: AtomicType) -> _Content:
    version, rows, count, has_null = struct.unpack_from(">biib", data)
    at, null_offset = 10, 0
    if version not in _VERSIONS:
        raise ValueError(f"unknown version {version} of a bitmap index; supported versions are 1 and 2")
    if has_null:
        (null_offset,) = struct.unpack_from(">i", data, at)
        at += 4 if version == 1 else 8
    key_type = stored(pa.array([], to_arrow(kind)), kind).type
    if version == 1:
        keys, (offsets,), body = read_records(data, at, count, key_type, 1)
        return _Content(rows, keys, offsets, bool(has_null), null_offset, body)
    (blocks,) = struct.unpack_from(">i", data, at)
    _, (starts,), at = read_records(data, at + 4, blocks, key_type, 1)
    body = at + 4 + struct.unpack_from(">i", data, at)[0]
    parts = []
    for start in (at + 4 + starts).tolist():
        (size,) = struct.unpack_from(">i", data, start)
        parts.append(read_records(data, start + 4, size, key_type, 2))
    keys = pa.concat_arrays([p[0] for p in parts]) if parts else pa.array([], key_type)
    offsets = np.concatenate([p[1][0] for p in parts]) if parts else np.zeros(0, np.int64)
    if len(keys) != count:
        raise ValueError(f"it has {len(keys)} keys, but its head says {count}")
    return _Content(rows, keys, offsets, bool(has_null), null_offset, body)


class BitmapBuilder:
    """A builder of the bitmaps of one column of one file."""

    def __init__(self, kind: AtomicType, version: int, block: int) -> None:
        self._kind, self._version, self._block = kind, version, block
        self._rows = Collected(kind)

    def add(self, values: pa.Array) -> None:
        """See `Builder.add`."""
        self._rows.add(values)

    def finish(self) -> bytes | None:
        """See `Builder.finish`. `None`: a key is too long for a block."""
        keys, codes = self._rows.coded()
        order = _order(keys, codes, self._kind)
        rank = np.empty(len(keys) + 1, np.int64)
        rank[order], rank[-1] = np.arange(1, len(keys) + 1), 0  # null rows first, then keys in the iteration order
        groups, rows = grouped(rank[codes])
        size = np.bincount(groups, minlength=len(keys) + 1)
        several = size > 1
        bitmap_of, stored_rows = np.cumsum(several) - 1, several[groups]
        body, starts = bitmaps(bitmap_of[groups[stored_rows]], rows[stored_rows], int(several.sum()))
        first = np.append(rows, 0)[np.searchsorted(groups, np.arange(len(size)))]
        offsets = np.where(several, starts[bitmap_of], -1 - first)
        lengths = np.where(several, np.diff(np.append(starts, 0))[bitmap_of], _SINGLE_ROW)
        keys = keys.take(pa.array(order))
        head = struct.pack(">biib", self._version, len(codes), len(keys), bool(size[0]))
        if size[0]:
            head += struct.pack(">i", offsets[0])
        if self._version == 1:
            return head + records(keys, offsets[1:])[0].tobytes() + body.tobytes()
        if size[0]:
            head += struct.pack(">i", lengths[0] if several[0] else _LENGTH_OF_ONE)
        blocks = _blocks(keys, offsets[1:], lengths[1:], self._kind, self._block)
        return None if blocks is None else head + blocks + body.tobytes()


def _order(keys: pa.Array, codes: np.ndarray, kind: AtomicType) -> np.ndarray:
    """Return the order of the keys in a hash table that is filled row by row; a full table grows at the next row."""
    present = codes[codes >= 0]
    last_is_new = len(present) > 0 and int(present[-1]) == len(keys) - 1 and int((present == present[-1]).sum()) == 1
    return walk(key_hashes(keys, kind), len(keys) - last_is_new, newest_first=True)


def _blocks(keys: pa.Array, offsets: np.ndarray, lengths: np.ndarray, kind: AtomicType, limit: int) -> bytes | None:
    """Return the sorted keys in blocks, after an index of each block's first key; `None`: a key exceeds a block."""
    order = ascending(keys, kind)
    keys, offsets, lengths = keys.take(pa.array(order)), offsets[order], lengths[order]
    entry = key_sizes(keys) + 8
    if len(entry) and int(entry.max()) > limit - 4:
        return None
    groups = filled(entry, limit - 4)
    data, starts = records(keys, offsets, lengths)
    parts = [struct.pack(">i", g.stop - g.start) + data[starts[g.start] : starts[g.stop]].tobytes() for g in groups]
    sizes = np.array([len(p) for p in parts], np.int64)
    firsts = keys.take(pa.array([g.start for g in groups], pa.int64()))
    index = records(firsts, np.cumsum(sizes) - sizes)[0].tobytes()
    return struct.pack(">i", len(groups)) + index + struct.pack(">i", int(sizes.sum())) + b"".join(parts)


def _settings(options: Mapping[str, str]) -> tuple[int, int]:
    version = options.get("version", "2").strip()
    if version not in ("1", "2"):
        raise ValueError(f"'version' is {version!r}, not 1 or 2")
    return int(version), memory_size(options.get("index-block-size", _BLOCK))
