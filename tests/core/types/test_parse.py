import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import InvalidInputError
from paimon_core.types.datatype import (
    BYTES,
    DOUBLE,
    INT,
    STRING,
    ArrayType,
    AtomicType,
    DataField,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    decimal,
    with_nullable,
)
from paimon_core.types.parse import field_from_json, field_to_json, parse_type, type_to_json
from tests.support.column_types import any_type, nested, scalars, special, texts, vectors

with_ids = nested(st.one_of(scalars, special, vectors), st.integers(-1, 100), texts, texts)


@given(any_type)
def test_text_of_type_is_parsed_to_same_type(t):
    assert parse_type(str(t)) == t


@given(with_ids)
def test_json_of_type_keeps_ids_comments_and_defaults(t):
    assert parse_type(json.loads(json.dumps(type_to_json(t)))) == t


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INT", INT),
        ("integer not null", with_nullable(INT, False)),
        ("INT NULL", INT),
        ("  DECIMAL ( 10 , 2 )  NOT   NULL ", decimal(10, 2, False)),
        ("DEC(5)", decimal(5)),
        ("numeric", decimal(10)),
        ("VARCHAR", AtomicType("VARCHAR", length=1)),
        ("VARCHAR(2147483647)", STRING),
        ("VARBINARY(2147483647)", BYTES),
        ("DOUBLE PRECISION NOT NULL", with_nullable(DOUBLE, False)),
        ("TIME WITHOUT TIME ZONE", AtomicType("TIME")),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", AtomicType("TIMESTAMP", precision=3)),
        ("TIMESTAMP WITH LOCAL TIME ZONE", AtomicType("TIMESTAMP_LTZ")),
        ("TIMESTAMP_LTZ(9) NOT NULL", AtomicType("TIMESTAMP_LTZ", False, precision=9)),
        ("GEOMETRY(EPSG:4326)", AtomicType("GEOMETRY", crs="EPSG:4326")),
        ("GEOGRAPHY(OGC:CRS84, VINCENTY)", AtomicType("GEOGRAPHY", crs="OGC:CRS84", algorithm="VINCENTY")),
        ("VECTOR<FLOAT, 3>", VectorType(AtomicType("FLOAT"), 3)),
        ("multiset<int>", MultisetType(INT)),
        (
            "ROW<a INT COMMENT 'one', `b c` MAP<STRING, ARRAY<INT>>>",
            RowType((DataField(-1, "a", INT, "one"), DataField(-1, "b c", MapType(STRING, ArrayType(INT))))),
        ),
        ("ROW(a INT, b STRING)", RowType((DataField(-1, "a", INT), DataField(-1, "b", STRING)))),
        ("ROW<>", RowType(())),
    ],
)
def test_spellings_of_types_are_parsed(text, expected):
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    ("t", "text"),
    [
        (decimal(10, 2, False), "DECIMAL(10, 2) NOT NULL"),
        (AtomicType("TIME"), "TIME(0)"),
        (AtomicType("TIMESTAMP_LTZ", precision=3), "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        (STRING, "STRING"),
        (AtomicType("VARCHAR", length=7), "VARCHAR(7)"),
    ],
)
def test_text_written_to_schema_files(t, text):
    assert type_to_json(t) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INTT", "expected a type .*found 'INTT'"),
        ("", "expected a type"),
        ("INT INT", "expected the end, found 'INT'"),
        ("ARRAY<INT", "expected '>', found the end"),
        ("ARRAY", "expected '<'"),
        ("ARRAY(INT)", "expected '<'"),
        ("MAP<INT>", "expected ','"),
        ("ROW<a>", "expected a type"),
        ("ROW<a INT b INT>", "expected ','"),
        ("DECIMAL(a)", "at most 2 number"),
        ("DECIMAL(1,2,3)", "at most 2 number"),
        ("CHAR(", "expected a parameter"),
        ("VECTOR<FLOAT, x>", "expected a number"),
        ("'INT'", "expected a type"),
        ("INT `", "cannot read"),
        ("GEOMETRY(a, b)", "no further parameter"),
    ],
)
def test_nonsense_is_refused_where_it_begins(text, message):
    with pytest.raises(InvalidInputError, match=message):
        parse_type(text)


def test_json_of_row_matches_schema_files():
    given_json = {
        "type": "ROW NOT NULL",
        "fields": [
            {"id": 3, "name": "p", "type": "INT"},
            {"id": 4, "name": "q", "type": {"type": "ARRAY", "element": "STRING NOT NULL"}, "description": "x"},
        ],
    }
    t = parse_type(given_json)
    assert [field.id for field in t.fields] == [3, 4]
    assert not t.nullable
    assert type_to_json(t) == given_json


def test_unknown_keys_and_nulls_are_ignored():
    field = {"id": 0, "name": "a", "type": {"type": "ARRAY", "element": "INT", "nullable": True}, "description": None}
    assert field_from_json(field) == DataField(0, "a", ArrayType(INT))


def test_default_and_comment_are_written_only_when_there_are_any():
    assert field_to_json(DataField(1, "a", INT)) == {"id": 1, "name": "a", "type": "INT"}
    assert field_to_json(DataField(1, "a", INT, "c", "0"))["defaultValue"] == "0"


@pytest.mark.parametrize("given_json", [{}, {"type": "MAP", "key": "INT"}, {"type": 3}, 7, {"type": "ROW"}])
def test_objects_that_are_not_types_are_refused(given_json):
    with pytest.raises(InvalidInputError):
        parse_type(given_json)


@pytest.mark.parametrize("given_json", [{}, {"id": 1, "name": "a"}, {"id": "x", "name": "a", "type": "INT"}])
def test_objects_that_are_not_fields_are_refused(given_json):
    with pytest.raises(InvalidInputError, match="not a field object"):
        field_from_json(given_json)
