"""The payloads of the records of a blob file (format 7.7): a blob itself, or a framed ARRAY or MAP of blobs.

Lengths, indexes and keys are encoded and decoded for all records of a batch at once.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from paimon_core.errors import CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.format.avro_columns import NotVectorizableError, variable_numbers
from paimon_core.format.blob_descriptor import descriptors, has_descriptor
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import AtomicType, DataType, MapType
from paimon_core.types.map_entries import map_entries

NULL: Final = -1  # the length of a NULL
_VERSION: Final = 1
_HEADER: Final = struct.Struct("<iBi")  # magic, version, number of elements
_ARRAY_MAGIC: Final = 1094861634
_MAP_MAGIC: Final = 0x4D424342
_MAX_BYTES: Final = 2**31 - 1  # of all blobs in one Arrow array
_FIXED_KEYS: Final = {"TINYINT": 1, "SMALLINT": 2, "INT": 4, "BIGINT": 8, "BOOLEAN": 1, "DATE": 4, "TIME": 4}
_VARIABLE_KEYS: Final = ("BINARY", "VARBINARY", "CHAR", "VARCHAR")
_COMPACT_DIGITS: Final = 18  # the most digits of a decimal of eight bytes


@dataclass(frozen=True, slots=True)
class Payloads:
    """Encoded payloads: payload ``i`` is ``heads[i]``, then ``data[begins[i]:ends[i]]``, then ``tails[i]``.

    ``lengths``: bytes of each payload (int64), -1 for NULL. ``heads`` and ``tails`` are empty for a column of BLOB.
    ``has_descriptor``: True if a blob begins as the descriptor of another blob.
    """

    data: memoryview
    begins: np.ndarray
    ends: np.ndarray
    heads: Sequence[bytes]
    tails: Sequence[bytes]
    lengths: np.ndarray
    has_descriptor: bool


def encoded_payloads(values: pa.Array) -> Payloads:
    """Return the payloads of an Arrow array of binary, of lists of binary, or of maps to binary.

    Blobs are not copied. Raises InvalidInputError for a map with two equal keys.
    """
    kind = values.type
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return _encoded_elements(values)
    offsets = _offsets(values).astype(np.int64)
    lengths = np.diff(offsets)
    lengths[_nulls(values)] = NULL
    found = has_descriptor(_data(values), offsets[:-1], lengths)
    return Payloads(_data(values), offsets[:-1], offsets[1:], (), (), lengths, found)


def decoded_payloads(
    payloads: Sequence[memoryview | None], t: DataType, path: str, starts: np.ndarray | None = None
) -> pa.Array:
    """Return the values of payloads, `None` for NULL, as an Arrow array of a BLOB type.

    Args:
        payloads: the payloads of consecutive records.
        t: the type of the column: BLOB, or an ARRAY or MAP of it.
        path: the path of the file.
        starts: the position of each payload in the file in bytes, to return descriptors; `None`: blobs are returned.

    Raises CorruptedError for a damaged payload, UnsupportedError for an unknown version or for more than 2 GiB.
    """
    if isinstance(t, AtomicType):
        lengths = np.array([NULL if p is None else len(p) for p in payloads], np.int64)
        if starts is not None:
            return descriptors(path, starts, lengths)
        return _binary([p for p in payloads if p is not None], lengths, pa.binary(), path)
    has_keys = isinstance(t, MapType)
    rows = np.array([i for i, p in enumerate(payloads) if p is not None], np.int64)
    parts = [_parts(p, has_keys, path) for p in payloads if p is not None]
    counts = np.zeros(len(payloads), np.int64)
    counts[rows] = [part.count for part in parts]
    data_sizes = np.array([len(part.data) for part in parts], np.int64)
    value_lengths = _decoded_lengths([part.value_index for part in parts], counts[rows], data_sizes, path)
    value_sizes = _sums(value_lengths, counts[rows])
    key_sizes = np.zeros(len(parts), np.int64)
    key_lengths = np.zeros(0, np.int64)
    if has_keys:
        key_lengths = _decoded_lengths([part.key_index for part in parts], counts[rows], data_sizes, path)
        key_sizes = _sums(key_lengths, counts[rows])
    if (value_sizes + key_sizes != data_sizes).any():
        raise CorruptedError(f"{path} is damaged: the elements of {t} do not fill their record")
    if starts is None:
        blobs = [part.data[size:] for part, size in zip(parts, key_sizes.tolist(), strict=True)]
        items = _binary(blobs, value_lengths, pa.binary(), path)
    else:
        first_blobs = starts[rows] + _HEADER.size + key_sizes
        items = descriptors(path, _element_starts(first_blobs, value_lengths, counts[rows]), value_lengths)
    offsets = pa.py_buffer(np.concatenate([[0], counts.cumsum()]).astype(np.int32))
    valid = np.zeros(len(payloads), bool)
    valid[rows] = True
    validity = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    if not has_keys:
        child = items
    else:
        assert isinstance(t, MapType)
        key_bytes = [part.data[:size] for part, size in zip(parts, key_sizes.tolist(), strict=True)]
        keys = _decoded_keys(key_bytes, key_lengths, t.key, path)
        _check_distinct(keys, np.repeat(rows, counts[rows]), CorruptedError(f"{path} is damaged: a map repeats a key"))
        child = map_entries(keys, items, to_arrow(t))
    return pa.Array.from_buffers(to_arrow(t), len(payloads), [validity, offsets], children=[child])


def check_map_keys(t: DataType, column: str) -> None:
    """Raise InvalidInputError if a column is a map of blobs with keys of a type that blob files cannot hold."""
    if isinstance(t, MapType) and not (isinstance(t.key, AtomicType) and _is_key_root(t.key.root)):
        known = ", ".join((*_FIXED_KEYS, "DECIMAL", *_VARIABLE_KEYS))
        raise InvalidInputError(f"column {column!r} is {t}, but the keys of a map of blobs must be one of {known}")


def zigzag(numbers: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Return int64 numbers as variable-length zig-zag numbers, and the bytes of each number.

    Each byte has seven bits, the lowest first; the highest bit is set in all bytes of a number but the last.
    """
    if not len(numbers):
        return b"", np.zeros(0, np.int64)
    folded = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    bits = max(7, int(folded.max()).bit_length())
    groups = folded[:, None] >> np.arange(0, bits, 7, dtype=np.uint64) & np.uint64(0x7F)
    continues = np.cumsum(groups[:, :0:-1], axis=1)[:, ::-1] > 0  # True if a higher group is not 0
    used = np.column_stack([np.ones(len(numbers), bool), continues])
    groups[:, :-1] |= np.where(continues, np.uint64(0x80), np.uint64(0))
    return bytes(groups[used].astype(np.uint8)), used.sum(axis=1)


