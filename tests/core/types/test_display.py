"""Texts and HTML with which values show themselves."""

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.types.display import table_html, table_text, text_html
from tests.support.hostile_tables import HOSTILE, named_table
from tests.support.tables import append_table, keyed_table, orders


def test_rows_are_aligned_columns_and_escaped_html():
    rows = [(1, "a<b", None), (1200, "c\nd", "")]
    assert table_text(("n", "name", "x"), rows) == "n      name  x\n1      a<b\n1,200  c\\nd"
    html = table_html(("n", "<th>"), [(1200, "a<b")], "2 > 1")
    assert "&lt;th&gt;" in html
    assert '<td style="text-align:right">1,200</td>' in html
    assert "<div>2 &gt; 1</div>" in html
    assert text_html("a\n<b>\x1b") == '<pre style="white-space:pre-wrap">a\n&lt;b&gt;\\x1b</pre>'


@pytest.mark.parametrize("kind", ["script", "attribute", "direction"])
def test_hostile_names_are_escaped_in_each_display(tmp_path, kind):
    table = named_table(tmp_path, HOSTILE[kind])
    catalog = FileSystemCatalog(str(tmp_path / "w"))
    catalog.create_database("db")
    values = (table.schema, table.snapshots(), table.explain(), table.advice(), table.page(1), catalog)
    for html in (value._repr_html_() for value in values):
        assert not [tag for tag in ("<script>alert", "<img", "\u202e", "\x1b") if tag in html]


def test_lists_and_schemas_print_as_tables(tmp_path):
    table = keyed_table(tmp_path / "t", bucket="1", write_only="true")
    assert str(table.snapshots()) == "no snapshots"
    for number in range(7):
        table.write(orders((number, "v", 0), (100, "v", 0)))
    assert table.snapshots() == list(table.snapshots())
    header, first, *_ = str(table.snapshots()).splitlines()
    assert header.split()[:3] == ["snapshot", "kind", "committed"]
    assert first.split()[:2] == ["1", "APPEND"]
    assert str(table.advice()) == str(table.health())
    assert repr(table.advice()) == "[Advice(warning compaction-backlog, bucket 0)]"
    assert "compaction-backlog" in table.advice()._repr_html_()
    assert repr(table.schema) == "TableSchema(0, 3 columns)"
    assert str(table.schema).splitlines()[2].split() == ["0", "id", "BIGINT", "NOT", "NULL", "primary", "key"]
    assert "BIGINT NOT NULL" in table.schema._repr_html_()
    assert str(table.explain()) in table.explain()._repr_html_()


def test_catalog_shows_its_tables(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path / "w"))
    catalog.create_database("shop")
    catalog.create_table("shop.items", Schema(pa.schema([("a", pa.int64())]))).write(pa.table({"a": [1]}))
    state = catalog.state()
    (items,) = state.tables
    live = Table.open(f"{catalog.warehouse}/shop.db/items").system_table("files").to_arrow()
    assert (items.stored_rows, items.bytes) == (1, sum(live.column("file_size_in_bytes").to_pylist()))
    assert "<b>items</b>" in catalog._repr_html_()
    assert "items" in str(state)
    assert repr(state) == f"WarehouseState({catalog.warehouse!r}, 1 table, 0 problems)"
    assert catalog.state(most=0).left_out == 1
    append_table(tmp_path / "w" / "shop.db" / "more")
    assert [one.table for one in catalog.state("shop").tables] == ["items", "more"]
