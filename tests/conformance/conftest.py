"""One Java engine for the whole session, names for tables, and the count of what was compared."""

import os
import re
import subprocess
import venv
from pathlib import Path

import pytest

from tests.conformance.judge import Judge, unavailable

PACKAGES = ("pypaimon==2.1.0", "pypaimon-rust==0.4.0")
HOME = Path(__file__).parents[2] / ".venvs" / "readers"
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


@pytest.fixture(scope="session")
def python():
    """A Python that has pypaimon and pypaimon_rust, in a virtual environment that is made on first use."""
    given = os.environ.get("CONFORMANCE_READERS_PYTHON")
    if given:
        return given
    made = HOME / "bin" / "python"
    if not (HOME / ".made").exists():
        venv.create(HOME, with_pip=True, clear=True)
        done = subprocess.run([made, "-m", "pip", "install", "-q", *PACKAGES], capture_output=True, text=True)
        if done.returncode:
            missing(f"pip cannot install {' '.join(PACKAGES)}: {done.stderr[-300:]}")
        (HOME / ".made").touch()
    return str(made)


@pytest.fixture
def name(request):
    """A table name made of the test's place and name."""
    return (
        "db." + re.sub(r"\W+", "_", f"{request.path.stem}_{request.node.name}").replace("test_", "").strip("_").lower()
    )
