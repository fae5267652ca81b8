"""The simulation finds an engine without one of its guards, within a bounded number of steps."""

import logging

import pytest

from tests.simulation.mutants import HEADER, MUTANTS, catch

QUICK = 10_000
"""Steps: mutants that are found within so many are part of `make test`."""


def _mark(mutant):
    return () if mutant.quick else pytest.mark.slow  # each of the others takes a minute


@pytest.mark.cases(3)
@pytest.mark.long
@pytest.mark.parametrize("mutant", [pytest.param(m, id=m.name, marks=_mark(m)) for m in MUTANTS])
def test_missing_guard_is_found(mutant, capsys, caplog):
    caplog.set_level(logging.CRITICAL)
    actual = catch(mutant)
    with capsys.disabled():
        print(f"\n{HEADER}\n{actual}")
    assert actual.outcome is not None
    assert actual.steps <= (QUICK if mutant.quick else mutant.steps)
