"""The native path: Spark's own Parquet scan returns the rows that the engine returns, or the engine reads."""

import random
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema
from paimon_core.scan import table_scan
from paimon_core.table import Table
from paimon_spark import PaimonTable, internals
from paimon_spark.sql.reads import driver_rows, live_rows, native, source, strategy
from paimon_spark.sql.session_options import MASK_MEMORY, NATIVE_READS
from tests.golden.reading import CASES as GOLDEN
from tests.golden.reading import NAMES


def way(sql, query):
    """The reader of a scan, from its description in the plan."""
    plan = sql(f"EXPLAIN {query}")[0][0]
    ways = [plan.partition(f", {way}: ")[2] for way in ("native", "through Python", "in the driver")]
    assert sum(map(bool, ways)) == 1, plan
    if ways[0]:
        return "native"
    return (ways[1] or ways[2].partition("; ")[2]).split(" RuntimeFilters")[0]


@pytest.fixture
def tasks_merge(monkeypatch):
    """Files that are merged have no masks."""
    for module in (strategy, live_rows):
        monkeypatch.setattr(module, "unsuitable_merge", lambda *_: "tasks merge")


def both(sql, query):
    """The rows of a query, which are the same on both ways."""
    native = sql(query)
    sql(f"SET {NATIVE_READS} = false")
    try:
        assert way(sql, query) == f"{NATIVE_READS} is off"
        general = sql(query)
    finally:
        sql(f"RESET {NATIVE_READS}")
    assert sorted(map(repr, native)) == sorted(map(repr, general))
    return native


TYPES = {
    "b": ("BOOLEAN", "true"),
    "i1": ("TINYINT", "-7Y"),
    "i2": ("SMALLINT", "300S"),
    "i4": ("INT", "-70000"),
    "i8": ("BIGINT", "12345678901L"),
    "f4": ("FLOAT", "float('NaN')"),
    "f8": ("DOUBLE", "-0.0D"),
    "d1": ("DECIMAL(5, 2)", "1.50BD"),
    "d2": ("DECIMAL(18, 4)", "-12345678901234.5678BD"),
    "d3": ("DECIMAL(38, 10)", "1234567890123456789012345678.0123456789BD"),
    "s": ("STRING", "'ä\\n\\u0001'"),
    "vc": ("VARCHAR(5)", "'abc'"),
    "ch": ("CHAR(5)", "'ab'"),
    "bin": ("BINARY", "X'00FF'"),
    "day": ("DATE", "DATE'0001-01-03'"),
    "ts": ("TIMESTAMP", "TIMESTAMP'1500-01-02 03:04:05.678901'"),
    "ntz": ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"),
    "arr": ("ARRAY<STRING>", "array('a', NULL)"),
    "m": ("MAP<STRING, ARRAY<INT>>", "map('k', array(1, NULL))"),
    "st": ("STRUCT<x: INT, y: STRUCT<z: STRING>>", "named_struct('x', 1, 'y', named_struct('z', 'q'))"),
}


@pytest.mark.versions
def test_every_type_reads_same_values_natively(sql):
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    sql(f"CREATE TABLE t (id INT, {columns})")
    sql(f"INSERT INTO t VALUES (1, {', '.join(value for _, value in TYPES.values())}), (2{', NULL' * len(TYPES)})")
    assert way(sql, "SELECT * FROM t") == "native"
    both(sql, "SELECT * FROM t")
    both(sql, "SELECT st.y.z, m['k'], id FROM t WHERE i4 < 0 AND day < DATE'2000-01-01' AND s LIKE 'ä%'")
    both(sql, "SELECT id FROM t WHERE ts = TIMESTAMP'1500-01-02 03:04:05.678901' OR f8 = 0.0 OR d2 IS NULL")
    for condition in ("f4 = float('NaN')", "ch = 'ab'", "f8 = 0.0D", "f8 >= 0.0D", "f8 IN (0.0D, 1.0D)"):
        assert both(sql, f"SELECT id FROM t WHERE {condition}") == [(1,)], condition


