"""The interface of aggregate functions: from a column and its rows to one value for each group.

An "associative" function gives the same result for all rows as for the results of parts of them. The result of any
other function depends on the boundaries of flushes and compactions, in every engine that implements the format.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.normalized_keys import Column
from paimon_core.merge.segments import last, numbered, rounds, sizes_of
from paimon_core.types.selection import Mask, Positions

_SMALL_GROUP = 16  # up to this size, all groups of a size are combined at once
_LARGE_GROUP = 64  # a larger group gets a separate numpy call
_MANY_ROWS = 1 << 20  # rows of groups whose positions are not kept for the next column


@dataclass(frozen=True, eq=False)
class AggregateInput:
    """The input of an aggregate function: rows in order of arrival. Group i begins at `starts[i]` and is not empty.

    ``retract``: mask of rows whose value is retracted. ``late``: mask of late rows, which their sequence group orders
    before the rows that arrived earlier. ``opened``: mask of groups whose first row is copied, not applied; this row
    never retracts. ``seen``: mask of groups that had a first value before a row removed the record; `None`: no group.
    ``unsorted``: the position of each row in unsorted columns; `None`: there are no unsorted columns. ``positions``:
    the position of each row in the column; `None`: the column is in the order of the rows.
    """

    starts: Positions
    retract: Mask
    late: Mask
    opened: Mask
    seen: Mask | None = None
    unsorted: Positions | None = None
    positions: Positions | None = None

    @cached_property
    def of_unsorted(self) -> "AggregateInput":
        """The same input, for unsorted columns."""
        return replace(self, unsorted=None, positions=self.unsorted)

    @cached_property
    def last_rows(self) -> Positions:
        """The last row of each group."""
        return self.starts + (self.sizes - 1)

    @cached_property
    def sizes(self) -> Positions:
        """Number of rows of each group."""
        return sizes_of(self.starts, len(self.retract))

    @cached_property
    def retracts(self) -> bool:
        """True if a row retracts its value."""
        return bool(self.retract.any())

    @cached_property
    def is_late(self) -> bool:
        """True if a row is late."""
        return bool(self.late.any())

    def in_order(self, combine: Any, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Combine the values of each group with a numpy function, strictly from left to right."""
        total = np.empty(len(self.starts), values.dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # infinities are results
            for groups, first, *others in self._small_groups:
                value = values[first]
                for row in others:
                    value = combine(value, values[row])
                total[groups] = value
            self._combine_larger(combine, values, total)
        return total

    def _combine_larger(self, combine: Any, values: npt.NDArray[Any], total: npt.NDArray[Any]) -> None:
        """Set the totals of all groups that are not small."""
        larger = np.flatnonzero(self.sizes > _SMALL_GROUP)
        if not len(larger):
            return
        total[larger] = values[self._at(self.starts[larger])]
        medium = larger[self.sizes[larger] <= _LARGE_GROUP]
        for group, row in rounds(self.starts, len(self.retract), medium):
            total[group] = combine(total[group], values[self._at(row)])
        for i in larger[self.sizes[larger] > _LARGE_GROUP].tolist():
            rows = np.arange(self.starts[i], self.starts[i] + self.sizes[i])
            total[i] = combine.accumulate(values[self._at(rows)])[-1]

    def in_any_order(self, combine: Any, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Combine the integers of each group with a numpy function whose result does not depend on their order."""
        if len(values) > _MANY_ROWS or self.sizes.max(initial=0) > _SMALL_GROUP:
            total: npt.NDArray[Any] = combine.reduceat(self.sorted(values), self.starts)
            return total
        return self.in_order(combine, values)  # three times as fast, because the columns share the rows of small groups

    def last_largest(self, values: npt.NDArray[Any]) -> Positions:
        """Return the row of each group with the largest integer, the last one of equal integers."""
        count = len(self.retract)
        if count > _MANY_ROWS or self.sizes.max(initial=0) > _SMALL_GROUP:
            ordered = self.sorted(values)
            largest = np.maximum.reduceat(ordered, self.starts)
            return last(ordered == largest[self.group()], self.starts)
        index = self.starts.copy()
        for groups, first, *others in self._small_groups:
            largest, at = values[first], np.zeros(len(groups), np.int64)
            for number, row in enumerate(others, 1):
                value = values[row]
                at[value >= largest] = number
                largest = np.maximum(largest, value)
            index[groups] += at
        return index

    @property
    def _small_groups(self) -> Iterable[Sequence[Positions]]:
        """For each size of small groups: the numbers of the groups, their first rows, their second rows, ..."""
        return self._shared_groups if len(self.retract) <= _MANY_ROWS else self._by_size()

    @cached_property
    def _shared_groups(self) -> Sequence[Sequence[Positions]]:
        return list(self._by_size())

    def _by_size(self) -> Iterator[Sequence[Positions]]:
        sizes = np.minimum(self.sizes, _SMALL_GROUP + 1).astype(np.uint8)
        for size in range(1, _SMALL_GROUP + 1):
            groups = np.flatnonzero(sizes == size)
            if len(groups):
                starts = self.starts[groups]
                yield groups, *(self._at(starts + p) for p in range(size))

    def _at(self, rows: Positions) -> Positions:
        return rows if self.positions is None else self.positions[rows]

    def sorted(self, values: Any) -> Any:
        """Return the values, an array of Arrow or numpy, in the order of the rows."""
        return values if self.positions is None else values.take(self.positions)

    def final_order(self) -> Positions | None:
        """Return the final order of the rows: late rows first, the last of them foremost. `None`: order of arrival."""
        if not self.is_late:
            return None
        at = np.arange(len(self.late))
        return np.lexsort((np.where(self.late, -at, at), self.group()))

    def group(self) -> Positions:
        """Return the number of each row's group."""
        return numbered(self.starts, len(self.retract))


Aggregate: TypeAlias = Callable[[Column, AggregateInput], Column]
"""A function from a column in the order of its input to an array of its type with one value for each group."""


@dataclass(frozen=True, slots=True)
class UnsortedAggregate:
    """An aggregate that also takes an unsorted column, with its rows at ``inputs.positions``. This saves a copy.

    REQUIRES, for unsorted columns: there are no nulls, and no row retracts.
    """

    function: Aggregate

    def __call__(self, column: Column, inputs: AggregateInput) -> Column:
        """Return one value for each group."""
        return self.function(column, inputs)


Step: TypeAlias = Callable[[list[tuple[Any, bool]]], Any]
"""A function from the (value, retract) pairs of one group, in order of arrival, to its value."""


def pick(column: Column, index: Positions) -> Column:
    """Return the values at these rows; -1: null."""
    return column.take(pa.array(index, mask=index < 0))


def valid(column: Column) -> Mask:
    """Return the mask of the values that are not null."""
    if not column.null_count:
        return np.ones(len(column), bool)
    present: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return present


def numbers(column: Column, missing: object) -> npt.NDArray[Any]:
    """Return the values as numpy, with ``missing`` for null."""
    filled = column.fill_null(pa.scalar(missing, column.type)) if column.null_count else column
    values: npt.NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return values


def offsets(counts: Positions) -> npt.NDArray[np.int32]:
    """Return the offsets of lists with these numbers of elements."""
    return np.append(0, np.cumsum(counts)).astype(np.int32)


def refuse_retract(field: FieldOptions, function: str, inputs: AggregateInput) -> None:
    """Raise InvalidInputError, naming the column and the remedy, if a row retracts."""
    if inputs.retracts:
        raise InvalidInputError(
            f"column {field.name!r}: the aggregate function {function} cannot retract a value, as a row of kind -U "
            f"or -D requires; set 'fields.{field.name}.ignore-retract' = 'true' to leave the column unchanged"
        )


def apply_repeated(function: Aggregate, column: Column, inputs: AggregateInput, times: Positions) -> Column:
    """Apply the function to repeated rows; the value of a group without rows is null.

    Args:
        function: the aggregate function.
        column: the values.
        inputs: the rows.
        times: how often (0, 1, 2) each row is used. A row that is used twice is first added and then retracted.
    """
    if (times == 1).all():
        return function(column, inputs)
    index, part, back = repeated(inputs, times)
    if not len(index):
        return pa.nulls(len(back), column.type)
    return pick(function(column.take(pa.array(index)), part), back)


def repeated(inputs: AggregateInput, times: Positions) -> tuple[Positions, AggregateInput, Positions]:
    """Return the repeated rows, their input, and each group's number in it (-1: the group has no rows)."""
    index, counts = np.repeat(np.arange(len(times)), times), np.add.reduceat(times, inputs.starts)
    some = counts > 0
    again = np.append(False, index[1:] == index[:-1])[: len(index)] | (times[index] < 2)
    part = AggregateInput(
        (np.cumsum(counts) - counts)[some],
        inputs.retract[index] & again,
        inputs.late[index],
        inputs.opened[some],
        None if inputs.seen is None else inputs.seen[some],
    )
    return index, part, np.where(some, np.cumsum(some) - 1, -1)


def per_group(function: Step) -> Aggregate:
    """Return an aggregate that calls the function for one group at a time, in a Python loop, and ignores late rows."""

    def aggregate(column: Column, inputs: AggregateInput) -> Column:
        pairs = list(zip(column.to_pylist(), inputs.retract.tolist(), strict=True))
        edges: Sequence[int] = [*inputs.starts.tolist(), len(pairs)]
        return pa.array([function(pairs[a:b]) for a, b in itertools.pairwise(edges)], column.type)

    return aggregate
