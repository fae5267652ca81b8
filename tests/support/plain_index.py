"""Readers of file indexes and blob files, written from docs/spec/format.md alone. Section numbers refer to it."""

import struct
import zlib

from tests.support.plain_paimon import roaring


class Bytes:
    """Big-endian numbers one after the other."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, size):
        self.at += size
        assert self.at <= len(self.data)
        return self.data[self.at - size : self.at]

    def number(self, size=4):
        return int.from_bytes(self.take(size), "big", signed=True)

    def key(self, width):
        """A key (9.4): a number of ``width`` bytes, or a text if the width is `None`."""
        return self.take(self.number()) if width is None else self.number(width)

    def bitmap(self):
        rows, self.at = roaring(self.data, self.at)
        return rows


def container(data):
    """The indexes by column and kind (9.2)."""
    head = Bytes(data)
    assert (head.number(8), head.number()) == (1493475289347502, 1)
    length, found = head.number(), {}
    for _ in range(head.number()):
        column = head.take(head.number(2)).decode()
        for _ in range(head.number()):
            kind = head.take(head.number(2)).decode()
            start, size = head.number(), head.number()
            found.setdefault(column, {})[kind] = b"" if start == -1 else data[start : start + size]
    assert head.number() == 0
    assert head.at == length
    return found


def bitmap(data, width):
    """The value of each row, None for NULL, of either version (9.4)."""
    head = Bytes(data)
    version, rows, keys = head.number(1), head.number(), head.number()
    places = []
    if head.number(1):
        places.append((None, head.number()))
        head.take(4 if version == 2 else 0)
    if version == 1:
        places += [(head.key(width), head.number()) for _ in range(keys)]
        body = head.at
    else:
        blocks = [(head.key(width), head.number()) for _ in range(head.number())]
        size, first = head.number(), head.at
        for key, place in blocks:
            block = Bytes(data, first + place)
            entries = [(block.key(width), block.number(), block.number()) for _ in range(block.number())]
            assert entries[0][0] == key
            places += [(key, offset) for key, offset, _ in entries]
        body = first + size
    values, seen = [None] * rows, set()
    for key, offset in places:
        those = [-1 - offset] if offset < 0 else roaring(data, body + offset)[0]
        assert seen.isdisjoint(those)
        seen.update(those)
        for row in those:
            values[row] = key
    assert seen == set(range(rows))
    return values


def bsi(data):
    """The number of each row, None for NULL (9.5)."""
    head = Bytes(data)
    assert head.number(1) == 1
    values = [None] * head.number()
    for sign in (1, -1):
        if head.number(1):
            assert head.number(1) == 1
            least, greatest = head.number(8), head.number(8)
            sizes = dict.fromkeys(head.bitmap(), least)
            for bit in range(head.number()):
                for row in head.bitmap():
                    sizes[row] += 1 << bit
            assert max(sizes.values()) == greatest
            for row, size in sizes.items():
                values[row] = sign * size
    assert head.at == len(data)
    return values


def range_bitmap(data, width):
    """The value of each row, None for NULL (9.5)."""
    head = Bytes(data)
    end = 4 + head.number()
    assert head.number(1) == 1
    rows, count = head.number(), head.number()
    bounds = [head.key(width), head.key(width)] if count else []
    dictionary = head.number()
    assert head.at == end
    keys = _keys(data, end, width)
    assert len(keys) == count
    assert bounds == ([keys[0], keys[-1]] if keys else [])
    values = [None] * rows
    for row, code in _codes(data, end + dictionary).items():
        values[row] = keys[code]
    return values


def _keys(data, start, width):
    head = Bytes(data, start)
    assert (head.number(), head.number(1)) == (13, 1)
    chunks, places, heads = head.number(), head.number(), head.number()
    starts = [head.number() for _ in range(chunks)]
    assert places == 4 * chunks
    keys = []
    for place in starts:
        chunk = Bytes(data, head.at + place)
        assert chunk.number(1) == 1
        first, code, at, further, one, other = chunk.key(width), *(chunk.number() for _ in range(5))
        assert code == len(keys)
        body = Bytes(data, head.at + heads + at)
        if width is None:
            offsets = [body.number() for _ in range(further)]
            assert one == 4 * further
            listed, begin = [], body.at
            for offset in offsets:
                assert body.at == begin + offset
                listed.append(body.key(None))
            assert body.at == begin + other
        else:
            assert (one, other) == (width * further, width)
            listed = [body.key(width) for _ in range(further)]
        keys += [first, *listed]
    return keys


def _codes(data, start):
    head = Bytes(data, start)
    end = start + 4 + head.number()
    assert head.number(1) == 1
    slices, known, index = head.number(1), head.number(), head.number()
    assert index == 8 * slices
    places = [(head.number(), head.number()) for _ in range(slices)]
    assert head.at == end
    codes = dict.fromkeys(roaring(data, end)[0], 0)
    for bit, (place, length) in enumerate(places):
        rows, at = roaring(data, end + known + place)
        assert at == end + known + place + length
        for row in rows:
            codes[row] += 1 << bit
    return codes


def blobs(data):
    """The values of a blob file, None for NULL (7.7)."""
    size, version = struct.unpack("<IB", data[-5:])
    assert version == 1
    lengths, length, at = [], 0, len(data) - 5 - size
    end = at
    while at < len(data) - 5:
        number = shift = 0
        while True:
            byte = data[at]
            number |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        length += (number >> 1) ^ -(number & 1)
        lengths.append(length)
    values, at = [], 0
    for length in lengths:
        if length == -1:
            values.append(None)
            continue
        record = data[at : at + length]
        assert struct.unpack("<i", record[:4]) == (1481511375,)
        assert struct.unpack("<qI", record[-12:]) == (length, zlib.crc32(record[:-4]))
        values.append(record[4:-12])
        at += length
    assert at == end
    return values
