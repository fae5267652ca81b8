"""The tables of TPC-H: plain Parquet files of tpchgen-cli, and three kinds of Paimon tables with the same rows."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paimon_core import FileSystemCatalog, Schema, Table

KEYS = {
    "region": ["r_regionkey"],
    "nation": ["n_nationkey"],
    "supplier": ["s_suppkey"],
    "part": ["p_partkey"],
    "partsupp": ["ps_partkey", "ps_suppkey"],
    "customer": ["c_custkey"],
    "orders": ["o_orderkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
}
"""The tables and their primary keys."""
KINDS = ("append", "compacted", "runs")
"""Databases: append tables; tables with a primary key, compacted; the same with RUNS overlapping runs in MERGED."""
MERGED = {"orders": "o_totalprice", "lineitem": "l_quantity"}
"""The tables of overlapping runs, and the column whose values the later runs put right."""
RUNS = 5


def generate(folder: Path, scale: float) -> Path:
    """Write the Parquet files ``<table>.parquet`` with tpchgen-cli and return the folder. Raises OSError without it."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    command = str(beside) if beside.exists() else shutil.which("tpchgen-cli") or "tpchgen-cli"
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-s", f"{scale:g}", f"--output-dir={folder}"]
    subprocess.run([command, "parquet", *options], check=True, capture_output=True)
    return folder


def load(files: Path, warehouse: str, kind: str, buckets: int = 2) -> None:
    """Write the rows of all Parquet files to the tables of the database ``kind``."""
    catalog = FileSystemCatalog(warehouse)
    catalog.create_database(kind)
    for name in KEYS:
        _fill(catalog, kind, name, files / f"{name}.parquet", buckets)


def _fill(catalog: FileSystemCatalog, kind: str, name: str, file: Path, buckets: int) -> None:
    source = pq.ParquetFile(file)
    schema = pa.schema([pa.field(f.name, _plain(f.type), nullable=False) for f in source.schema_arrow])
    if kind == "append":
        table = catalog.create_table(f"{kind}.{name}", Schema(schema))
    else:
        options = {"bucket": str(buckets if name in MERGED else 1), "write-only": "true"}
        table = catalog.create_table(f"{kind}.{name}", Schema(schema, primary_keys=KEYS[name], options=options))
    if kind == "runs" and name in MERGED:
        for run in range(RUNS):
            _write(table, (_run(batch, MERGED[name], run) for batch in _batches(source, schema)))
        return
    _write(table, _batches(source, schema))
    if kind == "compacted":
        table.compact(full=True)


def _write(table: Table, batches: Iterator[pa.RecordBatch]) -> None:
    first = next(batches)
    table.write(pa.RecordBatchReader.from_batches(first.schema, _chain(first, batches)))


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string_view(kind) or pa.types.is_large_string(kind) else kind


def _batches(source: pq.ParquetFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in source.iter_batches(batch_size=1 << 17):
        yield from pa.Table.from_batches([batch]).cast(schema).to_batches()


def _run(rows: pa.RecordBatch, column: str, run: int) -> pa.RecordBatch:
    """Return the rows of one run. Run 0 has every key, with wrong values where a later run brings the right ones."""
    part = pa.array([*range(RUNS)] * (rows.num_rows // RUNS + 1)).slice(0, rows.num_rows)
    if run:
        return rows.filter(pc.equal(part, run))
    at = rows.schema.get_field_index(column)
    nothing = pa.scalar(Decimal(0), rows.schema.field(at).type)
    return rows.set_column(at, rows.schema.field(at), pc.if_else(pc.equal(part, 0), rows.column(at), nothing))
