"""Deletes by Spark's tasks leave the same rows as deletes by the engine; row ids are columns on request."""

from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

import paimon_spark
from paimon_core import RowChanges
from paimon_core.errors import CommitConflictError, CorruptedError, InvalidInputError, OutOfRangeError, UnsupportedError
from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_spark.distribute import SparkRunner
from paimon_spark.filter_text import with_session_quotes
from paimon_spark.row_level.target import RowAccess
from tests.support.tables import files_below, rows_of

pytestmark = pytest.mark.spark
everywhere = pytest.mark.everywhere
SALES = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("dt", pa.string(), nullable=False), ("v", pa.string())]
)
MARKS = {"deletion-vectors.enabled": "true"}
TABLES = {
    "rewritten": ([], {}),
    "marked": ([], MARKS),
    "keys": (["dt", "id"], {"bucket": "2"}),
    "keys, dynamic and marked": (["dt", "id"], MARKS),
    "keys, sums": (
        ["dt", "id"],
        {"bucket": "1", "merge-engine": "aggregation", "aggregation.remove-record-on-delete": "true"},
    ),
}


def sales(path, name, **options):
    keys, settings = TABLES[name]
    schema = Schema(SALES, primary_keys=keys, partition_keys=["dt"], options={**settings, **options})
    table = Table.create(path, schema)
    for start in (0, 30):
        rows = [{"id": k, "dt": dt, "v": f"it's {k % 3}"} for k in range(start, start + 40) for dt in ("a", "b")]
        table.write(pa.Table.from_pylist(rows, SALES))
    return table


def open_spark(spark, path, **options):
    return paimon_spark.PaimonTable.forPath(spark, path, **options)


@everywhere
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.cases(3)
def test_delete_removes_exactly_the_matching_rows(spark, warehouse, name):
    table = sales(f"{warehouse}/db.db/sales", name)
    before, last = table.to_arrow().to_pylist(), table.snapshot().id
    result = open_spark(spark, table.path).delete("v = 'it''s 1' and id < 50 or dt = 'b' and id >= 60", progress=False)
    assert last < result.snapshot.id <= table.snapshot().id
    last = table.snapshot().id
    gone = [r for r in before if (r["v"] == "it's 1" and r["id"] < 50) or (r["dt"] == "b" and r["id"] >= 60)]
    left = sorted((r for r in before if r not in gone), key=str)
    assert result.num_deleted_rows == result.num_affected_rows == len(gone) > 0
    assert sorted(table.to_arrow().to_pylist(), key=str) == left
    assert open_spark(spark, table.path).delete("id = 1000", progress=False) == RowChanges()
    assert table.snapshot().id == last
    open_spark(spark, table.path).delete("dt = 'a'", progress=False)
    assert rows_of(table.to_arrow()) == rows_of(pa.Table.from_pylist([r for r in left if r["dt"] == "b"], SALES))


@pytest.mark.more
def test_rows_that_another_commit_changed_are_checked_again(spark, warehouse, monkeypatch):
    """Another writer commits while Spark reads: the delete reads the changed rows again."""
    table = sales(f"{warehouse}/db.db/sales", "keys")
    new = pa.Table.from_pylist([{"id": k, "dt": "a", "v": "new"} for k in range(20)], SALES)
    checks = []

    def shown(schema):
        checks.append(table.write(new) if not checks else None)
        return {}

    monkeypatch.setattr("paimon_spark.row_level.target.shows_all", shown)
    monkeypatch.setattr("paimon_spark.table.DriverAccess", RowAccess)
    result = open_spark(spark, table.path).delete("v = 'it''s 1'", progress=False)
    assert (len(checks), result.snapshot.commit_user) == (2, table.snapshot().commit_user)
    left = rows_of(table.to_arrow(), ("dt", "id"))
    assert [r for r in left if r["v"] == "new"] == new.to_pylist()
    assert not [r for r in left if r["v"] == "it's 1"]


