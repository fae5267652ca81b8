"""Statements on partitions, TRUNCATE, overwrites of partitions, and streams by name."""

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest

from paimon_core import Table
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from paimon_core.store.layout import partition_text
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

DAY = date(2024, 1, 1)


@pytest.fixture
def table(sql):
    sql("CREATE TABLE t (id BIGINT, p INT, d DATE) PARTITIONED BY (p, d)")
    sql("INSERT INTO t VALUES (1, 1, DATE'2024-01-01'), (2, 1, NULL), (3, 2, DATE'2024-01-01')")
    return "t"


@pytest.mark.versions
def test_partitions_are_listed_dropped_and_truncated(sql, table):
    assert sql("SHOW PARTITIONS t") == [("p=1/d=2024-01-01",), ("p=1/d=null",), ("p=2/d=2024-01-01",)]
    assert sql("SHOW PARTITIONS t PARTITION (p = 1)") == [("p=1/d=2024-01-01",), ("p=1/d=null",)]
    sql("ALTER TABLE t DROP PARTITION (p = 2, d = '2024-01-01')")
    sql("ALTER TABLE t ADD IF NOT EXISTS PARTITION (p = 1, d = '2024-01-01')")
    with pytest.raises(Exception, match=r"ADD PARTITION is not possible for .*INSERT the rows"):
        sql("ALTER TABLE t ADD IF NOT EXISTS PARTITION (p = 9, d = '2024-01-01')")
    sql("TRUNCATE TABLE t PARTITION (p = 1, d = '2024-01-01')")
    assert sql("SELECT * FROM t") == [(2, 1, None)]
    sql("TRUNCATE TABLE t")
    assert sql("SELECT * FROM t") == []
    assert sql("SHOW PARTITIONS t") == []


TYPES = {
    "BOOLEAN": "true",
    "TINYINT": "7Y",
    "SMALLINT": "-7S",
    "BIGINT": "12345678901L",
    "FLOAT": "1.5F",
    "DOUBLE": "-2.5D",
    "DECIMAL(10, 2)": "1.50BD",
    "STRING": "'a/b=c'",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ'2024-01-01 01:02:03.5'",
    "TIMESTAMP": "TIMESTAMP'2024-01-01 01:02:03.000005'",
}


@pytest.mark.more
def test_partitions_of_every_type_are_dropped(sql):
    names = [f"p{number}" for number in range(len(TYPES))]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, TYPES, strict=True))
    sql(f"CREATE TABLE t (id BIGINT, {columns}) PARTITIONED BY ({', '.join(names)})")
    sql(f"INSERT INTO t VALUES (1, {', '.join(TYPES.values())}), (2{', NULL' * len(TYPES)})")
    assert len(sql("SHOW PARTITIONS t")) == 2
    partition = ", ".join(f"{name} = {value}" for name, value in zip(names, TYPES.values(), strict=True))
    sql(f"ALTER TABLE t DROP PARTITION ({partition})")
    assert sql("SELECT id FROM t") == [(2,)]


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=() if k in ("TINYINT", "DECIMAL(10, 2)") else pytest.mark.more) for k in TYPES]
)
def test_partitions_are_dropped_by_one_column_of_every_type(sql, kind):
    literal = TYPES[kind]
    sql(f"CREATE TABLE t (id BIGINT, p {kind}, q INT) PARTITIONED BY (p, q)")
    sql(f"INSERT INTO t VALUES (1, {literal}, 1), (2, {literal}, 2), (3, NULL, 1)")
    sql(f"ALTER TABLE t DROP PARTITION (p = {literal})")
    assert sql("SELECT id FROM t") == [(3,)]


@pytest.mark.more
def test_literals_mean_the_same_texts_for_one_column_and_for_all(sql):
    literals = ["3D", "1.50BD", "007", "-0", "100000000D", "1.10F", "DATE'2024-1-2'", "true", "'007'"]
    sql("CREATE TABLE t (id INT, p STRING, q INT) PARTITIONED BY (p, q)")
    for literal in literals:
        sql("DELETE FROM t")
        sql(f"INSERT INTO t SELECT 1, CAST({literal} AS STRING), n FROM VALUES (1), (2) AS v(n)")
        sql("INSERT INTO t VALUES (2, '3', 1), (2, '7', 2), (2, '1.5', 1)")
        sql(f"ALTER TABLE t DROP PARTITION (p = {literal}, q = 1)")
        assert sql("SELECT count(*) FROM t WHERE id = 1") == [(1,)], literal
        sql(f"ALTER TABLE t DROP PARTITION (p = {literal})")
        assert sql("SELECT count(*) FROM t WHERE id = 1") == [(0,)], literal


