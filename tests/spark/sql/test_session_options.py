"""Settings of the session reach statements on rows and procedures, not only reads and INSERT."""

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException

import paimon_spark
from paimon_core.scan.entries import live_entries
from tests.spark.sql.test_insert import opened  # noqa: F401


@pytest.mark.more
def test_settings_reach_statements_on_rows_and_calls(sql, opened):  # noqa: F811
    conf, prefix = sql.spark.conf, f"spark.paimon.pm.{sql.database}.t."
    sql("CREATE TABLE t (id INT, v INT)")
    sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    options = {"file.format": "orc", "scan.snapshot-id": "1", "limit": "1", "commit.user": "me"}
    for key, value in options.items():
        conf.set(prefix + key, value)
    try:
        sql("UPDATE t SET v = 9 WHERE id < 3")
        table = opened("t")
        assert table.snapshot().commit_user == "me"
        assert "orc" in formats(table)
        conf.unset(prefix + "scan.snapshot-id")
        conf.unset(prefix + "limit")
        assert sql("SELECT * FROM t ORDER BY id") == [(1, 9), (2, 9), (3, 3)]
        conf.set(prefix + "file.format", "avro")
        sql("CALL sys.compact('t')")
        assert formats(opened("t")) == {"avro"}
        conf.set(prefix + "txnAppId", "app")
        with pytest.raises(Exception, match="txnappid' is not possible for DELETE"):
            sql("DELETE FROM t WHERE id = 1")
    finally:
        for key in (*options, "txnAppId"):
            conf.unset(prefix + key)


def formats(table):
    """Return the formats of the files that the newest snapshot has."""
    live = live_entries(table.store, table.snapshot()).live
    return {entry.file.file_name.rpartition(".")[2] for entry in live}


def test_option_of_statement_is_checked_before_read(sql):
    sql("CREATE TABLE t (a INT)")
    sql("INSERT INTO t VALUES (1)")
    sql("INSERT INTO t VALUES (2)")
    assert sql("SELECT * FROM t WITH ('scan.snapshot-id' = '1')") == [(1,)]
    sql("ALTER TABLE t ADD COLUMNS (b INT, s STRUCT<x: INT>)")
    sql("INSERT INTO t VALUES (3, 3, named_struct('x', 3))")
    sql("ALTER TABLE t RENAME COLUMN a TO c")
    sql("ALTER TABLE t RENAME COLUMN s.x TO y")
    assert sql("SELECT c, b, s.y FROM t WITH ('scan.snapshot-id' = '1') WHERE c > 0") == [(1, None, None)]
    assert sql("SELECT count(*), max(s.y) FROM t WITH ('scan.version' = '3', 'limit' = '9') WHERE c = 3") == [(1, 3)]
    for option, message in (
        ("'scan.snapshot-idd' = '1'", "did you mean 'scan.snapshot-id'"),
        ("'scan.snapshot-id' = 'x'", "scan.snapshot-id"),
        ("'path' = '/elsewhere'", "option 'path' is for reads without a catalog"),
    ):
        with pytest.raises(IllegalArgumentException, match=message):
            sql(f"SELECT * FROM t WITH ({option})")
    with pytest.raises(IllegalArgumentException, match=r"did you mean 'read\.min-tasks'"):
        sql.spark.read.option("read.min-task", "1").table("t").collect()


@pytest.mark.versions
def test_catalog_may_have_name_of_data_source(sql, tmp_path):
    paimon_spark.catalog(sql.spark, "paimon", warehouse=str(tmp_path))
    sql("CREATE TABLE paimon.default.t (a INT)")
    sql(f"INSERT INTO paimon.`{tmp_path}/default.db/t` VALUES (1)")
    assert sql(f"SELECT * FROM paimon.`{tmp_path}/default.db/t`") == [(1,)]
    for name in (f"paimon.`{tmp_path}/nope`", "paimon.nope"):
        for text in (f"SELECT * FROM {name}", f"INSERT INTO {name} VALUES (1)", f"DELETE FROM {name}"):
            with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND") as caught:
                sql(text)
            assert "nope" in str(caught.value)
    assert not sql.spark.catalog.tableExists(f"paimon.`{tmp_path}/nope`")
    sql("DROP TABLE IF EXISTS paimon.default.nope")
