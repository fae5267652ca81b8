"""Directories of other tools become tables: columns from footers, partitions from paths, repetition after a kill."""

import decimal
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core import Schema
from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.migration import migrate as module
from tests.support.tables import files_below


@pytest.fixture
def catalog(tmp_path):
    made = FileSystemCatalog(str(tmp_path / "warehouse"))
    made.create_database("db")
    return made


def dataset(root, data, *keys):
    pq.write_to_dataset(data, root, partition_cols=list(keys) or None)
    return str(root)


def types_of(table):
    return {field.name: str(field.type) for field in table.schema.fields}


DATA = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "price": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("2.25"), None], pa.decimal128(7, 2)),
        "tags": [["a"], None, [], ["b", None]],
        "day": [date(2026, 1, 1), date(2026, 1, 1), date(2026, 1, 2), None],
        "hour": [1, 2, 1, 3],
        "shop": ["007", "b c", "ü", "d"],
    }
)


def test_directory_becomes_table(tmp_path, catalog):
    source = dataset(tmp_path / "in", DATA, "day", "hour", "shop")
    table = catalog.migrate(source, "db.t", "Parquet")
    assert types_of(table) == {
        "id": "INT",
        "price": "DECIMAL(7, 2)",
        "tags": "ARRAY<STRING>",
        "day": "DATE",
        "hour": "INT",
        "shop": "STRING",
    }
    assert table.schema.partition_keys == ("day", "hour", "shop")
    assert table.schema.options["file.format"] == "parquet"
    assert len(table.snapshots()) == 1
    assert table.to_arrow().sort_by("id").equals(DATA.cast(table.arrow_schema))
    assert table.verify(deep=True).sound
    table.write(DATA.slice(0, 1).cast(table.arrow_schema))
    table.compact(full=True)
    assert table.to_arrow().num_rows == 5
    assert len(files_below(tmp_path / "in")) == 4


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "-5", None], "INT"),
        (["1", "3000000000"], "BIGINT"),
        (["1", "99999999999999999999"], "STRING"),
        (["01", "2"], "STRING"),
        (["+1"], "STRING"),
        (["-0"], "STRING"),
        (["2026-02-28", "0001-01-01"], "DATE"),
        (["2026-02-30"], "STRING"),
        (["2026-1-1"], "STRING"),
        (["1", "2026-01-01"], "STRING"),
        ([None], "STRING"),
        (["1.5"], "STRING"),
    ],
)
def test_types_of_partition_columns_lose_nothing(texts, expected):
    assert str(module.type_of_texts(texts)) == expected


def test_types_and_names_of_partition_columns_can_be_given(tmp_path, catalog):
    source = dataset(tmp_path / "in", DATA.select(["id", "hour"]), "hour")
    table = catalog.migrate(source, "db.t", partition_keys={"hour": "SMALLINT"})
    assert types_of(table)["hour"] == "SMALLINT"
    assert catalog.migrate(source, "db.u", partition_keys=["hour"]).schema.partition_keys == ("hour",)
    with pytest.raises(InvalidInputError, match=r"name the partition columns \['hour'\], not \['day'\]"):
        catalog.migrate(source, "db.v", partition_keys=["day"])
    assert not catalog.table_exists("db.v")


def test_options_of_catalog_and_of_call(tmp_path, catalog):
    catalog.options["table-default.snapshot.num-retained.max"] = "20"
    source = dataset(tmp_path / "in", DATA.select(["id"]))
    table = catalog.migrate(source, "db.t", options={"file.format": "orc", "deletion-vectors.enabled": "true"})
    options = table.schema.options
    assert (options["file.format"], options["snapshot.num-retained.max"]) == ("orc", "20")
    with pytest.raises(UnsupportedError, match="has 4 buckets"):
        catalog.migrate(source, "db.u", options={"bucket": "4", "bucket-key": "id"})
    with pytest.raises(UnsupportedError, match="has a primary key"):
        catalog.migrate(source, "db.u", options={"bucket": "1", "primary-key": "id"})
    assert not catalog.table_exists("db.u")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (pa.table({"id": pa.array([1], pa.int64())}), r"column 'id' is INT in .*a\.parquet and BIGINT in .*b\.parquet"),
        (pa.table({"id": pa.array([1], pa.int32()), "x": [1]}), r"a\.parquet has no column 'x'.*b\.parquet has"),
        (pa.table({"x": [1]}), r"b\.parquet has no column 'id'"),
    ],
)
def test_files_that_differ_are_named_with_column(tmp_path, catalog, other, message):
    (tmp_path / "in").mkdir()
    pq.write_table(DATA.select(["id"]), tmp_path / "in" / "a.parquet")
    pq.write_table(other, tmp_path / "in" / "b.parquet")
    with pytest.raises(InvalidInputError, match=message):
        catalog.migrate(str(tmp_path / "in"), "db.t")
    assert not catalog.table_exists("db.t")
    assert not files_below(tmp_path / "warehouse" / "db.db")


def test_nested_columns_that_differ_are_named_by_their_path(tmp_path, catalog):
    (tmp_path / "in").mkdir()
    for name, kind in (("a", pa.int32()), ("b", pa.int64())):
        nested = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.struct([("n", kind)]))))])
        pq.write_table(pa.table({"s": pa.array([None], nested)}), tmp_path / "in" / f"{name}.parquet")
    with pytest.raises(InvalidInputError, match=r"column 's\.m\.value\.element\.n' is INT"):
        catalog.migrate(str(tmp_path / "in"), "db.t")


def test_unsupported_sources_are_refused(tmp_path, catalog):
    (tmp_path / "in").mkdir()
    with pytest.raises(InvalidInputError, match="has no data files"):
        catalog.migrate(str(tmp_path / "in"), "db.t")
    source = dataset(tmp_path / "in", DATA.select(["id"]))
    with pytest.raises(InvalidInputError, match="format is 'csv'"):
        catalog.migrate(source, "db.t", "csv")
    with pytest.raises(InvalidInputError, match="is not in format avro"):
        catalog.migrate(source, "db.t", "avro")
    with pytest.raises(NotFoundError, match="no database 'nope'"):
        catalog.migrate(source, "nope.t")
    catalog.migrate(source, "db.t")
    catalog.create_table("db.u", Schema(pa.schema([("x", pa.int32())])))
    with pytest.raises(AlreadyExistsError, match="has other columns"):
        catalog.migrate(source, "db.u")
    other = dataset(tmp_path / "other", DATA.select(["id"]))
    with pytest.raises(AlreadyExistsError, match="has other rows"):
        catalog.migrate(other, "db.t")
    assert catalog.table("db.t").to_arrow().num_rows == 4


def test_call_that_was_interrupted_is_finished(tmp_path, catalog, monkeypatch):
    source = dataset(tmp_path / "in", DATA.select(["id", "hour"]), "hour")
    catalog.create_table("db.t", module.migration_of(catalog._io, source).schema)  # killed behind the creation
    table = catalog.migrate(source, "db.t", move=True)
    assert table.to_arrow().num_rows == 4
    assert not files_below(source)


def test_failure_leaves_neither_table_nor_files(tmp_path, catalog, monkeypatch):
    source = dataset(tmp_path / "in", DATA.select(["id", "hour"]), "hour")

    def fails(*_, **__):
        raise OSError(28, "no space")

    monkeypatch.setattr("paimon_core.migration.add_files.copy_file", fails)
    with pytest.raises(OSError, match="no space"):
        catalog.migrate(source, "db.t")
    assert not catalog.table_exists("db.t")
    assert not files_below(tmp_path / "warehouse" / "db.db")
