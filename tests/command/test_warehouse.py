"""The state of a whole warehouse or database: ``ls --long``, ``advice`` and ``show``."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema
from tests.support.command import answer, run
from tests.support.tables import ORDERS, orders


@pytest.fixture
def catalog(tmp_path):
    catalog = FileSystemCatalog(str(tmp_path / "w"))
    for database in ("shop", "vacant"):
        catalog.create_database(database)
    catalog.create_table("shop.items", Schema(pa.schema([("a", pa.int64())]))).write(pa.table({"a": [1, 2]}))
    catalog.create_table("shop.new", Schema(pa.schema([("a", pa.int64())])))
    return catalog


def severe_table(catalog):
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}
    table = catalog.create_table("shop.slow", Schema(ORDERS, primary_keys=["id"], options=options))
    table.write(orders((1, "v", 1)))
    return table


def test_long_list_has_exact_numbers_as_json(catalog):
    items, new, vacant = answer("ls", catalog.warehouse, "--long")
    shown = answer("show", "shop.items", "-w", catalog.warehouse)
    assert {name: items[name] for name in ("stored_rows", "files", "bytes", "committed_ms")} == {
        name: shown[name] for name in ("stored_rows", "files", "bytes", "committed_ms")
    }
    assert (new["stored_rows"], new["files"], new["bytes"], new["committed_ms"]) == (0, 0, 0, None)
    assert vacant == {**dict.fromkeys(items), "database": "vacant"}


def test_long_list_has_sizes_and_ages_for_people(catalog):
    result = run("ls", "--long", PAIMON_WAREHOUSE=catalog.warehouse)
    header, items, new, vacant = result.stdout.splitlines()
    assert header.split() == ["database", "table", "stored_rows", "size", "history", "files", "last_commit", "advice"]
    assert items.split()[:3] == ["shop", "items", "2"]
    assert " B " in items or "KiB" in items
    assert "ago" in items or "just now" in items
    assert new.split() == ["shop", "new", "0", "0", "B", "0", "B", "0"]
    assert vacant.split() == ["vacant", "(no", "tables)"]
    assert result.exit_code == 0


def test_severe_advice_is_exit_code_1(catalog):
    table = severe_table(catalog)
    slow = next(row for row in answer("ls", catalog.warehouse, "--long", code=1) if row["table"] == "slow")
    worst = table.advice()[0]
    assert (slow["severity"], slow["advice"]) == (worst.severity, worst.kind) == ("severe", worst.kind)
    result = run("ls", "shop", "--long", PAIMON_WAREHOUSE=catalog.warehouse)
    assert (result.exit_code, f"severe: {worst.kind}" in result.stdout) == (1, True)


def test_table_that_cannot_be_read_is_exit_code_1_and_hides_no_other(catalog):
    shutil.rmtree(Path(catalog.warehouse) / "shop.db" / "items" / "manifest")
    rows = {row["table"]: row for row in answer("ls", "shop", "-l", "-w", catalog.warehouse, code=1)}
    assert "CorruptedError" in rows["items"]["error"]
    assert (rows["new"]["error"], rows["new"]["files"]) == (None, 0)
    assert "cannot be read: CorruptedError" in run("ls", "shop", "-l", "-w", catalog.warehouse).stdout


@pytest.mark.parametrize("argument", ["directory", "default", "database", "database directory"])
def test_advice_and_show_of_many_tables_are_those_of_long_list(catalog, argument):
    severe_table(catalog)
    arguments = {"directory": [catalog.warehouse], "default": [], "database": ["shop"],
                 "database directory": [f"{catalog.warehouse}/shop.db"]}[argument]  # fmt: skip
    expected = answer("ls", "shop" if argument.startswith("database") else catalog.warehouse, "-l",
                      "-w", catalog.warehouse, code=1)  # fmt: skip
    for command in ("advice", "show"):
        assert answer(command, *arguments, "-w", catalog.warehouse, code=1) == expected


def test_advice_of_one_table_is_its_list(catalog):
    table = severe_table(catalog)
    for arguments in (["shop.slow", "-w", catalog.warehouse], [table.path]):
        assert [row["kind"] for row in answer("advice", *arguments, code=1)] == [one.kind for one in table.advice()]


def test_database_with_table_named_schema_is_a_database(catalog):
    catalog.create_table("shop.schema", Schema(pa.schema([("a", pa.int64())])))
    assert [row["table"] for row in answer("advice", f"{catalog.warehouse}/shop.db")] == ["items", "new", "schema"]


def test_history_is_bytes_of_replaced_files(catalog):
    items = catalog.table("shop.items")
    before = answer("ls", "shop", "-l", "-w", catalog.warehouse)[0]
    items.overwrite(pa.table({"a": [3]}))
    after = answer("ls", "shop", "-l", "-w", catalog.warehouse)[0]
    assert (before["history_bytes"], after["history_bytes"]) == (0, before["bytes"])


def test_page_of_warehouse_shows_each_table_or_its_error(catalog, tmp_path):
    shutil.rmtree(Path(catalog.warehouse) / "shop.db" / "items" / "manifest")
    file = tmp_path / "page.html"
    (error,) = answer("show", catalog.warehouse, "--html", str(file), code=1)["errors"]
    assert error.startswith("shop.items: CorruptedError")
    text = file.read_text(encoding="utf-8")
    assert "cannot be read: CorruptedError" in text
    assert text.index("<b>items</b>") < text.index("<b>new</b>") < text.index("vacant")
    assert "<script" not in text


def test_missing_directory_and_rows_without_page_are_errors(catalog, tmp_path):
    missing = run("advice", str(tmp_path / "typo"))
    assert (missing.exit_code, "no table at" in missing.output) == (1, True)
    assert run("show", catalog.warehouse, "--rows", "3").exit_code == 2
    assert run("show", "shop.items", "--rows", "3", "-w", catalog.warehouse).exit_code == 2
    assert run("advice").exit_code == 2
