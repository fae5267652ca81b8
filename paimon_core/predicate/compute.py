"""Evaluation of predicates on rows in SQL's three-valued logic. NaN is the largest number and equals itself."""

import math
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.lazy import deferred
from paimon_core.predicate.expr import And, Constant, FieldPath, Leaf, Not, Or, Predicate, VariantPath, column_of
from paimon_core.types.small_arrays import small_array, small_scalar

if TYPE_CHECKING:
    from paimon_core.variant.paths import variant_get
else:
    variant_get = deferred("paimon_core.variant.paths", "variant_get")

_COMPARE = {
    "=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
_UNKNOWN = pa.nulls(1, pa.bool_())[0]
_TEXT_TESTS = {"starts with": pc.starts_with, "ends with": pc.ends_with, "contains": pc.match_substring}


def evaluate(p: Predicate, rows: pa.RecordBatch | pa.Table) -> pa.BooleanArray:
    """Return a mask of the rows for which a bound predicate is true; unknown becomes False.

    Texts compare by their UTF-8 bytes, including padding; 0.0 equals -0.0. ``rows`` may have columns that the predicate
    does not use. Raises InvalidInputError if ``rows`` lacks a column of the predicate.
    """
    if isinstance(rows, pa.RecordBatch):
        return pc.fill_null(_truth(p, rows), small_scalar(False, pa.bool_()))
    # one batch at a time: before pyarrow 23, Arrow's three-valued AND and OR were wrong on chunked columns
    truths = [pc.fill_null(_truth(p, batch), False) for batch in rows.to_batches()]
    return pa.chunked_array(truths, pa.bool_()).combine_chunks()


def _truth(p: Predicate, rows: pa.RecordBatch) -> Any:
    """Return true, false or null (unknown) for every row."""
    match p:
        case And(children):
            return reduce(pc.and_kleene, (_truth(c, rows) for c in children))
        case Or(children):
            return reduce(pc.or_kleene, (_truth(c, rows) for c in children))
        case Not(child):
            return pc.invert(_truth(child, rows))
        case Constant(value):
            return pa.repeat(pa.scalar(value, pa.bool_()), rows.num_rows)
        case Leaf() if column_of(p.column) in rows.schema.names:
            return _test(p, _values(rows, p.column))
    raise InvalidInputError(f"filter {p} needs columns that the rows lack; they have {', '.join(rows.schema.names)}")


def _values(rows: pa.RecordBatch, name: str) -> Any:
    """Return the values of a column, of a field of structs, or in variants; the field of a null is null."""
    if not isinstance(name, FieldPath):
        return rows.column(name)
    column, inner = rows.column(name.parts[0]), list(name.parts[1:])
    values = pc.struct_field(column, inner) if inner else column
    return variant_get(values, name.path, name.type, strict=name.strict) if isinstance(name, VariantPath) else values


def _test(leaf: Leaf, column: Any) -> Any:
    op, values = leaf.op, leaf.values
    match op:
        case "is null":
            return pc.is_null(column)
        case "is not null":
            return pc.is_valid(column)
        case "is zero" | "is negative zero":
            negative = np.signbit(pc.fill_null(column, 1).to_numpy(zero_copy_only=False))
            return pc.and_(pc.equal(column, 0), pa.array(negative == (op == "is negative zero")))
        case "in":
            return _among(column, values)
        case "not in":
            return pc.invert(_among(column, values))
        case "<=>":
            return pc.is_null(column) if values[0] is None else pc.fill_null(_compare("=", column, values[0]), False)
        case "starts with" | "ends with" | "contains":
            return _TEXT_TESTS[op](column, values[0])
    return _compare(op, column, values[0])


def _among(column: Any, values: Sequence[Any]) -> Any:
    if not values:
        return pc.and_(pc.is_valid(column), False)
    kind, non_null = column.type, [v for v in values if v is not None]
    listed = small_array([*non_null, -0.0, 0.0] if pa.types.is_floating(kind) and 0 in non_null else non_null, kind)
    matches = pc.is_in(column, value_set=listed)  # the list has both zeros, which are equal but differ in bytes
    if len(non_null) < len(values):  # with a NULL in the list, a value without a match is unknown
        return pc.if_else(matches, matches, _UNKNOWN)
    return pc.if_else(pc.is_valid(column), matches, _UNKNOWN)


def _compare(op: str, column: Any, value: Any) -> Any:
    """Return ``column op value``; null if the column or the value is null."""
    scalar = small_scalar(value, column.type)
    if not pa.types.is_floating(column.type):
        return _COMPARE[op](column, scalar)
    nan = pc.is_nan(column)
    if isinstance(value, float) and math.isnan(value):
        return _compare_nan(op, nan)
    result = _COMPARE[op](column, scalar)
    return pc.or_(result, nan) if op in (">", ">=") and scalar.is_valid else result


def _compare_nan(op: str, nan: Any) -> Any:
    """Return ``column op NaN``; the mask ``nan`` is true where the column is NaN."""
    match op:
        case "=" | ">=":
            return nan
        case "!=" | "<":
            return pc.invert(nan)
        case "<=":
            return pc.or_(nan, True)
    return pc.and_(nan, False)
