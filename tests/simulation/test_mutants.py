"""The simulation finds an engine without one of its guards, within a bounded number of steps."""

import logging

import pytest

from tests.simulation.mutants import HEADER, MUTANTS, catch

QUICK = 10_000
"""Steps: mutants that are found within so many are part of `make test`."""


MANY = 100_000
"""Steps: mutants that may need more are marked slow."""


def _mark(mutant):
    if mutant.quick:
        return ()
    some = MUTANTS.index(mutant) % 64 == 0  # each takes a minute
    return pytest.mark.more if some and mutant.steps <= MANY else pytest.mark.slow


@pytest.mark.long
@pytest.mark.parametrize("mutant", [pytest.param(m, id=m.name, marks=_mark(m)) for m in MUTANTS])
def test_missing_guard_is_found(mutant, capsys, caplog):
    caplog.set_level(logging.CRITICAL)
    actual = catch(mutant)
    with capsys.disabled():
        print(f"\n{HEADER}\n{actual}")
    assert actual.outcome is not None
    assert actual.steps <= (QUICK if mutant.quick else mutant.steps)
