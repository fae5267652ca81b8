"""DDL: databases, CREATE, REPLACE and ALTER of tables, tables by their path."""

import shutil
import threading
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.base import IllegalArgumentException, UnsupportedOperationException
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

import paimon_spark
from paimon_core import Schema, Table
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type
from paimon_spark.sql.reads.driver_rows import small_read


def described(sql, statement):
    return {row[0]: row[1] for row in sql(statement)}


@pytest.mark.versions
@pytest.mark.more
def test_failed_replacement_changes_nothing(sql):
    sql("CREATE TABLE t PARTITIONED BY (p) AS SELECT 1 AS a, 'x' AS p")
    failing = "AS SELECT CAST(raise_error('boom') AS INT) AS a, 'x' AS p"
    for statement in (
        f"CREATE OR REPLACE TABLE t PARTITIONED BY (p) {failing}",
        f"REPLACE TABLE t PARTITIONED BY (p) {failing}",
        f"CREATE TABLE n PARTITIONED BY (p) {failing}",
    ):
        with pytest.raises(Exception, match="boom"):
            sql(statement)
    assert sql("SELECT * FROM t") == [(1, "x")]
    assert sql("SHOW TABLES") == [(sql.database, "t", False)]
    sql("CREATE OR REPLACE TABLE t PARTITIONED BY (p) TBLPROPERTIES ('primary-key' = 'P,z') AS SELECT 2 AS z, 'y' AS p")
    assert sql("SELECT * FROM t") == [(2, "y")]
    assert sql("SELECT * FROM t VERSION AS OF 1") == [(1, "x")]
    sql("REPLACE TABLE t (q INT, p STRING) PARTITIONED BY (p)")
    assert sql("SELECT * FROM t") == []
    with pytest.raises(IllegalArgumentException, match="drop the table and create it"):
        sql("CREATE OR REPLACE TABLE t (q INT)")
    sql.spark.range(2).write.mode("overwrite").saveAsTable("s")
    sql.spark.range(3).writeTo("s").createOrReplace()
    assert sql("SELECT count(*) FROM s") == [(3,)]


def test_part_of_dropped_table_is_dropped_again(sql):
    sql("CREATE TABLE t AS SELECT 1 AS a")
    path = Path(Table.open(described(sql, "DESCRIBE TABLE EXTENDED t")["Location"]).path)
    shutil.rmtree(path / "schema")  # another engine died during DROP TABLE
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("SELECT * FROM t")
    with pytest.raises(Exception, match=r"files of a dropped table \(snapshot\): drop the table again"):
        sql("CREATE TABLE t (b STRING)")
    sql("DROP TABLE t")
    sql("CREATE TABLE t (b STRING)")
    assert sql("SELECT * FROM t") == []


@pytest.mark.more
def test_databases_have_properties(sql):
    sql("CREATE DATABASE other COMMENT 'c' WITH DBPROPERTIES ('a' = 'b')")
    sql("ALTER DATABASE other SET DBPROPERTIES ('k' = 'v')")
    sql("ALTER DATABASE other UNSET DBPROPERTIES ('a')")
    sql("COMMENT ON DATABASE other IS 'd'")
    description = described(sql, "DESCRIBE DATABASE EXTENDED other")
    assert (description["Comment"], description["Properties"]) == ("d", "((k,v))")
    sql("CREATE TABLE other.t (a INT)")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_EMPTY"):
        sql("DROP DATABASE other")
    sql("DROP DATABASE other CASCADE")
    for statement in ("CREATE DATABASE x LOCATION '/x'", f"ALTER DATABASE {sql.database} SET LOCATION '/x'"):
        with pytest.raises(UnsupportedOperationException, match=r"LOCATION 'file:/x' is not possible"):
            sql(statement)


@pytest.mark.versions
def test_defaults_are_values(sql):
    sql(
        "CREATE TABLE t (id INT, s STRING DEFAULT 'it''s \\\\', n INT DEFAULT 1 + 1, c DECIMAL(10, 2) DEFAULT 1.5, "
        "b BOOLEAN DEFAULT true, d DATE DEFAULT DATE'2020-01-01')"
    )
    sql("INSERT INTO t (id) VALUES (1)")
    sql("ALTER TABLE t ADD COLUMN later INT DEFAULT 7 AFTER id")
    sql("ALTER TABLE t ALTER COLUMN n SET DEFAULT 3 * 3")
    sql("ALTER TABLE t ALTER COLUMN s DROP DEFAULT")
    sql("INSERT INTO t (id) VALUES (2)")
    old, new = sql("SELECT id, later, s, n, c, b, CAST(d AS STRING) FROM t ORDER BY id")
    assert old == (1, None, "it's \\", 2, Decimal("1.50"), True, "2020-01-01")
    assert new == (2, 7, None, 9, Decimal("1.50"), True, "2020-01-01")


