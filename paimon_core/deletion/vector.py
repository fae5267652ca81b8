"""Deletion vectors: the positions of deleted rows of one data file, and their stored bytes (format 8.3).

The bytes begin with the size of magic number and bitmap (4 bytes, big endian). A magic number that identifies the form
and a bitmap follow. The CRC-32 (big endian) of magic number and bitmap ends them.

- 32-bit form: the magic number is big endian; the bitmap is a portable roaring bitmap.
- 64-bit form: the magic number is little endian; the bitmap begins with the number of upper halves (8 bytes). For each
  upper half, in ascending order, the half (4 bytes) and a portable roaring bitmap of its lower halves follow.
"""

import array
import itertools
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.types.selection import Mask, Positions
from paimon_core.types.sorted_values import distinct

_MAGIC_32 = struct.pack(">i", 1581511376)
_MAGIC_64 = struct.pack("<i", 1681511377)
_FRAME = 8  # bytes of size and checksum


@dataclass(frozen=True, slots=True, eq=False)
class DeletionVector:
    """The positions of deleted rows: numbers from 0 in the physical order of a data file. Create it with :meth:`of`."""

    _positions: Positions

    @staticmethod
    def of(positions: npt.ArrayLike) -> "DeletionVector":
        """Return the vector of ``positions``, in any order, with or without duplicates.

        Raises InvalidInputError for a negative position.
        """
        unique = distinct(np.sort(np.asarray(positions, np.int64)))
        if unique.size and unique[0] < 0:
            raise InvalidInputError(f"a row cannot be deleted at position {unique[0]}: positions count from 0")
        return _of_sorted(unique)

    def positions(self) -> Positions:
        """Return the positions, ascending, as a read-only ``int64`` array."""
        return self._positions

    @property
    def cardinality(self) -> int:
        """The number of deleted rows."""
        return len(self._positions)

    def union(self, other: "DeletionVector") -> "DeletionVector":
        """Return the vector of the rows that either vector deletes."""
        if not other.cardinality:
            return self
        if not self.cardinality:
            return other
        both = np.concatenate([self._positions, other._positions])
        both.sort(kind="stable")
        return _of_sorted(distinct(both))

    def within(self, first: int, count: int) -> "DeletionVector":
        """Return the deleted rows among rows ``first`` to ``first + count - 1``, as positions from ``first``."""
        begin, end = np.searchsorted(self._positions, (first, first + count))
        return _of_sorted(self._positions[begin:end] - first)

    def mask(self, first: int, count: int) -> Mask:
        """Return a boolean array of length ``count``: True at ``i`` if row ``first + i`` is deleted."""
        begin, end = np.searchsorted(self._positions, (first, first + count))
        deleted = np.zeros(count, np.bool_)
        deleted[self._positions[begin:end] - first] = True
        return deleted

    def among(self, positions: Positions) -> Mask:
        """Return a boolean array: True at ``i`` if row ``positions[i]`` is deleted. REQUIRES: ascending positions."""
        count = len(positions)
        if not count or not self.cardinality:
            return np.zeros(count, np.bool_)
        first = int(positions[0])
        if int(positions[-1]) - first == count - 1:
            return self.mask(first, count)
        at = np.minimum(np.searchsorted(self._positions, positions), self.cardinality - 1)
        return np.equal(self._positions[at], positions)

    def to_bytes(self, bitmap64: bool) -> bytes:
        """Return size, magic number, bitmap and checksum, in the 64-bit form or the 32-bit form.

        The 32-bit form holds positions below ``2**31`` only; InvalidInputError for larger positions.
        """
        if bitmap64:
            body = _MAGIC_64 + self._bitmap64()
        elif self.cardinality and self._positions[-1] >= 1 << 31:
            raise InvalidInputError(
                f"position {self._positions[-1]} does not fit a deletion vector of 32 bits: "
                "set 'deletion-vectors.bitmap64' = 'true'"
            )
        else:
            body = _MAGIC_32 + _bitmap(self._positions)
        return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))

    def _bitmap64(self) -> bytes:
        """Return the bitmap of the 64-bit form."""
        high = self._positions >> 32
        keys, begins = np.unique(high, return_index=True)
        parts = [struct.pack("<q", len(keys))]
        for key, (begin, end) in zip(keys.tolist(), itertools.pairwise([*begins.tolist(), len(high)]), strict=True):
            parts += [struct.pack("<i", key), _bitmap(self._positions[begin:end] & 0xFFFFFFFF)]
        return b"".join(parts)

    @staticmethod
    def from_bytes(data: bytes, where: str) -> "DeletionVector":
        """Return the vector that :meth:`to_bytes` stored, in either form; bytes after the checksum are ignored.

        ``where``: the location of the bytes, for the message of a CorruptedError.
        """
        size = int.from_bytes(data[:4], "big")
        body, end = data[4 : 4 + size], size + _FRAME
        if len(data) < end or size < len(_MAGIC_32):
            raise CorruptedError(f"{where}: a deletion vector needs {end} bytes, but the file has {len(data)}")
        if zlib.crc32(body) != int.from_bytes(data[end - 4 : end], "big"):
            raise CorruptedError(f"{where}: the checksum of a deletion vector is wrong: its file was damaged")
        magic, bitmap = body[:4], body[4:]
        if magic not in (_MAGIC_32, _MAGIC_64):
            raise CorruptedError(f"{where}: a deletion vector begins with the unknown bytes {magic.hex()}")
        try:
            return _of_sorted(_decoded(bitmap) if magic == _MAGIC_32 else _decoded64(bitmap))
        except (ValueError, IndexError, struct.error) as error:
            raise CorruptedError(f"{where}: a deletion vector is not a roaring bitmap: {error}") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeletionVector):
            return NotImplemented
        return np.array_equal(self._positions, other._positions)

    def __hash__(self) -> int:
        return hash(self._positions.tobytes())

    def __repr__(self) -> str:
        return f"DeletionVector({self.cardinality} rows)"


def _of_sorted(positions: Positions) -> DeletionVector:
    """Return the vector of these distinct ascending positions, and make the array read-only."""
    positions.flags.writeable = False
    return DeletionVector(positions)


def _bitmap(values: Positions) -> bytes:
    bitmap = BitMap(array.array("I", values.astype(np.uint32).tobytes()))  # pyroaring copies an array.array as a whole
    bitmap.run_optimize()
    return bytes(bitmap.serialize())


def _decoded(data: bytes) -> Positions:
    return _values(BitMap.deserialize(data))


def _values(bitmap: Any) -> Positions:
    return np.asarray(bitmap.to_array()).astype(np.int64)


def _decoded64(data: bytes) -> Positions:
    """Return the positions of a 64-bit bitmap.

    The length of a half's bitmap is not stored; it is the length of this bitmap when serialised again.
    """
    (count,) = struct.unpack_from("<q", data)
    at, parts, above = 8, [np.zeros(0, np.int64)], -1
    for _ in range(count):
        (key,) = struct.unpack_from("<i", data, at)
        if key <= above:
            raise ValueError(f"the upper half {key} follows {above}")
        bitmap = BitMap.deserialize(data[at + 4 :])
        parts.append(_values(bitmap) + (key << 32))
        at, above = at + 4 + len(bitmap.serialize()), key
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes are left over")
    return np.concatenate(parts)
