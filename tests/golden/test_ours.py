"""Tables that earlier versions of this engine wrote have the same rows, tags and changes now."""

import json
import shutil

import pytest

from tests.golden.ours import CASES, OURS, VERSION, everything

HOMES = sorted(path.parent for path in OURS.glob("*/*/read.json"))


@pytest.mark.parametrize("home", HOMES, ids=lambda home: f"{home.parent.name}-{home.name}")
def test_table_of_earlier_version_reads_same_rows(home, tmp_path):
    table = shutil.copytree(home / "table", tmp_path / "table")
    assert everything(str(table)) == json.loads((home / "read.json").read_text(encoding="utf-8"))


def test_current_version_has_table_of_every_case():
    assert {home.name for home in HOMES if home.parent.name == VERSION} == set(CASES)
