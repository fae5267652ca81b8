import pickle

import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.types.datatype import (
    INT,
    MAX_LENGTH,
    STRING,
    ArrayType,
    AtomicType,
    DataField,
    MapType,
    RowType,
    VectorType,
    decimal,
    is_nested,
    with_nullable,
)


def test_parameters_left_out_get_defaults_of_sql():
    assert AtomicType("DECIMAL") == decimal(10, 0)
    assert AtomicType("CHAR").length == 1
    assert AtomicType("TIME").precision == 0
    assert AtomicType("TIMESTAMP_LTZ").precision == 6
    assert AtomicType("GEOGRAPHY").algorithm == "SPHERICAL"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"root": "STRING"}, "unknown type 'STRING'"),
        ({"root": "DECIMAL", "precision": 39}, "precision must be 1 to 38"),
        ({"root": "DECIMAL", "precision": 3, "scale": 4}, "scale 0 to the precision"),
        ({"root": "CHAR", "length": 0}, "length must be 1 to"),
        ({"root": "VARCHAR", "length": MAX_LENGTH + 1}, "length must be 1 to"),
        ({"root": "TIMESTAMP", "precision": 10}, "precision must be 0 to 9"),
        ({"root": "INT", "length": 4}, "INT has no length"),
        ({"root": "DATE", "precision": 4}, "DATE has no precision"),
    ],
)
def test_impossible_types_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        AtomicType(**arguments)


def test_vectors_hold_numbers_only():
    with pytest.raises(InvalidInputError, match="elements must be"):
        VectorType(STRING, 3)


def test_row_has_name_once():
    with pytest.raises(InvalidInputError, match="two fields of one name: a"):
        RowType((DataField(0, "a", INT), DataField(1, "a", STRING)))


def test_text_of_nested_type():
    row = RowType((DataField(3, "a`b", INT, "it's"), DataField(4, "c", ArrayType(with_nullable(STRING, False)))), False)
    assert str(row) == "ROW<`a``b` INT 'it''s', `c` ARRAY<STRING NOT NULL>> NOT NULL"


def test_nullability_changes_without_copy_where_it_can():
    assert with_nullable(INT, True) is INT
    assert not with_nullable(INT, False).nullable


def test_nested_types_cannot_be_keys():
    assert is_nested(MapType(INT, INT))
    assert is_nested(VectorType(INT, 2))
    assert not is_nested(AtomicType("VARIANT"))


def test_types_pickle_and_hash():
    t = MapType(INT, RowType((DataField(1, "a", decimal(5, 2)),)))
    assert pickle.loads(pickle.dumps(t)) == t
    assert len({t, pickle.loads(pickle.dumps(t))}) == 1


@pytest.mark.parametrize("texts", [("\ud800", None, None), ("c", "a \udfff", None), ("c", None, "'\ud83d'")])
def test_halves_of_surrogate_pairs_are_refused(texts):
    name, description, default = texts
    with pytest.raises(InvalidInputError, match="has half of a surrogate pair"):
        DataField(1, name, AtomicType("INT"), description, default)


def test_pairs_of_surrogates_are_one_character():
    assert DataField(1, "😀", AtomicType("INT")).name == "\U0001f600"
