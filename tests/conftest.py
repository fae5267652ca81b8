"""What every test may use: a warehouse directory, hypothesis profiles, and slow tests left out unless asked for."""

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.conformance.compare import TALLY

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers: this Python, not the first on PATH
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",  # what CI says is about the change, not about the day's luck
)
settings.register_profile("long", settings.get_profile("default"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config):
    config.addinivalue_line("markers", "everywhere: a Spark test that runs over Connect and on clusters as well")
    config.addinivalue_line("markers", "versions: about what Spark's versions do each in their way")
    config.addinivalue_line("markers", "long: takes minutes, so it begins first and nobody waits for it at the end")


def pytest_collection_modifyitems(config, items):
    """What takes long comes first; tests marked slow run only when a marker expression is given (``-m slow``)."""
    items.sort(key=lambda item: ("long" not in item.keywords, not {"spark", "java"} & {*item.keywords}))
    if config.getoption("markexpr"):
        return
    slow = [item for item in items if "slow" in item.keywords]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if "slow" not in item.keywords]


@pytest.fixture
def warehouse(tmp_path):
    """An empty directory for tables, as text."""
    path = tmp_path / "warehouse"
    path.mkdir()
    return str(path)


def pytest_sessionfinish(session):
    """A process that runs a part of the tests tells the one that sums up."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["compared"] = (TALLY.comparisons, TALLY.differences)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Add what such a process told."""
    comparisons, differences = getattr(node, "workeroutput", {}).get("compared", (0, 0))
    TALLY.comparisons += comparisons
    TALLY.differences += differences


def pytest_terminal_summary(terminalreporter):
    """Say how much was compared."""
    if TALLY.comparisons:
        terminalreporter.write_line(
            f"conformance: {TALLY.comparisons} comparisons, {TALLY.differences} differences", bold=True
        )
