"""How large a file will be, before its encoder has written anything."""

from collections.abc import Callable

import pyarrow as pa

_SAMPLE_ROWS = 1 << 15
_SAMPLE_BYTES = 1 << 18


class EncodedSize:
    """Bytes written plus an estimate of what the encoder still holds.

    The estimate goes by how well the rows already on storage compressed; before there are any, by ``encode`` applied to
    a sample of the first rows (the size of a small file of them), and for a handful of rows by their size in memory.
    ``header``: bytes of an empty file, which say nothing about rows.
    """

    def __init__(self, encode: Callable[[pa.Table], int], header: int) -> None:
        self._encode = encode
        self._first: pa.Table | None = None
        self._ratio: float | None = None
        self._done = header
        self._raw = 0  # Arrow bytes held by the encoder
        self.held_rows = 0

    @property
    def held_bytes(self) -> int:
        """Arrow bytes of the rows not yet on storage."""
        return self._raw

    def add(self, rows: pa.Table) -> None:
        """Rows handed to the encoder."""
        if self._first is None and self._ratio is None:
            self._first = rows.slice(0, _SAMPLE_ROWS)
        self._raw += rows.nbytes
        self.held_rows += rows.num_rows

    def stored(self, position: int) -> None:
        """The file now ends at ``position``; if it grew, by all the rows held so far."""
        if position > self._done and self._raw:
            self._ratio = (position - self._done) / self._raw
            self._raw = self.held_rows = 0
            self._first = None  # a writer lives until cycles are collected: it must not hold rows that long
        self._done = max(position, self._done)

    def held(self) -> int:
        """Estimated encoded bytes of the held rows."""
        if self._ratio is None:
            if self._first is None or self._raw < _SAMPLE_BYTES:
                return self._raw
            self._ratio = self._encode(self._first) / max(1, self._first.nbytes)
            self._first = None
        return int(self._raw * self._ratio)

    def total(self) -> int:
        """Estimated bytes of the file if it were closed now."""
        return self._done + self.held()
