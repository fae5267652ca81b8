"""Comparisons, counted: the number is printed when a session ends, so that a suite that compares nothing is seen."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SHOWN = 5


@dataclass
class Tally:
    """The number of compared results, and of results that differ."""

    comparisons: int = 0
    differences: int = 0


TALLY = Tally()


class Difference(AssertionError):
    """Two readers of one table do not see the same."""


def same(found: Sequence[Any], expected: Sequence[Any], about: str) -> None:
    """Compare two collections of rows, in any order, each row as often on one side as on the other.

    Raises Difference with the first rows of either side that the other lacks.
    """
    TALLY.comparisons += 1
    ours, theirs = (Counter(json.dumps(row, sort_keys=True) for row in side) for side in (found, expected))
    if ours == theirs:
        return
    TALLY.differences += 1
    extra, missing = (list((a - b).elements()) for a, b in ((ours, theirs), (theirs, ours)))
    raise Difference(
        f"{about}: {len(found)} rows found, {len(expected)} expected\n"
        f"  {len(extra)} not expected: " + "\n    ".join(extra[:SHOWN]) + "\n"
        f"  {len(missing)} not found:   " + "\n    ".join(missing[:SHOWN])
    )
