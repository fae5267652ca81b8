"""Rows stay the same until the first commit after a change of an option that decides how they are read."""

import pytest

from paimon_core import SetOption, Table
from paimon_spark.sql.reads import driver_rows
from paimon_spark.sql.session_options import NATIVE_READS
from tests.spark.sql.test_masks import location

SUM = "'merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum'"
PARTIAL = "'merge-engine' = 'partial-update'"
CHANGES = {
    "looked up sums": (SUM, "changelog-producer", "lookup"),
    "sums no longer looked up": (f"{SUM}, 'changelog-producer' = 'lookup'", "changelog-producer", "none"),
    "vectors of parts": (PARTIAL, "deletion-vectors.enabled", "true"),
    "no vectors": ("'deletion-vectors.enabled' = 'true'", "deletion-vectors.enabled", "false"),
    "ignored deletes": ("'merge-engine' = 'deduplicate'", "ignore-delete", "true"),
}
QUERIES = (
    "SELECT * FROM {} ORDER BY id",
    "SELECT count(*), sum(n), min(id) FROM {}",
    "SELECT * FROM {} WHERE id IN (2, 9, 10) ORDER BY id",
    "SELECT n, s FROM {} WHERE n > 1 ORDER BY id",
    "SELECT id FROM {} ORDER BY id DESC LIMIT 3",
)


@pytest.mark.cases(2)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("native", ["true", "false"])
def test_rows_before_next_commit_and_at_tag(sql, monkeypatch, change, native):
    monkeypatch.setattr(driver_rows, "MOST_ROWS", -1)
    options, key, value = CHANGES[change]
    sql(
        "CREATE TABLE t (id INT NOT NULL, n BIGINT, s STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', "
        f"'num-sorted-run.compaction-trigger' = '3', 'deletion-vectors.modifiable' = 'true', {options})"
    )
    sql("INSERT INTO t SELECT CAST(id AS INT), 1, 'a' FROM range(3000)")
    sql("CALL sys.compact(table => 't', compact_strategy => 'full')")
    for number in range(7):
        sql(f"INSERT INTO t SELECT CAST(id AS INT), {number}, 'b' FROM range({number}, {number + 8})")
    if "merge-engine' = 'a" not in options and "partial" not in options:
        sql("DELETE FROM t WHERE id = 9")
    sql("CALL sys.create_tag(table => 't', tag => 'v')")
    before = answers(sql, "t", "t VERSION AS OF 'v'")
    with pytest.raises(Exception, match=rf"'{key}' cannot be .*sys\.compact"):
        sql(f"ALTER TABLE t SET TBLPROPERTIES ('{key}' = '{value}')")
    table = Table.open(location(sql, "t"))
    table.store.alter([SetOption(key, value)])  # as another engine does
    sql("REFRESH TABLE t")
    sql(f"SET {NATIVE_READS} = {native}")
    try:
        sql.spark.read.format("paimon").load(table.path).createOrReplaceTempView("by_path")
        assert answers(sql, "t", "t VERSION AS OF 'v'") == before
        assert answers(sql, "by_path") == before[:1]
    finally:
        sql(f"RESET {NATIVE_READS}")


REPLACEMENTS = {
    "sums": (SUM, "(id INT NOT NULL, n BIGINT, s STRING) TBLPROPERTIES ('primary-key' = 'id')"),
    "parts": (PARTIAL, "AS SELECT 7 AS id, 'x' AS n"),
    "rows in order": (
        "'sequence.field' = 'n'",
        f"(id INT NOT NULL, n BIGINT, s STRING) TBLPROPERTIES ('primary-key' = 'id', {SUM})",
    ),
    "directories of partitions": (
        "'partition.default-name' = 'none'",
        "(id INT NOT NULL, n BIGINT, s STRING) PARTITIONED BY (s) TBLPROPERTIES ('partition.default-name' = 'null')",
    ),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize("native", ["true", "false"])
@pytest.mark.parametrize("old", REPLACEMENTS)
def test_rows_before_replacement_are_read_with_options_of_then(sql, old, native):
    options, new = REPLACEMENTS[old]
    key, by = ("", "PARTITIONED BY (s)") if "partition" in options else ("'primary-key' = 'id', 'bucket' = '1', ", "")
    sql(f"CREATE TABLE t (id INT NOT NULL, n BIGINT, s STRING) {by} TBLPROPERTIES ({key}{options})")
    sql("INSERT INTO t VALUES (1, 5, NULL), (2, 5, 'a')")
    sql("INSERT INTO t VALUES (1, 3, 'b'), (2, NULL, NULL)")
    sql("CALL sys.create_tag(table => 't', tag => 'v')")
    queries = ("SELECT * FROM t {} ORDER BY id, n, s", "SELECT count(*), sum(n), max(s) FROM t {}")
    before = [sql(query.format("")) for query in queries]
    sql(f"CREATE OR REPLACE TABLE t {new}")
    if "AS SELECT" not in new:
        sql("INSERT INTO t VALUES (9, 9, 'z')")
    sql(f"SET {NATIVE_READS} = {native}")
    try:
        for version in ("VERSION AS OF 2", "VERSION AS OF 'v'"):
            assert [sql(query.format(version)) for query in queries] == before
    finally:
        sql(f"RESET {NATIVE_READS}")
    assert sql("SELECT count(*) FROM t") == [(1,)]


@pytest.mark.parametrize(
    "options", ["", "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"], ids=["append", "keyed"]
)
def test_changes_before_replacement_are_refused(sql, options):
    """They are rows of other columns: the columns of the same names would be NULL."""
    create = f"TABLE t (id INT, n INT) {options}" if not options else f"TABLE t (id INT NOT NULL, n INT) {options}"
    sql(f"CREATE {create}")
    sql("INSERT INTO t VALUES (1, 5)")
    sql("CALL sys.create_tag(table => 't', tag => 'v')")
    sql(f"CREATE OR REPLACE {create}")
    sql("INSERT INTO t VALUES (9, 9)")
    table = Table.open(location(sql, "t"))
    first, last = table.tags.get("v").snapshot.id, table.snapshot().id
    for read in (
        lambda: table.changes(first - 1, last),
        lambda: table.changes(first, last, "diff"),
        lambda: [*table.with_options({"scan.snapshot-id": str(first)}).stream().to_batches()],
        lambda: table.restore("v"),
        lambda: sql(f"SELECT * FROM `t$audit_log` WITH ('incremental-between' = '{first - 1},{last}')"),
    ):
        with pytest.raises(Exception, match="was replaced: snapshot 1 has schema 0"):
            read()
    assert table.changes(last - 1, last).to_pylist() == [{"rowkind": "+I", "id": 9, "n": 9}]
    assert sql("SELECT * FROM t") == [(9, 9)]
    table.rollback_to(first)
    assert sql("SELECT * FROM t") == [(1, 5)]


def answers(sql, *tables):
    return [[sql(query.format(table)) for query in QUERIES] for table in tables]
