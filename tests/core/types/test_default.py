"""Defaults of columns: texts in the schema as values of the column's type."""

from datetime import date

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.types.datatype import DataField
from paimon_core.types.default import default_value, list_items, list_text, map_entries, map_text
from paimon_core.types.parse import parse_type


def value(text: str, kind: str) -> object:
    return default_value(DataField(0, "c", parse_type(kind), None, text)).as_py()


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("7", "INT NOT NULL", 7),
        ("'7'", "STRING", "7"),
        ("[]", "ARRAY<INT>", []),
        (" [ ] ", "ARRAY<INT>", []),
        ("[1, null, 3]", "ARRAY<INT>", [1, None, 3]),
        ("array(1,2)", "ARRAY<BIGINT>", [1, 2]),
        ("ARRAY()", "ARRAY<STRING>", []),
        ("[it's, b c]", "ARRAY<STRING>", ["it's", "b c"]),
        ("[NULL]", "ARRAY<STRING>", ["NULL"]),
        ("[[1, 2], [], null]", "ARRAY<ARRAY<INT>>", [[1, 2], [], None]),
        ("[2024-01-31]", "ARRAY<DATE>", [date(2024, 1, 31)]),
        ("{}", "MAP<STRING, INT>", []),
        ("{a -> 1, b->null}", "MAP<STRING, INT>", [("a", 1), ("b", None)]),
        ("map(a, 1, b, 2)", "MAP<STRING, INT>", [("a", 1), ("b", 2)]),
        ("{a -> [1, 2]}", "MAP<STRING, ARRAY<INT>>", [("a", [1, 2])]),
    ],
)
def test_text_is_value_of_type(text, kind, expected):
    assert value(text, kind) == expected


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("1, 2", "ARRAY<INT>", "is not an array"),
        ("[1, x]", "ARRAY<INT>", "'x' is not a value"),
        ("[1,,2]", "ARRAY<INT>", "empty item"),
        ('["a"]', "ARRAY<STRING>", "double quotes"),
        ("array('a')", "ARRAY<STRING>", "quotes, which some engines make part of the values"),
        ("{a, 1}", "MAP<STRING, INT>", "is not a map"),
        ("map(a)", "MAP<STRING, INT>", "is not a map"),
        ("{null -> 1}", "MAP<STRING, INT>", "a key that is NULL"),
        ("{a -> 1, a -> 2}", "MAP<STRING, INT>", "occurs twice"),
    ],
)
def test_other_text_is_refused(text, kind, message):
    with pytest.raises(InvalidInputError, match=message):
        value(text, kind)


def test_texts_are_read_back():
    assert list_items(list_text(["a", None, "b c"])) == ["a", None, "b c"]
    assert map_entries(map_text([("a", "1"), ("b", None)])) == [("a", "1"), ("b", None)]
    for item in ("", " a", "a,b", "[", "null", "NULL", "a->b", '"', "\\"):
        with pytest.raises(InvalidInputError, match="cannot be an item"):
            list_text([item])
