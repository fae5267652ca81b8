"""System tables in SQL: the same rows as the engine's, small ones without a task, and no writes."""

from pathlib import Path

import pytest

from paimon_core.inspect.system_tables.table_registry import SYSTEM_TABLES
from paimon_core.table import Table
from tests.spark.conftest import MODE

pytestmark = [pytest.mark.spark, pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session")]


@pytest.fixture
def table(sql):
    """Table ``t`` with two snapshots and a tag; returns the engine's table."""
    sql("CREATE TABLE t (id INT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    sql("INSERT INTO t VALUES (1, 'c')")
    sql("ALTER TABLE t CREATE TAG v1 AS OF VERSION 1")
    described = {row[0]: row[1] for row in sql("DESCRIBE EXTENDED t")}
    return Table.open(described["Location"])


def plan(sql, query):
    return sql(f"EXPLAIN {query}")[0][0]


def test_every_one_has_rows_of_engine(sql, table):
    for name in SYSTEM_TABLES:
        if name == "row_tracking":
            continue
        expected = table.system_table(name).to_arrow()
        frame = sql.spark.sql(f"SELECT * FROM `t${name}`")
        assert frame.columns == expected.schema.names, name
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        assert sorted(rows, key=str) == sorted(expected.to_pylist(), key=str), name
        assert sql(f"SELECT count(*) FROM `t${name}`") == [(expected.num_rows,)], name


def test_small_ones_are_read_without_task(sql, table):
    query = "SELECT commit_kind, commit_time FROM `t$snapshots` WHERE snapshot_id = 2"
    assert "LocalTableScan" in plan(sql, query)
    assert sql(query)[0][0] == "APPEND"
    assert "LocalTableScan" in plan(sql, "SELECT record_count FROM `t$files`")
    assert "read by Python" in plan(sql, "SELECT write_cols FROM `t$files`")
    assert "read by Python" in plan(sql, "SELECT * FROM `t$audit_log`")
    Path(table.store.snapshots.path(1)).write_text("unreadable")  # a filter chooses the files that are read
    assert sql(query)[0][0] == "APPEND"


def test_system_tables_take_queries(sql, table):
    assert sql("SELECT max(snapshot_id) FROM `t$snapshots`") == [(2,)]
    assert sql("SELECT snapshot_id FROM `t$SNAPSHOTS` ORDER BY commit_time DESC LIMIT 1") == [(2,)]
    assert sql("SELECT sum(record_count) FROM `t$files` VERSION AS OF 1") == [(2,)]
    assert sql("SELECT sum(record_count) FROM `t$files` VERSION AS OF 'v1'") == [(2,)]
    assert sql("SELECT rowkind, id, v FROM `t$audit_log` WHERE id = 1") == [("+I", 1, "c")]
    assert sql("SELECT v FROM `t$audit_log` VERSION AS OF 1 WHERE id = 1") == [("a",)]
    assert sql("SELECT id FROM `t$binlog` WHERE v[0] = 'b'") == [([2],)]
    between = "SELECT rowkind, v FROM `t$audit_log` WITH ('incremental-between' = '1,2')"
    assert sql(between) == [("+I", "c")]
    joined = "SELECT s.commit_kind FROM `t$tags` t JOIN `t$snapshots` s ON s.snapshot_id = t.snapshot_id"
    assert sql(joined) == [("APPEND",)]
    sql("CALL sys.create_branch('t', 'b', 'v1')")
    assert sql("SELECT snapshot_id FROM `t$branch_b$snapshots`") == [(1,)]
    sql.spark.conf.set("spark.paimon.scan.snapshot-id", "1")
    try:
        assert sql("SELECT count(*) FROM `t$snapshots`") == [(2,)]
        assert sql("SELECT sum(record_count) FROM `t$files`") == [(2,)]
    finally:
        sql.spark.conf.unset("spark.paimon.scan.snapshot-id")


def test_listings_and_descriptions(sql, table):
    assert [row[1] for row in sql("SHOW TABLES")] == ["t"]
    described = {row[0]: row[1] for row in sql("DESCRIBE `t$files`")}
    assert described["creation_time"] == "timestamp_ntz"
    assert described["write_cols"] == "array<string>"
    assert len(described) == 20
    assert sql.spark.catalog.tableExists(f"{sql.database}.`t$files`")


ONLY_READ = r"t\$\w+: a system table can only be read"
WRITES = {
    "INSERT INTO `t$files` SELECT * FROM `t$files`": r"`t\$files` does not support append",
    "INSERT OVERWRITE `t$tags` SELECT * FROM `t$tags`": r"`t\$tags` does not support truncate",
    "DELETE FROM `t$files` WHERE level = 0": ONLY_READ,
    "UPDATE `t$files` SET level = 1": ONLY_READ,
    "MERGE INTO `t$files` f USING `t$files` g ON f.file_path = g.file_path WHEN MATCHED THEN DELETE": ONLY_READ,
    "TRUNCATE TABLE `t$audit_log`": ONLY_READ,
    "ALTER TABLE `t$files` ADD COLUMN x INT": ONLY_READ,
    "ALTER TABLE `t$files` CREATE TAG v2": ONLY_READ,
    "DROP TABLE `t$files`": r"'db\d+.t\$files' is a branch or system table, which cannot be dropped",
    "ALTER TABLE `t$files` RENAME TO u": r"t\$files' is a branch or system table, which cannot be renamed",
    "CREATE TABLE `t$files` (a INT)": r"`t\$files` because it already exists",
}


@pytest.mark.cases(2)
@pytest.mark.parametrize("statement", WRITES)
def test_writes_are_refused_by_name(sql, table, statement):
    with pytest.raises(Exception, match=WRITES[statement]):
        sql(statement)
    assert sql("SELECT count(*) FROM t") == [(2,)]


def test_names_and_moments_that_do_not_fit(sql, table):
    with pytest.raises(Exception, match=r"no system table '\$file'; did you mean '\$files'"):
        sql("SELECT * FROM `t$file`")
    with pytest.raises(Exception, match="has no history"):
        sql("SELECT * FROM `t$snapshots` VERSION AS OF 1")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("SELECT * FROM `absent$files`")
    with pytest.raises(Exception, match=r"needs row ids"):
        sql("SELECT * FROM `t$row_tracking`")


def test_global_tables_show_catalog(sql, table):
    where = f"WHERE database_name = '{sql.database}'"
    assert sql(f"SELECT table_name, primary_key FROM sys.tables {where}") == [("t", True)]
    assert sql(f"SELECT value FROM pm.sys.all_table_options {where} AND key = 'bucket'") == [("1",)]
    assert sql(f"SELECT count(*) FROM sys.partitions {where}") == [(0,)]
    assert "warehouse" in dict(sql("SELECT * FROM sys.catalog_options"))
    with pytest.raises(Exception, match=r"did you mean 'sys\.tables'"):
        sql("SELECT * FROM sys.table")
