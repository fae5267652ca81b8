"""Equality of the values of two columns, as Java decides it for changelogs.

In columns and in fields of rows NULL equals NULL, NaN equals nothing, and -0.0 equals 0.0. Elements of lists and values
of maps that are NULL equal nothing. Maps are compared key by key, in any order, and their keys as Java's boxed objects:
NaN equals NaN, -0.0 differs from 0.0, and a byte array equals no other. Numbers that are values of a map are compared
by object identity: Java caches one object for each integer from -128 to 127, and none for floats.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.merge.normalized_keys import Column
from paimon_core.types.selection import take_rows

Mask = npt.NDArray[np.bool_]


def equal_values(left: Column, right: Column, *, exact: bool = False) -> Mask:
    """Return True for each row where two arrays of one type and length have equal values.

    ``exact``: compare like the bytes of Java's rows. NaN equals NaN, -0.0 differs from 0.0, NULL equals NULL inside
    values too, and map entries must be in the same order.
    """
    if not len(left):
        return np.zeros(0, np.bool_)
    left_valid, right_valid = _valid(left), _valid(right)
    both = left_valid & right_valid
    same = ~left_valid & ~right_valid
    if both.all():
        same = _compared(left, right, exact)
    elif both.any():
        rows = pa.array(np.flatnonzero(both))
        same[both] = _compared(left.take(rows), right.take(rows), exact)
    return same


def _valid(column: Column) -> Mask:
    mask: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return mask


def _compared(left: Column, right: Column, exact: bool) -> Mask:
    """Compare like :func:`equal_values`. REQUIRES: no value is null."""
    kind: Any = left.type
    if pa.types.is_struct(kind):
        pairs, alike = zip(left.flatten(), right.flatten(), strict=True), np.ones(len(left), np.bool_)
        for a, b in pairs:
            alike &= equal_values(a, b, exact=exact)
        return alike
    if pa.types.is_fixed_size_list(kind):
        sizes = np.full(len(left), kind.list_size)
        return _throughout(sizes, equal_values(left.flatten(), right.flatten(), exact=exact))
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _lists(left, right, exact)
    if exact and pa.types.is_floating(kind):
        bits: Mask = _bits(left) == _bits(right)
        return bits
    matches: Mask = pc.equal(left, right).to_numpy(zero_copy_only=False)
    return matches


def _lists(left: Column, right: Column, exact: bool) -> Mask:
    sizes, right_sizes = (np.diff(column.offsets.to_numpy()) for column in (left, right))
    alike: Mask = sizes == right_sizes
    if not alike.any():
        return alike
    sizes = sizes[alike]
    left_rows, right_rows = (take_rows(column, np.flatnonzero(alike)) for column in (left, right))
    if exact:
        equal = np.ones(int(sizes.sum()), np.bool_)
        for part in ("keys", "items") if pa.types.is_map(left.type) else ("values",):
            equal &= equal_values(*(_part_of(lists, part) for lists in (left_rows, right_rows)), exact=True)
    elif pa.types.is_map(left.type):
        equal = _entries(left_rows, right_rows, np.repeat(np.arange(len(sizes)), sizes))
    else:
        equal = _members(left_rows.flatten(), right_rows.flatten())
    alike[alike] = _throughout(sizes, equal)
    return alike


def _part_of(lists: Any, part: str) -> Column:
    """Return the elements, keys or values of all lists or maps. REQUIRES: no list is null."""
    elements: Column = lists.flatten() if part == "values" else getattr(lists, part)
    return elements


def _members(left: Column, right: Column) -> Mask:
    return equal_values(left, right) & _valid(left)


def _entries(left: Column, right: Column, maps: npt.NDArray[np.int64]) -> Mask:
    """Compare maps of equal sizes entry by entry, in the order of their keys; ``maps[i]``: the map of entry i."""
    codes = _codes(left.keys, right.keys)
    orders = [np.lexsort((code, maps)) for code in codes]
    keys = [code[order] for code, order in zip(codes, orders, strict=True)]
    ours, theirs = (take_rows(column.items, order) for column, order in zip((left, right), orders, strict=True))
    same: Mask = keys[0] == keys[1]
    return same & _members(ours, theirs) & _one_box(ours)


def _codes(left: Column, right: Column) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return a number for each key of two columns; equal keys have equal numbers."""
    kind: Any = left.type
    if pa.types.is_floating(kind):
        return _bits(left), _bits(right)
    if pa.types.is_binary(kind):
        return np.zeros(len(left), np.int64), np.ones(len(right), np.int64)
    if pa.types.is_nested(kind):  # Java fails on these for some files; for the others the stored order counts
        number = np.arange(len(left))
        return number, np.where(equal_values(left, right), number, -1)
    codes = pa.concat_arrays([left, right]).dictionary_encode().indices.to_numpy()
    return codes[: len(left)], codes[len(left) :]


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
