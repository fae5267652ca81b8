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
    if mask.all():
        return starts + sizes_of(starts, len(mask)) - 1
    running = np.maximum.accumulate(np.where(mask, np.arange(len(mask)), -1))  # twice as fast as reduceat
    position: Positions = running[starts + sizes_of(starts, len(mask)) - 1]
    return np.where(position >= starts, position, -1)


def first(mask: Mask, starts: Positions) -> Positions:
    """Return the first row of each group where the mask is true; -1: the mask is false for the whole group."""
    if mask.all():
        return starts
    count = len(mask)
    position = np.minimum.accumulate(np.where(mask, np.arange(count), count)[::-1])[::-1][starts]
    return np.where(position < starts + sizes_of(starts, count), position, -1)


def any_of(mask: Mask, starts: Positions) -> Mask:
    """Return, for each group, True if the mask is true anywhere in it."""
    if mask.all():
        return np.ones(len(starts), bool)
    so_far = np.cumsum(mask)
    result: Mask = so_far[starts + sizes_of(starts, len(mask)) - 1] > so_far[starts] - mask[starts]
    return result


def tally(mask: Mask, starts: Positions) -> Positions:
    """Return how often the mask is true in each group; three times as fast as reduceat."""
    so_far = np.cumsum(mask)[np.append(starts[1:], len(mask)) - 1]
    counts: Positions = np.diff(so_far, prepend=0)
    return counts


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
