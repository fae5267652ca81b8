"""Writes that change the schema: ``write.merge-schema`` and WITH SCHEMA EVOLUTION."""

import pytest
from pyspark.sql import functions as F

from paimon_core import Table
from paimon_core.errors import InvalidInputError
from paimon_spark import PaimonTable
from tests.spark.sql.test_insert import opened  # noqa: F401

MERGE = "write.merge-schema"
SETTING = f"spark.paimon.{MERGE}"
EVOLVE = "MERGE WITH SCHEMA EVOLUTION INTO t USING"
SOURCE = "(SELECT 1 AS id, 5000000000 AS n, 'x' AS extra UNION ALL SELECT 3, 3, 'y') s ON t.id = s.id"


def columns(table):
    return [f"{field.name} {field.type}" for field in table.schema.fields]


@pytest.mark.more
def test_write_by_name_adds_columns_of_its_rows(sql, opened):  # noqa: F811
    sql("CREATE TABLE t (id INT, v INT, s STRUCT<a: INT>)")
    sql("INSERT INTO t VALUES (1, 1, named_struct('a', 1))")
    insert = f"INSERT INTO t WITH ('{MERGE}' = 'true') BY NAME SELECT 2 AS id, 'x' AS extra, NULL AS v"
    with pytest.raises(Exception, match="EXTRA_COLUMNS"):
        sql(insert.replace("true", "false"))
    sql(f"EXPLAIN {insert}")
    assert opened("t").schema.id == 0
    sql(insert)
    rows = sql.spark.sql("SELECT 3 AS ID, 3000000000 AS v, named_struct('a', 3, 'b', 'q') AS s")
    with pytest.raises(Exception, match="CAST_OVERFLOW"):
        rows.writeTo("t").option(MERGE, "true").append()
    rows.writeTo("t").option(MERGE, "true").option(f"{MERGE}.type-widening", "true").append()
    sql.spark.sql("SELECT 4 AS id, 4 AS n").write.mode("append").option("mergeSchema", "true").saveAsTable("t")
    assert columns(opened("t")) == ["id INT", "v BIGINT", "s ROW<`a` INT, `b` STRING>", "extra STRING", "n INT"]
    rows = sql("SELECT id, v, s.a, s.b, extra, n FROM t ORDER BY id")
    assert rows[:2] == [(1, 1, 1, None, None, None), (2, None, None, None, "x", None)]
    assert rows[2:] == [(3, 3000000000, 3, "q", None, None), (4, None, None, None, None, 4)]
    with pytest.raises(Exception, match="TOO_MANY_DATA_COLUMNS"):
        sql(f"INSERT INTO t WITH ('{MERGE}' = 'true') SELECT 1, 1, NULL, 'e', 1, 2")


@pytest.mark.more
def test_session_setting_applies_to_all_writes(sql, opened):  # noqa: F811
    sql("CREATE TABLE t (id INT, p INT) PARTITIONED BY (p)")
    sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    sql.spark.conf.set(SETTING, "true")
    try:
        sql("WITH c AS (SELECT 3 AS id, 'a' AS a) INSERT OVERWRITE t PARTITION (p = 1) BY NAME SELECT * FROM c")
        sql.spark.sql("SELECT 4 AS id, 2 AS p, 'b' AS b").writeTo("t").overwritePartitions()
        assert sql("SELECT id, p, a, b FROM t ORDER BY id") == [(3, 1, "a", None), (4, 2, None, "b")]
        sql("INSERT INTO t VALUES (5, 5, 'a', 'b')")
        sql("MERGE INTO t USING (SELECT 5 AS id, 'c' AS c) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
        assert sql("SELECT * FROM t WHERE id = 5") == [(5, 5, "a", "b", "c")]
        assert opened("t").schema.id == 3
    finally:
        sql.spark.conf.unset(SETTING)


@pytest.mark.more
def test_tables_by_their_path_and_streams(sql, tmp_path):
    path, spark = str(tmp_path / "t"), sql.spark
    spark.range(1).write.format("paimon").mode("append").save(path)

    def write(rows):
        return rows.write.format("paimon").mode("append").option(MERGE, "true")

    write(spark.sql("SELECT 1 AS id, 'a' AS a, '+I' AS kind")).option("row-kind-column", "kind").save(path)
    assert columns(Table.open(path)) == ["id BIGINT", "a STRING"]
    with pytest.raises(Exception, match="cannot be merged with STRING"):
        write(spark.sql("SELECT 'x' AS id")).option(f"{MERGE}.type-widening", "true").save(path)
    write(spark.sql("SELECT 'x' AS id")).option(f"{MERGE}.explicit-cast", "true").save(path)
    stream = spark.readStream.format("paimon").load(path).withColumn("b", F.lit(1))
    sql("CREATE TABLE t (id STRING)")
    for target, start in (("copy", "start"), (f"pm.{sql.database}.t", "toTable")):
        if start == "start":
            spark.createDataFrame([], "id STRING").write.format("paimon").mode("append").save(str(tmp_path / target))
        writer = stream.writeStream.format("paimon").option(MERGE, "true").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / start))
        getattr(writer, start)(str(tmp_path / target) if start == "start" else target).awaitTermination()
    assert columns(Table.open(str(tmp_path / "copy"))) == ["id STRING", "a STRING", "b INT"]
    assert sorted(map(str, sql("SELECT * FROM t"))) == ["('0', None, 1)", "('1', 'a', 1)", "('x', None, 1)"]


