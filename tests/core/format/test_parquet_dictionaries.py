"""Parquet columns with repeated values get a dictionary, unless the table's options decide."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from paimon_core.format.parquet import ParquetFormat
from paimon_core.format.parquet_writer import _distinct
from paimon_core.options.option import Options
from paimon_core.types.arrow import arrow_schema, fields_from_arrow
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

ROWS = 20_000
SCHEMA = pa.schema([("distinct", pa.int64()), ("few", pa.int32()), ("words", pa.string()), ("empty", pa.string())])


def _rows(count=ROWS):
    ids = np.arange(count)
    columns = [ids, (ids % 7).astype(np.int32), pa.array([f"w{i}" for i in ids]), pa.nulls(count, pa.string())]
    return pa.table([pa.array(c) for c in columns], schema=SCHEMA)


def _write(path, rows, **options):
    fields = fields_from_arrow(rows.schema)
    with pa.OSFile(str(path), "wb") as sink:
        writer = ParquetFormat().open_writer(sink, fields, Options(options), "zstd")
        writer.write(rows.cast(arrow_schema(fields)))
        writer.close()
    group = pq.read_metadata(path).row_group(0)
    return {group.column(i).path_in_schema for i in range(group.num_columns) if group.column(i).has_dictionary_page}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"few", "empty"}),
        ({"parquet.enable.dictionary": "true"}, set(SCHEMA.names)),
        ({"parquet.enable.dictionary": "false"}, set()),
    ],
)
def test_columns_of_distinct_values_have_dictionary_only_by_option(tmp_path, options, expected):
    path = tmp_path / "f.parquet"
    assert _write(path, _rows(), **options) == expected
    assert pq.read_table(path).equals(_rows())


@pytest.mark.parametrize(
    ("count", "expected"), [(511, set(SCHEMA.names)), (512, {"few", "empty"}), (5_000, {"few", "empty"})]
)
def test_small_files_have_no_dictionaries_of_distinct_values(tmp_path, count, expected):
    path = tmp_path / "f.parquet"
    assert _write(path, _rows(count)) == expected
    assert pq.read_table(path).equals(_rows(count))


def test_few_rows_and_nested_columns_have_dictionaries(tmp_path):
    assert _write(tmp_path / "few.parquet", _rows(100)) == set(SCHEMA.names)
    nested = _rows().append_column("list", pa.array([[i % 9] for i in range(ROWS)], pa.list_(pa.int64())))
    assert _write(tmp_path / "nested.parquet", nested) == {"few", "empty", "list.list.element"}
    assert pq.read_table(tmp_path / "nested.parquet").equals(nested)


def test_nested_columns_of_distinct_values_have_no_dictionary_but_variants_do(tmp_path):
    ids = np.arange(ROWS)
    lists = pa.array([[i, -i] for i in range(ROWS)], pa.list_(pa.int64()))
    row = pa.StructArray.from_arrays([pa.array(ids), pa.array(ids % 5)], ["many", "few"])
    variant = pa.StructArray.from_arrays(
        [pa.array([b"%d" % i for i in ids]), pa.array([b"m"] * ROWS)],
        fields=[pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata")],
    )
    rows = pa.table({"l": lists, "r": row, "v": variant})
    fields = [*fields_from_arrow(rows.schema)[:2], DataField(2, "v", parse_type("VARIANT"))]
    with pa.OSFile(str(tmp_path / "f.parquet"), "wb") as sink:
        writer = ParquetFormat().open_writer(sink, fields, Options({}), "zstd")
        writer.write(rows.cast(arrow_schema(fields)))
        writer.close()
    group = pq.read_metadata(tmp_path / "f.parquet").row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    assert {c.path_in_schema for c in columns if c.has_dictionary_page} == {"r.few", "v.metadata"}


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.int16(), pa.int64(), pa.float32(), pa.float64(), pa.date32(), pa.time32("ms"), pa.timestamp("us"),
     pa.decimal128(12, 2), pa.bool_(), pa.string(), pa.binary()],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("nulls", [False, True])
def test_distinct_values_of_every_type_are_counted(kind, nulls):
    values = np.random.default_rng(1).integers(0, 90, 500)
    texts = pa.array(values % 2 if pa.types.is_boolean(kind) else values).cast(pa.string())
    column = texts.cast(kind) if pa.types.is_boolean(kind) else _as(texts, kind)
    column = pc.if_else(pa.array(values % 5 == 0), None, column) if nulls else column
    assert _distinct(column) == pc.count_distinct(column, mode="all").as_py()


def _as(texts, kind):
    """Numbers as texts, in another type."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return texts.cast(kind)
    numbers = texts.cast(pa.int32() if kind.bit_width == 32 and not pa.types.is_floating(kind) else pa.int64())
    return numbers.cast(pa.decimal128(19, 0)).cast(kind) if pa.types.is_decimal(kind) else numbers.cast(kind)


def test_file_without_rows_can_be_read(tmp_path):
    path = tmp_path / "none.parquet"
    with pa.OSFile(str(path), "wb") as sink:
        ParquetFormat().open_writer(sink, fields_from_arrow(SCHEMA), Options({}), "zstd").close()
    assert pq.read_table(path).num_rows == 0
