"""Which values of two columns are equal, nested ones too; NULL equals NULL, NaN nothing, -0.0 equals 0.0."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.merge.words import Column

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
        return _elements(sizes, sizes, equal_values(one.flatten(), other.flatten()))
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _lists(one, other)
    found: Mask = pc.equal(one, other).to_numpy(zero_copy_only=False)
    return found


def _lists(one: Column, other: Column) -> Mask:
    sizes, theirs = (np.diff(column.offsets.to_numpy()) for column in (one, other))
    alike: Mask = sizes == theirs
    if not alike.any():
        return alike
    rows = pa.array(np.flatnonzero(alike))
    left, right = (_entries(column.take(rows)) for column in (one, other))
    alike[alike] = _elements(sizes[alike], theirs[alike], equal_values(left, right))
    return alike


def _entries(column: Column) -> Column:
    if not pa.types.is_map(column.type):
        return column.flatten()
    first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
    entries = [column.keys.slice(first, last - first), column.items.slice(first, last - first)]
    return pa.StructArray.from_arrays(entries, names=["key", "value"])


def _elements(sizes: npt.NDArray[Any], theirs: npt.NDArray[Any], equal: Mask) -> Mask:
    """Whether all elements of each list are equal. REQUIRES: lists of equal sizes."""
    assert np.array_equal(sizes, theirs)
    differing = np.concatenate([[0], np.cumsum(~equal)])
    ends = np.cumsum(sizes)
    unequal: Mask = differing[ends] > differing[ends - sizes]
    return ~unequal
