"""Predicates evaluated on batches, in SQL's three-valued logic; NaN is the largest number and equals itself."""

import math
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.predicate.expr import And, Constant, Leaf, Not, Or, Predicate

_COMPARE = {
    "=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip


def evaluate(p: Predicate, rows: pa.RecordBatch | pa.Table) -> pa.BooleanArray:
    """Which rows a bound predicate is true for; no nulls: unknown counts as false."""
    truth = pc.fill_null(_truth(p, rows), False)
    return truth.combine_chunks() if isinstance(truth, pa.ChunkedArray) else truth


def _truth(p: Predicate, rows: pa.RecordBatch | pa.Table) -> Any:
    match p:
        case And(children):
            return reduce(pc.and_kleene, (_truth(c, rows) for c in children))
        case Or(children):
            return reduce(pc.or_kleene, (_truth(c, rows) for c in children))
        case Not(child):
            return pc.invert(_truth(child, rows))
        case Leaf():
            return _test(p, rows.column(p.column))
        case Constant(value):
            return pa.repeat(pa.scalar(value, pa.bool_()), rows.num_rows)
    raise TypeError(f"not a predicate: {p!r}")


def _test(leaf: Leaf, column: Any) -> Any:
    match leaf.op:
        case "is null":
            return pc.is_null(column)
        case "is not null":
            return pc.is_valid(column)
        case "in" | "not in":
            found = _among(column, leaf.values)
            return found if leaf.op == "in" else pc.invert(found)
        case "starts with":
            return pc.starts_with(column, leaf.values[0])
        case "ends with":
            return pc.ends_with(column, leaf.values[0])
        case "contains":
            return pc.match_substring(column, leaf.values[0])
        case "<=>":
            return pc.fill_null(compare("=", column, leaf.values[0]), False)
    return compare(leaf.op, column, leaf.values[0])


def _among(column: Any, values: tuple[Any, ...]) -> Any:
    kind = column.type
    nan = pa.types.is_floating(kind) and any(isinstance(v, float) and math.isnan(v) for v in values)
    plain = [v for v in values if not (isinstance(v, float) and math.isnan(v))]
    if pa.types.is_floating(kind):
        plain += [-v for v in plain if v == 0]  # 0.0 and -0.0 are one number
    found = pc.is_in(column, pa.array(plain, kind)) if plain else pc.and_(pc.is_null(column), False)
    if nan:
        found = pc.or_kleene(found, pc.fill_null(pc.is_nan(column), False))
    return pc.if_else(pc.is_null(column), pa.scalar(None, pa.bool_()), found)


def compare(op: str, column: Any, value: Any) -> Any:
    """``column op value``, null where the column is."""
    scalar = pa.array([value], column.type)[0]
    if not pa.types.is_floating(column.type):
        return _COMPARE[op](column, scalar)
    nan = pc.is_nan(column)
    if isinstance(value, float) and math.isnan(value):
        # every number is below NaN, and NaN equals itself
        return {
            "=": nan, ">=": nan, "!=": pc.invert(nan), "<": pc.invert(nan),
            "<=": pc.is_valid(nan), ">": pc.and_(nan, False),
        }[op] if op != "<=" else pc.or_(nan, True)  # fmt: skip
    result = _COMPARE[op](column, scalar)
    return pc.or_(result, nan) if op in (">", ">=", "!=") else result
