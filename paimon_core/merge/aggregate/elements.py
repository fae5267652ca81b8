"""Flat elements of list and map columns with their row numbers, and lists and maps built from elements.

Functions on collections choose elements by position and never build a Python list of values.
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
    """The elements of a column in order of arrival.

    ``values``: the elements (for maps, structs of key and value). ``row``, ``group``: the number of each element's row
    and group. ``retract``: mask of elements whose row retracts.
    """

    column: Column
    inputs: AggregateInput
    values: Column
    row: Positions
    group: Positions
    retract: Mask

    @staticmethod
    def of(column: Column, inputs: AggregateInput) -> "Elements":
        """Return the elements of a column of lists or maps; a null is an empty list or map."""
        values, row = spread(column)
        return Elements(column, inputs, values, row, inputs.group()[row], inputs.retract[row])

    def final_rank(self) -> Positions:
        """Return the rank of each element in the final order of rows, where late rows are before earlier ones."""
        rows = self.inputs.final_order()
        if rows is None:
            return np.arange(len(self.row))
        row_rank = np.empty_like(rows)
        row_rank[rows] = np.arange(len(rows))
        rank = np.empty(len(self.row), np.int64)
        rank[np.argsort(row_rank[self.row], kind="stable")] = np.arange(len(self.row))
        return rank

    def gather(self, keep: Positions, absent: Mask, values: Column | None = None) -> Column:
        """Return one list or map per group, with the elements ``keep`` in that order; null for groups in ``absent``.

        ``values``: one replacement for each element of ``keep``; `None`: the elements themselves.
        """
        ends = pa.array(offsets(np.bincount(self.group[keep], minlength=len(self.inputs.starts))))
        chosen = self.values.take(pa.array(keep)) if values is None else values
        kind, mask = self.column.type, pa.array(absent)
        if pt.is_map(kind):
            return pa.MapArray.from_arrays(ends, *chosen.flatten(), kind, mask=mask)
        return pa.ListArray.from_arrays(ends, chosen, kind, mask=mask)


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Classes of equal elements within each group.

    ``order`` sorts by (group, value), then by arrival. Class i is `order[starts[i]:starts[i] + counts[i]]`.
    """

    order: Positions
    starts: Positions
    counts: Positions

    @staticmethod
    def of(code: Positions, group: Positions) -> "Classes":
        """Return the classes of equal codes."""
        wide = group * (code.max(initial=0) + 2) + code + 1
        order = np.argsort(wide, kind="stable")
        starts = np.flatnonzero(np.diff(wide[order], prepend=-1))
        return Classes(order, starts, sizes_of(starts, len(order)))

    def spread(self, of_class: Positions) -> Positions:
        """Repeat each class's number for each of its elements, in class order."""
        return np.repeat(of_class, self.counts)

    def last(self, mask: Mask) -> Positions:
        """Return each class's last position (in class order) where the mask (in class order) is true; -1: nowhere."""
        return self.best(np.where(mask, np.arange(len(mask)), -1))

    def first(self, mask: Mask) -> Positions:
        """Return each class's first position (in class order) where the mask is true; `len(mask)`: nowhere."""
        return -self.best(np.where(mask, -np.arange(len(mask)), -len(mask)))

    def best(self, rank: Positions) -> Positions:
        """Return the highest rank of each class; ranks are in class order."""
        if not len(self.starts):
            return np.zeros(0, np.int64)
        highest: Positions = np.maximum.reduceat(rank, self.starts)
        return highest


def spread(column: Column) -> tuple[Column, Positions]:
    """Return all elements of a column of lists or maps, and the row of each."""
    lengths = np.where(valid(column), np.diff(column.offsets.to_numpy()), 0)
    if pt.is_map(column.type):
        column = column.cast(pa.list_(column.type.field(0)))
    return column.flatten(), np.repeat(np.arange(len(column)), lengths)


def codes(values: Column, *, one_zero: bool = False) -> Positions:
    """Return a number for each value, -1 for null; equal values have equal numbers.

    NaN equals itself, and the order of map entries does not matter; -0.0 equals 0.0 only with ``one_zero``. Some values
    that differ in Java are equal here: binary elements with the same bytes, inner arrays with nulls that were read
    from files, inner NaN.
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