@pytest.mark.more
@pytest.mark.usefixtures("tasks_merge")
def test_driver_reads_few_rows_that_are_merged(sql, monkeypatch):
    """Every type; and one row more than the driver takes."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    values = ", ".join(value for _, value in TYPES.values())
    sql(
        f"CREATE TABLE t (id INT NOT NULL, p STRING NOT NULL, {columns}) PARTITIONED BY (p) "
        "TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '2', 'write-only' = 'true')"
    )
    for first in (1, 2):
        sql(f"INSERT INTO t VALUES ({first}, 'a', {values}), (3, 'b'{', NULL' * len(TYPES)}), (2, 'c', {values})")
    plan = sql("EXPLAIN SELECT * FROM t")[0][0]
    assert "in the driver: 6 rows of 6 files; 2 files of bucket " in plan, plan
    assert len(both(sql, "SELECT * FROM t")) == 4
    for query in (
        "SELECT count(*) FROM t",
        "SELECT st.y.z, m['k'], id FROM t WHERE i4 < 0 AND s LIKE 'ä%' ORDER BY id, p",
        "SELECT id, ts, ntz, day FROM t WHERE p IN ('a', 'b') AND (d2 IS NULL OR ts < now())",
        "SELECT id, p FROM t VERSION AS OF 1 ORDER BY id DESC LIMIT 2",
        "SELECT a.id, b.f8 FROM t a JOIN t b ON a.id = b.id AND a.p = b.p WHERE b.bin = X'00FF'",
        "SELECT id FROM t WHERE p = (SELECT max(p) FROM t)",
        "SELECT id, __paimon_bucket FROM t WHERE __paimon_bucket = 0",
    ):
        assert both(sql, query), query
    assert both(sql, "SELECT * FROM t WHERE id > 7") == []
    table = PaimonTable.forName(sql.spark, f"pm.{sql.database}.t")
    assert "in the driver: 6 rows" in str(table.explain())
    assert table.toDF().count() == 4
    monkeypatch.setattr(driver_rows, "MOST_ROWS", 2)
    keys = "SELECT * FROM t WHERE id IN (2, 3, 7) AND p IN ('b', 'c')"
    assert "in the driver: the rows of 6 keys in 4 files; " in sql(f"EXPLAIN {keys}")[0][0]
    assert len(both(sql, keys)) == 2
    assert "through Python: " in sql("EXPLAIN SELECT * FROM t WHERE id = 2 AND p > ''")[0][0]
    monkeypatch.setattr(driver_rows, "MOST_ROWS", 1)
    between = "SELECT * FROM t WHERE id > 1 AND id <= 102 AND p = 'b'"
    assert "through Python: " in sql(f"EXPLAIN {between}")[0][0]
    between = between.replace("102", "101")
    assert "in the driver: the rows of 100 keys in " in sql(f"EXPLAIN {between}")[0][0]
    assert len(both(sql, between)) == 1
    monkeypatch.setattr(driver_rows, "MOST_FILES", 3)
    assert "through Python: " in sql(f"EXPLAIN {keys}")[0][0]
    assert "through Python: 2 files of bucket " in sql("EXPLAIN SELECT * FROM t")[0][0]
    sql("CREATE TABLE v (id INT NOT NULL, v VARIANT) TBLPROPERTIES ('primary-key' = 'id', 'write-only' = 'true')")
    for number in (1, 2):
        sql(f"INSERT INTO v SELECT 1, parse_json('{{\"a\": {number}}}')")
    monkeypatch.setattr(driver_rows, "MOST_ROWS", 100)
    assert "through Python: " in sql("EXPLAIN SELECT * FROM v")[0][0]
    assert sql("SELECT id, to_json(v) FROM v") == [(1, '{"a":2}')]


@pytest.mark.usefixtures("tasks_merge")
def test_merged_scan_is_planned_once_and_filtered_by_value(sql, monkeypatch):
    monkeypatch.setattr(driver_rows, "MOST_ROWS", -1)
    monkeypatch.setattr(driver_rows, "_MOST_KEYS", 0)
    sql("CREATE TABLE t (id INT NOT NULL, v INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    sql("INSERT INTO t VALUES (2, 3), (3, 0)")
    scans, sources = [], []
    plan, of_reader = table_scan.TableScan.plan, strategy.source_of_reader
    monkeypatch.setattr(table_scan.TableScan, "plan", lambda scan: scans.append(scan) or plan(scan))

    def noted(jvm, reader, request, options, bucketing):
        sources.append((reader.predicate, options))
        return of_reader(jvm, reader, request, options, bucketing)

    monkeypatch.setattr(strategy, "source_of_reader", noted)
    assert sorted(sql("SELECT id, v FROM t WHERE v > 0 AND id < 9")) == [(1, 1), (2, 3)]
    assert len(scans) == 1
    ((predicate, options),) = sources
    assert predicate == scans[0].predicate
    assert "filter" not in options


@pytest.fixture
def divided(sql, monkeypatch, tasks_merge):
    """A table ``t`` whose partition 'a' is merged, and partitions 'b' and 'c' are not; the driver reads nothing."""
    monkeypatch.setattr(driver_rows, "MOST_ROWS", -1)
    monkeypatch.setattr(driver_rows, "_MOST_KEYS", 0)
    monkeypatch.setattr(native, "LEAST_BYTES", 1)
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    values = ", ".join(value for _, value in TYPES.values())
    sql(
        f"CREATE TABLE t (id INT NOT NULL, p STRING NOT NULL, {columns}) PARTITIONED BY (p) "
        "TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '1', 'write-only' = 'true')"
    )
    rows = ", ".join(f"({n}, '{p}', {values})" for p in "abc" for n in range(4))
    sql(f"INSERT INTO t VALUES {rows}")
    sql(f"INSERT INTO t VALUES (1, 'a'{', NULL' * len(TYPES)}), (7, 'a', {values})")
    return sql


@pytest.mark.more
@pytest.mark.versions
def test_scan_that_is_merged_in_part_is_two_scans(divided, monkeypatch):
    sql = divided
    plan = sql("EXPLAIN SELECT * FROM t")[0][0]
    assert "Union" in plan
    assert "native: 2 of 4 Parquet files, others through Python" in plan
    assert "through Python: 2 of 4 files, merged or with deleted rows; others are native" in plan
    assert "read by: native: 2 of 4 Parquet files; through Python: 2 of 4 files, merged or with deleted rows\n" in plan
    assert len(both(sql, "SELECT * FROM t")) == 13
    assert way(sql, "SELECT * FROM t WHERE p = 'b'") == "native"
    assert way(sql, "SELECT * FROM t WHERE p = 'a'") == "2 files of bucket 0 are merged, and tasks merge"
    for query in (
        "SELECT count(*), count(i4), min(day), max(s) FROM t",
        "SELECT p, count(i4), sum(i8) FROM t WHERE id > 0 GROUP BY p",
        "SELECT id FROM t WHERE i4 IS NULL OR p = 'c'",
        "SELECT st.y.z, m['k'], arr FROM t WHERE i4 < 0 AND p <> 'b'",
        "SELECT id, p FROM t WHERE p <> 'c' ORDER BY id DESC, p LIMIT 3",
        "SELECT a.id, b.f8 FROM t a JOIN t b ON a.id = b.id AND a.p = b.p WHERE b.bin = X'00FF'",
        "SELECT id FROM t WHERE p > (SELECT min(p) FROM t) AND id IN (SELECT id FROM t WHERE i4 IS NULL)",
        "WITH x AS (SELECT id, p FROM t WHERE i4 < 0) SELECT * FROM x UNION ALL SELECT id, p FROM t",
        "SELECT id, p FROM t VERSION AS OF 1",
        "SELECT id, p FROM t VERSION AS OF 2 WHERE p >= 'a'",
        "SELECT p, id, row_number() OVER (PARTITION BY p ORDER BY id) FROM t",
    ):
        assert both(sql, query), query
    monkeypatch.setattr(internals, "_write_planned", None)  # a Spark that plans all tasks of a scan itself
    assert "Union" not in sql("EXPLAIN SELECT * FROM t")[0][0]
    assert len(sql("SELECT * FROM t")) == 13


@pytest.mark.more
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_files_without_deleted_rows_are_read_natively(sql, monkeypatch, file_format):
    monkeypatch.setattr(driver_rows, "MOST_ROWS", -1)
    monkeypatch.setattr(native, "LEAST_BYTES", 1)
    sql(
        "CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p) "
        f"TBLPROPERTIES ('deletion-vectors.enabled' = 'true', 'file.format' = '{file_format}')"
    )
    sql("INSERT INTO t SELECT id, p FROM range(9) CROSS JOIN (VALUES ('a'), ('b')) v(p)")
    sql("DELETE FROM t WHERE id = 3 AND p = 'a'")
    sql.spark.conf.set(MASK_MEMORY, "0")
    try:
        assert " of 2 " in sql("EXPLAIN SELECT * FROM t")[0][0]
        assert "Union" in sql("EXPLAIN SELECT * FROM t")[0][0]
        assert len(both(sql, "SELECT * FROM t")) == 17
        assert both(sql, "SELECT id FROM t WHERE id = 3") == [(3,)]
    finally:
        sql.spark.conf.unset(MASK_MEMORY)


@pytest.mark.more
def test_both_scans_of_divided_one_read_one_snapshot(divided):
    sql = divided
    frame = sql.spark.sql(f"SELECT id, p FROM pm.{sql.database}.t WHERE id < 4")
    internals.optimized(frame)
    sql("INSERT INTO t SELECT 2, p, * EXCEPT (id, p) FROM t WHERE p <> 'z'")
    sql("DELETE FROM t WHERE id = 3")
    sql("CALL sys.compact(table => 't')")
    assert sorted(map(tuple, frame.collect())) == [(n, p) for n in range(4) for p in "abc"]


@pytest.mark.more
def test_runtime_filter_leaves_scan_whole(divided):
    sql = divided
    sql("CREATE TABLE d (p STRING, x INT)")
    sql("INSERT INTO d VALUES ('a', 1), ('c', 2), ('z', 3)")
    query = "SELECT t.id, t.p FROM t JOIN d ON t.p = d.p WHERE d.x > 0 AND d.x < 3"
    plan = sql(f"EXPLAIN {query}")[0][0]
    assert "dynamicpruning" in plan.lower()
    assert "others are native" not in plan
    assert len(sql(query)) == 9


@pytest.mark.more
def test_every_session_divides_scans(divided):
    sql = divided
    session = sql.spark.newSession()
    name = f"pm.{sql.database}.t"
    for rows in (
        session.table(name),
        PaimonTable.forName(sql.spark, name).toDF(),
        session.sql(f"SELECT * FROM {name}"),
    ):
        assert str(internals.optimized(rows)).count("RelationV2") == 2
        assert rows.count() == 13
    shown = str(PaimonTable.forName(sql.spark, name).explain())
    assert "read by: native: 2 of 4 Parquet files; through Python: 2 of 4 files, merged or with deleted rows\n" in shown


def test_driver_scan_without_rows_has_nested_columns(sql):
    """Spark made no DataFrame of an Arrow table without chunks, if a column of it was nested."""
    sql(
        "CREATE TABLE t (id INT, st STRUCT<ts: TIMESTAMP>) "
        "TBLPROPERTIES ('deletion-vectors.enabled' = 'true', 'metadata.stats-mode' = 'none')"
    )
    sql("INSERT INTO t VALUES (1, named_struct('ts', TIMESTAMP '2024-01-01 00:00:00')), (2, NULL)")
    sql("DELETE FROM t WHERE id = 2")
    assert "in the driver: " in sql("EXPLAIN SELECT * FROM t WHERE id > 7")[0][0]
    assert both(sql, "SELECT * FROM t WHERE id > 7") == []
    assert len(both(sql, "SELECT * FROM t")) == 1


@pytest.mark.more
def test_old_moments_of_filters_leave_out_no_row(sql):
    """Spark moves the days that Java's old calendar does not have, when it leaves out row groups of Parquet."""
    sql("CREATE TABLE t (id INT, d DATE, ts TIMESTAMP, n TIMESTAMP_NTZ)")
    day, time = "1582-10-10", "1582-10-10 12:00:00"
    sql(
        f"INSERT INTO t VALUES (1, DATE'{day}', TIMESTAMP'{time}', TIMESTAMP_NTZ'{time}'), "
        "(2, DATE'0001-01-03', TIMESTAMP'0001-01-03 00:00:00', TIMESTAMP_NTZ'0001-01-03 00:00:00')"
    )
    many = ", ".join(f"DATE'1582-10-{n:02}'" for n in range(4, 16))
    for condition in (
        f"d >= DATE'{day}'",
        f"d = DATE'{day}'",
        f"d IN ({many})",
        f"NOT d < DATE'{day}'",
        f"ts >= TIMESTAMP'{time}'",
        f"ts = TIMESTAMP'{time}'",
        f"n >= TIMESTAMP_NTZ'{time}'",
        f"n = TIMESTAMP_NTZ'{time}'",
    ):
        assert both(sql, f"SELECT id FROM t WHERE {condition}") == [(1,)], condition
    assert way(sql, f"SELECT id FROM t WHERE d >= DATE'{day}'") == "native"
    assert sql(f"UPDATE t SET id = 7 WHERE d >= DATE'{day}'") == [(1,)]
    assert sql(f"DELETE FROM t WHERE ts >= TIMESTAMP'{time}'") == [(1,)]
    assert sql("SELECT id FROM t") == [(2,)]


