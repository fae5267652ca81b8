"""Defaults of arrays and maps: both engines write the same values into rows without them."""

import pytest

from tests.conformance.shared_table import SharedTable

pytestmark = pytest.mark.java
DEFAULTS = {
    "a": ("ARRAY<INT>", "[1, null, 3]"),
    "b": ("ARRAY<STRING>", "[it's, b c]"),
    "c": ("MAP<STRING, INT>", "{x -> 1, y -> null}"),
    "d": ("ARRAY<DATE>", "ARRAY(2024-01-31)"),
    "e": ("MAP<INT, DECIMAL(5, 2)>", "MAP(1, 2.50)"),
    "f": ("ARRAY<ARRAY<INT>>", "[[1, 2], [3]]"),
    "g": ("ARRAY<STRING>", "[]"),
}


def test_defaults_of_arrays_and_maps_are_same(judge, name):
    table = SharedTable(judge, name)
    columns = [{"name": column, "type": kind, "default": text} for column, (kind, text) in DEFAULTS.items()]
    table.java("create_table", fields=[{"name": "k", "type": "INT"}, *columns], primary_keys=[], options={})
    empty = dict.fromkeys(DEFAULTS)
    table.java("write", rows=[["+I", {"k": 1, **empty}]])
    table.we_write([["+I", {"k": 1, **empty}]])
    table.agree()
    rows = table.ours().to_arrow().to_pylist()
    assert rows[0] == rows[1]
    assert None not in rows[0].values()