@pytest.mark.more
def test_delete_reports_conflict_after_its_last_retry(spark, warehouse, monkeypatch):
    table = sales(f"{warehouse}/db.db/sales", "keys")
    rows = pa.Table.from_pylist([{"id": k, "dt": "a", "v": "it's 1"} for k in range(70)], SALES)
    monkeypatch.setattr("paimon_spark.row_level.target.shows_all", lambda schema: table.write(rows) and {})
    monkeypatch.setattr("paimon_spark.table.DriverAccess", RowAccess)
    monkeypatch.setattr("paimon_spark.row_level.write.RETRIES", 2)
    with pytest.raises(CommitConflictError, match="snapshot 4 has changed rows"):
        open_spark(spark, table.path).delete("v = 'it''s 1'", progress=False)


def compacted_and_expired(table):
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_max=1, retain_min=1, older_than=2**62)


@pytest.mark.more
def test_delete_retries_if_its_snapshot_expires(spark, warehouse, monkeypatch):
    table = sales(f"{warehouse}/db.db/sales", "keys", **{"write-only": "true"})
    last, checks = table.snapshot().id, []

    def shown(schema):
        checks.append(None if checks else compacted_and_expired(table))
        return {}

    def expired(schema):
        table.write(pa.table({"id": [1], "dt": ["a"], "v": ["it's 2"]}, SALES))
        return compacted_and_expired(table) or {}

    monkeypatch.setattr("paimon_spark.row_level.target.shows_all", shown)
    monkeypatch.setattr("paimon_spark.table.DriverAccess", RowAccess)
    assert open_spark(spark, table.path).delete("v = 'it''s 1'", progress=False).snapshot.id == last + 2
    assert len(checks) == 2
    assert not table.to_arrow(filter="v = 'it''s 1'").num_rows
    monkeypatch.setattr("paimon_spark.row_level.target.shows_all", expired)
    monkeypatch.setattr("paimon_spark.row_level.write.RETRIES", 2)
    with pytest.raises(OutOfRangeError, match="cannot run DELETE on"):
        open_spark(spark, table.path).delete("v = 'it''s 2'", progress=False)


class Late(SparkRunner):
    """A runner whose tasks start late: before them, the next function of `others` runs."""

    others: ClassVar[list] = []

    def run_all(self, store, tasks, run, progress):
        if self.others:
            self.others.pop(0)()
        return super().run_all(store, tasks, run, progress)


@pytest.mark.more
@pytest.mark.parametrize("name", ["rewritten", "keys"])
def test_job_retries_if_expiry_deletes_its_files(spark, warehouse, monkeypatch, name):
    table = sales(f"{warehouse}/db.db/sales", name, **{"write-only": "true", "compaction.min.file-num": "2"})
    monkeypatch.setattr("paimon_spark.maintained_table.SparkRunner", Late)
    monkeypatch.setattr("paimon_spark.row_level.write.SparkRunner", Late)
    before = sorted(table.to_arrow().to_pylist(), key=str)
    calls = [lambda: open_spark(spark, table.path).compact(full=True, progress=False)]
    if name == "rewritten":
        calls.append(lambda: open_spark(spark, table.path).compact(orderBy=["id"], progress=False))
        calls.append(lambda: open_spark(spark, table.path).delete("v = 'no' or id = 100", progress=False))
    for k, call in enumerate(calls, 100):
        added = [{"id": k, "dt": "a", "v": "a"}]
        table.write(pa.Table.from_pylist(added, SALES))
        before = sorted([*before, *added], key=str)
        monkeypatch.setattr(Late, "others", [lambda: compacted_and_expired(table)])
        call()
        assert Late.others == []
        left = [r for r in before if r["id"] != 100 or k < 102]
        assert sorted(table.to_arrow().to_pylist(), key=str) == left
    lost = next(f for f in sorted(files_below(table.path)) if "dt=b" in f and "/data-" in f)
    (Path(table.path) / lost).unlink()
    table.write(pa.Table.from_pylist([{"id": 5, "dt": "b", "v": "b"}], SALES))
    with pytest.raises(CorruptedError, match=lost.split("/")[-1]):
        calls[0]()


