"""Columns that a statement adds to its rows have names that neither the table nor the source has."""

import pytest
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import functions as F

from paimon_spark import PaimonTable

NAMES = ["__paimon_target", "__paimon_SOURCE", "__paimon_action", "__paimon_number", "__paimon_0_0", "__paimon_1_0"]
NAMES += ["__paimon_0", "__paimon_task", "__paimon_adds", "__paimon_key0", "c0", "number", "matches", "action", "nth"]
TABLES = [
    pytest.param("'bucket' = '-1'", id="append"),
    pytest.param("'primary-key' = 'id', 'bucket' = '2'", id="keys", marks=pytest.mark.more),
    pytest.param("'primary-key' = 'id'", id="keys, dynamic", marks=pytest.mark.more),
    pytest.param("'row-tracking.enabled' = 'true'", id="tracked", marks=pytest.mark.more),
    pytest.param(
        "'row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true'", id="evolution", marks=pytest.mark.more
    ),
]


def values(first):
    return ", ".join(str((first + n) % 2 == 0).upper() for n in range(len(NAMES)))


@pytest.mark.parametrize("writer", ["driver", pytest.param("tasks", marks=pytest.mark.more)])
@pytest.mark.parametrize("options", TABLES)
@pytest.mark.more
def test_statements_change_rows_that_match(sql, monkeypatch, options, writer):
    if writer == "tasks":
        monkeypatch.setattr("paimon_spark.sql.writes.target_access.few_changes", lambda rows: None)
    columns = ", ".join(f"`{name}` BOOLEAN" for name in NAMES)
    sql(f"CREATE TABLE t (id INT NOT NULL, {columns}) TBLPROPERTIES ({options})")
    sql(f"INSERT INTO t VALUES (1, {values(0)}), (2, {values(1)}), (3, {values(0)})")
    names = ", ".join(f"`{name}`" for name in NAMES)
    source = f"(SELECT * FROM VALUES (2, {values(0)}), (9, {values(1)}) AS v(id, {names})) s"
    expected = {k: [(first + n) % 2 == 0 for n in range(len(NAMES))] for k, first in ((1, 0), (2, 1), (3, 0))}

    def check():
        assert {row[0]: list(row[1:]) for row in sql("SELECT * FROM t")} == expected

    assert sql("UPDATE t SET `__paimon_target` = NOT `__paimon_target`, c0 = NULL WHERE id = 2") == [(1,)]
    expected[2][NAMES.index("__paimon_target")], expected[2][NAMES.index("c0")] = True, None
    check()
    merge = f"MERGE INTO t USING {source} ON t.id = s.id WHEN MATCHED AND s.c0 IS NOT NULL THEN UPDATE SET"
    assert sql(f"{merge} * WHEN NOT MATCHED THEN INSERT *") == [(2, 1, 0, 1)]
    for key, first in ((2, 0), (9, 1)):
        expected[key] = [(first + n) % 2 == 0 for n in range(len(NAMES))]
    check()
    again = PaimonTable.forName(sql.spark, f"pm.{sql.database}.t").alias("t")
    rows = sql.spark.sql(f"SELECT * FROM VALUES (2, {values(1)}) AS v(id, {names})").alias("s")
    again.merge(rows, "t.id = s.id").whenMatchedUpdateAll().execute()
    expected[2] = [(1 + n) % 2 == 0 for n in range(len(NAMES))]
    again.update("id = 3", {"__paimon_number": "c0"})
    expected[3][NAMES.index("__paimon_number")] = expected[3][NAMES.index("c0")]
    check()
    if "evolution" not in options:
        assert sql("DELETE FROM t WHERE NOT `__paimon_target` AND id < 9") == [(1,)]
        del expected[2]
        check()


@pytest.mark.parametrize("name", ["RowKind", "__Paimon_Row_Index"])
def test_column_that_hides_added_column_is_refused(sql, name):
    sql(f"CREATE TABLE t (id INT, `{name}` STRING)")
    sql("INSERT INTO t VALUES (1, 'a')")
    for statement in ("UPDATE t SET id = 2", "DELETE FROM t WHERE id + 1 = 2"):
        with pytest.raises(
            UnsupportedOperationException, match=f"its columns {name} have the names of metadata columns"
        ):
            sql(statement)


@pytest.mark.more
def test_replaced_rows_keep_columns_with_prefix_of_shuffle_column(sql):
    sql("""CREATE TABLE t (id INT NOT NULL, `__paimon_taskforce` STRING)
        TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')""")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    rows = sql.spark.sql("SELECT 3 AS id, 'a' AS `__paimon_taskforce`")
    rows.writeTo("t").overwrite(F.col("__paimon_taskforce") == "a")
    assert sql("SELECT * FROM t ORDER BY id") == [(2, "b"), (3, "a")]
