"""Fixtures of all tests (a warehouse directory, random numbers), and the selection of tests without ``-m``."""

import os
import random
import sys
from functools import partial

import pytest

from tests.conformance.compare import TALLY
from tests.support import draws, text_cases

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers: this Python, not the first on PATH
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

LATER = ("more", "minutes", "slow", "places")
"""Markers of tests that run only when a marker expression is given."""


def _part(text):
    """Return the number of a part, from 1, and the number of parts."""
    number, _, parts = text.partition("/")
    if not 1 <= int(number) <= int(parts):
        raise ValueError(text)
    return int(number), int(parts)


def pytest_addoption(parser):
    group = parser.getgroup("draws", "how much random tests draw, and from which seed")
    group.addoption("--draws", choices=draws.ONE_IN, default="short", help="length of properties and random games")
    group.addoption("--seed", type=int, default=0, help="seed of everything that is drawn; 0, the default, is fixed")
    group.addoption("--new-seeds", action="store_true", help="draw a seed for this run")
    group.addoption("--part", type=_part, default=(1, 1), help="I/N: run part I of the tests, of N parts of equal size")
    cases = parser.getgroup("text cases", "files of inputs and expected outputs (tests/support/text_cases.py)")
    cases.addoption("--rewrite", action="store_true", help="write the outputs of the text cases into their files")


@pytest.hookimpl(tryfirst=True)  # before hypothesis reads its options
def pytest_configure(config):
    """Choose the seed once, in the process that starts the others."""
    option = config.option
    if option.new_seeds and not hasattr(config, "workerinput"):
        option.seed = random.SystemRandom().randrange(1, 10**9)
    if option.seed and option.hypothesis_seed is None:
        option.hypothesis_seed = str(option.seed)
    draws.configure(option.draws, option.seed)


def pytest_report_header(config):
    """Name the seed of the run."""
    return f"draws: {config.option.draws}, --seed {config.option.seed}"


def _mark_further_cases(items):
    """Mark as more the cases of a test beyond the few, spread evenly, that its marker ``cases`` asks for."""
    tests = {}
    for item in items:
        if item.get_closest_marker("cases") and not any(item.get_closest_marker(marker) for marker in LATER):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        few = cases[0].get_closest_marker("cases").args[0]
        chosen = {i * len(cases) // few for i in range(few)}
        for at, item in enumerate(cases):
            if at not in chosen:
                item.add_marker("more")


def _deselect(config, items, is_left_out):
    others = [item for item in items if is_left_out(item)]
    if others:
        left_out = {*others}
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(tryfirst=True)  # before marker expressions are applied
def pytest_collection_modifyitems(config, items):
    """Put long tests first; run tests of the markers in `LATER` only with a marker expression (``-m slow``)."""
    _mark_further_cases(items)
    number, parts = config.option.part
    if parts > 1:
        chosen = {*items[number - 1 :: parts]}  # neighbours are often cases of one test: each part gets some
        _deselect(config, items, lambda item: item not in chosen)
    items.sort(key=lambda item: ("long" not in item.keywords, not {"spark", "java"} & {*item.keywords}))
    if config.option.markexpr:
        return
    _deselect(config, items, lambda item: any(item.get_closest_marker(marker) for marker in LATER))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown():
    """Drop the temporary views of the shared Spark session; fail a test that leaves changed settings in it."""
    result = yield
    guard = sys.modules.get("tests.support.session_settings")  # only where a session has started
    if not guard:
        return result
    guard.drop_temporary_views()
    if changed := guard.changed_settings():
        pytest.fail("the test leaves changed settings of the shared session:\n" + "\n".join(changed), pytrace=False)
    return result


@pytest.fixture
def seed(request):
    """The seed of this run, for random games: 0 unless the command line says another."""
    return request.config.option.seed


@pytest.fixture
def rng(request, seed):
    """Random numbers of this test: the same in every run with the same seed."""
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture
def check_case(request):
    """The comparison of a text case with a function; with `--rewrite` it updates the file of the case."""
    return partial(text_cases.check, rewrite=request.config.option.rewrite)


@pytest.fixture
def warehouse(tmp_path):
    """An empty directory for tables, as text."""
    path = tmp_path / "warehouse"
    path.mkdir()
    return str(path)


def pytest_sessionfinish(session):
    """Send the counts of a worker process to the main process."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["compared"] = (TALLY.comparisons, TALLY.differences)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Add the counts of a worker process."""
    comparisons, differences = getattr(node, "workeroutput", {}).get("compared", (0, 0))
    TALLY.comparisons += comparisons
    TALLY.differences += differences


def pytest_terminal_summary(terminalreporter, config):
    """Say how much was compared, and how to draw the same again."""
    if TALLY.comparisons:
        terminalreporter.write_line(
            f"conformance: {TALLY.comparisons} comparisons, {TALLY.differences} differences", bold=True
        )
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"the same draws again: --draws {config.option.draws} --seed {config.option.seed}")
