"""The benchmarks about streams run on tiny data, in the session of the tests; what they count is looked at."""

import pytest

from benchmarks import cluster, small_files, streaming
from benchmarks import spark as range_rows
from benchmarks.engine import Arena
from benchmarks.measure import Timing
from benchmarks.spark_worker import NATIVE, Side
from paimon_core import Table

pytestmark = pytest.mark.spark


class Here:
    """A worker without a process of its own."""

    def __init__(self, side):
        self._side = side

    def call(self, **command):
        self._side.use_native(command.get("native", True))
        rows, wall = getattr(self._side, command["do"])(command)
        return {"rows": rows, "wall": wall, "cpu": 0.0}

    def timing(self, **command):
        answer = self.call(**command)
        return Timing(answer["wall"], answer["cpu"], answer["rows"])


@pytest.fixture
def contest(spark, tmp_path, monkeypatch):
    """A place, and the one side that there is."""
    for name, small in {"BATCHES": 1, "RATE": 1000, "WARM": 1, "IDLE": 1}.items():
        monkeypatch.setattr(streaming, name, small)
    side = Side("ours", str(tmp_path), spark)
    yield Arena(tmp_path, count=500, rounds=1, workers={}), {"ours": Here(side)}
    for key in NATIVE:
        spark.conf.unset(key)


@pytest.mark.slow
def test_source_benchmark_counts_all_rows(contest):
    assert streaming.source(*contest).timings["ours"][0].rows == 500


@pytest.mark.slow
def test_key_range_benchmark_counts_rows_of_engine(contest):
    row = range_rows.key_range(*contest)
    expected = Table.open(str(contest[0].warehouse / "default.db" / "spark_range"))
    count = expected.to_arrow(["k"], filter="k >= 2500 AND k < 2550").num_rows
    assert 0 < count == row.timings["ours"][0].rows == row.timings["bare"][0].rows


@pytest.mark.more
def test_path_benchmark_counts_rows_of_parquet(contest):
    *_, one, count = range_rows.path_reads(contest[0], contest[1]["ours"])
    assert one.timings["ours"][0].rows == one.timings["parquet"][0].rows == 1
    assert count.timings["ours"][0].rows == count.timings["parquet"][0].rows == range_rows.PATH_FACTOR * 500


@pytest.mark.slow
def test_benchmark_of_small_files_keeps_rows_and_counts_partitions(contest):
    arena, sides = contest
    write, by_partition, count, part, total, compact = small_files.of_layout(
        arena, sides["ours"], small_files.Layout(2, 2, 10)
    )
    for row, expected in ((write, 40), (by_partition, 2), (count, 1), (part, 1), (total, 1), (compact, 40)):
        assert {timings[0].rows for timings in row.timings.values()} == {expected}


@pytest.mark.slow
def test_benchmark_of_deleted_rows_reads_the_other_rows(contest):
    for row in range_rows.vector_reads(contest[0], contest[1]["ours"]):
        if row.name.endswith("one row"):
            assert row.timings["ours"][0].rows == row.timings["parquet"][0].rows == 1
    table = Table.open(str(contest[0].warehouse / "default.db" / "spark_vectors_30"))
    assert 0 < table.to_arrow(["d"]).num_rows < range_rows.PATH_FACTOR * 500 == table.scan().plan().splits[0].row_count


@pytest.mark.more
def test_benchmark_of_runs_reads_the_merged_rows(contest):
    for row in range_rows.merge_reads(contest[0], contest[1]["ours"]):
        counts = {timing.rows for timings in row.timings.values() for timing in timings}
        assert len(counts) == 1
        if row.name.endswith("count"):
            assert 0 < counts.pop() < range_rows.RUNS * range_rows.READ_FACTOR * 500


@pytest.mark.more
@pytest.mark.parametrize("dates", [0, 3])
def test_path_write_benchmark_writes_rows_of_parquet(contest, dates):
    row = range_rows.path_write(contest[0], contest[1]["ours"], dates)
    assert row.timings["ours"][0].rows == row.timings["parquet"][0].rows == range_rows.PATH_FACTOR * 500


@pytest.mark.slow
def test_sink_benchmark_counts_all_input_rows(contest):
    append, keyed, _, lag, idle, commit = streaming.streams(*contest, commits=3, seconds=1)
    assert append.timings["ours"][0].rows == keyed.timings["ours"][0].rows == 500
    assert lag.values["ours_rows/s"] > 0
    assert idle.timings["ours"][0].wall > 0
    assert {timing.rows for who in ("ours", "fresh") for timing in commit.timings[who]} == {100}


@pytest.mark.more
def test_cluster_benchmark_counts_the_same_rows_for_each_contestant(contest, monkeypatch):
    monkeypatch.setattr(cluster, "_READS", {"3 aggregates": cluster._READS["3 aggregates"]})
    done = list(cluster.of_session(contest[0], contest[1]["ours"]))
    assert [set(row.timings) for row in done] == [
        {"ours", "python"},
        {"ours", "python", "first"},
        *[{"ours", "python"}] * 2,
    ]
    assert {timings[0].rows for row in done[2:] for timings in row.timings.values()} == {3750}
