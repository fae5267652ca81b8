"""Which Parquet columns get a dictionary: those whose values repeat, unless the table's options decide."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.format.parquet import ParquetFormat
from paimon_core.options.option import Options
from paimon_core.types.arrow import arrow_schema, fields_from_arrow

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
def test_columns_of_distinct_values_have_no_dictionary_unless_asked_for(tmp_path, options, expected):
    path = tmp_path / "f.parquet"
    assert _write(path, _rows(), **options) == expected
    assert pq.read_table(path).equals(_rows())


def test_few_rows_and_nested_columns_keep_their_dictionaries(tmp_path):
    assert _write(tmp_path / "few.parquet", _rows(100)) == set(SCHEMA.names)
    nested = _rows().append_column("list", pa.array([[i % 9] for i in range(ROWS)], pa.list_(pa.int64())))
    assert _write(tmp_path / "nested.parquet", nested) == {"few", "empty", "list.list.element"}
    assert pq.read_table(tmp_path / "nested.parquet").equals(nested)


def test_a_file_without_rows_is_a_file(tmp_path):
    path = tmp_path / "none.parquet"
    with pa.OSFile(str(path), "wb") as sink:
        ParquetFormat().open_writer(sink, fields_from_arrow(SCHEMA), Options({}), "zstd").close()
    assert pq.read_table(path).num_rows == 0