# ---- encode


def _encoded_elements(values: pa.Array) -> Payloads:
    """Return the payloads of lists or maps."""
    is_map = pa.types.is_map(values.type)
    offsets = _offsets(values).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    offsets -= first
    nulls = _nulls(values)
    items = _without_hidden_bytes((values.items if is_map else values.values).slice(first, last - first))
    item_offsets = _offsets(items).astype(np.int64)
    item_lengths = np.diff(item_offsets)
    item_lengths[_nulls(items)] = NULL
    begins, ends = item_offsets[offsets[:-1]], item_offsets[offsets[1:]]
    counts = np.diff(offsets)
    value_index, value_ends = _index(item_lengths, offsets)
    if not is_map:
        heads = [_HEADER.pack(_ARRAY_MAGIC, _VERSION, count) for count in counts.tolist()]
        tails = [
            value_index[low:high] + struct.pack("<i", high - low)
            for low, high in zip(value_ends[:-1].tolist(), value_ends[1:].tolist(), strict=True)
        ]
        return _payloads(items, begins, ends, heads, tails, nulls)
    keys = values.keys.slice(first, last - first)
    hidden = np.repeat(nulls, counts)  # the entries of maps that are NULL do not count
    rows = np.where(hidden, -1 - np.arange(len(hidden)), np.repeat(np.arange(len(values)), counts))
    _check_distinct(keys, rows, InvalidInputError("a map of blobs has two equal keys: keys must be distinct"))
    key_data, key_offsets = _encoded_keys(keys)
    key_index, key_ends = _index(np.diff(key_offsets), offsets)
    key_bounds = key_offsets[offsets].tolist()
    heads = [
        _HEADER.pack(_MAP_MAGIC, _VERSION, count) + key_data[low:high]
        for count, low, high in zip(counts.tolist(), key_bounds[:-1], key_bounds[1:], strict=True)
    ]
    bounds = zip(*(ends.tolist()[at:] for ends in (key_ends, value_ends) for at in (0, 1)), strict=False)
    tails = [key_index[a:b] + value_index[c:d] + struct.pack("<ii", b - a, d - c) for a, b, c, d in bounds]
    return _payloads(items, begins, ends, heads, tails, nulls)


