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
    """The number of things in each of a few classes; ``limit``: the first class at which a limit is reached."""

    title: str
    columns: tuple[tuple[str, int, float, bool], ...]
    """Name, number, height in percents, and True from the limit on."""
    limit: str = ""


def divided(members: Positions, most: int) -> list[Positions]:
    """Return the members in at most ``most`` groups of neighbours, whose sizes differ by one and alternate."""
    groups = min(len(members), most)
    return np.split(members, np.arange(1, groups) * len(members) // groups) if groups else []


def histogram(title: str, names: Sequence[str], numbers: Sequence[int], above: Sequence[bool], limit: str) -> Histogram:
    """Return a histogram; a class that is not empty is at least 4 percent high."""
    most = max(numbers, default=0)
    heights = [max(4.0, round(100 * n / most, 1)) if n else 0.0 for n in numbers]
    return Histogram(title, tuple(zip(names, numbers, heights, above, strict=True)), limit)
