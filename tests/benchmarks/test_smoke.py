"""Every benchmark runs on tiny data; what it measures is not looked at, what it counts is."""

import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks import __main__ as benchmark
from benchmarks import advice, engine, files, indexes, lsm, maintenance, metadata, report, rows, stored
from benchmarks.engine import Arena
from benchmarks.measure import Row, Timing, race

TOO_SMALL = ("small upserts", "upserts with vectors")
"""The tables of the benchmark that need no advice if they have few rows."""


@pytest.fixture
def arena(tmp_path):
    return Arena(tmp_path, count=500, rounds=1, workers={})


def test_engine_s_benchmarks_agree_with_pyarrow_where_both_count_same(arena):
    done = list(engine.benchmarks(arena))
    assert all({"ours", "pyarrow"} <= set(row.timings) for row in done)
    alone = next(row for row in done if row.name.startswith("merge read, 1 runs, int"))
    assert {t[0].rows for t in alone.timings.values()} == {500}


@pytest.mark.slow
def test_planning_touches_only_manifests_of_partition_asked_for(arena):
    rows = metadata.benchmarks(arena, files=(1_000,), commits=40, most=1_000, buckets=(3,))
    everything, filtered, page, calls, synced, small, beside = rows
    assert everything.timings["ours"][0].rows == 1_000
    assert filtered.timings["ours"][0].rows == 10
    assert filtered.values["manifests_read"] < filtered.values["manifests"]
    assert page.timings["ours"][0].rows > 100
    assert calls.values["calls_few"] == calls.values["calls_many"]
    assert {label: timing[0].rows for label, timing in synced.timings.items()} == {"ours": 20, "commit.sync=false": 20}
    assert small.timings["ours"][0].rows == 40
    assert beside.timings["ours"][0].rows == 1


@pytest.mark.slow
def test_benchmark_of_many_files_counts_small_table(tmp_path):
    done = {row.name: row for row in files.benchmarks(Arena(tmp_path, 500, 1, {}, 2_000), partitions=300, snapshots=5)}
    counts = {name: row.timings["ours"][0].rows for name, row in done.items()}
    assert counts["plan 2,000 files"] == counts["$files of 2,000 files"] == 2_000
    assert counts["plan 2,000 files where dt = 7"] == 20
    assert counts["plan 300 partitions"] >= 300
    assert counts["look up a key among 2,000 files"] == 1
    assert counts["expire 5 snapshots, 1,000 files"] == 5


@pytest.mark.slow
def test_maintenance_benchmark_counts_small_table(arena):
    done = maintenance.benchmarks(arena, files=200, live=200, snapshots=20, tags=5, long=30)
    files, orphans, expiry, tags, expired_tags, rows, changes, calls = done
    assert files.timings["ours"][0].rows == 200
    assert orphans.timings["ours"][0].rows == 101  # one per partition, and one that no snapshot names
    assert expiry.timings["ours"][0].rows == 20
    assert tags.timings["ours"][0].rows == expired_tags.timings["ours"][0].rows == 5
    assert expired_tags.values["files_left"] == expiry.values["files_left"]
    assert rows.timings["ours"][0].rows == changes.timings["ours"][0].rows == 2_500
    assert calls.values["calls_after_10"] == calls.values["calls_after_30"]


@pytest.mark.slow
def test_advice_is_followed_until_table_is_like_its_compacted_copy(arena):
    *scans, cost = advice.benchmarks(arena, files=200)
    before, after = scans[::2], scans[1::2]
    advised = [bool(row.values["advice"]) for row in before]
    assert advised == [name not in TOO_SMALL for name in advice.TABLES]
    assert [bool(row.values["commands"]) for row in after] == advised
    assert [row.goals for row in after] == [{"compacted": 1.1} if given else {} for given in advised]
    assert [row.timings["compacted"][0].rows for row in before] == [row.timings["ours"][0].rows for row in after]
    assert cost.timings["ours"][0].rows == 200


