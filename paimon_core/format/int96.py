"""Exact decoding of Parquet's INT96 timestamps over their whole range.

Arrow converts INT96 to nanoseconds that wrap silently outside the years 1677 to 2262. Its conversion to coarser units
is wrong for negative nanoseconds of the day, which other engines write for times before 1970. So this module changes
the type of these columns in the footer to fixed bytes, whose encoding is the same, and converts the bytes itself.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paimon_core.errors import UnsupportedError
from paimon_core.format import thrift
from paimon_core.format.parquet_columns import schema_of

BEYOND_NANOSECONDS = (
    "it holds a timestamp outside the years 1677 to 2262, which nanoseconds cannot hold; change the "
    "column's precision to 6, or leave it out"
)
WIDTH = 12  # bytes
_STORED = np.dtype([("nanos", "<i8"), ("day", "<i4")])
_EPOCH_DAY = 2440588  # Julian day of 1970-01-01
_NANOS_OF_DAY = 86_400_000_000_000
NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}  # by Arrow's unit
_SAFE_DAYS = 106_750  # since the epoch: one day less than an int64 of nanoseconds can hold

_INT96, _FIXED = 3, 7  # physical types
_SCHEMA, _ROW_GROUPS, _COLUMNS, _COLUMN_META = 2, 4, 1, 3  # field ids of the footer's structures
_ELEMENT_TYPE, _ELEMENT_LENGTH, _META_TYPE, _META_STATISTICS = 1, 2, 1, 12


def has_int96(metadata: Any) -> bool:
    """Return True if a column of the file is INT96."""
    schema = schema_of(metadata)
    return any(schema.column(i).physical_type == "INT96" for i in range(metadata.num_columns))


def with_bytes_for_int96(source: Any) -> Any:
    """Return the file's footer, as pyarrow's metadata, with every INT96 column as one of 12 fixed bytes."""
    size = source.seek(0, 2)
    source.seek(size - 8)
    length = int.from_bytes(source.read(4), "little")
    source.seek(size - 8 - length)
    footer = thrift.decode(source.read(length))
    for element in footer.structs(_SCHEMA):
        if element.get_int(_ELEMENT_TYPE) == _INT96:
            element.set_int(_ELEMENT_TYPE, _FIXED)
            element.set_int(_ELEMENT_LENGTH, WIDTH)
    for group in footer.structs(_ROW_GROUPS):
        for chunk in group.structs(_COLUMNS):
            meta = chunk.struct(_COLUMN_META)
            if meta.get_int(_META_TYPE) == _INT96:
                meta.set_int(_META_TYPE, _FIXED)
                meta.drop(_META_STATISTICS)
    patched = thrift.encode(footer)
    file = b"".join((b"PAR1", patched, len(patched).to_bytes(4, "little"), b"PAR1"))
    return pq.read_metadata(pa.BufferReader(file))


def decode_int96(array: pa.Array, unit: str) -> pa.Array:
    """Return INT96 values, given as fixed bytes, as int64 in ``unit`` since the epoch, rounded down.

    Raises UnsupportedError for a value that nanoseconds cannot hold.
    """
    stored = np.frombuffer(array.buffers()[1], _STORED)[array.offset : array.offset + len(array)]
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    days = stored["day"].astype(np.int64) - _EPOCH_DAY
    if unit == "ns":
        far = np.abs(days) > _SAFE_DAYS
        if mask is not None:
            far &= ~mask
        if far.any():
            raise UnsupportedError(BEYOND_NANOSECONDS)
    per_unit = NANOS[unit]
    counted = days * (_NANOS_OF_DAY // per_unit) + np.floor_divide(stored["nanos"], per_unit)
    return pa.array(counted, pa.int64(), mask=mask)
