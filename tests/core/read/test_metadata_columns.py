"""Columns that say where a row is stored, against a model that opens every file without the engine."""

from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from paimon_core import Schema, Table
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.format import parquet_writer
from paimon_core.scan import table_scan
from tests.support.tables import append_table, keyed_table, orders, rows_of

ROWS = pa.schema([pa.field("k", pa.int64(), False), ("n", pa.int32()), pa.field("p", pa.int8())])
PLACE = ["__paimon_file_path", "__paimon_row_index", "__paimon_partition", "__paimon_bucket"]
VECTORS = {"deletion-vectors.enabled": "true"}
TABLES = {
    "append": {},
    "buckets": {"bucket": "2", "bucket-key": "k"},
    "tracked": {"row-tracking.enabled": "true"},
    "deletion vectors": VECTORS,
    "bitmaps": {**VECTORS, "file-index.bitmap.columns": "n", "file-index.in-manifest-threshold": "1 mb"},
    "keyed": {"bucket": "2"},
    "keyed with vectors": {**VECTORS, "bucket": "2"},
}
FILTERS = {
    None: lambda row: True,
    "k >= 20 AND k < 31": lambda row: 20 <= row["k"] < 31,
    "n = 3": lambda row: row["n"] == 3,
    "n = 3 OR k = 7": lambda row: row["n"] == 3 or row["k"] == 7,
    "p = 1 AND n IS NULL": lambda row: row["p"] == 1 and row["n"] is None,
}


def stored_rows(path: Path) -> list[dict]:
    """Return the stored rows of a data file, deleted rows included."""
    if path.suffix == ".parquet":
        return pq.ParquetFile(path).read().to_pylist()
    if path.suffix == ".orc":
        return paorc.read_table(path).to_pylist()
    with path.open("rb") as source:
        return list(fastavro.reader(source))


def model(table: Table, live: set[int]) -> list[dict]:
    """Return the rows with these keys and the location of each, from the files of the newest snapshot."""
    result = []
    for split in table.with_options({"source.split.target-size": "1 gb"}).scan().plan().splits:
        for file in split.files:
            path = table.store.file_path(split.bucket_ref, file)
            parts = Path(path).relative_to(table.path).parts
            p = int(parts[0].removeprefix("p="))
            for index, row in enumerate(stored_rows(Path(path))):
                place = dict(zip(PLACE, (path, index, {"p": p}, int(parts[1].removeprefix("bucket-"))), strict=True))
                result += [{"k": row["k"], "n": row["n"], "p": p, **place}] if row["k"] in live else []
    return result


@examples(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize(
    ("kind", "format_"),
    [
        *((kind, "parquet") for kind in TABLES),
        *(pytest.param(kind, name, marks=pytest.mark.more) for kind in TABLES for name in ("orc", "avro")),
    ],
)
def test_file_path_and_row_index_locate_each_row(tmp_path_factory, monkeypatch, kind, format_, data):
    monkeypatch.setattr(table_scan, "LEAST_PART", 1)
    monkeypatch.setattr(parquet_writer, "_ROW_GROUP_ROWS", data.draw(st.integers(1, 12), "rows of a group"))
    keys = ["k", "p"] if kind.startswith("keyed") else []
    size = f"{data.draw(st.integers(200, 3000), 'bytes of a part')} b"
    settings = {"file.format": format_, "file.block-size": "1 b", "source.split.target-size": size, **TABLES[kind]}
    schema = Schema(ROWS, primary_keys=keys, partition_keys=["p"], options={**settings, "commit.sync": "false"})
    table = Table.create(str(tmp_path_factory.mktemp("t") / "t"), schema)
    live: set[int] = set()
    for start in range(data.draw(st.integers(1, 2), "files")):
        drawn = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=30, unique=True))
        new = [2 * k + start for k in drawn]
        table.write(pa.table([new, [None if k % 5 == 0 else k % 4 for k in new], [k % 2 for k in drawn]], schema=ROWS))
        live |= set(new)
    if keys:
        table.compact(full=True)
    if "deletion-vectors.enabled" in TABLES[kind] and not keys:
        low = data.draw(st.integers(0, 60), "deleted from")
        table.delete(f"k BETWEEN {low} AND {low + 7}")
        live -= set(range(low, low + 8))
    rows = model(table, live)
    assert len(rows) == len(live)
    for text, matches in FILTERS.items():
        columns = data.draw(st.lists(st.sampled_from(["n", "p", *PLACE]), unique=True), "columns")
        expected = [{name: row[name] for name in ["k", *columns]} for row in rows if matches(row)]
        got = table.to_arrow(["k", *columns], filter=text)
        assert got.schema.names == ["k", *columns]
        assert rows_of(got, ["k"]) == sorted(expected, key=lambda row: row["k"])
        only = table.to_arrow(columns, filter=text)
        assert only.num_rows == len(expected)


def test_merged_rows_have_bucket_but_no_file(tmp_path):
    table = keyed_table(tmp_path / "t")
    table.write(orders((1, "a", 1), (2, "b", 2), (3, "c", 3)))
    table.write(orders((1, "z", 1), (2, "y", 2), (3, "x", 3)))
    buckets = {row["id"]: row["__paimon_bucket"] for row in table.to_arrow(["id", "__paimon_bucket"]).to_pylist()}
    assert table.to_arrow(["__paimon_partition"]).to_pylist() == [{"__paimon_partition": {}}] * 3
    for name in PLACE[:2]:
        with pytest.raises(UnsupportedError, match=rf"cannot read {name} of .*bucket 0.*compact the table fully"):
            table.to_arrow(["v", name])
    table.compact(full=True)
    for row in table.to_arrow(["id", *PLACE]).to_pylist():
        assert f"bucket-{buckets[row['id']]}/" in row["__paimon_file_path"]


def test_metadata_columns_are_selected_in_any_case(tmp_path):
    table = append_table(tmp_path / "t")
    table.write(orders((1, "a", 1)))
    assert table.to_arrow().schema.names == ["id", "v", "n"]
    assert table.to_arrow(["__PAIMON_bucket"]).schema.names == ["__paimon_bucket"]
    with pytest.raises(InvalidInputError, match=r"'__paimon_level' does not exist in the table; it has id, v, n$"):
        table.to_arrow(["__paimon_level"])
    with pytest.raises(InvalidInputError, match="does not exist"):
        table.stream(columns=["__paimon_bucket"])


def test_table_column_hides_metadata_column(tmp_path):
    schema = pa.schema([("__Paimon_bucket", pa.string())])
    table = append_table(tmp_path / "t", schema)
    table.write(pa.table([["mine"]], schema=schema))
    assert table.to_arrow(["__paimon_bucket"]).to_pylist() == [{"__Paimon_bucket": "mine"}]


def test_row_ids_combine_with_metadata_columns(tmp_path):
    table = append_table(tmp_path / "t", **{"row-tracking.enabled": "true"})
    for id_ in (1, 2):
        table.write(orders((id_, "a", 1), (id_ + 10, "b", 2)))
    result = table.to_arrow(["id", "_ROW_ID", "__paimon_row_index"], filter="id > 2").to_pylist()
    assert sorted(tuple(row.values()) for row in result) == [(11, 1, 1), (12, 3, 1)]
