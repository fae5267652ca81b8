"""The compaction policy: the cases of `universal.txt`, and a comparison with a literal implementation of the rules."""

import random
from dataclasses import dataclass, replace
from functools import cache

import pytest

from paimon_core.lsm.levels import Levels
from paimon_core.lsm.universal import (
    CompactUnit,
    EarlyFull,
    OffPeak,
    UniversalCompaction,
    num_levels,
    stop_trigger,
)
from paimon_core.options.option import Options
from tests.support.draws import rounds
from tests.support.manifests import data_file
from tests.support.text_cases import text_cases

HOUR = 3_600_000


@dataclass(frozen=True)
class Run:
    level: int
    size: int


@cache
def file(level, size, **more):
    return replace(data_file(f"{level}-{size}", level=level, delete_row_count=0, **more), file_size=size)


def tree(runs, levels=6):
    """Return levels with these (level, size), newest first, built without sorting."""
    files = [[] for _ in range(max(level for level, _ in runs) + 1)] if runs else [[]]
    for level, size in runs:
        files[level].append(file(level, size))
    return Levels(tuple(map(tuple, files)), levels - 1)


def picked(policy, runs, levels=6, **more):
    unit = policy.pick(tree(runs, levels), **{"clock": 0, **more})
    return None if unit is None else (unit.output_level, [(f.level, f.file_size) for f in unit.files])


# ---- the rules, step by step


def by_the_letter(num_levels, runs, max_size_amp, size_ratio, trigger, force=False):
    max_level = num_levels - 1

    def create(run_count):
        output_level = max_level if run_count == len(runs) else max(0, runs[run_count].level - 1)
        if output_level == 0:
            i = run_count
            while i < len(runs):
                following = runs[i]
                run_count += 1
                if following.level != 0:
                    output_level = following.level
                    break
                i += 1
        if run_count == len(runs):
            output_level = max_level
        return output_level, runs[:run_count]

    def for_size_ratio(candidate_count, forced=False):
        candidate_size = sum(run.size for run in runs[:candidate_count])
        triggered = forced or candidate_count > 1
        for i in range(candidate_count, len(runs)):
            following = runs[i]
            if candidate_size * (100.0 + size_ratio) / 100.0 < following.size and (
                not triggered or following.level > 1
            ):
                break
            candidate_size += following.size
            candidate_count += 1
            triggered = True
        return create(candidate_count) if triggered else None

    def pick():
        if len(runs) >= trigger:
            candidate_size = sum(run.size for run in runs[:-1])
            if candidate_size * 100 > max_size_amp * runs[-1].size:
                return max_level, runs
            unit = for_size_ratio(1)
            if unit:
                return unit
        if len(runs) > trigger:
            return for_size_ratio(len(runs) - trigger + 1)
        return None

    unit = pick()
    if unit is None and force:
        newest = 0
        while newest < len(runs) and runs[newest].level == 0:
            newest += 1
        unit = for_size_ratio(newest, forced=True) if newest else None
    if unit is None or (len(unit[1]) == 1 and unit[1][0].level == unit[0]):
        return None
    return unit


@pytest.mark.drawn
def test_picks_equal_plain_rules():
    rng = random.Random(1)
    cases = result = 0
    while cases < rounds(200_000):
        levels = rng.randint(2, 7)
        deep = sorted(rng.sample(range(1, levels), rng.randint(0, levels - 1)))
        runs = [Run(0, rng.choice([1, 2, 5, 10, 100])) for _ in range(rng.randint(0, 8))]
        runs += [Run(level, rng.choice([1, 5, 10, 50, 100, 1000, 5000])) for level in deep]
        if not runs:
            continue
        amplification, ratio = rng.choice([25, 100, 200, 10**6]), rng.choice([0, 1, 50, 1000])
        trigger, force = rng.randint(1, 6), rng.random() < 0.3
        expected = by_the_letter(levels, runs, amplification, ratio, trigger, force)
        policy = UniversalCompaction(amplification, ratio, trigger, force_level_0=int(force))
        got = picked(policy, [(run.level, run.size) for run in runs], levels)
        assert got == (expected and (expected[0], [(r.level, r.size) for r in expected[1]])), (levels, runs, policy)
        cases += 1
        result += got is not None
    assert result > cases // 2


