"""Descriptors and views of blobs as Spark expressions (format 7.7)."""

import struct
from collections.abc import Callable
from typing import Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from paimon_core import Table, blob_views
from paimon_core.engine import DESCRIPTOR_HEAD, DESCRIPTOR_VERSION, stored_as_views, tracking_fields
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.types.datatype import AtomicType
from paimon_spark.little_endian import bytes_of, number_of

_WHOLE: Final = struct.pack("<qq", 0, -1)
"""The last bytes of a descriptor: from the beginning of the file to its end."""
_FIXED: Final = 4 + 8 + 8  # bytes of a descriptor besides its head and its path


def whole_file_descriptor(path: Column) -> Column:
    """Return descriptors (BINARY) of the blobs that whole files are, NULL for NULL. ``path``: paths of files, STRING.

    The file is not opened.
    """
    name = F.encode(path, "UTF-8")
    length = F.substr(bytes_of(F.octet_length(name)), F.lit(1), F.lit(4))
    return F.concat(_constant(DESCRIPTOR_HEAD), length, name, _constant(_WHOLE))


def descriptor_text(descriptor: Column) -> Column:
    """Return descriptors (BINARY) as Java prints them, NULL for NULL; a value that is no descriptor fails the query."""
    part: Callable[[Column, int], Column] = lambda first, count: F.substr(descriptor, first + 1, F.lit(count))  # noqa: E731
    size, version = F.octet_length(descriptor), number_of(F.substr(descriptor, F.lit(1), F.lit(1)))
    is_newer = version > 1  # version 1 has no magic number
    head = F.when(is_newer, F.lit(len(DESCRIPTOR_HEAD))).otherwise(F.lit(1))
    length = number_of(part(head, 4))
    end = head + 4 + length.cast("int")
    magic = part(F.lit(1), len(DESCRIPTOR_HEAD) - 1) == _constant(DESCRIPTOR_HEAD[1:])
    fits = (size >= head + _FIXED) & length.between(F.lit(0), size - head - _FIXED)
    valid = version.between(1, DESCRIPTOR_VERSION) & (~is_newer | magic) & fits
    text = F.concat(
        F.lit("BlobDescriptor{version="), version.cast("string"),
        F.lit(", uri='"), F.decode(F.substr(descriptor, head + 5, length.cast("int")), "UTF-8"),
        F.lit("', offset="), number_of(part(end, 8)).cast("string"),
        F.lit(", length="), number_of(part(end + 8, 8)).cast("string"), F.lit("}"),
    )  # fmt: skip
    shown = F.hex(F.substr(descriptor, F.lit(1), F.lit(len(DESCRIPTOR_HEAD))))
    error = F.concat(
        F.lit("descriptor_to_string: a value is no descriptor of a blob; it begins with X'"), shown, F.lit("'")
    )
    return F.when(descriptor.isNotNull(), F.when(valid, text).otherwise(F.raise_error(error)))


def blob_view(table: Table, name: str, column: str, row_id: Column) -> Column:
    """Return views (BINARY) of the blobs of one column of a table, NULL for NULL.

    Args:
        table: the table with the blobs.
        name: its name with its database, as another table of the same catalog stores it.
        column: the column of blobs.
        row_id: the ids of rows of the table, BIGINT: the values of ``_ROW_ID``.

    Raises InvalidInputError for a column that is missing or stores no blobs, and for a table without row ids;
    UnsupportedError for a column of views.
    """
    field = next((f for f in table.schema.fields if f.name == column), None)
    if field is None or not (isinstance(field.type, AtomicType) and field.type.root == "BLOB"):
        kind = "is no column" if field is None else f"has the type {field.type}, not BLOB"
        raise InvalidInputError(f"blob_view: {column!r} {kind} of {name}, which has {list(table.schema.names)}")
    if not tracking_fields(table.schema):
        raise InvalidInputError(f"blob_view: {name} has no row ids: its option 'row-tracking.enabled' is not 'true'")
    if column in stored_as_views(table.schema):
        raise UnsupportedError(
            f"blob_view: column {column!r} of {name} holds views itself: name the table that they name"
        )
    head = blob_views(name, field.id, pa.array([0]))[0].as_py()[:-8]
    return F.concat(_constant(head), bytes_of(row_id))


def _constant(data: bytes) -> Column:
    return F.unhex(F.lit(data.hex()))