def _payloads(
    items: pa.Array, begins: np.ndarray, ends: np.ndarray, heads: list[bytes], tails: list[bytes], nulls: np.ndarray
) -> Payloads:
    around = np.array([len(head) + len(tail) for head, tail in zip(heads, tails, strict=True)], np.int64)
    offsets = _offsets(items).astype(np.int64)
    found = has_descriptor(_data(items), offsets[:-1], np.diff(offsets))
    return Payloads(_data(items), begins, ends, heads, tails, np.where(nulls, NULL, ends - begins + around), found)


def _index(lengths: np.ndarray, offsets: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Return the differences of lengths as zig-zag numbers, and the end in bytes of each record's numbers.

    ``offsets``: the first length of each record, then their number. The ends begin with 0. Each record starts from 0.
    """
    differences = np.diff(lengths, prepend=0)
    starts = np.unique(offsets[:-1][offsets[:-1] < len(lengths)])
    differences[starts] = lengths[starts]
    data, sizes = zigzag(differences)
    return data, np.concatenate([[0], sizes.cumsum()])[offsets]


def _encoded_keys(keys: pa.Array) -> tuple[bytes | memoryview, np.ndarray]:
    """Return the bytes of all keys and the bounds of each."""
    t = keys.type
    if pa.types.is_binary(t) or pa.types.is_string(t):
        return _data(keys), _offsets(keys).astype(np.int64)
    count = len(keys)
    if pa.types.is_decimal(t):
        unscaled = np.frombuffer(keys.buffers()[1], np.uint8).reshape(-1, 16)[keys.offset : keys.offset + count]
        if t.precision <= _COMPACT_DIGITS:
            return unscaled[:, :8].tobytes(), np.arange(count + 1, dtype=np.int64) * 8
        return _minimal(unscaled[:, ::-1])
    if pa.types.is_boolean(t):
        return keys.cast(pa.uint8()).to_numpy().tobytes(), np.arange(count + 1, dtype=np.int64)
    width = t.bit_width // 8
    stored = memoryview(keys.buffers()[1] or b"")[keys.offset * width : (keys.offset + count) * width]
    return stored, np.arange(count + 1, dtype=np.int64) * width


def _minimal(numbers: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Return big-endian numbers of 16 bytes in two's complement without spare bytes, and their bounds."""
    negative = numbers[:, :1] >= 0x80
    fill = np.where(negative, 0xFF, 0).astype(np.uint8)
    same_sign = (numbers[:, 1:] >= 0x80) == negative
    spare = np.logical_and.accumulate((numbers[:, :-1] == fill) & same_sign, axis=1)
    stored = np.column_stack([~spare, np.ones(len(numbers), bool)])
    return numbers[stored].tobytes(), np.concatenate([[0], stored.sum(axis=1).cumsum()])


def _without_hidden_bytes(values: pa.Array) -> pa.Array:
    """Return the binary values, without bytes that belong to a NULL."""
    if values.null_count and np.diff(_offsets(values))[_nulls(values)].any():
        return values.take(pa.array(np.arange(len(values))))
    return values


# ---- decode


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a payload: the number of elements, the bytes of keys and blobs, and the indexes of their lengths."""

    count: int
    data: memoryview
    key_index: memoryview
    value_index: memoryview


def _parts(payload: memoryview, has_keys: bool, path: str) -> _Parts:
    sizes_length = 8 if has_keys else 4
    end = len(payload) - sizes_length
    if end < _HEADER.size:
        raise CorruptedError(f"{path} is damaged: a record of {len(payload)} bytes is too short for its elements")
    magic, version, count = _HEADER.unpack_from(payload)
    if magic != (_MAP_MAGIC if has_keys else _ARRAY_MAGIC):
        raise CorruptedError(f"{path} is damaged: a record does not begin as {'a map' if has_keys else 'an array'}")
    if version != _VERSION:
        raise UnsupportedError(f"{path} has records of version {version}; this engine reads version {_VERSION}")
    key_size, value_size = struct.unpack_from("<ii", payload, end) if has_keys else (0, *_I.unpack_from(payload, end))
    data_end = end - key_size - value_size
    if min(count, key_size, value_size) < 0 or data_end < _HEADER.size:
        raise CorruptedError(f"{path} is damaged: the index of a record is longer than the record")
    return _Parts(
        count,
        payload[_HEADER.size : data_end],
        payload[data_end : data_end + key_size],
        payload[data_end + key_size : end],
    )


_I: Final = struct.Struct("<i")


def _decoded_lengths(indexes: Sequence[memoryview], counts: np.ndarray, limits: np.ndarray, path: str) -> np.ndarray:
    """Return the lengths of the elements of all records, -1 for NULL.

    Args:
        indexes: the index of each record.
        counts: the number of elements of each record.
        limits: the greatest length of an element of each record.
        path: the path of the file.
    """
    ends = np.cumsum([len(index) for index in indexes], dtype=np.int64)
    try:
        differences, found = variable_numbers(b"".join(indexes), np.concatenate([[0], ends])[:-1], ends)
    except NotVectorizableError as cause:
        raise CorruptedError(f"{path} is damaged: the index of a record: {cause}") from cause
    if (found != counts).any():
        raise CorruptedError(f"{path} is damaged: the index of a record has another number of elements")
    totals = np.concatenate([[0], differences.cumsum()])
    bounds = np.concatenate([[0], counts.cumsum()])
    lengths: np.ndarray = totals[1:] - np.repeat(totals[bounds[:-1]], counts)
    if ((lengths < NULL) | (lengths > np.repeat(limits, counts))).any():
        raise CorruptedError(f"{path} is damaged: an element of a record has an impossible length")
    return lengths


def _sums(lengths: np.ndarray, counts: np.ndarray) -> np.ndarray:
    totals = np.concatenate([[0], np.maximum(lengths, 0).cumsum()])
    bounds = np.concatenate([[0], counts.cumsum()])
    sums: np.ndarray = totals[bounds[1:]] - totals[bounds[:-1]]
    return sums


def _element_starts(first: np.ndarray, lengths: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the position of each element of all records. ``first``: the position of each record's first element."""
    before = np.concatenate([[0], np.maximum(lengths, 0).cumsum()])
    bounds = np.concatenate([[0], counts.cumsum()])
    starts: np.ndarray = before[:-1] + np.repeat(first - before[bounds[:-1]], counts)
    return starts


def _binary(parts: Sequence[memoryview], lengths: np.ndarray, kind: pa.DataType, path: str) -> pa.Array:
    """Return variable-length values whose bytes are the joined parts. ``lengths``: -1 for NULL."""
    ends = np.maximum(lengths, 0).cumsum()
    if len(ends) and ends[-1] > _MAX_BYTES:
        raise UnsupportedError(
            f"{path} has a record with {ends[-1]} bytes of blobs, more than 2 GiB: read its descriptors with "
            "'blob-as-descriptor' = 'true'"
        )
    offsets = pa.py_buffer(np.concatenate([[0], ends]).astype(np.int32))
    valid = lengths != NULL
    validity = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(lengths), [validity, offsets, pa.py_buffer(b"".join(parts))])


