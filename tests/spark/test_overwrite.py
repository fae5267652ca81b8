"""Overwrites and schema changes by `PaimonTable`, in classic sessions and over Connect."""

import datetime

import pyarrow as pa
import pytest

import paimon_spark
from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.schema.change import AddColumn, RenameColumn, SetOption
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_spark import frame_write
from tests.support.tables import files_below

pytestmark = pytest.mark.spark
everywhere = pytest.mark.everywhere
COLUMNS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("dt", pa.date32(), nullable=False), ("v", pa.string())]
)
DAYS = (datetime.date(2026, 1, 31), datetime.date(2026, 2, 1))
TABLES = {
    "appended": ([], {}),
    "buckets": ([], {"bucket": "2", "bucket-key": "id"}),
    "keys": (["dt", "id"], {"bucket": "2"}),
    "keys, dynamic": (["dt", "id"], {}),
    "keys that move": (["id"], {}),
}
FEW = ("appended", "keys")
NAMES = [pytest.param(name, marks=everywhere if name in FEW else pytest.mark.more) for name in TABLES]


def create(spark, warehouse, name="appended", **options):
    keys, settings = TABLES[name]
    schema = Schema(COLUMNS, primary_keys=keys, partition_keys=["dt"], options={**settings, **options})
    table = Table.create(f"{warehouse}/db.db/t", schema)
    table.write(pa.table({"id": [1, 2, 3, 4], "dt": [DAYS[0], DAYS[0], DAYS[1], DAYS[1]], "v": list("abcd")}, COLUMNS))
    return table, paimon_spark.PaimonTable.forPath(spark, table.path)


def rows_of(table):
    return sorted((row["id"], DAYS.index(row["dt"]), row["v"]) for row in table.to_arrow().to_pylist())


def frame(spark, *rows):
    return spark.createDataFrame([(k, DAYS[day], v) for k, day, v in rows], "id long, dt date, v string")


@pytest.mark.parametrize("by_tasks", [False, pytest.param(True, marks=pytest.mark.more)])
@pytest.mark.parametrize("name", NAMES)
def test_overwrite_replaces_table_or_partitions(spark, warehouse, monkeypatch, name, by_tasks):
    if by_tasks:
        monkeypatch.setattr(frame_write, "FEW_ROWS", -1)
    table, opened = create(spark, warehouse, name)
    first = table.snapshot().id
    new = frame(spark, (1, 0, "x"), (9, 0, "y"))
    if name != "keys that move":
        snapshot = opened.overwrite(new, "dynamic")
        assert (snapshot.commit_kind, snapshot.id) == ("OVERWRITE", first + 1)
        assert rows_of(table) == [(1, 0, "x"), (3, 1, "c"), (4, 1, "d"), (9, 0, "y")]
        assert opened.overwrite(new.where("false"), "dynamic") is None
        opened.overwrite(new.selectExpr("v", "id + 10 as ID"), {"dt": DAYS[1]})
        assert rows_of(table) == [(1, 0, "x"), (9, 0, "y"), (11, 1, "x"), (19, 1, "y")]
    opened.overwrite(new)
    assert rows_of(table) == [(1, 0, "x"), (9, 0, "y")]
    opened.overwrite(opened.toDF().selectExpr("id", "dt", "concat(v, v) as v"))
    assert rows_of(table) == [(1, 0, "xx"), (9, 0, "yy")]
    assert opened.overwrite(new.where("false")).commit_kind == "OVERWRITE"
    assert rows_of(table) == []
    assert table.snapshots()[0].id == first


def test_overwrite_uses_options_of_table(spark, warehouse):
    table, _ = create(spark, warehouse, **{"dynamic-partition-overwrite": "true"})
    opened = paimon_spark.PaimonTable.forPath(spark, table.path)
    opened.overwrite(frame(spark, (9, 1, "y")))
    assert rows_of(table) == [(1, 0, "a"), (2, 0, "b"), (9, 1, "y")]
    static = paimon_spark.PaimonTable.forPath(spark, table.path, **{"dynamic-partition-overwrite": "false"})
    static.overwrite(frame(spark, (8, 1, "z")))
    assert rows_of(table) == [(8, 1, "z")]
    wide = frame(spark, (7, 0, "w")).selectExpr("*", "id * 2 as n")
    with pytest.raises(InvalidInputError, match="n"):
        opened.overwrite(wide)
    merging = paimon_spark.PaimonTable.forPath(spark, table.path, **{"write.merge-schema": "true"})
    merging.overwrite(wide)
    assert Table.open(table.path).to_arrow(["id", "n"]).to_pylist() == [{"id": 8, "n": None}, {"id": 7, "n": 14}]


@pytest.mark.parametrize(
    ("columns", "partition", "message"),
    [
        ("id, dt, v", {"dt": DAYS[1]}, "cannot write rows of dt=20484"),
        ("id, dt, v", {"v": "a"}, "is not a partition of .*partition columns are dt"),
        ("id, dt, v", {"dt": "no day"}, "no day"),
        ("id, dt, v", "all", "partition must be a mapping, None or 'dynamic', not 'all'"),
        ("id, v", None, "dt"),
        ("id, dt, v, 1 AS x", None, "x"),
        ("id, dt, array(v) AS v", None, "v"),
        ("raise_error('no rows') AS id, dt, v", None, "no rows"),
    ],
)
def test_refused_overwrite_changes_nothing(spark, warehouse, columns, partition, message):
    table, opened = create(spark, warehouse)
    before, files = table.snapshot(), files_below(table.path)
    with pytest.raises(Exception, match=message):
        opened.overwrite(frame(spark, (1, 0, "x")).selectExpr(*columns.split(", ")), partition)
    assert table.snapshot() == before
    assert files_below(table.path) == files


@everywhere
def test_alter_changes_schema_of_later_reads(spark, warehouse):
    table, opened = create(spark, warehouse)
    assert opened.alter([AddColumn("n", "INT"), RenameColumn("v", "text")]) is opened
    assert opened.toDF().columns == ["id", "dt", "text", "n"]
    opened.alter(lambda schema: [AddColumn(f"m{len(schema.fields)}", "STRING")])
    assert opened.toDF().where("id = 1").collect() == [(1, DAYS[0], "a", None, None)]
    with pytest.raises(NotFoundError, match="no_column"):
        opened.alter([SetOption("bucket", "-1"), RenameColumn("no_column", "x")])
    assert [field.name for field in Table.open(table.path).schema.fields] == ["id", "dt", "text", "n", "m4"]


def test_changes_need_newest_table(spark, warehouse):
    table, _ = create(spark, warehouse)
    old = paimon_spark.PaimonTable.forPath(spark, table.path, versionAsOf="1")
    for change in (lambda: old.overwrite(frame(spark)), lambda: old.alter([AddColumn("n", "INT")])):
        with pytest.raises(InvalidInputError, match="only its newest snapshot can be"):
            change()
    view = paimon_spark.PaimonTable.forPath(spark, f"{table.path}$ro")
    for change in (lambda: view.overwrite(frame(spark, (1, 0, "x"))), lambda: view.alter([AddColumn("n", "INT")])):
        with pytest.raises(UnsupportedError, match="a read-optimized view can only be read"):
            change()
    missing = paimon_spark.PaimonTable.forPath(spark, f"{warehouse}/db.db/missing")
    for change in (lambda: missing.overwrite(frame(spark, (1, 0, "x"))), lambda: missing.alter([])):
        with pytest.raises(NotFoundError, match="missing"):
            change()
    assert len(table.snapshots()) == 1
