"""DELETE, UPDATE and MERGE INTO in SQL, on tables with a primary key."""

import datetime
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.sql import functions as F

from paimon_core.predicate.parse import parse_predicate
from paimon_core.predicate.rewrite import bind
from paimon_core.table import Table
from paimon_core.types.datatype import DOUBLE, DataField
from paimon_spark import PaimonTable
from paimon_spark.row_level import write as row_level_write
from paimon_spark.row_level.filter_column import filter_column
from paimon_spark.sql.bridge.endpoints import FilesEndpoint
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads import native_rows, newer_rows
from paimon_spark.sql.reads.native import NativeFiles
from paimon_spark.sql.reads.native_rows import FilesHandler, native_frame, stored_rows
from paimon_spark.sql.session_options import NATIVE_READS
from paimon_spark.sql.writes import few_rows
from tests.spark.sql.test_native import TYPES

ROWS = "(1, 'a', named_struct('x', 1), 1), (2, 'b', NULL, 2), (3, 'c', NULL, 3), (4, 'd', NULL, 4)"


@pytest.mark.versions
def test_rows_of_table_with_primary_key_change(sql):
    sql("""CREATE TABLE t (id BIGINT NOT NULL, v STRING, n STRUCT<x: INT>, d INT DEFAULT 7)
        TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')""")
    sql(f"INSERT INTO t VALUES {ROWS}")
    assert sql("UPDATE t SET v = concat(v, '!'), n.x = 5, d = DEFAULT WHERE id IN (SELECT 1)") == [(1,)]
    assert sql("DELETE FROM t WHERE id = :x", args={"x": 2}) == [(1,)]
    assert sql("SELECT id, v, n.x, d FROM t ORDER BY id") == [(1, "a!", 5, 7), (3, "c", None, 3), (4, "d", None, 4)]
    sql.spark.sql("SELECT * FROM VALUES (1L, 'u'), (9L, 'n'), (4L, 'z') AS s(id, v)").createOrReplaceTempView("changes")
    merge = """MERGE INTO t USING changes s ON t.id = s.id WHEN MATCHED AND s.v = 'u' THEN UPDATE SET v = s.v
        WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'source'"""
    assert sql(merge) == [(4, 2, 1, 1)]
    assert sql("SELECT id, v, d FROM t ORDER BY id") == [(1, "u", 7), (3, "source", 3), (9, "n", 7)]
    with pytest.raises(Exception, match="several source rows match one row"):
        sql("MERGE INTO t USING (SELECT 1L AS id FROM range(2)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'x'")
    sql.spark.sql("SELECT if(id > 0, id, NULL) AS id, v FROM changes").createOrReplaceTempView("nullable")
    source = "(SELECT *, NULL AS n, 1 AS d FROM nullable) s"
    for equal in ("=", "<=>"):
        merge = f"MERGE INTO t USING {source} ON s.id {equal} t.id WHEN MATCHED THEN UPDATE SET *"
        assert sql(merge) == [(2, 2, 0, 0)]
    for statement in (
        "UPDATE t SET id = 5",
        "MERGE INTO t USING changes s ON t.v = s.v WHEN MATCHED THEN UPDATE SET id = s.id",
    ):
        with pytest.raises(UnsupportedOperationException, match="cannot change id"):
            sql(statement)
    source = sql.spark.sql("SELECT 9L AS id, 'into' AS v")
    source.alias("s").mergeInto("t", F.expr("t.id = s.id")).whenMatched().update({"v": F.expr("s.v")}).merge()
    assert sql("SELECT v FROM t WHERE id = 9") == [("into",)]
    session = sql.spark.newSession()
    session.sql("SELECT 3L AS id").createOrReplaceTempView("changes")
    session.sql(f"DELETE FROM pm.{sql.database}.t WHERE id IN (SELECT id FROM changes)")
    assert sql("SELECT id FROM t ORDER BY id") == [(1,), (9,)]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("'bucket' = '-1'", marks=pytest.mark.versions),
        pytest.param("'deletion-vectors.enabled' = 'true'", marks=pytest.mark.more),
        pytest.param("'bucket' = '2', 'bucket-key' = 'id'", marks=pytest.mark.more),
    ],
)
def test_rows_of_table_without_primary_key_change(sql, options):
    sql(f"""CREATE TABLE t (id BIGINT NOT NULL, v STRING, n STRUCT<x: INT>, d INT DEFAULT 7, p STRING)
        PARTITIONED BY (p) TBLPROPERTIES ({options})""")
    sql(f"INSERT INTO t SELECT *, 'a' FROM VALUES {ROWS}, (2, 'b', NULL, 2)")
    sql("INSERT INTO t SELECT *, 'b' FROM VALUES (5, 'e', NULL, 5), (6, 'f', NULL, 6)")
    assert sql("UPDATE t SET v = concat(v, '!'), n.x = 5, d = DEFAULT, p = 'c' WHERE id IN (SELECT 1)") == [(1,)]
    assert sql("DELETE FROM t WHERE id = :x", args={"x": 2}) == [(2,)]
    assert sql("DELETE FROM t WHERE id = 100 OR v IS NULL") == [(0,)]
    assert sql("SELECT id, v, n.x, d, p FROM t WHERE id < 4 ORDER BY id") == [
        (1, "a!", 5, 7, "c"),
        (3, "c", None, 3, "a"),
    ]
    sql.spark.sql("SELECT * FROM VALUES (1L, 'u'), (9L, 'n'), (4L, 'z') AS s(id, v)").createOrReplaceTempView("changes")
    merge = """MERGE INTO t USING changes s ON t.id = s.id WHEN MATCHED AND s.v = 'u' THEN UPDATE SET v = s.v
        WHEN MATCHED AND s.v = 'z' THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, s.v, 'b')
        WHEN NOT MATCHED BY SOURCE AND id = 6 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'source'"""
    assert sql(merge) == [(6, 3, 2, 1)]
    assert sql("SELECT id, v, d FROM t ORDER BY id") == [(1, "u", 7), (3, "source", 3), (5, "source", 5), (9, "n", 7)]
    twice = "MERGE INTO t USING (SELECT 1L AS id, id AS k FROM range(2)) s ON t.id = s.id WHEN MATCHED"
    for clause in ("AND k = 0 THEN UPDATE SET v = 'x'", "THEN UPDATE SET v = 'x'", "AND k < 0 THEN DELETE"):
        with pytest.raises(Exception, match="several source rows match one row"):
            sql(f"{twice} {clause}")
    assert sql(f"{twice} THEN DELETE") == [(1, 0, 1, 0)]
    assert sql("SELECT id FROM t ORDER BY id") == [(3,), (5,), (9,)]


