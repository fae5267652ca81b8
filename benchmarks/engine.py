"""The engine in one process: merge reads, keyed writes, appends; against pyarrow, Rust, PyPaimon and Java."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import rows
from benchmarks.measure import Row, Timing, Work, race, timed
from paimon_core import FileSystemCatalog, Schema, Table

MERGE_GOALS = {"pyarrow": 1.5, "rust": 1 / 1.2, "java": 1 / 1.2, "pypaimon": 1 / 30}
WRITE_GOALS = {"pyarrow": 1.5, "rust": 1 / 1.2, "pypaimon": 1 / 20}
THREADS = 2


@dataclass(frozen=True, slots=True)
class Arena:
    """The setting of a run: the warehouse, the rows of a sorted run, the rounds, the opponents, the files."""

    warehouse: Path
    count: int
    rounds: int
    workers: dict[str, Any]
    files: int = 1_000_000

    def table(
        self, name: str, key: str, *, keyed: bool, buckets: int = 1, options: Mapping[str, str] | None = None
    ) -> Table:
        """A fresh table ``default.name``, write-only unless ``options`` say otherwise."""
        catalog = FileSystemCatalog(str(self.warehouse))
        catalog.create_database("default", ignore_if_exists=True)
        own = {"write-only": "true", **({"bucket": str(buckets)} if keyed else {}), **(options or {})}
        return catalog.create_table(
            f"default.{name}", Schema(rows.schema(key), primary_keys=["k"] if keyed else [], options=own)
        )

    def input_file(self, data: pa.Table, name: str) -> str:
        """The rows as an Arrow file for those in other processes."""
        path = str(self.warehouse / f"{name}.arrow")
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, data.schema) as writer:
            writer.write_table(data)
        return path


def benchmarks(arena: Arena) -> Iterator[Row]:
    """All rows of the engine, one after another."""
    for key in rows.KEYS:
        for runs, buckets in ((1, 1), (2, 1), (5, 1), (10, 1), (5, 4)):
            yield merge_read(arena, key, runs, buckets)
    for key in rows.KEYS:
        for buckets in (1, 4):
            yield keyed_write(arena, key, buckets)
    yield append_write(arena)
    yield from append_read(arena)


def merge_read(arena: Arena, key: str, runs: int, buckets: int) -> Row:
    """Read a table of ``runs`` overlapping runs in each of ``buckets`` buckets."""
    name = f"merge_{key}_{runs}_{buckets}"
    table = arena.table(name, key, keyed=True, buckets=buckets)
    for seed in range(runs):
        table.write(rows.make(arena.count, key, seed))
    row = Row(f"merge read, {runs} runs, {key} key, {buckets} bucket{'s' if buckets > 1 else ''}", runs * arena.count)
    row.goals = {who: goal for who, goal in MERGE_GOALS.items() if runs > 1 or who != "pypaimon"}  # one run: no merge
    return race(row, readers(arena, table, name, buckets), arena.rounds)


def readers(arena: Arena, table: Table, name: str, buckets: int, columns: list[str] | None = None) -> dict[str, Work]:
    """Return how each contestant reads a table; several buckets are read by one thread per core."""
    threads = THREADS if buckets > 1 else 1
    files = sorted(Path(table.path).glob("**/*.parquet"))

    def ours() -> int:
        reader, splits = table.reader(columns), table.scan().plan().splits
        return _sum(lambda split: sum(b.num_rows for b in reader.to_batches(split)), splits, threads)

    def raw() -> int:
        return _sum(lambda file: sum(b.num_rows for b in _decode(file, columns)), files, threads)

    contestants: dict[str, Work] = {"ours": lambda: timed(ours), "pyarrow": lambda: timed(raw)}
    where = {"do": "read", "table": f"default.{name}", "columns": columns}
    if pypaimon := arena.workers.get("pypaimon"):
        contestants["rust"] = lambda: pypaimon.timing(native=True, **where)
        contestants["pypaimon"] = lambda: pypaimon.timing(**where)
    if java := arena.workers.get("java"):
        contestants["java"] = lambda: java.read(f"default.{name}", threads, columns)
    return contestants


def _decode(file: Path, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    return pq.ParquetFile(file).iter_batches(1 << 17, columns=columns, use_threads=True)


def _sum(count: Any, items: Any, threads: int) -> int:
    if threads == 1:
        return sum(map(count, items))
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(count, items))


def keyed_write(arena: Arena, key: str, buckets: int) -> Row:
    """Route, sort and encode rows of a primary-key table, everything short of the commit."""
    row = Row(f"keyed write, {key} key, {buckets} bucket{'s' if buckets > 1 else ''}", arena.count)
    row.goals = {**WRITE_GOALS, "rust": 1 / 1.2 if buckets == 1 else 0.5}
    return _write(arena, row, f"write_{key}_{buckets}", key, buckets)


def append_write(arena: Arena) -> Row:
    """Encode rows of an append table, everything short of the commit."""
    row = Row("append write", arena.count, goals={"pyarrow": 1.5})
    return _write(arena, row, "append_write", "int", 0)


def _write(arena: Arena, row: Row, name: str, key: str, buckets: int) -> Row:
    keyed = buckets > 0
    data = rows.make(arena.count, key, 1)
    source = arena.input_file(data, name)
    tables = {who: arena.table(f"{name}_{who}", key, keyed=keyed, buckets=buckets) for who in ("ours", *_PARTIES)}

    def ours() -> Timing:
        def write() -> int:
            with tables["ours"].writer() as writer:
                writer.write(data)
                messages.extend(writer.prepare_commit())
            return data.num_rows

        messages: list[Any] = []
        timing = timed(write)
        tables["ours"].committer().abort(messages)
        return timing

    def raw() -> int:
        out = arena.warehouse / f"{name}.parquet"
        pq.write_table(data.sort_by("k") if keyed else data, out, compression="zstd", compression_level=1)
        return data.num_rows

    contestants: dict[str, Work] = {"ours": ours, "pyarrow": lambda: timed(raw)}
    if pypaimon := arena.workers.get("pypaimon"):
        contestants["rust"] = lambda: pypaimon.timing(
            do="write", native=True, table=f"default.{name}_rust", input=source
        )
        contestants["pypaimon"] = lambda: pypaimon.timing(do="write", table=f"default.{name}_pypaimon", input=source)
    if java := arena.workers.get("java"):
        contestants["java"] = lambda: java.write(f"default.{name}_java", arena.count, 1)
    return race(row, contestants, arena.rounds)


_PARTIES = ("rust", "pypaimon", "java")


def append_read(arena: Arena) -> Iterator[Row]:
    """Read an append table of several files: all columns, then two."""
    table = arena.table("append_read", "int", keyed=False)
    for seed in range(4):
        table.write(rows.make(arena.count, "int", seed))
    for columns in (None, ["k", "c"]):
        row = Row(f"append read, {len(columns) if columns else 'all'} columns", 4 * arena.count, goals={"pyarrow": 1.5})
        yield race(row, readers(arena, table, "append_read", 1, columns), arena.rounds)
