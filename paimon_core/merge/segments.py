"""Groups of consecutive rows, identified by their start positions: first, last, any and count of a mask.

REQUIRES, everywhere: ``starts`` ascends, begins with 0, and every group has rows.
"""

from collections.abc import Iterator

import numpy as np

from paimon_core.types.selection import Mask, Positions


def sizes_of(starts: Positions, n: int) -> Positions:
    """Return the number of rows of each group; ``n``: the number of all rows."""
    return np.diff(starts, append=n)


def numbered(starts: Positions, n: int) -> Positions:
    """Return the number of each row's group. Much faster than repeating each number."""
    number = np.zeros(n, np.int64)
    number[starts[1:]] = 1
    return np.cumsum(number, out=number)


def last(mask: Mask, starts: Positions) -> Positions:
    """Return the last row of each group where the mask is true; -1: the mask is false for the whole group."""
    ends = starts + sizes_of(starts, len(mask)) - 1
    if mask.all():
        return ends
    rows = np.flatnonzero(mask)
    if not len(rows):
        return np.full(len(starts), -1)
    position: Positions = rows[_so_far(mask)[ends] - 1]  # the last one up to the end of the group
    position[(position < starts) | (position > ends)] = -1
    return position


def first(mask: Mask, starts: Positions) -> Positions:
    """Return the first row of each group where the mask is true; -1: the mask is false for the whole group."""
    if mask.all():
        return starts
    rows = np.flatnonzero(mask)
    if not len(rows):
        return np.full(len(starts), -1)
    before = _so_far(mask)[starts] - mask[starts]
    position: Positions = rows[np.minimum(before, len(rows) - 1)]  # the first one from the start of the group on
    position[(position < starts) | (position >= starts + sizes_of(starts, len(mask)))] = -1
    return position


def any_of(mask: Mask, starts: Positions) -> Mask:
    """Return, for each group, True if the mask is true anywhere in it."""
    if mask.all():
        return np.ones(len(starts), bool)
    so_far = _so_far(mask)
    result: Mask = so_far[starts + sizes_of(starts, len(mask)) - 1] > so_far[starts] - mask[starts]
    return result


def tally(mask: Mask, starts: Positions) -> Positions:
    """Return how often the mask is true in each group; faster than reduceat."""
    so_far = _so_far(mask)[np.append(starts[1:], len(mask)) - 1]
    counts: Positions = np.diff(so_far, prepend=0)
    return counts


def _so_far(mask: Mask) -> Positions:
    """Return, for each row, how often the mask is true up to it. Ten times as fast as a sum of booleans."""
    count = mask.astype(np.int64)
    return np.cumsum(count, out=count)


def rounds(starts: Positions, n: int, among: Positions | None = None) -> Iterator[tuple[Positions, Positions]]:
    """Yield (groups, positions of their row p) for p = 1, 2, ...: one row of every group at once, strictly in order.

    Costs a few numpy calls for each row of the largest group. ``among``: numbers of the groups to visit; `None`: all.
    """
    sizes, p = sizes_of(starts, n), 1
    alive = np.flatnonzero(sizes > 1) if among is None else among[sizes[among] > 1]
    while len(alive):
        yield alive, starts[alive] + p
        p += 1
        alive = alive[sizes[alive] > p]
