"""One Java engine for the whole session, names for tables, and the count of what was compared."""

import os
import random
import re
from pathlib import Path

import pytest

from tests.conformance.compare import TALLY
from tests.conformance.judge import Judge, unavailable

REQUIRED = os.environ.get("CI", "").lower() == "true"
SEED = os.environ.get("CONFORMANCE_SEED")


def missing(reason: str) -> None:
    """Skip, or fail where continuous integration requires the other engines."""
    if REQUIRED:
        pytest.fail(f"required when CI=true: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def judge(tmp_path_factory):
    """The Java engine over a warehouse of its own."""
    reason = unavailable()
    if reason:
        missing(f"no Java engine: {reason}")
    with Judge(tmp_path_factory.mktemp("conformance")) as running:
        yield running


@pytest.fixture
def name(request):
    """A table name made of the test's name."""
    return "db." + re.sub(r"\W+", "_", request.node.name).strip("_").lower()


@pytest.fixture
def rng(request):
    """Random numbers of this test; $CONFORMANCE_SEED and the printed seed repeat a run."""
    seed = SEED or str(random.SystemRandom().randrange(10**6)) if "fresh" in request.keywords else SEED or "7"
    print(f"CONFORMANCE_SEED={seed}")
    return random.Random(f"{seed} {request.node.name}")


def pytest_terminal_summary(terminalreporter):
    """Say how much was compared."""
    if TALLY.comparisons:
        terminalreporter.write_line(
            f"conformance: {TALLY.comparisons} comparisons, {TALLY.differences} differences", bold=True
        )


HERE = Path(__file__).parent