def test_driver_reads_and_compares_times_in_microseconds(sql):
    sql("CREATE TABLE made (id INT)")
    root = Path(sql("DESCRIBE DATABASE EXTENDED " + sql.database)[2][1].removeprefix("file:"))
    columns = pa.schema([pa.field("id", pa.int32(), nullable=False), ("at", pa.timestamp("ns"))])
    schema = Schema(columns, primary_keys=["id"], options={"write-only": "true"})
    table = FileSystemCatalog(str(root.parent)).create_table(f"{sql.database}.t", schema)
    for value in (1_000, 1_234_567):
        table.write(pa.table({"id": [1], "at": pa.array([value], pa.timestamp("ns"))}, schema=columns))
    query = "SELECT * FROM t WHERE at = TIMESTAMP_NTZ'1970-01-01 00:00:00.001234'"
    assert len(both(sql, query)) == 1
    assert "in the driver: 2 rows" in sql(f"EXPLAIN {query}")[0][0]


@pytest.mark.more
@pytest.mark.versions
@pytest.mark.usefixtures("tasks_merge")
def test_tasks_that_driver_plans_read_rows_of_data_source(sql, monkeypatch):
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    values = ", ".join(value for _, value in TYPES.values())
    sql(
        f"CREATE TABLE t (id INT NOT NULL, p STRING NOT NULL, {columns}) PARTITIONED BY (p) "
        "TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '2', 'write-only' = 'true')"
    )
    for first in (1, 2):
        sql(f"INSERT INTO t VALUES ({first}, 'a', {values}), (3, 'b'{', NULL' * len(TYPES)}), (2, 'c', {values})")
    monkeypatch.setattr(driver_rows, "MOST_ROWS", -1)
    planned = []
    plan = source.planned_read
    monkeypatch.setattr(source, "planned_read", lambda *arguments: planned.append(plan(*arguments)) or planned[-1])
    queries = (
        "SELECT * FROM t",
        "SELECT count(*) FROM t",
        "SELECT * FROM t WHERE id < 3 AND i4 < 0",
        "SELECT a.id, b.f8 FROM t a JOIN t b ON a.id = b.id AND a.p = b.p WHERE b.bin = X'00FF'",
        "SELECT id, p FROM t WHERE p = (SELECT max(p) FROM t)",
        "SELECT * FROM t VERSION AS OF 2",
        "SELECT * FROM `t$audit_log`",
        "SELECT * FROM t WITH ('incremental-between' = '1,2')",
    )
    results = {}
    for query in queries:
        planned.clear()
        results[query] = sql(query)
        assert planned, query
        assert all(planned), query
    monkeypatch.setattr(internals, "_write_planned", None)
    for query in queries:
        planned.clear()
        assert sorted(map(repr, sql(query))) == sorted(map(repr, results[query])), query
        assert planned, query
        assert not any(planned), query
    assert [len(results[query]) for query in queries] == [4, 1, 3, 3, 1, 4, 4, 3]


