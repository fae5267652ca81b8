"""Many Avro blocks of one schema decoded side by side: one numpy step handles one field of one record of every block.

Avro records have no fixed width, so a block can only be read from its beginning, byte after byte. But blocks are
independent: with a cursor per block ("lane"), all cursors advance together. Worth it from some fifty blocks upwards.

Nothing is guessed: a lane must end exactly where its block ends. Whatever looks odd raises `NotVectorizableError`, and
the caller decodes the ordinary way, which finds the words for what is wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

_PAD: Final = bytes(16)
_CONTINUES: Final = np.uint64(0x8080808080808080)
_ONES: Final = np.uint64(0x0101010101010101)
_PAIRS: Final = tuple(  # join groups of 7, 14, 28 bits: mask of the lower ones, mask of the upper ones, distance
    (np.uint64(low), np.uint64(high), np.uint64(distance))
    for low, high, distance in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
_ONE, _TOP, _GROUP = np.uint64(1), np.uint64(56), np.uint64(0x7F)

Schema = Any
Move = Callable[[np.ndarray], np.ndarray]  # cursors before -> cursors after


class NotVectorizableError(Exception):
    """Not decodable this way; perhaps damaged, perhaps only unusual."""


@dataclass(slots=True)
class FieldColumn:
    """A field wanted, and what was found: one piece per step, one item per lane.

    ``kind`` says what ``first`` and ``second`` hold: "number" the value and whether there is one, "bytes" start and
    end of the content (start -1 for null), "raw" start and end of the whole encoding.
    """

    kind: str
    first: list[np.ndarray] = field(default_factory=list)
    second: list[np.ndarray] = field(default_factory=list)


def decode_columns(
    schema: Schema, blocks: Sequence[tuple[int, bytes]], wanted: Mapping[tuple[str, ...], str]
) -> tuple[bytes, dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]]]:
    """The wanted fields (path -> kind, see `FieldColumn`) of all records in order, as positions into the bytes
    returned.

    Paths the schema does not have are missing from the result. Raises `NotVectorizableError`.
    """
    counts = np.array([count for count, _ in blocks], np.int64)
    data = b"".join([*(content for _, content in blocks), _PAD])
    ends = np.cumsum([len(content) for _, content in blocks])
    starts = ends - [len(content) for _, content in blocks]
    by_count = np.argsort(-counts, kind="stable")  # lanes still running are always the first ones
    leaves = {path: FieldColumn(kind) for path, kind in wanted.items()}
    lanes = _BlockCursors(data)
    step = lanes.record(schema, leaves, ())
    at, stop, left = starts[by_count], ends[by_count], counts[by_count]
    found: list[np.ndarray] = []
    try:
        for k in range(int(left[0]) if len(left) else 0):
            running = int(np.searchsorted(-left, -k, "left"))
            at[:running] = step(at[:running])
            if (at > stop).any():
                raise NotVectorizableError("a block is shorter than its records")
            found.append(by_count[:running])
    except IndexError as cause:
        raise NotVectorizableError("a length points outside of the data") from cause
    if (at != stop).any():
        raise NotVectorizableError("a block is longer than its records")
    place = _places(found, np.cumsum(counts) - counts)
    return data, {
        path: (_ordered(leaf.first, place), _ordered(leaf.second, place)) for path, leaf in leaves.items() if leaf.first
    }


def variable_numbers(data: bytes, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All numbers (int64) in pieces [first, second) of the data that hold nothing else, and how many each piece has.

    Raises `NotVectorizableError` for pieces that end inside a number, and for numbers of more than ten bytes.
    """
    size = second - first
    stop = np.cumsum(size)
    piece = np.frombuffer(data, np.uint8)[np.repeat(first - (stop - size), size) + np.arange(stop[-1])]
    last = piece < 0x80
    ends = np.flatnonzero(last)
    length = np.diff(ends, prepend=-1)
    if not last[stop[size > 0] - 1].all() or length.max(initial=0) > 10:
        raise NotVectorizableError("numbers too long, or cut off")
    value = np.zeros(len(ends), np.uint64)
    for k in range(int(length.max(initial=0))):
        longer = np.flatnonzero(length > k)
        group = piece[ends[longer] - length[longer] + 1 + k].astype(np.uint64) & _GROUP
        value[longer] |= group << np.uint64(7 * k)
    return _unzigzag(value), np.diff(np.searchsorted(ends, stop, "left"), prepend=0)


