"""Bounds of Parquet files that hold NaN: Arrow leaves NaN out of them, so other readers would skip its rows."""

import gc
import io
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.format import parquet_writer
from paimon_core.format.file_format import ReadRequest
from paimon_core.format.parquet import ParquetFormat
from paimon_core.options.option import Options
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.rewrite import bind
from paimon_core.types.arrow import arrow_schema
from tests.support.samples import fields_of

TYPES = [
    "BIGINT", "MAP<INT, STRING>", "DOUBLE", "FLOAT", "ROW<a STRING, b DOUBLE>", "ARRAY<FLOAT>", "MAP<INT, DOUBLE>",
    "VECTOR<FLOAT, 2>", "BIGINT",
]  # fmt: skip
FIELDS = fields_of(TYPES)
FLOATING = ["c2", "c3", "c4.b", "c5.list.element", "c6.key_value.value", "c7.list.element"]
GROUP, GROUPS = 100, 4


def rows_with(row, value):
    """Numbers below 1000 in every column, but ``value`` in the row at ``row``."""
    n = [float(i) for i in range(GROUP * GROUPS)]
    if row is not None:
        n[row] = value
    counted = list(range(len(n)))
    columns = [
        counted,
        [[(i, "x")] for i in counted],
        n,
        n,
        [{"a": "x", "b": v} for v in n],
        [[0.0, v] for v in n],
        [[(1, 0.0), (2, v)] for v in n],
        [[0.0, v] for v in n],
        counted,
    ]
    schema = arrow_schema(FIELDS)
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def encode(table, sink=None):
    sink = pa.BufferOutputStream() if sink is None else sink
    writer = ParquetFormat().open_writer(sink, FIELDS, Options({"file.block-size": "1b"}), "zstd")
    for start in range(0, table.num_rows, GROUP):
        writer.write(table.slice(start, GROUP))
    writer.close()
    return sink.getvalue()


def chunks(data):
    metadata = pq.read_metadata(pa.BufferReader(data))
    assert metadata.num_row_groups == GROUPS
    for g in range(GROUPS):
        for i in range(metadata.num_columns):
            yield g, metadata.row_group(g).column(i)


def read(data, predicate=None):
    batches = ParquetFormat().read(pa.BufferReader(data), ReadRequest(FIELDS, 1000, predicate=predicate))
    return pa.Table.from_batches(list(batches), arrow_schema(FIELDS))


def test_column_chunks_with_nan_have_neither_bounds_nor_column_index():
    data = encode(rows_with(250, math.nan))
    for group, chunk in chunks(data):
        bounded = not (group == 2 and chunk.path_in_schema in FLOATING)
        assert (chunk.statistics.has_min_max, chunk.has_column_index) == (bounded, bounded), (group, chunk)
        assert chunk.statistics.null_count == 0
        assert chunk.has_offset_index


@pytest.mark.parametrize("sink", [pa.BufferOutputStream, io.BytesIO])
def test_rows_do_not_change(sink):
    table = rows_with(250, math.nan)
    assert str(read(encode(table, sink())).to_pydict()) == str(table.to_pydict())


def test_files_without_nan_are_unchanged_and_files_with_nan_no_larger(monkeypatch):
    corrected = [encode(rows_with(250, value)) for value in (math.nan, -0.0, None)]
    monkeypatch.setattr(parquet_writer, "holds_floats", lambda kind: False)
    plain = [encode(rows_with(250, value)) for value in (math.nan, -0.0, None)]
    assert corrected[1:] == plain[1:]
    assert corrected[0].size < plain[0].size


def test_only_row_groups_with_nan_lose_their_bounds(monkeypatch):
    monkeypatch.setattr(parquet_writer, "_ROW_GROUP_ROWS", GROUP)
    sink = pa.BufferOutputStream()
    writer = ParquetFormat().open_writer(sink, FIELDS, Options({}), "zstd")
    writer.write(rows_with(250, math.nan))
    writer.close()
    bounded = [g for g, c in chunks(sink.getvalue()) if c.path_in_schema == "c2" and c.statistics.has_min_max]
    assert bounded == [0, 1, 3]


@pytest.mark.parametrize("column", ["c2", "c3"])
@pytest.mark.parametrize("row", [0, 250, 399])
def test_no_filter_loses_nan_in_files_of_any_writer(monkeypatch, column, row):
    table = rows_with(row, math.nan)
    ours = encode(table)
    monkeypatch.setattr(parquet_writer, "holds_floats", lambda kind: False)
    literals = ("-1.0", "0.0", "250.0", "500.0", "DOUBLE 'NaN'")
    for data in (ours, encode(table)):  # another engine that writes with Arrow leaves NaN out of its bounds
        for test in (f"{column} {op} {v}" for op in ("=", "!=", "<", "<=", ">", ">=") for v in literals):
            for text in (test, f"NOT ({test})"):
                predicate = bind(parse_predicate(text), FIELDS)
                found = read(data, predicate)
                matches = found.filter(evaluate(predicate, found))["c0"].to_pylist()
                assert matches == table.filter(evaluate(predicate, table))["c0"].to_pylist(), text


def test_zeros_are_within_bounds():
    for zeros in ([0.0, -0.0], [-0.0, 0.0], [0.0, 0.0], [-0.0, -0.0]):
        data = encode(rows_with(None, None).set_column(2, arrow_schema(FIELDS)[2], [np.array(zeros * 200)]))
        for _, chunk in chunks(data):
            if chunk.path_in_schema == "c2":
                assert (str(chunk.statistics.min), str(chunk.statistics.max)) == ("-0.0", "0.0")


def test_buffer_of_closed_file_is_freed_without_garbage_collection():
    gc.collect()
    gc.disable()
    try:
        before = pa.total_allocated_bytes()
        encode(rows_with(250, 1.0))
        assert pa.total_allocated_bytes() == before
    finally:
        gc.enable()
