"""Metrics of statements of SQL, which ask Python in a thread of their own."""

import pytest

from paimon_core import metrics


@pytest.mark.more
def test_statements_are_collected_with_all_threads(sql):
    sql("CREATE TABLE t (id BIGINT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    with metrics.collect(all_threads=True) as measured:
        sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        sql("UPDATE t SET v = 'c' WHERE id = 1")
    assert [commit.rows_added for commit in measured.commits] == [2, 1]
    with metrics.collect(all_threads=True) as measured:
        assert sql("SELECT v FROM t ORDER BY id") == [("c",), ("b",)]
    assert (measured.read.rows_stored, measured.read.rows_merged, measured.read.rows) == (3, 1, 2)
    assert measured.read.table.endswith("/t")