@pytest.mark.parametrize("literal", ["TIMESTAMP'2026-10-25 01:30:00.5'", "'2026-10-25 01:30:00.5'"])
def test_instants_in_partitions_have_the_zone_of_the_session(sql, literal):
    sql.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        sql("CREATE TABLE t (id BIGINT, p TIMESTAMP, q INT) PARTITIONED BY (p, q)")
        sql("INSERT INTO t VALUES (1, TIMESTAMP'2026-10-25 01:30:00.5', 1), (2, TIMESTAMP'2026-10-25 05:30:00.5Z', 2)")
        sql("INSERT INTO t VALUES (3, TIMESTAMP'2026-10-25 01:30:00.5Z', 1)")
        sql(f"ALTER TABLE t DROP PARTITION (p = {literal})")
        assert sql("SELECT id FROM t") == [(3,)]
    finally:
        sql.spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.more
@pytest.mark.parametrize("literal", ["300Y", "-129Y", "1.5L", "3Y.5", "40000S", "9223372036854775808L"])
def test_numbers_outside_their_types_name_no_partition(sql, literal):
    sql("CREATE TABLE t (id BIGINT, p DECIMAL(30, 5), q INT) PARTITIONED BY (p, q)")
    with pytest.raises(
        Exception, match=r"PARSE_SYNTAX_ERROR|INVALID_NUMERIC_LITERAL_RANGE|[Pp]artition spec is invalid"
    ):
        sql(f"ALTER TABLE t DROP IF EXISTS PARTITION (p = {literal})")


DOUBLE = [0.0, -0.0, 0.1, 1e300, 5e-324, math.inf, -math.inf, math.nan, None]
VALUES = {
    "FLOAT": [0.0, -0.0, 0.1, 1e30, math.inf, -math.inf, math.nan, None],
    "DOUBLE": DOUBLE,
    "DECIMAL(38, 10)": [Decimal("0.0000000000"), Decimal("1.2300000000"), None],
    "STRING": ["null", None, "__DEFAULT_PARTITION__", "", " ", "a,b", "a;b", "a=b", "a/b", "it's", "%"],
    "BYTES": [b"", b"\x00ab", None],
    "DATE": [date(1, 1, 1), date(9999, 12, 31), None],
    "TIMESTAMP(3)": [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999000), None],
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": [
        datetime(1, 1, 1, tzinfo=timezone.utc), datetime(9999, 12, 31, 23, 59, 59, 999999, timezone.utc), None,
    ],
}  # fmt: skip


def by_value(sql, kind, values):
    """A table `t` with one row in each partition `p`."""
    fields = [DataField(0, "id", parse_type("INT")), DataField(1, "p", parse_type(kind))]
    location = sql.spark.sql(f"DESCRIBE DATABASE {sql.database}").where("info_name = 'Location'").collect()[0][1]
    schema = Schema(fields, [], ["p"], {"bucket": "-1", "partition.legacy-name": "false"})
    table = Table.create(f"{location}/t", schema)
    table.write(pa.table({"id": pa.array(range(len(values)), pa.int32()), "p": values}, arrow_schema(fields)))
    return table


def literals_of(sql, kind, values):
    """A literal for each row of SHOW PARTITIONS, with the value that it means."""
    rows = [unquote(row.removeprefix("p=")) for (row,) in sql("SHOW PARTITIONS t")]
    assert len(rows) == len(values)
    if kind == "BYTES":  # Spark prints bytes as other texts
        return [("NULL" if value is None else f"X'{value.hex()}'", value) for value in values]
    field = DataField(1, "p", parse_type(kind))
    by_text = {}
    for value in values:
        by_text.setdefault("null" if value is None else spark_text(kind, value, field), []).append(value)
    means = [by_text[row].pop(0) for row in rows]
    quoted = [row.replace("\\", "\\\\").replace("'", "\\'") for row in rows]
    return [("NULL" if value is None else f"'{text}'", value) for text, value in zip(quoted, means, strict=True)]


