"""Single values in Iceberg's binary form, which the bounds of columns and partitions use."""

import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.schema.iceberg import IcebergType

_NUMBERS: Final = {
    "boolean": "<?", "int": "<i", "long": "<q", "float": "<f", "double": "<d", "date": "<i", "timestamp": "<q",
    "timestamptz": "<q",
}  # fmt: skip
_STORED: Final = {
    "boolean": pa.uint8(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "date": pa.int32(), "timestamp": pa.int64(), "timestamptz": pa.int64(),
}  # fmt: skip
_MICROS: Final = {"timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us", "UTC")}


def encode_bounds(values: pa.Array, kind: IcebergType | None) -> list[bytes | None]:
    """Return each value of a column in Iceberg's form; `None`: null or not a number, so no bound.

    Args:
        values: the values, in the Arrow type of the column.
        kind: Iceberg's type of the column. A nested type and `None` have no binary form.
    """
    if not isinstance(kind, str):
        return [None] * len(values)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if kind in ("string", "binary"):
        return [value if value is None else bytes(value) for value in values.cast(pa.large_binary()).to_pylist()]
    if kind.startswith("decimal"):
        return [None if value is None else _unscaled(value) for value in values.to_pylist()]
    if kind in _MICROS:
        values = values.cast(_MICROS[kind])
    stored = values.cast(_STORED[kind])
    valid = pc.is_valid(stored).to_numpy(zero_copy_only=False)
    if kind in ("float", "double"):
        valid &= ~np.isnan(stored.fill_null(0).to_numpy(zero_copy_only=False))
    width = stored.type.bit_width // 8
    data = stored.fill_null(0).to_numpy(zero_copy_only=False).tobytes()
    return [data[i * width : (i + 1) * width] if valid[i] else None for i in range(len(values))]


def _unscaled(value: Any) -> bytes:
    """Return the digits of a decimal as a big-endian integer of the minimum number of bytes."""
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    return number.to_bytes(((number if number >= 0 else ~number).bit_length() + 8) // 8, "big", signed=True)


def encode(value: Any, kind: str) -> bytes:
    """Return an internal value of a partition column in Iceberg's form."""
    return value.encode() if kind == "string" else struct.pack(_NUMBERS[kind], value)


def decoder(kind: str) -> Callable[[bytes], Any]:
    """Return the inverse of `encode` for a type."""
    return bytes.decode if kind == "string" else lambda data: struct.unpack(_NUMBERS[kind], data)[0]
