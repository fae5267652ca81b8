"""Bounded memory: large merges, reads, writes and compactions in a process with a limit.

Every case runs in a separate process. It works on a small table first, so that threads and caches exist. Then it limits
its address space to a little more than it has.
"""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from paimon_core.table import Table
from tests.support.tables import append_table, keyed_table

WIDTH = 600
RUNS = 8
ALLOWED = 360  # MB of address space on top of what an idle process has; what counts is that runs may be of any length

PRELUDE = """
import resource, sys
import numpy as np, pyarrow as pa, pyarrow.compute as pc
from paimon_core import Table
path, small, extra = sys.argv[1], sys.argv[2], int(sys.argv[3])

def batches(count, rows, width, keys):
    random = np.random.default_rng(1)
    for i in range(count):
        ids = pa.array(random.integers(0, keys, rows))
        raw = random.bytes(rows * width)
        offsets = pa.py_buffer(np.arange(0, (rows + 1) * width, width, dtype=np.int32))
        values = pa.Array.from_buffers(pa.binary(), rows, [None, offsets, pa.py_buffer(raw)])
        yield pa.RecordBatch.from_arrays([ids, values], names=["id", "v"])

def limit():
    with open("/proc/self/statm") as f:
        have = int(f.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (have + (extra << 20),) * 2)
"""
READ = """
for where in (small, path):
    if where == path: limit()
    rows = size = 0
    for batch in Table.open(where, options={"read.batch-size": "2048"}).to_batches():
        rows += batch.num_rows
        size += batch.nbytes
print(rows, size >> 20)
"""
WRITE = """
for where, count in ((small, 2), (path, int(sys.argv[4]))):
    if where == path: limit()
    table = Table.open(where)
    with table.writer() as writer:
        for batch in batches(count, 4000, 600, 1 << 40):
            writer.write(batch)
        table.committer().commit(writer.prepare_commit())
print(table.snapshot().total_record_count)
"""
COMPACT = """
for where in (small, path):
    if where == path: limit()
    Table.open(where, options={"read.batch-size": "2048"}).compact(full=True)
print(Table.open(path).snapshot().total_record_count)
"""
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.binary())])


def run(code: str, *arguments: object) -> list[int]:
    environment = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "65536",
                   "PYTHONPATH": ":".join(p for p in sys.path if p), "PATH": "/usr/bin:/bin"}  # fmt: skip
    small_stacks = ["/bin/sh", "-c", 'ulimit -s 1024 && exec "$@"', "sh"]  # 8 MB for a thread that starts late is a lot
    command = [*small_stacks, sys.executable, "-c", PRELUDE + code, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return [int(word) for word in done.stdout.split()]


def fill(table: Table, runs: int, rows: int, *, disjoint: bool = False) -> None:
    """Write runs of 600-byte rows; each run overlaps all other runs unless they are disjoint."""
    for i in range(runs):
        start = i * rows if disjoint else i
        writer = table.writer()
        for at in range(0, rows, 50_000):
            count = min(50_000, rows - at)
            raw = np.zeros((count, WIDTH), np.uint8)
            raw[:, :16] = np.random.default_rng(i).integers(0, 256, (count, 16))
            offsets = pa.py_buffer(np.arange(0, (count + 1) * WIDTH, WIDTH, dtype=np.int32))
            values = pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(raw)])
            ids = pa.array(np.arange(start + at, start + at + count))
            writer.write(pa.record_batch([ids, values], schema=SCHEMA))
        table.committer().commit(writer.prepare_commit())


def pair(tmp_path, make, **options) -> tuple[Table, Table]:
    """Return a table to fill and a small table with the same options."""
    large, small = make(tmp_path / "large", SCHEMA, **options), make(tmp_path / "small", SCHEMA, **options)
    fill(small, RUNS, 3000)
    return large, small


