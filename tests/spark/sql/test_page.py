"""Every statement of docs/sql.md runs, or is refused as the page says."""

import re

import pytest

import paimon_spark
from tests.spark.conftest import MODE
from tests.support.markdown import ROOT

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session"),
]
PAGE = (ROOT / "docs" / "sql.md").read_text()


def statements(kind):
    """Return the statements of the page's blocks of a kind, without their comments."""
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    text = "".join(re.sub(r"\s+-- .*$", "", block, flags=re.MULTILINE) for block in blocks)
    return [statement.strip() for statement in re.split(r";\s*$", text, flags=re.MULTILINE) if statement.strip()]


def error_of(session, statement):
    """Run a statement and return its error, if it fails."""
    try:
        session.sql(statement).collect()
    except Exception as error:
        return error
    return None


def test_statements_run_or_are_refused(spark, tmp_path):
    warehouse = str(tmp_path)
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    paimon_spark.catalog(session, "paimon", warehouse=warehouse)
    session.sql("USE paimon")
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
