"""The history of benchmarks keeps ratios and names rows that became slower."""

import pytest

from benchmarks import history
from benchmarks.history import Sitting
from benchmarks.measure import Row, Timing


def row(wall: float, cpu: float, name: str = "append read") -> Row:
    ours = [Timing(wall, cpu, 5), Timing(2 * wall, 2 * cpu, 5)]
    return Row(name, 5, {"ours": ours, "parquet": [Timing(1.0, 2.0, 5)], "java": [Timing(0.1, 0.1, 5)]})


def kept(*ratios: tuple[float, float]) -> list[Sitting]:
    rows = ({"append read, 5 rows": {"parquet": {"wall": wall, "cpu": cpu}}} for wall, cpu in ratios)
    return [Sitting("2026-11-27T12:00:00+00:00", "c", "m", row) for row in rows]


def test_ratios_are_of_least_times():
    alone = Row("alone", 5, {"ours": [Timing(1, 1, 5)]})
    theirs = Row("theirs", 5, {"parquet": [Timing(1, 1, 5)]})
    waited = Row("waited", 5, {"ours": [Timing(1, 0, 5)], "parquet": [Timing(1, 0, 5)]})
    assert history.ratios_of([row(1.5, 1.0), alone, theirs, waited]) == {
        "append read, 5 rows": {"parquet": {"wall": 1.5, "cpu": 0.5}, "java": {"wall": 15.0, "cpu": 10.0}},
        "waited, 5 rows": {"parquet": {"wall": 1.0}},
    }


@pytest.mark.parametrize(
    ("wall", "cpu", "found"),
    [
        (1.19, 2.5, 0),  # CPU time alone
        (1.5, 2.3, 0),  # wall time alone: the machine was busy
        (1.3, 2.5, 1),
        (0.5, 1.0, 0),
    ],
)
def test_slower_rows_are_slower_by_both_clocks(wall, cpu, found):
    sentences = history.slower(history.ratios_of([row(wall, cpu)]), kept((1.0, 1.0)))
    assert len(sentences) == found
    if found:
        assert sentences == ["append read, 5 rows: slower relative to parquet: wall 1.00 -> 1.30, cpu 1.00 -> 1.25"]


def test_row_is_compared_with_median_of_last_five_runs():
    before = kept((9.0, 9.0), (9.0, 9.0), (1.0, 1.0), (1.1, 1.1), (0.9, 0.9), (1.0, 1.0), (5.0, 5.0))
    assert history.slower(history.ratios_of([row(1.3, 2.6)]), before)
    assert not history.slower(history.ratios_of([row(1.3, 2.6, "a new row")]), before)
    assert not history.slower(history.ratios_of([row(1.3, 2.6)]), [])


def test_kept_run_is_read_back(tmp_path):
    path = tmp_path / "history.jsonl"
    assert history.earlier(path) == []
    runs = [history.sitting([row(wall, 1.0)], "2 cores", tmp_path) for wall in (1.0, 2.0)]
    for run in runs:
        history.keep(run, path)
    assert history.earlier(path) == runs
    assert runs[0].commit == "unknown"
    assert runs[0].machine == "2 cores"


def test_history_of_repository_can_be_read():
    runs = history.earlier()
    assert runs
    assert [run.ended for run in runs] == sorted(run.ended for run in runs)
    measured = {who for run in runs for opponents in run.ratios.values() for who in opponents}
    assert {"parquet", "pyarrow"} <= measured
