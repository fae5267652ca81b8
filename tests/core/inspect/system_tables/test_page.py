"""docs/reference/system-tables.md lists every system table with its columns."""

import re
from pathlib import Path

import pytest

from paimon_core.catalog.global_tables import GLOBAL_TABLES
from paimon_core.inspect.system_tables.kind import Fixed
from paimon_core.inspect.system_tables.table_registry import SYSTEM_TABLES

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "system-tables.md").read_text()
SECTION = r"^### `%s(\w+)`\n(.*?)(?=^#|\Z)"
SECTIONS, OF_CATALOG = (
    {name: " ".join(text.split()) for name, text in re.findall(SECTION % prefix, PAGE, re.MULTILINE | re.DOTALL)}
    for prefix in (r"\$", r"sys\.")
)


def test_page_lists_every_system_table():
    assert list(SECTIONS) == list(SYSTEM_TABLES)
    assert list(OF_CATALOG) == list(GLOBAL_TABLES)


@pytest.mark.parametrize("name", GLOBAL_TABLES)
def test_page_lists_columns_of_global_tables(name):
    columns = ", ".join(f"{f.name} {f.type}" for f in GLOBAL_TABLES[name].fields.fields)
    assert columns in OF_CATALOG[name].replace("`", "")


@pytest.mark.parametrize("name", SYSTEM_TABLES)
def test_page_lists_columns_of_tables(name):
    fields = SYSTEM_TABLES[name].fields
    listed = re.search(r"Columns: (.*?)\.(?= A filter|$)", SECTIONS[name])
    if isinstance(fields, Fixed):
        columns = ", ".join(f"`{f.name}` {f.type}".replace("ROW<`", "ROW<") for f in fields.fields)
        assert listed is not None
        assert listed[1].replace("`", "") == columns.replace("`", "")
    else:
        assert listed is None
    assert ("Time travel chooses" in SECTIONS[name]) == SYSTEM_TABLES[name].travels
