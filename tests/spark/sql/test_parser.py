"""The parser and the rule over Spark's: our statements, Spark's texts unchanged, and which session has them."""

import re

import pytest
from pyspark.errors import AnalysisException, ParseException

import paimon_spark
from paimon_core.maintenance.analyze import read_statistics
from paimon_core.table import Table
from paimon_spark.sql.tokens import Cursor, tokens_of

HOSTILE = [
    "SELECT 'ALTER TABLE t CREATE TAG x' AS a",
    "-- ALTER TABLE t CREATE TAG x\nSELECT 1",
    "/* SHOW /* TAGS */ t */ SELECT `SHOW TAGS` FROM VALUES (1) AS s(`SHOW TAGS`)",
    "ALTER TABLE t SET TBLPROPERTIES ('tag' = 'DELETE TAG x')",
    "ALTER TABLE t ADD COLUMN tag INT",
    "SHOW TABLES LIKE 'tags'",
]


def parsers(spark):
    """The parser of a session, and Spark's under it."""
    laid_over = spark._jsparkSession.sessionState().sqlParser()
    field = laid_over.getClass().getDeclaredField("spark")
    field.setAccessible(True)
    return laid_over, field.get(laid_over)


@pytest.mark.versions
def test_tags_in_sql(sql):
    sql("CREATE TABLE t (a INT)")
    sql("INSERT INTO t VALUES (1)")
    sql("INSERT INTO t VALUES (2)")
    sql("/* a comment */ alter table t CREATE TAG first AS OF VERSION 1 RETAIN 3 DAYS")
    sql("ALTER TABLE t CREATE TAG IF NOT EXISTS first")
    sql(f"ALTER TABLE pm.{sql.database}.t CREATE OR REPLACE TAG `2-nd` -- a comment\n;")
    assert sql("SHOW TAGS t") == [("first",), ("2-nd",)]
    assert sql("SELECT * FROM t VERSION AS OF 'first'") == [(1,)]
    sql("ALTER TABLE t REPLACE TAG first")
    assert sql("SELECT count(*) FROM t VERSION AS OF 'first'") == [(2,)]
    sql("ALTER TABLE t RENAME TAG first TO other")
    sql("ALTER TABLE t DELETE TAG `2-nd`")
    sql("ALTER TABLE t DELETE TAG IF EXISTS `2-nd`")
    assert sql("SHOW TAGS t") == [("other",)]
    with pytest.raises(Exception, match=r"tag 'nope' .* does not exist; there are other"):
        sql("ALTER TABLE t DELETE TAG nope")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("SHOW TAGS nope")
    with pytest.raises(ParseException, match=r"(?s)PARSE_SYNTAX_ERROR.*near 'x'.*line 2, pos 9"):
        sql("ALTER TABLE t CREATE TAG q AS OF\n VERSION x")


@pytest.mark.versions
@pytest.mark.parametrize("text", HOSTILE)
def test_texts_that_are_not_ours_get_sparks_plan(sql, text):
    laid_over, below = parsers(sql.spark)
    plans = [re.sub(r"#\d+", "", parser.parsePlan(text).toString()) for parser in (laid_over, below)]
    assert plans[0] == plans[1]


def test_spark_reports_syntax_errors_in_its_own_texts(sql):
    with pytest.raises(ParseException, match=r"(?s)near 'selec'.*line 1, pos 0"):
        sql("selec 1")
    sql.spark.catalog.setCurrentCatalog("spark_catalog")
    with pytest.raises(ParseException, match="near 'CREATE'"):  # of a table that is not ours
        sql("ALTER TABLE default.t CREATE TAG x")


