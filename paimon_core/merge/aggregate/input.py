"""What an aggregate function is: a column and the rows fed to it, to one value a group.

"Lawful" in the docstrings of functions: feeding the results of parts equals feeding the whole. "Unlawful", or "lawful
without ...": the answer depends on where flushes and compactions fell, for every engine of the format.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.normalized_keys import Column
from paimon_core.merge.segments import numbered
from paimon_core.types.selection import Mask, Positions


@dataclass(frozen=True, slots=True, eq=False)
class AggregateInput:
    """The rows one aggregate is fed, in arrival order; group i begins at ``starts[i]`` and every group has rows.

    ``retract``: take the value back. ``older``: late by its sequence group, so it goes *under* what is there.
    ``opened``: groups whose first row is copied, not applied (such a row is never marked as a retract). ``seen``:
    groups that had been fed before a row removed what they held (only first values remember that); None means none.
    """

    starts: Positions
    retract: Mask
    older: Mask
    opened: Mask
    seen: Mask | None = None

    def line(self) -> Positions | None:
        """Rows as they end up lying: late ones first, the latest foremost; None when as they came."""
        if not self.older.any():
            return None
        at = np.arange(len(self.older))
        return np.lexsort((np.where(self.older, -at, at), self.group()))

    def group(self) -> Positions:
        """The number of each row's group."""
        return numbered(self.starts, len(self.retract))


Aggregate: TypeAlias = Callable[[Column, AggregateInput], Column]
"""The column in the order of the feed, to an array of the same type with one value for each group."""
Step: TypeAlias = Callable[[list[tuple[Any, bool]]], Any]
"""One group's (value, retract) pairs, as they came, to its value."""


def pick(column: Column, index: Positions) -> Column:
    """Values at these rows; null where a row is negative."""
    return column.take(pa.array(index, mask=index < 0))


def valid(column: Column) -> Mask:
    """Where the column holds a value."""
    if not column.null_count:
        return np.ones(len(column), bool)
    present: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return present


def numbers(column: Column, missing: object) -> npt.NDArray[Any]:
    """The values as numpy, ``missing`` where they are null."""
    filled: npt.NDArray[Any] = column.fill_null(pa.scalar(missing, column.type)).to_numpy(zero_copy_only=False)
    return filled


def offsets(counts: Positions) -> npt.NDArray[np.int32]:
    """Offsets of lists that have so many elements."""
    return np.append(0, np.cumsum(counts)).astype(np.int32)


def refuse_retract(field: FieldOptions, function: str, feed: AggregateInput) -> None:
    """InvalidInputError, naming the column and the way out, if a row is to be taken back."""
    if feed.retract.any():
        raise InvalidInputError(
            f"column {field.name!r}: a row of kind -U or -D came, and the aggregate function {function} cannot take a "
            f"value back; set 'fields.{field.name}.ignore-retract' = 'true' to leave the column as it is then"
        )


def apply_repeated(function: Aggregate, column: Column, feed: AggregateInput, times: Positions) -> Column:
    """Apply the function to rows repeated ``times`` (0, 1, 2) over; a group left without rows gives null.

    Of a row given twice the first is added and the second taken back.
    """
    if (times == 1).all():
        return function(column, feed)
    index, part, back = repeated(feed, times)
    if not len(index):
        return pa.nulls(len(back), column.type)
    return pick(function(column.take(pa.array(index)), part), back)


def repeated(feed: AggregateInput, times: Positions) -> tuple[Positions, AggregateInput, Positions]:
    """The rows a feed of repeated rows has, that feed, and for each group its number there (-1: nothing is left)."""
    index, counts = np.repeat(np.arange(len(times)), times), np.add.reduceat(times, feed.starts)
    some = counts > 0
    again = np.append(False, index[1:] == index[:-1])[: len(index)] | (times[index] < 2)
    part = AggregateInput(
        (np.cumsum(counts) - counts)[some],
        feed.retract[index] & again,
        feed.older[index],
        feed.opened[some],
        None if feed.seen is None else feed.seen[some],
    )
    return index, part, np.where(some, np.cumsum(some) - 1, -1)


def per_group(function: Step) -> Aggregate:
    """The adapter for the awkward few that do not care which rows are late: the function over one group's pairs at a
    time, in a Python loop."""

    def aggregate(column: Column, feed: AggregateInput) -> Column:
        pairs = list(zip(column.to_pylist(), feed.retract.tolist(), strict=True))
        edges: Sequence[int] = [*feed.starts.tolist(), len(pairs)]
        return pa.array([function(pairs[a:b]) for a, b in itertools.pairwise(edges)], column.type)

    return aggregate
