"""The indexes of a data file in one run of bytes: a head naming columns and kinds, then their bodies (format 9.2)."""

import struct
from collections.abc import Mapping
from typing import TypeAlias

from paimon_core.errors import CorruptedError
from paimon_core.fileindex.hash_table import walked

Indexes: TypeAlias = Mapping[str, Mapping[str, bytes]]
"""Bodies by column (or ``map[key]``) and kind. An empty body: no row has a value."""

_MAGIC, _VERSION = 1493475289347502, 1
_START = struct.Struct(">qii")
_NOWHERE = -1


def pack(indexes: Indexes) -> bytes:
    """The container, byte for byte as Java lays it out."""
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
    head.append(bytes(4))  # room for what later versions may add
    return b"".join([*head, *(body for _, of_column in bodies for _, body in of_column)])


def unpack(data: bytes, where: str) -> dict[str, dict[str, bytes]]:
    """The inverse of :func:`pack`; CorruptedError names ``where`` the bytes come from."""
    try:
        magic, version, length = _START.unpack_from(data)
        if magic != _MAGIC or version != _VERSION:
            raise CorruptedError(f"{where} is no file index of version {_VERSION}: it starts with {data[:12].hex()}")
        at = _START.size
        (columns,) = struct.unpack_from(">i", data, at)
        at += 4
        found: dict[str, dict[str, bytes]] = {}
        for _ in range(columns):
            column, at = _name(data, at)
            (count,) = struct.unpack_from(">i", data, at)
            at += 4
            for _ in range(count):
                kind, at = _name(data, at)
                start, size = struct.unpack_from(">ii", data, at)
                at += 8
                found.setdefault(column, {})[kind] = _body(data, start, size, length)
        if at + 4 > length:
            raise ValueError(f"its head has {length} bytes, but takes {at + 4}")
    except (struct.error, ValueError) as error:
        raise CorruptedError(f"{where} is a damaged file index: {error}") from error
    return found


def _body(data: bytes, start: int, size: int, head: int) -> bytes:
    if start == _NOWHERE and size == 0:
        return b""
    if start < head or size <= 0 or start + size > len(data):
        raise ValueError(f"an index from byte {start}, of {size} bytes, does not lie within {head} and {len(data)}")
    return data[start : start + size]


def _utf(name: str) -> bytes:
    """A name as Java writes it: each UTF-16 unit by itself, zero in two bytes, after the number of bytes."""
    units = struct.iter_unpack("<H", name.encode("utf-16-le", "surrogatepass"))
    text = b"".join(chr(u).encode("utf-8", "surrogatepass") if u else b"\xc0\x80" for (u,) in units)
    return struct.pack(">H", len(text)) + text


def _name(data: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">H", data, at)
    text = data[at + 2 : at + 2 + size]
    if len(text) < size:
        raise ValueError("a name runs beyond the end")
    units = text.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le"), at + 2 + size
