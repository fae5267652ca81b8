"""Blob files (format 7.7): the values of one BLOB column, each a record with its checksum, their lengths at the end."""

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format.conform import conform_batch, counted
from paimon_core.format.corruption import as_corrupted
from paimon_core.format.file_format import FileFormat, FormatWriter, ReadRequest, check_columns
from paimon_core.options.option import Options
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField

BLOB: Final = "blob"
_VERSION: Final = 1
_MAGIC: Final = struct.pack("<i", 1481511375)
_NULL: Final = -1
_FRAME: Final = 16  # magic before the bytes, length and checksum behind
_TAIL: Final = 5  # size of the index, version
_BATCH_BYTES: Final = 32 << 20
_GATHERED: Final = 1 << 18  # bytes of small records that go out as one, and from which a value goes out as it lies
_MAGIC_CHECKSUM: Final = zlib.crc32(_MAGIC)


@dataclass(frozen=True, slots=True)
class BlobFormat(FileFormat):
    """Blob files. REQUIRES: ``columns`` has one column, the only one of the file."""

    name = BLOB
    columns: tuple[DataField, ...]

    def read(self, source: Any, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """See `FileFormat.read`. A batch has at least one blob."""
        fields, path = request.fields, request.path
        lengths = _lengths(source, path)
        (column,) = self.columns
        if column.name not in {f.name for f in fields}:
            yield from (conform_batch(batch, fields, path) for batch in counted(len(lengths), request.batch_rows))
            return
        first = offset = 0
        for end in _batch_ends(lengths, request.batch_rows, request.batch_bytes or _BATCH_BYTES):
            values, offset = _records(source, offset, lengths[first:end], path)
            batch = pa.RecordBatch.from_arrays([pa.array(values, pa.binary())], [column.name])
            yield conform_batch(batch, fields, path)
            first = end

    def open_writer(
        self, sink: Any, fields: Sequence[DataField], options: Options, compression: str, *, ordered: bool = False
    ) -> FormatWriter:
        """See `FileFormat.open_writer`. Nothing is compressed: what comes as a blob mostly is already."""
        return BlobFileWriter(sink, fields)

    def row_count(self, source: Any, path: str = "") -> int:
        """See `FileFormat.row_count`: the index at the end of the file tells."""
        return len(_lengths(source, path))


class BlobFileWriter(FormatWriter):
    """A file of blobs being written. Records leave at once; of each only its entry in the index is kept."""

    def __init__(self, sink: Any, fields: Sequence[DataField]) -> None:
        self._sink, self._schema = sink, arrow_schema(fields)
        self._index: list[bytes] = []
        self._last_length = 0  # entries are told by what they differ from the one before
        self._written = 0

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """See `FormatWriter.write`. The values are taken from where they lie, none is copied but into what goes out."""
        (column,) = check_columns(batch, self._schema).columns
        for values in column.chunks:
            if not len(values):
                continue
            lengths = _record_lengths(values)
            for data in _framed(values, lengths):
                self._sink.write(data)
            self._written += int(lengths[lengths > 0].sum())
            self._index.append(_zigzag(np.diff(lengths, prepend=self._last_length)))
            self._last_length = int(lengths[-1])

    def tell(self) -> int:
        """See `FormatWriter.tell`: the records so far."""
        return self._written

    def close(self) -> None:
        """See `FormatWriter.close`."""
        index = b"".join(self._index)
        self._sink.write(index + struct.pack("<iB", len(index), _VERSION))


def values_to_reach(values: pa.ChunkedArray, size: int) -> int:
    """How many of the values, one at least, it takes to make records of ``size`` bytes; all where they do not."""
    lengths = [np.maximum(_record_lengths(chunk), 0) for chunk in values.chunks if len(chunk)]
    total = np.concatenate([np.zeros(0, np.int64), *lengths]).cumsum()
    return max(1, min(len(total), int(np.searchsorted(total, size)) + 1))


def _record_lengths(values: pa.BinaryArray) -> np.ndarray:
    """Bytes of the record of every value, -1 for NULL."""
    lengths = np.diff(_offsets(values)).astype(np.int64) + _FRAME
    if values.null_count:
        lengths[values.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return lengths


def _offsets(values: pa.BinaryArray) -> np.ndarray:
    """Where values begin in their buffer, and where the last one ends. REQUIRES: there is one."""
    return np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]


def _framed(values: pa.BinaryArray, lengths: np.ndarray) -> Iterator[bytes | memoryview]:
    """The records of the values: small ones gathered, large values as they lie in memory."""
    stored = memoryview(values.buffers()[2] or b"")
    parts: list[bytes | memoryview] = []
    held = 0
    for begin, length in zip(_offsets(values).tolist(), lengths.tolist(), strict=False):
        if length == _NULL:
            continue
        value, size = stored[begin : begin + length - _FRAME], struct.pack("<q", length)
        checksum = zlib.crc32(size, zlib.crc32(value, _MAGIC_CHECKSUM))
        parts.append(_MAGIC)
        if length >= _GATHERED:
            yield b"".join(parts)
            yield value
            parts, held = [], 0
        else:
            parts.append(value)
            held += length
        parts += (size, struct.pack("<I", checksum))
        if held >= _GATHERED:
            yield b"".join(parts)
            parts, held = [], 0
    if parts:
        yield b"".join(parts)


def _zigzag(numbers: np.ndarray) -> bytes:
    """Variable-length zig-zag numbers: seven bits an octet, the lowest first; all but the last have the highest bit."""
    folded = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    most = max(7, int(folded.max()).bit_length())
    octets = folded[:, None] >> np.arange(0, most, 7, dtype=np.uint64) & np.uint64(0x7F)
    beyond = np.cumsum(octets[:, :0:-1], axis=1)[:, ::-1] > 0  # whether anything is left after an octet
    wanted = np.column_stack([np.ones(len(numbers), bool), beyond])
    octets[:, :-1] |= np.where(beyond, np.uint64(0x80), np.uint64(0))
    return bytes(octets[wanted].astype(np.uint8))


def _lengths(source: Any, path: str) -> np.ndarray:
    """Bytes of every record with its frame, -1 for NULL. CorruptedError unless they fill the file."""
    size = source.seek(0, 2)
    source.seek(max(0, size - _TAIL))
    tail = source.read(_TAIL)
    if len(tail) < _TAIL or tail[4] != _VERSION:
        raise CorruptedError(f"{path} is no blob file, or damaged: it does not end with the version {_VERSION}")
    index = int.from_bytes(tail[:4], "little")
    if index > size - _TAIL:
        raise CorruptedError(f"{path} is damaged: an index of {index} bytes in a file of {size}")
    source.seek(size - _TAIL - index)
    lengths = _deltas(source.read(index), path).cumsum()
    if (lengths < _NULL).any():
        raise UnsupportedError(f"{path} holds places of blobs that lie in other files, which are not read yet")
    stored = lengths[lengths != _NULL]
    if (stored < _FRAME).any() or stored.sum() != size - _TAIL - index:
        raise CorruptedError(f"{path} is damaged: its blobs take {stored.sum()} of {size - _TAIL - index} bytes")
    return lengths


def _deltas(data: bytes, path: str) -> np.ndarray:
    """Variable-length zig-zag numbers."""
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets < 0x80)
    if len(octets) and (not len(ends) or ends[-1] != len(octets) - 1):
        raise CorruptedError(f"{path} is damaged: its index ends within a number")
    starts = np.concatenate([[0], ends[:-1] + 1])[: len(ends)]
    shifts = (np.arange(len(octets)) - np.repeat(starts, ends - starts + 1)) * 7
    if (shifts > 63).any():
        raise CorruptedError(f"{path} is damaged: its index holds a number of more than ten bytes")
    parts = (octets & 0x7F).astype(np.uint64) << shifts.astype(np.uint64)
    numbers = np.add.reduceat(parts, starts) if len(ends) else np.zeros(0, np.uint64)
    signed: np.ndarray = ((numbers >> np.uint64(1)) ^ (np.uint64(0) - (numbers & np.uint64(1)))).view(np.int64)
    return signed


def _batch_ends(lengths: np.ndarray, rows: int, size: int) -> Iterator[int]:
    """Where batches of at most so many rows and about so many bytes end."""
    total = np.maximum(lengths, 0).cumsum()
    at = 0
    while at < len(lengths):
        before = int(total[at - 1]) if at else 0
        at = max(at + 1, min(at + rows, int(np.searchsorted(total, before + size, "right"))))
        yield at


def _records(source: Any, offset: int, lengths: np.ndarray, path: str) -> tuple[list[bytes | None], int]:
    """The blobs of neighbouring records, each checked, and where the next one begins."""
    source.seek(offset)
    with as_corrupted(path):
        data = memoryview(source.read(int(lengths[lengths > 0].sum())))
    values: list[bytes | None] = []
    at = 0
    for length in lengths.tolist():
        if length == _NULL:
            values.append(None)
            continue
        end = at + length
        size, checksum = struct.unpack("<qI", data[end - 12 : end])
        if data[at : at + 4] != _MAGIC or size != length or zlib.crc32(data[at : end - 4]) != checksum:
            raise CorruptedError(f"{path} is damaged: the blob at byte {offset + at} is not what was written")
        values.append(bytes(data[at + 4 : end - 12]))
        at = end
    return values, offset + at
