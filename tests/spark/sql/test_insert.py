"""INSERT and the other writes by name: one commit, few files, the options of the session, nothing left by an error."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import functions as F

from paimon_core import Table
from paimon_spark import frame_write
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.session_options import PREFIX, session_options
from tests.spark.sql.test_native import TYPES

NO_ROWS = "SELECT * FROM t WHERE false"


@pytest.fixture
def opened(sql):
    """A function that opens a table of the test by the engine."""
    root = Path(sql("DESCRIBE DATABASE EXTENDED " + sql.database)[2][1].removeprefix("file:"))
    return lambda name: Table.open(str(root / name))


@pytest.fixture(autouse=True)
def by_tasks(monkeypatch):
    """Tasks of Spark write in the tests of this module; in others the driver writes few rows."""
    monkeypatch.setattr(frame_write, "FEW_ROWS", -1)
    return monkeypatch


def kinds(table):
    return [snapshot.commit_kind for snapshot in table.snapshots()]


def data_files(table):
    return sorted(path.name for path in Path(table.path).rglob("data-*"))


@pytest.mark.versions
def test_columns_are_matched_and_defaults_fill_them(sql, opened):
    sql("CREATE TABLE t (id BIGINT, v STRING DEFAULT 'd', s STRUCT<a: INT, b: STRING>, p INT) PARTITIONED BY (p)")
    sql("INSERT INTO t VALUES (1, NULL, NULL, 1), (2, DEFAULT, NULL, 1)")
    sql("INSERT INTO t (p, id) VALUES (1, 3)")
    sql("INSERT INTO t BY NAME SELECT 1 AS p, named_struct('b', 'x', 'a', 7) AS s, 4L AS id")
    sql("INSERT INTO t PARTITION (p = 2) (s, id) VALUES (named_struct('a', 8, 'b', 'y'), 5)")
    rows = [(row[0], row[1], row[2] and tuple(row[2]), row[3]) for row in sql("SELECT * FROM t ORDER BY id")]
    assert rows[:3] == [(1, "d", None, 1), (2, "d", None, 1), (3, "d", None, 1)]
    assert rows[3:] == [(4, "d", (7, "x"), 1), (5, "d", (8, "y"), 2)]
    assert kinds(opened("t")) == ["APPEND"] * 4
    assert len(data_files(opened("t"))) == 4


@pytest.mark.more
@pytest.mark.versions
@pytest.mark.parametrize("keyed", [False, True])
def test_driver_writes_few_rows_as_tasks_do(sql, opened, by_tasks, python_writes, keyed):
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    key = " TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')" if keyed else ""
    values = f"(1, {', '.join(value for _, value in TYPES.values())}), (2{', NULL' * len(TYPES)})"
    for name in ("tasks", "driver"):
        sql(f"CREATE TABLE {name} (id INT, {columns}){key}")
    sql(f"INSERT INTO tasks VALUES {values}")
    sql("INSERT INTO tasks SELECT * FROM tasks")
    by_tasks.setattr(frame_write, "FEW_ROWS", 2)
    by_tasks.setattr(frame_write, "_write_frame", None)  # it must not be called
    sql(f"INSERT INTO driver VALUES {values}")
    sql("INSERT INTO driver SELECT * FROM driver")
    assert sorted(map(repr, sql("SELECT * FROM driver"))) == sorted(map(repr, sql("SELECT * FROM tasks")))
    schemas = {
        pq.read_schema(path) for name in ("tasks", "driver") for path in Path(opened(name).path).rglob("*.parquet")
    }
    assert len(schemas) == 1
    with pytest.raises(IllegalArgumentException, match="'NoneType' object is not callable"):
        sql("INSERT INTO driver SELECT d.* FROM driver d CROSS JOIN range(3)")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO t SELECT id, 'a', CAST(id * 1000000000 AS BIGINT) FROM range(0, 9, 1, 2)", "CAST_OVERFLOW"),
        ("INSERT INTO t SELECT id, repeat('a', CAST(id AS INT)), 1 FROM range(0, 9, 1, 2)", "EXCEED_LIMIT_LENGTH"),
        ("INSERT INTO t SELECT nullif(id, 8), 'a', 1 FROM range(0, 9, 1, 2)", "NOT_NULL_ASSERT_VIOLATION"),
        ("INSERT INTO t VALUES (1, 'a', 'b')", "CAST_INVALID_INPUT|CANNOT_SAFELY_CAST"),
    ],
)
def test_statement_that_fails_leaves_nothing(sql, opened, statement, message):
    sql("CREATE TABLE t (id BIGINT NOT NULL, v VARCHAR(3), n INT)")
    with pytest.raises(Exception, match=message):
        sql(statement)
    assert opened("t").snapshots() == []
    assert data_files(opened("t")) == []


@pytest.mark.more
def test_partition_gets_one_file_of_many_tasks(sql, opened):
    sql("CREATE TABLE t (id BIGINT, p BIGINT) PARTITIONED BY (p)")
    sql("INSERT INTO t SELECT id, id % 3 FROM range(0, 99, 1, 8)")
    assert len(data_files(opened("t"))) == 3
    keys = "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"
    sql(f"CREATE TABLE k (id BIGINT, v BIGINT) {keys}")
    sql("INSERT INTO k SELECT id, id FROM range(0, 99, 1, 8)")
    assert len(data_files(opened("k"))) == 2


@pytest.mark.more
def test_keyed_table_is_compacted_in_same_statement(sql, opened):
    sql(
        "CREATE TABLE t (id INT, v INT) TBLPROPERTIES ('primary-key' = 'id', 'num-sorted-run.compaction-trigger' = '2')"
    )
    for n in range(3):
        sql(f"INSERT INTO t VALUES (1, {n})")
    assert "COMPACT" in kinds(opened("t"))
    assert sql("SELECT * FROM t") == [(1, 2)]


@pytest.mark.more
@pytest.mark.versions
def test_overwrites_by_condition_are_one_commit(sql, opened):
    sql("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, 'b'), (4, NULL)")
    sql("INSERT INTO t REPLACE WHERE p >= 'b' SELECT 5, 'c'")
    assert sql("SELECT id FROM t ORDER BY id") == [(1,), (2,), (4,), (5,)]
    sql("INSERT INTO t REPLACE WHERE id < 2 OR id = 5 SELECT 0, 'a'")
    assert sql("SELECT id FROM t ORDER BY id") == [(0,), (2,), (4,)]
    assert kinds(opened("t")) == ["APPEND", "OVERWRITE", "OVERWRITE"]
    files = data_files(opened("t"))
    for statement, message in {
        "INSERT INTO t REPLACE WHERE p = 'a' SELECT 9, 'z'": "leave them out",
        "INSERT INTO t REPLACE WHERE id < 2 SELECT 9, 'a'": "the new row",
        "INSERT INTO t REPLACE WHERE upper(p) = 'A' SELECT 9, 'a'": "cannot evaluate",
    }.items():
        with pytest.raises(Exception, match=message):
            sql(statement)
    assert data_files(opened("t")) == files
    sql(f"INSERT INTO t REPLACE WHERE id = 0 {NO_ROWS}")
    sql.spark.createDataFrame([(7, None)], "id INT, p STRING").writeTo("t").overwrite(F.col("p").isNull())
    assert sql("SELECT id FROM t ORDER BY id") == [(2,), (7,)]


@pytest.mark.more
def test_rows_with_key_are_replaced_by_condition(sql, opened):
    sql("CREATE TABLE t (id INT, v INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')")
    sql("INSERT INTO t SELECT id, id FROM range(6)")
    sql("INSERT INTO t REPLACE WHERE v >= 3 SELECT id, 10 + id FROM range(5, 7)")
    assert sql("SELECT * FROM t ORDER BY id") == [(0, 0), (1, 1), (2, 2), (5, 15), (6, 16)]
    assert len([kind for kind in kinds(opened("t")) if kind != "COMPACT"]) == 2
    sql("CREATE TABLE s (id INT, v INT) TBLPROPERTIES ('primary-key' = 'id', 'sequence.field' = 'v')")
    with pytest.raises(Exception, match="an old row may outrank a new one"):
        sql("INSERT INTO s REPLACE WHERE v >= 3 VALUES (1, 3)")


@pytest.fixture
def setting(sql):
    """A function that sets a configuration until the end of the test."""
    changed = []

    def change(key, value):
        changed.append(key)
        sql.spark.conf.set(key, value)

    yield change
    for key in changed:
        sql.spark.conf.unset(key)


@pytest.mark.versions
def test_options_of_session(sql, opened, setting):
    sql("CREATE TABLE t (id INT)")
    setting("spark.paimon.commit.user", "everyone")
    setting("spark.paimon.*.*.t.commit.user", "any t")
    setting(f"spark.paimon.pm.{sql.database}.t.commit.user", "this t")
    setting("spark.paimon.pm.nope.t.file.format", "orc")
    setting("spark.paimon.scan.snapshot-id", "1")
    assert session_options(Jvm(sql.spark).settings(PREFIX), "pm", sql.database, "t") == {
        "commit.user": "this t",
        "scan.snapshot-id": "1",
    }
    sql("INSERT INTO t VALUES (1)")
    assert opened("t").snapshot().commit_user == "this t"
    session = sql.spark.newSession()
    session.sql(f"INSERT INTO pm.{sql.database}.t VALUES (2)")
    assert "t" not in opened("t").snapshot().commit_user.split()
    assert [sql("SELECT * FROM t"), sql("SELECT count(*) FROM t"), sql("SELECT count(*) FROM t VERSION AS OF 2")] == [
        [(1,)],
        [(1,)],
        [(2,)],
    ]
    setting("spark.paimon.fiel.format", "orc")
    with pytest.raises(Exception, match=r"'spark.paimon.fiel.format'.*did you mean 'file.format'"):
        sql("INSERT INTO t VALUES (1)")


@pytest.mark.more
def test_cached_rows_follow_write(sql):
    sql("CREATE TABLE t (id INT)")
    sql("CACHE TABLE t")
    assert sql("SELECT * FROM t") == []
    sql("INSERT INTO t VALUES (1)")
    assert sql("SELECT * FROM t") == [(1,)]
    sql("UNCACHE TABLE t")


@pytest.mark.more
def test_defaults_of_every_kind_fill_columns(sql):
    defaults = {
        "s": ("STRING", "'it''s'"),
        "n": ("BIGINT", "1 + 1"),
        "d": ("DATE", "DATE'2020-01-31'"),
        "z": ("INT", "NULL"),
    }
    columns = ", ".join(f"{name} {kind} DEFAULT {value}" for name, (kind, value) in defaults.items())
    sql(f"CREATE TABLE t (id INT, {columns})")
    sql("INSERT INTO t (id) VALUES (1)")
    sql("INSERT INTO t VALUES (2, NULL, NULL, NULL, NULL)")
    expected = sql("SELECT 'it''s', 2L, DATE'2020-01-31', CAST(NULL AS INT)")[0]
    assert sql("SELECT * FROM t ORDER BY id") == [(1, *expected), (2, *expected)]
    with pytest.raises(Exception, match="varies, and a Paimon default"):
        sql("CREATE TABLE u (s STRING DEFAULT current_user())")


@pytest.mark.more
def test_option_marks_written_partitions_done(sql, opened, by_tasks):
    sql(
        "CREATE TABLE t (id BIGINT, p INT, q STRING) PARTITIONED BY (p, q) "
        "TBLPROPERTIES ('partition.end-input-to-done' = 'true')"
    )
    sql("INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b')")
    assert done(opened("t")) == ["p=1/q=a", "p=2/q=b"]
    by_tasks.undo()
    sql("INSERT INTO t VALUES (3, 3, NULL)")
    sql("INSERT OVERWRITE t PARTITION (p = 4) SELECT 4L, 'd'")
    assert done(opened("t")) == ["p=1/q=a", "p=2/q=b", "p=3/q=__DEFAULT_PARTITION__", "p=4/q=d"]


def done(table):
    return sorted(str(path.parent.relative_to(table.path)) for path in Path(table.path).rglob("_SUCCESS"))
