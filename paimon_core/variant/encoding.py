"""The binary encoding of variants, for many values at once.

A variant is a value and its metadata, which lists the names of object fields. A value begins with a header byte, whose
low two bits are the basic type. Objects and arrays store ids of names and offsets, of 1 to 4 bytes, before their
elements. All numbers are little-endian.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import CorruptedError, UnsupportedError

Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

PRIMITIVE, SHORT_TEXT, OBJECT, ARRAY = range(4)
"""The basic types."""
NULL, TRUE, FALSE, INT8, INT16, INT32, INT64, DOUBLE, DECIMAL4, DECIMAL8, DECIMAL16, DATE = range(12)
TIMESTAMP, TIMESTAMP_NTZ, FLOAT, BINARY, TEXT, TIME, NANOS, NANOS_NTZ, UUID = range(12, 21)
"""The primitive types. TIMESTAMP and NANOS are instants."""
VARIANT_NULL = bytes([NULL << 2 | PRIMITIVE])
"""The binary encoding of the variant null."""
SHORTEST_LONG_TEXT = 64
"""The least bytes of a text that is stored with a separate length."""
_LARGE = 256
"""The least number of elements that is stored in 4 bytes."""
_PRIMITIVE_SIZES = np.array([1, 1, 1, 2, 3, 5, 9, 9, 6, 10, 18, 5, 9, 9, 5, 5, 5, 9, 9, 9, 17], np.int64)
"""The bytes of a primitive value with its header; a binary value and a long text also have their content."""
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Slices:
    """Parts of one buffer: value i is ``data[starts[i] : starts[i] + sizes[i]]``."""

    data: Bytes
    starts: Numbers
    sizes: Numbers

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, rows: Numbers | Flags) -> "Slices":
        """Return the parts at these indexes, or where a mask is True."""
        return Slices(self.data, self.starts[rows], self.sizes[rows])

    def basic_types(self) -> Bytes:
        """Return the basic type of each value. Raises CorruptedError for an empty value."""
        if len(self) and int(self.sizes.min()) < 1:
            raise CorruptedError("a variant has no bytes")
        return np.bitwise_and(self.data[self.starts], np.uint8(3))

    def type_details(self) -> Bytes:
        """Return the upper six bits of the headers: for a primitive value its type."""
        return np.right_shift(self.data[self.starts], np.uint8(2))

    def to_arrow(self, mask: Flags | None = None) -> pa.Array:
        """Return copies of the parts as a binary array. ``mask``: True where the array is null."""
        sizes = self.sizes if mask is None else np.where(mask, 0, self.sizes)
        return binary_array(self.data[spread(self.starts, sizes)], sizes, mask)


def slices_of(array: pa.Array) -> Slices:
    """Return the values of a binary array, not copied; a null value has size 0 or unspecified bytes."""
    offsets = _offsets(array)
    data = array.buffers()[2]
    content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Slices(content, offsets[:-1], np.diff(offsets))


def binary_array(data: Bytes, sizes: Numbers, mask: Flags | None = None) -> pa.Array:
    """Return a binary array of values that follow each other in ``data``. Raises UnsupportedError beyond 2 GiB."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise UnsupportedError("the variants of one batch have more than 2 GiB: read fewer rows at a time")
    valid = None if mask is None or not mask.any() else pa.py_buffer(np.packbits(~mask, bitorder="little"))
    buffers = [valid, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)


def grouped(array: pa.Array, ends: Numbers) -> tuple[pa.Array, Numbers]:
    """Join consecutive values of a binary array without nulls.

    Args:
        array: the values.
        ends: ``ends[i]`` and ``ends[i + 1]`` are the first value of group i and the end (exclusive) of the group.

    Returns the groups as a binary array that shares the bytes, and the offset of each value within its group.
    """
    offsets = _offsets(array)
    edges = offsets[ends]
    buffers = [None, pa.py_buffer(edges.astype(np.int32)), array.buffers()[2]]
    joined = pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers)
    return joined, offsets[:-1][ends[0] : ends[-1]] - np.repeat(edges[:-1], np.diff(ends))


def joined(headers: pa.Array, parts: Sequence[pa.Array], mask: Flags | None = None) -> pa.Array:
    """Return the concatenation of a header and other bytes for each row; a null part has no bytes.

    ``mask``: True where the result is null.
    """
    between = binary_array(np.zeros(0, np.uint8), np.zeros(1, np.int64))[0]  # pa.scalar would import pandas
    rows = pc.binary_join_element_wise(headers, *parts, between, null_handling="replace", null_replacement="")
    return rows if mask is None else pc.if_else(pa.array(mask), pa.scalar(None, pa.binary()), rows)