@pytest.mark.more
@pytest.mark.versions
def test_matched_row_without_clause_does_not_change(sql):
    for name, options in (("a", "'bucket' = '-1'"), ("k", "'primary-key' = 'id', 'bucket' = '1'")):
        sql(f"CREATE TABLE {name} (id INT NOT NULL, v STRING) TBLPROPERTIES ({options})")
        sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        source = "(SELECT 1 AS id, 'x' AS v UNION ALL SELECT 2, 'y' UNION ALL SELECT 9, 'z') s"
        merge = f"MERGE INTO {name} t USING {source} ON t.id = s.id WHEN MATCHED AND s.id = 2 THEN UPDATE SET v = s.v"
        assert sql(f"{merge} WHEN NOT MATCHED THEN INSERT *") == [(2, 1, 0, 1)]
        assert sql(f"{merge} WHEN MATCHED AND s.id = 7 THEN DELETE") == [(1, 1, 0, 0)]
        assert sql(f"SELECT * FROM {name} ORDER BY id") == [(1, "a"), (2, "y"), (3, "c"), (9, "z")]


def test_rows_that_upsert_cannot_change_are_refused(sql):
    sql("""CREATE TABLE sums (a INT NOT NULL, b INT) TBLPROPERTIES
        ('primary-key' = 'a', 'bucket' = '1', 'merge-engine' = 'aggregation', 'fields.b.aggregate-function' = 'sum')""")
    for statement in ("UPDATE sums SET b = 1", "DELETE FROM sums WHERE a = 1"):
        with pytest.raises(UnsupportedOperationException):
            sql(statement)


VIEWS = {"all": "SELECT * FROM t", "some": "SELECT * FROM t WHERE id > 1", "none": "SELECT 1 AS id, 'a' AS v"}


@pytest.mark.parametrize(
    "view", [pytest.param(name, marks=() if name == "all" else pytest.mark.more) for name in VIEWS]
)
def test_rows_of_view_do_not_change(sql, view):
    """Spark itself would empty the table for a DELETE of all rows, and end in an internal error else."""
    sql("CREATE TABLE t (id INT, v STRING)")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    sql(f"CREATE OR REPLACE TEMPORARY VIEW w AS {VIEWS[view]}")
    source = "(SELECT 1 AS id) s"
    for operation, statement in [
        ("DELETE FROM", "DELETE FROM w"),
        ("DELETE FROM", "DELETE FROM w WHERE id = 2"),
        ("UPDATE", "UPDATE w AS x SET v = 'x'"),
        ("MERGE INTO", f"MERGE INTO w USING {source} ON w.id = s.id WHEN MATCHED THEN DELETE"),
    ]:
        with pytest.raises(AnalysisException, match=rf"EXPECT_TABLE_NOT_VIEW\S+ '{operation}' expects .*`w` is a view"):
            sql(statement)
    sql("DROP VIEW w")
    assert len(sql("SELECT * FROM t")) == 2