def test_look_ups_open_files_that_hold_keys_and_indexes_leave_files_out(arena):
    at_once, one_by_one = indexes.look_up(arena, files=20, keys=5)
    assert at_once.timings["ours"][0].rows == one_by_one.timings["ours"][0].rows == 5
    assert at_once.values["files_opened"] <= 5
    skipped = indexes.skipping(arena, files=10)
    assert skipped.timings["ours"][0].rows == skipped.timings["without"][0].rows >= 1
    assert skipped.values["files_opened_ours"] < skipped.values["files_opened_without"] <= 10


def test_lookups_are_measured_and_checked(arena):
    done = [indexes.upserts(arena, *kind) for kind in indexes.KINDS.items()]
    done += [indexes.dynamic(arena), indexes.vectors(arena)]
    assert all(len({timing[0].rows for timing in row.timings.values()}) == 1 for row in done)


def test_contestants_that_disagree_stop_run():
    with pytest.raises(AssertionError, match="race"):
        race(Row("race", 1), {"ours": lambda: Timing(1, 1, 3), "java": lambda: Timing(1, 1, 4)}, 1)


def test_opponent_that_refuses_is_noted():
    def refuse():
        raise RuntimeError("no such type")

    row = race(Row("race", 1), {"ours": lambda: Timing(1, 1, 3), "java": refuse}, 1)
    assert row.refused == {"java": "no such type"}
    assert "java refused" in report.line(row)


def test_rounds_without_cpu_time_do_not_count():
    rounds = {"ours": [Timing(2, 3, 1), Timing(3, -0.1, 1)], "java": [Timing(4, 0, 1)]}
    row = Row("a row", 100, rounds, {"java": 0.4})
    assert (row.best("ours", "cpu"), row.best("java", "cpu"), row.met("java")) == (3, 0, False)
    assert "java 0.50 (nan) <= 0.40 MISSED" in report.line(row)


def test_report_has_every_number(tmp_path):
    row = Row("a <row>", 100, {"ours": [Timing(2, 1, 100)], "java": [Timing(4, 5, 100)]}, {"java": 0.4})
    assert "java 0.50 (0.20) <= 0.40 met" in report.line(row)
    text, raw, picture = report.save([row], tmp_path)
    assert report.load(raw) == [row]
    assert "a <row>" in text.read_text()
    assert json.loads(raw.read_text())["rows"][0]["timings"]["java"][0]["wall"] == 4
    assert "a &lt;row&gt;" in picture.read_text()


def test_files_of_stored_rows_flag_rows_that_merge_keeps(arena, tmp_path):
    table = arena.table("runs", "int", keyed=True, buckets=2)
    for seed in range(3):
        table.write(rows.make(500, "int", seed))
    files = stored.write(table, tmp_path / "stored")
    every = pa.concat_tables([pq.read_table(file) for file in files])
    kept = every.filter(pc.field(stored.KEPT)).drop_columns([stored.KEPT])
    assert every.num_rows == 1500
    assert kept.sort_by("k") == table.to_arrow().sort_by("k").cast(kept.schema)


@pytest.mark.slow
def test_late_states_of_upserts_have_all_keys_and_more_rows_with_limit_of_java(arena):
    written, read = lsm.upserts(arena, lsm.Loop(commits=80, size=500, keys=20_000))
    assert written.values["files_at_most"] > 1
    assert {timings[0].rows for timings in read.timings.values()} == {10 * 20_000}
    assert read.values["with_fixed"] > read.values["stored_rows_per_row"] >= 1


def test_interrupted_run_keeps_its_parts_and_is_continued(tmp_path):
    def interrupted():
        yield Row("second", 1)
        raise KeyboardInterrupt

    done = []
    benchmark.measure([Row("first", 1, {"ours": [Timing(1.0, 0.5, 1)]}, {"pyarrow": 1.5})], done, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        benchmark.measure(interrupted(), done, tmp_path)
    assert report.load(tmp_path / "benchmarks.json") == done[:1]
