"""DELETE, UPDATE and MERGE on tables with deletion vectors: Spark's own scan and Python read the same rows."""

import pytest
from pyspark.sql import functions as F

from paimon_spark import PaimonTable
from paimon_spark.sql.reads import native_rows
from paimon_spark.sql.session_options import MASK_MEMORY, NATIVE_READS
from paimon_spark.sql.writes import few_rows

VECTORS = "'deletion-vectors.enabled' = 'true'"
MASKED = "with deleted rows masked"
STATEMENTS = (
    "DELETE FROM {t} WHERE id % 7 = 1",
    "UPDATE {t} SET v = concat(v, '!'), n = 60 DIV (id % 7 - 1) WHERE 60 DIV (id % 7 - 1) > 50 OR n IS NULL",
    """MERGE INTO {t} t USING (SELECT id, CAST(id AS STRING) AS v FROM range(54, 64, 1, 1)) s ON t.id = s.id
        WHEN MATCHED AND t.id = 59 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v
        WHEN NOT MATCHED THEN INSERT (id, p, v) VALUES (s.id, s.id % 2, s.v)""",
    "DELETE FROM {t} WHERE v IS NULL AND id IN (SELECT id FROM {t} WHERE id > 20)",
    "UPDATE {t} SET added = 5 WHERE id >= 58",
    "DELETE FROM {t} WHERE added IS NULL AND p = 1 AND id < 10",
)
"""Changes of a table. The condition of UPDATE fails for the rows that the first statement deletes."""


def explained(sql, statement):
    return sql(f"EXPLAIN {statement}")[0][0]


def create(sql, table, options):
    sql(f"""CREATE TABLE {table} (id BIGINT NOT NULL, p BIGINT NOT NULL, v STRING, n BIGINT) PARTITIONED BY (p)
        TBLPROPERTIES ({options})""")
    rows = "SELECT id, id % 2, if(id % 5 = 0, NULL, 'v' || id), if(id % 9 = 0, NULL, id) FROM range(60)"
    sql(f"INSERT INTO {table} {rows}")
    sql(f"ALTER TABLE {table} ADD COLUMN added INT")


def changed(sql, table, native, statements):
    """Run statements; return their results and the rows of the table."""
    sql(f"SET {NATIVE_READS} = {str(native).lower()}")
    try:
        counts = [sql(statement.format(t=table)) for statement in statements]
        plan = explained(sql, f"DELETE FROM {table} WHERE id >= 0")
        assert (" native: " in plan) == native, plan
    finally:
        sql(f"RESET {NATIVE_READS}")
    return counts, sorted(map(repr, sql(f"SELECT * FROM {table}")))


def check_same(sql, options, statements):
    """Check that Spark's own scan and Python read the same rows for statements."""
    results = []
    for native in (True, False):
        create(sql, f"t{native}", options)
        results.append(changed(sql, f"t{native}", native, statements))
    assert results[0] == results[1]


@pytest.mark.more
def test_changes_of_masked_rows_equal_those_through_python(sql):
    check_same(sql, VECTORS, STATEMENTS[:2])
    assert MASKED in explained(sql, "DELETE FROM tTrue WHERE id >= 0")


@pytest.mark.more
@pytest.mark.parametrize(
    "options",
    ["'primary-key' = 'p,id', 'bucket' = '1'", "'bucket' = '2', 'bucket-key' = 'id'"],
)
def test_all_changes_of_masked_rows_equal_those_through_python(sql, options):
    check_same(sql, f"{VECTORS}, {options}", STATEMENTS)


@pytest.mark.more
def test_tasks_write_many_changes_of_masked_rows(sql, monkeypatch):
    monkeypatch.setattr(few_rows, "MOST_CHANGES", -1)
    check_same(sql, VECTORS, STATEMENTS[:4])


