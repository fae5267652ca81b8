"""Blob files (format 7.7): a record with a checksum for each value of one column, then an index of the lengths.

The column has the type BLOB, ARRAY<BLOB> or MAP<key, BLOB>.

Written by hand: the format is Paimon's own.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

import numpy as np
import pyarrow as pa

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format.avro_columns import NotVectorizableError, variable_numbers
from paimon_core.format.blob_descriptor import descriptors
from paimon_core.format.blob_payload import NULL, Payloads, decoded_payloads, encoded_payloads, zigzag
from paimon_core.format.conform import conform_batch, counted
from paimon_core.format.corruption import as_corrupted
from paimon_core.format.file_format import FileFormat, FormatWriter, ReadRequest, check_columns
from paimon_core.memory import MemoryShares
from paimon_core.options.option import Options
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import AtomicType, DataField

BLOB: Final = "blob"
_VERSION: Final = 1
_MAGIC: Final = struct.pack("<i", 1481511375)
HEAD: Final = 4  # bytes of a record before the value
FRAME: Final = 16  # bytes of a record besides the value: magic before it, length and checksum after it
_TAIL: Final = 5  # bytes at the end of the file: size of the index, version
_WRITE_BYTES: Final = 1 << 18  # smaller records are written together up to this size, larger values uncopied
_MAGIC_CHECKSUM: Final = zlib.crc32(_MAGIC)


@dataclass(frozen=True, slots=True)
class BlobFormat(FileFormat):
    """Blob files. REQUIRES: ``columns`` is the only column of the file."""

    name = BLOB
    title = "blob"
    writable = False
    columns: tuple[DataField, ...]
    as_descriptors: bool = False
    """True to read the descriptor of each blob instead of its bytes."""

    def read(self, source: Any, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`. A batch has at least one blob. Descriptors of a BLOB column read only the index.

        Raises CorruptedError if the schema does not say which one column the file has.
        """
        fields, path = request.fields, request.path
        lengths = _lengths(source, path)
        if len(self.columns) != 1:
            names = [column.name for column in self.columns]
            raise CorruptedError(f"blob file {path} has one column, but by its schema it has {names}")
        (column,) = self.columns
        if column.name not in {f.name for f in fields}:
            yield from (conform_batch(batch, fields, path) for batch in counted(len(lengths), request.batch_rows))
            return
        if self.as_descriptors and isinstance(column.type, AtomicType):
            sizes = np.maximum(lengths, 0)
            starts, values = sizes.cumsum() - sizes + len(_MAGIC), np.where(lengths < 0, NULL, lengths - FRAME)
            for first in range(0, len(lengths), request.batch_rows):
                part = slice(first, first + request.batch_rows)
                found = descriptors(path, starts[part], values[part])
                yield conform_batch(pa.RecordBatch.from_arrays([found], [column.name]), fields, path)
            return
        first = offset = 0
        for end in _batch_ends(lengths, request.batch_rows, request.batch_bytes or MemoryShares().batches):
            sizes = np.maximum(lengths[first:end], 0)
            starts = offset + sizes.cumsum() - sizes + len(_MAGIC) if self.as_descriptors else None
            payloads, offset = _records(source, offset, lengths[first:end], path)
            values = decoded_payloads(payloads, column.type, path, starts)
            batch = pa.RecordBatch.from_arrays([values], [column.name])
            yield conform_batch(batch, fields, path)
            first = end

    def open_writer(
        self, sink: Any, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> FormatWriter:
        """See `FileFormat.open_writer`. Nothing is compressed: most blobs already are."""
        return BlobFileWriter(sink, fields)

    def row_count(self, source: Any, path: str = "") -> int:
        """See `FileFormat.row_count`: the number of lengths in the index."""
        return len(_lengths(source, path))


class BlobFileWriter(FormatWriter):
    """A writer of a blob file. Records are written at once. Memory: the index, a few bytes for each record."""

    def __init__(self, sink: Any, fields: Sequence[DataField]) -> None:
        self._sink, self._schema = sink, arrow_schema(fields)
        self._index: list[bytes] = []
        self._last_length = 0  # the index stores the difference of each length from the previous length
        self._written = 0  # bytes

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """See `FormatWriter.write`. Large values are written from Arrow's memory without a copy."""
        (column,) = check_columns(batch, self._schema).columns
        for values in column.chunks:
            if not len(values):
                continue
            payloads = encoded_payloads(values)
            if payloads.has_descriptor:
                raise UnsupportedError(
                    f"a blob of column {self._schema.names[0]!r} is a descriptor, and only rows that are added get a "
                    "copy of the blob that it describes: read bytes without 'blob-as-descriptor', or store descriptors "
                    "in a column of 'blob-descriptor-field'"
                )
            lengths = _record_lengths(payloads)
            for data in _framed(payloads, lengths):
                self._sink.write(data)
            self._written += int(lengths[lengths > 0].sum())
            self._index.append(zigzag(np.diff(lengths, prepend=self._last_length))[0])
            self._last_length = int(lengths[-1])

    def tell(self) -> int:
        """See `FormatWriter.tell`: the records so far."""
        return self._written

    def close(self) -> None:
        """See `FormatWriter.close`."""
        index = b"".join(self._index)
        self._sink.write(index + struct.pack("<iB", len(index), _VERSION))


def values_to_reach(values: pa.ChunkedArray, size: int) -> int:
    """Return how many of the first values have records of ``size`` bytes together; at least 1, at most all."""
    lengths = [np.maximum(_record_lengths(encoded_payloads(chunk)), 0) for chunk in values.chunks if len(chunk)]
    total = np.concatenate([np.zeros(0, np.int64), *lengths]).cumsum()
    return max(1, min(len(total), int(np.searchsorted(total, size)) + 1))


def _record_lengths(payloads: Payloads) -> np.ndarray:
    """Return the bytes of the record of each value (int64), -1 for NULL."""
    return np.where(payloads.lengths == NULL, NULL, payloads.lengths + FRAME)


def _framed(payloads: Payloads, lengths: np.ndarray) -> Iterator[bytes | memoryview]:
    """Yield the bytes of the records: small ones joined, large values as views of Arrow's memory.

    Args:
        payloads: the payloads of the values.
        lengths: the lengths of their records, as `_record_lengths` returns them.
    """
    parts: list[bytes | memoryview] = []
    held = 0
    heads, tails = (part or repeat(b"") for part in (payloads.heads, payloads.tails))
    bounds = zip(payloads.begins.tolist(), payloads.ends.tolist(), heads, tails, strict=False)
    for (begin, end, head, tail), length in zip(bounds, lengths.tolist(), strict=False):
        if length == NULL:
            continue
        value, size = payloads.data[begin:end], struct.pack("<q", length)
        checksum = zlib.crc32(value, zlib.crc32(head, _MAGIC_CHECKSUM))
        checksum = zlib.crc32(size, zlib.crc32(tail, checksum))
        parts += (_MAGIC, head)
        if length >= _WRITE_BYTES:
            yield b"".join(parts)
            yield value
            parts, held = [], 0
        else:
            parts.append(value)
            held += length
        parts += (tail, size, struct.pack("<I", checksum))
        if held >= _WRITE_BYTES:
            yield b"".join(parts)
            parts, held = [], 0
    if parts:
        yield b"".join(parts)


def _lengths(source: Any, path: str) -> np.ndarray:
    """Return the bytes of each record (int64), -1 for NULL, from the index of the file.

    Raises CorruptedError if the records do not fill the file, UnsupportedError for references to other files.
    """
    size = source.seek(0, 2)
    source.seek(max(0, size - _TAIL))
    tail = source.read(_TAIL)
    if len(tail) < _TAIL or tail[4] != _VERSION:
        raise CorruptedError(f"{path} is damaged or not a blob file: it does not end with the version {_VERSION}")
    index = int.from_bytes(tail[:4], "little")
    if index > size - _TAIL:
        raise CorruptedError(f"{path} is damaged: an index of {index} bytes in a file of {size}")
    source.seek(size - _TAIL - index)
    try:
        differences, _ = variable_numbers(source.read(index), np.zeros(1, np.int64), np.array([index]))
    except NotVectorizableError as cause:
        raise CorruptedError(f"{path} is damaged: its index: {cause}") from cause
    lengths = differences.cumsum()
    if (lengths < NULL).any():
        raise UnsupportedError(f"{path} refers to blobs in other files, which this engine does not read")
    stored = lengths[lengths != NULL]
    if (stored < FRAME).any() or stored.sum() != size - _TAIL - index:
        raise CorruptedError(f"{path} is damaged: its blobs take {stored.sum()} of {size - _TAIL - index} bytes")
    return lengths


def _batch_ends(lengths: np.ndarray, rows: int, size: int) -> Iterator[int]:
    """Yield the end row of each batch.

    Args:
        lengths: the lengths of the records in bytes, -1 for NULL.
        rows: the largest number of rows in a batch.
        size: bytes of a batch; a single record may have more.
    """
    total = np.maximum(lengths, 0).cumsum()
    end = 0
    while end < len(lengths):
        before = int(total[end - 1]) if end else 0
        end = max(end + 1, min(end + rows, int(np.searchsorted(total, before + size, "right"))))
        yield end


def _records(source: Any, offset: int, lengths: np.ndarray, path: str) -> tuple[list[memoryview | None], int]:
    """Return the payloads of consecutive records and the offset of the next record.

    Args:
        source: the file.
        offset: the position of the first record in bytes.
        lengths: the lengths of the records in bytes, -1 for NULL.
        path: the file's name in messages.

    Raises CorruptedError for a record with a wrong frame or checksum.
    """
    source.seek(offset)
    with as_corrupted(path):
        data = memoryview(source.read(int(lengths[lengths > 0].sum())))
    payloads: list[memoryview | None] = []
    start = 0
    for length in lengths.tolist():
        if length == NULL:
            payloads.append(None)
            continue
        end = start + length
        size, checksum = struct.unpack("<qI", data[end - 12 : end])
        if data[start : start + 4] != _MAGIC or size != length or zlib.crc32(data[start : end - 4]) != checksum:
            raise CorruptedError(f"{path} is damaged: the blob at byte {offset + start} has a wrong frame or checksum")
        payloads.append(data[start + 4 : end - 12])
        start = end
    return payloads, offset + start