@pytest.mark.parametrize(
    ("mode", "more", "named"),
    [
        ("overwrite", {}, "for mode append"),
        ("append", {"txnAppId": "a", "txnVersion": "1"}, "are mutually exclusive"),
        ("append", {"write.unchanged-since": "0"}, "a whole number from 1"),
    ],
)
@pytest.mark.cases(1)
def test_unchanged_since_is_refused_for_other_writes(spark, warehouse, mode, more, named):
    table = sales(f"{warehouse}/db.db/sales", "keys")
    rows = spark.read.format("paimon").load(table.path)
    with pytest.raises(Exception, match=named):
        rows.write.format("paimon").mode(mode).options(**{"write.unchanged-since": "2", **more}).save(table.path)
    assert table.snapshot().id == 2


def test_delete_is_refused_before_any_job(spark, warehouse):
    path = f"{warehouse}/db.db/sales"
    table = sales(path, "keys", **{"merge-engine": "first-row"})
    last = table.snapshot().id
    for options, error, named in (
        ({}, UnsupportedError, "first-row cannot be deleted"),
        ({"versionAsOf": "1"}, InvalidInputError, "only its newest snapshot can be deleted from"),
    ):
        with pytest.raises(error, match=named):
            open_spark(spark, path, **options).delete("id = 1", progress=False)
    keyed = sales(f"{warehouse}/db.db/keyed", "keys")
    with pytest.raises(UnsupportedError, match="can only be read"):
        open_spark(spark, f"{keyed.path}$ro").delete("id = 1", progress=False)
    with pytest.raises(InvalidInputError, match="nothing"):
        open_spark(spark, keyed.path).delete("nothing = 1", progress=False)
    assert (table.snapshot().id, keyed.to_arrow().num_rows) == (last, 140)


@everywhere
def test_row_ids_are_read_as_columns(spark, warehouse):
    path = f"{warehouse}/db.db/tracked"
    schema = pa.schema([("a", pa.int32()), ("b", pa.string())])
    table = Table.create(path, Schema(schema, options={"row-tracking.enabled": "true"}))
    table.write(pa.table({"a": [1, 2], "b": ["x", "y"]}, schema))
    table.write(pa.table({"a": [3], "b": ["z"]}, schema))
    reader = spark.read.format("paimon")
    actual = reader.option("columns", "_ROW_ID,a,_SEQUENCE_NUMBER").load(path)
    assert sorted(map(tuple, actual.collect())) == [(0, 1, 1), (1, 2, 1), (2, 3, 2)]
    assert sorted(row._ROW_ID for row in actual.where("a > 1").collect()) == [1, 2]
    assert spark.read.format("paimon").load(path).columns == ["a", "b"]


@pytest.mark.more
@everywhere
def test_spark_evaluates_filters_that_engine_cannot_parse(spark, warehouse):
    path = f"{warehouse}/t"
    sales(path, "rewritten")
    table = paimon_spark.PaimonTable.forPath(spark, path)
    before = rows_of(Table.open(path).to_arrow())
    assert table.delete("length(v) > 100 OR mod(id, 10) = 3").num_deleted_rows > 0
    assert rows_of(Table.open(path).to_arrow()) == [row for row in before if row["id"] % 10 != 3]
    with pytest.raises(InvalidInputError, match="cannot parse the filter"):
        table.delete("v = upper(")


@everywhere
def test_session_decides_what_double_quotes_enclose(spark, warehouse):
    text = """ "v" = 'it''s "x"' AND `"a` = 1 """
    assert with_session_quotes(spark, text) == text
    spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    try:
        assert with_session_quotes(spark, text) == """ `v` = 'it''s "x"' AND `"a` = 1 """
    finally:
        spark.conf.unset("spark.sql.ansi.doubleQuotedIdentifiers")
