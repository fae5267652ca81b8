"""What statistics of many files say about a predicate, judged for all files at once.

Law: a file that holds a matching row is kept. Bounds may be wider than the values (texts are truncated), may be
missing, and do not cover NaN.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.predicate.expr import And, Constant, Leaf, Or, Predicate
from paimon_core.predicate.rewrite import positive


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Statistics of one column in n files: bounds (null: unknown, or no value) and null counts (-1: unknown)."""

    min: pa.Array
    max: pa.Array
    null_count: np.ndarray


def may_match(p: Predicate, stats: Mapping[str, ColumnStats], row_count: np.ndarray, n: int) -> np.ndarray:
    """For each of n files whether a row may match the bound predicate; a column without statistics decides nothing."""
    return _may(positive(p), stats, row_count, n)


def _may(p: Predicate, stats: Mapping[str, ColumnStats], rows: np.ndarray, n: int) -> np.ndarray:
    match p:
        case And(children):
            return np.asarray(np.logical_and.reduce([_may(c, stats, rows, n) for c in children]))
        case Or(children):
            return np.asarray(np.logical_or.reduce([_may(c, stats, rows, n) for c in children]))
        case Constant(value):
            return np.full(n, value is True)
        case Leaf() if p.column in stats:
            return _leaf(p, stats[p.column], rows)
    return np.ones(n, bool)


def _leaf(leaf: Leaf, stats: ColumnStats, rows: np.ndarray) -> np.ndarray:
    valued: np.ndarray = (stats.null_count < 0) | (stats.null_count < rows)  # may hold a value at all
    match leaf.op:
        case "is null":
            return np.asarray(stats.null_count != 0)
        case "<=>" | "=":
            return np.asarray(valued & _inside(stats, leaf.values[0]))
        case "in":
            within = [_inside(stats, v) for v in leaf.values]
            return np.asarray(valued & np.logical_or.reduce(within)) if within else np.zeros(len(rows), bool)
        case "<" | "<=" | ">" | ">=":
            return np.asarray(valued & _beyond(stats, leaf.op, leaf.values[0]))
        case "starts with":
            return np.asarray(valued & _prefixed(stats, leaf.values[0]))
    return valued


def _known(mask: Any) -> np.ndarray:
    return np.asarray(pc.fill_null(mask, True).to_numpy(zero_copy_only=False))


def _comparable(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind))


def _inside(stats: ColumnStats, value: Any) -> np.ndarray:
    return np.asarray(_beyond(stats, "<=", value) & _beyond(stats, ">=", value))


def _beyond(stats: ColumnStats, op: str, value: Any) -> np.ndarray:
    """Whether some value may be ``op`` the literal: the lower bound for < and <=, the upper one for > and >=."""
    bound = stats.min if op in ("<", "<=") else stats.max
    kind = bound.type
    unbounded = pa.types.is_floating(kind) and (op in (">", ">=") or math.isnan(value))  # NaN lies above every bound
    if unbounded or not _comparable(kind):
        return np.ones(len(bound), bool)
    compare = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}[op]
    passed = compare(bound, pa.array([value], kind)[0])
    return _known(pc.or_(passed, pc.is_nan(bound)) if pa.types.is_floating(kind) else passed)


def _prefixed(stats: ColumnStats, prefix: str) -> np.ndarray:
    low = pc.less_equal(pc.utf8_slice_codeunits(stats.min, 0, len(prefix)), prefix) if prefix else stats.min.is_valid()
    return np.asarray(_known(low) & _known(pc.greater_equal(stats.max, prefix)))
