"""The ``.blobref`` file of a data file: the ``.managed.blob`` files to which its rows refer (format 11.4).

Readers do not need it. A process that deletes managed blobs does: a data file without it may refer to any of them.
"""

import struct
import zlib
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from paimon_core.errors import CorruptedError, UnsupportedError, hide_secrets
from paimon_core.format.blob_descriptor import described
from paimon_core.types.row_kind import is_retract
from paimon_core.types.system_fields import VALUE_KIND

SUFFIX: Final = ".blobref"
MANAGED_BLOB: Final = ".managed.blob"
_MAGIC: Final = struct.pack(">i", 0x50424C52)
_VERSION: Final = 1


class BlobReferences:
    """The managed files to which rows refer, which are added batch by batch. Memory: their distinct paths.

    Args:
        columns: the columns of managed blobs.
    """

    def __init__(self, columns: Iterable[str]) -> None:
        self._columns = tuple(columns)
        self._files: set[str] = set()

    def add(self, rows: pa.Table) -> None:
        """Add the files of rows with the column ``_VALUE_KIND``. Rows that delete do not count."""
        keeps = ~is_retract(rows.column(VALUE_KIND.name).to_numpy())
        rows = rows if keeps.all() else rows.filter(pa.array(keeps))
        for name in self._columns:
            for chunk in rows.column(name).chunks:
                found = described(values_of(chunk), f"column {name!r}").files
                self._files.update(path for path in found if path.endswith(MANAGED_BLOB))

    def content(self) -> bytes:
        """Return the bytes of the file: the references in the order of directory and name, with a checksum."""
        references = sorted((path.rpartition("/")[::2] for path in self._files), key=lambda pair: [*map(_order, pair)])
        parts = [struct.pack(">Bi", _VERSION, len(references))]
        parts += [_text(text) for pair in references for text in pair]
        body = b"".join(parts)
        return _MAGIC + body + struct.pack(">I", zlib.crc32(body))


def referenced_names(data: bytes, where: str) -> set[str]:
    """Return the names of the managed files, without their directories, in the bytes of a ``.blobref`` file.

    ``where``: the path of the file, for messages. Raises CorruptedError for other bytes, UnsupportedError for another
    version.
    """
    head = len(_MAGIC) + 5
    if len(data) < head + 4 or data[: len(_MAGIC)] != _MAGIC:
        raise CorruptedError(f"{hide_secrets(where)} is no list of managed blobs")
    if zlib.crc32(data[len(_MAGIC) : -4]) != struct.unpack(">I", data[-4:])[0]:
        raise CorruptedError(f"{hide_secrets(where)} is damaged: its checksum does not fit")
    version, count = struct.unpack_from(">Bi", data, len(_MAGIC))
    if version != _VERSION:
        raise UnsupportedError(
            f"{hide_secrets(where)} has version {version} of lists of managed blobs, but this engine reads {_VERSION}"
        )
    at, names = head, set()
    try:
        for number in range(2 * count):
            (length,) = struct.unpack_from(">H", data, at)
            if number % 2:
                names.add(_of_text(data[at + 2 : at + 2 + length]))
            at += 2 + length
    except (struct.error, UnicodeError) as cause:
        raise CorruptedError(f"{hide_secrets(where)} is damaged: it has no {count} references") from cause
    return names


def values_of(column: pa.Array) -> pa.Array:
    """Return the binary values in a column of BLOB, ARRAY<BLOB> or MAP<key, BLOB>, in order; NULL values stay."""
    if pa.types.is_list(column.type):
        return column.flatten()
    if pa.types.is_map(column.type):
        column = column.drop_null()  # entries that belong to a NULL go, too
        bounds = column.offsets.to_numpy()
        return column.values.slice(bounds[0], bounds[-1] - bounds[0]).field(1)
    return column


def _order(text: str) -> bytes:
    """Return a sort key: Java compares the UTF-16 units of texts."""
    return text.encode("utf-16-be")


def _text(text: str) -> bytes:
    """Return the length and the modified UTF-8 of a text, as Java's DataOutput writes it."""
    units = text.encode("utf-16-be")
    pairs = "".join(chr(unit) for unit in struct.unpack(f">{len(units) // 2}H", units))
    data = pairs.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    return struct.pack(">H", len(data)) + data


def _of_text(data: bytes) -> str:
    """Return a text from its modified UTF-8."""
    pairs = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return pairs.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
