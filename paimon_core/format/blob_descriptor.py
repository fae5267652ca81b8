"""Blob descriptors (format 7.7): the file, the position and the length of a blob, as bytes in place of the blob."""

import struct
from typing import Final

import numpy as np
import pyarrow as pa

from paimon_core.errors import UnsupportedError

_VERSION: Final = 2
_MAGIC: Final = struct.pack("<q", 0x424C4F4244455343)
_HEAD: Final = 1 + len(_MAGIC)
_MAX_BYTES: Final = 2**31 - 1  # of all descriptors in one Arrow array
_SHORTEST: Final = _HEAD + 4 + 16  # with an empty path


def descriptors(path: str, starts: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """Return the descriptors of blobs in one file (binary), NULL where the length is negative.

    Args:
        path: the path of the file.
        starts: the position of each blob in bytes (int64).
        lengths: the bytes of each blob (int64), negative for NULL.

    Raises UnsupportedError if the descriptors take more than 2 GiB.
    """
    name = path.encode()
    head = bytes([_VERSION]) + _MAGIC + struct.pack("<i", len(name)) + name
    if len(starts) * (len(head) + 16) > _MAX_BYTES:
        raise UnsupportedError(
            f"the descriptors of {len(starts)} blobs in {path} take more than 2 GiB: read fewer rows at once with "
            "'read.batch-size', or read the blobs without 'blob-as-descriptor'"
        )
    rows = np.empty((len(starts), len(head) + 16), np.uint8)
    rows[:, : len(head)] = np.frombuffer(head, np.uint8)
    rows[:, len(head) :] = np.column_stack([starts, lengths]).astype("<i8").view(np.uint8).reshape(-1, 16)
    valid = lengths >= 0
    offsets = np.concatenate([[0], np.where(valid, rows.shape[1], 0).cumsum()]).astype(np.int32)
    validity = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    data = pa.py_buffer(rows[valid].tobytes())
    return pa.Array.from_buffers(pa.binary(), len(starts), [validity, pa.py_buffer(offsets), data])


def has_descriptor(data: memoryview, starts: np.ndarray, lengths: np.ndarray) -> bool:
    """Return True if one of the values begins as a descriptor; their bytes are ``data[start : start + length]``."""
    starts = starts[lengths >= _SHORTEST]
    heads = np.frombuffer(data, np.uint8)[starts[:, None] + np.arange(_HEAD)]
    found = (heads[:, 0] <= _VERSION) & (heads[:, 1:] == np.frombuffer(_MAGIC, np.uint8)).all(axis=1)
    return bool(found.any())
