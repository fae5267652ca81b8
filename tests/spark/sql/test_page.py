"""Every statement of sql/statements.md runs, or is refused as the page says; so do the statements of other pages."""

import re

import pytest

import paimon_spark
from tests.spark.conftest import MODE
from tests.support.markdown import ROOT

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session"),
]
VALUES = "INSERT INTO orders VALUES (1, 1), (2, 1)"
OTHERS = {
    "sql/delete-update-merge.md": ["CREATE TABLE t (id INT)", *(["INSERT INTO t VALUES (1)"] * 3)],
    "sql/call.md": [
        "CREATE TABLE orders (id INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')",
        "INSERT INTO orders VALUES (1)",
    ],
    "sql/insert.md": [],
    "sql/select.md": [
        "CREATE TABLE orders (id INT, dt STRING) PARTITIONED BY (dt)",
        "INSERT INTO orders VALUES (1, 'd1'), (2, 'd2')",
    ],
    "system-tables.md": ["CREATE TABLE orders (id INT, n INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', "
                         "'write-only' = 'true', 'changelog-producer' = 'input')", *([VALUES] * 7)],
}  # fmt: skip
"""Other pages with statements, and what comes before them."""


WAYS_OUT = (
    "create a new table with PRIMARY KEY",
    "set the properties 'bucket' and 'bucket-key'",
    "set the property 'clustering.columns'",
    "add a column with this value",
    "set the file format with the property 'file.format'",
    "name a table elsewhere by its path",
    "did you mean 'bucket'?",
    "copy the rows into a new table without it",
    "copy the rows into a new table with the other name",
    "create a new table and copy the rows",
    "copy the rows into a new table",
    None,  # AS JSON
    "leave it out",
    "it must be one of CSV",
    "leave it out",
    "delete the rows and insert new ones",
    "rename them",
    None,  # CREATE VIEW
    "did you mean 'scan.snapshot-id'?",
    "did you mean '$snapshots'?",
    "set 'file-index.bloom-filter.columns'",
    "name a branch",
)
"""What the message of each refused statement proposes; `None`: Spark refuses it, and the page proposes something."""


def statements(kind, page="sql/statements.md"):
    """Return the statements of a page's blocks of a kind, without their comments."""
    text = (ROOT / "docs" / "reference" / page).read_text()
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    text = "".join(re.sub(r"^-- .*\n", "", block, flags=re.MULTILINE) for block in blocks)
    return [statement.strip() for statement in re.split(r";\s*$", text, flags=re.MULTILINE) if statement.strip()]


def error_of(session, statement):
    """Run a statement and return its error, if it fails."""
    try:
        session.sql(statement).collect()
    except Exception as error:
        return error
    return None


def session_of(spark, warehouse):
    """Return a session whose catalog is in this directory."""
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    paimon_spark.catalog(session, "paimon", warehouse=warehouse)
    session.sql("USE paimon")
    return session


@pytest.mark.parametrize("page", OTHERS)
def test_statements_of_other_pages_run(spark, tmp_path, page):
    session = session_of(spark, str(tmp_path))
    shown = statements("sql", page)
    assert shown
    for statement in [*OTHERS[page], *shown]:
        session.sql(statement).collect()


def test_statements_run_or_are_refused(spark, tmp_path):
    warehouse = str(tmp_path)
    session = session_of(spark, warehouse)
    failed = []
    for statement in statements("sql"):
        error = error_of(session, statement.replace("{warehouse}", warehouse))
        if error is not None:
            failed.append(f"{statement}\n  {type(error).__name__}: {str(error).splitlines()[0]}")
    for statement, way_out in zip(statements("sql refused"), WAYS_OUT, strict=True):
        error = error_of(session, statement)
        if error is not None and way_out is not None and way_out not in str(error):
            failed.append(f"{statement}\n  does not say {way_out!r}: {str(error)[:300]}")
        if error is None:
            failed.append(f"{statement}\n  was not refused")
        elif "Py4J" in type(error).__name__ or not str(error).strip():
            failed.append(f"{statement}\n  {type(error).__name__}: {str(error)[:300]}")
    assert not failed, "\n".join(failed)


def test_page_proposes_alternative_where_spark_refuses():
    text = (ROOT / "docs" / "reference" / "sql" / "statements.md").read_text()
    assert len(re.findall(r"^-- by Spark\b.*: (?:leave|say|name) ", text, re.MULTILINE)) == WAYS_OUT.count(None)


def test_filter_inside_struct_is_left_to_spark_and_columns_are_not(spark, tmp_path):
    """As sql/statements.md says."""
    session = session_of(spark, str(tmp_path))
    session.sql("CREATE TABLE t (s STRUCT<a: INT, b: STRING>, n INT)")
    session.sql("INSERT INTO t SELECT named_struct('a', 1, 'b', 'x'), 1")
    plan = session.sql("EXPLAIN SELECT s.a FROM t WHERE s.a = 1 AND n = 1").first()[0]
    assert "filter: n IS NOT NULL AND n = 1," in plan
    assert (
        "Spark evaluates filters on their fields" in (ROOT / "docs" / "reference" / "sql" / "statements.md").read_text()
    )
    assert session.sql("SELECT s.a FROM t WHERE s.a = 1 AND n = 1").collect() == [(1,)]


def test_compact_takes_buckets_as_its_page_says(spark, tmp_path):
    session = session_of(spark, str(tmp_path))
    session.sql("CREATE TABLE t (id INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2', 'write-only' = 'true')")
    session.sql("INSERT INTO t VALUES (1), (2), (3), (4), (5)")
    assert session.sql("CALL sys.compact('t', buckets => '1')").first().result is True
    levels = session.sql("SELECT bucket, level FROM `t$files`").collect()
    assert {row.level > 0 for row in levels if row.bucket == 1} == {True}
    assert {row.level for row in levels if row.bucket == 0} == {0}
    page = (ROOT / "docs" / "reference" / "sql" / "call.md").read_text()
    assert "| `buckets` | bucket numbers and ranges such as `'0-99,150'` | all buckets |" in page
    assert "| `parallelism`, `scan_parallelism`, `sink_parallelism` | refused:" in page