def test_replaced_columns_keep_their_rows(sql):
    sql("CREATE TABLE t (a INT, b STRING, c INT, s STRUCT<x: INT>)")
    sql("INSERT INTO t VALUES (1, 'x', 2, named_struct('x', 3))")
    sql("ALTER TABLE t REPLACE COLUMNS (c BIGINT, d INT, A INT COMMENT 'aa', s STRUCT<x: INT>)")
    assert sql("SELECT * FROM t") == [(2, None, 1, (3,))]
    assert sql("DESCRIBE t")[:3] == [("c", "bigint", None), ("d", "int", None), ("A", "int", "aa")]
    sql("ALTER TABLE t ADD COLUMNS (s.y STRING FIRST, z INT COMMENT 'zz')")
    sql("ALTER TABLE t RENAME COLUMN s.y TO w")
    sql("ALTER TABLE t DROP COLUMNS (s.w, z)")
    assert sql("SELECT s FROM t") == [((3,),)]


def stored(sql, name):
    """The schema of a table but for its time."""
    schema = Table.open(described(sql, f"DESCRIBE EXTENDED {name}")["Location"]).schema
    fields = [(f.id, f.name, str(f.type), f.description, f.default) for f in schema.fields]
    return fields, str(schema.fields), schema.primary_keys, schema.partition_keys, dict(schema.options), schema.comment


@pytest.mark.versions
def test_statement_of_show_create_table_creates_same_table(sql):
    sql(r"""CREATE TABLE t (id BIGINT NOT NULL COMMENT 'it''s \\ "x"\n--y', p VARCHAR(7) NOT NULL, `a.b``c ü` CHAR(3),
        s STRUCT<a: INT NOT NULL COMMENT 'c;''d', `b x`: ARRAY<STRUCT<v: VARCHAR(2), c: CHAR(1)>>>,
        ar ARRAY<VARCHAR(4)>, m MAP<INT, STRUCT<d: DATE NOT NULL>>, v STRING DEFAULT 'x''y\\z', i INT DEFAULT -5,
        d DECIMAL(10, 2) DEFAULT 1.5, dt DATE DEFAULT DATE'2020-01-01',
        ts TIMESTAMP, tn TIMESTAMP_NTZ, bi BINARY, b BOOLEAN, ti TINYINT, si SMALLINT,
        f FLOAT, do DOUBLE, va VARIANT, `select` STRING)
        PARTITIONED BY (P) COMMENT 'c''d\\e' TBLPROPERTIES ('primary-key' = 'ID,p', 'bucket' = '2',
        'fields.i.aggregate-function' = 'sum', 'csv.field-delimiter' = '\t''\\', 'merge-engine' = 'aggregation')""")
    before = stored(sql, "t")
    assert sql("SHOW CREATE TABLE pm.`" + sql.database + "`.`t` -- c\n;") == sql("SHOW CREATE TABLE t")
    [(text,)] = sql("SHOW CREATE TABLE t")
    sql("DROP TABLE t")
    sql(text)
    assert (sql("SHOW CREATE TABLE t"), stored(sql, "t")) == ([(text,)], before)
    assert "PARTITIONED BY (p)" in text
    assert "'primary-key' = 'id,p'" in text
    assert "-- column" not in text
    sql("CREATE TABLE l LIKE t")
    assert stored(sql, "l") == before


@pytest.mark.more
def test_primary_key_can_be_unset_without_rows(sql):
    sql("CREATE TABLE t (a INT, b INT) TBLPROPERTIES ('primary-key' = 'a', 'bucket' = '-1')")
    sql("CREATE TABLE u LIKE t")
    sql("ALTER TABLE t UNSET TBLPROPERTIES ('primary-key')")
    assert "primary-key" not in dict(sql("SHOW TBLPROPERTIES t"))
    sql("INSERT INTO u VALUES (1, 1)")
    with pytest.raises(UnsupportedOperationException, match="primary key"):
        sql("ALTER TABLE u UNSET TBLPROPERTIES ('primary-key')")
    assert dict(sql("SHOW TBLPROPERTIES u"))["primary-key"] == "a"


