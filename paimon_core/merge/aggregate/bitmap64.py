"""Roaring64Bitmap (ART) in Java's serialised form: roaring bitmaps of 64-bit integers in a radix tree (format 15.2).

No library writes this form: pyroaring writes the portable form only, which has a 32-bit bitmap for each upper half.
Here the upper 48 bits of the integers are the keys of an adaptive radix tree (ART). The leaves of the tree point into a
table of containers, which hold the lower 16 bits. All numbers are little endian. Sizes in bytes are in parentheses.

A node consists of its kind (1), the number of children (2), the length of the prefix (1), the prefix and a body. The
children follow in the order of their key bytes. The kind determines the body:

- 0, up to 4 children: their key bytes, ascending, padded to 4 bytes.
- 1, up to 16 children: their key bytes, ascending, padded to 16 bytes.
- 2, up to 48 children: for each possible byte, the insertion index of its child, or 255; 256 bytes.
- 3, up to 256 children: one bit for each possible byte; 32 bytes.
- 4, a leaf: the whole key (6) and the index of its container (8).

Key bytes of kinds 0, 1 and 2 are stored reversed within words of four or eight bytes. An empty bitmap is one byte 0.
Otherwise a 1 and the number of keys (8) precede the tree. After it come 1 (4), -2 (1) and the capacity of the container
table (4). Each container follows (1, kind, cardinality, content), or 0 for an unused entry. The number of containers
(8), 0 (4) and the index of the last container (4) end the bitmap.
"""

import struct
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.uint16]

_Leaf = tuple[bytes, int]
"""A whole key and the index of its container."""

_RUNS, _BITS, _ARRAY = range(3)
_LEAF = 4
_MAX_ARRAY = 4096  # values up to which a container is an array, not a bitmap
_KEY_BYTES = ((0, 4, 4), (4, 16, 8), (16, 48, 8), (48, 256, 8))  # (fewer children, most children, bytes in a word)


@dataclass(slots=True)
class _Container:
    """Sorted 16-bit values. ``runs``: the values are stored as runs."""

    values: Values
    runs: bool

    def united(self, other: "_Container") -> "_Container":
        return _Container(np.union1d(self.values, other.values), self.runs or other.runs).optimized()

    def optimized(self) -> "_Container":
        """Return the container as runs if they are smaller; runs stay runs if an array has about the same size."""
        count, runs = len(self.values), len(self._ends())
        if count > _MAX_ARRAY:
            return _Container(self.values, 2 + 4 * runs < 2 * _MAX_ARRAY)
        return _Container(self.values, count > 2 * runs + 1 or (self.runs and count >= 2 * runs))

    def _ends(self) -> npt.NDArray[np.intp]:
        """Return the position of the last value of each run."""
        return np.flatnonzero(np.diff(self.values.astype(np.int32), append=-1) != 1)

    def serialize(self) -> bytes:
        values = self.values
        if self.runs:
            ends = self._ends()
            starts = np.append(0, ends[:-1] + 1)
            pairs = np.stack([values[starts], values[ends] - values[starts]], 1).astype("<u2")
            kind, content = _RUNS, struct.pack("<H", len(ends)) + pairs.tobytes()
        elif len(values) > _MAX_ARRAY:
            bits = np.zeros(1 << 16, np.bool_)
            bits[values] = True
            kind, content = _BITS, np.packbits(bits, bitorder="little").tobytes()
        else:
            kind, content = _ARRAY, values.astype("<u2").tobytes()
        return struct.pack("<bbi", 1, kind, len(values)) + content


@dataclass(slots=True)
class _Node:
    """An inner node: the key bytes shared below it, and its children by their next byte, in order of insertion."""

    prefix: bytes
    children: "dict[int, _Node | _Leaf]" = field(default_factory=dict)

    def add(self, byte: int, child: "_Node | _Leaf") -> None:
        if len(self.children) == 16:  # up to 16 children are sorted, and a larger node keeps that numbering
            self.children = dict(sorted(self.children.items()))
        self.children[byte] = child

    @property
    def kind(self) -> int:
        return next(i for i, (_, most, _) in enumerate(_KEY_BYTES) if len(self.children) <= most)


