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
    "system-tables.md": ["CREATE TABLE orders (id INT, n INT) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', "
                         "'write-only' = 'true', 'changelog-producer' = 'input')", *([VALUES] * 7)],
}  # fmt: skip
"""Other pages with statements, and what comes before them."""


def statements(kind, page="sql/statements.md"):
    """Return the statements of a page's blocks of a kind, without their comments."""
    text = (ROOT / "docs" / "reference" / page).read_text()
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    text = "".join(re.sub(r"\s+-- .*$", "", block, flags=re.MULTILINE) for block in blocks)
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
    for statement in statements("sql refused"):
        error = error_of(session, statement)
        if error is None:
            failed.append(f"{statement}\n  was not refused")
        elif "Py4J" in type(error).__name__ or not str(error).strip():
            failed.append(f"{statement}\n  {type(error).__name__}: {str(error)[:300]}")
    assert not failed, "\n".join(failed)
