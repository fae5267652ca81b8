"""How rows of a bucket are numbered, so that the newest of a key is known."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class SequenceGenerator:
    """How rows are numbered: row i of a bucket gets ``first + i * stride + offset``, first rounded up to the stride.

    Writers of one job that may meet in one bucket share a stride and have different offsets. Their numbers differ
    modulo the stride, so no two of them ever give one number to two rows, even when they saw different snapshots.
    """

    offset: int = 0
    stride: int = 1

    @property
    def sole(self) -> bool:
        """Whether no other writer of the job meets this one in a bucket."""
        return self.stride == 1

    def numbers(self, first: int, start: int, count: int) -> np.ndarray:
        """Numbers of rows start..start+count-1 of a bucket whose numbering begins at ``first``."""
        aligned = -(-first // self.stride) * self.stride
        return aligned + self.offset + self.stride * np.arange(start, start + count, dtype=np.int64)

    def after(self, first: int, count: int) -> int:
        """Where the numbering of rows that come after these ``count`` begins."""
        return first + count * self.stride if count else first
