"""The Avro object container: a header with the writer's schema, then compressed blocks of records.

Only the framing and the codecs live here; records are coded by fastavro, a whole block in one call: a block of n
records is, byte for byte, one Avro array of n items without the closing zero. So nothing of a file is taken on trust:
every length, sync marker and left-over byte is checked.

Written by hand: the writer codes a block in one call, which fastavro's writer does not; the reader mirrors it.
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
from typing import Any, Protocol

import fastavro
from cramjam import snappy

from paimon_core.errors import CorruptedError, UnsupportedError

try:
    from compression import zstd  # type: ignore[import-not-found, unused-ignore]  # Python 3.14
except ImportError:
    from backports import zstd

MAGIC = b"Obj\x01"
SYNC_SIZE = 16
_CHUNK = 1 << 20  # bytes fetched at once
_META = {"type": "map", "values": "bytes"}

Schema = Any  # an Avro schema as json gives it: str, dict or list


class Readable(Protocol):
    """What the decoders need of a file."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes; fewer than asked for only at the end."""


class Writable(Protocol):
    """What the encoders need of a file."""

    def write(self, data: bytes, /) -> Any:
        """Append all of it."""


@dataclass(frozen=True, slots=True)
class Header:
    """The head of a container: schema, codec, and the marker that follows every block.

    ``text``: the schema as it is written, the same in all files of one writer.
    """

    text: bytes
    schema: Schema
    codec: str
    sync: bytes


@dataclass(slots=True)
class _Bytes:
    """Exact reads on top of a file, fetched in large pieces. EOFError when the file is shorter than that."""

    source: Readable
    buffer: bytes = b""
    at: int = 0

    def read(self, size: int = -1, /) -> bytes:
        """Exactly ``size`` bytes."""
        end = self.at + size
        if size < 0 or end > len(self.buffer):
            self._fetch(size)
            end = size
            if size < 0 or end > len(self.buffer):
                raise EOFError(f"{size} bytes expected, {len(self.buffer)} left")
        piece = self.buffer[self.at : end]
        self.at = end
        return piece

    def _fetch(self, size: int) -> None:
        pieces = [self.buffer[self.at :]]
        held = len(pieces[0])
        while held < size:
            piece = self.source.read(_CHUNK)
            if not piece:
                break
            pieces.append(bytes(piece))
            held += len(piece)
        self.buffer, self.at = b"".join(pieces), 0

    def at_end(self) -> bool:
        """Whether not one byte is left."""
        if self.at == len(self.buffer):
            self._fetch(1)
        return self.at == len(self.buffer)


class Container:
    """An open container: its header, then its blocks one by one, decompressed.

    ``path`` names the file in messages; ``most``: bytes that all blocks may have decompressed. Raises CorruptedError on
    anything but a well-formed container; errors of the storage itself pass.
    """

    def __init__(self, source: Readable, path: str = "", most: int | None = None) -> None:
        self._path, self._bytes = path, _Bytes(source)
        self._most = sys.maxsize if most is None else most
        try:
            self.header = _read_header(self._bytes)
        except OSError:
            raise
        except Exception as cause:
            raise CorruptedError(f"{path or 'the data'} is not a readable Avro file: {_said(cause)}") from cause
        self._decompress = _codec(_DECOMPRESS, self.header.codec, path)

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Pairs (number of records, their encoded bytes)."""
        left = self._most
        while not self._bytes.at_end():
            try:
                count, size = _read_long(self._bytes), _read_long(self._bytes)
                if count < 0 or size < 0:
                    raise ValueError(f"a block of {count} records in {size} bytes")
                packed = self._bytes.read(size)
                if self._bytes.read(SYNC_SIZE) != self.header.sync:
                    raise ValueError("the sync marker after a block is wrong")
                data = bytes(self._decompress(packed, left))
                left -= len(data)
            except OSError:
                raise
            except Exception as cause:
                raise self.corrupted(cause) from cause
            yield count, data

    def records(self, decoder: "BlockDecoder") -> Iterator[list[Any]]:
        """The records of each block, decoded."""
        for count, data in self.blocks():
            try:
                records = decoder.decode(count, data)
            except Exception as cause:
                raise self.corrupted(cause) from cause
            yield records

    def corrupted(self, cause: Exception) -> CorruptedError:
        """What to raise for a block that does not decode."""
        return CorruptedError(f"{self._path or 'the Avro data'} is damaged: {_said(cause)}")


class BlockDecoder:
    """Records of one writer schema."""

    def __init__(self, schema: Schema) -> None:
        self._items = _array_of(schema)

    def decode(self, count: int, data: bytes) -> list[Any]:
        """The records of a block; ValueError when there are more or fewer bytes than records need."""
        if count == 0:
            return []
        if count > len(data):
            raise ValueError(f"a block of {count} records in {len(data)} bytes")
        framed = io.BytesIO(b"".join((encode_long(count), data, b"\0")))
        records = fastavro.schemaless_reader(framed, self._items, None)
        if framed.read(1) or len(records) != count:
            raise ValueError(f"a block does not hold exactly the {count} records it promises")
        return list(records)


class ContainerWriter:
    """Writes a container block by block; ``written`` counts its bytes. The sink stays open and is the caller's."""

    def __init__(self, sink: Writable, schema: Schema, codec: str, level: int) -> None:
        self.written = 0
        self._sink, self._level = sink, level
        self._compress: Callable[[bytes, int], bytes] = _codec(_COMPRESS, codec, "")
        self._items = _array_of(schema)
        self._sync = os.urandom(SYNC_SIZE)
        head = io.BytesIO()
        meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
        fastavro.schemaless_writer(head, _META, meta)
        self._emit(MAGIC + head.getvalue() + self._sync)

    def write(self, records: list[Any]) -> None:
        """One block of these records."""
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


