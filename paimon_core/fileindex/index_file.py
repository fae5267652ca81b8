"""The container of all indexes of a data file: a head with columns and kinds, then the bodies (format 9.2)."""

import struct
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, TypeAlias

from paimon_core.errors import CorruptedError
from paimon_core.fileindex.hash_table import walked

Indexes: TypeAlias = Mapping[str, Mapping[str, bytes]]
"""Bodies by column (or ``map[key]``) and kind. An empty body: all values are null."""

_MAGIC, _VERSION = 1493475289347502, 1
_START = struct.Struct(">qii")
_NOWHERE = -1
_FIRST_READ, _MOST_HEAD = 1 << 13, 1 << 26


def pack(indexes: Indexes) -> bytes:
    """Return the container, byte for byte as Java writes it."""
    kinds = walked(kind for bodies in indexes.values() for kind in bodies)
    added = [c for kind in kinds for c in walked(c for c, bodies in indexes.items() if kind in bodies)]
    columns = walked(added, newest_first=True)
    bodies = [(c, [(k, indexes[c][k]) for k in walked(k for k in kinds if k in indexes[c])]) for c in columns]
    length = (
        _START.size + 8 + sum(len(_utf(c)) + 4 + sum(len(_utf(k)) + 8 for k, _ in of_column) for c, of_column in bodies)
    )
    head = [_START.pack(_MAGIC, _VERSION, length), struct.pack(">i", len(columns))]
    at = length
    for column, of_column in bodies:
        head += [_utf(column), struct.pack(">i", len(of_column))]
        for kind, body in of_column:
            head += [_utf(kind), struct.pack(">ii", at if body else _NOWHERE, len(body))]
            at += len(body)
    head.append(bytes(4))  # reserved for later versions
    return b"".join([*head, *(body for _, of_column in bodies for _, body in of_column)])


def read(source: BinaryIO, columns: Collection[str] | None, where: str) -> dict[str, dict[str, bytes]]:
    """Read only the indexes of these columns (``None``: all) from a container in a seekable file.

    Raises CorruptedError naming ``where``.
    """
    with _explained(where):
        length, extents = _head(source, where)
        end = source.seek(0, 2)
        return {
            column: {kind: _body(source, *extent, length, end) for kind, extent in kinds.items()}
            for column, kinds in extents.items()
            if columns is None or column in columns
        }


def read_sizes(source: BinaryIO, where: str) -> dict[str, dict[str, int]]:
    """Read the sizes in bytes of all indexes in a container (0: all values are null). Reads only its head.

    Raises CorruptedError naming ``where``.
    """
    with _explained(where):
        source.seek(0)
        _, extents = _head(source, where)
        return {column: {kind: size for kind, (_, size) in kinds.items()} for column, kinds in extents.items()}


@contextmanager
def _explained(where: str) -> Iterator[None]:
    try:
        yield
    except (struct.error, ValueError) as error:
        raise CorruptedError(f"{where} is a damaged file index: {error}") from error


def _head(source: BinaryIO, where: str) -> tuple[int, dict[str, dict[str, tuple[int, int]]]]:
    """Return the length of the head, and the start and the length of each index, by column and kind."""
    head = source.read(_FIRST_READ)
    magic, version, length = _START.unpack_from(head)
    if magic != _MAGIC or version != _VERSION:
        raise CorruptedError(f"{where} is not a file index of version {_VERSION}: it starts with {head[:12].hex()}")
    if length > _MOST_HEAD:
        raise ValueError(f"its head takes {length} bytes")
    head += source.read(max(0, length - len(head)))
    return length, _extents(head, length)


def _extents(head: bytes, length: int) -> dict[str, dict[str, tuple[int, int]]]:
    """Return the start and the length of each index, by column and kind."""
    at = _START.size
    (columns,) = struct.unpack_from(">i", head, at)
    at += 4
    extents: dict[str, dict[str, tuple[int, int]]] = {}
    for _ in range(columns):
        column, at = _name(head, at)
        (count,) = struct.unpack_from(">i", head, at)
        at += 4
        for _ in range(count):
            kind, at = _name(head, at)
            extents.setdefault(column, {})[kind] = struct.unpack_from(">ii", head, at)
            at += 8
    if at + 4 > length:
        raise ValueError(f"its header needs {at + 4} bytes, but is declared with {length}")
    return extents


def _body(source: BinaryIO, start: int, size: int, head: int, end: int) -> bytes:
    if start == _NOWHERE and size == 0:
        return b""
    if start < head or size <= 0 or start + size > end:
        raise ValueError(f"an index of {size} bytes at byte {start} is not between bytes {head} and {end}")
    source.seek(start)
    return source.read(size)


def _utf(name: str) -> bytes:
    """Encode a name like Java: the number of bytes, then each UTF-16 unit separately, with zero as two bytes."""
    units = struct.iter_unpack("<H", name.encode("utf-16-le", "surrogatepass"))
    text = b"".join(chr(u).encode("utf-8", "surrogatepass") if u else b"\xc0\x80" for (u,) in units)
    return struct.pack(">H", len(text)) + text


def _name(data: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">H", data, at)
    text = data[at + 2 : at + 2 + size]
    if len(text) < size:
        raise ValueError("a name extends past the end")
    units = text.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le"), at + 2 + size