@dataclass(slots=True)
class Bitmap64:
    """A set of 64-bit integers. ``room``: the capacity of its container table."""

    root: _Node | _Leaf | None
    containers: list[_Container | None]
    room: int

    @staticmethod
    def parse(data: bytes) -> "Bitmap64":
        """Parse a serialised bitmap. Raises ValueError if the bytes are malformed."""
        try:
            return _Reader(data).bitmap()
        except (struct.error, IndexError) as error:
            raise ValueError(f"the bytes of a 64-bit roaring bitmap end too early: {error}") from error

    def update(self, other: "Bitmap64") -> None:
        """Add the integers of ``other``. REQUIRES: the caller no longer uses ``other``: containers are shared."""
        indexes = dict(_leaves(self.root))
        for key, index in _leaves(other.root):
            added = other.containers[index]
            assert added is not None  # `parse` has checked it
            position = indexes.get(key)
            existing = None if position is None else self.containers[position]
            if position is not None and existing is not None:
                self.containers[position] = existing.united(added)
            else:
                self.root = _inserted(self.root, key, 0, len(self.containers))
                self.containers.append(added)
                if len(self.containers) > self.room:  # the table grows by half
                    self.room = max(self.room + (self.room >> 1), len(self.containers))

    def serialize(self) -> bytes:
        """Return the bytes that the Java engine writes for the same bitmap."""
        if self.root is None:
            return b"\0"
        used = [container for container in self.containers if container is not None]
        parts = [b"\1", struct.pack("<q", len(used)), *_node_bytes(self.root)]
        parts.append(struct.pack("<ibi", 1, -2, self.room))
        parts += [b"\0" if c is None else c.optimized().serialize() for c in self.containers]
        parts.append(bytes(self.room - len(self.containers)))
        parts.append(struct.pack("<qii", len(used), 0, len(self.containers) - 1))
        return b"".join(parts)


def _leaves(node: _Node | _Leaf | None) -> list[_Leaf]:
    """Return the keys in ascending order and the positions of their containers."""
    if node is None:
        return []
    if isinstance(node, tuple):
        return [node]
    return [leaf for _, child in sorted(node.children.items(), key=lambda item: item[0]) for leaf in _leaves(child)]


def _inserted(node: _Node | _Leaf | None, key: bytes, depth: int, index: int) -> _Node | _Leaf:
    """Return the tree with one more key. ``depth``: number of key bytes that the nodes above ``node`` consume."""
    if node is None:
        return (key, index)
    prefix = node[0][depth:] if isinstance(node, tuple) else node.prefix
    shared = next((i for i, (a, b) in enumerate(zip(prefix, key[depth:], strict=False)) if a != b), len(prefix))
    if isinstance(node, tuple) or shared < len(node.prefix):
        above = _Node(prefix[:shared])
        if isinstance(node, _Node):
            node.prefix = prefix[shared + 1 :]
        above.add(prefix[shared], node)
        above.add(key[depth + shared], (key, index))
        return above
    depth += shared
    child = node.children.get(key[depth])
    if child is None:
        node.add(key[depth], (key, index))
    else:
        node.children[key[depth]] = _inserted(child, key, depth + 1, index)
    return node


def _node_bytes(node: _Node | _Leaf) -> list[bytes]:
    """Return the bytes of a node and of all nodes below it."""
    if isinstance(node, tuple):
        return [struct.pack("<bhb", _LEAF, 0, 0), node[0], struct.pack("<q", node[1])]
    in_order, kind = sorted(node.children), node.kind
    if kind == 3:
        bits = np.zeros(256, np.bool_)
        bits[in_order] = True
        body = np.packbits(bits, bitorder="little").tobytes()
    elif kind == 2:
        indexes = bytearray(b"\xff" * 256)
        for index, byte in enumerate(node.children):
            indexes[byte] = index
        body = _reversed(bytes(indexes), 8)
    else:
        _, most, word = _KEY_BYTES[kind]
        body = _reversed(bytes(in_order).ljust(most, b"\0"), word)
    parts = [struct.pack("<bhb", kind, len(in_order), len(node.prefix)), node.prefix, body]
    for byte in in_order:
        parts += _node_bytes(node.children[byte])
    return parts


