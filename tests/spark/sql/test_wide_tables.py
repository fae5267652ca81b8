"""Statements on a table of many columns index its columns a few times, and not once for each column."""

import pytest

from paimon_core.types import columns
from paimon_spark import PaimonTable
from paimon_spark.sql.session_options import NATIVE_READS

COLUMNS = 150
NAMES = [f"c{i}" for i in range(COLUMNS)]
MOST = 30
"""Indexes of columns in one statement: each of its steps may need some."""


@pytest.fixture
def indexes(monkeypatch):
    """Each index of columns that is made, by its number of columns."""
    made = []
    original = columns.ColumnNames.__init__

    def counted(self, names):
        names = list(names)
        made.append(len(names))
        original(self, names)

    monkeypatch.setattr(columns.ColumnNames, "__init__", counted)
    return made


@pytest.mark.more
@pytest.mark.parametrize("keyed", [False, True])
def test_statements_index_columns_few_times(sql, indexes, keyed):
    key = "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')" if keyed else ""
    sql(f"CREATE TABLE t (id INT NOT NULL, {', '.join(f'{n} INT' for n in NAMES)}) {key}")
    row = ", ".join(["id"] * COLUMNS)
    statements = [
        f"INSERT INTO t SELECT id, {row} FROM VALUES (1), (2), (3) AS v (id)",
        f"INSERT INTO t SELECT id, {row} FROM VALUES (4), (5) AS v (id)",
        "SELECT * FROM t",
        "SELECT * FROM t WHERE c3 = 2 AND c5 < 9",
        f"UPDATE t SET {', '.join(f'{n} = 7' for n in NAMES)} WHERE id = 1",
        f"MERGE INTO t USING (SELECT 2 AS id, {', '.join(f'5 AS {n}' for n in NAMES)}) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET *",
        "DELETE FROM t WHERE id = 3",
        "DESCRIBE TABLE EXTENDED t",
    ]
    counts = {}
    for statement in statements:
        indexes.clear()
        sql(statement)
        counts[statement[:40]] = sum(size > COLUMNS // 2 for size in indexes)
    indexes.clear()
    sql.spark.conf.set(NATIVE_READS, "false")
    try:
        assert sorted((row[0], row[4]) for row in sql("SELECT * FROM t")) == [(1, 7), (2, 5), (4, 4), (5, 5)]
    finally:
        sql.spark.conf.unset(NATIVE_READS)
    counts["through Python"] = sum(size > COLUMNS // 2 for size in indexes)
    indexes.clear()
    table = PaimonTable.forName(sql.spark, f"pm.{sql.database}.t")
    table.update("id = 4", dict.fromkeys(NAMES, "8"))
    counts["PaimonTable.update"] = sum(size > COLUMNS // 2 for size in indexes)
    assert {statement: count for statement, count in counts.items() if count > MOST} == {}
