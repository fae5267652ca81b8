"""PaimonTable in a notebook: the page of the engine's table, and an error in its place. No Spark session is needed."""

from types import SimpleNamespace

from paimon_core import Table
from paimon_spark import PaimonTable
from tests.support.pages import without_times
from tests.support.tables import keyed_table, orders

NO_SPARK = SimpleNamespace(sql=None)
"""In place of a session of Spark Connect."""


def test_table_shows_page_of_engine(tmp_path):
    table = keyed_table(tmp_path / "t")
    for number in range(2):
        table.write(orders((number, "v", number)))
    pages = [one._repr_html_() for one in (PaimonTable.forPath(NO_SPARK, table.path), Table.open(table.path))]
    assert without_times(pages[0]) == without_times(pages[1])
    page = PaimonTable.forPath(NO_SPARK, table.path).page(rows=1).summary
    assert page.preview.value.rows == (("0", "v", "0"),)
    older = PaimonTable.forPath(NO_SPARK, table.path, **{"scan.snapshot-id": "1"})._repr_html_()
    assert "snapshot <b>1</b>" in older


def test_table_that_is_missing_is_error_in_page(tmp_path):
    text = PaimonTable.forPath(NO_SPARK, str(tmp_path / "no<b>where"))._repr_html_()
    assert 'role="alert"' in text
    assert "NotFoundError" in text
    assert "no<b>where" not in text


def test_repr_has_snapshot_rows_and_files_or_reason(tmp_path):
    table = keyed_table(tmp_path / "t")
    for number in range(2):
        table.write(orders((number, "v", number)))
    said = repr(Table.open(table.path)).removeprefix("Table")
    assert "snapshot 2" in said
    assert repr(PaimonTable.forPath(NO_SPARK, table.path)) == f"PaimonTable{said}"
    assert repr(PaimonTable.forPath(NO_SPARK, table.path, branch="main")) == f"PaimonTable{said}"
    assert "snapshot 1, 1 row" in repr(PaimonTable.forPath(NO_SPARK, table.path, **{"scan.snapshot-id": "1"}))
    assert repr(PaimonTable.forPath(NO_SPARK, table.path + "$files")) == f"PaimonTable({table.path + '$files'!r})"
    missing = repr(PaimonTable.forPath(NO_SPARK, str(tmp_path / "nowhere")))
    assert "NotFoundError: " in missing
