"""The tables of deltalake and pyiceberg in the pages for their users: each column runs from top to bottom."""

from datetime import datetime

import pyarrow as pa
import pytest

from paimon_core import AddColumn, FileSystemCatalog, RenameColumn, Schema, Table
from tests.support.markdown import ROOT, comparison

GUIDES = ROOT / "docs" / "guides"
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["pen", "ink"]})
MORE = pa.table({"id": pa.array([2, 3], pa.int64()), "name": ["blue ink", "cup"]})
NEW = ROWS.rename_columns(["id", "remark"]).append_column("name", ROWS["name"]).select(["id", "name", "remark"])


def run(page, column, names):
    """Run a column of a page's table without Spark; return the result of its last row."""
    names = {**names, "rows": ROWS, "more": MORE, "new": NEW, "datetime": datetime}
    result = None
    for task, *codes in comparison(GUIDES / page, "Python without Spark"):
        code = codes[column]
        if code is None:
            continue
        if code.startswith("table = "):
            exec(compile(code, f"{page}: {task}", "exec"), names)
        else:
            result = eval(compile(code, f"{page}: {task}", "eval"), names)
    return result


@pytest.mark.parametrize("page", ["from-delta.md", "from-iceberg.md"])
def test_calls_of_this_library_run(tmp_path, page):
    catalog = FileSystemCatalog(str(tmp_path))
    catalog.create_database("shop")
    names = {"catalog": catalog, "path": str(tmp_path / "shop.db" / "items"), "imported": MORE}
    names |= {"Table": Table, "Schema": Schema, "AddColumn": AddColumn, "RenameColumn": RenameColumn}
    run(page, 1, names)
    table = catalog.table("shop.items")
    assert table.to_arrow(["id"], filter="name = 'cup'").to_pylist() == [{"id": 3}]
    assert table.verify().sound


@pytest.mark.more
def test_calls_of_deltalake_run(tmp_path):
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    names = {name: getattr(deltalake, name) for name in ("DeltaTable", "Field", "write_deltalake")}
    names["PrimitiveType"] = deltalake.schema.PrimitiveType
    imported = run("from-delta.md", 0, {**names, "path": str(tmp_path / "items")})
    assert_imports(tmp_path, imported)


@pytest.mark.more
def test_calls_of_pyiceberg_run(tmp_path):
    catalogs = pytest.importorskip("pyiceberg.catalog", reason="pyiceberg is not installed")
    pytest.importorskip("sqlalchemy", reason="the extra sql-sqlite of pyiceberg is not installed")
    types = pytest.importorskip("pyiceberg.types")
    catalog = catalogs.load_catalog(
        "c", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/ice"
    )
    catalog.create_namespace("shop")
    imported = run("from-iceberg.md", 0, {"catalog": catalog, "StringType": types.StringType})
    assert_imports(tmp_path, imported)


def assert_imports(tmp_path, imported):
    """Assert that the rows which another library returns become a table."""
    table = Table.create(str(tmp_path / "imported"), Schema(imported.schema))
    table.write(imported)
    assert table.to_arrow().sort_by("id").to_pylist() == imported.sort_by("id").to_pylist()
