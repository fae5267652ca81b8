"""Spark raises the errors about names and modes that docs/guides/troubleshooting.md explains."""

import re

import pytest

from tests.spark.conftest import MODE
from tests.spark.sql.test_page import session_of
from tests.support.markdown import ROOT

pytestmark = [pytest.mark.more, pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session")]
MISTAKES = {
    "REQUIRES_SINGLE_PART_NAMESPACE": lambda spark, path: spark.sql("SELECT * FROM no_catalog.shop.orders"),
    "UNRESOLVED_ROUTINE": lambda spark, path: spark.sql("CALL sys.compact('shop.orders')"),
    "TABLE_OR_VIEW_NOT_FOUND": lambda spark, path: spark.table("paimon.default.ordres"),
    "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY": lambda spark, path: spark.sql(f"SELECT * FROM rate.`{path}`"),
    "UNSUPPORTED_DATA_SOURCE_SAVE_MODE": lambda spark, path: spark.range(1).write.format("paimon").save(path),
}
"""A statement for each error of Spark that the page names, in a session whose current catalog is Spark's own."""


def errors_of_page():
    """Return the first code span of each row about Spark's names and modes."""
    section = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text().split("## Errors of Spark about names")[1]
    return re.findall(r"^\| `([^`]+)`", section.partition("\n## ")[0], re.MULTILINE)


@pytest.mark.parametrize("error", MISTAKES)
def test_spark_raises_error_of_page(spark, tmp_path, error):
    session = session_of(spark, str(tmp_path))
    session.sql("USE spark_catalog.default")
    assert error in errors_of_page()
    with pytest.raises(Exception, match=rf"\[{error}\b"):
        MISTAKES[error](session, str(tmp_path / "t"))
