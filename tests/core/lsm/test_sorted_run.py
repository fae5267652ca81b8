"""Sorted runs, and the ages of their files."""

from paimon_core.lsm.sorted_run import SortedRun, files_by_age
from tests.support.manifests import data_file


def test_run_sums_its_files():
    run = SortedRun(1, (data_file("a", 0, 4, sequence=(3, 8)), data_file("b", 5, 9, sequence=(0, 2))))
    assert (run.size, run.row_count, run.max_sequence_number) == (2000, 10, 8)


def test_files_by_age_orders_levels_then_commits():
    new, old = data_file("new"), data_file("old")
    middle, bottom = data_file("middle", level=1), data_file("bottom", level=5)
    runs = [SortedRun(0, (new,), (7,)), SortedRun(0, (old,), (3,)), SortedRun(1, (middle,)), SortedRun(5, (bottom,))]
    assert [f.file_name for f in files_by_age(runs)] == ["bottom", "middle", "old", "new"]