L0 = lambda *sizes: [(0, size) for size in sizes]  # noqa: E731


def compaction(text: str) -> str:
    """Return the output for a case of `universal.txt`."""
    lines = text.splitlines()
    options = Options(dict(line.split(" = ") for line in lines if " = " in line))
    levels = [line.removeprefix("L").split() for line in lines if line.startswith("L")]
    runs = [(int(level), int(size)) for level, *sizes in levels for size in sizes]
    number = max(num_levels(options), 1 + max(level for level, _ in runs))
    result = picked(UniversalCompaction.of(options), runs, number)
    if result is None:
        return "nothing"
    level, files = result
    return f"compact {' '.join(str(size) for _, size in files)} to level {level}"


@text_cases(__file__, "universal.txt")
def test_picked_runs_match_text_cases(case, check_case):
    check_case(case, compaction)


@pytest.mark.parametrize(
    ("sizes", "ratio", "after"),
    [
        ([1, 1, 1, 1, 5], 1, [4, 5]),
        ([1, 1, 1, 4, 5], 1, [3, 4, 5]),
        ([1, 1, 3, 4, 5], 1, [2, 3, 4, 5]),
        ([1, 1, 2, 3, 4, 5], 1, [16]),
        ([8, 9, 10], 10, [8, 9, 10]),
        ([8, 9, 10], 20, [27]),
    ],
)
def test_runs_of_similar_size_are_compacted_together(sizes, ratio, after):
    runs = [(level, size) for level, size in enumerate(sizes) if level < 2] + [
        (level, size) for level, size in enumerate(sizes) if level >= 2
    ]
    unit = UniversalCompaction(10**9, ratio, 2 if len(sizes) > 3 else 3)._extended(
        tree(runs, len(sizes)).runs, len(sizes) - 1, 1, 0
    )
    taken = len(unit.files) if unit else 0
    assert ([sum(sizes[:taken])] if taken else []) + sizes[taken:] == after


@pytest.mark.parametrize(
    ("early", "runs", "fires"),
    [
        (EarlyFull(total_size=10), L0(1, 3, 5), True),
        (EarlyFull(total_size=10), L0(2, 6, 10), False),
        (EarlyFull(total_size=10), L0(1), False),
        (EarlyFull(incremental_size=10), [*L0(5, 6), (5, 1)], True),
        (EarlyFull(incremental_size=10), [*L0(5, 5), (5, 100)], False),
        (EarlyFull(incremental_size=10), [(4, 11), (5, 100)], True),
        (EarlyFull(interval=100), L0(1, 1), True),
    ],
)
def test_early_full_compaction_reasons(early, runs, fires):
    expected = (5, runs) if fires else None
    assert picked(UniversalCompaction(early=early), runs) == expected


def test_interval_starts_at_last_known_full_compaction():
    policy = UniversalCompaction(early=EarlyFull(interval=100))
    files = (file(0, 1), file(5, 9, creation_time=1000))
    levels = Levels(((files[0],), (), (), (), (), (files[1],)), 5)
    assert policy.pick(levels, 1100) is None
    assert policy.pick(levels, 1101) == CompactUnit(5, files)
    assert policy.pick(levels, 1101, last_full=1050) is None
    assert policy.pick(levels, 1151, last_full=1050) == CompactUnit(5, files)


