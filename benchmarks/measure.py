"""Races: opponents take turns, several rounds, so that noise meets all of them alike.

The minimum wall time is the best estimate of an idle machine; the minimum CPU time (all threads) hardly depends on
other load. Both are kept, and ratios of both are shown.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Timing:
    """One measured piece of work: seconds on the wall, seconds of CPU over all threads, rows it yielded."""

    wall: float
    cpu: float
    rows: int


Work = Callable[[], Timing]


def least(seconds: Iterable[float]) -> float:
    """Return the least of the seconds of several rounds; 0.0: no round measured any.

    CPU time lacks processes that ended during the measurement, so a round of 0 seconds or less does not count.
    """
    return float(min((s for s in seconds if s > 0), default=0.0))


@dataclass(slots=True)
class Row:
    """One line of the table: what was done, how many rows went in, and how every contestant fared.

    ``goals`` maps an opponent to the largest allowed ratio of our time to its.
    """

    name: str
    rows: int
    timings: dict[str, list[Timing]] = field(default_factory=dict)
    goals: dict[str, float] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def best(self, who: str, clock: str = "wall") -> float:
        """Least seconds of a contestant by the clock ``wall`` or ``cpu``; 0.0: no round measured any."""
        return least(getattr(timing, clock) for timing in self.timings[who])

    def ratio(self, opponent: str, clock: str = "wall") -> float:
        """Our time over the opponent's; NaN: the opponent's was not measured."""
        theirs = self.best(opponent, clock)
        return self.best("ours", clock) / theirs if theirs else math.nan

    def met(self, opponent: str) -> bool:
        """Return True if the goal against this opponent is met, in wall time or in CPU time."""
        wall, cpu = self.ratio(opponent), self.ratio(opponent, "cpu")
        return wall <= self.goals[opponent] or 0 < cpu <= self.goals[opponent]

    def as_json(self) -> dict[str, Any]:
        """Every number measured."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Row":
        """Return the row with the numbers of `as_json`."""
        timings = {who: [Timing(**timing) for timing in rounds] for who, rounds in row["timings"].items()}
        return cls(**{**row, "timings": timings})


def timed(work: Callable[[], int]) -> Timing:
    """Do ``work``, which says how many rows it handled, in this process."""
    cpu, wall = time.process_time(), time.perf_counter()
    rows = work()
    return Timing(time.perf_counter() - wall, time.process_time() - cpu, rows)


def race(row: Row, contestants: Mapping[str, Work], rounds: int, *, patience: float = 5.0) -> Row:
    """Let all take turns, ``rounds`` times after one round to warm up; an opponent that refuses is noted and dropped.

    One look is enough at a contestant that takes more than ``patience`` seconds.

    Raises AssertionError when contestants disagree about the number of rows: then one of them is wrong.
    """
    left = dict(contestants)
    for turn in range(rounds + 1):
        for who, work in list(left.items()):
            try:
                timing = work()
            except Exception as error:
                if who == "ours":
                    raise
                row.refused[who] = str(error).splitlines()[0][:200]
                row.timings.pop(who, None)
                del left[who]
                continue
            if turn or timing.wall > patience:
                row.timings.setdefault(who, []).append(timing)
            if timing.wall > patience:
                del left[who]
    counts = {who: timings[0].rows for who, timings in row.timings.items()}
    assert len({rows for who, rows in counts.items() if who != "pyarrow"}) == 1, f"{row.name}: {counts}"
    return row