@pytest.mark.more
def test_cached_table_is_read_again_after_its_rows_change(sql):
    sql("CREATE TABLE c (id INT, v INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")
    sql("INSERT INTO c VALUES (1, 1), (2, 2), (3, 3)")
    sql("CACHE TABLE c")
    assert sql("SELECT count(v) FROM c") == [(3,)]
    sql("DELETE FROM c WHERE id = 1")
    assert sql("SELECT id, v FROM c ORDER BY id") == [(2, 2), (3, 3)]
    sql("UPDATE c SET v = 20 WHERE id = 2")
    assert sql("SELECT id, v FROM c ORDER BY id") == [(2, 20), (3, 3)]
    sql("UNCACHE TABLE c")
    path = sql("SHOW CREATE TABLE c")[0][0].split("LOCATION '")[1].split("'")[0]
    assert sql(f"DELETE FROM pm.`{path}` WHERE id = 3") == [(1,)]
    assert sql("SELECT id FROM c") == [(2,)]


@pytest.mark.more
def test_rows_change_after_columns_did(sql):
    """The newest snapshot is older than the schema: its rows have the new columns, as NULL."""
    for name, options in (("a", ""), ("k", "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')")):
        sql(f"CREATE TABLE {name} (id INT NOT NULL, v INT, gone INT) {options}")
        sql(f"INSERT INTO {name} VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)")
        sql(f"ALTER TABLE {name} ADD COLUMN w STRING")
        sql(f"ALTER TABLE {name} RENAME COLUMN v TO x")
        sql(f"ALTER TABLE {name} ALTER COLUMN x TYPE BIGINT")
        sql(f"ALTER TABLE {name} DROP COLUMN gone")
        assert sql(f"UPDATE {name} SET w = 'new', x = 3000000000 WHERE id = 1") == [(1,)]
        assert sql(f"DELETE FROM {name} WHERE w IS NULL AND x = 2") == [(1,)]
        source = "(SELECT 3 AS id, 'm' AS w) s"
        merge = f"MERGE INTO {name} t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET w = s.w"
        assert sql(merge) == [(1, 1, 0, 0)]
        sql(f"ALTER TABLE {name} ADD COLUMN y INT")
        sql(f"INSERT INTO {name} REPLACE WHERE x = 3 SELECT 4, 3L, 'r', 5")
        assert sql(f"SELECT * FROM {name} ORDER BY id") == [(1, 3000000000, "new", None), (4, 3, "r", 5)]


def test_table_name_is_resolved_in_session(sql):
    sql("CREATE TABLE `odd.name` (id INT, v STRING)")
    sql("INSERT INTO `odd.name` VALUES (1, 'a'), (2, 'b')")
    named = PaimonTable.forName(sql.spark, f"pm.{sql.database}.`odd.name`")
    assert named.update("id = 1", {"v": "'x'"}).num_updated_rows == 1
    assert sorted(map(tuple, named.toDF().collect())) == [(1, "x"), (2, "b")]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        PaimonTable.forName(sql.spark, f"pm.{sql.database}.nope")


def changed(sql, table, native):
    """The rows of a table after statements whose target Spark's own scan reads, or the Python data source."""
    sql(f"SET {NATIVE_READS} = {str(native).lower()}")
    try:
        plan = sql(f"EXPLAIN DELETE FROM {table} WHERE id = 1")[0][0]
        assert ("rows are read native: " in plan) == native, plan
        where = "f8 = 0.0D OR ts > TIMESTAMP'2020-01-01' OR s LIKE '%ä%'"
        assert sql(f"UPDATE {table} SET i4 = coalesce(i4, 0) + 1, s = concat(s, '!') WHERE {where}") == [(1,)]
        assert sql(f"DELETE FROM {table} WHERE id % 5 = 3") == [(1,)]
        assert sql(f"""MERGE INTO {table} t USING (SELECT id, id * 2 AS n FROM range(9)) s ON t.id = s.id
            WHEN MATCHED AND s.n > 2 THEN UPDATE SET i8 = s.n WHEN MATCHED THEN DELETE
            WHEN NOT MATCHED THEN INSERT (id, i8) VALUES (s.id, s.n)""") == [(9, 1, 1, 7)]
    finally:
        sql(f"RESET {NATIVE_READS}")
    return sorted(map(repr, sql(f"SELECT * FROM {table}")))