@pytest.mark.parametrize(
    ("window", "hours"),
    [((1, 4), {1, 2, 3}), ((22, 2), {22, 23, 0, 1}), ((-1, 4), set()), ((4, -1), set()), ((5, 5), set())],
)
def test_off_peak_hours_raise_size_ratio(window, hours):
    off_peak = OffPeak(*window, ratio=7)
    assert {hour for hour in range(24) if off_peak.at(hour * HOUR + 30 * 60_000 + 48 * HOUR) == 7} == hours
    policy = UniversalCompaction(10**9, 0, 2, OffPeak(*window, ratio=100))
    assert {hour for hour in range(24) if picked(policy, [(0, 5), (3, 9)], clock=hour * HOUR)} == hours


def test_gentle_lookup_compacts_level_0_every_nth_call():
    policy = UniversalCompaction(force_level_0=5)
    fired = [picked(policy, [(0, 1), (5, 100)], calls=n) is not None for n in range(1, 11)]
    assert fired == [False] * 4 + [True] + [False] * 4 + [True]


def test_full_compaction_takes_all_files_once():
    policy = UniversalCompaction()
    assert policy.full(tree([])) is None
    assert policy.full(tree([(0, 1)])) == CompactUnit(5, (file(0, 1),))
    assert policy.full(tree([(0, 1), (5, 9)])) == CompactUnit(5, (file(0, 1), file(5, 9)))
    assert policy.full(tree([(5, 1), (5, 2)])) is None
    deletes, unknown = replace(file(5, 2), delete_row_count=1), replace(file(5, 3), delete_row_count=None)
    levels = Levels(((), (), (), (), (), (file(5, 1), deletes, unknown)), 5)
    assert policy.full(levels) == CompactUnit(5, (deletes, unknown), rewrite=True)
    forced = UniversalCompaction(force_rewrite=True)
    assert forced.full(tree([(5, 1), (5, 2)])) == CompactUnit(5, (file(5, 1), file(5, 2)), rewrite=True)


def test_policy_options_have_defaults():
    assert UniversalCompaction.of(Options({})) == UniversalCompaction(50, 1, 5)
    given = Options(
        {
            "compaction.max-size-amplification-percent": "40",
            "compaction.size-ratio": "3",
            "num-sorted-run.compaction-trigger": "7",
            "compaction.offpeak.start.hour": "1",
            "compaction.offpeak.end.hour": "5",
            "compaction.offpeak-ratio": "20",
            "compaction.optimization-interval": "2 h",
            "compaction.total-size-threshold": "1 kb",
            "compaction.incremental-size-threshold": "2 kb",
            "compaction.force-up-level-0": "true",
            "compaction.force-rewrite-all-files": "true",
        }
    )
    early = EarlyFull(2 * HOUR, 1024, 2048)
    assert UniversalCompaction.of(given) == UniversalCompaction(40, 3, 7, OffPeak(1, 5, 20), early, 1, True)
    assert (num_levels(given), stop_trigger(given)) == (8, 10)
    assert (num_levels(Options({})), stop_trigger(Options({}))) == (6, 8)
    assert stop_trigger(Options({"num-sorted-run.stop-trigger": "2"})) == 5
    assert num_levels(Options({"num-levels": "3"})) == 3


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        ({}, 0),
        ({"merge-engine": "first-row"}, 1),
        ({"merge-engine": "first-row", "lookup-compact": "gentle"}, 10),
        ({"merge-engine": "first-row", "lookup-compact": "gentle", "lookup-compact.max-interval": "3"}, 3),
        ({"lookup-compact": "gentle"}, 0),
        ({"compaction.force-up-level-0": "true", "lookup-compact": "gentle"}, 1),
    ],
)
def test_level_0_compaction_is_forced_by_options(options, calls):
    assert UniversalCompaction.of(Options(options)).force_level_0 == calls


def test_huge_run_trigger_picks_nothing():
    never = Options({"num-sorted-run.compaction-trigger": "2147483647"})
    levels = Levels.of([], None, num_levels(never))
    assert levels.max_level == 2**31 - 1
    assert UniversalCompaction.of(never).pick(levels, 0) is None