def spark_text(kind, value, field):
    if kind in ("FLOAT", "DOUBLE"):
        return partition_text(value, field, legacy=False)
    if kind.startswith("TIMESTAMP"):
        return value.replace(tzinfo=None).isoformat(sep=" ").removesuffix("000")
    return format(value, "f") if isinstance(value, Decimal) else str(value)


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=() if k in ("DOUBLE", "STRING") else pytest.mark.more) for k in VALUES]
)
def test_each_row_of_show_partitions_names_one_partition(sql, kind):
    values = VALUES[kind]
    table = by_value(sql, kind, values)
    literals = literals_of(sql, kind, values)
    stored = table.to_arrow().schema.field("p").type
    remaining = [repr(value) for value in table.to_arrow()["p"].to_pylist()]
    for literal, value in literals:
        sql(f"ALTER TABLE t DROP PARTITION (p = {literal})")
        left = [repr(value) for value in table.to_arrow()["p"].to_pylist()]
        assert sorted([*left, repr(pa.array([value], stored)[0].as_py())]) == sorted(remaining), literal
        remaining = left
    assert sql("SHOW PARTITIONS t") == []


@pytest.mark.more
def test_partitions_that_statements_cannot_tell_apart_are_refused(sql):
    table = by_value(sql, "BYTES", [b"\xff", "\N{REPLACEMENT CHARACTER}".encode()])
    with pytest.raises(Exception, match=r"not UTF-8.*X'"):
        sql("ALTER TABLE t DROP PARTITION (p = X'ff')")
    assert table.to_arrow().num_rows == 2
    sql("DROP TABLE t")
    table = by_value(sql, "TIMESTAMP(9)", pa.array([1001, 1002, 2000]).view(pa.timestamp("ns")))
    assert len(sql("SHOW PARTITIONS t")) == 3
    with pytest.raises(Exception, match=r"2 partitions of .*microseconds"):
        sql("ALTER TABLE t DROP PARTITION (p = '1970-01-01 00:00:00.000001')")
    sql("ALTER TABLE t DROP PARTITION (p = '1970-01-01 00:00:00.000002')")
    assert table.to_arrow()["id"].to_pylist() == [0, 1]


