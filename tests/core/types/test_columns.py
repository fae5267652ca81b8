"""A column by its exact name, or by its name with case folded if only one column matches."""

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.options.option import Options
from paimon_core.scan.projection import project
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.columns import ColumnNames, find_column, matching_positions
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

FIELDS = tuple(DataField(i, name, parse_type("INT")) for i, name in enumerate(("id", "Value", "dup", "Dup")))


@pytest.mark.parametrize(("name", "expected"), [("id", [0]), ("VALUE", [1]), ("Dup", [3]), ("DUP", [2, 3]), ("x", [])])
def test_positions_of_a_name(name, expected):
    assert ColumnNames(field.name for field in FIELDS).positions(name) == expected


@pytest.mark.parametrize(
    ("wanted", "given", "expected"),
    [
        ("a b", "B a", [[1], [0]]),
        ("a A", "A", [[], [0]]),
        ("a A", "A a", [[1], [0]]),
        ("aB", "ab AB", [[0, 1]]),
        ("aB Ab", "ab", [[0], [0]]),
        ("x", "a", [[]]),
    ],
)
def test_exact_name_takes_precedence_over_case(wanted, given, expected):
    assert matching_positions(wanted.split(), given.split()) == expected


def test_missing_or_ambiguous_column_is_error():
    assert find_column(FIELDS, "value", "t").name == "Value"
    assert find_column(FIELDS, "dup", "t").name == "dup"
    for name, message in (("x", "'x' does not exist in t; it has id, Value"), ("DUP", "matches several columns")):
        with pytest.raises(InvalidInputError, match=message):
            find_column(FIELDS, name, "t")


def test_projection_keeps_order_asked_for():
    schema = TableSchema(0, FIELDS, 3, (), (), Options({}))
    assert project(schema, None) == FIELDS
    assert [field.name for field in project(schema, ["VALUE", "id"])] == ["Value", "id"]
    for columns, message in (
        (["id", "ID"], "a column twice"),
        ("id", "must be a list"),
        (["y"], "'y' does not exist"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            project(schema, columns)
    tracked = TableSchema(0, FIELDS, 3, (), (), Options({"row-tracking.enabled": "true"}))
    assert [field.name for field in project(tracked, ["_row_id", "id"])] == ["_ROW_ID", "id"]
