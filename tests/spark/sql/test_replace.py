"""Overwrites of the rows that match new rows: REPLACE USING, REPLACE ON, and the options of DataFrames."""

import pyspark
import pytest

from tests.spark.conftest import MODE

pytestmark = [
    pytest.mark.spark,
    pytest.mark.versions,
    pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session"),
]
IN_SQL = pytest.mark.skipif(pyspark.__version__ < "4.2", reason="Spark has no such clause before 4.2")
KINDS = {
    "rewritten": "",
    "vectors": "TBLPROPERTIES ('deletion-vectors.enabled' = 'true')",
    "tracked": "TBLPROPERTIES ('row-tracking.enabled' = 'true')",
    "keyed": "TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '2')",
}


def made(sql, kind="rewritten", name="t"):
    """Make a table of four rows; g is NULL in the last one."""
    sql(f"CREATE TABLE {name} (k INT NOT NULL, g STRING, v BIGINT) {KINDS[kind]}")
    sql(f"INSERT INTO {name} VALUES (1, 'a', 10), (2, 'a', 20), (3, 'b', 30), (4, NULL, 40)")


def rows(sql, name="t"):
    return sorted(sql(f"SELECT * FROM {name}"))


@pytest.mark.cases(1)
@IN_SQL
@pytest.mark.parametrize(
    "kind", ["rewritten", "keyed", *(pytest.param(k, marks=pytest.mark.more) for k in ("vectors", "tracked"))]
)
def test_statements(sql, kind):
    made(sql, kind)
    before = sql("SELECT count(*) FROM `t$snapshots` WHERE commit_kind <> 'COMPACT'")
    sql("INSERT INTO t REPLACE USING (g) VALUES (2, 'a', 21), (5, 'c', 50), (6, 'a', 60)")
    assert rows(sql) == [(2, "a", 21), (3, "b", 30), (4, None, 40), (5, "c", 50), (6, "a", 60)]
    assert sql("SELECT count(*) FROM `t$snapshots` WHERE commit_kind <> 'COMPACT'") == [(before[0][0] + 1,)]
    sql("INSERT INTO t BY NAME REPLACE USING (k, g) SELECT 31L AS v, 'b' AS g, 3 AS k UNION ALL SELECT 41L, NULL, 7")
    assert rows(sql)[1:3] == [(3, "b", 31), (4, None, 40)]
    source = "(SELECT 8 AS id, CAST(NULL AS STRING) AS h, 41L AS w) AS s"
    sql(f"INSERT INTO t AS x REPLACE ON x.g <=> s.h AND x.v >= s.w {source}")
    assert rows(sql) == [(2, "a", 21), (3, "b", 31), (4, None, 40), (5, "c", 50), (6, "a", 60), (8, None, 41)]
    sql("INSERT INTO t REPLACE ON t.v > 40 SELECT k, g, v + 100 FROM t WHERE k = 3")
    old = [] if kind == "keyed" else [(3, "b", 31)]
    assert rows(sql) == [(2, "a", 21), *old, (3, "b", 131), (4, None, 40)]
    sql("INSERT INTO t REPLACE USING (g) SELECT * FROM t WHERE false")
    assert len(rows(sql)) == (3 if kind == "keyed" else 4)


@pytest.mark.more
def test_options_of_data_frames(sql):
    made(sql)
    spark = sql.spark
    new = spark.createDataFrame([(2, "a", 22), (9, "z", 90)], "k int, g string, v bigint")
    new.write.mode("overwrite").option("replaceUsing", "k, g").insertInto("t")
    assert rows(sql) == [(1, "a", 10), (2, "a", 22), (3, "b", 30), (4, None, 40), (9, "z", 90)]
    new.where("k = 9").write.mode("overwrite").option("replaceOn", "t.v < s.v AND t.g = 'a'").insertInto("t")
    assert rows(sql) == [(3, "b", 30), (4, None, 40), (9, "z", 90), (9, "z", 90)]
    new.where("k = 9").write.mode("overwrite").option("replaceWhere", "g = 'z'").insertInto("t")
    assert rows(sql) == [(3, "b", 30), (4, None, 40), (9, "z", 90)]
    changed = new.where("k = 9").selectExpr("v + 1L AS v", "g", "k")
    changed.write.mode("overwrite").option("replaceUsing", "k").saveAsTable("t")
    assert rows(sql) == [(3, "b", 30), (4, None, 40), (9, "z", 91)]
    changed.write.mode("overwrite").option("replaceWhere", "v = 91").saveAsTable("t")
    assert rows(sql) == [(3, "b", 30), (4, None, 40), (9, "z", 91)]
    path = next(row[1] for row in sql("DESCRIBE TABLE EXTENDED t") if row[0] == "Location")
    aliases = {"replaceOn": "x.k = y.k + 1", "targetAlias": "x", "sourceAlias": "y"}
    new.where("k = 2").write.format("paimon").mode("overwrite").options(**aliases).save(path)
    assert rows(sql) == [(2, "a", 22), (4, None, 40), (9, "z", 91)]


@pytest.mark.more
def test_refusals(sql):
    made(sql)
    new = sql.spark.createDataFrame([(2, "a", 22)], "k int, g string, v bigint")

    def message(write):
        with pytest.raises(Exception) as raised:
            write()
        return str(raised.value)

    def write(mode="overwrite", **options):
        return message(lambda: new.write.mode(mode).options(**options).insertInto("t"))

    assert "option 'replaceUsing' is for mode('overwrite')" in write("append", replaceUsing="k")
    assert "each choose the rows to replace" in write(replaceUsing="k", replaceWhere="k = 1")
    assert "'nope'" in write(replaceUsing="nope")
    assert "'targetalias' is for 'replaceOn'" in write(targetAlias="x")
    assert "does not match" in write(replaceWhere="k = 1")
    text = message(lambda: new.write.mode("overwrite").option("replaceUsing", "k").saveAsTable("missing"))
    assert "does not exist" in text
    text = message(lambda: new.writeTo("t").option("replaceUsing", "k").createOrReplace())
    assert "use insertInto or saveAsTable" in text
    for properties, wrong in (
        ("'merge-engine' = 'aggregation'", "merge engine aggregation"),
        ("'sequence.field' = 'v'", "'sequence.field' = 'v' cannot be replaced"),
    ):
        sql(
            "CREATE OR REPLACE TABLE u (k INT NOT NULL, g STRING, v BIGINT) "
            f"TBLPROPERTIES ('primary-key' = 'k', {properties})"
        )
        assert wrong in message(lambda: new.write.mode("overwrite").option("replaceUsing", "g").insertInto("u"))
    by_path = new.write.format("paimon").mode("overwrite").option("replace.statement", '{"using": ["k"]}')
    location = {row[0]: row[1] for row in sql("DESCRIBE EXTENDED t")}["Location"]
    assert "replace.statement" in message(lambda: by_path.save(location))
    assert len(rows(sql)) == 4
    if pyspark.__version__ >= "4.3":
        text = message(
            lambda: sql("INSERT INTO t REPLACE ON t.v = s.v (SELECT 1 AS k, 'a' AS g, CAST(10 AS DOUBLE) AS v) AS s")
        )
        assert "column 'v' is bigint and its new value is double: cast it in the query" in text
        text = message(lambda: sql("INSERT INTO t REPLACE ON t.k IN (SELECT 1) SELECT 1, 'a', 1"))
        assert "cannot contain a query" in text
        assert len(rows(sql)) == 4