def placed(array: pa.Array, rows: Numbers, n: int) -> pa.Array:
    """Return an array of ``n`` values that has ``array[i]`` at ``rows[i]`` and null elsewhere."""
    missing: Flags = np.ones(n, np.bool_)
    missing[rows] = False
    places = np.zeros(n, np.int64)
    places[rows] = np.arange(len(rows))
    return array.take(pa.array(places, mask=missing))


def _offsets(array: pa.Array) -> Numbers:
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array) + 1, np.int64)
    return np.frombuffer(buffer, np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)


def spread(starts: Numbers, counts: Numbers) -> Numbers:
    """Return the numbers ``starts[i]``, ``starts[i] + 1`` and so on, ``counts[i]`` of them, for each i in turn."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - ends + counts, counts)


def read_numbers(data: Bytes, at: Numbers, widths: Numbers | int) -> Numbers:
    """Return the unsigned little-endian numbers of ``widths`` bytes at these positions, at most 8 bytes each."""
    widths = np.broadcast_to(np.asarray(widths, np.int64), at.shape)
    if not len(at):
        return np.zeros(0, np.int64)
    if int(at.min()) < 0 or int((at + widths).max()) > len(data):
        raise CorruptedError("a variant is cut off")
    numbers = np.zeros(len(at), np.int64)
    for i in range(int(widths.max())):
        inside = widths > i
        if inside.all():
            numbers |= data[at + i].astype(np.int64) << (8 * i)
        else:
            numbers[inside] |= data[at[inside] + i].astype(np.int64) << (8 * i)
    return numbers


def _write_numbers(out: Bytes, at: Numbers, numbers: Numbers, widths: Numbers) -> None:
    for i in range(int(widths.max()) if len(widths) else 0):
        inside = widths > i
        if inside.all():
            out[at + i] = numbers >> (8 * i) & 255
        else:
            out[at[inside] + i] = numbers[inside] >> (8 * i) & 255


def _widths(numbers: Numbers) -> Numbers:
    """Return the least bytes, 1 to 4, of unsigned numbers."""
    return 1 + (numbers > 0xFF).astype(np.int64) + (numbers > 0xFFFF) + (numbers > 0xFFFFFF)


def container_headers(counts: Numbers, ids: Numbers | None, offsets: Numbers, sizes: Numbers) -> pa.Array:
    """Return the bytes of objects or arrays before their elements.

    Args:
        counts: the number of elements of each container.
        ids: the ids of the names of all fields, container by container in the order of their names; `None`: arrays.
        offsets: the offset of each element within the elements of its container.
        sizes: the total bytes of the elements of each container.
    """
    n = len(counts)
    large = counts >= _LARGE
    count_widths = np.where(large, 4, 1)
    offset_widths = _widths(sizes)
    firsts = np.cumsum(counts) - counts
    id_widths = np.zeros(n, np.int64)
    if ids is not None:
        greatest = np.zeros(n, np.int64)
        filled = counts > 0
        if filled.any():
            greatest[filled] = np.maximum.reduceat(ids, firsts[filled])
        id_widths = _widths(greatest)
    lengths = 1 + count_widths + counts * id_widths + (counts + 1) * offset_widths
    starts = np.cumsum(lengths) - lengths
    out = np.zeros(int(lengths.sum()), np.uint8)
    if ids is None:
        out[starts] = ARRAY | (offset_widths - 1) << 2 | large.astype(np.int64) << 4
    else:
        out[starts] = OBJECT | (offset_widths - 1) << 2 | (id_widths - 1) << 4 | large.astype(np.int64) << 6
    _write_numbers(out, starts + 1, counts, count_widths)
    row = np.repeat(np.arange(n), counts)
    number = np.arange(len(row)) - firsts[row]
    at_ids = starts + 1 + count_widths
    if ids is not None:
        _write_numbers(out, at_ids[row] + number * id_widths[row], ids, id_widths[row])
    at_offsets = at_ids + counts * id_widths
    _write_numbers(out, at_offsets[row] + number * offset_widths[row], offsets, offset_widths[row])
    _write_numbers(out, at_offsets + counts * offset_widths, sizes, offset_widths)
    return binary_array(out, lengths)


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of objects or arrays, container by container.

    Args:
        counts: the number of elements of each container.
        ids: the ids of the names of the fields; empty for arrays.
        offsets: the offset of each element within the elements of its container.
        bodies: the bytes of all elements of each container.
    """

    counts: Numbers
    ids: Numbers
    offsets: Numbers
    bodies: Slices

    def rows(self) -> Numbers:
        """Return the number of the container of each element."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def values(self) -> Slices:
        """Return the elements."""
        starts = self.bodies.starts[self.rows()] + self.offsets
        return Slices(self.bodies.data, starts, value_sizes(self.bodies.data, starts))


def elements_of(containers: Slices, basic_type: int) -> Elements:
    """Return the elements of containers. ``basic_type``: `OBJECT` or `ARRAY`. Raises CorruptedError for bad lengths."""
    data, starts = containers.data, containers.starts
    details = containers.type_details().astype(np.int64)
    offset_widths = (details & 3) + 1
    is_object = basic_type == OBJECT
    id_widths = (details >> 2 & 3) + 1 if is_object else np.zeros(len(starts), np.int64)
    count_widths = np.where(details >> (4 if is_object else 2) & 1, 4, 1)
    counts = read_numbers(data, starts + 1, count_widths)
    at_ids = starts + 1 + count_widths
    at_offsets = at_ids + counts * id_widths
    at_bodies = at_offsets + (counts + 1) * offset_widths
    ends = starts + containers.sizes
    if (at_bodies > ends).any():
        raise CorruptedError("a variant is cut off")
    sizes = read_numbers(data, at_offsets + counts * offset_widths, offset_widths)
    row = np.repeat(np.arange(len(starts)), counts)
    number = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
    offsets = read_numbers(data, at_offsets[row] + number * offset_widths[row], offset_widths[row])
    if (at_bodies + sizes > ends).any() or (offsets >= sizes[row]).any():
        raise CorruptedError("a variant has elements beyond its end")
    ids = read_numbers(data, at_ids[row] + number * id_widths[row], id_widths[row]) if is_object else row[:0]
    return Elements(counts, ids, offsets, Slices(data, at_bodies, sizes))


def value_sizes(data: Bytes, starts: Numbers) -> Numbers:
    """Return the bytes of the values that begin at these positions. Raises UnsupportedError for an unknown type."""
    headers = read_numbers(data, starts, 1)
    details = headers >> 2
    basic = headers & 3
    sizes = 1 + details  # of short texts
    primitive = basic == PRIMITIVE
    kinds = details[primitive]
    if len(kinds) and int(kinds.max()) > UUID:
        raise UnsupportedError(f"a variant has a value of type {int(kinds.max())}, which is unknown")
    sizes[primitive] = _PRIMITIVE_SIZES[kinds]
    with_content = np.flatnonzero(primitive & ((details == BINARY) | (details == TEXT)))
    sizes[with_content] += read_numbers(data, starts[with_content] + 1, 4)
    for basic_type in (OBJECT, ARRAY):
        rows = np.flatnonzero(basic == basic_type)
        if len(rows):
            sizes[rows] = _container_sizes(data, starts[rows], details[rows], basic_type)
    if len(starts) and int((starts + sizes).max()) > len(data):
        raise CorruptedError("a variant is cut off")
    return sizes


def _container_sizes(data: Bytes, starts: Numbers, details: Numbers, basic_type: int) -> Numbers:
    offset_widths = (details & 3) + 1
    is_object = basic_type == OBJECT
    id_widths = (details >> 2 & 3) + 1 if is_object else np.zeros(len(starts), np.int64)
    count_widths = np.where(details >> (4 if is_object else 2) & 1, 4, 1)
    counts = read_numbers(data, starts + 1, count_widths)
    header = 1 + count_widths + counts * (id_widths + offset_widths)
    size: Numbers = header + offset_widths + read_numbers(data, starts + header, offset_widths)
    return size


class FieldNames:
    """The names of object fields that the metadata of variants list.

    Each row has one of a few distinct metadata; ``rows[i]`` is its number. A name has a code: a position in `names`.
    """

    def __init__(self, metadata: pa.Array) -> None:
        """Decode the metadata of all rows. Raises CorruptedError for bad lengths or another version."""
        encoded = metadata.dictionary_encode()
        self.rows: Numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        distinct = slices_of(encoded.dictionary)
        data, starts = distinct.data, distinct.starts
        headers = read_numbers(data, starts, 1)
        if ((headers & 15) != _VERSION).any():
            raise CorruptedError("the metadata of a variant has another version than 1")
        widths = (headers >> 6) + 1
        counts = read_numbers(data, starts + 1, widths)
        at_texts = starts + 1 + widths * (counts + 2)
        ends = starts + distinct.sizes
        if (at_texts > ends).any():
            raise CorruptedError("the metadata of a variant is cut off")
        self._firsts = np.cumsum(counts) - counts
        self._counts = counts
        self._owners = np.repeat(np.arange(len(starts)), counts)
        self._ids = np.arange(len(self._owners)) - self._firsts[self._owners]
        at = (starts + 1 + widths)[self._owners] + self._ids * widths[self._owners]
        low = read_numbers(data, at, widths[self._owners])
        high = read_numbers(data, at + widths[self._owners], widths[self._owners])
        if (high < low).any() or (at_texts[self._owners] + high > ends[self._owners]).any():
            raise CorruptedError("the metadata of a variant is cut off")
        texts = Slices(data, at_texts[self._owners] + low, high - low).to_arrow().dictionary_encode()
        try:
            self.names: list[str] = texts.dictionary.cast(pa.string()).to_pylist()
        except pa.ArrowInvalid as error:
            raise CorruptedError("the metadata of a variant has a name that is not UTF-8") from error
        self._codes = texts.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        self._by_code = np.argsort(self._codes, kind="stable")
        self._edges = np.searchsorted(self._codes[self._by_code], np.arange(len(self.names) + 1))
        self._code_of = {name: code for code, name in enumerate(self.names)}
        self.ranks = np.zeros(len(self.names), np.int64)
        """The position of each name in the order of fields, by code."""
        self.ranks[[self._code_of[name] for name in in_field_order(self.names)]] = np.arange(len(self.names))

    def ids(self, name: str, metadata: Numbers) -> Numbers:
        """Return the id of a name in each of these metadata, given by number. Raises CorruptedError if one lacks it."""
        ids = np.full(len(self._counts), -1, np.int64)
        code = self._code_of.get(name)
        if code is not None:
            places = self._by_code[self._edges[code] : self._edges[code + 1]]
            ids[self._owners[places]] = self._ids[places]
        found: Numbers = ids[metadata]
        if len(found) and int(found.min()) < 0:
            raise CorruptedError(f"the metadata of a variant lacks the name {name!r} of a shredded field")
        return found

    def lacks(self, name: str) -> Flags:
        """Return True for each row whose metadata does not list a name."""
        missing: Flags = np.ones(len(self._counts), np.bool_)
        code = self.code(name)
        if code >= 0:
            missing[self._owners[self._by_code[self._edges[code] : self._edges[code + 1]]]] = False
        lacking: Flags = missing[self.rows]
        return lacking

    def code(self, name: str) -> int:
        """Return the code of a name; -1: no metadata has it."""
        return self._code_of.get(name, -1)

    def codes(self, metadata: Numbers, ids: Numbers) -> Numbers:
        """Return the codes of names. ``metadata[i]`` and ``ids[i]``: the metadata, by number, and the id in it."""
        if (ids >= self._counts[metadata]).any():
            raise CorruptedError("a variant has a field whose name its metadata lacks")
        codes: Numbers = self._codes[self._firsts[metadata] + ids]
        return codes


def with_name(metadata: pa.Array, name: str) -> pa.Array:
    """Return metadata that lists a name; metadata without the name gets it as the last one."""
    encoded = metadata.dictionary_encode()
    extended = _extended(encoded.dictionary, name)
    return metadata if extended is encoded.dictionary else extended.take(encoded.indices)


def _extended(distinct: pa.Array, name: str) -> pa.Array:
    lacking = FieldNames(distinct).lacks(name)
    if not lacking.any():
        return distinct
    text = np.frombuffer(name.encode(), np.uint8)
    old = slices_of(distinct).take(lacking)
    widths = (read_numbers(old.data, old.starts, 1) >> 6) + 1
    counts = read_numbers(old.data, old.starts + 1, widths)
    ends = read_numbers(old.data, old.starts + 1 + widths * (counts + 1), widths)
    texts = old.starts + 1 + widths * (counts + 2)
    if (texts + ends > old.starts + old.sizes).any():
        raise CorruptedError("the metadata of a variant is cut off")
    wider = _widths(np.maximum(ends + len(text), counts + 1))
    lengths = 1 + wider * (counts + 3) + ends + len(text)
    starts = np.cumsum(lengths) - lengths
    out = np.zeros(int(lengths.sum()), np.uint8)
    out[starts] = _VERSION | (wider - 1) << 6
    _write_numbers(out, starts + 1, counts + 1, wider)
    row = np.repeat(np.arange(len(old)), counts + 1)
    number = spread(np.zeros(len(old), np.int64), counts + 1)
    offsets = read_numbers(old.data, (old.starts + 1 + widths)[row] + number * widths[row], widths[row])
    _write_numbers(out, (starts + 1 + wider)[row] + number * wider[row], offsets, wider[row])
    _write_numbers(out, starts + 1 + wider * (counts + 2), ends + len(text), wider)
    at_texts = starts + 1 + wider * (counts + 3)
    out[spread(at_texts, ends)] = old.data[spread(texts, ends)]
    out[spread(at_texts + ends, np.full(len(old), len(text)))] = np.tile(text, len(old))
    places = np.arange(len(distinct))
    places[lacking] = len(distinct) + np.arange(len(old))
    return pa.concat_arrays([distinct, binary_array(out, lengths)]).take(pa.array(places))


def in_field_order(names: Sequence[str]) -> list[str]:
    """Sort names of fields by UTF-16, as Spark and the Java engine search for them."""
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
