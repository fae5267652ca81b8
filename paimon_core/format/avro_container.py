"""The Avro object container: a header with the writer's schema, then compressed blocks of records.

This module does the framing and the compression. fastavro codes the records, a whole block in one call: a block of n
records is, byte for byte, one Avro array of n items without the closing zero. Every length, sync marker and left-over
byte of a file is checked.

The container is written by hand. fastavro's writer does not code a block in one call. Its `block_reader` takes about as
long as this reader (8 and 9 ms for 40 000 records), but it accepts snappy blocks with a wrong checksum and negative
counts, and it does not limit the decompressed bytes.
"""

import bz2
import io
import json
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import fastavro
from cramjam import snappy

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format.codec import zstd

MAGIC = b"Obj\x01"
SYNC_SIZE = 16
_FETCH_BYTES = 1 << 20
_META = fastavro.parse_schema({"type": "map", "values": "bytes"})

Schema = Any  # an Avro schema as decoded from JSON: str, dict or list


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a container."""

    text: bytes
    """The schema as JSON text, the same in all files of one writer."""
    schema: Schema
    """The decoded ``text``."""
    codec: str
    """Avro's name of the compression."""
    sync: bytes
    """The marker that follows every block."""


@dataclass(slots=True)
class _Bytes:
    """A reader of an exact number of bytes at a time from a file, which it fetches in large chunks."""

    source: Any
    buffer: bytes = b""
    offset: int = 0  # of the next byte in the buffer

    def read(self, size: int) -> bytes:
        """Return exactly ``size`` bytes. Raises EOFError for a shorter file, ValueError for a negative size."""
        if size < 0:
            raise ValueError(f"a length of {size}")
        end = self.offset + size
        if end > len(self.buffer):
            self._fetch(size)
            end = size
            if end > len(self.buffer):
                raise EOFError(f"{size} bytes expected, {len(self.buffer)} left")
        data = self.buffer[self.offset : end]
        self.offset = end
        return data

    def _fetch(self, size: int) -> None:
        """Drop the bytes before ``offset``; fill the buffer to at least ``size`` bytes, if the file is long enough."""
        chunks = [self.buffer[self.offset :]]
        held = len(chunks[0])
        while held < size and (chunk := self.source.read(_FETCH_BYTES)):
            chunks.append(bytes(chunk))
            held += len(chunk)
        self.buffer, self.offset = b"".join(chunks), 0

    def at_end(self) -> bool:
        """Return True if the file has no further byte."""
        if self.offset == len(self.buffer):
            self._fetch(1)
        return self.offset == len(self.buffer)


