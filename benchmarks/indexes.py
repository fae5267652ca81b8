"""Benchmarks of lookups: changelogs and deletion vectors of upserts, dynamic buckets, lookups of keys, file indexes."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import rows
from benchmarks.engine import Arena
from benchmarks.measure import Row, Timing, Work, race, timed
from paimon_core import Table
from paimon_core.fileio.fileio import FileIO
from paimon_core.store.file_store import FileStore
from tests.support.faulty_io import FaultyIO

UPSERTS = 8  # the table has this many times the rows of one upsert
FILES, KEYS = 1_000, 1_000
KINDS = {
    "lookup changelog": {"changelog-producer": "lookup"},
    "full-compaction changelog": {"changelog-producer": "full-compaction"},
    "deletion vectors": {"deletion-vectors.enabled": "true"},
    "both": {"changelog-producer": "lookup", "deletion-vectors.enabled": "true"},
}


def benchmarks(arena: Arena) -> Iterator[Row]:
    """All rows, one after another."""
    for name, options in KINDS.items():
        yield upserts(arena, name, options)
    yield dynamic(arena)
    yield vectors(arena)
    yield from look_up(arena)
    yield skipping(arena)


def _plain(arena: Arena, name: str, **options: str) -> Table:
    return arena.table(name, "int", keyed=True, options={"write-only": "false", **options})


def upserts(arena: Arena, name: str, options: dict[str, str]) -> Row:
    """Measure upserts of an eighth of the table's rows, with compaction and commit; each upsert draws new keys.

    Compare them with the same upserts into a table without lookups, and with the Java engine.
    """
    size = arena.count // UPSERTS
    place = name.replace(" ", "_").replace("-", "_")
    row = Row(f"{UPSERTS} upserts, {name}", UPSERTS * size, goals={"java": 0.2})

    def ours(table: Table) -> Timing:
        data = [rows.make(size, "int", seed, overlap=float(UPSERTS)) for seed in range(UPSERTS)]

        def run() -> int:
            writer, committer = table.writer(), table.committer()
            for i, batch in enumerate(data):
                writer.write(batch)
                committer.commit(writer.prepare_commit(i), identifier=i)
            writer.close()
            return UPSERTS * size

        return timed(run)

    row.timings["ours"] = [ours(_plain(arena, f"upserts_{place}", **options))]
    row.timings["plain"] = [ours(_plain(arena, f"upserts_{place}_plain"))]
    if java := arena.workers.get("java"):
        _plain(arena, f"upserts_{place}_java", **options)
        parts = [java.write(f"default.upserts_{place}_java", size, n, key_stride=UPSERTS) for n in range(UPSERTS)]
        total = Timing(sum(t.wall for t in parts), sum(t.cpu for t in parts), UPSERTS * size)
        row.timings["java"] = [total]
    return row


def dynamic(arena: Arena) -> Row:
    """Measure an upsert into dynamic buckets, where half of the keys exist, and the same upsert into fixed buckets."""
    first, then = (rows.make(arena.count, "int", seed, overlap=2.0) for seed in (1, 2))
    wishes = {
        "ours": {"bucket": "-1", "dynamic-bucket.target-row-num": str(3 * arena.count // 8 + 1)},
        "fixed": {"bucket": "4"},
    }
    contestants: dict[str, Work] = {}
    for who, options in wishes.items():
        table = arena.table(f"dynamic_{who}", "int", keyed=True, options=options)
        table.write(first)
        contestants[who] = lambda t=table: _upsert(t, then)
    return race(Row("upsert into dynamic buckets", arena.count, goals={"fixed": 1.5}), contestants, arena.rounds)


def _upsert(table: Table, data: pa.Table) -> Timing:
    """Everything an upsert does but the commit."""
    messages: list[Any] = []

    def write() -> int:
        with table.writer() as writer:
            writer.write(data)
            messages.extend(writer.prepare_commit())
        return data.num_rows

    timing = timed(write)
    table.committer().abort(messages)
    return timing


def vectors(arena: Arena) -> Row:
    """Files with a twentieth of their rows deleted, and the same files with no row deleted."""
    table = arena.table("vectors", "int", keyed=False, options={"deletion-vectors.enabled": "true"})
    for seed in range(4):
        table.write(rows.make(arena.count, "int", seed))
    table.delete("d < 5")
    splits, reader = table.scan().plan().splits, table.reader()
    assert any(split.vectors for split in splits)
    whole = [replace(split, vectors=()) for split in splits]
    left = table.to_arrow(columns=["k"]).num_rows

    def read(chosen: list[Any]) -> Work:
        def run() -> int:
            found = sum(batch.num_rows for split in chosen for batch in reader.to_batches(split))
            assert found == (left if chosen is splits else 4 * arena.count)
            return left

        return lambda: timed(run)

    row = Row("read with deletion vectors", 4 * arena.count, goals={"without": 1.15})
    return race(row, {"ours": read(splits), "without": read(whole)}, arena.rounds)


def look_up(arena: Arena, files: int = FILES, keys: int = KEYS) -> Iterator[Row]:
    """Look up keys in a table of many files with disjoint key ranges."""
    each = max(10, arena.count // 400)
    table = arena.table("look_up", "int", keyed=True)
    writer = table.writer()
    messages = []
    for i in range(files):
        batch = rows.make(each, "int", i, overlap=1.0)
        ids = pa.array(batch.column("k").to_numpy() + i * each)
        writer.write(batch.set_column(0, batch.schema.field(0), ids))
        messages += writer.prepare_commit()
    table.committer().commit(messages)
    wanted = np.random.default_rng(1).choice(files * each, keys, replace=False)
    for name, chosen in ((f"{keys} keys at once", [wanted]), (f"{min(keys, 100)} keys one by one", wanted[:100])):
        questions = [pa.table({"k": np.atleast_1d(k)}) for k in chosen]
        row = Row(f"look up {name}, {files} files", sum(q.num_rows for q in questions))
        row.timings["ours"] = [_looked_up(table, questions)]
        row.values = {
            "milliseconds": round(1e3 * row.best("ours"), 1),
            **_opened(table, lambda t, q=questions: _all(t, q)),
        }
        yield row


def _all(table: Table, questions: list[pa.Table]) -> int:
    return sum(table.get(question).num_rows for question in questions)


def _looked_up(table: Table, questions: list[pa.Table]) -> Timing:
    start = time.perf_counter()
    cpu = time.process_time()
    found = _all(table, questions)
    assert found == sum(question.num_rows for question in questions)
    return Timing(time.perf_counter() - start, time.process_time() - cpu, found)


def skipping(arena: Arena, files: int = 200) -> Row:
    """Search a text in an append table of many files whose ranges all hold it, with and without a bloom filter."""
    row = Row(f"one text in {files} files", files)
    data = [rows.make(max(10, arena.count // 40), "text", seed) for seed in range(files)]
    wanted = data[files // 2].column("k")[7].as_py()
    bloom = {"file-index.bloom-filter.columns": "k", "file-index.bloom-filter.k.items": str(data[0].num_rows)}
    for who, options in (("ours", bloom), ("without", {})):
        table = arena.table(f"skipping_{who}", "text", keyed=False, options=options)
        writer = table.writer()
        messages = []
        for batch in data:
            writer.write(batch)
            messages += writer.prepare_commit()
        table.committer().commit(messages)
        question = {"filter": f"k = '{wanted}'"}
        row.timings[who] = [timed(lambda t=table, q=question: t.to_arrow(**q).num_rows)]
        opened = _opened(table, lambda t, q=question: t.to_arrow(**q).num_rows)
        row.values |= {f"{name}_{who}": value for name, value in opened.items()}
    return row


def _opened(table: Table, question: Callable[[Table], int]) -> dict[str, int]:
    """Return how many data and index files a lookup opens, and their sizes in bytes."""
    io = FaultyIO(FileIO.of(table.path))
    question(Table(FileStore(io, table.path, table.schema)))
    opened = {path for verb, path in io.log if verb in ("open", "read") and "/bucket-" in path}
    sizes = {status.path: status.size for bucket in {p.rsplit("/", 1)[0] for p in opened} for status in io.list(bucket)}
    indexes = sum(path.endswith(".index") for path in opened)
    return {
        "files_opened": len(opened) - indexes,
        "indexes_opened": indexes,
        "bytes_of_these": sum(sizes[path] for path in opened),
    }