def _decoded_keys(parts: Sequence[memoryview], lengths: np.ndarray, t: DataType, path: str) -> pa.Array:
    """Return the keys of maps from their joined bytes. Raises CorruptedError for keys that are no value of their type.

    UnsupportedError for keys that are NULL, which Arrow and Spark cannot hold.
    """
    if (lengths == NULL).any():
        raise UnsupportedError(f"{path} has a map with a NULL as key: keys that are NULL cannot be read")
    if not (isinstance(t, AtomicType) and _is_key_root(t.root)):
        raise UnsupportedError(f"{path} has maps with keys of type {t}, which this engine does not read")
    kind = to_arrow(t)
    if t.root in _VARIABLE_KEYS:
        keys = _binary(parts, lengths, kind, path)
        try:
            keys.validate(full=True)
        except pa.ArrowInvalid as cause:
            raise CorruptedError(f"{path} is damaged: a key of type {t} is not UTF-8") from cause
        return keys
    data = b"".join(parts)
    if t.root == "DECIMAL":
        return _decoded_decimals(data, lengths, t, path)
    width = _FIXED_KEYS[t.root]
    if (lengths != width).any():
        raise CorruptedError(f"{path} is damaged: a key of type {t} does not have {width} bytes")
    if t.root == "BOOLEAN":
        numbers = np.frombuffer(data, np.uint8)
        if (numbers > 1).any():
            raise CorruptedError(f"{path} is damaged: a key of type {t} is neither 0 nor 1")
        return pa.array(numbers.astype(bool))
    return pa.Array.from_buffers(kind, len(lengths), [None, pa.py_buffer(data)])


