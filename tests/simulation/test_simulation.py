"""A warehouse under many clients and a failing store keeps every promise; see README.md.

A history that fails is shrunk and printed: its seed, operations and events repeat it.
"""

import logging

import pytest

from tests.simulation.history import replay, run_seed
from tests.simulation.mutants import MUTANTS
from tests.simulation.plan import NO_FAULTS, Profile
from tests.simulation.shrink import shrink

KINDS = ("append", "vectors", "keys", "keys, vectors", "keys, lookup", "keys, dynamic")
WRITES = {"write": 4, "write_late": 2, "write_stale": 2, "sink": 2}
ROWS = {**WRITES, "overwrite": 1, "delete": 2, "statement": 2, "restore": 1}
FILES = {"compact": 1, "compact_fully": 1, "expire": 2, "orphans": 1}
BRANCHES = {"branch": 2, "write_branch": 2, "delete_branch": 1, "fast_forward": 1}
TIMELINE = {"rollback": 1, "tag": 2, "delete_tag": 1, **BRANCHES}
PLACES = {"alter": 2, "replace": 1, "drop": 1, "create": 1, "rename": 1, "clone": 1}
READS = {"read": 2, "travel": 1, "stream": 2}
PARTITIONED = ("partitions", "partitions, vectors", "partitions, keys")
PARTITIONS = {"overwrite_partition": 3, "drop_partition": 2}
EVOLUTION = {"write": 3, "update_columns": 3, "overwrite": 1, "alter": 1, "rollback": 1}
PROFILES = {
    "everything": Profile({**ROWS, **FILES, **TIMELINE, **PLACES, **READS}, KINDS),
    "commits": Profile({**ROWS, **FILES, **READS}, KINDS),
    "timeline": Profile({**TIMELINE, "write": 4, "sink": 2, "overwrite": 1, "expire": 2, **READS}, KINDS),
    "places": Profile({**PLACES, "write": 4, "write_late": 2, "write_stale": 2, "sink": 1, **READS}, KINDS),
    "partitions": Profile({**ROWS, **PARTITIONS, **FILES, **READS, "rollback": 1, "alter": 1}, PARTITIONED),
    "columns": Profile({**EVOLUTION, **FILES, **READS}, ("evolution",)),
    "columns, vectors": Profile({**EVOLUTION, "delete": 3, **FILES, **READS}, ("evolution, vectors",)),
}
_TABLE_OF = {
    "update_columns": "evolution",
    "statement": "keys",
    "drop_partition": "partitions",
    "overwrite_partition": "partitions",
}
SHARD = 3_600
"""Steps of a test at full length, of which `make test` has one, and `make test-more` seven at half their length."""
_SEEDS = 100_000  # of a shard


@pytest.fixture(autouse=True)
def _quiet(caplog):
    """The engine warns about what the simulation does to it."""
    caplog.set_level(logging.CRITICAL)


def play(profile: Profile, first_seed: int, steps: int) -> int:
    """Run histories with a total number of steps; return the number of histories."""
    seed = first_seed
    while steps > 0:
        outcome = run_seed(seed, profile)
        if outcome.violation is not None:
            pytest.fail(f"seed {seed}: {outcome.violation}\n\nsmaller:\n{shrink(outcome)}", pytrace=False)
        steps -= outcome.steps
        seed += 1
    return seed - first_seed


@pytest.mark.drawn
@pytest.mark.parametrize(
    "name", [name if name == "everything" else pytest.param(name, marks=pytest.mark.slow) for name in PROFILES]
)
def test_every_promise_is_kept(name, seed):
    assert play(PROFILES[name], seed * 10**9, SHARD) > 5


@pytest.mark.more
@pytest.mark.parametrize("shard", [1, *(pytest.param(shard, marks=pytest.mark.slow) for shard in (2, 3))])
@pytest.mark.parametrize("name", PROFILES)
def test_every_promise_is_kept_for_longer(name, shard, seed):
    assert play(PROFILES[name], seed * 10**9 + shard * _SEEDS, SHARD) > 5


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(10, 14))
@pytest.mark.parametrize("name", PROFILES)
def test_every_promise_is_kept_for_hours(name, shard, seed):
    assert play(PROFILES[name], seed * 10**9 + shard * _SEEDS, 20 * SHARD) > 100


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", PROFILES)
def test_seed_repeats_every_step(name):
    one, other = run_seed(3, PROFILES[name]), run_seed(3, PROFILES[name])
    assert one.trace == other.trace
    listed = replay(one.plan, one.events)
    assert listed.trace == one.trace
    assert len({operation for operation, *_ in one.trace}) > 4


def test_history_that_fails_shrinks_and_fails_again():
    mutant = next(one for one in MUTANTS if one.name == "overwrite of what is live")
    with mutant.applied():
        outcome = run_seed(0, mutant.profile)
        assert outcome.violation is not None
        smaller = shrink(outcome)
        again = replay(smaller.plan, smaller.events)
    assert again.violation == smaller.violation
    assert len(smaller.plan.ops) == 2
    assert len(smaller.events) == 1
    assert replay(smaller.plan, smaller.events).violation is None


@pytest.mark.more
def test_every_kind_of_operation_is_acknowledged():
    expected = {kind for profile in PROFILES.values() for kind in profile.weights}
    for kind in sorted(expected):
        tables = (_TABLE_OF.get(kind, "append"),)
        needs = {"write_branch": ("branch",), "delete_branch": ("branch",), "fast_forward": ("branch",)}.get(kind, ())
        weights = {kind: 3, **dict.fromkeys(needs, 3), "write": 1, **({"drop": 2} if kind == "create" else {})}
        profile = Profile(weights, tables, faults=NO_FAULTS)
        assert any(f"{kind} ok" in run_seed(seed, profile).outcomes for seed in range(30)), kind