@pytest.mark.versions
def test_file_of_several_splits_is_read_once(sql, monkeypatch):
    monkeypatch.setattr(table_scan, "LEAST_PART", 1)
    sql("CREATE TABLE t (id BIGINT, s STRING) TBLPROPERTIES ('source.split.target-size' = '2 kb')")
    sql("INSERT INTO t SELECT id, uuid() FROM range(0, 1000, 1, 1)")
    assert ", native: 1 of 1 Parquet files" in sql("EXPLAIN SELECT * FROM t")[0][0]
    assert len(both(sql, "SELECT * FROM t")) == 1000


@pytest.mark.more
def test_evolution_is_read_by_ids_or_not_at_all(sql):
    sql("CREATE TABLE t (id INT, a INT, s STRUCT<x: INT>, p INT) PARTITIONED BY (p)")
    sql("INSERT INTO t VALUES (1, 10, named_struct('x', 1), 1), (2, 20, NULL, 2)")
    sql("ALTER TABLE t ADD COLUMN c STRING")
    sql("INSERT INTO t (id, a, c, p) VALUES (3, 30, 'c', 1)")
    assert way(sql, "SELECT * FROM t") == "native"
    assert both(sql, "SELECT id, c FROM t WHERE p = 1 ORDER BY id") == [(1, None), (3, "c")]
    sql("ALTER TABLE t RENAME COLUMN a TO b")
    assert way(sql, "SELECT id FROM t") == "native"
    assert "column b has changed since schema" in way(sql, "SELECT b FROM t")
    assert both(sql, "SELECT b FROM t ORDER BY b") == [(10,), (20,), (30,)]
    sql("ALTER TABLE t DROP COLUMN c")
    sql("ALTER TABLE t ADD COLUMN c STRING")
    assert "column c has changed since schema" in way(sql, "SELECT c FROM t")
    assert both(sql, "SELECT DISTINCT c FROM t") == [(None,)]
    sql("ALTER TABLE t ALTER COLUMN id TYPE BIGINT")
    assert "column id has changed since schema" in way(sql, "SELECT id FROM t")
    both(sql, "SELECT id FROM t")
    sql("ALTER TABLE t ADD COLUMN s.y INT")
    assert "column s has changed since schema" in way(sql, "SELECT s.x FROM t")
    both(sql, "SELECT s FROM t")
    sql("INSERT OVERWRITE t (id, b, p) VALUES (9, 90, 1)")
    assert way(sql, "SELECT * FROM t") == "native"
    assert both(sql, "SELECT id, b, c, s, p FROM t") == [(9, 90, None, None, 1)]


