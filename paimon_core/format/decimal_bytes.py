"""Conversion of decimals to the bytes that Avro stores, and back.

The bytes are the shortest big-endian two's complement form of the unscaled value.
"""

import numpy as np
import pyarrow as pa

_WIDTH = 16  # bytes of a decimal128, little-endian
_BYTE_INDEX = np.arange(_WIDTH)


def to_bytes(decimals: pa.Array) -> pa.Array:
    """Return a decimal128 array as binary; null stays null."""
    rows = len(decimals)
    valid = decimals.is_valid().to_numpy(zero_copy_only=False)
    little = np.frombuffer(decimals.buffers()[1], np.uint8).reshape(-1, _WIDTH)
    big = little[decimals.offset : decimals.offset + rows, ::-1]
    sign = np.where(big[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    differs = big != sign
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), _WIDTH - 1)  # the first byte needed
    first_byte = np.take_along_axis(big, first[:, None], axis=1)
    lengths = _WIDTH - first + ((first_byte ^ sign) >= 0x80).ravel()  # one more byte if its top bit is not the sign
    lengths = np.where(valid, lengths, 0)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    flat = np.ascontiguousarray(big[_WIDTH - lengths[:, None] <= _BYTE_INDEX])
    return _with_buffers(pa.binary(), decimals, [pa.py_buffer(offsets), pa.py_buffer(flat)])


def from_bytes(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return a binary array as the decimal128 type ``target``; null stays null.

    A value without bytes becomes 0: the fields of a null struct have such values. Raises ValueError for a value of more
    than 16 bytes or too many digits.
    """
    rows = len(values)
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + rows + 1]
    data = values.buffers()[2]
    flat = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.empty(0, np.uint8)
    lengths = np.diff(offsets)
    if (lengths > _WIDTH).any():
        raise ValueError("a decimal is stored in more than 16 bytes")
    starts = (offsets[:-1] - offsets[0])[lengths > 0]
    negative = np.zeros(rows, bool)
    negative[lengths > 0] = flat[starts] >= 0x80
    big = np.zeros((rows, _WIDTH), np.uint8)
    big[negative] = 0xFF
    big[_WIDTH - lengths[:, None] <= _BYTE_INDEX] = flat
    little = np.ascontiguousarray(big[:, ::-1])
    wide = _with_buffers(pa.decimal128(38, target.scale), values, [pa.py_buffer(little)])
    return wide.cast(target)


def _with_buffers(kind: pa.DataType, like: pa.Array, data: list[pa.Buffer]) -> pa.Array:
    """Return an array of these data buffers with length and nulls of ``like``."""
    validity = None
    if like.null_count:
        validity = pa.py_buffer(np.packbits(like.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))
    return pa.Array.from_buffers(kind, len(like), [validity, *data], like.null_count)
