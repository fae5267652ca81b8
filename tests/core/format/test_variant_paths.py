"""Paths of variants are read and set in whole columns as in a model of Python values."""

import copy
import random
import struct
from decimal import Decimal

import pyarrow as pa
import pytest

from paimon_core import variant_get, variant_set
from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.types import datatype
from paimon_core.types.arrow import to_arrow
from tests.core.format.test_variants import NAMES, draw, objects
from tests.support.variants import MISSING, encoded, metadata_of, names_in

VARIANT = to_arrow(datatype.VARIANT)
PATHS = ("$", "$.a", "$.c.d", "$.c.d[1]", "$.c.rows[0].a", "$[2]", "$['\uff5e']", '$["c"].a', "$.nothing", "$[0][0]")
STEPS = {
    "$.a": ["a"], "$.c.d": ["c", "d"], "$.c.d[1]": ["c", "d", 1], "$.c.rows[0].a": ["c", "rows", 0, "a"], "$[2]": [2],
    "$['\uff5e']": ["\uff5e"], '$["c"].a': ["c", "a"], "$.nothing": ["nothing"], "$": [], "$[0][0]": [0, 0],
}  # fmt: skip


def column(values):
    """Return a column of variants; MISSING is a null row."""
    rows = []
    for value in values:
        names = sorted(names_in(value))
        rows.append(None if value is MISSING else {"value": encoded(value, names), "metadata": metadata_of(names)})
    return pa.array(rows, VARIANT)


def at(value, steps):
    for step in steps:
        inside = isinstance(value, dict) if isinstance(step, str) else isinstance(value, list)
        if not inside or (step not in value if isinstance(step, str) else step >= len(value)):
            return MISSING
        value = value[step]
    return value


def with_value(value, steps, new):
    """Return a value with another value at a path; None: it cannot be set."""
    if not steps:
        return new
    parent = at(value, steps[:-1])
    is_settable = isinstance(parent, dict) if isinstance(steps[-1], str) else at(value, steps) is not MISSING
    if not is_settable:
        return None
    value = copy.deepcopy(value)
    at(value, steps[:-1])[steps[-1]] = new
    return value


@pytest.mark.cases(2)
@pytest.mark.parametrize("path", PATHS)
def test_paths_are_read_and_set_as_in_python(path):
    rng = random.Random(path)
    values = [rng.choice((MISSING, draw(rng), draw(rng))) for _ in range(80)]
    values += [[draw(rng) for _ in range(n)] for n in (0, 1, 5)] + [[[1]]]
    steps = STEPS[path]
    expected = [MISSING if value is MISSING else at(value, steps) for value in values]
    chunks = pa.chunked_array([column(values[:33]), column(values[33:33]), column(values[33:])])
    for given in (column(values), chunks):
        found = variant_get(given, path)
        assert objects(found) == expected
    numbers = variant_get(chunks, path, "BIGINT", strict=False)
    assert numbers.to_pylist() == [v if type(v) is int else None for v in expected]

    settable = [v for v in values if v is MISSING or with_value(v, steps, 1) is not None]
    new = [rng.choice((None, 7, 1 << 40)) for _ in settable]
    found = variant_set(pa.chunked_array([column(settable)]), {path: pa.array(new, pa.int64())})
    model = [v if v is MISSING else with_value(v, steps, n) for v, n in zip(settable, new, strict=True)]
    assert objects(found) == model
    assert objects(variant_set(column(settable), {path: "text"})) == [
        v if v is MISSING else with_value(v, steps, "text") for v in settable
    ]
    wrong = [v for v in values if v is not MISSING and with_value(v, steps, 1) is None]
    if wrong:
        with pytest.raises(InvalidInputError, match=r"cannot set .*: row 1 has"):
            variant_set(column([MISSING, wrong[0]]), {path: 1})