def test_rows_to_merge_and_deleted_rows_are_read_by_engine(sql):
    sql("CREATE TABLE t (id INT, v INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    assert way(sql, "SELECT * FROM t") == "native"
    sql("INSERT INTO t VALUES (2, 3)")
    assert "merged" in way(sql, "SELECT * FROM t")
    assert both(sql, "SELECT * FROM t ORDER BY id") == [(1, 1), (2, 3)]
    path = sql("SHOW CREATE TABLE t")[0][0].split("LOCATION '")[1].split("'")[0]
    Table.open(path).compact(full=True)
    assert way(sql, "SELECT * FROM t") == "native"
    assert both(sql, "SELECT v FROM t ORDER BY v") == [(1,), (3,)]
    marked = "TBLPROPERTIES ('deletion-vectors.enabled' = 'true')"
    sql(f"CREATE TABLE d (id INT) {marked}")
    sql("INSERT INTO d SELECT /*+ COALESCE(1) */ id + 1 FROM range(0, 2, 1, 1)")
    assert way(sql, "SELECT * FROM d") == "native"
    Table.open(path.removesuffix("/t") + "/d").delete("id = 1")
    assert "deletion vectors" in way(sql, "SELECT * FROM d")
    assert both(sql, "SELECT * FROM d") == [(2,)]


NOT_FROM_ORC = {"ch": "CHAR(5)", "day": "DATE", "ntz": "TIMESTAMP(6)"}


@pytest.mark.more
def test_orc_files_read_same_values_natively_or_by_engine(sql):
    stored = {name: type_ for name, type_ in TYPES.items() if name != "ts"}
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in stored.items())
    sql(f"CREATE TABLE t (id INT, {columns}, p INT) PARTITIONED BY (p) TBLPROPERTIES ('file.format' = 'orc')")
    sql(f"INSERT INTO t VALUES (1, {', '.join(value for _, value in stored.values())}, 1)")
    sql(f"INSERT INTO t VALUES (2{', NULL' * len(stored)}, 2)")
    alike = ", ".join(["id", "p", *(name for name in stored if name not in NOT_FROM_ORC)])
    assert way(sql, f"SELECT {alike} FROM t") == "native"
    both(sql, f"SELECT {alike} FROM t")
    both(sql, "SELECT st.y.z, m['k'], id FROM t WHERE i4 < 0 AND s LIKE 'ä%' AND p = 1")
    conditions = ("f4 = float('NaN')", "f8 = 0.0D", "d2 = -12345678901234.5678", "vc = 'abc'", "b", "bin = X'00FF'")
    many = ", ".join(map(str, range(12)))
    lists = ("i4 IN (-70000, NULL)", "vc IN ('abc', NULL)", f"d1 IN (1.5, {many}, NULL)", f"i1 IN (-7, {many}, NULL)")
    for condition in (*conditions, *lists, "i8 = 12345678901", "d3 > 0", "d1 <=> 1.5", "s > 'a'"):
        assert both(sql, f"SELECT id FROM t WHERE {condition}") == [(1,)], condition
    for name, kind in NOT_FROM_ORC.items():
        assert way(sql, f"SELECT {name} FROM t") == f"Spark reads type {kind} differently from ORC files"
    sql("ALTER TABLE t ADD COLUMN _col1 INT")
    assert "by position" in way(sql, "SELECT _col1 FROM t")
    sql("ALTER TABLE t ADD COLUMN c INT")
    sql("ALTER TABLE t ALTER COLUMN i4 TYPE BIGINT")
    assert both(sql, "SELECT id, c FROM t WHERE c IS NULL ORDER BY id") == [(1, None), (2, None)]
    assert "column i4 has changed" in way(sql, "SELECT i4 FROM t")
    sql("ALTER TABLE t SET TBLPROPERTIES ('file.format' = 'parquet')")
    sql("INSERT INTO t (id, p) VALUES (3, 3)")
    assert way(sql, "SELECT id FROM t") == "some files are Parquet, others ORC"
    assert both(sql, "SELECT id, s, c FROM t WHERE p = 3") == [(3, None, None)]
    sql("CREATE TABLE z (id INT, a ARRAY<TIMESTAMP_LTZ>) TBLPROPERTIES ('file.format' = 'orc')")
    sql("INSERT INTO z VALUES (1, array(TIMESTAMP_LTZ'2026-01-01 00:00:00'))")
    sql("ALTER TABLE z DROP COLUMN a")
    assert "Spark 4.1 fails" in way(sql, "SELECT id FROM z")  # the files still have the column
    assert both(sql, "SELECT id FROM z") == [(1,)]
    sql("CREATE TABLE a (id INT) TBLPROPERTIES ('file.format' = 'avro')")
    sql("INSERT INTO a VALUES (1)")
    assert way(sql, "SELECT * FROM a") == "the files are avro, neither Parquet nor ORC"