@pytest.mark.versions
def test_statements_on_rows_are_analysed_by_spark(sql):
    sql("CREATE TABLE t (a INT NOT NULL, b STRING, n STRUCT<x: INT, y: INT>)")
    plan = sql("EXPLAIN UPDATE t SET n.x = 5, b = DEFAULT WHERE a IN (SELECT 1)")[0][0]
    assert f"Execute Paimon UPDATE pm.{sql.database}.t: files that hold changed rows are written again" in plan
    assert "named_struct(x, 5" in plan
    source = "USING (SELECT 1 AS a, 'x' AS b) s ON t.a = s.a"
    for statement, message in [
        ("UPDATE t SET nope = 1", "UNRESOLVED_COLUMN.*line 1 pos 13"),
        ("DELETE FROM t WHERE nope = 1", "UNRESOLVED_COLUMN.*line 1 pos 20"),
        ("UPDATE t SET a = 'x'", "CANNOT_SAFELY_CAST"),
        ("UPDATE t SET b = count(*)", "UNSUPPORTED_EXPR_FOR_OPERATOR"),
        ("DELETE FROM t WHERE rand() < 0.5", "NON_DETERMINISTIC"),
        (f"MERGE INTO t {source} WHEN MATCHED THEN UPDATE SET a = s.b", "CANNOT_SAFELY_CAST"),
        (f"MERGE INTO t {source} WHEN NOT MATCHED THEN INSERT (b) VALUES (s.b)", "No assignment for 'a'"),
        ("DELETE FROM nope", "TABLE_OR_VIEW_NOT_FOUND"),
    ]:
        with pytest.raises(AnalysisException, match=f"(?s){message}"):
            sql(statement)


@pytest.mark.more
def test_each_session_has_one_parser(sql, tmp_path):
    sql("CREATE TABLE t (a INT)")
    name = f"pm.{sql.database}.t"
    paimon_spark.catalog(sql.spark, "pm_again", warehouse=str(tmp_path))
    for session in (sql.spark, sql.spark.newSession()):
        laid_over, below = parsers(session)
        assert [laid_over.getClass().getSimpleName(), below.getClass().getSimpleName()] == [
            "PaimonParser",
            "SparkSqlParser",
        ]
        assert session.sql(f"SHOW TAGS {name}").collect() == []
        assert "Execute Paimon DELETE" in session.sql(f"EXPLAIN DELETE FROM {name} WHERE a = 1").collect()[0][0]


def test_words_of_a_text():
    text = "a.`b``c` -- 'x'\n /* /* ' */ \" */ 'it''s' \"d\\n\" r'\\n' 12 => t1;"
    assert [(token.kind, token.value) for token in tokens_of(text)] == [
        ("name", "a"),
        ("sign", "."),
        ("quoted", "b`c"),
        ("string", "it's"),
        ("string", "d\n"),
        ("string", "\\n"),
        ("number", "12"),
        ("sign", "=>"),
        ("name", "t1"),
        ("end", ""),
    ]
    assert Cursor("/* never closed").next.kind == "end"


@pytest.mark.more
def test_analyze_makes_statistics_that_spark_reads(sql):
    sql("CREATE TABLE t (id INT, s STRING, p INT) PARTITIONED BY (p)")
    sql("ANALYZE TABLE t COMPUTE STATISTICS")  # there is no snapshot
    sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'bcd', 1), (2, NULL, 2)")
    sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS Id, s")
    path = sql("SHOW CREATE TABLE t")[0][0].split("LOCATION '")[1].split("'")[0]
    table = Table.open(path)
    found = read_statistics(table.store, table.snapshot())
    assert (table.snapshot().commit_kind, found.record_count) == ("ANALYZE", 3)
    assert {name: column.distinct_count for name, column in found.columns.items()} == {"id": 2, "s": 2}
    sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
    assert list(read_statistics(table.store, table.snapshot()).columns) == ["id", "s", "p"]
    assert sql("SELECT count(*) FROM t") == [(3,)]
    for refused in ("t COMPUTE STATISTICS NOSCAN", "t PARTITION (p = 1) COMPUTE STATISTICS"):
        with pytest.raises(Exception, match=r"ANALYZE TABLE \.\.\. (NOSCAN|PARTITION) is not possible"):
            sql(f"ANALYZE TABLE {refused}")
    with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
        sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS id,")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("ANALYZE TABLE nope COMPUTE STATISTICS")
