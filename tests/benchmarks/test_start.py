"""The benchmarks of the first minute run in new processes; what they count is checked."""

import pytest

from benchmarks import start
from benchmarks.engine import Arena
from benchmarks.measure import Timing


@pytest.fixture
def arena(tmp_path):
    return Arena(tmp_path, count=500, rounds=1, workers={})


def test_import_and_help_run_in_new_processes(arena):
    assert set(start.imports(arena).timings) == {"ours", "pyarrow"}
    assert set(start.help_text(arena).timings) == {"ours", "bare"}


@pytest.mark.slow
@pytest.mark.parametrize(("action", "rows", "caches"), [("write_paimon", 1000, 1), ("compile_catalog", 0, 0)])
def test_action_runs_in_new_process(arena, action, rows, caches):
    assert start.in_new_process(arena, action).rows == rows
    assert len(list(arena.warehouse.glob("cache/java-classes/*"))) == caches


def test_rows_compare_each_action_with_another(arena, monkeypatch):
    actions = []
    monkeypatch.setattr(start, "in_new_process", lambda arena, action: actions.append(action) or Timing(0.1, 0.1, 1))
    assert set(start.first_write(arena).timings) == {"ours", "parquet"}
    assert set(start.catalog(arena).timings) == {"ours", "without"}
    assert set(actions) == set(start.ACTIONS)
