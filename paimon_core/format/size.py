"""An estimate of the size of a file whose encoder still holds rows."""

from collections.abc import Callable

import pyarrow as pa

_SAMPLE_ROWS = 1 << 15
_SAMPLE_BYTES = 1 << 18

Encode = Callable[[pa.Table], int]


class EncodedSize:
    """The bytes written, plus an estimate for the rows that the encoder still holds.

    The estimate uses the compression ratio of the rows already written. Before the first rows are written it uses the
    ratio of a sample of them, or their size in memory if they are few.
    """

    def __init__(self, header: int) -> None:
        """Begin a file with ``header`` bytes before the first row."""
        self._first: pa.Table | None = None
        self._ratio: float | None = None
        self._done = header
        self._raw = 0  # Arrow bytes held by the encoder
        self.held_rows = 0

    @property
    def held_bytes(self) -> int:
        """The Arrow bytes of the rows that are not written yet."""
        return self._raw

    def add(self, rows: pa.Table) -> None:
        """Count rows that were passed to the encoder."""
        if self._first is None and self._ratio is None:
            self._first = rows.slice(0, _SAMPLE_ROWS)
        self._raw += rows.nbytes
        self.held_rows += rows.num_rows

    def stored(self, position: int) -> None:
        """Record that the file now has ``position`` bytes; if it grew, all rows so far are written."""
        if position > self._done and self._raw:
            self._ratio = (position - self._done) / self._raw
            self._raw = self.held_rows = 0
            self._first = None
        self._done = max(position, self._done)

    def held(self, encode: Encode) -> int:
        """Return the estimated encoded bytes of the rows that are not written yet.

        ``encode`` returns the bytes of a file of a sample of rows. It is a method of the writer, so keeping it here
        would be a cycle.
        """
        if self._ratio is None:
            if self._first is None or self._raw < _SAMPLE_BYTES:
                return self._raw
            self._ratio = encode(self._first) / max(1, self._first.nbytes)
            self._first = None
        return int(self._raw * self._ratio)

    def total(self, encode: Encode) -> int:
        """Return the estimated bytes of the file if it were closed now; ``encode`` as in `held`."""
        return self._done + self.held(encode)
