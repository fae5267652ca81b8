"""Text files (format 7.7), read in blocks of whole lines; the file is compressed as a whole or not at all."""

import bz2
import codecs
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format.codec import zstd
from paimon_core.format.file_format import FormatWriter
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField

_BLOCK_BYTES = 4 << 20
_NONE = ("none", "null", "uncompressed")
_SUFFIX = {**dict.fromkeys(_NONE, ""), "gzip": "gz", "bzip2": "bz2", "zstd": "zst"}
_STREAMS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}  # Arrow's names of the codecs, by file extension


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class _Uncompressed:
    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


_COMPRESSORS: dict[str, Callable[[], _Compressor]] = {
    "": _Uncompressed,
    "gz": lambda: zlib.compressobj(wbits=31),
    "bz2": bz2.BZ2Compressor,
    "zst": lambda: zstd.ZstdCompressor(level=1),
}


def compression_suffix(codec: str) -> str:
    """Return the extension that a codec adds to a text file's name, without a dot; "" for no compression.

    Raises UnsupportedError for an unknown codec.
    """
    suffix = _SUFFIX.get(codec.lower())
    if suffix is None:
        raise UnsupportedError(
            f"compression {codec!r} cannot be written in text files; choose one of none, gzip, bzip2, zstd"
        )
    return suffix


def line_blocks(source: Any, path: str, quote: bytes = b"") -> Iterator[bytes]:
    """Yield the text of a file in blocks of whole lines and about 4 MiB; the last line may lack its line feed.

    A byte order mark at the beginning is left out.

    Args:
        source: a seekable file.
        path: its name; the extension gives the compression.
        quote: the quote character; a block ends only after an even number of quotes. Empty: lines have no quotes.

    Raises CorruptedError if the file does not decompress, UnsupportedError for an unsupported compression.
    """
    source.seek(0)
    suffix = path.rsplit(".", 1)[-1].lower()
    codec = _STREAMS.get(suffix)
    if codec is None and suffix in ("deflate", "snappy", "lz4"):
        raise UnsupportedError(f"{path} is compressed as {suffix}, which is not supported for text files")
    stream = source if codec is None else pa.CompressedInputStream(source, codec)
    held = _read(stream, path).removeprefix(codecs.BOM_UTF8)
    data = held
    while data:
        end = held.rfind(b"\n") + 1
        if end and not (quote and held.count(quote, 0, end) % 2):
            yield held[:end]
            held = held[end:]
        data = _read(stream, path)
        held += data
    if held:
        yield held


def _read(stream: Any, path: str) -> bytes:
    try:
        return bytes(stream.read(_BLOCK_BYTES))
    except OSError as cause:
        if cause.errno is not None:
            raise
        raise CorruptedError(f"{path} is damaged or incomplete: {cause}") from cause


def count_lines(source: Any, path: str) -> int:
    """Return the number of lines, including a last one without a line feed."""
    count, last = 0, b"\n"
    for block in line_blocks(source, path):
        count += block.count(b"\n")
        last = block[-1:]
    return count + (last != b"\n")


class LineWriter(FormatWriter):
    """The base class of writers of compressed lines. `tell` omits the bytes that the compressor still holds."""

    def __init__(self, sink: Any, fields: Sequence[DataField], codec: str) -> None:
        self._sink, self._compressor = sink, _COMPRESSORS[compression_suffix(codec)]()
        self._fields, self._schema = tuple(fields), arrow_schema(fields)
        self._written = 0  # compressed bytes

    def tell(self) -> int:
        """See `FormatWriter.tell`."""
        return self._written

    def close(self) -> None:
        """See `FormatWriter.close`."""
        self._put(self._compressor.flush())

    def _write_lines(self, data: bytes) -> None:
        self._put(self._compressor.compress(data))

    def _put(self, data: bytes) -> None:
        if data:
            self._sink.write(data)
            self._written += len(data)


def joined_lines(values: Sequence[pa.Array], delimiter: str) -> bytes:
    """Return the lines of a batch, each with its line feed, given its columns as texts.

    The data buffer of the returned array is the text of the file.
    """
    lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*values, delimiter), "", "\n")
    _, offsets, data = lines.buffers()
    ends = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, offsets], offset=lines.offset)
    first, last = ends[0].as_py(), ends[-1].as_py()
    return bytes(data[first:last]) if last else b""
