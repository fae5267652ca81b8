"""Row groups of Parquet files sorted by key: small, so that a range of keys skips most rows, at no cost in bytes."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core import Schema, Table
from paimon_core.format import parquet_writer
from paimon_core.format.file_format import ReadRequest
from paimon_core.format.parquet import ParquetFormat
from paimon_core.options.option import Options
from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.rewrite import bind
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import BIGINT, STRING, DataField
from paimon_core.types.parse import parse_type
from paimon_core.types.system_fields import SEQUENCE_NUMBER

ROWS = 200_000
FIELDS = [DataField(0, "k", BIGINT), SEQUENCE_NUMBER, DataField(1, "v", BIGINT), DataField(2, "s", STRING)]


def sorted_rows(distinct: int) -> pa.Table:
    """Rows in key order with a number of distinct texts."""
    rng = np.random.default_rng(1)
    texts = pa.array([f"text-{i:08d}" for i in range(distinct)])
    columns = {
        "k": np.arange(ROWS) * 3,
        SEQUENCE_NUMBER.name: rng.permutation(ROWS),
        "v": rng.integers(0, 1 << 60, ROWS),
        "s": texts.take(pa.array(rng.integers(0, distinct, ROWS))),
    }
    return pa.table(columns).cast(pa.schema([(f.name, t) for f, t in zip(FIELDS, _TYPES, strict=True)]))


_TYPES = [pa.int64(), pa.int64(), pa.int64(), pa.string()]


def encoded(rows: pa.Table, fields=FIELDS, **options: str) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    writer = ParquetFormat().open_writer(sink, fields, Options(options), "zstd")
    schema = pa.schema([pa.field(f.name, t, f.type.nullable) for f, t in zip(fields, rows.schema.types, strict=True)])
    writer.write(pa.Table.from_arrays(rows.columns, schema=schema))
    writer.close()
    return sink.getvalue()


def group_rows(data: pa.Buffer) -> list[int]:
    metadata = pq.read_metadata(pa.BufferReader(data))
    return [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]


@pytest.mark.parametrize(("distinct", "least_groups"), [(50, 6), (5_000, 1), (10 * ROWS, 6)])
def test_files_hardly_grow(monkeypatch, distinct, least_groups):
    rows = sorted_rows(distinct)
    small = encoded(rows)
    assert len(group_rows(small)) >= least_groups
    monkeypatch.setattr(parquet_writer, "_SORTED_GROUP_ROWS", 1 << 20)
    whole = encoded(rows)
    assert len(group_rows(whole)) == 1
    assert small.size <= 1.02 * whole.size


def test_nearly_empty_columns_count_with_their_fixed_cost_per_row_group(monkeypatch):
    fields = [*FIELDS, *(DataField(2 + i, f"c{i}", BIGINT) for i in range(1, 21))]
    rows = sorted_rows(50)
    for i in range(1, 21):
        rows = rows.append_column(f"c{i}", pa.nulls(ROWS, pa.int64()) if i % 2 else pa.array(np.zeros(ROWS, np.int64)))
    sparse = encoded(rows, fields)
    assert len(group_rows(sparse)) > 1
    monkeypatch.setattr(parquet_writer, "_SORTED_GROUP_ROWS", 1 << 20)
    whole = encoded(rows, fields)
    assert len(group_rows(whole)) == 1
    assert sparse.size <= 1.02 * whole.size


@pytest.mark.parametrize(("distinct", "least_groups"), [(50, 6), (5_000, 1), (10 * ROWS, 6)])
def test_nested_columns_count_by_their_stored_values(monkeypatch, distinct, least_groups):
    rng = np.random.default_rng(2)
    inner = pa.array(rng.integers(0, distinct, 2 * ROWS))
    offsets = pa.array(np.arange(0, 2 * ROWS + 1, 2), pa.int32())
    columns = {
        "l": pa.ListArray.from_arrays(offsets, inner),
        "m": pa.MapArray.from_arrays(offsets, pa.array(np.tile([1, 2], ROWS)), inner),
        "r": pa.StructArray.from_arrays([inner[:ROWS], inner[ROWS:]], ["a", "b"]),
    }
    texts = ("ARRAY<BIGINT>", "MAP<BIGINT NOT NULL, BIGINT>", "ROW<a BIGINT, b BIGINT>")
    types = [parse_type(text) for text in texts]
    fields = [*FIELDS, *(DataField(9 + i, n, t) for i, (n, t) in enumerate(zip(columns, types, strict=True)))]
    rows = sorted_rows(50)
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    rows = rows.cast(arrow_schema(fields).with_metadata(None))
    small = encoded(rows, fields)
    assert len(group_rows(small)) >= least_groups
    assert pq.read_table(pa.BufferReader(small)).select(["l", "r"]).equals(rows.select(["l", "r"]))
    monkeypatch.setattr(parquet_writer, "_SORTED_GROUP_ROWS", 1 << 20)
    assert small.size <= 1.02 * encoded(rows, fields).size


def test_row_groups_have_several_pages_and_page_index():
    metadata = pq.read_metadata(pa.BufferReader(encoded(sorted_rows(50))))
    for group in range(metadata.num_row_groups):
        columns = [metadata.row_group(group).column(c) for c in range(metadata.num_columns)]
        assert all(column.has_column_index and column.has_offset_index for column in columns)


def test_unsorted_files_and_files_with_block_size_have_large_row_groups():
    rows = sorted_rows(50)
    unordered = [f for f in FIELDS if f is not SEQUENCE_NUMBER]
    assert len(group_rows(encoded(rows.drop_columns([SEQUENCE_NUMBER.name]), unordered))) == 1
    assert len(group_rows(encoded(rows, **{"file.block-size": "1 gb"}))) == 1


def test_wide_rows_make_groups_that_are_large_enough():
    narrow = pa.table({"k": pa.array(np.arange(1 << 20), pa.int8(), safe=False)})
    assert parquet_writer.sorted_group_rows(narrow, set()) == 1 << 19
    wide = pa.table({f"c{i}": np.arange(100_000) for i in range(40)})
    assert parquet_writer.sorted_group_rows(wide, set()) == 1 << 14


def test_range_of_keys_decodes_few_rows_and_none_is_lost(tmp_path):
    schema = pa.schema([pa.field("k", pa.int64(), False), ("v", pa.int64()), ("s", pa.string())])
    options = {"bucket": "1", "write-only": "true"}
    table = Table.create(str(tmp_path / "t"), Schema(schema, primary_keys=["k"], options=options))
    rows = sorted_rows(50).select(schema.names)
    for run in range(2):  # which overlap, so they are merged
        moved = rows.set_column(1, "v", pa.array(np.arange(ROWS) + run))
        table.write(moved.cast(schema))
    low, high = 300_000, 306_000
    text = f"k >= {low} AND k < {high}"
    actual = table.to_arrow(filter=text)
    k = np.arange(low, high, 3)
    assert actual.sort_by("k")["k"].to_pylist() == k.tolist()
    assert actual.sort_by("k")["v"].to_pylist() == (k // 3 + 1).tolist()
    predicate = bind(parse_predicate(text), table.schema.fields)
    for file in (tmp_path / "t").glob("bucket-0/*.parquet"):
        source = pa.OSFile(str(file))
        batches = ParquetFormat().read(source, ReadRequest(table.schema.fields, 1 << 17, predicate=predicate))
        decoded = pa.Table.from_batches(list(batches))
        assert decoded.num_rows <= 2 << 14
        assert set(k.tolist()) <= set(decoded["k"].to_pylist())
    assert table.get([{"k": low}, {"k": 1}, {"k": high - 3}])["v"].to_pylist() == [low // 3 + 1, high // 3]


@pytest.mark.parametrize("strategy", ["order", "zorder"])
def test_clustered_tables_have_small_row_groups(tmp_path, strategy):
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("s", pa.string())])
    table = Table.create(str(tmp_path / "t"), Schema(schema))
    rows = sorted_rows(50).select(schema.names)
    table.write(rows.take(np.random.default_rng(3).permutation(ROWS)))

    def groups():
        (split,) = table.scan().plan().splits
        (file,) = split.files
        return group_rows(pa.py_buffer((tmp_path / "t" / "bucket-0" / file.file_name).read_bytes()))

    assert len(groups()) <= 2
    table.compact(order_by=["k", "v"], order_strategy=strategy)
    assert len(groups()) >= 6
    assert table.to_arrow().sort_by("k").equals(rows)
    assert sorted(table.to_arrow(filter="k < 3000")["k"].to_pylist()) == list(range(0, 3000, 3))
