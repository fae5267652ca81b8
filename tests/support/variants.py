"""Variants one at a time: an independent encoder, decoder and shredder, for small tests."""

import struct
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa

MISSING = object()
"""The mark of an object field that a value lacks."""


def names_in(value):
    """Return the names of all object fields in a value."""
    if isinstance(value, dict):
        return {*value, *(name for inner in value.values() for name in names_in(inner))}
    return {name for inner in value for name in names_in(inner)} if isinstance(value, list) else set()


def metadata_of(names):
    """Return the metadata that lists these names, which must be shorter than 64 KiB together."""
    texts = [name.encode() for name in names]
    offsets = [sum(map(len, texts[:i])) for i in range(len(texts) + 1)]
    numbers = b"".join(n.to_bytes(2, "little") for n in [len(texts), *offsets])
    return bytes([1 | 1 << 6]) + numbers + b"".join(texts)


def encoded(value, names):
    """Return the binary encoding of None, booleans, integers, floats, decimals, texts, bytes, lists and dicts."""
    match value:
        case None:
            return b"\x00"
        case bool():
            return bytes([(1 if value else 2) << 2])
        case int():
            return bytes([6 << 2]) + struct.pack("<q", value)
        case float():
            return bytes([7 << 2]) + struct.pack("<d", value)
        case Decimal():
            sign, digits, exponent = value.as_tuple()
            unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
            return bytes([10 << 2, -exponent]) + unscaled.to_bytes(16, "little", signed=True)
        case str():
            text = value.encode()
            head = bytes([1 | len(text) << 2]) if len(text) < 64 else bytes([16 << 2]) + struct.pack("<I", len(text))
            return head + text
        case bytes():
            return bytes([15 << 2]) + struct.pack("<I", len(value)) + value
        case list():
            return bytes([3 | 3 << 2 | 1 << 4]) + _body([encoded(v, names) for v in value], b"")
        case dict():
            fields = sorted(value, key=lambda name: name.encode("utf-16-be"))
            ids = b"".join(struct.pack("<H", names.index(name)) for name in fields)
            return bytes([2 | 3 << 2 | 1 << 4 | 1 << 6]) + _body([encoded(value[f], names) for f in fields], ids)


def _body(parts, ids):
    offsets = [sum(map(len, parts[:i])) for i in range(len(parts) + 1)]
    return struct.pack("<I", len(parts)) + ids + b"".join(struct.pack("<I", n) for n in offsets) + b"".join(parts)


def names_of(metadata):
    """Return the names that metadata lists."""
    width = (metadata[0] >> 6) + 1
    number = int.from_bytes(metadata[1 : 1 + width], "little")
    offsets = [int.from_bytes(metadata[1 + width * (i + 1) :][:width], "little") for i in range(number + 1)]
    texts = metadata[1 + width * (number + 2) :]
    return [texts[low:high].decode() for low, high in pairwise(offsets)]


def decoded(value, names):
    """Return the Python value of bytes; ``names``: the names in its metadata."""
    basic, details = value[0] & 3, value[0] >> 2
    if basic == 1:
        return value[1 : 1 + details].decode()
    if basic == 0:
        return _primitive(details, value[1:])
    is_object = basic == 2
    offset_width, id_width = (details & 3) + 1, (details >> 2 & 3) + 1 if is_object else 0
    count_width = 4 if details >> (4 if is_object else 2) & 1 else 1
    number = int.from_bytes(value[1 : 1 + count_width], "little")
    at = 1 + count_width
    ids = [int.from_bytes(value[at + i * id_width :][:id_width], "little") for i in range(number)]
    at += number * id_width
    offsets = [int.from_bytes(value[at + i * offset_width :][:offset_width], "little") for i in range(number + 1)]
    body = value[at + (number + 1) * offset_width :]
    assert len(body) >= offsets[-1]
    items = [decoded(body[offset:], names) for offset in offsets[:-1]]
    if not is_object:
        return items
    fields = [names[i] for i in ids]
    assert fields == sorted({*fields}, key=lambda name: name.encode("utf-16-be"))
    return dict(zip(fields, items, strict=True))


def _primitive(kind, content):
    integers = {3: 1, 4: 2, 5: 4, 6: 8}
    decimals = {8: 4, 9: 8, 10: 16}
    if kind in (0, 1, 2):
        return (None, True, False)[kind]
    if kind in integers:
        return int.from_bytes(content[: integers[kind]], "little", signed=True)
    if kind in decimals:
        return Decimal(int.from_bytes(content[1 : 1 + decimals[kind]], "little", signed=True)).scaleb(-content[0])
    if kind in (7, 14):
        return struct.unpack("<d" if kind == 7 else "<f", content[: 8 if kind == 7 else 4])[0]
    if kind in (15, 16):
        data = content[4 : 4 + int.from_bytes(content[:4], "little")]
        return data if kind == 15 else data.decode()
    if kind == 20:
        return content[:16]
    return kind, int.from_bytes(content[: 4 if kind == 11 else 8], "little", signed=True)


_FITS = {pa.int64(): int, pa.string(): str, pa.float64(): float, pa.bool_(): bool, pa.binary(): bytes}


def shredded(value, layout, names):
    """Return a group of `value` and `typed_value` as a dict.

    Args:
        value: a Python value or `MISSING`.
        layout: an Arrow type for scalars, a list of a layout for arrays, a dict of layouts for objects, `None` for any.
        names: the names in the metadata.
    """
    if value is MISSING:
        return {"value": None, "typed_value": None}
    if isinstance(layout, dict) and isinstance(value, dict):
        fields = {name: shredded(value.get(name, MISSING), inner, names) for name, inner in layout.items()}
        rest = {name: inner for name, inner in value.items() if name not in layout}
        return {"value": encoded(rest, names) if rest else None, "typed_value": fields}
    if isinstance(layout, list) and isinstance(value, list):
        return {"value": None, "typed_value": [shredded(inner, layout[0], names) for inner in value]}
    if not isinstance(layout, (dict, list)) and layout is not None and type(value) is _FITS[layout]:
        return {"value": None, "typed_value": value}
    return {"value": encoded(value, names), "typed_value": None}


def stored_type(layout, *more):
    """Return the Arrow type of groups with this layout, as in `shredded`; ``more``: fields before the others."""
    typed = layout
    if isinstance(layout, dict):
        typed = pa.struct([pa.field(name, stored_type(inner), False) for name, inner in layout.items()])
    elif isinstance(layout, list):
        typed = pa.list_(pa.field("element", stored_type(layout[0]), False))
    columns = [*more, pa.field("value", pa.binary())]
    return pa.struct(columns if layout is None else [*columns, pa.field("typed_value", typed)])


def shredded_column(values, layout):
    """Return a column of shredded variants; MISSING is a null row."""
    rows = []
    for value in values:
        names = sorted(names_in(value))
        one = None if value is MISSING else {"metadata": metadata_of(names), **shredded(value, layout, names)}
        rows.append(one)
    return pa.array(rows, stored_type(layout, pa.field("metadata", pa.binary(), False)))