def _reversed(data: bytes, word: int) -> bytes:
    """Return the bytes reversed within words of this many bytes."""
    return np.frombuffer(data, np.uint8).reshape(-1, word)[:, ::-1].tobytes()


_KEY_LENGTH = 6  # bytes


@dataclass(slots=True)
class _Reader:
    """A cursor over a serialised bitmap. Its methods raise ValueError or struct.error if the bytes are malformed."""

    data: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        self.at += count
        if self.at > len(self.data):
            raise ValueError(f"a 64-bit roaring bitmap ends after {len(self.data)} bytes, but needs {self.at}")
        return self.data[self.at - count : self.at]

    def numbers(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def bitmap(self) -> Bitmap64:
        if self.take(1) == b"\0":
            return Bitmap64(None, [], 0)
        self.numbers("<q")
        root = self.node()
        tables, _, room = self.numbers("<ibi")
        if tables != 1 or not 0 <= room < len(self.data):
            raise ValueError(
                f"a 64-bit roaring bitmap of {len(self.data)} bytes has {tables} container tables of capacity {room}"
            )
        containers = [self.container() for _ in range(room)]
        _, _, last = self.numbers("<qii")
        containers = containers[: max(0, last + 1)]
        for key, index in _leaves(root):
            if not 0 <= index < len(containers) or containers[index] is None:
                raise ValueError(f"a 64-bit roaring bitmap has no container for its key {key.hex()}")
        return Bitmap64(root, containers, room)

    def node(self, depth: int = 0) -> _Node | _Leaf:
        """Return a node and the nodes below it. ``depth``: number of key bytes that the nodes above it consume."""
        kind, count, length = self.numbers("<BHB")
        prefix = self.take(length)
        if kind != _LEAF and depth + length >= _KEY_LENGTH:
            raise ValueError(f"a 64-bit roaring bitmap has keys of more than {_KEY_LENGTH} bytes")
        if kind == _LEAF:
            return (self.take(_KEY_LENGTH), self.numbers("<q")[0])
        if kind not in range(_LEAF):
            raise ValueError(f"a 64-bit roaring bitmap has a node of unknown kind {kind}")
        if kind == 3:
            bits = np.unpackbits(np.frombuffer(self.take(32), np.uint8), bitorder="little")
            in_order = inserted = np.flatnonzero(bits).tolist()
        elif kind == 2:
            indexes = np.frombuffer(_reversed(self.take(256), 8), np.uint8)
            in_order = np.flatnonzero(indexes != 255).tolist()
            inserted = sorted(in_order, key=indexes.__getitem__)
        else:
            _, most, word = _KEY_BYTES[kind]
            in_order = inserted = list(_reversed(self.take(most), word))[:count]
        children = {byte: self.node(depth + length + 1) for byte in in_order}
        return _Node(prefix, {byte: children[byte] for byte in inserted})

    def container(self) -> _Container | None:
        if self.take(1) == b"\0":
            return None
        kind, count = self.numbers("<bi")
        if kind == _RUNS:
            (runs,) = self.numbers("<H")
            pairs = np.frombuffer(self.take(4 * runs), "<u2").astype(np.int64).reshape(-1, 2)
            starts, sizes = pairs[:, 0], pairs[:, 1] + 1
            if not runs or (starts[1:] < (starts + sizes)[:-1]).any() or starts[-1] + sizes[-1] > 1 << 16:
                raise ValueError("a 64-bit roaring bitmap has a container with overlapping runs, or without runs")
            before = np.cumsum(sizes) - sizes
            return _Container((np.arange(sizes.sum()) + np.repeat(starts - before, sizes)).astype(np.uint16), True)
        if kind == _BITS:
            bits = np.unpackbits(np.frombuffer(self.take(8192), np.uint8), bitorder="little")
            if not bits.any():
                raise ValueError("a 64-bit roaring bitmap has an empty container")
            return _Container(np.flatnonzero(bits).astype(np.uint16), False)
        if kind != _ARRAY or count < 1:
            raise ValueError(f"a 64-bit roaring bitmap has a container of unknown kind {kind} or cardinality {count}")
        return _Container(np.frombuffer(self.take(2 * count), "<u2").astype(np.uint16), False)
