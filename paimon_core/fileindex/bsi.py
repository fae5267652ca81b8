"""The index kind bsi: for every bit of the values, a bitmap of the rows with this bit (format 9.5)."""

import struct
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from paimon_core.fileindex.index import Found, Test, check_root, check_rows
from paimon_core.fileindex.roaring import bitmap, decode_mask
from paimon_core.fileindex.values import LONG_DIGITS, NUMBER_ROOTS, matching, restored, stored
from paimon_core.row.stored_values import nulls, numbers
from paimon_core.types.datatype import AtomicType

_VERSION = 1
_LEAST = np.iinfo(np.int64).min
_MOST_SLICES = 64


class BitSliced:
    """``bsi``. No options."""

    name = "bsi"

    def check(self, kind: AtomicType, options: Mapping[str, str]) -> None:
        """See `FileIndex.check`."""
        check_root(kind, NUMBER_ROOTS | {"DECIMAL"})
        check_digits(kind)

    def builder(self, kind: AtomicType, options: Mapping[str, str]) -> "BitSlicedBuilder":
        """See `FileIndex.builder`."""
        return BitSlicedBuilder(kind)

    def search(self, data: bytes, kind: AtomicType, test: Test, rows: int) -> Found:
        """See `FileIndex.search`."""
        version, count = struct.unpack_from(">bi", data)
        if version != _VERSION:
            raise ValueError(f"unknown version {version} of a bit-sliced index; the supported version is {_VERSION}")
        check_rows(count, rows)
        values, present, at = np.zeros(rows, np.int64), np.zeros(rows, bool), 5
        for sign in (1, -1):
            at += 1
            if data[at - 1 : at] == b"\1":
                with_sign, magnitudes, at = _read_slices(data, at, rows)
                values, present = np.where(with_sign, sign * magnitudes, values), present | with_sign
        keys = pa.array(values.astype(_width(kind)), mask=~present)
        return matching(test, restored(keys, kind), kind)


def check_digits(kind: AtomicType) -> None:
    """Raise ValueError for a decimal that does not fit a 64-bit number."""
    if kind.root == "DECIMAL" and (kind.precision or 0) > LONG_DIGITS:
        raise ValueError(f"{kind} has more than {LONG_DIGITS} digits")


def _width(kind: AtomicType) -> type[np.signedinteger]:
    widths: dict[str, type[np.signedinteger]] = {
        "TINYINT": np.int8,
        "SMALLINT": np.int16,
        "INT": np.int32,
        "DATE": np.int32,
        "TIME": np.int32,
    }
    return widths.get(kind.root, np.int64)


class BitSlicedBuilder:
    """A builder of the slices of one column of one file. Memory: nine bytes per row."""

    def __init__(self, kind: AtomicType) -> None:
        self._kind = kind
        self._values: list[np.ndarray] = []
        self._present: list[np.ndarray] = []

    def add(self, values: pa.Array) -> None:
        """See `Builder.add`."""
        column = stored(values, self._kind)
        self._values.append(numbers(column).astype(np.int64))
        self._present.append(~nulls(column))

    def finish(self) -> bytes | None:
        """See `Builder.finish`. `None`: the negative of a value does not fit 64 bits."""
        values = np.concatenate(self._values) if self._values else np.zeros(0, np.int64)
        present = np.concatenate(self._present) if self._present else np.zeros(0, bool)
        if _LEAST in values[present]:
            return None
        parts = [struct.pack(">bi", _VERSION, len(values))]
        for chosen in (present & (values >= 0), present & (values < 0)):
            rows = np.flatnonzero(chosen)
            parts.append(b"\1" + _slices(rows, np.abs(values[rows])) if len(rows) else b"\0")
        return b"".join(parts)


def _slices(rows: np.ndarray, magnitudes: np.ndarray) -> bytes:
    """Return the slices of these rows' non-negative values. The base of the values is always 0, as in Java."""
    most = int(magnitudes.max())
    parts = [struct.pack(">bqq", _VERSION, 0, most), bitmap(rows), struct.pack(">i", most.bit_length())]
    return b"".join([*parts, *(bitmap(rows[magnitudes >> bit & 1 == 1]) for bit in range(most.bit_length()))])


def _read_slices(data: bytes, at: int, rows: int) -> tuple[np.ndarray, np.ndarray, int]:
    version, least, _ = struct.unpack_from(">bqq", data, at)
    if version != _VERSION:
        raise ValueError(f"unknown version {version} of bit slices; the supported version is {_VERSION}")
    has_value, at = decode_mask(data, at + 17, rows)
    (count,) = struct.unpack_from(">i", data, at)
    if not 0 <= count <= _MOST_SLICES:
        raise ValueError(f"it has {count} slices; at most {_MOST_SLICES} are possible")
    sums, at = np.zeros(rows, np.int64), at + 4
    for bit in range(count):
        has_bit, at = decode_mask(data, at, rows)
        sums |= has_bit.astype(np.int64) << bit
    return has_value, sums + least, at
