"""Random predicates and rows for them, and what a predicate means, in plain Python."""

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from paimon_core.predicate.expr import And, Constant, Leaf, Not, Or, Predicate
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.parse import parse_type

Rows = list[dict[str, Any]]

TEXT = st.text("abé\U0001f600%_\\' ", max_size=4)
NUMBERS = st.one_of(
    st.sampled_from([0, 1, -1, 5, 127, 128, -129, 2**31, -(2**31) - 1, 2**53 + 1, 2**63, -(2**63) - 1, 10**40]),
    st.sampled_from(
        [Decimal("0.5"), Decimal("5.00"), Decimal("-0"), Decimal("1.005"), Decimal("999.99"), Decimal("1e3")]
    ),
    st.sampled_from([0.0, -0.0, 0.1, 5.5, 1e300, math.inf, -math.inf, math.nan, 3.4e38, float(np.float32(0.1))]),
    st.integers(-6, 6),
    st.floats(),
)
EPOCH = dt.datetime(1970, 1, 1)
DAYS = st.integers(-3, 3)
DATETIMES = st.sampled_from(
    [EPOCH, dt.datetime(1969, 12, 31, 23, 59, 59, 999500), dt.datetime(1970, 1, 2), dt.datetime(1970, 1, 1, 0, 0, 0, 1)]
)
TIMES = st.sampled_from([dt.time(0), dt.time(0, 0, 0, 1500), dt.time(0, 0, 0, 1000), dt.time(23, 59, 59, 999999)])
MOMENTS = st.one_of(DATETIMES, DATETIMES.map(str), DAYS.map(lambda d: (EPOCH + dt.timedelta(d)).date()), DAYS)
ZONED = st.one_of(MOMENTS, DATETIMES.map(lambda v: v.replace(tzinfo=dt.timezone(dt.timedelta(hours=-3)))))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    return st.one_of(st.integers(-600, 600), st.sampled_from([most, -most])).map(lambda n: Decimal(f"{n}E-{scale}"))


def whole(bits: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(-6, 6), st.sampled_from([-(1 << bits - 1), (1 << bits - 1) - 1]))


FLOATS = st.sampled_from([0.0, -0.0, 0.1, 5.0, -5.5, math.inf, -math.inf, math.nan, 3.4e38])

COLUMNS: dict[str, tuple[str, st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
    "tiny": ("TINYINT", whole(8), NUMBERS),
    "int": ("INT NOT NULL", whole(32), NUMBERS),
    "big": ("BIGINT", whole(64), NUMBERS),
    "flt": ("FLOAT", FLOATS.map(lambda v: float(np.float32(v))), NUMBERS),
    "dbl": ("DOUBLE", FLOATS, NUMBERS),
    "dec": ("DECIMAL(5, 2)", decimals(5, 2), NUMBERS),
    "huge": ("DECIMAL(38, 3)", decimals(38, 3), NUMBERS),
    "txt": ("STRING", TEXT, TEXT),
    "chr": ("CHAR(4)", st.sampled_from(["a   ", "a", "ab", ""]), st.sampled_from(["a   ", "a", "b"])),
    "raw": ("BYTES", st.binary(max_size=3), st.binary(max_size=3)),
    "yes": ("BOOLEAN", st.booleans(), st.booleans()),
    "day": ("DATE", DAYS, MOMENTS),
    "tim": ("TIME(3)", st.sampled_from([0, 1, 2, 86_399_999]), st.one_of(TIMES, TIMES.map(str), st.integers(0, 3))),
    "ts3": ("TIMESTAMP(3)", st.sampled_from([-1, 0, 1, 86_400_000]), MOMENTS),
    "ts6": ("TIMESTAMP(6)", st.sampled_from([-500, 0, 1, 86_400_000_000]), MOMENTS),
    "ltz": ("TIMESTAMP(9) WITH LOCAL TIME ZONE", st.sampled_from([-1, 0, 1000, 3 * 3_600 * 10**9]), ZONED),
}
FIELDS = tuple(DataField(i, name, parse_type(t)) for i, (name, (t, _, _)) in enumerate(COLUMNS.items()))
BY_NAME = {f.name: f for f in FIELDS}


@st.composite
def leaves(draw: st.DrawFn, names: tuple[str, ...] = tuple(COLUMNS)) -> Predicate:
    name = draw(st.sampled_from(names))
    literal = COLUMNS[name][2] | st.none()
    ops = ["=", "!=", "<", "<=", ">", ">=", "<=>", "in", "not in", "is null", "is not null"]
    if name in ("txt", "chr"):
        ops += ["starts with", "ends with", "contains"]
    op = draw(st.sampled_from(ops))
    if op in ("in", "not in"):
        return Leaf(op, name, tuple(draw(st.lists(literal, max_size=4))))
    if op in ("is null", "is not null"):
        return Leaf(op, name)
    return Leaf(op, name, (draw(TEXT if "t" in op and op != "not in" else literal),))


def predicates(names: tuple[str, ...] = tuple(COLUMNS)) -> st.SearchStrategy[Predicate]:
    atoms = st.one_of(leaves(names), leaves(names), leaves(names), st.sampled_from([True, False, None]).map(Constant))

    def combined(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(several.map(And), several.map(Or), inner.map(Not))

    return st.recursive(atoms, combined, max_leaves=5)


def tables(max_size: int = 8) -> st.SearchStrategy[Rows]:
    row = st.fixed_dictionaries(
        {name: values if "NOT NULL" in t else st.none() | values for name, (t, values, _) in COLUMNS.items()}
    )
    return st.lists(row, max_size=max_size)


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


def _test(op: str, column: str, held: Any, literal: Any) -> bool:
    if op in ("starts with", "ends with", "contains"):
        return {"starts with": held.startswith, "ends with": held.endswith, "contains": held.__contains__}[op](literal)
    a, b = _place(held, column), _place(_literal(literal, column), column)
    return {"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def _place(value: Any, column: str) -> Any:
    """Something that compares as the value does: NaN is above everything."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (1, 0) if math.isnan(value) else (0, value if math.isinf(value) else Fraction(value))
    return (0, Fraction(value)) if isinstance(value, int | Decimal | Fraction) else value


def _literal(value: Any, column: str) -> Any:
    """A literal as a number in the unit of the column."""
    root = BY_NAME[column].type.root
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
    per_micro = {"DATE": Fraction(1, 86_400_000_000), "ts3": Fraction(1, 1000), "ts6": 1, "ltz": 1000}
    return (moment - EPOCH) // dt.timedelta(microseconds=1) * Fraction(per_micro["DATE" if root == "DATE" else column])