@pytest.mark.more
def test_spark_reads_target_as_engine_does(sql):
    """Every type, files of an older schema, and paths that a URI writes in another way."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    results = []
    for native in (True, False):
        table = f"t{native}"
        sql(f"CREATE TABLE {table} (id BIGINT, `p %+ä` STRING, {columns}) PARTITIONED BY (`p %+ä`)")
        values = ", ".join(value for _, value in TYPES.values())
        sql(f"INSERT INTO {table} VALUES (1, 'a b%20+ä', {values}), (2, 'c', {', '.join(['NULL'] * len(TYPES))})")
        sql(f"ALTER TABLE {table} ADD COLUMN added INT")
        sql(f"INSERT INTO {table} (id, `p %+ä`, added) VALUES (3, NULL, 5)")
        results.append(changed(sql, table, native))
    assert results[0] == results[1]


@pytest.mark.more
@pytest.mark.parametrize("options", ["'primary-key' = 'id'", "'bucket' = '-1'"])
def test_driver_writes_few_changes_as_tasks_do(sql, monkeypatch, options):
    """Every type; and one change more than the driver takes."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    values = ", ".join(value for _, value in TYPES.values())
    changes = (
        ("UPDATE {t} SET i4 = coalesce(i4, 0) + 1, s = concat(s, '!') WHERE id < 3", [(2,)]),
        ("DELETE FROM {t} WHERE id = 3", [(1,)]),
        (
            """MERGE INTO {t} t USING (SELECT id FROM range(4, 8, 1, 2)) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET vc = 'm' WHEN NOT MATCHED THEN INSERT (id, i8) VALUES (s.id, 1)""",
            [(4, 2, 0, 2)],
        ),
    )
    results, shuffled = [], []
    run_tasks = row_level_write.run_tasks
    monkeypatch.setattr("paimon_core.scan.base_run.LEAST_BASE", 0)
    monkeypatch.setattr(
        row_level_write, "run_tasks", lambda *arguments: shuffled.append(table) or run_tasks(*arguments)
    )
    for table, most in (("tasks", -1), ("driver", 4), ("both", 3)):
        monkeypatch.setattr(few_rows, "MOST_CHANGES", most)
        sql(f"CREATE TABLE {table} (id INT NOT NULL, {columns}) TBLPROPERTIES ({options})")
        nulls = ", NULL" * len(TYPES)
        sql(f"INSERT INTO {table} VALUES (1, {values}), (2{nulls}), (3{nulls}), (4, {values}), (5, {values})")
        for statement, counts in changes:
            assert sql(statement.format(t=table)) == counts
        results.append(sorted(map(repr, sql(f"SELECT * FROM {table}"))))
    assert results[1] == results[0]
    assert results[2] == results[0]
    assert shuffled == ["tasks"] * 3 + ["both"]
    for statement, error in (
        ("UPDATE {t} SET i4 = CAST(s AS INT) WHERE id = 1", "CAST_INVALID_INPUT"),
        ("UPDATE {t} SET i4 = 7 WHERE id IN (SELECT id FROM {t})", None),  # the cost of a query is unknown
        ("MERGE INTO {t} t USING (SELECT 1 AS id FROM range(2)) s ON t.id = s.id WHEN MATCHED THEN DELETE", None),
    ):
        if error is None:
            sql(statement.format(t="driver"))
            continue
        with pytest.raises(Exception, match=error):
            sql(statement.format(t="driver"))
    assert sorted(sql("SELECT id, i4 FROM driver")) == [(n, 7) for n in (2, 4, 5, 6, 7)]


