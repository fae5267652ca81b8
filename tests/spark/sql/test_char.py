"""CHAR and VARCHAR: Spark's metadata, checks and padding, on every path, with values that are stored without blanks."""

import pyarrow as pa
import pytest

from paimon_core import Table
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from paimon_spark import PaimonTable
from paimon_spark.char_columns import DECLARED_TYPE, padded_batch


def path_of(sql, table):
    return dict(row[:2] for row in sql(f"DESCRIBE TABLE EXTENDED {table}"))["Location"]


def store(sql, table, **columns):
    """Write rows as the Java API does, which stores CHAR values without more blanks."""
    opened = Table.open(path_of(sql, table))
    opened.write(pa.table(columns).cast(opened.to_arrow().schema))
    return opened


@pytest.mark.versions
@pytest.mark.more
def test_columns_show_their_types_and_check_lengths(sql):
    sql("CREATE TABLE t (id INT, ch CHAR(5), v VARCHAR(3), s STRUCT<`a b`: CHAR(2)>, m MAP<CHAR(2), ARRAY<CHAR(3)>>)")
    assert [row[1] for row in sql("DESCRIBE t")] == [
        "int", "char(5)", "varchar(3)", "struct<a b:string>", "map<char(2),array<char(3)>>"
    ]  # fmt: skip
    sql("INSERT INTO t VALUES (1, 'ab', 'x', named_struct('a b', 'y'), map('k', array('v')))")
    expected = [("ab   ", "x", "y ", {"k ": ["v  "]})]
    assert sql("SELECT ch, v, s.`a b`, m FROM t WHERE ch = 'ab'") == expected
    for values in ("'abcdef', 'x'", "'ab', 'xyzz'"):
        with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
            sql(f"INSERT INTO t (ch, v) VALUES ({values})")
    frames = (sql.spark.table("t"), sql.spark.read.format("paimon").load(path_of(sql, "t")))
    for frame in frames:
        marks = [field.metadata.get(DECLARED_TYPE) for field in frame.schema]
        assert marks[1:3] == ["char(5)", "varchar(3)"]
        assert "char(2)" in marks[3]
        assert [
            tuple(row) for row in frame.where("ch = 'ab'").selectExpr("ch", "v", "s.`a b`", "m").collect()
        ] == expected
    sql("CREATE TABLE u AS SELECT ch, v FROM t")
    sql("ALTER TABLE u ALTER COLUMN v TYPE STRING")
    assert [row[1] for row in sql("DESCRIBE u")] == ["char(5)", "string"]
    sql("INSERT INTO u VALUES ('q', 'longer than before')")
    assert sql("SELECT count(*) FROM u WHERE ch IN ('q', 'ab ')") == [(2,)]


def test_types_that_spark_does_not_replace_are_refused(sql):
    sql("CREATE TABLE t (id INT, s STRUCT<v: VARCHAR(3)>)")
    sql("CREATE TABLE other (id INT, s STRING)")
    sql.spark.conf.set("spark.sql.preserveCharVarcharTypeInfo", "true")
    try:
        for statement in (
            "SELECT * FROM t",
            "INSERT INTO t VALUES (1, named_struct('v', 'x'))",
            "CREATE TABLE u (c CHAR(2))",
            "CREATE TABLE u AS SELECT CAST('a' AS CHAR(2)) AS c",
        ):
            with pytest.raises(Exception, match=r"not supported with spark\.sql\.preserveCharVarcharTypeInfo = true"):
                sql(statement)
        sql("INSERT INTO other VALUES (1, 'x')")
        assert sql("SELECT * FROM other") == [(1, "x")]
    finally:
        sql.spark.conf.unset("spark.sql.preserveCharVarcharTypeInfo")
    assert sql("SELECT * FROM t") == []
    assert sql("SHOW TABLES LIKE 'u'") == []


