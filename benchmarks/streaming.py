"""Streams, local[2]: this project on its pyspark against the Java connector on pyspark 3.5, on the same data."""

import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import rows
from benchmarks.engine import Arena
from benchmarks.measure import Row, Timing, Work, race
from benchmarks.spark import SparkSide, Worker
from paimon_core import Schema, Table

BATCHES = 4
TIMED = pa.schema([("timestamp", pa.timestamp("us", tz="UTC")), ("value", pa.int64())])
RATE, WARM, SECONDS, IDLE, COMMITS = 50_000, 5, 20, 3, 1_000  # WARM: batches that are not looked at


def benchmarks(arena: Arena, sides: tuple[str, ...] = ("ours", "java")) -> Iterator[Row]:
    """Every row about streams."""
    running: dict[str, SparkSide] = {}
    try:
        for side in sides:
            running[side] = SparkSide(side, arena.warehouse)
        yield from streams(arena, running)
    finally:
        for side in running.values():
            side.close()


def streams(
    arena: Arena, running: Mapping[str, Worker], commits: int = COMMITS, seconds: int = SECONDS
) -> Iterator[Row]:
    """The same with workers that run; fewer ``commits`` and ``seconds`` are for trying out."""
    yield sink(arena, running, "append table", keyed=False)
    yield sink(arena, running, "4 buckets by key, compacting", keyed=True)
    yield source(arena, running)
    yield lag(arena, running, seconds)
    yield idle(arena, running)
    yield commit(arena, running, commits)


def sink(arena: Arena, running: Mapping[str, Worker], name: str, *, keyed: bool) -> Row:
    """Batches of files into a table that is recreated for each round; `bare` is a Python sink that drops its rows."""
    arriving, fresh = _files(arena, f"arriving-{keyed}", arena.count), itertools.count()

    def work(side: str, worker: Worker) -> Timing:
        table = f"stream_sink_{keyed}_{side}_{next(fresh)}"
        arena.table(table, "int", keyed=keyed, buckets=4, options={"write-only": "false"})
        return worker.timing(do="stream_write", table=table, input=arriving)

    def bare() -> Timing:
        return running["ours"].timing(do="stream_write", table="bare", input=arriving, format="bare")

    row = Row(f"Stream: sink, {name}", BATCHES * arena.count, goals={"connector": 1.0})
    return race(row, {**_contestants(running, work), "bare": bare}, arena.rounds, patience=120)


def source(arena: Arena, running: Mapping[str, Worker]) -> Row:
    """All rows of an append table through a stream into nothing."""
    table = arena.table("stream_source", "int", keyed=False)
    for seed in range(BATCHES):
        table.write(rows.make(arena.count, "int", seed))

    def work(_: str, worker: Worker) -> Timing:
        return worker.timing(do="stream_read", table="stream_source")

    row = Row("Stream: source, append table", BATCHES * arena.count, goals={"connector": 1.0})
    return race(row, _contestants(running, work), arena.rounds, patience=120)


def lag(arena: Arena, running: Mapping[str, Worker], seconds: int) -> Row:
    """The mean age of a row when it has gone from the rate source through a table into nothing; one look is enough."""
    row = Row(f"Stream: lag at {RATE // 1000} k rows/s", 1, goals={"connector": 1.0})
    for side, worker in running.items():
        table = f"stream_lag_{side}"
        Table.create(str(arena.warehouse / "default.db" / table), Schema(TIMED))
        command = {"do": "stream_lag", "table": table, "rate": RATE, "warm": WARM, "seconds": seconds}
        answer = worker.call(**command)
        row.timings[_name(side)] = [Timing(answer["wall"], answer["cpu"], 1)]
        row.values[f"{_name(side)}_rows/s"] = round(answer["rows"])
    return row


def idle(arena: Arena, running: Mapping[str, Worker]) -> Row:
    """Measure a trigger without new data, and a stream that waits for a second.

    On the wall a trigger of ours is longer than it works: it waits before it looks again, so as not to keep a
    processor, or an object store, busy.
    """
    arena.table("stream_idle", "int", keyed=False).write(rows.make(100, "int", 0))
    row = Row("Stream: empty trigger", 1, goals={"connector": 1.0})
    for side, worker in running.items():
        worker.call(do="stream_start", table="stream_idle")
        answers = [worker.call(do="stream_idle", seconds=IDLE) for _ in range(arena.rounds)]
        worker.call(do="stream_stop")
        row.timings[_name(side)] = [Timing(a["wall"], a["cpu"] / max(1, a["rows"]), 1) for a in answers]
        row.values[f"{_name(side)}_ms_of_cpu_per_s"] = round(1000 * min(a["cpu"] for a in answers) / IDLE)
    return row


def commit(arena: Arena, running: Mapping[str, Worker], commits: int) -> Row:
    """A batch of a few rows into a table of many commits, and into one of a single commit."""
    arriving, few, bucket = _files(arena, "few", 100), rows.make(10, "int", 0), {"bucket": "1", "bucket-key": "k"}
    old = arena.table("stream_old", "int", keyed=False, options=bucket)
    for _ in range(commits):
        old.write(few)
    for side in running:
        shutil.copytree(old.path, Path(old.path).with_name(f"stream_old_{side}"))
    arena.table("stream_fresh", "int", keyed=False, options=bucket).write(few)

    def work(side: str, worker: Worker) -> Timing:
        table = f"stream_old_{side}" if side in running else "stream_fresh"
        return worker.timing(do="stream_write", table=table, input=arriving, commits=True)

    row = Row(f"Stream: batch after {commits:,} commits", 1, goals={"connector": 1.0, "fresh": 1.2})
    contestants = {**_contestants(running, work), "fresh": partial(work, "fresh", running["ours"])}
    return race(row, contestants, arena.rounds, patience=120)


def _contestants(running: Mapping[str, Worker], work: Callable[[str, Worker], Timing]) -> dict[str, Work]:
    return {_name(side): partial(work, side, worker) for side, worker in running.items()}


def _name(side: str) -> str:
    return "ours" if side == "ours" else "connector"


def _files(arena: Arena, name: str, count: int) -> str:
    place = arena.warehouse / name
    place.mkdir()
    for seed in range(BATCHES):
        pq.write_table(rows.make(count, "int", seed), place / f"{seed}.parquet")
    return str(place)
