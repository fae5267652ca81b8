"""The statements on this side of the pages for users of Delta Lake, Iceberg and Hudi run, in their order."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_spark import PaimonTable
from tests.spark.conftest import MODE
from tests.spark.sql.test_page import session_of
from tests.support.markdown import ROOT, comparison

pytestmark = [pytest.mark.more, pytest.mark.skipif(MODE == "connect", reason="a catalog needs a classic session")]
GUIDES = ROOT / "docs" / "guides"
PAGES = {"from-delta.md": 0, "from-iceberg.md": 0, "from-hudi.md": 1}
"""The pages, with the number of columns after `id`, `dt` and `amount`."""
FILES = "/data/files"


@pytest.fixture
def session(spark, tmp_path):
    session = session_of(spark, str(tmp_path / "warehouse"))
    session.sql("CREATE DATABASE shop")
    session.sql("USE shop")
    session.sql("CREATE TABLE log (id INT, note STRING)")
    session.sql("INSERT INTO log VALUES (1, 'a'), (2, 'b')")
    (tmp_path / "files").mkdir()
    return session


def news(session, columns):
    more = ", 5L AS ts" if columns else ""
    return session.sql(f"SELECT 2L AS id, 'd1' AS dt, 4.0D AS amount{more} UNION ALL SELECT 3L, 'd2', 7.5D{more}")


@pytest.mark.parametrize("page", PAGES)
def test_sql_statements_of_page_run(session, tmp_path, page):
    news(session, PAGES[page]).createOrReplaceTempView("news")
    wide = page == "from-iceberg.md"  # its files are added to the table log, in which id is a BIGINT by then
    data = pa.table({"id": pa.array([1], pa.int64() if wide else pa.int32()), "note": ["c"]})
    pq.write_table(data, tmp_path / "files" / "a.parquet")
    for _, _, statement in comparison(GUIDES / page, "SQL"):
        session.sql(statement.replace(FILES, str(tmp_path / "files"))).collect()


@pytest.mark.parametrize("page", ["from-delta.md", "from-hudi.md"])
def test_pyspark_statements_of_page_run(session, tmp_path, page):
    columns = ", ts BIGINT" if PAGES[page] else ""
    session.sql(
        f"CREATE TABLE t (id BIGINT, dt STRING, amount DOUBLE{columns}) PARTITIONED BY (dt) "
        "TBLPROPERTIES ('primary-key' = 'dt,id', 'bucket' = '1')"
    )
    path = str(tmp_path / "warehouse" / "shop.db" / "t")
    names = {"spark": session, "path": path, "news": news(session, PAGES[page]), "PaimonTable": PaimonTable}
    for task, _, code in comparison(GUIDES / page, "PySpark"):
        exec(compile(code, f"{page}: {task}", "exec"), names)
    kinds = session.sql("SELECT DISTINCT commit_kind FROM `t$snapshots`").collect()
    assert {row.commit_kind for row in kinds} >= {"APPEND", "OVERWRITE"}