@pytest.mark.parametrize("format", ["parquet", pytest.param("orc", marks=pytest.mark.more)])
@pytest.mark.parametrize("native", [True, pytest.param(False, marks=pytest.mark.more)])
def test_values_with_and_without_blanks_are_equal(sql, format, native):
    sql(f"CREATE TABLE t (id INT, ch CHAR(4), p CHAR(2)) PARTITIONED BY (p) TBLPROPERTIES ('file.format' = '{format}')")
    sql("INSERT INTO t VALUES (1, 'ab', 'p'), (2, 'xy', 'p')")
    table = store(sql, "t", id=[3, 4], ch=["ab", "xy"], p=["p", "q"])
    sql.spark.conf.set("spark.paimon.read.native", str(native).lower())
    try:
        for condition in ("ch = 'ab'", "ch <=> 'ab  '", "ch IN ('ab', 'no')", "NOT ch <> 'ab'"):
            assert sql(f"SELECT id FROM t WHERE {condition} ORDER BY id") == [(1,), (3,)], condition
        assert sql("SELECT count(*), min(id) FROM t WHERE p = 'p'") == [(3, 1)]
        assert sql("SELECT p, count(*) FROM t GROUP BY p ORDER BY p") == [("p ", 3), ("q ", 1)]
        frame = sql.spark.read.format("paimon")
        path = path_of(sql, "t")
        assert frame.load(path).where("ch = 'ab' AND p = 'p'").count() == 2
        assert frame.option("filter", "ch = 'ab'").load(path).count() == 2
        assert table.to_arrow(filter="ch = 'ab' AND p != 'q'").num_rows == 2
    finally:
        sql.spark.conf.unset("spark.paimon.read.native")


@pytest.mark.more
def test_settings_of_the_session_are_obeyed(sql):
    sql("CREATE TABLE t (id INT, ch CHAR(4))")
    sql("INSERT INTO t VALUES (1, 'ab')")
    store(sql, "t", id=[2], ch=["ab"])
    spark = sql.spark
    cases = {"spark.sql.readSideCharPadding": [1, 2], "spark.sql.legacy.charVarcharAsString": [2]}
    for key, equal in cases.items():
        spark.conf.set(key, "false" if "read" in key else "true")
        try:
            assert sql("SELECT length(ch) FROM t ORDER BY id") == [(4,), (2,)]
            assert [row[0] for row in sql("SELECT id FROM t WHERE ch = 'ab' ORDER BY id")] == equal
            assert sql("DELETE FROM t WHERE ch = 'none'") == [(0,)]
            if "legacy" in key:
                sql("INSERT INTO t VALUES (3, 'x')")
                assert sql("SELECT length(ch) FROM t WHERE id = 3") == [(1,)]
                with pytest.raises(Exception, match=r"CHAR\(4\): it has 5 characters"):
                    sql("INSERT INTO t VALUES (4, 'abcde')")
        finally:
            spark.conf.unset(key)


@pytest.mark.more
def test_statements_change_keys_as_they_are_stored(sql):
    sql("CREATE TABLE k (k CHAR(4) NOT NULL, v INT) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')")
    table = store(sql, "k", k=["a", "b", "c"], v=[1, 2, 3])
    sql("INSERT INTO k VALUES ('d', 4)")
    assert sql("UPDATE k SET v = 10 WHERE k = 'a'") == [(1,)]
    assert sql("DELETE FROM k WHERE k = 'b'") == [(1,)]
    sql("CREATE TABLE s (k CHAR(4), v INT)")
    store(sql, "s", k=["c", "e"], v=[30, 50])
    merge = "MERGE INTO k USING s ON k.k = s.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    assert sql(merge) == [(2, 1, 0, 1)]
    rows = sorted(map(tuple, (row.values() for row in table.to_arrow().to_pylist())))
    assert rows == [("a", 10), ("c", 30), ("d   ", 4), ("e   ", 50)]
    own = "MERGE INTO k USING (SELECT * FROM k WHERE k = 'c') s ON k.k = s.k WHEN MATCHED THEN DELETE"
    assert sql(own) == [(1, 0, 1, 0)]
    builder = PaimonTable.forPath(sql.spark, path_of(sql, "k"))
    assert builder.delete("k = 'a'").num_deleted_rows == 1
    assert builder.update("k = 'd'", {"v": "5"}).num_updated_rows == 1
    assert sql("SELECT k, v FROM k ORDER BY k") == [("d   ", 5), ("e   ", 50)]
    with pytest.raises(Exception, match="EXCEED_LIMIT_LENGTH"):
        sql("MERGE INTO k USING (SELECT 'toolong' k, 1 v) s ON k.k = s.k WHEN NOT MATCHED THEN INSERT *")


