"""The sequence numbers of the rows of a bucket: of two rows of a key the larger one wins."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class SequenceGenerator:
    """The numbering of rows: row ``i`` of a bucket gets ``first + i * stride + offset``, ``first`` rounded up.

    Writers of one job that may write to one bucket have the same stride and different offsets. Their numbers differ
    modulo the stride, so two writers never use the same number, even if they read different snapshots.
    """

    offset: int = 0
    stride: int = 1

    def numbers(self, first: int, start: int, count: int) -> np.ndarray:
        """Return the numbers (int64) of rows ``start`` to ``start + count - 1``, in a bucket from ``first``."""
        aligned = -(-first // self.stride) * self.stride
        return aligned + self.offset + self.stride * np.arange(start, start + count, dtype=np.int64)

    def after(self, first: int, count: int) -> int:
        """Return ``first`` of the rows that follow these ``count`` rows."""
        return first + count * self.stride if count else first