def _array_of(schema: Schema) -> Any:
    return fastavro.parse_schema({"type": "array", "items": schema}, _force=True)


def encode_long(value: int) -> bytes:
    """Avro's variable-length zig-zag integer."""
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
    meta: dict[str, bytes] = {}
    while (count := _read_long(source)) != 0:
        if count < 0:  # a map block may give its size in bytes, to be skipped over
            count = -count
            _read_long(source)
        for _ in range(count):
            key = source.read(_length(source)).decode()
            meta[key] = source.read(_length(source))
    schema = json.loads(meta["avro.schema"])
    return Header(meta["avro.schema"], schema, meta.get("avro.codec", b"null").decode(), source.read(SYNC_SIZE))


def _length(source: _Bytes) -> int:
    length = _read_long(source)
    if length < 0:
        raise ValueError(f"a length of {length}")
    return length


def _said(cause: Exception) -> str:
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__


def _plain(packed: bytes, most: int) -> bytes:
    _check_size(packed, len(packed), most)
    return packed


def _check_size(packed: bytes, size: int, most: int) -> None:
    if size > most:
        raise ValueError(f"{len(packed)} compressed bytes become more than the {most} bytes that may still come")


def _in_streams(begin: Callable[[], Any], *, one: bool = False) -> Callable[[bytes, int], bytes]:
    """A function that decompresses streams, one after another, to no more bytes than it is told.

    ``one``: what follows the first stream is passed over; writers exist that leave part of a checksum there.
    """

    def decompress(packed: bytes, most: int) -> bytes:
        pieces: list[bytes] = []
        rest, left = packed, most
        while rest or not pieces:
            stream = begin()
            piece = stream.decompress(rest, min(left + 1, sys.maxsize))
            _check_size(packed, len(piece), left)
            if not stream.eof:
                raise EOFError("a compressed block is cut")
            left -= len(piece)
            pieces.append(piece)
            rest = b"" if one else stream.unused_data
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    return decompress


def _unsnap(packed: bytes, most: int) -> bytes:
    _check_size(packed, snappy.decompress_raw_len(packed[:-4]), most)
    data = bytes(snappy.decompress_raw(packed[:-4]))
    if zlib.crc32(data) != int.from_bytes(packed[-4:], "big"):
        raise ValueError("the checksum of a snappy block is wrong")
    return data


def _snap(data: bytes, _level: int) -> bytes:
    return bytes(snappy.compress_raw(data)) + zlib.crc32(data).to_bytes(4, "big")


def _zstd(data: bytes, level: int) -> bytes:
    setting = zstd.CompressionParameter
    return bytes(zstd.compress(data, options={setting.compression_level: level, setting.checksum_flag: 1}))


def _deflate(data: bytes, _level: int) -> bytes:
    squeezer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return squeezer.compress(data) + squeezer.flush()


_DECOMPRESS: dict[str, Callable[[bytes, int], bytes]] = {
    "null": _plain,
    "deflate": _in_streams(lambda: zlib.decompressobj(-15), one=True),
    "snappy": _unsnap,
    "zstandard": _in_streams(zstd.ZstdDecompressor),
    "bzip2": _in_streams(bz2.BZ2Decompressor),
    "xz": _in_streams(lzma.LZMADecompressor),
}
_COMPRESS: dict[str, Callable[[bytes, int], bytes]] = {
    "null": lambda data, _level: data,
    "deflate": _deflate,
    "snappy": _snap,
    "zstandard": _zstd,
    "bzip2": lambda data, _level: bz2.compress(data),
    "xz": lambda data, _level: lzma.compress(data),
}


def _codec(codecs: Mapping[str, Any], name: str, path: str) -> Any:
    if name not in codecs:
        where = f"{path} is compressed with" if path else "no such"
        raise UnsupportedError(f"{where} Avro codec {name!r}; known are {', '.join(codecs)}")
    return codecs[name]