@pytest.mark.more
def test_options_that_only_choose_snapshot_leave_way_open(sql):
    sql("CREATE TABLE t (id INT, v INT)")
    sql("INSERT INTO t VALUES (1, 1)")
    sql("INSERT INTO t VALUES (2, 2)")
    old = "SELECT id FROM t WITH ('scan.snapshot-id' = '1')"
    assert "snapshot 1, columns: id" in sql(f"EXPLAIN {old}")[0][0]
    assert way(sql, old) == "native"
    assert both(sql, old) == [(1,)]
    assert sql("SELECT count(*) FROM t WITH ('scan.snapshot-id' = '1')") == [(1,)]
    assert way(sql, "SELECT id FROM t WITH ('read.batch-size' = '7')") == "with the options read.batch-size"
    sql("SET spark.paimon.scan.version = 1")
    try:
        assert way(sql, "SELECT id FROM t") == "native"
        assert both(sql, "SELECT id FROM t") == [(1,)]
        assert both(sql, "SELECT id FROM t VERSION AS OF 2 ORDER BY id") == [(1,), (2,)]
    finally:
        sql("RESET spark.paimon.scan.version")
    with pytest.raises(Exception, match="leave out one of them"):
        sql("SELECT id FROM t VERSION AS OF 2 WITH ('scan.snapshot-id' = '1')")
    sql("ALTER TABLE t ALTER COLUMN v TYPE BIGINT")
    assert way(sql, "SELECT v FROM t WITH ('scan.snapshot-id' = '1')") == "column v differs in schema 0"
    assert way(sql, old) == "native"


