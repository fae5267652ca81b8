"""Views of blobs (format 7.7): the table, the column and the row of a blob, as bytes in place of the blob."""

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from paimon_core.errors import CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.format.blob_descriptor import begins_with, binary_bounds, stored_numbers, stored_texts

_VERSION: Final = 1
_MAGIC: Final = struct.pack("<q", 0x424C4F4256494557)
_HEAD: Final = bytes([_VERSION]) + _MAGIC
_FIXED: Final = len(_HEAD) + 4 + 4 + 8  # bytes besides the name of the table


@dataclass(frozen=True, slots=True)
class Views:
    """The blobs that views name, in their order, without NULL.

    ``tables``: the distinct names of tables, such as ``db.t``; ``table_of``: the number of the table of each blob;
    ``field_ids``: the ids of the columns; ``row_ids``: the ids of the rows (int64).
    """

    tables: tuple[str, ...]
    table_of: np.ndarray
    field_ids: np.ndarray
    row_ids: np.ndarray


def blob_views(table: str, field_id: int, row_ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return views (binary) of the blobs of one column, for a column of ``blob-view-field`` of another table.

    Args:
        table: the name of the table with its database, in the same catalog, such as "db.t".
        field_id: the id of the column: ``table.schema.field("image").id``.
        row_ids: the ids of the rows, without NULL: the values of ``_ROW_ID``.

    Raises InvalidInputError for a name without a database, or row ids that are no numbers.
    """
    if not all(table.partition(".")):
        raise InvalidInputError(f"{table!r} is no name of a table with its database, such as 'db.t'")
    if not pa.types.is_integer(row_ids.type) or row_ids.null_count:
        raise InvalidInputError(f"row ids must be numbers without NULL, not {row_ids.type}")
    numbers, name = row_ids.to_numpy(), table.encode()
    head = _HEAD + struct.pack("<i", len(name)) + name + struct.pack("<i", field_id)
    rows = np.empty((len(numbers), len(head) + 8), np.uint8)
    rows[:, : len(head)] = np.frombuffer(head, np.uint8)
    rows[:, len(head) :] = numbers.astype("<i8").view(np.uint8).reshape(-1, 8)
    kind = pa.binary(rows.shape[1])
    return pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(rows.tobytes())]).cast(pa.binary())


def begins_as_view(values: pa.Array) -> np.ndarray:
    """Return True for each value (binary) that begins as a view and is long enough for one; False for NULL."""
    return begins_with(values, _HEAD, _FIXED)


def views(values: pa.Array, where: str) -> Views:
    """Return the blobs that views name.

    Args:
        values: the views (binary); NULL is left out.
        where: the column of the values, for messages.

    Raises CorruptedError for a value that is no view, UnsupportedError for another version.
    """
    values = values.drop_null()
    if not len(values):
        nothing = np.zeros(0, np.int64)
        return Views((), nothing, nothing, nothing)
    data, begins, sizes = binary_bounds(values)
    versions = data[begins[sizes > 0]]
    if len(versions) and (versions != _VERSION).any() and begins_with(values, _MAGIC, _FIXED, 1).all():
        raise UnsupportedError(f"{where} has a view of a blob of a version other than {_VERSION}")
    valid = begins_as_view(values)
    if valid.all():
        name_begins = begins + len(_HEAD) + 4
        name_sizes = stored_numbers(data, name_begins - 4, "<i4")
        valid = (name_sizes >= 0) & (name_sizes <= sizes - _FIXED)
    if not valid.all():
        raise CorruptedError(f"{where} has a value that is no view of a blob, although 'blob-view-field' names it")
    tables, table_of = stored_texts(data, name_begins, name_sizes, where)
    field_ids = stored_numbers(data, name_begins + name_sizes, "<i4")
    return Views(tables, table_of, field_ids, stored_numbers(data, name_begins + name_sizes + 4, "<i8"))