def merge(tmp_path, format_: str, rows: int) -> None:
    large, small = pair(tmp_path, keyed_table, bucket="1", write_only="true", **{"file.format": format_})
    fill(large, RUNS, rows)
    assert len(large.scan().plan().splits[0].files) >= RUNS
    result, megabytes = run(READ, large.path, small.path, ALLOWED)
    assert result == rows + RUNS - 1
    assert megabytes >= rows * WIDTH >> 20


@pytest.mark.parametrize("format_", ["parquet", pytest.param("orc", marks=pytest.mark.slow)])
@pytest.mark.more
def test_merge_of_many_runs_needs_one_window_per_run(tmp_path, format_):
    merge(tmp_path, format_, 3 * ALLOWED * (1 << 19) // WIDTH // RUNS)


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_merge_of_ten_times_memory_stays_in_bounds(tmp_path, format_):
    merge(tmp_path, format_, ALLOWED * 10 * (1 << 20) // WIDTH // RUNS)


@pytest.mark.parametrize("format_", ["parquet", "orc", "avro"])
@pytest.mark.cases(1)
def test_append_table_read_needs_one_batch(tmp_path, format_):
    large, small = pair(tmp_path, append_table, **{"file.format": format_})
    rows = 20_000 if format_ == "avro" else 60_000
    fill(large, RUNS, rows, disjoint=True)
    result, _ = run(READ, large.path, small.path, rows * WIDTH * RUNS * 4 // 10 >> 20)
    assert result == RUNS * rows


def write(tmp_path, make, count: int) -> None:
    """Rows that no encoding makes small, 2.3 MB a batch. What waited on local disk is merged: a batch of each run."""
    options = {"write_buffer_size": "16 mb", "write_only": "true", "file.compression": "none"}
    large, small = pair(tmp_path, make, **options)
    (rows,) = run(WRITE, large.path, small.path, 280 if make is keyed_table else 180, count)
    assert rows == count * 4000


makers = pytest.mark.parametrize("make", [keyed_table, append_table])


@makers
@pytest.mark.more
def test_write_buffer_size_bounds_memory(tmp_path, make):
    """The rows exceed the memory of the process."""
    write(tmp_path, make, 160)


@pytest.mark.slow
@makers
def test_write_of_ten_times_memory_stays_in_bounds(tmp_path, make):
    write(tmp_path, make, 800)


BLOBS = """
for where, count in ((small, 2), (path, int(sys.argv[4]))):
    if where == path: limit()
    table = Table.open(where)
    with table.writer() as writer:
        for batch in batches(count, 4, 600 << 10, 1 << 40):
            writer.write(batch)
        table.committer().commit(writer.prepare_commit())
print(table.snapshot().next_row_id)
"""


def test_blob_write_streams_values(tmp_path):
    """One file receives twice the memory of the process."""
    options = {"write_buffer_size": "16 mb", "row-tracking.enabled": "true", "data-evolution.enabled": "true",
               "blob-field": "v", "blob.target-file-size": "1 gb"}  # fmt: skip
    large, small = (append_table(tmp_path / name, SCHEMA, **options) for name in ("large", "small"))
    assert run(BLOBS, large.path, small.path, 120, 100) == [400]
    (split,) = large.scan().plan().splits
    assert len(split.files) == 2


def compact(tmp_path, format_: str, rows: int, runs: int) -> None:
    large, small = pair(tmp_path, keyed_table, bucket="1", write_only="true", **{"file.format": format_})
    fill(large, runs, rows)
    assert len(large.scan().plan().splits[0].files) >= runs
    assert run(COMPACT, large.path, small.path, ALLOWED) == [rows + runs - 1]


@pytest.mark.more
@pytest.mark.parametrize("format_", ["parquet", pytest.param("avro", marks=pytest.mark.slow)])
def test_compaction_needs_one_window_per_run(tmp_path, format_):
    compact(tmp_path, format_, 3 * ALLOWED * (1 << 19) // WIDTH // 30, 30)


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_compaction_of_hundred_runs_stays_in_memory_bounds(tmp_path, format_):
    compact(tmp_path, format_, ALLOWED * 10 * (1 << 20) // WIDTH // 100, 100)


@pytest.mark.more
def test_compacting_writer_stays_in_memory_bounds(tmp_path):
    """The rows take all memory that the process may have, more than once."""
    large, small = pair(tmp_path, keyed_table, bucket="2", write_buffer_size="16 mb", **{"file.compression": "none"})
    count = 180
    (rows,) = run(WRITE, large.path, small.path, ALLOWED, count)
    assert rows == count * 4000


BULKY = """
for where in (small, path):
    if where == path: limit()
    rows = size = ids = ones = 0
    table = Table.open(where)
    if len(sys.argv) > 4: table.compact(full=True)
    for batch in table.to_batches():
        rows += batch.num_rows
        size += batch.nbytes
        ids += pc.sum(batch["id"]).as_py()
        ones += pc.sum(batch["n"]).as_py()
print(rows, size >> 20, ids, ones)
"""
LONG = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int64())])
BULKY_ALLOWED = 480  # a merge takes 280 to 300 MB on an idle machine and 380 on a busy one, of any number of rows


def bulky(table: Table, runs: int, rows: int) -> None:
    """Write overlapping runs of 1 200-byte rows that take about one byte on storage."""
    text = "nothing new; " * 92
    for i in range(runs):
        columns = [
            np.arange(i, i + rows),
            pa.DictionaryArray.from_arrays(np.zeros(rows, np.int8), [text]),
            np.ones(rows),
        ]
        columns = [columns[0], columns[1].cast(pa.string()), columns[2].astype(np.int64)]
        table.write(pa.table(columns, schema=LONG))


def merge_bulky(tmp_path, format_: str, runs: int, compacted: bool, engine: str, megabytes: int) -> None:
    """Merge rows of more than the allowed memory, and check their sums."""
    settings = {"bucket": "1", "write_only": "true", "file.format": format_, "merge_engine": engine,
                "fields.n.aggregate-function": "sum"}  # fmt: skip
    large = keyed_table(tmp_path / "large", LONG, **settings)
    small = keyed_table(tmp_path / "small", LONG, **settings)
    rows = int(megabytes * (1 << 20) / 1200 / runs)
    bulky(small, runs, 50)
    bulky(large, runs, rows)
    files = large.scan().plan().splits[0].files
    assert sum(f.row_count for f in files) * 1200 > 100 * sum(f.file_size for f in files)
    arguments = [BULKY_ALLOWED, *(["compact"] if compacted else [])]
    result, size, ids, ones = run(BULKY, large.path, small.path, *arguments)
    keys = rows + runs - 1
    assert (result, ids) == (keys, keys * (keys - 1) // 2)
    assert ones == (runs * rows if engine == "aggregation" else keys)
    assert size >= result * 1196 >> 20


@pytest.mark.parametrize("format_", ["parquet", pytest.param("orc", marks=pytest.mark.slow)])
@pytest.mark.more
def test_highly_compressed_rows_stay_in_memory_bounds(tmp_path, format_):
    merge_bulky(tmp_path, format_, 8, compacted=False, engine="deduplicate", megabytes=720)


@pytest.mark.parametrize("engine", [pytest.param("deduplicate", marks=pytest.mark.slow), "aggregation"])
@pytest.mark.more
def test_hundred_runs_are_read_over_local_disk(tmp_path, engine):
    merge_bulky(tmp_path, "parquet", 100, compacted=False, engine=engine, megabytes=540)


@pytest.mark.slow
@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("engine", ["deduplicate", "aggregation"])
@pytest.mark.parametrize("format_", ["parquet", "orc", "avro"])
def test_merge_of_hundred_runs_stays_in_memory_bounds(tmp_path, format_, engine, compacted):
    merge_bulky(tmp_path, format_, 100, compacted=compacted, engine=engine, megabytes=4800)
