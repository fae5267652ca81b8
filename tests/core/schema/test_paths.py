"""Edits of columns, also of columns inside of other columns."""

from dataclasses import replace

import pytest

from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from paimon_core.schema.paths import FIRST, LAST, Position, check_free, each, index_of, moved, placed, within
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type


def fields(**types):
    return tuple(DataField(i, name, parse_type(text)) for i, (name, text) in enumerate(types.items()))


def shown(found):
    return {f.name: str(f.type) for f in found}


FIELDS = fields(a="INT", r="ROW<x INT, y INT>", l="ARRAY<INT>", m="MAP<STRING, ROW<x INT>>")
TO_BIGINT = each(lambda field: replace(field, type=parse_type("BIGINT")))


@pytest.mark.parametrize(
    ("path", "column", "text"),
    [
        (["a"], "a", "BIGINT"),
        (["r", "y"], "r", "ROW<x INT, y BIGINT>"),
        (["l", "element"], "l", "ARRAY<BIGINT>"),
        (["m", "value", "x"], "m", "MAP<STRING, ROW<x BIGINT>>"),
    ],
)
def test_edit_reaches_end_of_its_path(path, column, text):
    actual = shown(within(FIELDS, path, TO_BIGINT, ()))
    assert actual == {**shown(FIELDS), column: str(parse_type(text))}


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (["z"], "no column 'z'; there are a, r, l, m"),
        (["r", "z"], "no column 'z'; there are x, y"),
        (["z", "x"], "no column 'z'; there are a, r, l, m"),
        (["a", "x"], "'a' is INT, in which nothing can be named, not 'x'"),
        (["l", "x"], "in which 'element' can be named"),
        (["m", "key"], r"'value' \(keys cannot change\)"),
    ],
)
def test_wrong_path_is_refused(path, error):
    with pytest.raises((InvalidInputError, NotFoundError), match=error):
        within(FIELDS, path, TO_BIGINT, ())


def test_elements_have_no_name_to_change():
    rename = each(lambda field: replace(field, name="other"))
    with pytest.raises(InvalidInputError, match=r"'l.element' is part of 'l': it has no name to change"):
        within(FIELDS, ["l", "element"], rename, ())


@pytest.mark.parametrize(
    ("position", "names"),
    [
        (FIRST, "crl"),
        (LAST, "rlc"),
        (Position("after", "r"), "rcl"),
        (Position("before", "l"), "rcl"),
    ],
)
def test_column_is_placed_among_its_siblings(position, names):
    siblings = fields(r="INT", l="INT")
    new = fields(c="INT")[0]
    assert "".join(f.name for f in placed(siblings, new, position)) == names
    assert "".join(f.name for f in moved(position)((new, *siblings), "c")) == names


def test_column_cannot_move_next_to_itself():
    with pytest.raises(InvalidInputError, match="cannot be moved next to itself"):
        moved(Position("after", "a"))(FIELDS, "a")


def test_names_are_free_if_they_differ_in_more_than_case():
    check_free(FIELDS, "b", "b")
    with pytest.raises(AlreadyExistsError, match="column 'A' cannot be added: 'a' exists"):
        check_free(FIELDS, "A", "A")
    assert index_of(FIELDS, "l") == 2
