"""Settings of the session reach statements on rows and procedures, not only reads and INSERT."""

import pytest

from paimon_core.scan.entries import live_entries
from tests.spark.sql.test_insert import opened  # noqa: F401


@pytest.mark.more
def test_settings_reach_statements_on_rows_and_calls(sql, opened):  # noqa: F811
    conf, prefix = sql.spark.conf, f"spark.paimon.pm.{sql.database}.t."
    sql("CREATE TABLE t (id INT, v INT)")
    sql("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    given = {"file.format": "orc", "scan.snapshot-id": "1", "limit": "1", "commit.user": "me"}
    for key, value in given.items():
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
        for key in (*given, "txnAppId"):
            conf.unset(prefix + key)


def formats(table):
    """Return the formats of the files that the newest snapshot has."""
    live = live_entries(table.store, table.snapshot()).live
    return {entry.file.file_name.rpartition(".")[2] for entry in live}
