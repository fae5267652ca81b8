"""Bars of a chart, with positions in percents of the width and in pixels of the height."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paimon_core.types.selection import Positions


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle; ``kind`` is its class in the style sheet, ``lines`` are its tooltip."""

    kind: str
    x: float
    width: float
    y: float
    height: float
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts by class; ``limit``: the text of a limit that some classes reach."""

    title: str
    columns: tuple[tuple[str, int, float, bool], ...]
    """Name, count, height in percent, and True for a class at or above the limit."""
    limit: str = ""


def divided(members: Positions, most: int) -> list[Positions]:
    """Divide the members into at most ``most`` contiguous groups, whose sizes differ by one at most."""
    groups = min(len(members), most)
    return np.split(members, np.arange(1, groups) * len(members) // groups) if groups else []


def histogram(title: str, names: Sequence[str], numbers: Sequence[int], above: Sequence[bool], limit: str) -> Histogram:
    """Return a histogram in which each non-empty class is at least 4 percent high."""
    most = max(numbers, default=0)
    heights = [max(4.0, round(100 * n / most, 1)) if n else 0.0 for n in numbers]
    return Histogram(title, tuple(zip(names, numbers, heights, above, strict=True)), limit)
