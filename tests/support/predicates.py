"""Random predicates and rows for them, and what a predicate means, in plain Python."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from paimon_core.predicate.expr import (
    COMPARISONS,
    LISTS,
    NULL_TESTS,
    TEXT_TESTS,
    And,
    Constant,
    Leaf,
    Not,
    Or,
    Predicate,
)
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import AtomicType, DataField
from paimon_core.types.parse import parse_type

Rows = list[dict[str, Any]]

NAN, INF = math.nan, math.inf
FLOAT_TENTH = float(np.float32(0.1))

NUMBERS: list[Any] = [
    *(0, 1, -1, 5, 6, 127, 128, -129, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63, -(2**63) - 1, 10**40),
    *map(Decimal, ("0.5", "-0.5", "5.00", "-0", "1.005", "999.99", "1000", "-1e3", "NaN")),
    *(0.0, -0.0, 0.1, 0.5, 5.5, 1e300, INF, -INF, NAN, 3.4e38, 3.5e38, -3.5e38, FLOAT_TENTH),
]
EPOCH = dt.datetime(1970, 1, 1)
DATETIMES = [
    EPOCH,
    dt.datetime(1969, 12, 31, 23, 59, 59, 999500),
    dt.datetime(1970, 1, 2),
    EPOCH.replace(microsecond=1),
]
MOMENTS: list[Any] = [*DATETIMES, *map(str, DATETIMES), dt.date(1969, 12, 31), dt.date(1970, 1, 2), -1, 0, 1]
ZONED = [d.replace(tzinfo=dt.timezone(dt.timedelta(hours=-3))) for d in DATETIMES]
TIMES = [dt.time(0), dt.time(0, 0, 0, 1500), dt.time(0, 0, 0, 1000), dt.time(23, 59, 59, 999999)]
TEXT = ["", "a", "ab", "abc", "b", "é", "éa", "\U0001f600", "%", "_a", "\\", "'"]
RAW = [b"", b"\x00", b"a", b"ab", b"\xff", b"\xff\xff"]

COLUMNS: dict[str, tuple[str, list[Any], list[Any]]] = {
    "tiny": ("TINYINT", [0, 1, 5, 6, -1, 127, -128], NUMBERS),
    "int": ("INT NOT NULL", [0, 1, 5, 6, -1, 2**31 - 1, -(2**31)], NUMBERS),
    "big": ("BIGINT", [0, 1, 127, 128, -129, 2**53 + 1, 2**63 - 1, -(2**63)], NUMBERS),
    "flt": ("FLOAT", [0.0, -0.0, FLOAT_TENTH, 0.5, 5.0, INF, -INF, NAN, float(np.float32(3.4e38))], NUMBERS),
    "dbl": ("DOUBLE", [0.0, -0.0, 0.1, 0.5, FLOAT_TENTH, INF, -INF, NAN, 1e300], NUMBERS),
    "dec": (
        "DECIMAL(5, 2)",
        [*map(Decimal, ("0.00", "0.10", "0.50", "1.00", "1.01", "5.00", "999.99", "-999.99"))],
        NUMBERS,
    ),
    "huge": ("DECIMAL(38, 3)", [*map(Decimal, ("0.000", "1.005", "5.000", "128.000", "9" * 35 + ".999"))], NUMBERS),
    "txt": ("STRING", TEXT, TEXT),
    "chr": ("CHAR(4)", ["a   ", "a", "ab", ""], ["a   ", "a", "b"]),
    "raw": ("BYTES", RAW, RAW),
    "yes": ("BOOLEAN", [True, False], [True, False]),
    "day": ("DATE", [-1, 0, 1, 2], MOMENTS),
    "tim": ("TIME(3)", [0, 1, 2, 86_399_999], [*TIMES, *map(str, TIMES), -1, 0, 1, 2]),
    "ts3": ("TIMESTAMP(3)", [-1, 0, 1, 86_400_000], MOMENTS),
    "ts6": ("TIMESTAMP(6)", [-500, 0, 1, 1000, 10_000, 86_400_000_000], MOMENTS),
    "ltz": ("TIMESTAMP(9) WITH LOCAL TIME ZONE", [-500_000, 0, 1000, 3 * 3_600 * 10**9], [*MOMENTS, *ZONED]),
}
"""Of each column the type, values it holds, and what it is compared with: small enough to try them all."""

FIELDS = tuple(DataField(i, name, parse_type(t)) for i, (name, (t, _, _)) in enumerate(COLUMNS.items()))
BY_NAME = {f.name: f for f in FIELDS}


def operators(name: str) -> tuple[str, ...]:
    """The tests that a column takes with one literal."""
    return COMPARISONS + TEXT_TESTS if name in ("txt", "chr") else COMPARISONS


def single_tests(name: str) -> list[Predicate]:
    """Every test of one column with every one of its literals, and some lists."""
    literals = [*COLUMNS[name][2], None]
    found: list[Predicate] = [Leaf(op, name, (v,)) for op in operators(name) for v in literals]
    lists = [(), *((v,) for v in literals), tuple(literals[:3]), tuple(literals[3:5]), (literals[0], None)]
    return found + [Leaf(op, name, v) for op in LISTS for v in lists] + [Leaf(op, name) for op in NULL_TESTS]


@st.composite
def leaves(draw: st.DrawFn, names: tuple[str, ...] = tuple(COLUMNS)) -> Predicate:
    name = draw(st.sampled_from(names))
    literal = st.sampled_from([*COLUMNS[name][2], None])
    op = draw(st.sampled_from([*operators(name), *LISTS, *NULL_TESTS]))
    if op in LISTS:
        return Leaf(op, name, tuple(draw(st.lists(literal, max_size=4))))
    return Leaf(op, name) if op in NULL_TESTS else Leaf(op, name, (draw(literal),))


def predicates(names: tuple[str, ...] = tuple(COLUMNS)) -> st.SearchStrategy[Predicate]:
    atoms = st.one_of(leaves(names), leaves(names), leaves(names), st.sampled_from([True, False, None]).map(Constant))

    def combined(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(several.map(And), several.map(Or), inner.map(Not))

    return st.recursive(atoms, combined, max_leaves=5)


def held(name: str) -> list[Any]:
    """Return the values of a column in all rows; NULL is one of them if the column is nullable."""
    t, values, _ = COLUMNS[name]
    return values if "NOT NULL" in t else [*values, None]


def tables(max_size: int = 8) -> st.SearchStrategy[Rows]:
    return st.lists(st.fixed_dictionaries({name: st.sampled_from(held(name)) for name in COLUMNS}), max_size=max_size)


def batch_of(rows: Rows, fields: tuple[DataField, ...] = FIELDS) -> pa.RecordBatch:
    schema = arrow_schema(fields)
    return pa.record_batch(
        [pa.array([r[f.name] for r in rows], schema.field(f.name).type) for f in fields], schema=schema
    )


def model(p: Predicate, row: dict[str, Any]) -> bool | None:
    """The truth of a predicate, as it was written, for one row of internal values: true, false or None (unknown)."""
    match p:
        case Constant(value):
            return value
        case Not(child):
            truth = model(child, row)
            return None if truth is None else not truth
        case And(children):
            found = [model(c, row) for c in children]
            return False if False in found else None if None in found else True
        case Or(children):
            found = [model(c, row) for c in children]
            return True if True in found else None if None in found else False
        case Leaf("is null", column):
            return row[column] is None
        case Leaf("is not null", column):
            return row[column] is not None
        case Leaf("in", column, values):
            return model(Or(tuple(Leaf("=", column, (v,)) for v in values)), row) if values else False
        case Leaf("not in", column, values):
            return model(Not(Leaf("in", column, values)), row)
        case Leaf("<=>", column, (None,)):
            return row[column] is None
        case Leaf("<=>", column, values):
            return row[column] is not None and model(Leaf("=", column, values), row)
        case Leaf(op, column, (value,)):
            return None if value is None or row[column] is None else _test(op, column, row[column], value)
    raise AssertionError(p)


def _test(op: str, column: str, value: Any, literal: Any) -> bool:
    if op in TEXT_TESTS:
        test = {"starts with": value.startswith, "ends with": value.endswith, "contains": value.__contains__}[op]
        return bool(test(literal))
    if op in ("=", "!=") and column == "chr" and isinstance(literal, str):
        value, literal = value.rstrip(" "), literal.rstrip(" ")  # blanks at the ends of CHAR values do not count
    a, b = _place(value), _place(_literal(literal, column))
    return bool({"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op])


def _place(value: Any) -> Any:
    """Something that compares as the value does: NaN is above everything."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (1, 0) if math.isnan(value) else (0, value if math.isinf(value) else Fraction(value))
    return (0, Fraction(value)) if isinstance(value, int | Decimal | Fraction) else value


def _literal(value: Any, column: str) -> Any:
    """A literal as a number in the unit of the column."""
    kind = BY_NAME[column].type
    root = kind.root if isinstance(kind, AtomicType) else ""
    if root in ("FLOAT", "DOUBLE"):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if root == "DECIMAL" and isinstance(value, float) and math.isfinite(value):
        return Fraction(repr(value))
    if isinstance(value, int):
        return value
    if root == "TIME":
        clock = value if isinstance(value, dt.time) else dt.time.fromisoformat(value)
        return Fraction((dt.datetime.combine(EPOCH, clock) - EPOCH) // dt.timedelta(microseconds=1), 1_000)
    if root not in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ"):
        return value
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime.combine(moment, dt.time())
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.timezone.utc).replace(tzinfo=None)
    ticks = Fraction((moment - EPOCH) // dt.timedelta(microseconds=1))
    if root == "DATE":
        return ticks / 86_400_000_000
    return {"ts3": ticks / 1000, "ts6": ticks, "ltz": ticks * 1000}[column]