@pytest.mark.more
def test_show_create_table_names_parts_that_sql_cannot_declare(sql, tmp_path):
    types = {"a": "TIMESTAMP(3)", "b": "ARRAY<INT NOT NULL>", "c": "VARBINARY(5)", "d": "INT", "e": "TIMESTAMP_LTZ(9)"}
    fields = [DataField(n, name, parse_type(text)) for n, (name, text) in enumerate(types.items())]
    path = str(tmp_path / "t")
    Table.create(path, Schema(fields))
    [(text,)] = sql(f"SHOW CREATE TABLE pm.`{path}`")
    assert "  a TIMESTAMP_NTZ,\n  b ARRAY<INT>,\n  c BINARY,\n  d INT,\n  e TIMESTAMP_LTZ)" in text
    assert [line.split()[2] for line in text.splitlines() if line.startswith("-- column")] == ["a", "b", "c", "e"]
    assert "-- column a is TIMESTAMP(3), which SQL cannot declare" in text
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("SHOW CREATE TABLE nope")
    with pytest.raises(Exception, match="SERDE"):
        sql(f"SHOW CREATE TABLE pm.`{path}` AS SERDE")


@pytest.mark.more
def test_table_by_its_path(sql, tmp_path):
    sql("CREATE TABLE t (a INT)")
    sql("INSERT INTO t VALUES (1)")
    path = described(sql, "DESCRIBE EXTENDED t")["Location"]
    sql(f"INSERT INTO pm.`{path}` VALUES (2)")
    sql(f"ALTER TABLE pm.`{path}` ADD COLUMN b INT")
    assert sql(f"SELECT * FROM pm.`{path}` ORDER BY a") == [(1, None), (2, None)]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql(f"SELECT * FROM pm.`{tmp_path}/nope`")
    with pytest.raises(UnsupportedOperationException, match="the path of a table"):
        sql(f"CREATE TABLE pm.`{path}x` (a INT)")


KEYS = {
    "(a INT, B INT, p INT, PRIMARY KEY (p, b) NOT ENFORCED) PARTITIONED BY (p)": ("p", "B"),
    "(a INT, B INT, CONSTRAINT k PRIMARY KEY (b, a)) TBLPROPERTIES ('primary-key' = 'b,A')": ("B", "a"),
    "(`a.b` INT PRIMARY KEY NOT ENFORCED, B INT)": ("a.b",),
}


@pytest.mark.parametrize("declaration", KEYS)
def test_primary_key_constraint_is_key_of_table(sql, declaration):
    sql(f"CREATE TABLE k {declaration}")
    sql(f"CREATE OR REPLACE TABLE k {declaration}")
    table = Table.open(described(sql, "DESCRIBE EXTENDED k")["Location"])
    assert table.schema.primary_keys == KEYS[declaration]
    sql(f"INSERT INTO k SELECT {', '.join('1' for _ in table.schema.fields)}")
    sql(f"INSERT INTO k SELECT {', '.join('1' for _ in table.schema.fields)}")
    assert table.to_arrow().num_rows == 1