@pytest.mark.more
@pytest.mark.parametrize(
    ("most_newer", "reader"),
    [(100, f"{MASKED}, and 2 newer rows through Python"), (-1, "with superseded rows masked")],
)
def test_newer_rows_replace_masked_rows(sql, monkeypatch, most_newer, reader):
    """Rows of level 0 over levels with deletion vectors, which no compaction has seen."""
    monkeypatch.setattr("paimon_core.scan.base_run.MOST_NEWER_ROWS", most_newer)
    monkeypatch.setattr("paimon_core.scan.base_run.LEAST_BASE", 0)
    results = []
    for native in (True, False):
        table = f"t{native}"
        create(sql, table, f"{VECTORS}, 'primary-key' = 'p,id', 'bucket' = '1'")
        sql(f"DELETE FROM {table} WHERE id < 3")
        sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write-only' = 'true')")
        sql(f"INSERT INTO {table} VALUES (2, 0, 'back', 2, 1), (4, 0, 'new', 4, 1)")
        sql(f"SET {NATIVE_READS} = {str(native).lower()}")
        plan = explained(sql, f"DELETE FROM {table} WHERE id >= 0")
        assert (reader in plan) == native, plan
        counts = sql(f"UPDATE {table} SET v = concat(v, '?') WHERE id < 5") + sql(f"DELETE FROM {table} WHERE id = 3")
        sql(f"RESET {NATIVE_READS}")
        sql(f"CALL sys.compact(table => '{table}')")
        results.append((counts, sorted(map(repr, sql(f"SELECT * FROM {table}")))))
    assert results[0] == results[1]
    assert results[0][0] == [(3,), (1,)]


@pytest.mark.more
def test_positions_of_masked_rows_are_conditions(sql):
    create(sql, "t", VECTORS)
    sql("DELETE FROM t WHERE id IN (0, 2)")
    path = sql("SELECT DISTINCT __paimon_file_path FROM t WHERE id = 4")[0][0]
    table = PaimonTable.forName(sql.spark, f"pm.{sql.database}.t")
    condition = (F.col("__paimon_file_path") == path) & (F.col("__paimon_row_index") < 3)
    assert table.delete(condition).num_deleted_rows == 1
    assert sql("SELECT min(id) FROM t WHERE p = 0") == [(6,)]


@pytest.mark.more
def test_masks_beyond_memory_are_left_to_python(sql):
    create(sql, "t", VECTORS)
    sql("DELETE FROM t WHERE id = 1")
    sql.spark.conf.set(MASK_MEMORY, "1b")
    try:
        assert f"exceed {MASK_MEMORY}" in explained(sql, "DELETE FROM t WHERE id >= 0")
        assert sql("DELETE FROM t WHERE id < 3") == [(2,)]
    finally:
        sql.spark.conf.unset(MASK_MEMORY)
    sql("ALTER TABLE t ADD COLUMN __paimon_masked_file INT")
    assert "a column is called __paimon_masked_file" in explained(sql, "DELETE FROM t WHERE id >= 0")
    assert sql("UPDATE t SET __paimon_masked_file = 1 WHERE id < 5") == [(2,)]


@pytest.mark.more
def test_explanation_names_merge_beyond_memory(sql, monkeypatch):
    monkeypatch.setattr(native_rows, "base_run", lambda store, plan: None)
    create(sql, "t", "'primary-key' = 'p,id', 'bucket' = '1', 'write-only' = 'true'")
    sql("UPDATE t SET v = 'x' WHERE id = 4")
    sql.spark.conf.set(MASK_MEMORY, "1b")
    try:
        assert "2 files of bucket 0 are merged, and their masks of" in explained(sql, "DELETE FROM t WHERE id >= 0")
        assert sql("DELETE FROM t WHERE v = 'x'") == [(1,)]
    finally:
        sql.spark.conf.unset(MASK_MEMORY)


@pytest.mark.more
def test_missing_vector_is_an_error(sql, monkeypatch):
    create(sql, "t", VECTORS)
    sql("DELETE FROM t WHERE id = 1")

    def fails(*_):
        raise OSError("no vectors")

    monkeypatch.setattr(native_rows, "read_masks", fails)
    with pytest.raises(Exception, match="no vectors"):
        sql("DELETE FROM t WHERE id = 2")