@pytest.mark.more
def test_time_travel_and_expired_files(sql):
    sql("CREATE TABLE t (id INT)")
    assert both(sql, "SELECT * FROM t") == []
    sql("INSERT INTO t VALUES (1)")
    sql("INSERT INTO t VALUES (2)")
    assert both(sql, "SELECT * FROM t VERSION AS OF 1") == [(1,)]
    assert both(sql, "SELECT * FROM t VERSION AS OF 1 UNION ALL SELECT * FROM t ORDER BY id") == [(1,), (1,), (2,)]
    assert both(sql, "SELECT count(*) FROM t WHERE id > 1") == [(1,)]
    sql("SET spark.sql.files.ignoreMissingFiles = true")
    frame = sql.spark.table("t")
    frame._jdf.queryExecution().executedPlan()
    path = Path(sql("SHOW CREATE TABLE t")[0][0].split("LOCATION '")[1].split("'")[0])
    moved = [file.rename(file.with_suffix(".moved")) for file in path.glob("bucket-0/*.parquet")]
    with pytest.raises(Exception, match=r"FileNotFound|FILE_NOT_EXIST"):
        frame.collect()
    sql("RESET spark.sql.files.ignoreMissingFiles")
    assert len(moved) == 2


@pytest.mark.more
def test_names_of_partitions_need_no_escaping(sql):
    sql("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)")
    values = ["a=b", "a/b", "a%2Fb", "{x,y}", "[0-9]*", "ä ö", "q?", "\\\\"]
    for number, value in enumerate(values):
        sql("INSERT INTO t VALUES (:id, :p)", args={"id": number, "p": value})
    assert way(sql, "SELECT * FROM t") == "native"
    assert len(both(sql, "SELECT * FROM t")) == len(values)
    for value in values:
        assert len(both(sql, f"SELECT * FROM t WHERE p = '{value}'")) <= 1


@pytest.mark.more
@pytest.mark.parametrize("name", NAMES)
def test_tables_of_other_engines(sql, name, tmp_path):
    place = Path(sql("DESCRIBE DATABASE " + sql.database)[2][1].removeprefix("file:")) / name
    place.symlink_to(GOLDEN / name / "table")
    both(sql, f"SELECT to_json(struct(*)) FROM {name}")  # Python has no times before the year 1
    column = random.Random(name).choice(sql.spark.table(name).columns)
    both(sql, f"SELECT to_json(struct(`{column}`)) FROM {name} WHERE `{column}` IS NOT NULL")
