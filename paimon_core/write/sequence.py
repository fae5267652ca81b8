"""Sequence numbers for the rows of a bucket. Among rows of a key, the row with the largest number wins."""

import numpy as np

from paimon_core.manifest.counters import check_sequence_numbers


class RowSequence:
    """The sequence numbers of the rows that one writer adds to one bucket.

    Row ``i`` gets ``first + i * stride + offset``, with ``first`` rounded up to a multiple of ``stride``. Writers of
    one job that may write to one bucket have the same stride and different offsets. Their numbers differ modulo the
    stride, so two writers never use the same number, even if they read different snapshots. ``bucket``: the path of
    the bucket, for error messages.
    """

    def __init__(self, first: int, offset: int = 0, stride: int = 1, bucket: str = "") -> None:
        self._offset, self._stride, self._bucket = offset, stride, bucket
        self._next = self._aligned(first)

    def take(self, count: int) -> np.ndarray:
        """Return the numbers (int64) of the next ``count`` rows. Raises CorruptedError if fewer numbers are left."""
        check_sequence_numbers(self._next, self._next + self._stride * (count - 1), self._bucket)
        numbers = self._next + self._stride * np.arange(count, dtype=np.int64)
        self._next += self._stride * count
        return numbers

    def continue_above(self, sequence_number: int) -> None:
        """Give the next rows numbers larger than ``sequence_number`` and than the numbers of all earlier rows."""
        self._next = max(self._next, self._aligned(sequence_number + 1))

    def _aligned(self, first: int) -> int:
        return -(-first // self._stride) * self._stride + self._offset