@pytest.mark.versions
@pytest.mark.parametrize(
    "keys", [pytest.param("", marks=pytest.mark.more), "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"]
)
def test_merge_with_schema_evolution(sql, opened, keys):  # noqa: F811
    sql(f"CREATE TABLE t (id INT NOT NULL, n INT, other INT) {keys}")
    sql("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)")
    star = f"{EVOLVE} {SOURCE} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    sql(f"EXPLAIN {star}")
    assert opened("t").schema.id == 0
    assert sql(star) == [(2, 1, 0, 1)]
    assert sql("SELECT * FROM t ORDER BY id") == [(1, 5000000000, 1, "x"), (2, 2, 2, None), (3, 3, None, "y")]
    if keys:
        sql(f"{EVOLVE} (SELECT 2 AS id, 9 AS a, 9 AS b) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = s.a, n = s.b")
        rows = sql.spark.sql("SELECT 3 AS id, 7 AS c").alias("s")
        rows.mergeInto("t", F.expr("t.id = s.id")).withSchemaEvolution().whenMatched().updateAll().merge()
        assert sql("SELECT * FROM t WHERE id > 1 ORDER BY id") == [(2, 9, 2, None, 9, None), (3, 3, None, "y", None, 7)]
        for wrong, message in (
            ("'x' AS n", "cannot be merged with STRING"),
            ("1.5D AS id", "the type of 'id' cannot change"),
        ):
            with pytest.raises(Exception, match=message):
                sql(f"{EVOLVE} (SELECT {wrong}) s ON t.other = 0 WHEN NOT MATCHED THEN INSERT *")
        assert opened("t").schema.id == 3


@pytest.mark.more
def test_insert_with_schema_evolution(sql, opened):  # noqa: F811
    if sql.spark.version < "4.2":
        pytest.skip("this Spark has no such statement")
    sql("CREATE TABLE t (id INT)")
    sql("INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 3000000000 AS id, 'a' AS a")
    assert sql("SELECT * FROM t") == [(3000000000, "a")]
    with pytest.raises(Exception, match="BY NAME"):
        sql("INSERT WITH SCHEMA EVOLUTION INTO t SELECT 1, 'a', 'b'")


@pytest.mark.more
def test_fluent_merge_changes_schema(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.sql("SELECT 1 AS id, 1 AS n, named_struct('a', 1, 'b', 2) AS s, 7 AS other").write.format("paimon").option(
        "primary-key", "id"
    ).option("bucket", "1").mode("append").save(path)
    source = spark.sql(
        "SELECT 1 AS ID, 5000000000 AS n, named_struct('c', 'x', 'b', 20, 'a', 10) AS s, 'e' AS extra UNION ALL "
        "SELECT 2, 2, NULL, 'f'"
    )
    table = PaimonTable.forPath(spark, path).alias("t")
    merge = table.merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    with pytest.raises(InvalidInputError, match="the source has no column for other"):
        merge.execute()
    wrong = table.merge(source.alias("s"), "t.id = s.id").whenNotMatchedInsert(values={"nope": "s.id", "extra": "1"})
    with pytest.raises(InvalidInputError, match="nope"):
        wrong.withSchemaEvolution().execute()
    assert Table.open(path).schema.id == 0
    assert merge.withSchemaEvolution().execute().num_affected_rows == 2
    nested = "ROW<`a` INT, `b` INT, `c` STRING>"
    assert columns(Table.open(path)) == ["id INT NOT NULL", "n BIGINT", f"s {nested}", "other INT", "extra STRING"]
    assert sorted(Table.open(path).to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "n": 5000000000, "s": {"a": 10, "b": 20, "c": "x"}, "other": 7, "extra": "e"},
        {"id": 2, "n": 2, "s": None, "other": None, "extra": "f"},
    ]
    more = spark.sql("SELECT 2 AS id, 'g' AS named, 'h' AS unnamed").alias("s")
    PaimonTable.forPath(spark, path).alias("t").merge(more, "t.id = s.id").withSchemaEvolution().whenMatchedUpdate(
        set={"t.named": "s.named"}
    ).execute()
    assert columns(Table.open(path))[-1] == "named STRING"
    option = PaimonTable.forPath(spark, path, mergeSchema="true").alias("t").merge(more, "t.id = s.id")
    option.whenMatchedUpdateAll().execute()
    assert columns(Table.open(path))[-1] == "unnamed STRING"
    assert Table.open(path).get({"id": 2})["unnamed"] == "h"


@pytest.mark.more
def test_fields_of_structs_in_fluent_merge_are_matched_by_name(spark, tmp_path):
    path = str(tmp_path / "t")
    rows = spark.sql("""SELECT 1 AS id, named_struct('a', 1, 'b', 2) AS s, array(named_struct('a', 1, 'b', 2)) AS l,
        map('k', array(named_struct('a', 1, 'b', 2))) AS m, map(named_struct('a', 1, 'b', 2), 1) AS k""")
    rows.write.format("paimon").mode("append").save(path)
    source = spark.sql("""SELECT 1 AS id, named_struct('b', 20, 'a', 10) AS s,
        array(named_struct('b', 20, 'a', 10)) AS l,
        map('k', array(named_struct('b', 20, 'a', 10))) AS m, map(named_struct('b', 20, 'a', 10), 1) AS k""")
    merge = PaimonTable.forPath(spark, path).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().execute()
    part = {"a": 10, "b": 20}
    assert Table.open(path).to_arrow().to_pylist() == [
        {"id": 1, "s": part, "l": [part], "m": [("k", [part])], "k": [(part, 1)]}
    ]
    fewer = spark.sql("SELECT 1 AS id, named_struct('b', 20) AS s, NULL AS l, NULL AS m, NULL AS k").alias("s")
    with pytest.raises(InvalidInputError, match=r"new value of s lacks a: it has the fields \['b'\]"):
        PaimonTable.forPath(spark, path).alias("t").merge(fewer, "t.id = s.id").whenMatchedUpdateAll().execute()