@pytest.mark.more
@pytest.mark.parametrize("most_newer", [100, -1])
def test_newer_rows_of_target_are_laid_over_its_base_run(sql, monkeypatch, most_newer):
    """Every type, and keys whose names need quotes; files of an older schema on both sides. -1: masks of all files."""
    monkeypatch.setattr("paimon_core.scan.base_run.MOST_NEWER_ROWS", most_newer)
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in TYPES.items())
    values = ", ".join(value for _, value in TYPES.values())
    nulls = ", ".join(["NULL"] * len(TYPES))
    results, leaves = [], []

    def with_newer_rows(*arguments):
        frame = newer_rows.with_newer_rows(*arguments)
        plan = frame._jdf.queryExecution().optimizedPlan()
        leaves.extend(plan.collectLeaves().apply(n) for n in range(plan.collectLeaves().length()))
        return frame

    monkeypatch.setattr(native_rows, "with_newer_rows", with_newer_rows)
    for native in (True, False):
        table = f"k{native}"
        sql(f"""CREATE TABLE {table} (id BIGINT, `p.%+ä` STRING, `k``1` BINARY, {columns}) PARTITIONED BY (`p.%+ä`)
            TBLPROPERTIES ('primary-key' = 'id,p.%+ä,k`1', 'bucket' = '2', 'write-only' = 'true')""")
        base = f"SELECT id, 'p' || id % 2, X'00FF', {values} FROM range(60)"
        sql(f"INSERT INTO {table} {base}")
        sql(f"INSERT INTO {table} VALUES (3, 'p1', X'00FF', {nulls}), (3, 'p0', X'00FF', {nulls})")
        sql(f"ALTER TABLE {table} ADD COLUMN added INT")
        sql(f"DELETE FROM {table} WHERE id = 6")
        sql(f"INSERT INTO {table} (id, `p.%+ä`, `k``1`, added) VALUES (3, 'p1', X'00', 5), (70, 'p0', X'00FF', 5)")
        sql(f"SET {NATIVE_READS} = {str(native).lower()}")
        plan = sql(f"EXPLAIN DELETE FROM {table} WHERE id >= 0")[0][0]
        assert (" newer rows through Python" in plan) == (native and most_newer > 0), plan
        assert ("superseded rows masked" in plan) == (native and most_newer < 0), plan
        assert sql(f"UPDATE {table} SET i4 = coalesce(i4, 0) + 1, s = concat(s, '!') WHERE id < 8") == [(9,)]
        assert sql(f"DELETE FROM {table} WHERE id % 5 = 3 AND (added IS NULL OR f8 IS NULL)") == [(14,)]
        assert sql(f"""MERGE INTO {table} t USING (SELECT id, 'p' || id % 2 AS p FROM range(50, 90)) s
            ON t.id = s.id AND t.`p.%+ä` = s.p WHEN MATCHED AND t.added = 5 THEN DELETE
            WHEN MATCHED THEN UPDATE SET i4 = -1, added = 9
            WHEN NOT MATCHED THEN INSERT (id, `p.%+ä`, `k``1`) VALUES (s.id, s.p, X'01')""") == [(40, 8, 1, 31)]
        sql(f"RESET {NATIVE_READS}")
        results.append(sorted(map(repr, sql(f"SELECT * FROM {table}"))))
    assert results[0] == results[1]
    assert len(results[0]) == 60 + 3 - 1 - 14 + 31 - 1
    local = [leaf for leaf in leaves if leaf.nodeName() == "LocalRelation"]
    assert bool(local) == (most_newer > 0)
    assert {leaf.data().getClass().getSimpleName() for leaf in local} <= {"LocalRows"}  # no rule computes all rows


@pytest.mark.more
@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ("id INT", "'row-tracking.enabled' = 'true'", "rows keep their ids"),
        ("id INT, _Metadata INT", "'bucket' = '-1'", "a column is called _metadata"),
        ("id INT", "'file.format' = 'orc'", "the files are not Parquet"),
        (
            "id INT",
            "'primary-key' = 'id', 'bucket' = '1', 'write-only' = 'true', 'merge-engine' = 'partial-update', "
            "'partial-update.remove-record-on-delete' = 'true'",
            "3 files of bucket 0 are merged",
        ),
    ],
)
def test_explanation_names_reader_of_target(sql, columns, options, reason):
    sql(f"CREATE TABLE t ({columns}) TBLPROPERTIES ({options})")
    assert "there are no rows" in sql("EXPLAIN DELETE FROM t WHERE id >= 0")[0][0]
    for _ in range(3):
        sql("INSERT INTO t (id) VALUES (1), (2)")
    assert f"rows are read through Python: {reason}" in sql("EXPLAIN DELETE FROM t WHERE id = 1")[0][0]
    assert sql("UPDATE t SET id = id WHERE id = 1" if "primary" not in options else "DELETE FROM t WHERE id = 1") != [
        (0,)
    ]


def test_filters_leave_out_files_of_target(sql, monkeypatch):
    answers = []
    matching = FilesHandler.matching

    def noted(self, trees):
        answers.append(matching(self, trees))
        return answers[-1]

    monkeypatch.setattr(FilesHandler, "matching", noted)
    sql("CREATE TABLE t (id INT, v STRING)")
    for i in range(3):
        sql(f"INSERT INTO t VALUES ({i}, 'a')")
    assert sql("UPDATE t SET v = 'b' WHERE id = 1") == [(1,)]
    assert {len(json.loads(paths)) for paths in answers} == {1}
    assert sql("SELECT * FROM t ORDER BY id") == [(0, "a"), (1, "b"), (2, "a")]