def test_numbers_are_converted_and_other_types_are_not():
    values = [1, -(1 << 62), Decimal("1.50"), Decimal("0.1"), 0.1, None, MISSING, "1", True]
    rows = column([v if v is MISSING else {"x": v} for v in values])
    double = variant_get(rows, "$.x", pa.float64(), strict=False)
    assert double.to_pylist() == [1.0, float(-(1 << 62)), 1.5, 0.1, 0.1, None, None, None, None]
    single = struct.unpack("<f", struct.pack("<f", 0.1))[0]
    assert variant_get(rows, "$.x", "FLOAT", strict=False).to_pylist()[2:5] == [1.5, single, single]
    exact = variant_get(rows, "$.x", "DECIMAL(20, 1)", strict=False).to_pylist()
    assert exact == [1, -(1 << 62), Decimal("1.5"), Decimal("0.1"), *[None] * 5]
    assert variant_get(rows, "$.x", "DECIMAL(3, 1)", strict=False).to_pylist()[1] is None
    assert variant_get(rows, "$.x", "STRING", strict=False).to_pylist()[-2:] == ["1", None]
    assert variant_get(rows, "$.x", "BOOLEAN", strict=False).to_pylist()[-2:] == [None, True]
    with pytest.raises(InvalidInputError, match=r"6 values at \$.x are no INT, the first in row 1"):
        variant_get(pa.chunked_array([rows]), "$.x", "INT")


def test_parts_of_a_null_may_be_null():
    rows = column([{"a": 1}]).take(pa.array([0, None, 0]))
    assert variant_get(rows, "$.a", "INT").to_pylist() == [1, None, 1]
    assert objects(variant_set(rows, {"$.a": 2})) == [{"a": 2}, MISSING, {"a": 2}]


def test_several_paths_are_set_in_their_order():
    rows = column([{"a": {}}, {"a": {"b": 1}, "z": 2}])
    found = variant_set(rows, {"$.a.c": "x", "$.n": Decimal("1.5"), "$.a.d": pa.array([True, False])})
    assert objects(found) == [
        {"a": {"c": "x", "d": True}, "n": Decimal("1.5")},
        {"a": {"b": 1, "c": "x", "d": False}, "n": Decimal("1.5"), "z": 2},
    ]
    wide = variant_set(column([dict.fromkeys(NAMES, 1)]), {f"$['{'w' * 300}']": 2})
    assert objects(wide) == [{**dict.fromkeys(NAMES, 1), "w" * 300: 2}]
    assert variant_get(variant_set(rows, {"$.a": None}), "$.a", "INT").to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rows: variant_get(rows, "a"), r"begins with \$"),
        (lambda rows: variant_get(rows, "$.a..b"), "wrong from character 4 on"),
        (lambda rows: variant_get(rows, "$.a[*]"), "wrong from character 4 on"),
        (lambda rows: variant_get(rows, "$.a", "CHAR(3)"), r"cannot return CHAR\(3\)"),
        (lambda rows: variant_get(rows, "$.a", "VARCHAR(3)"), r"cannot return VARCHAR\(3\)"),
        (lambda rows: variant_get(rows, "$.a", pa.timestamp("ms")), r"cannot return TIMESTAMP\(3\)"),
        (lambda rows: variant_get(rows, "$.a", "ARRAY<INT>"), "cannot return ARRAY<INT>"),
        (lambda rows: variant_get(pa.array([1]), "$.a"), "the column is of type int64"),
        (lambda rows: variant_get([1], "$.a"), "the column is of type list"),
        (lambda rows: variant_set(rows, {"$.a": pa.array([1])}), "1 values for .* but 2 rows"),
        (lambda rows: variant_set(rows, {"$.a": [1, 2]}), "give scalars"),
        (lambda rows: variant_set(rows, {"$.q.r": 1}), "cannot set .*: row 0 has nothing at 'q'"),
        (lambda rows: variant_set(rows, {"$.a[0]": 1}), "cannot set .*: row 0 has no array with 0"),
    ],
)
def test_wrong_calls_are_refused(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call(column([{"a": 1}, {"a": 2}]))


def test_damaged_variants_are_refused():
    damaged = pa.array([{"value": b"\x02\x01", "metadata": metadata_of([])}], VARIANT)
    for call in (lambda: variant_get(damaged, "$.a"), lambda: variant_set(damaged, {"$.a": 1})):
        with pytest.raises(CorruptedError):
            call()
