"""Golden tables fail when they should: an expected value changed, a byte of data changed, a file gone."""

import copy
import json
import shutil

import pytest

from paimon_core.errors import PaimonError
from tests.conformance.compare import TALLY, Difference
from tests.golden.reading import CASES, NAMES, Golden


@pytest.fixture(autouse=True)
def uncounted():
    """Differences found here are meant, so they do not count."""
    before = copy.copy(TALLY)
    yield
    TALLY.comparisons, TALLY.differences = before.comparisons, before.differences


@pytest.fixture(params=NAMES)
def golden(request, tmp_path):
    """A copy of each case, to be spoilt."""
    return Golden(shutil.copytree(CASES / request.param, tmp_path / request.param))


def test_changed_expectation_is_found(golden):
    told = golden.told
    last = told["snapshots"][max(told["snapshots"], key=int)]
    last["rows"][0][last["columns"].index("k")] += 1
    (golden.home / "case.json").write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(Difference):
        golden.check()


def test_missing_row_is_found(golden):
    told = golden.told
    told["snapshots"]["1"]["rows"].pop()
    (golden.home / "case.json").write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(Difference):
        golden.check()


def test_truncated_data_file(golden):
    for file in golden.home.glob("table/**/data-*"):
        file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises((Difference, PaimonError)):
        golden.check()


def test_missing_data_file(golden):
    next(golden.home.glob("table/**/data-*")).unlink()
    with pytest.raises((PaimonError, FileNotFoundError)):
        golden.check()
