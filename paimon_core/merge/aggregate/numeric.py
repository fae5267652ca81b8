"""The aggregate functions sum, product, max and min.

Results are exact: a sum or product that does not fit the column's type is an error and never wraps around. Floats are
added and multiplied strictly in order, so that the last bit agrees with any other engine.
"""

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import (
    Aggregate,
    AggregateInput,
    UnsortedAggregate,
    numbers,
    per_group,
    refuse_retract,
    valid,
)
from paimon_core.merge.aggregate.ordering import flip, sortable
from paimon_core.merge.normalized_keys import Column, words
from paimon_core.merge.segments import any_of, rounds, sizes_of
from paimon_core.types.numpy_type import numpy_type
from paimon_core.types.selection import Mask, Positions
from paimon_core.types.sorted_values import run_starts

NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
ORDERED = (*NUMBERS, "CHAR", "VARCHAR", "BINARY", "VARBINARY", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ")
_I64 = npt.NDArray[np.int64]
_EXACT = Context(prec=80)


# ---- sum


def sum_(field: FieldOptions) -> Aggregate:
    """Make sum: the sum of the non-null values; a retract subtracts. Associative except for float rounding."""
    field.check_root("sum", *NUMBERS)

    def aggregate(column: Column, inputs: AggregateInput) -> Column:
        present = valid(column)
        absent = ~any_of(present, inputs.starts) if column.null_count else None
        if pa.types.is_floating(column.type):
            values = numbers(column, -0.0)  # adding -0.0 changes nothing, not even 0.0
            values = np.where(inputs.retract & present, -values, values) if inputs.retracts else values
            return pa.array(inputs.in_order(np.add, values), column.type, mask=absent)
        if pa.types.is_decimal(column.type):
            return _decimal_sums(inputs.sorted(column), inputs, absent, field)
        values = numbers(column, 0).astype(np.int64, copy=False)
        total = _sums(values, inputs)
        if total is None or not _fits(total, column.type):
            _overflow(field, "sum")
        return pa.array(total.astype(numpy_type(column.type), copy=False), mask=absent)

    return UnsortedAggregate(aggregate)


def _sums(values: _I64, inputs: AggregateInput) -> _I64 | None:
    """Return the sums of signed 64-bit values; `None` if a sum does not fit."""
    largest = max(-int(values.min()), int(values.max()))
    if largest * int(inputs.sizes.max()) < 2**63:
        signed = np.where(inputs.retract, -values, values) if inputs.retracts else values
        small: _I64 = inputs.in_any_order(np.add, signed)
        return small
    values = inputs.sorted(values)
    top, low = _limb_sums([values >> 32, values & 0xFFFF_FFFF], inputs)
    return top << 32 | low if _fits(top, pa.int32()) else None


def _limb_sums(limbs: list[_I64], inputs: AggregateInput) -> list[_I64]:
    """Return sums of numbers in 32-bit limbs, most significant first; only the first limb may be wider."""
    sign = np.where(inputs.retract, -1, 1)
    sums = [np.add.reduceat(limb * sign, inputs.starts) for limb in limbs]
    for i in range(len(sums) - 1, 0, -1):
        sums[i - 1] = sums[i - 1] + (sums[i] >> 32)
        sums[i] = sums[i] & 0xFFFF_FFFF
    return sums


def _decimal_sums(column: Column, inputs: AggregateInput, absent: Mask | None, field: FieldOptions) -> Column:
    halves = _halves(column.fill_null(pa.scalar(Decimal(0), column.type)))
    low, high = halves[:, 0], halves[:, 1]
    limbs = _limb_sums([high >> 32, high & 0xFFFF_FFFF, low >> 32 & 0xFFFF_FFFF, low & 0xFFFF_FFFF], inputs)
    if not _fits(limbs[0], pa.int32()):
        _overflow(field, "sum")
    sum_halves = np.empty((len(inputs.starts), 2), np.int64)
    sum_halves[:, 0], sum_halves[:, 1] = limbs[2] << 32 | limbs[3], limbs[0] << 32 | limbs[1]
    present = None if absent is None else pa.py_buffer(np.packbits(~absent, bitorder="little"))
    sums = pa.Array.from_buffers(column.type, len(sum_halves), [present, pa.py_buffer(sum_halves)])
    try:
        sums.validate(full=True)  # checks the precision
    except pa.ArrowInvalid:
        _overflow(field, "sum")
    return sums


def _halves(column: Column) -> _I64:
    """Return the low and high 64 bits of decimals."""
    start = 2 * column.offset
    return np.frombuffer(column.buffers()[1], np.int64)[start : start + 2 * len(column)].reshape(-1, 2)


def _fits(values: _I64, kind: pa.DataType) -> bool:
    bounds = np.iinfo(numpy_type(kind))
    return not len(values) or (int(values.min()) >= bounds.min and int(values.max()) <= bounds.max)


def _overflow(field: FieldOptions, function: str) -> NoReturn:
    raise InvalidInputError(
        f"column {field.name!r}: a {function} ('fields.{field.name}.aggregate-function' = {function!r}) does not fit "
        f"its type {field.type}; give the column a wider type"
    )


# ---- product


def product(field: FieldOptions) -> Aggregate:
    """Make product: the product of the non-null values; a retract divides, integers towards zero.

    A retract before any value has no effect. Associative without retracts. Decimals need a loop, because each step
    rounds to the column's scale.
    """
    field.check_root("product", *NUMBERS)

    def aggregate(column: Column, inputs: AggregateInput) -> Column:
        if pa.types.is_decimal(column.type):
            return per_group(partial(_decimal_product, field, column.type))(column, inputs)
        floating = pa.types.is_floating(column.type)
        values, present = numbers(column, 1), valid(column)
        if not inputs.retracts:
            absent = ~any_of(present, inputs.starts)
            if floating:
                total = inputs.in_order(np.multiply, values)
            else:
                total = _products(values.astype(np.int64), inputs.starts, column.type, field)
            return pa.array(total.astype(values.dtype, copy=False), column.type, mask=absent)
        if not floating:
            values = values.astype(np.int64)
        total, seen = _divided(values, present, inputs, column.type, field)
        return pa.array(total.astype(numpy_type(column.type)), column.type, mask=~seen)

    return aggregate


def _products(values: _I64, starts: Positions, kind: pa.DataType, field: FieldOptions) -> _I64:
    total: _I64 = np.multiply.reduceat(values, starts)
    with np.errstate(over="ignore"):
        about = np.abs(np.multiply.reduceat(values.astype(np.float64), starts))
    for i in np.flatnonzero(about >= 2.0**62).tolist():  # may leave the range: compute exactly, one by one
        exact = 1
        for value in values[starts[i] : starts[i + 1] if i + 1 < len(starts) else None].tolist():
            exact *= value
        if not -(2**63) <= exact < 2**63:
            _overflow(field, "product")
        total[i] = exact
    if not _fits(total, kind):
        _overflow(field, "product")
    return total


def _divided(
    values: npt.NDArray[Any], present: Mask, inputs: AggregateInput, kind: pa.DataType, field: FieldOptions
) -> tuple[npt.NDArray[Any], Mask]:
    """Return products with retracts, one row of every group at a time, and the mask of groups that have a product."""
    unit = values.dtype.type(1)
    seen = present[inputs.starts] & ~inputs.retract[inputs.starts]
    total = np.where(seen, values[inputs.starts], unit)
    for group, row in rounds(inputs.starts, len(values)):
        minus = inputs.retract[row]
        divisor, factor = np.where(minus & seen[group], values[row], unit), np.where(minus, unit, values[row])
        if values.dtype == np.int64:
            total[group] = _step(total[group], factor, divisor, kind, field)
        else:
            with np.errstate(all="ignore"):
                total[group] = np.where(minus, total[group] / divisor, total[group] * factor)
        seen[group] |= present[row] & ~minus
    return total, seen


def _step(total: _I64, factor: _I64, divisor: _I64, kind: pa.DataType, field: FieldOptions) -> _I64:
    if (divisor == 0).any():
        _refuse_zero(field)
    with np.errstate(over="ignore"):
        multiplied = total * factor
    if (np.abs(total.astype(np.float64) * factor.astype(np.float64)) >= 2.0**63).any() or not _fits(multiplied, kind):
        _overflow(field, "product")
    divided: _I64 = pc.divide(pa.array(multiplied), pa.array(divisor)).to_numpy()
    return divided


def _refuse_zero(field: FieldOptions) -> NoReturn:
    raise InvalidInputError(
        f"column {field.name!r}: a row of kind -U or -D cannot retract the factor 0 of a product; "
        f"set 'fields.{field.name}.ignore-retract' = 'true' to leave the column unchanged"
    )


def _decimal_product(field: FieldOptions, kind: pa.Decimal128Type, pairs: list[tuple[Any, bool]]) -> Decimal | None:
    total, unit = None, Decimal(1).scaleb(-kind.scale)
    for value, minus in pairs:
        if value is None or (total is None and minus):
            continue
        if minus and not value:
            _refuse_zero(field)
        if total is None:
            total = value
            continue
        exact = _EXACT.divide(total, value) if minus else _EXACT.multiply(total, value)
        total = exact.quantize(unit, ROUND_HALF_UP, _EXACT)
        if abs(total) >= Decimal(10) ** (kind.precision - kind.scale):
            _overflow(field, "product")
    return total


# ---- max and min


def max_(field: FieldOptions) -> Aggregate:
    """Make max: the largest value; nulls are skipped, NaN is the largest, 0.0 is above -0.0. Associative."""
    return _extreme(field, "max", np.maximum)


def min_(field: FieldOptions) -> Aggregate:
    """Make min: the smallest value; nulls are skipped, NaN is the largest, -0.0 is below 0.0. Associative."""
    return _extreme(field, "min", np.minimum)


def _extreme(field: FieldOptions, name: str, better: Any) -> Aggregate:
    field.check_root(name, *ORDERED)

    def aggregate(column: Column, inputs: AggregateInput) -> Column:
        refuse_retract(field, name, inputs)
        kind, present = column.type, valid(column)
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)):
            column = inputs.sorted(column)
            return column.take(pa.array(_best_rows(column, present, inputs, better), pa.int64(), from_pandas=True))
        values = sortable(column)
        bounds = np.iinfo(values.dtype)
        worst = values.dtype.type(bounds.min if better is np.maximum else bounds.max)
        best = inputs.in_any_order(better, values if present.all() else np.where(present, values, worst))
        if pa.types.is_floating(kind):
            best = flip(best).view(numpy_type(kind))
        return pa.array(best, mask=~any_of(present, inputs.starts) if column.null_count else None).view(kind)

    return UnsortedAggregate(aggregate)


def _best_rows(column: Column, present: Mask, inputs: AggregateInput, better: Any) -> npt.NDArray[Any]:
    """Return the row of each group's best value, NaN if all are null. Compares word by word while rows are tied."""
    best_rows = np.full(len(inputs.starts), np.nan)
    rows = np.flatnonzero(present)
    if not len(rows):
        return best_rows
    group = inputs.group()[rows]
    dense = column if len(rows) == len(column) else column.take(pa.array(rows))
    at = np.arange(len(rows))
    load: Callable[[Positions], npt.NDArray[np.uint64]]
    for load in words(dense, "of an aggregate"):
        starts = np.flatnonzero(run_starts(group[at]))
        if len(starts) == len(at):
            break
        word = load(at)
        at = at[word == np.repeat(better.reduceat(word, starts), sizes_of(starts, len(at)))]
    best_rows[group[at]] = rows[at]
    return best_rows
