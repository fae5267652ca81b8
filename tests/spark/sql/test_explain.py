"""EXPLAIN in SQL, `PaimonTable.explain` and the command print one text, of the read that takes place."""

import json

import pytest
from click.testing import CliRunner

from paimon_command.main import command
from paimon_core.errors import UnsupportedError
from paimon_core.table import Table
from paimon_spark import PaimonTable
from paimon_spark.sql.session_options import NATIVE_READS

HEADING = "== Paimon Scans ==\n"
CONDITIONS = ("p = 'a' AND id < 3 AND n > 0", "p = 'b'", "id > 7")


def explained(sql, query, **parameters):
    """The explanations behind the plan of a query."""
    text = sql(query, **parameters)[0][0]
    return text.partition(HEADING)[2].split("\n\n") if HEADING in text else []


@pytest.fixture
def table(sql):
    """A table with three overlapping files in partition a, and one in b."""
    sql(
        "CREATE TABLE t (id INT NOT NULL, p STRING NOT NULL, n INT) PARTITIONED BY (p) "
        "TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '1', 'write-only' = 'true')"
    )
    for number in range(3):
        sql(f"INSERT INTO t VALUES (1, 'a', {number}), ({number + 2}, 'a', {number})")
    sql("INSERT INTO t VALUES (1, 'b', 7), (2, 'b', 8)")
    return PaimonTable.forName(sql.spark, f"pm.{sql.database}.t")


def run(*arguments):
    result = CliRunner().invoke(command, ["explain", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.versions
def test_all_doors_print_one_text(sql, table, monkeypatch):
    path = table._address.path
    for condition in CONDITIONS:
        (ours,) = explained(sql, f"EXPLAIN SELECT * FROM t WHERE {condition}")
        assert str(table.explain(filter=condition)) == ours
        of_the_engine = [line for line in ours.splitlines() if not line.startswith("read by: ")]
        assert str(Table.open(path).explain(filter=condition)).splitlines() == of_the_engine
        assert run(path, "--filter", condition).splitlines() == of_the_engine
    with monkeypatch.context() as patched:  # the session of the tests goes on when the command ends
        patched.setattr(type(sql.spark), "stop", lambda spark: None)
        printed = run(path, "--filter", CONDITIONS[0], "--snapshot-id", "2", "--spark", "local[2,3]", "--json")
    assert json.loads(printed) == json.loads(
        json.dumps(PaimonTable.forPath(sql.spark, path, versionAsOf="2").explain(filter=CONDITIONS[0]).to_dict())
    )


@pytest.mark.more
def test_explanation_names_reader_and_reason(sql, table):
    (native,) = explained(sql, "EXPLAIN SELECT * FROM t WHERE p = 'b'")
    assert "read by: native: 1 of 1 Parquet files" in native
    (merged,) = explained(sql, "EXPLAIN SELECT * FROM t")
    assert "read by: in the driver: 8 rows of 4 files; 3 files of bucket 0 are merged" in merged
    sql.spark.conf.set(NATIVE_READS, "false")
    try:
        (off,) = explained(sql, "EXPLAIN SELECT * FROM t WHERE p = 'b'")
        assert f"read by: through Python: {NATIVE_READS} is off" in off
    finally:
        sql.spark.conf.unset(NATIVE_READS)


def test_every_scan_of_statement_is_explained(sql, table):
    assert len(explained(sql, "EXPLAIN SELECT * FROM t a JOIN t b ON a.id = b.n WHERE a.p = 'a' AND b.p = 'b'")) == 2
    assert len(explained(sql, "EXPLAIN SELECT * FROM t a JOIN t b ON a.id = b.id")) == 1  # they are equal
    assert len(explained(sql, "EXPLAIN SELECT * FROM t WHERE n > (SELECT max(id) FROM t WHERE n < 9)")) == 2
    assert len(explained(sql, "EXPLAIN INSERT INTO t SELECT * FROM t WHERE n > 3")) == 1
    (bound,) = explained(sql, "EXPLAIN SELECT * FROM t WHERE id = :one", args={"one": 1})
    assert "\nfilter: id = 1\n" in bound
    (old,) = explained(sql, "EXPLAIN FORMATTED SELECT id FROM t VERSION AS OF 1")
    assert ": snapshot 1, schema 0, merge engine deduplicate\ncolumns: id\n" in old
    (few,) = explained(sql, "EXPLAIN SELECT * FROM t WHERE p = 'b' LIMIT 1")
    assert "\n  limit " in few
    assert explained(sql, "EXPLAIN SELECT 1") == []
    assert explained(sql, "EXPLAIN SELECT * FROM `t$files`") == []
    assert "there_is_none" in str(sql("EXPLAIN SELECT * FROM there_is_none"))
    (chosen,) = explained(sql, "EXPLAIN SELECT * FROM t WITH ('scan.snapshot-id' = '1', 'filter' = 'n = 0')")
    assert ": snapshot 1, " in chosen
    assert "filter: n = 0\n" in chosen
    (changes,) = explained(sql, "EXPLAIN SELECT * FROM paimon_incremental_query('t', 1, 2)")
    assert "changes" in changes


def test_analyze_measures_read(sql, table):
    explanation = table.explain(filter=CONDITIONS[0], analyze=True)
    rows = table.toDF().where(CONDITIONS[0]).count()
    assert (explanation.executed.rows, explanation.executed.files) == (rows, explanation.totals.files)
    assert (explanation.executed.rows_stored, explanation.executed.rows_merged) == (6, 2)
    assert sum(split.executed.rows for split in explanation.splits) == rows
    small = PaimonTable.forPath(sql.spark, table._address.path, **{"source.split.target-size": "1 b"})
    for number in range(9):  # many splits are read by tasks of Spark
        sql(f"INSERT INTO t VALUES ({100 + number}, 'b', 1)")
    spread = small.explain(analyze=True)
    assert spread.totals.splits > 8
    assert spread.executed.rows == table.toDF().count()
    assert spread.executed.rows_merged == 2


def test_reads_of_changes_are_refused(sql, table):
    with pytest.raises(UnsupportedError, match="changes"):
        PaimonTable.forPath(sql.spark, table._address.path, **{"incremental-between": "1,2"}).explain()
