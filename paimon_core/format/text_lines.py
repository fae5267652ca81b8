"""Text files (format 7.7): lines in blocks of bounded size, compressed as a whole or not at all."""

import bz2
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pyarrow as pa

from paimon_core.errors import CorruptedError, UnsupportedError

try:
    from compression import zstd  # type: ignore[import-not-found, unused-ignore]  # Python 3.14
except ImportError:
    from backports import zstd

_BLOCK_BYTES = 4 << 20
_NONE = ("none", "null", "uncompressed")
_SUFFIX = {**dict.fromkeys(_NONE, ""), "gzip": "gz", "bzip2": "bz2", "zstd": "zst"}
_STREAMS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}  # by the end of a file's name, as Arrow calls them


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class _Plain:
    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


_COMPRESSORS: dict[str, Callable[[], _Compressor]] = {
    "": _Plain,
    "gz": lambda: zlib.compressobj(wbits=31),
    "bz2": bz2.BZ2Compressor,
    "zst": lambda: zstd.ZstdCompressor(level=1),
}


def compression_suffix(codec: str) -> str:
    """What a codec adds to a text file's name, without a dot; nothing for none. UnsupportedError for unknown ones."""
    suffix = _SUFFIX.get(codec.lower())
    if suffix is None:
        raise UnsupportedError(
            f"compression {codec!r} cannot be written in text files; choose one of none, gzip, bzip2, zstd"
        )
    return suffix


def line_blocks(source: Any, path: str, quote: bytes = b"") -> Iterator[bytes]:
    """The file's text in blocks of whole lines of some MiB; the last one may lack its line end.

    With a ``quote`` no block ends between two of them, as far as each counts. CorruptedError for what is no such file.
    """
    source.seek(0)
    codec = _STREAMS.get(path.rsplit(".", 1)[-1].lower())
    if codec is None and path.rsplit(".", 1)[-1].lower() in ("deflate", "snappy", "lz4"):
        raise UnsupportedError(f"{path} is compressed as {path.rsplit('.', 1)[-1]}, which text files are not read in")
    stream = source if codec is None else pa.CompressedInputStream(source, codec)
    held = b""
    while piece := _read(stream, path):
        held += piece
        end = held.rfind(b"\n") + 1
        if end and not (quote and held.count(quote, 0, end) % 2):
            yield held[:end]
            held = held[end:]
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
    """Lines of the file, a last one without an end included."""
    count, last = 0, b"\n"
    for block in line_blocks(source, path):
        count += block.count(b"\n")
        last = block[-1:]
    return count + (last != b"\n")


class LineWriter:
    """Writes text to a sink, compressed."""

    def __init__(self, sink: Any, codec: str) -> None:
        self._sink, self._compressor = sink, _COMPRESSORS[compression_suffix(codec)]()
        self.written = 0

    def write(self, data: bytes) -> None:
        """Append some lines."""
        self._put(self._compressor.compress(data))

    def close(self) -> None:
        """Write what the compressor holds; the sink stays open."""
        self._put(self._compressor.flush())

    def _put(self, data: bytes) -> None:
        if data:
            self._sink.write(data)
            self.written += len(data)