@pytest.mark.parametrize("native", [True, pytest.param(False, marks=pytest.mark.more)])
def test_path_of_file_is_condition(sql, native):
    """In the fluent form; in SQL see `test_metadata_columns_are_conditions`."""
    sql("CREATE TABLE t (id INT, `p %+ä` STRING) PARTITIONED BY (`p %+ä`)")
    sql("INSERT INTO t VALUES (1, 'a b%20+ä'), (2, 'a b%20+ä')")
    sql("INSERT INTO t VALUES (3, 'a b%20+ä')")
    path = sql("SELECT DISTINCT __paimon_file_path FROM t WHERE id = 1")[0][0]
    sql(f"SET {NATIVE_READS} = {str(native).lower()}")
    try:
        table = PaimonTable.forName(sql.spark, f"pm.{sql.database}.t")
        assert table.update(F.col("__paimon_file_path") == path, {"id": "id + 10"}).num_updated_rows == 2
        assert table.delete(F.col("__paimon_row_index") == 1).num_deleted_rows == 1
    finally:
        sql(f"RESET {NATIVE_READS}")
    assert [row[0] for row in sql("SELECT id FROM t ORDER BY id")] == [3, 11]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param("'bucket' = '-1'", marks=[pytest.mark.more, pytest.mark.versions]),
        pytest.param("'primary-key' = 'id', 'bucket' = '1', 'write-only' = 'true'", marks=pytest.mark.more),
        pytest.param("'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true'", marks=pytest.mark.more),
    ],
)
def test_metadata_columns_are_conditions(sql, options):
    """Of all that a query can name, the statement reads what it uses: rows that are merged have a bucket, no file."""
    sql(f"CREATE TABLE t (id INT NOT NULL, v STRING) TBLPROPERTIES ({options})")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    sql("INSERT INTO t VALUES (3, 'c'), (4, 'd')")
    assert sql("UPDATE t SET v = concat('in ', __paimon_bucket) WHERE __paimon_bucket >= 0 AND id = 1") == [(1,)]
    assert sql("""MERGE INTO t USING t s ON t.id = s.id AND t.__paimon_bucket = s.__paimon_bucket
        WHEN MATCHED AND t.__paimon_bucket = 0 AND s.id = 2 THEN UPDATE SET v = 'two'
        WHEN NOT MATCHED THEN INSERT *""") == [(1, 1, 0, 0)]
    if "true" not in options:
        assert sql("DELETE FROM t WHERE __paimon_file_path LIKE '%parquet' AND __paimon_row_index = 1 AND id > 3") != []
    assert [row[1] for row in sql("SELECT * FROM t WHERE id < 4 ORDER BY id")] == ["in 0", "two", "c"]
    for statement in (
        "UPDATE t SET __paimon_bucket = 1",
        """MERGE INTO t USING t s ON t.id = s.id AND t.__paimon_bucket = 9
            WHEN NOT MATCHED THEN INSERT (id, __paimon_bucket) VALUES (1, 1)""",
    ):
        with pytest.raises(UnsupportedOperationException, match="__paimon_bucket cannot be given a value"):
            sql(statement)


def test_no_row_group_is_left_out_by_floats(spark, catalog_name, tmp_path):
    """Files of other writers: bounds without NaN, and a bloom filter that knows -0.0 only."""
    pq.write_table(pa.table({"d": [1.0, float("nan")]}), tmp_path / "nan.parquet")
    pq.write_table(pa.table({"d": [-0.0]}), tmp_path / "zero.parquet", bloom_filter_options={"d": True})
    sizes = {f"file:{path}": path.stat().st_size for path in tmp_path.glob("*.parquet")}

    class AllFiles(FilesEndpoint):
        def matching(self, trees):
            return json.dumps(list(sizes))

    files = NativeFiles("parquet", sizes, len(sizes))
    frame = native_frame(Jvm(spark), files, [DataField(0, "d", DOUBLE)], AllFiles())
    assert frame.where("d > 100").count() == 1
    assert frame.where("d = 0.0D").count() == 1


@pytest.mark.more
@pytest.mark.versions
def test_delete_of_whole_partitions_reads_no_row(sql):
    for number, (properties, drops) in enumerate(
        [
            ("'bucket' = '-1'", True),
            ("'deletion-vectors.enabled' = 'true'", True),
            ("'primary-key' = 'p,d,id', 'bucket' = '1'", True),
            ("'primary-key' = 'p,d,id', 'bucket' = '1', 'changelog-producer' = 'input'", False),
        ][: None if sql.spark.version >= "4.3" else 1]
    ):
        name = f"t{number}"
        sql(f"""CREATE TABLE {name} (id INT NOT NULL, p STRING, d DATE) PARTITIONED BY (p, d)
            TBLPROPERTIES ({properties})""")
        sql(f"""INSERT INTO {name} SELECT id, concat('p', id % 4), DATE'2026-01-01' + CAST(id % 3 AS INT)
            FROM range(24) AS r(id)""")
        sql(f"DELETE FROM {name} WHERE id = 1")
        path = sql(f"DESCRIBE EXTENDED {name}")
        table = Table.open(dict(row[:2] for row in path)["Location"])
        before = len(table.snapshots())
        plan = sql(f"EXPLAIN DELETE FROM {name} WHERE p = 'p1'")[0][0]
        assert "whole partitions are dropped unread" in plan
        assert sql(f"DELETE FROM {name} WHERE p = 'p1' AND d >= '2026-01-02'") == [(3,)]
        assert sql(f"DELETE FROM {name} WHERE p IN ('p2', 'p7')") == [(6,)]
        assert sql(f"DELETE FROM {name} WHERE p = 'p7'") == [(0,)]
        kinds = [snapshot.commit_kind for snapshot in table.snapshots()[before:]]
        assert ("OVERWRITE" in kinds) == drops
        assert sql(f"SELECT p, count(*) FROM {name} GROUP BY p ORDER BY p") == [("p0", 6), ("p1", 2), ("p3", 6)]
        assert "whole partitions are dropped unread" in sql(f"EXPLAIN DELETE FROM {name}")[0][0]
        assert sql(f"DELETE FROM {name}") == [(14,)]
        assert (table.snapshot().commit_kind == "OVERWRITE") == (number < 2)  # merged rows are not counted unread
        assert sql(f"SELECT * FROM {name}") == []


