"""docs/system-tables.md lists every system table with its columns."""

import re
from pathlib import Path

import pytest

from paimon_core.systables.kind import Fixed
from paimon_core.systables.registry import SYSTEM_TABLES

PAGE = (Path(__file__).parents[3] / "docs" / "system-tables.md").read_text()
SECTIONS = {
    name: " ".join(text.split())
    for name, text in re.findall(r"^### `\$(\w+)`\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
}


def test_the_page_lists_every_system_table():
    assert list(SECTIONS) == list(SYSTEM_TABLES)


@pytest.mark.parametrize("name", SYSTEM_TABLES)
def test_the_page_lists_the_columns(name):
    fields = SYSTEM_TABLES[name].fields
    listed = re.search(r"Columns: (.*?)\.(?= A filter|$)", SECTIONS[name])
    if isinstance(fields, Fixed):
        columns = ", ".join(f"`{f.name}` {f.type}".replace("ROW<`", "ROW<") for f in fields.fields)
        assert listed is not None
        assert listed[1].replace("`", "") == columns.replace("`", "")
    else:
        assert listed is None
    assert ("Time travel chooses" in SECTIONS[name]) == SYSTEM_TABLES[name].travels
