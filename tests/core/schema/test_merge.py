"""Schema changes for rows with other columns."""

import pytest

from paimon_core import Schema, Table
from paimon_core.errors import InvalidInputError
from paimon_core.schema.change import AddColumn, UpdateType
from paimon_core.schema.merge import MergeRules, merge_changes
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

WIDENING, EXPLICIT, ADDING = MergeRules(True), MergeRules(explicit_cast=True), MergeRules()


def fields(**types):
    return [DataField(n, name, parse_type(text)) for n, (name, text) in enumerate(types.items())]


def test_new_columns_are_added_and_matched_without_case():
    old = fields(a="INT", s="ROW<x INT>", l="ARRAY<ROW<x INT>>", m="MAP<STRING, ROW<x INT>>")
    new = fields(
        A="BIGINT", b="INT NOT NULL", s="ROW<X INT, y INT>", l="ARRAY<ROW<y INT>>", m="MAP<STRING, ROW<y INT>>"
    )
    assert [(change.name, str(change.type)) for change in merge_changes(old, new, ADDING)] == [
        (("b",), "INT"),
        (("s", "y"), "INT"),
        (("l", "element", "y"), "INT"),
        (("m", "value", "y"), "INT"),
    ]
    assert merge_changes(old, fields(s="ROW<x STRING>", a="STRING"), ADDING) == []
    for twice in (fields(a="INT", A="INT"), fields(n="INT", N="INT")):
        with pytest.raises(InvalidInputError, match="is the same column"):
            merge_changes(old, twice, ADDING)
    with pytest.raises(InvalidInputError, match="several columns have this name"):
        merge_changes(fields(qa="INT", QA="INT"), fields(Qa="INT"), ADDING)


@pytest.mark.parametrize(
    ("old", "new", "widened", "cast"),
    [
        ("INT", "BIGINT", "BIGINT", "BIGINT"),
        ("BIGINT", "INT", None, None),
        ("SMALLINT", "FLOAT", "FLOAT", "FLOAT"),
        ("INT", "FLOAT", "refused", "FLOAT"),
        ("INT", "DOUBLE", "DOUBLE", "DOUBLE"),
        ("BIGINT", "DOUBLE", "refused", "DOUBLE"),
        ("FLOAT", "DOUBLE", "DOUBLE", "DOUBLE"),
        ("DECIMAL(5, 2)", "DECIMAL(9, 2)", "DECIMAL(9, 2)", "DECIMAL(9, 2)"),
        ("DECIMAL(9, 4)", "DECIMAL(5, 2)", None, None),
        ("DECIMAL(5, 2)", "DECIMAL(5, 4)", "refused", "DECIMAL(5, 4)"),
        ("INT", "DECIMAL(10, 0)", "DECIMAL(10, 0)", "DECIMAL(10, 0)"),
        ("INT", "DECIMAL(10, 1)", "refused", "DECIMAL(10, 1)"),
        ("VARCHAR(3)", "STRING", None, None),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", None, None),
        ("BLOB", "BYTES", None, None),
        ("INT", "STRING", "refused", "STRING"),
        ("TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", "refused", "refused"),
        ("ARRAY<INT>", "INT", None, None),
    ],
)
def test_types_change_as_rules_allow(old, new, widened, cast):
    for rules, expected in ((ADDING, None), (WIDENING, widened), (EXPLICIT, cast)):
        if expected == "refused":
            with pytest.raises(InvalidInputError, match="cannot be merged with"):
                merge_changes(fields(a=old), fields(a=new), rules)
        else:
            wanted = [] if expected is None else [UpdateType(("a",), parse_type(expected))]
            assert merge_changes(fields(a=old), fields(a=new), rules) == wanted


def test_change_that_loses_race_is_made_of_newer_schema(tmp_path):
    table = Table.create(str(tmp_path / "t"), Schema(fields(a="INT")))
    seen = []

    def changes(schema):
        if not seen:
            table.alter([AddColumn("b", "INT")])
        seen.append(schema.id)
        return merge_changes(schema.fields, fields(a="INT", b="INT", c="INT"), ADDING)

    merged = table.alter(changes)
    assert [field.name for field in merged.schema.fields] == ["a", "b", "c"]
    assert (seen, merged.schema.id) == ([0, 1], 2)
    assert table.alter(changes).schema.id == 2
