"""The horizontal axis of a merge tree: a position for each first or last key of a file."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.types.datatype import INTEGER_ROOTS, AtomicType, DataType
from paimon_core.types.selection import Positions

_SCALED_ROOTS = frozenset({*INTEGER_ROOTS, "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"})
_TEMPORAL_ROOTS = frozenset({"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"})
_CELLS = 100
_LEAST_WIDTH = 0.004  # of a bar on a true scale, so that a file with one key is visible


@dataclass(frozen=True, slots=True)
class KeyAxis:
    """Positions of keys as fractions of the width.

    Args:
        starts: the left edge of each rank of a key.
        ends: the right edge of each rank of a key.
        scaled: True if positions are proportional to the first key column; False if each rank has the same width.
    """

    starts: np.ndarray
    ends: np.ndarray
    scaled: bool

    def span(self, low: int, high: int) -> tuple[float, float]:
        """Return the position and the width, in percent, of the keys from one rank to another, both included."""
        start, end = float(self.starts[low]), float(self.ends[high])
        if self.scaled and end - start < _LEAST_WIDTH:
            start = min(start, 1 - _LEAST_WIDTH)
            end = start + _LEAST_WIDTH
        return round(100 * start, 2), round(100 * (end - start), 2)


def axis_of(ranked: Positions, low: Positions, high: Positions, values: pa.Array, kind: DataType) -> KeyAxis:
    """Return the axis of a merge tree: the true scale of the first key column, if files are visible on this scale.

    Args:
        ranked: the rank of each key.
        low: the rank of the first key of each file.
        high: the rank of the last key of each file.
        values: the value of the first key column of each key.
        kind: the type of this column.
    """
    steps = int(ranked.max()) + 1
    fractions = _fractions(ranked, steps, values, kind)
    if fractions is not None and _shows(fractions[low], fractions[high]):
        return KeyAxis(fractions, fractions, True)
    edges = np.arange(steps + 1) / steps
    return KeyAxis(edges[:-1], edges[1:], False)


def _fractions(ranked: Positions, steps: int, values: pa.Array, kind: DataType) -> np.ndarray | None:
    """Return the position of each rank in the range of the values; `None` if the values have no scale."""
    if not isinstance(kind, AtomicType) or kind.root not in _SCALED_ROOTS or values.null_count:
        return None
    numbers = _numbers(values, kind)
    by_rank = np.empty(steps, np.float64)
    by_rank[ranked] = numbers
    with np.errstate(over="ignore", invalid="ignore"):
        width = by_rank[-1] - by_rank[0]
        if not np.isfinite(by_rank).all() or not np.isfinite(width) or width <= 0:
            return None
        fractions: np.ndarray = np.clip((by_rank - by_rank[0]) / width, 0.0, 1.0)
    return fractions if (np.diff(fractions) >= 0).all() else None


def _numbers(values: pa.Array, kind: AtomicType) -> np.ndarray:
    if kind.root in _TEMPORAL_ROOTS:
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    numbers: np.ndarray = pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _shows(low: np.ndarray, high: np.ndarray) -> bool:
    """Return True if most files are wide enough to see, or if the narrow files are spread over the axis."""
    narrow = high - low < 1 / _CELLS
    number = int(narrow.sum())
    if 2 * number <= len(low):
        return True
    cells = len(np.unique(((low + high)[narrow] / 2 * _CELLS).astype(np.int64)))
    return 2 * cells > min(number, _CELLS // 2)