REFUSED = {
    "CREATE TABLE n (a INT) USING parquet": "'file.format' = 'parquet'",
    "CREATE TABLE n (a INT) STORED AS parquet": "'file.format'",
    "CREATE TABLE n (a INT) LOCATION '/x'": "by its path, pm.`",
    "CREATE TABLE n (a INT PRIMARY KEY, b INT) TBLPROPERTIES ('primary-key' = 'b')": "differ: keep one of them",
    "CREATE TABLE n (a INT UNIQUE)": "checks only NOT NULL constraints",
    "CREATE TABLE n (a INT CHECK (a > 0))": "checks only NOT NULL constraints",
    "CREATE TABLE n (a TIMESTAMP) PARTITIONED BY (days(a))": r"days\(a\) cannot partition",
    "CREATE TABLE n (a INT) CLUSTERED BY (a) INTO 2 BUCKETS": "properties 'bucket'",
    "CREATE TABLE n (a INT) CLUSTER BY (a)": "'clustering.columns'",
    "CREATE TABLE n (a STRING COLLATE UTF8_LCASE)": "COLLATE UTF8_LCASE",
    "CREATE TABLE n (a INTERVAL DAY TO SECOND)": "no type",
    "CREATE TABLE n (a DATE DEFAULT current_date())": "varies, and a Paimon default",
    "CREATE TABLE n (a INT, g INT GENERATED ALWAYS AS (a + 1))": "generated columns",
    "CREATE TABLE n (_KEY_a INT)": "reserved",
    "CREATE TABLE `n$x` (a INT)": "branch or system table",
    "CREATE DATABASE sys": "already exists",
    "ALTER TABLE t SET TBLPROPERTIES ('merge-engine' = 'aggregation')": "'merge-engine' cannot be changed",
    "ALTER TABLE t SET TBLPROPERTIES ('bukcet' = '1')": "unknown option 'bukcet'",
    "ALTER TABLE t SET LOCATION '/x'": "'location' cannot be set",
    "ALTER TABLE t DROP COLUMN p": "'p' cannot be dropped",
    "ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (a)": "create a new table with PRIMARY KEY",
    "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0)": "checks only NOT NULL constraints",
    "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 1)": "checks only NOT NULL constraints",  # a row has 1
    "ALTER TABLE t CLUSTER BY (a)": "'clustering.columns'",
    "SHOW VIEWS": "VIEWS",
}


def test_refused_statements_name_reason(sql):
    sql("CREATE TABLE t (a INT, p INT) PARTITIONED BY (p)")
    sql("INSERT INTO t VALUES (1, 1)")
    kinds = (AnalysisException, IllegalArgumentException, UnsupportedOperationException)
    for statement, message in REFUSED.items():
        with pytest.raises(kinds, match=message):
            sql(statement)
    assert sql("SHOW TABLES") == [(sql.database, "t", False)]


@pytest.mark.more
def test_threads_change_tables_at_same_time(sql):
    sql("CREATE TABLE t (a INT)")
    failed = []

    def work(n):
        try:
            session = sql.spark.newSession()
            session.sql(f"USE pm.{sql.database}")
            session.sql(f"CREATE TABLE t{n} (a INT)")
            session.sql(f"ALTER TABLE t ADD COLUMN c{n} INT")
            session.sql(f"ALTER TABLE t{n} RENAME TO u{n}")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [row[1] for row in sql("SHOW TABLES")] == ["t", "u0", "u1", "u2", "u3"]
    assert sorted(row[0] for row in sql("DESCRIBE t")) == ["a", "c0", "c1", "c2", "c3"]


@pytest.mark.more
def test_second_installation_replaces_first(sql, tmp_path):
    for warehouse in ("one", "two"):
        paimon_spark.catalog(sql.spark, "again", warehouse=str(tmp_path / warehouse))
        sql("CREATE TABLE again.default.t AS SELECT 1 AS a")
    assert (tmp_path / "one" / "default.db" / "t").is_dir()
    assert (tmp_path / "two" / "default.db" / "t").is_dir()
    sql.spark.conf.set("spark.sql.catalog.nowhere", "paimon.python.Catalog")
    with pytest.raises(Exception, match=r"nowhere is not installed in this driver: call paimon_spark.catalog"):
        sql("SELECT * FROM nowhere.d.t")


@pytest.mark.more
def test_arrays_and_maps_of_blobs(sql):
    sql(
        "CREATE TABLE t (k INT, a ARRAY<BINARY> COMMENT '__BLOB_FIELD; pictures', m MAP<STRING, BINARY>) TBLPROPERTIES "
        "('row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true', 'blob-field' = 'm')"
    )
    sql("INSERT INTO t VALUES (1, array(X'01', NULL, X''), map('x', X'02')), (2, NULL, map())")
    assert sql("SELECT * FROM t ORDER BY k") == [(1, [b"\1", None, b""], {"x": b"\2"}), (2, None, {})]
    sql("MERGE INTO t USING (SELECT 2 AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET a = array(X'03')")
    assert sql("SELECT a[0], m['x'] FROM t ORDER BY k") == [(b"\1", b"\2"), (b"\3", None)]
    assert sql("SELECT length(a[0]) > 29 FROM t WITH ('blob-as-descriptor' = 'true')") == [(True,), (True,)]
    with pytest.raises(Exception, match="could no longer be written: option 'blob-as-descriptor'"):
        sql("ALTER TABLE t SET TBLPROPERTIES ('blob-as-descriptor' = 'true')")


