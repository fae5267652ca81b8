"""The parser and the rule over Spark's: our statements, Spark's texts unchanged, and which session has them."""

import re

import pytest
from pyspark.errors import AnalysisException, ParseException

import paimon_spark
from paimon_core.operations.analyze import read_statistics
from paimon_core.table import Table
from paimon_spark.sql.statements.tokens import Cursor, tokens_of, with_settings

HOSTILE = [
    "SELECT 'ALTER TABLE t CREATE TAG x' AS a",
    "-- ALTER TABLE t CREATE TAG x\nSELECT 1",
    "/* SHOW /* TAGS */ t */ SELECT `SHOW TAGS` FROM VALUES (1) AS s(`SHOW TAGS`)",
    "ALTER TABLE t SET TBLPROPERTIES ('tag' = 'DELETE TAG x')",
    "ALTER TABLE t ADD COLUMN tag INT",
    "SHOW TABLES LIKE 'tags'",
    "ALTER TABLE t SET TBLPROPERTIES ('a' = r'\\', 'b' = 'CREATE TAG')",
    "-- EXPLAIN\\\nSHOW TAGS t\nSELECT 1",
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
    assert f"Execute Paimon UPDATE pm.{sql.database}.t: files with changed rows are rewritten" in plan
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


def test_words_of_text():
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
    strings = r"""'a\u0041\101\'b''c\%' r'\' R"\n" "it's" """
    assert [token.value for token in tokens_of(strings)] == ["aAA'b'c\\%", "\\", "\\n", "it's", ""]
    assert [token.value for token in tokens_of("-- c\\\n x\n y -- c\r z")] == ["y", "z", ""]


def test_texts_under_settings_of_spark_are_rewritten():
    text = r"""SHOW "t""q" 'a\n' 'it\'s' r'\n' "x`y";"""
    names = with_settings(text, double_quoted_names=True, plain_strings=False)
    assert names == r"""SHOW `t"q` 'a\n' 'it\'s' r'\n' `x``y`;"""
    plain = with_settings(text, double_quoted_names=False, plain_strings=True)
    assert [token.value for token in tokens_of(plain)] == ["SHOW", 't""q', "a\\n", "it\\'s", "\\n", "x`y", ""]


PLAIN = [  # each means the same on a table of Spark
    r"""INSERT INTO {t} VALUES (1, 'it\'s'), (2, r'a\n'), (3, 'x''y'), (4, "d""q"), (5, '-- no'), (6, '/* no */'),
        (7, ';'), (8, 'a\nb'), (9, 'CREATE TAG \u0041\101')""",
    "SELECT /* a /* nested */ b */ a -- end\n FROM {t} WHERE a = 1 -- last",
    "SELECT `a` FROM {t} AS `x.``y` WHERE `x.``y`.`a` = 1;",
    "INSERT INTO IDENTIFIER('{t}') VALUES (11, 'i')",
    "BEGIN DECLARE x INT DEFAULT 5; INSERT INTO {t} VALUES (x + 7, 'x;y'); SELECT count(*) AS c FROM {t}; END",
    "EXECUTE IMMEDIATE 'INSERT INTO {t} VALUES (13, ''q'')'",
    "EXECUTE IMMEDIATE 'SELECT count(*) FROM {t} WHERE a > ?' USING 3",
    "WITH c AS (SELECT 14 AS a, 'c' AS v) INSERT INTO {t} SELECT * FROM c",
    "FROM VALUES (15, 'f') AS s(a, v) INSERT INTO {t} SELECT a, v",
    "FROM {t} |> WHERE a > 3 |> AGGREGATE count(*)",
    "SELECT a, v, length(v) FROM {t} ORDER BY a",
]
CHANGES = [  # on rows, which Spark's tables cannot do: what counts is the text
    ("UPDATE t SET v = 'it''s; -- \\'x\\'' WHERE a = 1 -- c", (1,)),
    ("WITH c AS (SELECT 1 AS a, r'w\\' AS v) MERGE INTO t USING c ON t.a = c.a WHEN MATCHED THEN UPDATE SET *", None),
    ("WITH c AS (SELECT 2 AS a) DELETE FROM t WHERE a IN (SELECT a FROM c);", (1,)),
    ("WITH c AS (SELECT 3 AS a) UPDATE t SET v = 'cte' WHERE a IN (SELECT a FROM c)", (1,)),
    ("EXECUTE IMMEDIATE 'UPDATE t SET v = :v WHERE a = :a' USING 'named' AS v, 4 AS a", (1,)),
    (
        "EXECUTE IMMEDIATE 'MERGE INTO t USING (SELECT ? AS a, ''e'' AS v) s ON t.a = s.a WHEN MATCHED THEN UPDATE "
        "SET *' USING 5",
        None,
    ),
    ("DELETE FROM IDENTIFIER('t') /* /* '' */ \" */ WHERE a = 6", (1,)),
    ("EXECUTE IMMEDIATE 'ALTER TABLE t CREATE TAG now'", None),
    (
        "BEGIN DECLARE n INT DEFAULT 7; UPDATE t SET v = 'scr;ipt' WHERE a = n; IF n > 2 THEN DELETE FROM t WHERE "
        "a = 8; END IF; EXECUTE IMMEDIATE 'ALTER TABLE t CREATE TAG inside'; END",
        None,
    ),
]


@pytest.mark.more
def test_texts_mean_same_as_on_table_of_spark(sql, tmp_path):
    sql("CREATE TABLE t (a INT, v STRING)")
    sql(f"CREATE TABLE spark_catalog.default.parser_t (a INT, v STRING) USING parquet LOCATION '{tmp_path}/plain'")
    try:
        for text in PLAIN:
            ours, theirs = (sql(text.replace("{t}", name)) for name in ("t", "spark_catalog.default.parser_t"))
            assert ours == theirs, text
            explained = sql(f"EXPLAIN /* c */ EXTENDED {text}".replace("{t}", "t")) if text[0] in "SIF" else [("Plan",)]
            assert "Plan" in explained[0][0]
    finally:
        sql("DROP TABLE spark_catalog.default.parser_t")
    for text, counts in CHANGES:
        result = sql(text)
        assert counts is None or result == [counts], text
    assert sql("SELECT a, v FROM t WHERE a < 9 ORDER BY a") == [
        (1, "w\\"), (3, "cte"), (4, "named"), (5, "e"), (7, "scr;ipt"),
    ]  # fmt: skip
    assert sorted(sql("SHOW TAGS t")) == [("inside",), ("now",)]
    for mode in ("EXTENDED", "FORMATTED", "COST", "CODEGEN", ""):
        assert sql(f"EXPLAIN {mode}\n-- c\nDELETE FROM t WHERE a = 1")[0][0]
    assert len(sql("SELECT * FROM t WHERE a = 1")) == 1
    for text in (
        "EXPLAINSHOW TAGS t",
        "EXPLAIN EXTENDEDSHOW TAGS t",
        "SHOW TAGS t; SHOW TAGS t",
        "BEGIN SHOW TAGS t; END",
    ):
        with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
            sql(text)
    with pytest.raises(Exception, match="ANALYZE TABLES is not possible"):
        sql(f"ANALYZE TABLES IN pm.{sql.database} COMPUTE STATISTICS")
    sql.spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    try:
        sql('ALTER TABLE "t" CREATE TAG "a""b`"')
        assert sql('UPDATE "t" SET "v" = \'dq\' WHERE "a" = 3') == [(1,)]
        assert ('a"b`',) in sql('SHOW TAGS "t"')
    finally:
        sql.spark.conf.unset("spark.sql.ansi.doubleQuotedIdentifiers")


@pytest.mark.more
def test_analyze_makes_statistics_that_spark_reads(sql):
    sql("CREATE TABLE t (id INT, s STRING, p INT) PARTITIONED BY (p)")
    sql("ANALYZE TABLE t COMPUTE STATISTICS")  # there is no snapshot
    sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'bcd', 1), (2, NULL, 2)")
    sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS Id, s")
    path = sql("SHOW CREATE TABLE t")[0][0].split("LOCATION '")[1].split("'")[0]
    table = Table.open(path)
    statistics = read_statistics(table.store, table.snapshot())
    assert (table.snapshot().commit_kind, statistics.record_count) == ("ANALYZE", 3)
    assert {name: column.distinct_count for name, column in statistics.columns.items()} == {"id": 2, "s": 2}
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
