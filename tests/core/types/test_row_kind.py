import numpy as np
import pyarrow as pa
import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.types.row_kind import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, is_retract, kind_names, parse_kinds

NAMES = ["+I", "-U", "+U", "-D"]


def test_odd_kinds_retract():
    kinds = np.array([INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE], np.int8)
    assert is_retract(kinds).tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    "names",
    [
        pa.array(NAMES),
        pa.array(NAMES, pa.large_string()),
        pa.array(NAMES).dictionary_encode(),
        pa.chunked_array([NAMES[:1], NAMES[1:]]),
    ],
)
def test_names_become_numbers(names):
    kinds = parse_kinds(names)
    assert kinds.type == pa.int8()
    assert kinds.to_pylist() == [0, 1, 2, 3]


def test_numbers_become_names():
    assert kind_names(pa.array([3, 0], pa.int8())).to_pylist() == ["-D", "+I"]
    assert kind_names(np.array([1, 2], np.int8)).to_pylist() == ["-U", "+U"]


@pytest.mark.parametrize(
    ("names", "message"), [(["+I", "x"], "row 1: 'x'"), (["+I", None], "row 1: None"), ([1], "must be text")]
)
def test_other_kinds_are_refused(names, message):
    with pytest.raises(InvalidInputError, match=message):
        parse_kinds(pa.array(names))


def test_empty_array_has_no_kinds():
    assert parse_kinds(pa.array([], pa.string())).to_pylist() == []
    assert parse_kinds(pa.chunked_array([], pa.string())).to_pylist() == []
