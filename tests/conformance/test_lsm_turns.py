"""Random turns of both engines on tables of every merge engine, with compaction of either in between."""

from random import Random

import pytest

from tests.conformance.duel import Duel
from tests.conformance.merging import ENGINES, drawn
from tests.support.draws import rounds

pytestmark = pytest.mark.java
A_TABLE = 14


def play(judge, name, engine, steps, seed, *, thorough):
    """Run `steps` steps, with a new table after a few of them; ``thorough``: read every snapshot again."""
    played, tables = 0, 0
    while played < steps:
        table_seed = f"{seed} {engine} {tables}"
        rng = Random(table_seed)
        merging = drawn(rng, engine)
        print(f"--seed {seed}, table {tables}: {merging}")
        duel = Duel(judge, name, merging, rng)
        while duel.steps < A_TABLE and played < steps:
            duel.turn()
            played += 1
        if thorough:
            duel.table.agree_everywhere()
        duel.table.java("drop_table")
        tables += 1
    print(f"{engine}: {played} steps on {tables} tables, seed {seed}")


@pytest.mark.drawn
@pytest.mark.parametrize("engine", ENGINES)
def test_levels_agree_in_turns_with_java(judge, name, engine, seed):
    play(judge, name, engine, rounds(28), seed, thorough=False)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_levels_agree_in_long_turns_with_java(judge, name, engine, seed):
    play(judge, name, engine, 560, seed, thorough=True)
