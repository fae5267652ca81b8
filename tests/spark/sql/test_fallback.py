"""A table whose partitions come from two branches: reads show both, everything else means one or is refused."""

import pytest


@pytest.mark.more
def test_two_branches_in_one_query(sql):
    sql("CREATE TABLE t (id INT NOT NULL, p INT NOT NULL) PARTITIONED BY (p) TBLPROPERTIES ('primary-key' = 'id,p')")
    sql("CALL sys.create_branch('t', 'b')")
    sql("INSERT INTO `t$branch_b` VALUES (1, 1), (2, 2)")
    sql("INSERT INTO t VALUES (5, 2), (6, 3)")
    sql("ALTER TABLE t SET TBLPROPERTIES ('scan.fallback-branch' = 'b')")
    assert sorted(sql("SELECT * FROM t")) == [(1, 1), (5, 2), (6, 3)]
    assert sql("SELECT count(*), max(id) FROM t WHERE p < 3") == [(2, 5)]
    assert sql("SELECT id FROM t WHERE p = 1") == [(1,)]
    assert sql("SELECT id FROM t ORDER BY id LIMIT 2") == [(1,), (5,)]
    assert sql("SELECT id FROM t LIMIT 9 OFFSET 2") != []
    assert sql("SELECT id FROM `t$branch_b` ORDER BY id") == [(1,), (2,)]
    assert sql("SELECT sys.max_pt('t')") == [("3",)]
    sql("INSERT INTO `t$branch_b` VALUES (9, 9)")
    assert sql("SELECT sys.max_pt('t')") == [("9",)]
    changes = f"paimon_incremental_query('{sql.database}.t', '0', '1')"
    assert sorted(sql(f"SELECT id FROM {changes}")) == [(5,), (6,)]
    path = dict(row[:2] for row in sql("DESCRIBE EXTENDED t"))["Location"]
    stream = sql.spark.readStream.format("paimon").load(path).writeStream.format("memory").queryName("own")
    stream.trigger(availableNow=True).start().awaitTermination()
    assert sorted(row["id"] for row in sql.spark.table("own").collect()) == [5, 6]
    for statement in ("SELECT * FROM t VERSION AS OF 1", "DELETE FROM t WHERE id = 1", "DELETE FROM t WHERE p = 1"):
        with pytest.raises(Exception, match=r"scan\.fallback-branch"):
            sql(statement)
    sql("ALTER TABLE t UNSET TBLPROPERTIES ('scan.fallback-branch')")
    assert sql("SELECT count(*) FROM t") == [(2,)]