FILTERS = [
    "i = 5", "i != 5", "i < 5", "i >= 2.5", "i <=> 5", "i <=> NULL", "i IN (1, NULL)", "i NOT IN (1, 5)",
    "i IN (9, 2.5)",
    "NOT (i > 1 OR s = 'a')", "i IS NULL", "s IS NOT NULL AND i < 100000000000", "s LIKE 'a%'",
    "s LIKE '%\\%%'", "s > 'a' AND NOT s LIKE '%c%'", "s = 'it''s' OR `o.d``d` = 1", "b", "NOT b",
    "b = FALSE OR b IS NULL",
    "d = DATE '2026-01-02'", "d < DATE '1000-01-01'", "d IN (DATE '2026-01-02', DATE '9999-12-31')", "TRUE", "i = NULL",
]  # fmt: skip


@pytest.mark.more
def test_filters_of_engine_are_equal_to_their_columns(sql):
    sql("CREATE TABLE t (i INT, s STRING, b BOOLEAN, d DATE, `o.d``d` BIGINT, f DOUBLE)")
    sql("""INSERT INTO t VALUES (1, 'a', true, DATE'2026-01-02', 1, 0.0), (5, 'a%', false, DATE'0001-01-01', 2, 1.0),
        (NULL, NULL, NULL, NULL, NULL, NULL), (2, 'xbc', true, DATE'9999-12-31', 3, 2.0),
        (9, 'it''s', false, NULL, 4, 3.0)""")
    table = Table.open(dict(row[:2] for row in sql("DESCRIBE EXTENDED t"))["Location"])
    fields, rows = table.schema.fields, sql.spark.table("t")
    for text in FILTERS:
        column = filter_column(bind(parse_predicate(text), fields), fields)
        assert column is not None, text
        values = rows.where(column).toArrow().column("f").to_pylist()
        assert sorted(values, key=str) == sorted(table.to_arrow(filter=text).column("f").to_pylist(), key=str), text
    assert filter_column(bind(parse_predicate("f = 0"), fields), fields) is None  # the sign of zero


def test_text_filter_deletes_where_spark_reads_rows(sql, monkeypatch):
    sql("CREATE TABLE t (i INT, s STRING, f DOUBLE)")
    sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)")
    answers = []

    def noted(*arguments):
        answers.append(stored_rows(*arguments))
        return answers[-1]

    monkeypatch.setattr("paimon_spark.sql.writes.target_access.stored_rows", noted)
    table = PaimonTable.forName(sql.spark, f"pm.{sql.database}.t")
    assert table.delete("i = 1 OR s LIKE 'b%'").num_deleted_rows == 2
    assert len(answers) == 1
    assert answers[0] is not None
    assert table.delete("f = 3").num_deleted_rows == 1  # which Python reads
    assert (len(answers), sql("SELECT i FROM t")) == (1, [(4,)])


NESTED = "s STRUCT<a: INT, b: DATE>, l ARRAY<STRUCT<a: INT, b: DATE>>, m MAP<STRING, STRUCT<a: INT, b: DATE>>"


