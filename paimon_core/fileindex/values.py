"""Column values in the form that indexes store: fixed-width numbers, or bytes."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import NULL_TESTS, Leaf, Not
from paimon_core.row.stored_values import decimal_words, nulls, numbers, plain
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import BINARY_ROOTS, INTEGER_ROOTS, TEXT_ROOTS, AtomicType

TIMESTAMP_ROOTS = ("TIMESTAMP", "TIMESTAMP_LTZ")
NUMBER_ROOTS = frozenset({*INTEGER_ROOTS, "DATE", "TIME", *TIMESTAMP_ROOTS})
FLOAT_ROOTS = frozenset({"FLOAT", "DOUBLE"})
LONG_DIGITS = 18
"""The largest number of digits of decimals that fit a 64-bit number."""

_FINEST = 6  # fractional digits of a second; timestamps are truncated to this precision


def stored(values: pa.Array, kind: AtomicType) -> pa.Array:
    """Return values as integers or binary: floats by their bits with one NaN, decimals unscaled, booleans 0 and 1."""
    values = plain(values)
    if kind.root in TEXT_ROOTS or kind.root in BINARY_ROOTS:
        return values.cast(pa.binary())
    if kind.root == "DECIMAL":
        return pa.array(decimal_words(values)[1].view(np.int64), mask=nulls(values))
    result = numbers(values)
    if kind.root in FLOAT_ROOTS:
        result = np.where(np.isnan(result), result.dtype.type(np.nan), result).view(f"<i{result.dtype.itemsize}")
    elif _is_cut(kind):
        result = result // 1_000
    return pa.array(result, mask=nulls(values))


def restored(keys: pa.Array, kind: AtomicType) -> pa.Array:
    """Invert :func:`stored` for comparisons; timestamps that were truncated to microseconds stay truncated."""
    if kind.root == "BOOLEAN":
        return pa.array(keys.to_numpy(zero_copy_only=False).astype(bool), mask=nulls(keys))
    arrow = pa.timestamp("us") if _is_cut(kind) else to_arrow(kind)
    if kind.root == "DECIMAL":
        low = numbers(keys)
        words = np.stack([low, low >> 63], axis=1)
        decimals = pa.Array.from_buffers(arrow, len(keys), [None, pa.py_buffer(words)])
        return pc.if_else(keys.is_valid(), decimals, pa.scalar(None, arrow))
    return keys.cast(arrow) if kind.root in TEXT_ROOTS else keys.view(arrow)


def ascending(keys: pa.Array, kind: AtomicType) -> np.ndarray:
    """Return the positions of :func:`stored` values in the order of the original values: -0.0 before 0.0, NaN last.

    REQUIRES: no nulls.
    """
    if kind.root in FLOAT_ROOTS:
        bits = keys.to_numpy()
        keys = pa.array(bits ^ (bits >> (8 * bits.itemsize - 1) & np.iinfo(bits.dtype).max))
    positions: np.ndarray = pc.array_sort_indices(keys).to_numpy().astype(np.int64)
    return positions


def matching(test: Leaf | Not, values: pa.Array, kind: AtomicType) -> np.ndarray:
    """Return a mask of the :func:`restored` values that may match the test; exact except for truncated timestamps."""
    leaf = test.child if isinstance(test, Not) else test
    assert isinstance(leaf, Leaf)
    if _is_cut(kind):
        if test is not leaf:
            return np.ones(len(values), bool)
        test = _cut(leaf)
    truth = evaluate(test, pa.RecordBatch.from_arrays([values], [leaf.column]))
    mask: np.ndarray = truth.to_numpy(zero_copy_only=False)
    return mask


def _is_cut(kind: AtomicType) -> bool:
    return kind.root in TIMESTAMP_ROOTS and (kind.precision or 0) > _FINEST


def _cut(leaf: Leaf) -> Leaf:
    """Return a test of truncated timestamps that is true if ``leaf`` is true for any original of the timestamp."""
    if leaf.op in NULL_TESTS or leaf.values in ((), (None,)):
        return leaf
    if leaf.op in ("!=", "not in"):
        return Leaf("is not null", leaf.column)
    values = tuple(v if v is None else v // 1_000 for v in leaf.values)
    return Leaf({"<": "<=", ">": ">="}.get(leaf.op, leaf.op), leaf.column, values)


def gathered(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """Return runs of bytes of ``data`` (uint8) as a binary array. Raises ValueError for a run outside ``data``."""
    if len(starts) and (starts.min() < 0 or lengths.min() < 0 or (starts + lengths).max() > len(data)):
        raise ValueError("a key extends past the end")
    ends = np.cumsum(lengths)
    at = np.repeat(starts - ends + lengths, lengths) + np.arange(int(lengths.sum()))
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(data[at].tobytes())]
    )