def _decoded_decimals(data: bytes, lengths: np.ndarray, t: AtomicType, path: str) -> pa.Array:
    compact = (t.precision or 0) <= _COMPACT_DIGITS
    if (lengths != 8).any() if compact else ((lengths < 1) | (lengths > 16)).any():
        raise CorruptedError(f"{path} is damaged: a key of type {t} has an impossible length")
    stored = np.frombuffer(data, np.uint8)
    ends = lengths.cumsum()
    if compact:
        numbers = np.zeros((len(lengths), 16), np.uint8)
        numbers[:, :8] = stored.reshape(-1, 8)
        numbers[:, 8:] = np.where(numbers[:, 7:8] >= 0x80, 0xFF, 0)
    else:  # byte k from the end of a key is byte k of the little-endian number
        numbers = np.repeat(np.where(stored[ends - lengths] >= 0x80, 0xFF, 0).astype(np.uint8)[:, None], 16, axis=1)
        at = np.arange(len(stored))
        numbers[np.repeat(np.arange(len(lengths)), lengths), np.repeat(ends, lengths) - 1 - at] = stored
    keys = pa.Array.from_buffers(to_arrow(t), len(lengths), [None, pa.py_buffer(numbers.tobytes())])
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid as cause:
        raise CorruptedError(f"{path} is damaged: a key of type {t} has too many digits") from cause
    return keys


def _is_key_root(root: str) -> bool:
    return root in _FIXED_KEYS or root in _VARIABLE_KEYS or root == "DECIMAL"


def _check_distinct(keys: pa.Array, rows: np.ndarray, error: Exception) -> None:
    """Raise ``error`` if two keys of one row are equal. ``rows``: the row of each key."""
    pairs = pa.table({"row": rows, "key": keys})
    if pairs.group_by(["row", "key"]).aggregate([]).num_rows != len(rows):
        raise error


def _nulls(values: pa.Array) -> np.ndarray:
    if not values.null_count:
        return np.zeros(len(values), bool)
    nulls: np.ndarray = values.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _offsets(values: pa.Array) -> np.ndarray:
    """Return the start of each value in the data or in the elements, and the end of the last one."""
    if not len(values):
        return np.zeros(1, np.int32)
    offsets: np.ndarray = np.frombuffer(values.buffers()[1], np.int32)
    return offsets[values.offset : values.offset + len(values) + 1]


def _data(values: pa.Array) -> memoryview:
    return memoryview(values.buffers()[2] or b"")
