"""Pruning: find the groups of rows (files, row groups, manifests) that can hold a matching row.

Invariant: a group with a matching row is never pruned; a remaining group may hold no matching row. Statistics only
exclude groups. Bounds may be truncated: all values are within the bounds, but a bound need not be a value. Bounds of
floating-point columns ignore NaN. An unknown statistic excludes no group.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.predicate.expr import And, Constant, Leaf, Not, Or, Predicate
from paimon_core.predicate.rewrite import positive
from paimon_core.types.small_arrays import mask_of, small_array, small_scalar

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Statistics of a column in n groups: bounds (null: unknown or no values) and null counts (int64; -1: unknown)."""

    min: pa.Array
    max: pa.Array
    null_count: np.ndarray


def may_match(p: Predicate, stats: Mapping[str, ColumnStats], row_count: np.ndarray, n: int) -> Mask:
    """Return a mask of the groups in which a predicate may be true for some row.

    Args:
        p: a bound predicate.
        stats: statistics by column; a column without statistics excludes no group.
        row_count: the number of rows of each group.
        n: the number of groups.

    Cost: a few vectorised passes per test.
    """
    mask: Mask = _may(positive(p), stats, row_count, n)
    return mask


def _may(p: Predicate, stats: Mapping[str, ColumnStats], rows: np.ndarray, n: int) -> Any:
    match p:
        case And(children):
            return np.logical_and.reduce([_may(c, stats, rows, n) for c in children])
        case Or(children):
            return np.logical_or.reduce([_may(c, stats, rows, n) for c in children])
        case Constant(value):
            return np.full(n, value is True)
        case Leaf(_, column) if column in stats:
            return _may_pass(p, stats[column], rows)
        case Not(Leaf(_, column) as leaf) if column in stats:
            return _may_fail(leaf, stats[column], rows)
    return np.ones(n, bool)


def _may_pass(leaf: Leaf, stats: ColumnStats, rows: np.ndarray) -> Mask:
    op = leaf.op
    if op == "is null" or (op == "<=>" and leaf.values[0] is None):
        return _may_hold_null(stats)
    if op == "not in" and not leaf.values:
        return np.ones(len(rows), bool)
    return _may_hold_value(stats, rows) & _values_may_pass(leaf, stats)


def _may_fail(leaf: Leaf, stats: ColumnStats, rows: np.ndarray) -> Mask:
    """Return a mask of the groups in which the test may be false. REQUIRES: the test has no opposite."""
    valued = _may_hold_value(stats, rows)
    if leaf.op == "<=>":
        return _may_hold_null(stats) | valued & ~_all_equal(stats, leaf.values)
    if leaf.op == "starts with":
        within = pc.and_(pc.starts_with(stats.min, leaf.values[0]), pc.starts_with(stats.max, leaf.values[0]))
        return valued & ~_mask(within, unknown=False)
    return valued


def _may_hold_null(stats: ColumnStats) -> Mask:
    mask: Mask = stats.null_count != 0
    return mask


def _may_hold_value(stats: ColumnStats, rows: np.ndarray) -> Mask:
    mask: Mask = (stats.null_count < 0) | (stats.null_count != rows)
    return mask


def _values_may_pass(leaf: Leaf, stats: ColumnStats) -> Mask:
    """Return a mask of the groups in which a value within the bounds can pass the test."""
    match leaf.op:
        case "=" | "<=>" | "in":
            return _one_inside(stats, leaf.values)
        case "!=" | "not in":
            return ~_all_equal(stats, leaf.values)
        case "<" | "<=" | ">" | ">=":
            return _reaches(stats, leaf.op, leaf.values[0])
        case "starts with":
            return _may_start(stats, leaf.values[0])
    return np.ones(len(stats.min), bool)


def _one_inside(stats: ColumnStats, values: tuple[Any, ...]) -> Mask:
    """Return a mask of the groups whose bounds contain one of the values, by comparing ranks."""
    low, high = _usable(stats.min), _usable(stats.max)
    n = len(low)
    if not any(v is not None for v in values):
        return np.zeros(n, bool)
    if any(_is_nan(v) for v in values) or not _ordered(low.type):
        return np.ones(n, bool)
    listed = _usable(small_array([v for v in values if v is not None], low.type))
    ranks = np.from_dlpack(pc.rank(pa.concat_arrays([low, high, listed]), tiebreaker="dense"))
    value_ranks = np.sort(ranks[2 * n :])
    first = np.where(_nulls(low), 0, np.searchsorted(value_ranks, ranks[:n], "left"))
    last = np.where(_nulls(high), len(value_ranks), np.searchsorted(value_ranks, ranks[n : 2 * n], "right"))
    inside: Mask = first < last
    return inside


def _all_equal(stats: ColumnStats, values: tuple[Any, ...]) -> Mask:
    """Return a mask of the groups in which all values surely equal one of ``values``.

    False for floating-point columns, because their bounds ignore NaN.
    """
    if pa.types.is_floating(stats.min.type) or not _ordered(stats.min.type):
        return np.zeros(len(stats.min), bool)
    listed = small_array([v for v in values if v is not None], stats.min.type)
    return _mask(pc.and_(pc.equal(stats.min, stats.max), pc.is_in(stats.min, value_set=listed)), unknown=False)


def _reaches(stats: ColumnStats, op: str, value: Any) -> Mask:
    """Return a mask of groups in which ``x op value`` may be true: < and <= use the minimum, > and >= the maximum."""
    by_minimum = op in ("<", "<=")
    bound = _usable(stats.min if by_minimum else stats.max)
    nan_decides = pa.types.is_floating(bound.type) and (not by_minimum or _is_nan(value))  # NaN is above every bound
    if nan_decides or not _ordered(bound.type):
        return np.ones(len(bound), bool)
    compare = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}[op]
    return _mask(compare(bound, small_scalar(value, bound.type)), unknown=True)


def _may_start(stats: ColumnStats, prefix: str) -> Mask:
    """Return a mask of the groups whose bounds admit a text with this prefix."""
    low = pc.or_(pc.less_equal(stats.min, prefix), pc.starts_with(stats.min, prefix))
    return _mask(low, unknown=True) & _mask(pc.greater_equal(stats.max, prefix), unknown=True)


def _usable(bound: pa.Array) -> pa.Array:
    """Return the bounds with null in place of NaN, which is not a bound, and 0.0 in place of -0.0."""
    if not pa.types.is_floating(bound.type):
        return bound
    return pc.if_else(pc.is_nan(bound), pa.scalar(None, bound.type), pc.add(bound, pa.scalar(0.0, bound.type)))


def _ordered(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _nulls(array: pa.Array) -> Mask:
    return _mask(pc.is_null(array), unknown=True)


def _mask(truth: Any, *, unknown: bool) -> Mask:
    return mask_of(pc.fill_null(truth, small_scalar(unknown, pa.bool_())))
