"""Columns of lists and maps as flat elements: whose row they are of, which of them are equal, and back to lists.

Functions on collections decide for every element whether it stays; no list is ever built in Python.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as pt

from paimon_core.merge.aggregate.input import AggregateInput, offsets, valid
from paimon_core.merge.normalized_keys import Column
from paimon_core.merge.segments import sizes_of
from paimon_core.types.selection import Mask, Positions


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """The elements of a column in arrival order, for one feed.

    ``values`` are the elements (of a map its entries, structs of key and value); ``row`` and ``group`` the row and the
    group each is of, ``retract`` whether its row takes back.
    """

    column: Column
    feed: AggregateInput
    values: Column
    row: Positions
    group: Positions
    retract: Mask

    @staticmethod
    def of(column: Column, feed: AggregateInput) -> "Elements":
        """Spread a column of lists or maps; a null has no elements."""
        values, row = spread(column)
        return Elements(column, feed, values, row, feed.group()[row], feed.retract[row])

    def line(self) -> Positions:
        """The place of each element where rows lie as they end up: those of late rows under what was there."""
        rows = self.feed.line()
        if rows is None:
            return np.arange(len(self.row))
        place = np.empty_like(rows)
        place[rows] = np.arange(len(rows))
        line = np.empty(len(self.row), np.int64)
        line[np.argsort(place[self.row], kind="stable")] = np.arange(len(self.row))
        return line

    def gather(self, keep: Positions, absent: Mask, values: Column | None = None) -> Column:
        """One list or map a group of the elements kept, given in their order; null where absent.

        ``values`` stand in for the elements kept, one each.
        """
        at = pa.array(offsets(np.bincount(self.group[keep], minlength=len(self.feed.starts))))
        kept = self.values.take(pa.array(keep)) if values is None else values
        kind, mask = self.column.type, pa.array(absent)
        if pt.is_map(kind):
            return pa.MapArray.from_arrays(at, *kept.flatten(), kind, mask=mask)
        return pa.ListArray.from_arrays(at, kept, kind, mask=mask)


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Elements of one group that are equal: ``order`` sorts by (group, value), then by arrival; class i begins at
    ``starts[i]`` of that order and has ``counts[i]`` elements."""

    order: Positions
    starts: Positions
    counts: Positions

    @staticmethod
    def of(code: Positions, group: Positions) -> "Classes":
        """The classes of equal codes."""
        wide = group * (code.max(initial=0) + 2) + code + 1
        order = np.argsort(wide, kind="stable")
        starts = np.flatnonzero(np.diff(wide[order], prepend=-1))
        return Classes(order, starts, sizes_of(starts, len(order)))

    def spread(self, of_class: Positions) -> Positions:
        """A number of each class, given to its elements in class order."""
        return np.repeat(of_class, self.counts)

    def last(self, mask: Mask) -> Positions:
        """The last place (in class order) of each class where the mask (in class order) holds, else -1."""
        return self.best(np.where(mask, np.arange(len(mask)), -1))

    def first(self, mask: Mask) -> Positions:
        """The first place (in class order) of each class where the mask (in class order) holds, else len(mask)."""
        return -self.best(np.where(mask, -np.arange(len(mask)), -len(mask)))

    def best(self, rank: Positions) -> Positions:
        """The highest rank (in class order) of each class."""
        if not len(self.starts):
            return np.zeros(0, np.int64)
        highest: Positions = np.maximum.reduceat(rank, self.starts)
        return highest


def spread(column: Column) -> tuple[Column, Positions]:
    """All elements of a column of lists or maps, and the row of each."""
    lengths = np.where(valid(column), np.diff(column.offsets.to_numpy()), 0)
    if pt.is_map(column.type):
        column = column.cast(pa.list_(column.type.field(0)))
    return column.flatten(), np.repeat(np.arange(len(column)), lengths)


def codes(values: Column, *, one_zero: bool = False) -> Positions:
    """Numbers that are equal where the values are; -1 where they are null.

    NaN equals itself and maps are equal in any order; -0.0 equals 0.0 only with ``one_zero``. So values that Java holds
    to be different are equal here: binary elements of one content, inner arrays with nulls that were read from files,
    inner NaN.
    """
    kind = values.type
    if pt.is_struct(kind):
        parts = [codes(child, one_zero=one_zero) for child in values.flatten()]
        words, ends = np.stack(parts, 1), len(parts) * np.arange(len(values) + 1)
    elif pt.is_list(kind) or pt.is_map(kind) or pt.is_fixed_size_list(kind):
        if pt.is_fixed_size_list(kind):
            values = values.cast(pa.list_(kind.value_field))
        inner, row = spread(values)
        words, ends = codes(inner, one_zero=one_zero), np.searchsorted(row, np.arange(len(values) + 1))
        if pt.is_map(kind):
            words = words[np.lexsort((words, row))]
    else:
        return _numbered(pc.add(values, pa.scalar(0, kind)) if one_zero and pt.is_floating(kind) else values)
    data = pa.py_buffer(np.ascontiguousarray(words, np.int64))
    runs = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(values), [None, pa.py_buffer(8 * ends.astype(np.int64)), data]
    )
    return _numbered(pc.if_else(values.is_valid(), runs, None) if values.null_count else runs)


def _numbered(values: Column) -> Positions:
    if pt.is_null(values.type):
        return np.full(len(values), -1, np.int64)
    numbered: Positions = values.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    return numbered
