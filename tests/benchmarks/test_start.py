"""The benchmarks of the first minute run in new processes; what they count is checked."""

import pytest

from benchmarks import start
from benchmarks.engine import Arena


@pytest.fixture
def arena(tmp_path):
    return Arena(tmp_path, count=500, rounds=1, workers={})


def test_import_and_help_run_in_new_processes(arena):
    assert set(start.imports(arena).timings) == {"ours", "pyarrow"}
    assert set(start.help_text(arena).timings) == {"ours", "bare"}


@pytest.mark.more
def test_first_write_stores_rows_of_parquet_write(arena):
    row = start.first_write(arena)
    assert {who: timings[0].rows for who, timings in row.timings.items()} == {"ours": 1000, "parquet": 1000}


@pytest.mark.more
def test_catalog_is_installed_with_and_without_cache(arena):
    assert set(start.catalog(arena).timings) == {"ours", "without"}
    assert len(list((arena.warehouse / "cache" / "java-classes").iterdir())) == 1