@pytest.mark.more
@pytest.mark.parametrize("condition", ["", "AND k.v < 2L", "AND NOT k.k <=> NULL"])
def test_a_merge_by_a_varchar_key_may_set_all_columns(sql, condition):
    """A condition that Spark must convert makes it resolve the assignments twice, with a cast between the checks."""
    sql("CREATE TABLE k (k VARCHAR(4) NOT NULL, v INT) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')")
    sql("INSERT INTO k VALUES ('a', 1)")
    merge = f"MERGE INTO k USING (SELECT 'a' k, 2 v) s ON k.k = s.k WHEN MATCHED {condition} THEN UPDATE SET *"
    assert sql(merge) == [(1, 1, 0, 0)]
    assert sql("SELECT * FROM k") == [("a", 2)]


@pytest.mark.more
def test_overwrites_and_partitions_find_both_forms(sql):
    sql("CREATE TABLE t (id INT, p CHAR(3)) PARTITIONED BY (p)")
    both = {"id": [1], "p": ["a"]}
    sql("INSERT INTO t VALUES (0, 'b')")
    for statement in (
        "INSERT OVERWRITE t PARTITION (p = 'a') VALUES (5)",
        "INSERT INTO t REPLACE WHERE p = 'a' VALUES (5, 'a')",
    ):
        store(sql, "t", **both)
        sql(statement)
        assert sql("SELECT id FROM t ORDER BY id") == [(0,), (5,)], statement
    for statement in ("TRUNCATE TABLE t PARTITION (p = 'a')", "ALTER TABLE t DROP PARTITION (p = 'a')"):
        store(sql, "t", **both)
        sql("INSERT INTO t VALUES (2, 'a')")
        assert len(sql("SHOW PARTITIONS t PARTITION (p = 'a')")) == 2
        sql(statement)
        assert sql("SELECT id FROM t") == [(0,)], statement


@pytest.mark.more
def test_streams_and_writes_of_the_format_pad(sql, tmp_path):
    sql("CREATE TABLE t (id INT, ch CHAR(3), s STRUCT<c: CHAR(2)>)")
    frame = sql.spark.sql("SELECT 1 AS id, 'a' AS ch, named_struct('c', 'b') AS s")
    frame.write.format("paimon").mode("append").save(path_of(sql, "t"))
    table = store(sql, "t", id=[2], ch=["a"], s=[{"c": "b"}])
    assert [row["ch"] for row in table.to_arrow().sort_by("id").to_pylist()] == ["a  ", "a"]
    sql("CREATE TABLE copy (id INT, ch CHAR(3), s STRUCT<c: CHAR(2)>)")
    stream = sql.spark.readStream.table("t").where("ch = 'a'")
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    writer.toTable("copy").awaitTermination()
    rows = Table.open(path_of(sql, "copy")).to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": n, "ch": "a  ", "s": {"c": "b "}} for n in (1, 2)]


def test_values_at_every_depth_are_padded():
    kind = parse_type("ROW<a CHAR(2), l ARRAY<CHAR(2)>, m MAP<CHAR(2), STRING>>")
    wide = "\N{LATIN SMALL LETTER U WITH DIAERESIS}"
    rows = [
        {"a": "x", "l": ["y", None], "m": [("k", "v")]},
        None,
        {"a": wide, "l": [], "m": None},
    ]
    type_ = pa.struct([("a", pa.string()), ("l", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.string()))])
    batch = pa.RecordBatch.from_arrays([pa.array(rows, type_)], ["s"])
    padded = padded_batch(batch, [DataField(0, "s", kind)])
    assert padded.schema == batch.schema
    assert padded.slice(1).column(0).to_pylist()[1]["a"] == f"{wide} "
    assert padded.column(0).to_pylist()[:2] == [{"a": "x ", "l": ["y ", None], "m": [("k ", "v")]}, None]
