"""The number of draws of a test: a fifth in each run, fewer or all of them with ``--draws``.

``@draws(40)`` is a property with forty examples at full length, ``rounds(22)`` a game of twenty-two turns,
``points(calls)`` the calls at which a test fails, ``step()`` the distance between them. What uses ``rounds``,
``points`` or ``step`` carries the marker ``drawn``.
"""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

T = TypeVar("T")

ONE_IN = {"few": 20, "short": 5, "full": 1}
"""Of how many draws one is made."""


class _Run:
    """The length and the seed that the command line asked for."""

    length = "short"
    seed = 0


def configure(length: str, seed: int) -> None:
    """Set the length of each draw and its seed. Seed 0: every test has a fixed seed of its own."""
    _Run.length, _Run.seed = length, seed
    settings.register_profile(
        length,
        deadline=None,
        max_examples=100 // ONE_IN[length],
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=seed == 0,
    )
    settings.load_profile(length)


def rounds(full: int, least: int = 3) -> int:
    """Return how many rounds to play of those at full length."""
    return max(min(full, least), full // ONE_IN[_Run.length])


def step() -> int:
    """Return the distance between the points of a test that does not know their number: 1 at full length."""
    return ONE_IN[_Run.length]


def draws(full: int) -> settings:
    """Return the settings of a property with `full` examples at full length."""
    return settings(max_examples=rounds(full))


def points(candidates: Sequence[T]) -> Sequence[T]:
    """Return every candidate at full length, else every fifth or twentieth; the seed says where to begin."""
    step = ONE_IN[_Run.length]
    return candidates[_Run.seed % step :: step]


def every_other(first: Iterable[object], second: Iterable[object]) -> list[Any]:
    """Return the pairs of two parameters as a chessboard: every other pair is marked slow.

    Each value still meets half of the other parameter's values, and neighbours meet the other half.
    """
    pairs = product(enumerate(first), enumerate(second))
    return [pytest.param(a, b, marks=pytest.mark.slow if (i + j) % 2 else ()) for (i, a), (j, b) in pairs]
