"""Equality of the values of two columns, as Java decides it for changelogs.

In columns and in fields of rows NULL equals NULL, NaN equals nothing, and -0.0 equals 0.0. Elements of lists
and values of maps that are NULL equal nothing. Maps are compared key by key, in any order, and keys as Java's boxes
are: NaN equals NaN, -0.0 differs from 0.0, bytes differ from all bytes. Numbers as values
of a map are compared by the identity of their boxes: Java keeps one box of each number from -128 to 127, and none of
floats.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.merge.normalized_keys import Column
from paimon_core.types.selection import take_rows

Mask = npt.NDArray[np.bool_]


def equal_values(one: Column, other: Column, *, exact: bool = False) -> Mask:
    """Return True for each row where two arrays of one type and length have equal values.

    ``exact``: as Java compares the bytes of rows: NaN equals NaN, -0.0 differs from 0.0, NULL equals NULL inside of
    values, too, and maps have their entries in one order.
    """
    if not len(one):
        return np.zeros(0, np.bool_)
    here, there = _valid(one), _valid(other)
    both = here & there
    same = ~here & ~there
    if both.all():
        same = _compared(one, other, exact)
    elif both.any():
        rows = pa.array(np.flatnonzero(both))
        same[both] = _compared(one.take(rows), other.take(rows), exact)
    return same


def _valid(column: Column) -> Mask:
    mask: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return mask


def _compared(one: Column, other: Column, exact: bool) -> Mask:
    """As :func:`equal_values`. REQUIRES: no value is null."""
    kind: Any = one.type
    if pa.types.is_struct(kind):
        pairs, alike = zip(one.flatten(), other.flatten(), strict=True), np.ones(len(one), np.bool_)
        for a, b in pairs:
            alike &= equal_values(a, b, exact=exact)
        return alike
    if pa.types.is_fixed_size_list(kind):
        sizes = np.full(len(one), kind.list_size)
        return _throughout(sizes, equal_values(one.flatten(), other.flatten(), exact=exact))
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _lists(one, other, exact)
    if exact and pa.types.is_floating(kind):
        bits: Mask = _bits(one) == _bits(other)
        return bits
    found: Mask = pc.equal(one, other).to_numpy(zero_copy_only=False)
    return found


def _lists(one: Column, other: Column, exact: bool) -> Mask:
    sizes, theirs = (np.diff(column.offsets.to_numpy()) for column in (one, other))
    alike: Mask = sizes == theirs
    if not alike.any():
        return alike
    sizes = sizes[alike]
    left, right = (take_rows(column, np.flatnonzero(alike)) for column in (one, other))
    if exact:
        equal = np.ones(int(sizes.sum()), np.bool_)
        for part in ("keys", "items") if pa.types.is_map(one.type) else ("values",):
            equal &= equal_values(*(_part_of(lists, part) for lists in (left, right)), exact=True)
    elif pa.types.is_map(one.type):
        equal = _entries(left, right, np.repeat(np.arange(len(sizes)), sizes))
    else:
        equal = _members(left.flatten(), right.flatten())
    alike[alike] = _throughout(sizes, equal)
    return alike


def _part_of(lists: Any, part: str) -> Column:
    """Return the elements, keys or values of all lists or maps. REQUIRES: no list is null."""
    found: Column = lists.flatten() if part == "values" else getattr(lists, part)
    return found


def _members(one: Column, other: Column) -> Mask:
    return equal_values(one, other) & _valid(one)


def _entries(one: Column, other: Column, maps: npt.NDArray[np.int64]) -> Mask:
    """Compare maps of equal sizes entry by entry, in the order of their keys; ``maps[i]``: the map of entry i."""
    codes = _codes(one.keys, other.keys)
    orders = [np.lexsort((code, maps)) for code in codes]
    keys = [code[order] for code, order in zip(codes, orders, strict=True)]
    here, there = (take_rows(column.items, order) for column, order in zip((one, other), orders, strict=True))
    same: Mask = keys[0] == keys[1]
    return same & _members(here, there) & _one_box(here)


def _codes(one: Column, other: Column) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return a number for each key of two columns; equal keys have equal numbers."""
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
    """Return the bits of the values as doubles, with one pattern for all NaN and two for the zeros."""
    values = floats.to_numpy().astype(np.float64)
    return np.where(np.isnan(values), np.nan, values).view(np.int64)


def _one_box(values: Column) -> Mask:
    """Return True for values that Java boxes as the same object each time."""
    kind: Any = values.type
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        values = values.view(pa.int32())
    elif not pa.types.is_integer(kind):
        return np.full(len(values), not pa.types.is_floating(kind))
    numbers = values.fill_null(0).to_numpy()
    cached: Mask = (numbers >= -128) & (numbers <= 127)
    return cached


def _throughout(sizes: npt.NDArray[Any], equal: Mask) -> Mask:
    """Return, for each list, True if all its elements are equal; ``sizes``: elements of each list."""
    differing = np.concatenate([[0], np.cumsum(~equal)])
    ends = np.cumsum(sizes)
    unequal: Mask = differing[ends] > differing[ends - sizes]
    return ~unequal
