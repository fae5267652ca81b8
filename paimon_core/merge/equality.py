"""Which values of two columns are equal, as Java's changelogs tell it.

Of columns, and of fields of rows, NULL equals NULL, NaN nothing, and -0.0 equals 0.0. Elements of lists and values of
maps that are NULL equal nothing. Maps are compared key by key, in any order, and keys as Java's boxes are: NaN equals
NaN, -0.0 differs from 0.0, bytes differ from all bytes. Numbers as values of a map are compared as boxes are as well,
by identity: Java keeps one box of each number from -128 to 127, and none of floats.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.merge.normalized_keys import Column
from paimon_core.types.selection import take_rows

Mask = npt.NDArray[np.bool_]


def equal_values(one: Column, other: Column) -> Mask:
    """Row by row, of two arrays of one type and length."""
    if not len(one):
        return np.zeros(0, np.bool_)
    here, there = _valid(one), _valid(other)
    both = here & there
    same = ~here & ~there
    if both.all():
        same = _compared(one, other)
    elif both.any():
        rows = pa.array(np.flatnonzero(both))
        same[both] = _compared(one.take(rows), other.take(rows))
    return same


def _valid(column: Column) -> Mask:
    mask: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return mask


def _compared(one: Column, other: Column) -> Mask:
    """Where no row is null."""
    kind: Any = one.type
    if pa.types.is_struct(kind):
        pairs, alike = zip(one.flatten(), other.flatten(), strict=True), np.ones(len(one), np.bool_)
        for a, b in pairs:
            alike &= equal_values(a, b)
        return alike
    if pa.types.is_fixed_size_list(kind):
        sizes = np.full(len(one), kind.list_size)
        return _throughout(sizes, equal_values(one.flatten(), other.flatten()))
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _lists(one, other)
    found: Mask = pc.equal(one, other).to_numpy(zero_copy_only=False)
    return found


def _lists(one: Column, other: Column) -> Mask:
    sizes, theirs = (np.diff(column.offsets.to_numpy()) for column in (one, other))
    alike: Mask = sizes == theirs
    if not alike.any():
        return alike
    sizes = sizes[alike]
    left, right = (take_rows(column, np.flatnonzero(alike)) for column in (one, other))
    if pa.types.is_map(one.type):
        equal = _entries(left, right, np.repeat(np.arange(len(sizes)), sizes))
    else:
        equal = _members(left.flatten(), right.flatten())
    alike[alike] = _throughout(sizes, equal)
    return alike


def _members(one: Column, other: Column) -> Mask:
    return equal_values(one, other) & _valid(one)


def _entries(one: Column, other: Column, maps: npt.NDArray[np.int64]) -> Mask:
    """Entry by entry of ``maps`` of equal sizes, each map's in the order of its keys."""
    codes = _codes(one.keys, other.keys)
    orders = [np.lexsort((code, maps)) for code in codes]
    keys = [code[order] for code, order in zip(codes, orders, strict=True)]
    here, there = (take_rows(column.items, order) for column, order in zip((one, other), orders, strict=True))
    same: Mask = keys[0] == keys[1]
    return same & _members(here, there) & _one_box(here)


def _codes(one: Column, other: Column) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """A number for each key of two columns, the same for equal keys."""
    kind: Any = one.type
    if pa.types.is_floating(kind):
        return _bits(one), _bits(other)
    if pa.types.is_binary(kind):
        return np.zeros(len(one), np.int64), np.ones(len(other), np.int64)
    if pa.types.is_nested(kind):  # Java fails on these, or not, as the file has it: the order counts
        number = np.arange(len(one))
        return number, np.where(equal_values(one, other), number, -1)
    codes = pa.concat_arrays([one, other]).dictionary_encode().indices.to_numpy()
    return codes[: len(one)], codes[len(one) :]


def _bits(floats: Column) -> npt.NDArray[np.int64]:
    """One number for all NaN, two for the zeros."""
    values = floats.to_numpy().astype(np.float64)
    return np.where(np.isnan(values), np.nan, values).view(np.int64)


def _one_box(values: Column) -> Mask:
    """Values that a map's look-up in Java gives the same object for, each time."""
    kind: Any = values.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        values = values.view(pa.int32())
    elif not pa.types.is_integer(kind):
        return np.full(len(values), not pa.types.is_floating(kind))
    numbers = values.fill_null(0).to_numpy()
    kept: Mask = (numbers >= -128) & (numbers <= 127)
    return kept


def _throughout(sizes: npt.NDArray[Any], equal: Mask) -> Mask:
    """Whether all elements of each list are equal."""
    differing = np.concatenate([[0], np.cumsum(~equal)])
    ends = np.cumsum(sizes)
    unequal: Mask = differing[ends] > differing[ends - sizes]
    return ~unequal