ROW_IDS = "'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true'"


@pytest.mark.more
def test_descriptors_and_views_of_blobs(sql):
    """Declared by comments, copied by queries, updated and merged, and read as bytes."""
    sql(f"CREATE TABLE s (k INT, b BINARY COMMENT '__BLOB_FIELD') TBLPROPERTIES ({ROW_IDS})")
    sql("INSERT INTO s VALUES (1, X'0101'), (2, NULL), (3, X'03')")
    sql(f"CREATE TABLE t (k INT, d BINARY COMMENT '__BLOB_DESCRIPTOR_FIELD; shared') TBLPROPERTIES ({ROW_IDS})")
    sql("INSERT INTO t SELECT * FROM s WITH ('blob-as-descriptor' = 'true')")
    assert sql("SELECT * FROM t ORDER BY k") == [(1, b"\1\1"), (2, None), (3, b"\3")]
    assert sql("SELECT k, length(d) FROM t WHERE d IS NOT NULL ORDER BY k") == [(1, 2), (3, 1)]
    sql(
        "MERGE INTO t USING (SELECT k + 1 AS k, b FROM s WITH ('blob-as-descriptor' = 'true') WHERE k = 1) n "
        "ON t.k = n.k WHEN MATCHED THEN UPDATE SET d = n.b"
    )
    assert sql("SELECT d FROM t ORDER BY k") == [(b"\1\1",), (b"\1\1",), (b"\3",)]
    with pytest.raises(Exception, match="no blob descriptor"):
        sql("INSERT INTO t VALUES (4, X'04')")
    sql(f"CREATE TABLE v (k INT, b BINARY COMMENT '__BLOB_VIEW_FIELD') TBLPROPERTIES ({ROW_IDS})")
    name = f"{sql.database}.s".encode()
    head = "0157454956424F4C42" + len(name).to_bytes(4, "little").hex() + name.hex() + "01000000"
    sql(f"INSERT INTO v VALUES (0, X'{head}0200000000000000'), (1, X'{head}0100000000000000')")
    sql("INSERT INTO v SELECT k, sys.blob_view('s', 'b', _ROW_ID) FROM s WHERE k < 3")
    assert sql("SELECT k, b FROM v ORDER BY k, b") == [(0, b"\3"), (1, None), (1, b"\1\1"), (2, None)]
    assert sql("SELECT hex(sys.blob_view('s', 'b', 2L))") == [((head + "0200000000000000").upper(),)]


@pytest.mark.more
def test_blobs_under_a_primary_key(sql):
    sql(
        "CREATE TABLE t (k INT NOT NULL, n INT, b BINARY COMMENT '__BLOB_FIELD', a ARRAY<BINARY>) TBLPROPERTIES "
        "('primary-key' = 'k', 'bucket' = '1', 'blob-field' = 'a')"
    )
    sql("INSERT INTO t VALUES (1, 1, X'01', array(X'11', NULL)), (2, 2, NULL, NULL), (3, 3, X'03', array())")
    sql("UPDATE t SET b = X'0202' WHERE k = 2")
    sql("MERGE INTO t USING (SELECT 1 AS k) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET n = 10")
    sql("DELETE FROM t WHERE k = 3")
    expected = [(1, 10, b"\1", [b"\x11", None]), (2, 2, b"\2\2", None)]
    assert sql("SELECT * FROM t ORDER BY k") == expected
    sql("CALL sys.compact(table => 't', compact_strategy => 'full')")
    assert sql("SELECT * FROM t ORDER BY k") == expected
    assert sql("SELECT rowkind, k, b FROM `t$audit_log` WHERE k = 2") == [("+U", 2, b"\2\2")]


def test_driver_reads_no_blobs_of_unknown_size(tmp_path):
    """The size of a split does not count blobs that its rows only describe."""
    schema = Schema(pa.schema([("k", pa.int32()), ("b", pa.binary())]), primary_keys=["k"], options={"blob-field": "b"})
    table = Table.create(str(tmp_path / "t"), schema)
    table.write(pa.table({"k": pa.array([1], pa.int32()), "b": [b"x"]}))
    columns = StructType([StructField("k", IntegerType()), StructField("b", BinaryType())])
    splits = table.scan().plan().splits
    assert small_read(table.schema, splits, columns, None) is None
    assert small_read(table.schema, splits, StructType(columns[:1]), None) == "1 rows of 1 files"
