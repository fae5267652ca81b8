"""One Java engine for the whole session, names for tables, and the count of what was compared."""

import os
import re

import pytest

from tests.conformance.judge import Judge, unavailable

REQUIRED = os.environ.get("CI", "").lower() == "true"


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
    quick_start = ("-XX:TieredStopAtLevel=1",)  # thousands of small tables: compiling hard costs more than it saves
    with Judge(tmp_path_factory.mktemp("conformance"), jvm=quick_start) as running:
        yield running


@pytest.fixture
def name(request):
    """A table name made of the test's place and name."""
    return (
        "db." + re.sub(r"\W+", "_", f"{request.path.stem}_{request.node.name}").replace("test_", "").strip("_").lower()
    )