@pytest.mark.versions
def test_fields_of_structs_are_assigned_by_name(sql):
    """Neither INT nor DATE casts to the other, so an assignment by position fails."""
    sql(f"CREATE TABLE t (id INT, {NESTED})")
    sql("INSERT INTO t (id) VALUES (1), (2)")
    value = "named_struct('b', DATE '2020-01-02', 'a', 7)"
    assert sql(f"UPDATE t SET s = {value}, l = array({value}), m = map('k', {value}) WHERE id = 1") == [(1,)]
    source = f"(SELECT id, {value} AS s, array({value}) AS l, map('k', {value}) AS m FROM VALUES (2), (3) AS v(id)) s"
    merge = f"MERGE INTO t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET s = s.s, l = s.l, m = s.m"
    assert sql(f"{merge} WHEN NOT MATCHED THEN INSERT *") == [(2, 1, 0, 1)]
    part = (7, datetime.date(2020, 1, 2))
    assert sql("SELECT * FROM t ORDER BY id") == [(k, part, [part], {"k": part}) for k in (1, 2, 3)]
    for column, path, wrong in (
        ("s", "`s`.`b`", "named_struct('a', 7)"),
        ("l", "`l`.`element`.`b`", "array(named_struct('a', 7))"),
        ("m", "`m`.`value`.`b`", "map('k', named_struct('a', 7))"),
    ):
        for statement in (
            f"UPDATE t SET {column} = {wrong}",
            f"MERGE INTO t USING (SELECT 1 AS id, {wrong} AS {column}) s ON t.id = s.id "
            f"WHEN MATCHED THEN UPDATE SET {column} = s.{column}",
        ):
            with pytest.raises(AnalysisException, match=f"Cannot find data for the output column {path}"):
                sql(statement)


@pytest.mark.more
def test_structs_of_schema_that_grows_are_assigned_by_name(sql):
    sql(f"CREATE TABLE t (id INT, {NESTED})")
    sql("INSERT INTO t (id) VALUES (1)")
    value = "named_struct('c', 'x', 'b', DATE '2020-01-02', 'a', 7)"
    source = f"(SELECT 1 AS id, {value} AS s, array({value}) AS l, map('k', {value}) AS m) s"
    sql(f"""MERGE WITH SCHEMA EVOLUTION INTO t USING {source} ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET s = s.s, l = s.l, m = s.m""")
    part = (7, datetime.date(2020, 1, 2), "x")
    assert sql("SELECT * FROM t") == [(1, part, [part], {"k": part})]


@pytest.fixture
def calls(monkeypatch):
    """A function that counts the calls of Java, without the releases of objects, while another one runs."""
    sent = []
    send = ClientServerConnection.send_command

    def counted(self, command):
        if not command.startswith("m\nd\n"):
            sent.append(command)
        return send(self, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", counted)

    def count(run):
        sent.clear()
        run()
        return len(sent)

    return count


def statements(sql, name, source):
    """Statements on a table with the columns of a source, each as a function."""
    table = PaimonTable.forName(sql.spark, f"pm.{sql.database}.{name}").alias("t")
    merge = f"MERGE INTO {name} t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET"
    fluent = table.merge(sql.spark.table(source).alias("s"), "t.id = s.id")
    return {
        "UPDATE": lambda: sql(f"UPDATE {name} SET c1 = 7 WHERE id = 1"),
        "MERGE": lambda: sql(f"{merge} c1 = s.c1"),
        "MERGE *": lambda: sql(f"{merge} * WHEN NOT MATCHED THEN INSERT *"),
        "DELETE": lambda: sql(f"DELETE FROM {name} WHERE id = 2"),
        "update": lambda: table.update("id = 1", {"c1": "8"}),
        "merge": lambda: fluent.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(),
        "delete": lambda: table.delete("id = 1"),
    }


CALLS = [
    pytest.param("'primary-key' = 'id', 'bucket' = '1'", "", id="keys", marks=pytest.mark.more),
    pytest.param("'bucket' = '-1'", "", id="append", marks=pytest.mark.slow),
    pytest.param("'primary-key' = 'id', 'bucket' = '1'", "tasks", id="keys, tasks", marks=pytest.mark.slow),
    pytest.param("'deletion-vectors.enabled' = 'true'", "tasks", id="vectors, tasks", marks=pytest.mark.more),
]


@pytest.mark.parametrize(("options", "writer"), CALLS)
def test_calls_of_java_do_not_grow_with_columns(sql, calls, monkeypatch, options, writer):
    if writer:
        monkeypatch.setattr("paimon_spark.sql.writes.target_access.few_changes", lambda rows: None)
    counts = {}
    for name, columns in (("warm", 2), ("narrow", 4), ("wide", 64)):
        values = ", ".join(f"id AS c{n}" for n in range(columns))
        types = ", ".join(f"c{n} INT" for n in range(columns))
        sql(f"CREATE TABLE {name} (id INT NOT NULL, {types}) TBLPROPERTIES ({options})")
        sql(f"INSERT INTO {name} SELECT id, {values} FROM VALUES (1), (2) AS v(id)")
        sql.spark.sql(f"SELECT id, {values} FROM VALUES (1), (3) AS v(id)").createOrReplaceTempView("source")
        counts[name] = {kind: calls(run) for kind, run in statements(sql, name, "source").items()}
        assert [row[0] for row in sql(f"SELECT id FROM {name}")] == [3]
    more = {kind: counts["wide"][kind] - counts["narrow"][kind] for kind in counts["wide"]}
    assert max(more.values()) < 10, counts