class Container:
    """A reader of a container: its header, then its blocks one by one, decompressed.

    Memory: one block, and one megabyte of the file.
    """

    def __init__(
        self, source: Any, path: str = "", max_bytes: int | None = None, max_records: int | None = None
    ) -> None:
        """Read the header.

        Args:
            source: a file at its beginning.
            path: the name of the file for messages.
            max_bytes: the limit for all decompressed blocks together, above which CorruptedError is raised; `None`: no
                limit.
            max_records: the same for the number of all records.

        Raises CorruptedError for anything but a well-formed container, UnsupportedError for an unknown codec. Errors of
        the storage itself pass.
        """
        self._path, self._bytes = path, _Bytes(source)
        self._max_bytes = sys.maxsize if max_bytes is None else max_bytes
        self._max_records = sys.maxsize if max_records is None else max_records
        try:
            self.header = _read_header(self._bytes)
        except OSError:
            raise
        except Exception as cause:
            raise CorruptedError(f"{path or 'the data'} is not a readable Avro file: {_text_of(cause)}") from cause
        self._decompress = _codec(_DECOMPRESS, self.header.codec, path)

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield for each block the number of its records and their encoded bytes. Raises CorruptedError."""
        remaining, records = self._max_bytes, 0
        while not self._bytes.at_end():
            try:
                count, size = _read_long(self._bytes), _read_long(self._bytes)
                if count < 0:
                    raise ValueError(f"a block of {count} records")
                records += count
                if records > self._max_records:
                    raise ValueError(f"{records} records, more than the allowed {self._max_records}")
                packed = self._bytes.read(size)
                if self._bytes.read(SYNC_SIZE) != self.header.sync:
                    raise ValueError("the sync marker after a block is wrong")
                data = bytes(self._decompress(packed, remaining))
                remaining -= len(data)
            except OSError:
                raise
            except Exception as cause:
                raise self.corrupted(cause) from cause
            yield count, data

    def records(self, decoder: "BlockDecoder") -> Iterator[list[Any]]:
        """Yield the decoded records of each block. Raises CorruptedError."""
        for count, data in self.blocks():
            try:
                records = decoder.decode(count, data)
            except Exception as cause:
                raise self.corrupted(cause) from cause
            yield records

    def corrupted(self, cause: Exception) -> CorruptedError:
        """Return the error to raise for a block that does not decode."""
        return CorruptedError(f"{self._path or 'the Avro data'} is damaged: {_text_of(cause)}")


class BlockDecoder:
    """A decoder of the records of one writer schema. Raises the errors of `check_bounded` for its schema."""

    def __init__(self, schema: Schema) -> None:
        check_bounded(schema)
        self._items = _array_of(schema)

    def decode(self, count: int, data: bytes) -> list[Any]:
        """Return the ``count`` records of a block. Raises ValueError if ``data`` is longer or shorter than they are."""
        if count == 0:
            return []
        if count > len(data):
            raise ValueError(f"a block claims {count} records in {len(data)} bytes")
        framed = io.BytesIO(b"".join((encode_long(count), data, b"\0")))
        records = fastavro.schemaless_reader(framed, self._items, None)
        if framed.read(1) or len(records) != count:
            raise ValueError(f"a block does not hold exactly the {count} records that it declares")
        return list(records)


class ContainerWriter:
    """A writer of a container, block by block. The caller owns the sink, which stays open."""

    def __init__(
        self, sink: Any, schema: Schema, codec: str, level: int, properties: Mapping[str, bytes] | None = None
    ) -> None:
        """Write the header.

        Args:
            sink: where to write.
            schema: the Avro schema of the records.
            codec: Avro's name of the compression.
            level: the zstd level; other codecs have a fixed level.
            properties: further entries of the header; `None`: no further entries.

        Raises UnsupportedError for an unknown codec.
        """
        self.written = 0  # bytes
        self._sink, self._level = sink, level
        self._compress: Callable[[bytes, int], bytes] = _codec(_COMPRESS, codec, "")
        self._items = _array_of(schema)
        self._sync = os.urandom(SYNC_SIZE)
        head = io.BytesIO()
        meta = {**(properties or {}), "avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
        fastavro.schemaless_writer(head, _META, meta)
        self._emit(MAGIC + head.getvalue() + self._sync)

    def write(self, records: list[Any]) -> None:
        """Write the records as one block; nothing if the list is empty."""
        if not records:
            return
        framed = io.BytesIO()
        fastavro.schemaless_writer(framed, self._items, records)
        count = encode_long(len(records))
        packed = self._compress(framed.getvalue()[len(count) : -1], self._level)
        self._emit(b"".join((count, encode_long(len(packed)), packed, self._sync)))

    def _emit(self, data: bytes) -> None:
        self._sink.write(data)
        self.written += len(data)


def check_bounded(schema: Schema) -> None:
    """Raise ValueError for a schema of unbounded values: records that contain themselves, or lists of empty items.

    A few bytes could stand for any number of such values. Also raises it for a field whose name is no text.
    """
    _takes_bytes(schema, {})


def _takes_bytes(schema: Any, takes_bytes_by_name: dict[str, bool | None]) -> bool:
    """Return True if every value of this schema takes at least a byte.

    ``takes_bytes_by_name``: the result for each named type; `None`: not known yet.
    """
    if isinstance(schema, list):
        for branch in schema:
            _takes_bytes(branch, takes_bytes_by_name)
        return True
    if isinstance(schema, str):
        schema = schema.rpartition(".")[2]
        if schema in takes_bytes_by_name and takes_bytes_by_name[schema] is None:
            raise ValueError(f"a record {schema!r} that contains itself")
        return schema != "null" and bool(takes_bytes_by_name.get(schema, True))
    match schema.get("type"):
        case "record":
            return _record_takes_bytes(schema, takes_bytes_by_name)
        case "array" | "map" as kind:
            if (
                not _takes_bytes(schema["items" if kind == "array" else "values"], takes_bytes_by_name)
                and kind == "array"
            ):
                raise ValueError("a list with items, but without bytes")
            return True
        case "fixed":
            return bool(schema["size"])
        case "enum":
            return True
        case inner:
            return _takes_bytes(inner, takes_bytes_by_name)


def _record_takes_bytes(schema: dict[str, Any], takes_bytes_by_name: dict[str, bool | None]) -> bool:
    name, fields = schema["name"].rpartition(".")[2], schema["fields"]
    if not all(isinstance(field["name"], str) for field in fields):
        raise ValueError(f"a field of the record {name!r} whose name is no text")
    takes_bytes_by_name[name] = None
    of_fields = [_takes_bytes(field["type"], takes_bytes_by_name) for field in fields]
    takes_bytes_by_name[name] = any(of_fields)
    return any(of_fields)


def _array_of(schema: Schema) -> Any:
    return fastavro.parse_schema({"type": "array", "items": schema}, _force=True)


def encode_long(value: int) -> bytes:
    """Return an int64 as Avro's variable-length zig-zag integer."""
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _read_long(source: _Bytes) -> int:
    value = shift = 0
    while shift < 70:
        byte = source.read(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
        shift += 7
    raise ValueError("an integer of more than ten bytes")


def _read_header(source: _Bytes) -> Header:
    if source.read(len(MAGIC)) != MAGIC:
        raise ValueError("it does not begin with Obj\\x01")
    meta = fastavro.schemaless_reader(source, _META, None)
    schema = json.loads(meta["avro.schema"])
    return Header(meta["avro.schema"], schema, meta.get("avro.codec", b"null").decode(), source.read(SYNC_SIZE))


def _text_of(cause: Exception) -> str:
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__


def _uncompressed(packed: bytes, max_bytes: int) -> bytes:
    _check_size(packed, len(packed), max_bytes)
    return packed


def _check_size(packed: bytes, size: int, max_bytes: int) -> None:
    """Raise ValueError if the block ``packed``, of ``size`` bytes when decompressed, exceeds ``max_bytes``."""
    if size > max_bytes:
        raise ValueError(f"{len(packed)} compressed bytes decompress to more than the allowed {max_bytes} bytes")


def _in_streams(begin: Callable[[], Any], *, first_only: bool = False) -> Callable[[bytes, int], bytes]:
    """Return a function that decompresses consecutive streams to at most a given number of bytes.

    Args:
        begin: makes the decompressor of one stream.
        first_only: True to ignore bytes after the first stream; some writers leave part of a checksum there.
    """

    def decompress(packed: bytes, max_bytes: int) -> bytes:
        parts: list[bytes] = []
        rest, remaining = packed, max_bytes
        while rest or not parts:
            stream = begin()
            part = stream.decompress(rest, min(remaining + 1, sys.maxsize))
            _check_size(packed, len(part), remaining)
            if not stream.eof:
                raise EOFError("a compressed block is truncated")
            remaining -= len(part)
            parts.append(part)
            rest = b"" if first_only else stream.unused_data
        return parts[0] if len(parts) == 1 else b"".join(parts)

    return decompress


def _decompress_snappy(packed: bytes, max_bytes: int) -> bytes:
    _check_size(packed, snappy.decompress_raw_len(packed[:-4]), max_bytes)
    data = bytes(snappy.decompress_raw(packed[:-4]))
    if zlib.crc32(data) != int.from_bytes(packed[-4:], "big"):
        raise ValueError("the checksum of a snappy block is wrong")
    return data


def _compress_snappy(data: bytes, _level: int) -> bytes:
    return bytes(snappy.compress_raw(data)) + zlib.crc32(data).to_bytes(4, "big")


def _compress_zstd(data: bytes, level: int) -> bytes:
    parameter = zstd.CompressionParameter
    return bytes(zstd.compress(data, options={parameter.compression_level: level, parameter.checksum_flag: 1}))


def _compress_deflate(data: bytes, _level: int) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
    return compressor.compress(data) + compressor.flush()


_DECOMPRESS: dict[str, Callable[[bytes, int], bytes]] = {
    "null": _uncompressed,
    "deflate": _in_streams(lambda: zlib.decompressobj(-15), first_only=True),
    "snappy": _decompress_snappy,
    "zstandard": _in_streams(zstd.ZstdDecompressor),
    "bzip2": _in_streams(bz2.BZ2Decompressor),
    "xz": _in_streams(lzma.LZMADecompressor),
}
_COMPRESS: dict[str, Callable[[bytes, int], bytes]] = {
    "null": lambda data, _level: data,
    "deflate": _compress_deflate,
    "snappy": _compress_snappy,
    "zstandard": _compress_zstd,
    "bzip2": lambda data, _level: bz2.compress(data),
    "xz": lambda data, _level: lzma.compress(data),
}


def _codec(codecs: Mapping[str, Any], name: str, path: str) -> Any:
    """Return ``codecs[name]``. Raises UnsupportedError, naming the file ``path`` if there is one, for other names."""
    if name not in codecs:
        problem = f"{path} is compressed with" if path else "no such"
        raise UnsupportedError(f"{problem} Avro codec {name!r}; known are {', '.join(codecs)}")
    return codecs[name]
