"""Checks at the end of a year: no file is lost or left over, and neither sizes nor steps have grown."""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from tests.support.timeline import all_files, needed_files
from tests.year.model import WrongRowsError
from tests.year.world import DAY, ZONE, in_zone, one_thread, unexpected_warnings
from tests.year.year import ASLEEP, Length, Sample, Year

STEADY = 30
"""The day from which as much expires as is written: partitions and tags have reached their ages."""
_OWN = ("/schema/", "/snapshot/", "/tag/", "/consumer/", "/changelog/")
_ENOUGH = 60  # measurements: a run of fewer days says nothing about growth
_IRREGULAR = {f"stream {name}" for name, (asleep, _) in ASLEEP.items() if asleep}
"""Steps whose cost depends on how long a stream was stopped."""
_MORE_CALLS, _MORE_SECONDS, _MORE_FILES = 1.5, 1.6, 1.5


class GrowthError(AssertionError):
    """A size or the cost of a step has grown with the age of the table."""


def simulate(
    length: Length,
    *,
    seconds: bool,
    report: Callable[[str], object] = lambda text: None,
    state: Path | None = None,
) -> Year:
    """Run a year and check it; arguments: see `Year.run` and `check_end`. A warning of the engine is an error.

    With a ``state`` file, a run that was stopped goes on from the last tenth day.
    """
    with in_zone(ZONE), one_thread(), unexpected_warnings() as warnings:
        year = Year.resume(state, length) if state else Year(length)
        year.run(report, state)
        check_end(year, seconds=seconds)
    if warnings:
        raise AssertionError(f"{len(warnings)} warnings, the first is: {warnings[0]}")
    return year


def check_end(year: Year, *, seconds: bool) -> None:
    """Check everything at the end of a run; ``seconds``: True to check the time of steps, not only their requests."""
    year.check()
    for name in year.tables:
        check_files(year, name)
    year.check(ages=False)
    for name, samples in sorted(year.sizes.items()):
        check_growth(f"files of {name}", samples, _MORE_FILES, highest=True)
        check_growth(f"bytes of {name}", samples, _MORE_FILES, highest=True, amounts=True)
    for name, samples in sorted(year.steps.items()):
        if name in _IRREGULAR:
            continue
        check_growth(f"requests of {name}", samples, _MORE_CALLS)
        if seconds:
            check_growth(f"seconds of {name}", samples, _MORE_SECONDS, amounts=True)


def check_files(year: Year, name: str) -> None:
    """Remove orphan files two days later; then exactly the files are left that a snapshot, tag or branch needs."""
    table = year.world.open(name)
    store = table.store
    year.world.clock.time += 2 * DAY
    table.maintenance.remove_orphan_files()
    found = {path for path in all_files(store.io, store.root) if not any(part in path for part in _OWN)}
    needed = needed_files(store)
    if found != needed:
        lost, left = sorted(needed - found), sorted(found - needed)
        raise WrongRowsError(f"{name}: {len(lost)} files are missing: {lost[:5]}; {len(left)} are left: {left[:5]}")


def check_growth(
    what: str, samples: Sequence[Sample], most: float, *, highest: bool = False, amounts: bool = False
) -> None:
    """Raise GrowthError if a measurement is larger in the last quarter than in the quarter before the middle.

    Args:
        what: what is measured.
        samples: the measurements in order; those before `STEADY` do not count.
        most: the largest allowed ratio.
        highest: True to compare maxima; False: medians.
        amounts: True to compare amounts; False: counts.
    """
    values = [sample.amount if amounts else sample.count for sample in samples if sample.day >= STEADY]
    if len(values) < _ENOUGH:
        return
    half, quarter = len(values) // 2, len(values) // 4
    of = max if highest else median
    before, after = of(values[:half]), of(values[-quarter:])
    if after > before * most:
        raise GrowthError(f"{what} grew from {before:.4g} to {after:.4g}, more than {most} times")
