"""Blob descriptors (format 7.7): the file, the position and the length of a blob, as bytes in place of the blob."""

import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from paimon_core.errors import CorruptedError, UnsupportedError

DESCRIPTOR_VERSION: Final = 2
_MAGIC: Final = struct.pack("<q", 0x424C4F4244455343)
DESCRIPTOR_HEAD: Final = bytes([DESCRIPTOR_VERSION]) + _MAGIC
"""The first bytes of a descriptor."""
_HEAD: Final = len(DESCRIPTOR_HEAD)
_MAX_BYTES: Final = 2**31 - 1  # of all descriptors in one Arrow array
_SHORTEST: Final = _HEAD + 4 + 16  # with an empty path
_TO_THE_END: Final = -1  # the length of a blob that reaches to the end of its file


@dataclass(frozen=True, slots=True)
class Described:
    """The blobs that descriptors describe, in their order, without NULL.

    ``files``: the distinct files; ``file_of``: the number of the file of each blob; ``starts``: positions in bytes;
    ``lengths``: bytes, -1 for a blob that reaches to the end of its file.
    """

    files: tuple[str, ...]
    file_of: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


def descriptors(path: str, starts: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """Return the descriptors of blobs in one file (binary), NULL where the length is negative.

    Args:
        path: the path of the file.
        starts: the position of each blob in bytes (int64).
        lengths: the bytes of each blob (int64), negative for NULL.

    Raises UnsupportedError if the descriptors take more than 2 GiB.
    """
    name = path.encode()
    head = DESCRIPTOR_HEAD + struct.pack("<i", len(name)) + name
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
    found = (heads[:, 0] <= DESCRIPTOR_VERSION) & (heads[:, 1:] == np.frombuffer(_MAGIC, np.uint8)).all(axis=1)
    return bool(found.any())


def described(values: pa.Array, where: str) -> Described:
    """Return the blobs that descriptors describe.

    Args:
        values: the descriptors (binary), of version 1 or 2; NULL is left out.
        where: the column or the file of the values, for messages.

    Raises CorruptedError for a value that is no descriptor, UnsupportedError for a newer version.
    """
    values = values.drop_null()
    if not len(values):
        nothing = np.zeros(0, np.int64)
        return Described((), nothing, nothing, nothing)
    data, begins, sizes = binary_bounds(values)
    _check(sizes >= 1, where)
    versions = data[begins]
    if (versions > DESCRIPTOR_VERSION).any():
        raise UnsupportedError(
            f"{where} has a blob descriptor of version {versions.max()}; this engine reads versions up to "
            f"{DESCRIPTOR_VERSION}"
        )
    heads = np.where(versions > 1, _HEAD, 1)  # version 1 has no magic number
    _check((versions >= 1) & (sizes >= heads + 20), where)
    newer = begins[versions > 1]
    _check((data[newer[:, None] + 1 + np.arange(len(_MAGIC))] == np.frombuffer(_MAGIC, np.uint8)).all(axis=1), where)
    path_begins = begins + heads + 4
    path_sizes = stored_numbers(data, path_begins - 4, "<i4")
    _check((path_sizes >= 0) & (path_sizes <= sizes - heads - 20), where)
    starts, lengths = (stored_numbers(data, path_begins + path_sizes + after, "<i8") for after in (0, 8))
    _check((starts >= 0) & (lengths >= _TO_THE_END), where)
    return Described(*stored_texts(data, path_begins, path_sizes, where), starts, lengths)


def binary_bounds(values: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bytes of all values of a binary array (uint8), and the start and the length of each value in them."""
    bounds = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    return data, bounds[:-1].astype(np.int64), np.diff(bounds).astype(np.int64)


def stored_texts(
    data: np.ndarray, begins: np.ndarray, sizes: np.ndarray, where: str
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the distinct texts among parts of bytes, and the number of the text of each part.

    Args:
        data: the bytes (uint8).
        begins: the start of each part.
        sizes: the bytes of each part, which are UTF-8.
        where: the source of the values, for messages.

    Raises CorruptedError for a text that is not UTF-8.
    """
    ends = sizes.cumsum()
    at = np.repeat(begins - (ends - sizes), sizes) + np.arange(ends[-1])
    offsets = pa.py_buffer(np.concatenate([[0], ends]).astype(np.int32))
    parts = pa.Array.from_buffers(pa.binary(), len(begins), [None, offsets, pa.py_buffer(data[at].tobytes())])
    distinct = parts.dictionary_encode()
    try:
        texts = tuple(text.decode() for text in distinct.dictionary.to_pylist())
    except UnicodeDecodeError as cause:
        raise CorruptedError(f"{where} has a reference to a blob with a name that is not UTF-8") from cause
    return texts, distinct.indices.to_numpy().astype(np.int64)


def _check(valid: np.ndarray, where: str) -> None:
    if not valid.all():
        raise CorruptedError(
            f"{where} has a value that is no blob descriptor: value {int(np.argmin(valid))}, without NULL, of a batch"
        )


def stored_numbers(data: np.ndarray, begins: np.ndarray, kind: str) -> np.ndarray:
    """Return the little-endian numbers at these positions, as int64."""
    width = np.dtype(kind).itemsize
    numbers: np.ndarray = data[begins[:, None] + np.arange(width)].view(kind).reshape(-1).astype(np.int64)
    return numbers


def begins_as_descriptor(values: pa.Array) -> np.ndarray:
    """Return True for each value (binary) that begins as a descriptor of version 2; False for NULL."""
    return begins_with(values, DESCRIPTOR_HEAD, _SHORTEST)


def begins_with(values: pa.Array, head: bytes, shortest: int, at: int = 0) -> np.ndarray:
    """Return True for each value (binary) of at least ``shortest`` bytes that has ``head`` at a position.

    NULL is False. REQUIRES: ``at + len(head) <= shortest``.
    """
    found = np.zeros(len(values), bool)
    if len(values):
        data, begins, sizes = binary_bounds(values)
        fits = sizes >= shortest
        if values.null_count:
            fits &= values.is_valid().to_numpy(zero_copy_only=False)
        heads = data[begins[fits][:, None] + at + np.arange(len(head))]
        found[fits] = (heads == np.frombuffer(head, np.uint8)).all(axis=1)
    return found