@pytest.mark.versions
def test_dynamic_overwrites_replace_only_partitions_with_rows(sql, table):
    sql("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    try:
        sql("INSERT OVERWRITE t VALUES (9, 2, DATE'2024-01-01')")
        assert sql("SELECT * FROM t ORDER BY id") == [(1, 1, DAY), (2, 1, None), (9, 2, DAY)]
        sql("INSERT OVERWRITE t PARTITION (p = 1, d) SELECT 8, DATE'2024-01-01'")
        assert sql("SELECT * FROM t ORDER BY id") == [(2, 1, None), (8, 1, DAY), (9, 2, DAY)]
        sql("INSERT OVERWRITE t SELECT * FROM t WHERE false")
        assert len(sql("SELECT * FROM t")) == 3
    finally:
        sql("RESET spark.sql.sources.partitionOverwriteMode")


@pytest.mark.more
def test_dynamic_overwrite_has_one_task_for_bucket(sql, monkeypatch):
    sql("""CREATE TABLE t (id INT NOT NULL, p INT NOT NULL) PARTITIONED BY (p)
        TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '2', 'write-only' = 'true')""")
    sql("INSERT INTO t VALUES (1, 0), (1, 1), (1, 2)")
    monkeypatch.setattr("paimon_spark.frame_write.FEW_ROWS", 0)
    rows = sql.spark.range(0, 300, numPartitions=3).selectExpr("CAST(id AS INT) AS id", "CAST(id % 2 AS INT) AS p")
    sql("CACHE TABLE t")
    rows.writeTo("t").overwritePartitions()
    assert sql("SELECT p, count(*) FROM t GROUP BY p ORDER BY p") == [(0, 150), (1, 150), (2, 1)]
    sql("UNCACHE TABLE t")
    table = Table.open(dict(row[:2] for row in sql("DESCRIBE EXTENDED t"))["Location"])
    files = live_entries(table.store, table.snapshot(), with_stats=False).live
    assert sorted(entry.bucket for entry in files if entry.file.row_count > 1) == [0, 0, 1, 1]
    rows.selectExpr("id", "IF(id = 7, NULL, p) AS p").createOrReplaceTempView("with_null")
    sql("SET spark.sql.sources.partitionOverwriteMode = dynamic")
    try:
        plan = sql("EXPLAIN INSERT OVERWRITE t SELECT * FROM with_null")[0][0]
        assert "Paimon INSERT OVERWRITE" in plan
        with pytest.raises(Exception, match="NULL"):
            sql("INSERT OVERWRITE t SELECT * FROM with_null")
        with pytest.raises(Exception, match="did you mean 'write-buffer-size'"):
            sql("INSERT OVERWRITE t WITH ('write-bufer-size' = '1') SELECT 1, 1")
    finally:
        sql("RESET spark.sql.sources.partitionOverwriteMode")
    assert table.snapshot().id == 2


def test_static_overwrite_replaces_partition_or_table(sql, table):
    sql("INSERT OVERWRITE t PARTITION (p = 1) SELECT 8, DATE'2024-01-01'")
    assert sql("SELECT * FROM t ORDER BY id") == [(3, 2, DAY), (8, 1, DAY)]
    sql("INSERT OVERWRITE t SELECT * FROM t WHERE false")
    assert sql("SELECT * FROM t") == []


@pytest.mark.versions
def test_table_like_another_has_its_columns_partitions_and_properties(sql):
    if sql.spark.version < "4.3":
        pytest.skip("Spark asks a catalog for CREATE TABLE LIKE since 4.3")
    bucket = "TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'id')"
    sql(f"CREATE TABLE t (id BIGINT NOT NULL, p INT) PARTITIONED BY (p) {bucket}")
    sql("CREATE TABLE u LIKE t TBLPROPERTIES ('bucket' = '3')")
    assert sql("DESCRIBE u") == sql("DESCRIBE t")
    assert dict(sql("SHOW TBLPROPERTIES u")) == {"bucket": "3", "bucket-key": "id"}


@pytest.mark.more
def test_streams_by_name(sql, table, tmp_path):
    sql("CREATE TABLE u (id BIGINT, p INT, d DATE)")

    def run():
        rows = sql.spark.readStream.table(f"pm.{sql.database}.t").writeStream.trigger(availableNow=True)
        query = rows.option("checkpointLocation", str(tmp_path)).toTable(f"pm.{sql.database}.u")
        query.awaitTermination()

    run()
    sql("INSERT INTO t VALUES (4, 1, NULL)")
    run()
    run()
    assert sql("SELECT id FROM u ORDER BY id") == [(1,), (2,), (3,), (4,)]


def test_transforms_are_refused_by_name(sql):
    with pytest.raises(Exception, match=r"days\(ts\) cannot partition a Paimon table"):
        sql("CREATE TABLE t (id INT, ts TIMESTAMP) PARTITIONED BY (days(ts))")


def test_partition_is_described_with_rows_bytes_and_files(sql, table):
    sql("INSERT INTO t VALUES (4, 1, DATE'2024-01-01'), (5, 1, DATE'2024-01-01')")
    size = sql("SELECT file_size_in_bytes FROM `t$partitions` WHERE partition = 'p=1/d=2024-01-01'")[0][0]
    described = {row[0]: row[1] for row in sql("DESCRIBE EXTENDED t PARTITION (p = 1, d = '2024-01-01')")}
    assert (described["recordCount"], described["fileCount"]) == ("3", "2")
    assert described["fileSizeInBytes"] == str(size)
    shown = sql("SHOW TABLE EXTENDED LIKE 't' PARTITION (p = 1, d = '2024-01-01')")[0][3]
    assert f"Partition Parameters: {{recordCount: 3, fileSizeInBytes: {size}, fileCount: 2}}" in shown


@pytest.mark.versions
def test_tables_are_described_with_rows_bytes_and_files(sql, table):
    size = sql("SELECT sum(file_size_in_bytes) FROM `t$files`")[0][0]
    sql("CREATE TABLE `it's ``odd``, Ü` (id INT COMMENT 'Schema: root') "
        "TBLPROPERTIES ('bucket' = '1', 'bucket-key' = 'id', 'note' = 'a,b')")  # fmt: skip
    sql("CREATE TABLE other (id INT)")
    sql.spark.sql("SELECT 1").createOrReplaceTempView("of_session")
    sql.spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    try:
        shown = sql(f'SHOW TABLE EXTENDED FROM `{sql.database}` LIKE "t|IT\'S*|of_*"')
    finally:
        sql.spark.conf.unset("spark.sql.parser.escapedStringLiterals")
        sql.spark.catalog.dropTempView("of_session")
    information = {row[1]: row[3] for row in shown}
    assert sorted(information) == ["it's `odd`, Ü", "of_session", "t"]
    assert f"\nStatistics: {size} bytes, 3 rows, 3 files\nSchema: root\n" in information["t"]
    assert "\nStatistics: 0 bytes, 0 rows, 0 files\nSchema: root\n" in information["it's `odd`, Ü"]
    assert "\nTable Properties: [bucket=1, bucket-key=id, note=a,b]\n" in information["it's `odd`, Ü"]
    assert "Statistics" not in information["of_session"]
    assert sql("SHOW TABLE EXTENDED LIKE 'none'") == []
    with pytest.raises(Exception, match="SCHEMA_NOT_FOUND"):
        sql("SHOW TABLE EXTENDED IN nope LIKE '*'")


@pytest.mark.more
def test_rows_in_several_files_are_counted_and_dropped_unread(sql):
    """In a table with data evolution and without deletion vectors, whose single rows cannot be deleted."""
    sql(
        "CREATE TABLE t (id INT, v STRING, p STRING) PARTITIONED BY (p) "
        "TBLPROPERTIES ('row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true')"
    )
    sql("INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'x'), (3, 'c', 'y')")
    sql("UPDATE t SET v = 'new' WHERE id <> 2")
    table = Table.open(dict(row[:2] for row in sql("DESCRIBE EXTENDED t"))["Location"])
    for path in Path(table.path).rglob("data-*"):
        path.write_bytes(b"unreadable")
    assert sql("SELECT count(*) FROM t") == [(3,)]
    assert sql("SELECT p, count(*) FROM t GROUP BY p ORDER BY p") == [("x", 2), ("y", 1)]
    assert sql("SELECT count(*) FROM t VERSION AS OF 1 WHERE p = 'x'") == [(2,)]
    assert sql.spark.read.format("paimon").load(table.path).where("p = 'y'").count() == 1
    assert sql("DELETE FROM t WHERE p = 'x'") == [(2,)]
    assert (table.snapshot().commit_kind, table.snapshot().operation) == ("OVERWRITE", "DELETE")
    assert sql("DELETE FROM t WHERE p = 'y'") == [(1,)]
    assert sql("SELECT count(*) FROM t") == [(0,)]


FAR_VALUES = {
    "DATE": ["DATE'-0044-03-15'", "DATE'+12020-01-01'"],
    "TIMESTAMP": ["TIMESTAMP'-0044-03-15 12:00:00.000001'", "TIMESTAMP'+12020-03-15 12:00:00.000001'"],
    "TIMESTAMP_NTZ": ["TIMESTAMP_NTZ'-0044-03-15 12:00:00.000001'", "TIMESTAMP_NTZ'+12020-03-15 12:00:00.000001'"],
}
"""By type, values that a Python date or datetime cannot hold."""


@pytest.mark.more
@pytest.mark.versions
@pytest.mark.parametrize("kind", FAR_VALUES)
def test_partitions_of_years_that_python_does_not_have_are_dropped_unread(sql, kind):
    """In a table whose single rows cannot be deleted."""
    old, far = FAR_VALUES[kind]
    sql(
        f"CREATE TABLE t (id INT NOT NULL, p {kind} NOT NULL) PARTITIONED BY (p) "
        "TBLPROPERTIES ('primary-key' = 'p,id', 'bucket' = '1', 'merge-engine' = 'aggregation')"
    )
    near = f"CAST('2020-01-01' AS {kind})"
    sql(f"INSERT INTO t VALUES (1, {old}), (2, {near}), (3, {far}), (4, {near})")
    for condition in (f"p = {old}", f"p >= {far} OR p = {old}", f"p NOT IN ({far}, {near})"):
        assert sql(f"SELECT id FROM t WHERE {condition} ORDER BY id") == sql(
            f"SELECT id FROM (SELECT id, max(p) AS p FROM t GROUP BY id) WHERE {condition} ORDER BY id"
        )
    sql(f"DELETE FROM t WHERE p > {far}")
    sql(f"DELETE FROM t WHERE p < {old}")
    assert sql("SELECT count(*) FROM t") == [(4,)]
    sql(f"DELETE FROM t WHERE p = {far}")
    assert sql("SELECT id FROM t ORDER BY id") == [(1,), (2,), (4,)]
    sql(f"DELETE FROM t WHERE p <= {old}")
    assert sql("SELECT id FROM t ORDER BY id") == [(2,), (4,)]


@pytest.mark.more
@pytest.mark.parametrize("kind", FAR_VALUES)
def test_partitions_of_years_that_python_does_not_have_are_dropped_by_one_column(sql, kind):
    old, far = FAR_VALUES[kind]
    sql(f"CREATE TABLE t (id INT, p {kind}, q INT) PARTITIONED BY (p, q)")
    sql.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        sql(f"INSERT INTO t VALUES (1, {old}, 1), (2, {far}, 1), (3, {far}, 2), (4, {far}, 3)")
        sql(f"ALTER TABLE t DROP PARTITION (p = {old})")
        assert sql("SELECT id FROM t ORDER BY id") == [(2,), (3,), (4,)]
        sql(f"ALTER TABLE t DROP PARTITION (p = {far}, q = 2)")
        sql(f"INSERT INTO t VALUES (5, {old}, 1)")
        text = old.removeprefix(kind)
        sql(f"ALTER TABLE t DROP PARTITION (p = {text}), PARTITION (p = {far}, q = 3)")
        assert sql("SELECT id FROM t ORDER BY id") == [(2,)]
        sql(f"TRUNCATE TABLE t PARTITION (p = {far})")
        assert sql("SELECT count(*) FROM t") == [(0,)]
    finally:
        sql.spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.more
def test_a_comparison_with_a_far_day_skips_files(sql):
    sql("CREATE TABLE t (id INT, a TIMESTAMP_NTZ, b TIMESTAMP_NTZ)")
    values = {1: "-0044-03-15 12:00:00", 2: "2020-01-01 00:00:00", 3: "+12020-03-15 12:00:00"}
    for number, value in values.items():
        sql(f"INSERT INTO t VALUES ({number}, TIMESTAMP_NTZ'{value}', TIMESTAMP_NTZ'{value}')")
    found = {
        "CAST(a AS DATE) = DATE'-0044-03-15'": 1,
        "CAST(a AS DATE) > DATE'9999-12-31'": 3,
        "CAST(a AS DATE) >= DATE'+12020-03-15'": 3,
        "a <= TIMESTAMP_NTZ'-0044-03-15 12:00:00'": 1,
        "a <=> TIMESTAMP_NTZ'+12020-03-15 12:00:00'": 3,
    }
    for condition, number in found.items():
        assert sql(f"SELECT id FROM t WHERE {condition}") == [(number,)], condition
        assert "1 of 3 Parquet files" in sql(f"EXPLAIN SELECT id FROM t WHERE {condition}")[0][0], condition


@pytest.mark.versions
def test_several_partitions_change_in_one_commit(sql):
    sql("CREATE TABLE t (id INT, p STRING, q INT) PARTITIONED BY (p, q)")
    rows = [(n, f"p{n % 3}", n % 2) for n in range(12)]
    sql("INSERT INTO t VALUES " + ", ".join(f"({n}, '{p}', {q})" for n, p, q in rows) + ", (12, NULL, 1)")
    table = Table.open(dict(row[:2] for row in sql("DESCRIBE EXTENDED t"))["Location"])
    steps = {
        "TRUNCATE TABLE t PARTITION (p = 'p0')": lambda _, p, __: p == "p0",
        "TRUNCATE TABLE t PARTITION (p = 'p0', q = 1)": lambda *_: False,
        "ALTER TABLE t DROP PARTITION (p = 'p1', q = 0), PARTITION (p = 'p2', q = 1)": (
            lambda _, p, q: (p, q) in (("p1", 0), ("p2", 1))
        ),
        "ALTER TABLE t DROP IF EXISTS PARTITION (p = 'p1', q = 0), PARTITION (p = NULL, q = 1)": lambda n, p, q: (
            n == 12
        ),
        "TRUNCATE TABLE t PARTITION (q = 7)": lambda *_: False,
        "TRUNCATE TABLE t PARTITION (q = 1)": lambda _, __, q: q == 1,
    }
    rows.append((12, None, 1))
    for statement, removed in steps.items():
        before, left = table.snapshot().id, [row for row in rows if not removed(*row)]
        sql(statement)
        assert sorted(sql("SELECT * FROM t")) == sorted(left, key=lambda row: row[0]), statement
        assert table.snapshot().id - before == (left != rows), statement
        rows = left
    assert rows == [(n, p, q) for n, p, q in rows if (p, q) == ("p2", 0)] != []


@pytest.mark.more
def test_no_partition_is_dropped_if_one_of_several_does_not_exist(sql):
    sql("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    with pytest.raises(Exception, match="PARTITIONS_NOT_FOUND"):
        sql("ALTER TABLE t DROP PARTITION (p = 'a'), PARTITION (p = 'c')")
    assert sorted(sql("SELECT * FROM t")) == [(1, "a"), (2, "b")]
    with pytest.raises(Exception, match="a partition exists while it has rows"):
        sql("ALTER TABLE t ADD PARTITION (p = 'x') PARTITION (p = 'y')")