def _unzigzag(value: np.ndarray) -> np.ndarray:
    result: np.ndarray = (value >> _ONE).astype(np.int64) ^ -(value & _ONE).astype(np.int64)
    return result


def _places(found: Sequence[np.ndarray], offsets: np.ndarray) -> np.ndarray:
    """Index of each decoded record in file order; records were decoded step by step across blocks."""
    if not found:
        return np.zeros(0, np.int64)
    return np.concatenate([offsets[lanes] + k for k, lanes in enumerate(found)])


def _ordered(pieces: Sequence[np.ndarray], place: np.ndarray) -> np.ndarray:
    result = np.empty(len(place), pieces[0].dtype)
    result[place] = np.concatenate(pieces)
    return result


class _BlockCursors:
    """Moves over the bytes of all blocks. Each takes the cursors of some lanes and gives them back moved."""

    def __init__(self, data: bytes) -> None:
        self.bytes = np.frombuffer(data, np.uint8)
        self.words = np.ndarray((len(data) - 7,), np.dtype("<u8"), data, strides=(1,))  # the 8 bytes from each place on
        self.end = len(data) - len(_PAD)

    def record(self, schema: Schema, leaves: Mapping[tuple[str, ...], FieldColumn], path: tuple[str, ...]) -> Move:
        """Over a record, its wanted fields noted."""
        moves = [self._field(f["type"], leaves, (*path, f["name"])) for f in schema["fields"]]

        def move(at: np.ndarray) -> np.ndarray:
            for one in moves:
                at = one(at)
            return at

        return move

    def _field(self, schema: Schema, leaves: Mapping[tuple[str, ...], FieldColumn], path: tuple[str, ...]) -> Move:
        leaf = leaves.get(path)
        if leaf is None:
            nested = isinstance(schema, dict) and schema.get("type") == "record"
            return self.record(schema, leaves, path) if nested else self.over(schema)
        if leaf.kind == "raw":
            return self._noted(self.over(schema), leaf)
        return self._nullable(schema, leaf) if isinstance(schema, list) else self._value(schema, leaf)

    def _noted(self, skip: Move, leaf: FieldColumn) -> Move:
        def move(at: np.ndarray) -> np.ndarray:
            after = skip(at)
            leaf.first.append(at)
            leaf.second.append(after)
            return after

        return move

    def _value(self, schema: Schema, leaf: FieldColumn) -> Move:
        read = self._reader(schema, leaf.kind)

        def move(at: np.ndarray) -> np.ndarray:
            first, second, after = read(at)
            leaf.first.append(first)
            leaf.second.append(second)
            return after

        return move

    def _nullable(self, schema: Sequence[Schema], leaf: FieldColumn) -> Move:
        if len(schema) != 2 or "null" not in schema:
            raise NotVectorizableError(f"a union of {schema}")
        null = schema.index("null")
        read = self._reader(schema[1 - null], leaf.kind)
        absent = -1 if leaf.kind == "bytes" else 0

        def move(at: np.ndarray) -> np.ndarray:
            branch, at = self.number(at)
            there = branch == 1 - null
            if there.all():
                first, second, at = read(at)
            else:
                if (branch[~there] != null).any():
                    raise NotVectorizableError("a union has no such branch")
                first, second = np.full(len(at), absent, np.int64), np.zeros(len(at), np.int64)
                if there.any():
                    at = at.copy()
                    first[there], second[there], at[there] = read(at[there])
            leaf.first.append(first)
            leaf.second.append(second)
            return at

        return move

    def _reader(self, schema: Schema, kind: str) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For cursors: the two numbers a `FieldColumn` of this kind notes, and the cursors after."""
        name = _name(schema)
        if kind == "number" and name in ("int", "long"):

            def read_number(at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
                value, after = self.number(at)
                return value, np.ones(len(at), np.int64), after

            return read_number
        if kind == "bytes" and name in ("bytes", "string"):

            def read_bytes(at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
                start, after = self._content(at)
                return start, after, after

            return read_bytes
        raise NotVectorizableError(f"{kind} expected, the schema says {name}")

    def over(self, schema: Schema) -> Move:
        """Over a value nobody wants."""
        if isinstance(schema, list):
            return self._over_union([self.over(branch) for branch in schema])
        name = _name(schema)
        if name == "null":
            return lambda at: at
        if name in ("int", "long"):
            return lambda at: self.number(at)[1]
        if name in ("bytes", "string"):
            return lambda at: self._content(at)[1]
        if name == "array":
            return self._over_array(self.over(schema["items"]))
        if name == "record" and isinstance(schema, dict):
            return self.record(schema, {}, ())
        raise NotVectorizableError(f"no way to pass over {name}")

    def _over_union(self, branches: Sequence[Move]) -> Move:
        def move(at: np.ndarray) -> np.ndarray:
            branch, at = self.number(at)
            one = int(branch[0]) if len(branch) else 0
            if (branch == one).all() and 0 <= one < len(branches):
                return branches[one](at)
            if ((branch < 0) | (branch >= len(branches))).any():
                raise NotVectorizableError("a union has no such branch")
            at = at.copy()
            for i, over in enumerate(branches):
                mine = np.flatnonzero(branch == i)
                if mine.size:
                    at[mine] = over(at[mine])
            return at

        return move

    def _over_array(self, item: Move) -> Move:
        def move(at: np.ndarray) -> np.ndarray:
            left, at = self.number(at)
            if not left.any():
                return at
            at = at.copy()
            lanes = np.flatnonzero(left)
            left = left[lanes]
            while lanes.size:
                if (left < 0).any():
                    raise NotVectorizableError("an array that gives its size in bytes")
                moved = item(at[lanes])
                left = left - 1
                if not left.all():  # somewhere a run of items ends, and the next begins: mostly one of none
                    ended = np.flatnonzero(left == 0)
                    left[ended], moved[ended] = self.number(moved[ended])
                at[lanes] = moved
                if (moved > self.end).any():
                    raise NotVectorizableError("an array reaches beyond the data")
                if not left.all():
                    lanes, left = lanes[left != 0], left[left != 0]
            return at

        return move

    def _content(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Start and end of what a length announces."""
        length, start = self.number(at)
        if (length < 0).any():
            raise NotVectorizableError("a negative length")
        return start, start + length

    def number(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Variable-length zig-zag numbers (int64), and the cursors after them."""
        first = self.bytes[at]
        if not (first & 0x80).any():
            small = first.astype(np.int64)
            return (small >> 1) ^ -(small & 1), at + 1
        word = self.words[at]
        last = ~word & _CONTINUES
        if not last.all():
            return self._long_number(at)
        mask = last & (~last + _ONE)
        mask |= mask - _ONE
        word = word & mask
        for low, high, distance in _PAIRS:
            word = (word & low) | ((word & high) >> distance)
        length = ((mask & _ONES) * _ONES) >> _TOP  # the bytes set in the mask, added up in the highest one
        return _unzigzag(word), at + length.astype(np.int64)

    def _long_number(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same when one has nine or ten bytes."""
        value, after, shift = np.zeros(len(at), np.uint64), at.copy(), 0
        going = np.arange(len(at))
        while going.size:
            if shift == 70:
                raise NotVectorizableError("a number of more than ten bytes")
            byte = self.bytes[after[going]].astype(np.uint64)
            value[going] |= (byte & _GROUP) << np.uint64(shift)
            after[going] += 1
            going = going[byte >= 0x80]
            shift += 7
        return _unzigzag(value), after


def _name(schema: Schema) -> str:
    """The type's name; of a simple one written as an object, too."""
    return str(schema.get("type") if isinstance(schema, dict) else schema)
