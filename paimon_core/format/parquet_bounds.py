"""Removal of the bounds of Parquet column chunks that hold NaN.

Arrow's encoder ignores NaN in the bounds of row groups and pages. In Spark and Paimon, NaN is the largest number, so a
reader that skips row groups by these bounds loses rows of ``v > 1.0``. Like Java's writer, this module stores neither
bounds nor a column index for column chunks with NaN.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.format import thrift

_BUFFER_BYTES = 256 << 10
_TAIL = 8  # the length of the footer and the magic bytes
_ROW_GROUPS, _COLUMNS, _GROUP_ROWS, _COLUMN_META, _META_STATISTICS = 4, 1, 3, 3, 12  # field ids of the footer
_COLUMN_INDEX = (6, 7)  # of a column chunk: offset and length
_BOUNDS = (1, 2, 5, 6, 7, 8)  # of statistics: old and new bounds, and whether they are exact


def holds_floats(kind: pa.DataType) -> bool:
    """Return True if the type is FLOAT or DOUBLE, or holds one at any depth."""
    return pa.types.is_floating(kind) or any(holds_floats(kind.field(i).type) for i in range(kind.num_fields))


def leaf_arrays(path: str, column: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Yield path and values of the stored columns of a column, in stored order, without values of null parents."""
    kind = column.type
    if pa.types.is_struct(kind):
        for field, inner in zip(kind, column.flatten(), strict=True):
            yield from leaf_arrays(f"{path}.{field.name}", inner)
    elif pa.types.is_map(kind):
        first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
        for name, inner in (("key", column.keys), ("value", column.items)):
            yield from leaf_arrays(f"{path}.key_value.{name}", inner.slice(first, last - first))
    elif pa.types.is_list(kind):
        yield from leaf_arrays(f"{path}.list.element", column.flatten())
    else:
        yield path, column


class _Output:
    """The file object to which the buffer writes: it passes bytes on to a sink, or holds them."""

    closed = False

    def __init__(self, sink: Any) -> None:
        self.sink = sink
        self.held: bytearray | None = None
        """The bytes that are held; `None`: bytes are passed on."""

    def write(self, data: Any, /) -> int:
        """Append bytes and return their number."""
        if self.held is None:
            self.sink.write(data)
        else:
            self.held += data
        return len(data)

    def tell(self) -> int:
        """Return how many bytes the encoder has written."""
        return int(self.sink.tell()) + len(self.held or b"")

    def flush(self) -> None:
        """Do nothing: the owner of the sink flushes it."""

    def close(self) -> None:
        """Do nothing: the owner of the sink closes it."""


class BoundsSink:
    """A sink for the encoder that passes bytes on and corrects the footer of a file with NaN.

    The encoder writes to `buffered`, because each call from Arrow into Python waits for the interpreter's lock. No
    reference leads from the buffer back to this object: in a cycle, buffers would stay in memory until garbage is
    collected, and a new buffer takes longer to allocate than a small file to encode.

    Memory: the buffer, and a few integers for each row group with NaN. While a file with NaN is closed, also its page
    indexes and its footer.
    """

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        self._output = _Output(sink)
        self._first_leaves: dict[int, int] = {}  # position of a column with floats -> number of its first stored column
        leaves = 0
        for i, field in enumerate(schema):
            if holds_floats(field.type):
                self._first_leaves[i] = leaves
            leaves += _leaf_count(field.type)
        self._rows = 0
        self._with_nan: list[tuple[int, int, int]] = []  # stored column, first row, end row (exclusive)
        self.buffered = pa.BufferedOutputStream(pa.PythonFile(self._output, "w"), _BUFFER_BYTES)

    def note(self, rows: pa.Table, group_rows: int) -> None:
        """Record which row groups hold NaN when ``rows`` are written next, in row groups of ``group_rows`` rows."""
        for i, first in self._first_leaves.items():
            column = rows.column(i)
            if not _leaves_with_nan(column):
                continue
            for start in range(0, rows.num_rows, group_rows):
                part = column.slice(start, group_rows)
                low = self._rows + start
                self._with_nan += [(first + leaf, low, low + len(part)) for leaf in _leaves_with_nan(part)]
        self._rows += rows.num_rows

    def finish(self, encoder: Any) -> None:
        """Close the encoder; if the file has NaN, correct the footer that the encoder writes."""
        if not self._with_nan:
            encoder.close()
            self.buffered.flush()
            return
        self.buffered.flush()
        held = self._output.held = bytearray()
        encoder.close()
        self.buffered.flush()
        self._output.held = None
        start = len(held) - _TAIL - int.from_bytes(held[-_TAIL:-4], "little")
        footer = self._corrected(bytes(held[start:-_TAIL]))
        self._output.sink.write(b"".join((held[:start], footer, len(footer).to_bytes(4, "little"), held[-4:])))

    def _corrected(self, encoded: bytes) -> bytes:
        """Return the footer without bounds and column indexes of the column chunks that hold NaN."""
        footer = thrift.decode(encoded)
        end = 0
        for group in footer.structs(_ROW_GROUPS):
            start, end = end, end + (group.get_int(_GROUP_ROWS) or 0)
            chunks = group.structs(_COLUMNS)
            for leaf in {leaf for leaf, low, high in self._with_nan if low < end and start < high}:
                for field in _COLUMN_INDEX:
                    chunks[leaf].drop(field)
                statistics = chunks[leaf].struct(_COLUMN_META).struct(_META_STATISTICS)
                for field in _BOUNDS:
                    statistics.drop(field)
        return thrift.encode(footer)


def _leaf_count(kind: pa.DataType) -> int:
    """Return the number of stored columns of a column."""
    return sum(_leaf_count(kind.field(i).type) for i in range(kind.num_fields)) or 1


def _leaves_with_nan(column: pa.ChunkedArray) -> set[int]:
    """Return the numbers, within the column, of its stored columns that hold NaN."""
    return {
        number
        for chunk in column.chunks
        if len(chunk)
        for number, (_, leaf) in enumerate(leaf_arrays("", chunk))
        if pa.types.is_floating(leaf.type) and pc.any(pc.is_nan(leaf)).as_py()
    }
