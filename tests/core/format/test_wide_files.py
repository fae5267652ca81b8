"""Parquet files of thousands of columns: their footers keep `memory-limit`, and their page indexes stay small.

The footer of a test's file seems to take 1 MiB for each column of a row group, so that few columns suffice.
"""

import gc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.format import parquet_writer
from paimon_core.memory import MemoryShares
from paimon_core.migration.describe_file import describe
from paimon_core.options.option import Options
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.write import append_writer

LIMIT = {"memory-limit": "64 mb"}
SHARE = MemoryShares.of(Options(LIMIT)).footer
CHUNK_BYTES = 1 << 20
UNAWARE = {"bucket": "-1"}


@pytest.fixture
def heavy_footers(monkeypatch):
    monkeypatch.setattr(parquet_writer, "_CHUNK_MEMORY", CHUNK_BYTES)


def rows_of(columns, rows, width=0) -> pa.Table:
    """Return rows of numbers, and of texts of this width if it is not 0."""
    counted = np.arange(rows)
    values = [pa.array(counted * 7 + i if i % 10 == 0 else counted * 0 + i) for i in range(columns)]
    if width:
        raw = np.full((rows, width), ord("x"), np.uint8)
        raw[:, :8] = counted.view(np.uint8).reshape(-1, 8) & 0x7F
        offsets = pa.py_buffer(np.arange(0, (rows + 1) * width, width, dtype=np.int32))
        values[1] = pa.StringArray.from_buffers(rows, offsets, pa.py_buffer(raw))
    return pa.table(values, [f"c{i}" for i in range(columns)])


def created(path, rows, keys=(), partitions=(), **options) -> Table:
    fields = [field.with_nullable(field.name not in keys) for field in rows.schema]
    schema = Schema(pa.schema(fields), partition_keys=list(partitions), primary_keys=list(keys), options=options)
    return Table.create(str(path), schema)


def footers(directory) -> list[pq.FileMetaData]:
    return [pq.read_metadata(path) for path in sorted(Path(directory).rglob("*.parquet"))]


@pytest.mark.cases(2)
@pytest.mark.parametrize("keys", [[], ["c0"]], ids=["append", "keyed"])
@pytest.mark.parametrize("width", [0, 200], ids=["numbers", "texts"])
def test_files_end_before_their_footers_take_more_memory_than_their_share(tmp_path, heavy_footers, keys, width):
    rows = rows_of(4, 300_000 if width else 1_500_000, width)
    table = created(tmp_path / "t", rows, keys, **LIMIT)
    table.write(rows)
    chunks = [(footer.num_row_groups, footer.num_columns) for footer in footers(table.path)]
    assert len(chunks) > 1
    if not keys:  # the encoder of a sorted file writes several row groups at once
        assert max((groups - 1) * columns * CHUNK_BYTES for groups, columns in chunks) < SHARE
    assert table.to_arrow().sort_by("c0").equals(rows.cast(table.to_arrow(limit=0).schema))


def test_compaction_leaves_files_that_are_full_by_their_footers(tmp_path, heavy_footers):
    rows = rows_of(4, 1_500_000)
    table = created(tmp_path / "t", rows, **UNAWARE, **LIMIT, **{"compaction.min.file-num": "2"})
    table.write(rows)
    assert len(footers(table.path)) > 3
    table.maintenance.compact()
    newest = table.snapshot().id
    table.maintenance.compact()
    assert table.snapshot().id == newest


def test_open_files_share_memory_of_footers(tmp_path, monkeypatch, heavy_footers):
    """Eight partitions in turns: the footer of one file would fit, the footers of all would not."""
    monkeypatch.setattr(append_writer, "SPILLED_BYTES", 1 << 20)  # so that files stay open
    rows = rows_of(4, 1_000_000).set_column(1, "c1", pa.array(np.arange(1_000_000) % 8))
    table = created(tmp_path / "t", rows, partitions=["c1"], **UNAWARE, **LIMIT)
    table.write(rows)
    groups = [footer.num_row_groups for footer in footers(table.path)]
    assert sum(groups) > 8
    assert len(groups) > 8
    assert table.to_arrow().sort_by("c0").equals(rows)


def test_replaced_columns_are_in_one_file_for_each_file_of_rows(tmp_path, monkeypatch):
    rows = rows_of(4, 1_500_000)
    evolving = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    table = created(tmp_path / "t", rows, **UNAWARE, **evolving)
    table.write(rows)
    assert len(footers(table.path)) == 1
    monkeypatch.setattr(parquet_writer, "_CHUNK_MEMORY", SHARE // 2)
    Table.open(table.path, options=LIMIT).update({"c2": 5}, where="c0 >= 0")
    assert len(footers(table.path)) == 2
    assert table.verify(deep=True).sound
    assert table.to_arrow(columns=["c2"]).column(0).unique().to_pylist() == [5]


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [(100, {}, True), (1_024, {}, True), (1_025, {}, False), (128, LIMIT, True), (129, LIMIT, False)],
)
def test_page_index_is_left_out_where_columns_have_one_page_in_row_group(tmp_path, columns, options, expected):
    rows = rows_of(columns, 10)
    table = created(tmp_path / "t", rows, **options)
    table.write(rows)
    (footer,) = footers(table.path)
    chunks = [footer.row_group(0).column(i) for i in range(columns)]
    assert {(chunk.has_column_index, chunk.has_offset_index) for chunk in chunks} == {(expected, expected)}
    assert table.to_arrow().equals(rows)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_footers_are_freed_without_garbage_collector(tmp_path, file_format):
    """The footer of a file of thousands of columns takes megabytes, which the collector does not see."""
    rows = rows_of(3, 100, width=20)
    table = created(tmp_path / "t", rows, ["c0"], **{"bucket": "1", "file.format": file_format})
    table.write(rows)
    (first,) = (tmp_path / "t" / "bucket-0").iterdir()
    table.write(rows)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        table = Table.open(str(tmp_path / "t"), options=LIMIT)
        assert table.to_arrow().num_rows == 100
        assert table.to_arrow(filter="c0 = 7 AND c2 = 2").num_rows == 1
        table.compact(full=True)
        assert table.get(pa.table({"c0": [7, 70]})).num_rows == 2
        assert describe(table.store.io, str(first), first.stat().st_size).fields
        gc.collect()
        kept = [repr(type(one)) for one in gc.garbage if "pyarrow" in type(one).__module__]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert kept == []
