"""Decode many Avro blocks of one schema in parallel with numpy.

Avro records have no fixed width, so a block can only be read from its beginning, byte after byte. But blocks are
independent: with one cursor per block, one numpy step advances all cursors over the same field of the same record
number. This is faster than record by record from about fifty blocks on.

A cursor must end exactly where its block ends. Anything unexpected raises `NotVectorizableError`; then the caller
decodes record by record, which finds the exact error.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

_PAD: Final = bytes(16)
_CONTINUES: Final = np.uint64(0x8080808080808080)
_ONES: Final = np.uint64(0x0101010101010101)
_PAIRS: Final = tuple(  # to join groups of 7, 14, 28 bits: mask of the low groups, mask of the high groups, distance
    (np.uint64(low), np.uint64(high), np.uint64(distance))
    for low, high, distance in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
_MAX_HEADS: Final = 4  # each takes a search of all bytes
_IN_CACHE: Final = 8192  # cursors whose arrays stay in the cache of a processor
_SAMPLE: Final = 1 << 14  # bytes that show which byte is rare
_ONE, _TOP, _GROUP = np.uint64(1), np.uint64(56), np.uint64(0x7F)

Schema = Any
Step = Callable[[np.ndarray], np.ndarray]
"""A function that moves cursors (int64, one byte position per block) past one value."""


class NotVectorizableError(Exception):
    """The blocks cannot be decoded in parallel, because they are damaged or unusual."""


@dataclass(slots=True)
class FieldColumn:
    """A requested field and its decoded values: one array for each step, one item for each block in the step.

    ``kind`` defines ``first`` and ``second``. For "number" they are the value, and True if it is not null. For "bytes"
    they are the start and the end of the content (start -1: null). For "raw" they are the start and the end of the
    whole encoding.
    """

    kind: str
    first: list[np.ndarray] = field(default_factory=list)
    second: list[np.ndarray] = field(default_factory=list)


def decode_columns(
    schema: Schema,
    blocks: Sequence[tuple[int, bytes]],
    kinds: Mapping[tuple[str, ...], str],
    head: int = 0,
    *,
    in_steps: bool = True,
) -> tuple[bytes, dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]]]:
    """Return the bytes of all blocks and, for each requested field, two arrays with an item for each record.

    Args:
        schema: the Avro schema of the records.
        blocks: number of records and their encoded bytes.
        kinds: path of a requested field -> its kind, see `FieldColumn`. Paths that the schema lacks are ignored.
        head: the number of leading bytes that most records share with the first record of a block; 0: unknown. A
            search for these bytes guesses where records start, and all records are decoded at once. The guess is
            checked; a wrong guess costs time only.
        in_steps: True: after a wrong guess, decode the records of all blocks side by side: slow for few blocks.

    The arrays are in record order and hold what `FieldColumn` says, as int64 or bool; positions refer to the returned
    bytes.

    Raises NotVectorizableError, also after a wrong guess without ``in_steps``.
    """
    counts = np.array([count for count, _ in blocks], np.int64)
    data = b"".join([*(content for _, content in blocks), _PAD])
    ends = np.cumsum([len(content) for _, content in blocks])
    starts = ends - [len(content) for _, content in blocks]
    at_once = _decode_at_once(schema, data, starts, counts, kinds, head) if head else None
    if at_once is None and not in_steps:
        raise NotVectorizableError("the starts of the records are unknown")
    return data, at_once or _decode_in_steps(schema, data, starts, ends, counts, kinds)


_Decoded: TypeAlias = dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]]


def _decode_at_once(
    schema: Schema,
    data: bytes,
    starts: np.ndarray,
    counts: np.ndarray,
    kinds: Mapping[tuple[str, ...], str],
    head: int,
) -> _Decoded | None:
    """Decode all records with one cursor each; `None` if the guess of their starts is wrong.

    The guess is right if each record ends where the next one starts, and each block starts with a record.
    """
    cursors = _guess_starts(data, {data[start : start + head] for start in starts.tolist()})
    first_of_block = np.cumsum(counts) - counts
    if cursors is None or len(cursors) != counts.sum() or (counts <= 0).any():
        return None
    if (cursors[first_of_block] != starts).any():
        return None
    columns = {path: FieldColumn(kind) for path, kind in kinds.items()}
    step, next_start = _BlockCursors(data).record(schema, columns, ()), np.append(cursors[1:], len(data) - len(_PAD))
    try:
        for i in range(0, len(cursors), _IN_CACHE):
            if (step(cursors[i : i + _IN_CACHE]) != next_start[i : i + _IN_CACHE]).any():
                return None
    except (IndexError, NotVectorizableError):
        return None
    return {
        path: (np.concatenate(column.first), np.concatenate(column.second))
        for path, column in columns.items()
        if column.first
    }


def _guess_starts(data: bytes, heads: Collection[bytes]) -> np.ndarray | None:
    """Return the positions of these byte strings of one length, in order; `None`: too many byte strings.

    Cost: one pass over the data for each byte string, for its rarest byte.
    """
    if len(heads) > _MAX_HEADS:
        return None
    content, sample = np.frombuffer(data, np.uint8), data[:_SAMPLE]
    positions = []
    for head in heads:
        rarest = min(range(len(head)), key=lambda i, head=head: sample.count(head[i]))  # type: ignore[misc]
        found = np.flatnonzero(content[rarest : len(content) - len(head) + rarest] == head[rarest])
        for i in (i for i in range(len(head)) if i != rarest):
            found = found[content[found + i] == head[i]]
        positions.append(found)
    return positions[0] if len(positions) == 1 else np.sort(np.concatenate(positions))


def _decode_in_steps(
    schema: Schema,
    data: bytes,
    starts: np.ndarray,
    ends: np.ndarray,
    counts: np.ndarray,
    kinds: Mapping[tuple[str, ...], str],
) -> _Decoded:
    """Decode the records with one cursor for each block."""
    by_count = np.argsort(-counts, kind="stable")  # blocks with remaining records always come first
    columns = {path: FieldColumn(kind) for path, kind in kinds.items()}
    step = _BlockCursors(data).record(schema, columns, ())
    cursors, stop, records = starts[by_count], ends[by_count], counts[by_count]
    decoded: list[np.ndarray] = []
    try:
        for k in range(int(records[0]) if len(records) else 0):
            running = int(np.searchsorted(-records, -k, "left"))
            cursors[:running] = step(cursors[:running])
            if (cursors > stop).any():
                raise NotVectorizableError("a block is shorter than its records")
            decoded.append(by_count[:running])
    except IndexError as cause:
        raise NotVectorizableError("a length points outside the data") from cause
    if (cursors != stop).any():
        raise NotVectorizableError("a block is longer than its records")
    index = _record_index(decoded, np.cumsum(counts) - counts)
    return {
        path: (_ordered(column.first, index), _ordered(column.second, index))
        for path, column in columns.items()
        if column.first
    }


def variable_numbers(data: bytes, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the variable-length zig-zag numbers (int64) in the ranges, and the number of values in each range.

    Args:
        data: the bytes.
        first: the starts of the ranges, which hold nothing but such numbers.
        second: their ends.

    Raises NotVectorizableError for a range that ends inside a number, and for a number of more than ten bytes.
    """
    size = second - first
    stop = np.cumsum(size)
    content = np.frombuffer(data, np.uint8)[np.repeat(first - (stop - size), size) + np.arange(size.sum())]
    last = content < 0x80
    ends = np.flatnonzero(last)
    length = np.diff(ends, prepend=-1)
    if not last[stop[size > 0] - 1].all() or length.max(initial=0) > 10:
        raise NotVectorizableError("numbers too long, or cut off")
    value = np.zeros(len(ends), np.uint64)
    for k in range(int(length.max(initial=0))):
        longer = np.flatnonzero(length > k)
        group = content[ends[longer] - length[longer] + 1 + k].astype(np.uint64) & _GROUP
        value[longer] |= group << np.uint64(7 * k)
    return _unzigzag(value), np.diff(np.searchsorted(ends, stop, "left"), prepend=0)


def _unzigzag(value: np.ndarray) -> np.ndarray:
    result: np.ndarray = (value >> _ONE).astype(np.int64) ^ -(value & _ONE).astype(np.int64)
    return result


def _record_index(decoded: Sequence[np.ndarray], offsets: np.ndarray) -> np.ndarray:
    """Return the index in record order of each decoded record.

    Args:
        decoded: ``decoded[k]`` are the numbers of the blocks whose record ``k`` was decoded, in this order.
        offsets: the index of each block's first record.
    """
    if not decoded:
        return np.zeros(0, np.int64)
    return np.concatenate([offsets[blocks] + k for k, blocks in enumerate(decoded)])


def _ordered(values: list[np.ndarray], index: np.ndarray) -> np.ndarray:
    """Return the values of all steps in record order: value ``i`` belongs to record ``index[i]``. Empty ``values``."""
    result = np.empty(len(index), values[0].dtype)
    result[index] = np.concatenate(values)
    values.clear()
    return result


class _BlockCursors:
    """A factory of steps over the bytes of all blocks."""

    def __init__(self, data: bytes) -> None:
        self.bytes = np.frombuffer(data, np.uint8)
        self.words = np.ndarray((len(data) - 7,), np.dtype("<u8"), data, strides=(1,))  # the 8 bytes from each position
        self.end = len(data) - len(_PAD)

    def record(self, schema: Schema, columns: Mapping[tuple[str, ...], FieldColumn], path: tuple[str, ...]) -> Step:
        """Return a step over a record that stores the values of its requested fields.

        Args:
            schema: the Avro schema of the record.
            columns: the requested fields by path.
            path: the path of the record.
        """
        steps = [self._field(f["type"], columns, (*path, f["name"])) for f in schema["fields"]]

        def step(cursors: np.ndarray) -> np.ndarray:
            for over_field in steps:
                cursors = over_field(cursors)
            return cursors

        return step

    def _field(self, schema: Schema, columns: Mapping[tuple[str, ...], FieldColumn], path: tuple[str, ...]) -> Step:
        """Return a step over a field of a record; arguments: see `record`."""
        column = columns.get(path)
        if column is None:
            nested = isinstance(schema, dict) and schema.get("type") == "record"
            return self.record(schema, columns, path) if nested else self.over(schema)
        if column.kind == "raw":
            return self._raw(self.over(schema), column)
        return self._nullable(schema, column) if isinstance(schema, list) else self._value(schema, column)

    def _raw(self, over: Step, column: FieldColumn) -> Step:
        """Return a step that stores start and end of each value."""

        def step(cursors: np.ndarray) -> np.ndarray:
            after = over(cursors)
            column.first.append(cursors)
            column.second.append(after)
            return after

        return step

    def _value(self, schema: Schema, column: FieldColumn) -> Step:
        """Return a step over values that are never null."""
        read = self._reader(schema, column.kind)

        def step(cursors: np.ndarray) -> np.ndarray:
            first, second, after = read(cursors)
            column.first.append(first)
            column.second.append(second)
            return after

        return step

    def _nullable(self, schema: Sequence[Schema], column: FieldColumn) -> Step:
        """Return a step over values of a union with null."""
        if len(schema) != 2 or "null" not in schema:
            raise NotVectorizableError(f"unsupported union {schema}")
        null = schema.index("null")
        read = self._reader(schema[1 - null], column.kind)
        absent, second_type = (-1, np.int64) if column.kind == "bytes" else (0, np.bool_)

        def step(cursors: np.ndarray) -> np.ndarray:
            branch, cursors = self.number(cursors)
            valid = branch == 1 - null
            if valid.all():
                first, second, cursors = read(cursors)
            else:
                if (branch[~valid] != null).any():
                    raise NotVectorizableError("a union has no such branch")
                first, second = np.full(len(cursors), absent, np.int64), np.zeros(len(cursors), second_type)
                if valid.any():
                    cursors = cursors.copy()
                    first[valid], second[valid], cursors[valid] = read(cursors[valid])
            column.first.append(first)
            column.second.append(second)
            return cursors

        return step

    def _reader(self, schema: Schema, kind: str) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return a function from cursors to the two numbers of a `FieldColumn` of this kind and the cursors after."""
        name = _name(schema)
        if kind == "number" and name in ("int", "long"):

            def read_number(cursors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
                value, after = self.number(cursors)
                return value, np.ones(len(cursors), bool), after

            return read_number
        if kind == "bytes" and name in ("bytes", "string"):

            def read_bytes(cursors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
                start, after = self._content(cursors)
                return start, after, after

            return read_bytes
        raise NotVectorizableError(f"{kind} expected, the schema says {name}")

    def over(self, schema: Schema) -> Step:
        """Return a step that skips a value that is not requested."""
        if isinstance(schema, list):
            return self._over_union([self.over(branch) for branch in schema])
        name = _name(schema)
        if name == "null":
            return lambda cursors: cursors
        if name in ("int", "long"):
            return lambda cursors: self.number(cursors)[1]
        if name in ("bytes", "string"):
            return lambda cursors: self._content(cursors)[1]
        if name == "array":
            return self._over_array(self.over(schema["items"]))
        if name == "record" and isinstance(schema, dict):
            return self.record(schema, {}, ())
        raise NotVectorizableError(f"cannot skip a value of type {name}")

    def _over_union(self, branches: Sequence[Step]) -> Step:
        def step(cursors: np.ndarray) -> np.ndarray:
            branch, cursors = self.number(cursors)
            common = int(branch[0]) if len(branch) else 0
            if (branch == common).all() and 0 <= common < len(branches):
                return branches[common](cursors)
            if ((branch < 0) | (branch >= len(branches))).any():
                raise NotVectorizableError("a union has no such branch")
            cursors = cursors.copy()
            for i, over in enumerate(branches):
                chosen = np.flatnonzero(branch == i)
                if chosen.size:
                    cursors[chosen] = over(cursors[chosen])
            return cursors

        return step

    def _over_array(self, item: Step) -> Step:
        def step(cursors: np.ndarray) -> np.ndarray:
            remaining, cursors = self.number(cursors)
            if not remaining.any():
                return cursors
            cursors = cursors.copy()
            running = np.flatnonzero(remaining)  # the cursors whose array has further items
            remaining = remaining[running]
            while running.size:
                if (remaining < 0).any():
                    raise NotVectorizableError("an array block with a size in bytes")
                after = item(cursors[running])
                remaining = remaining - 1
                if not remaining.all():  # some runs of items end; the run that follows is usually empty
                    ended = np.flatnonzero(remaining == 0)
                    remaining[ended], after[ended] = self.number(after[ended])
                cursors[running] = after
                if (after > self.end).any():
                    raise NotVectorizableError("an array extends beyond the data")
                if not remaining.all():
                    running, remaining = running[remaining != 0], remaining[remaining != 0]
            return cursors

        return step

    def _content(self, cursors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return start and end of contents that follow their length."""
        length, start = self.number(cursors)
        if (length < 0).any():
            raise NotVectorizableError("a negative length")
        return start, start + length

    def number(self, cursors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the variable-length zig-zag numbers (int64) at the cursors, and the cursors after them."""
        first = self.bytes[cursors]
        if first.max(initial=0) < 0x80:
            small = first.astype(np.int64)
            return (small >> 1) ^ -(small & 1), cursors + 1
        word = self.words[cursors]
        last = ~word & _CONTINUES
        if not last.all():
            return self._long_number(cursors)
        mask = last & (~last + _ONE)
        mask |= mask - _ONE
        word = word & mask
        for low, high, distance in _PAIRS:
            word = (word & low) | ((word & high) >> distance)
        length = ((mask & _ONES) * _ONES) >> _TOP  # the number of bytes set in the mask, summed in the highest byte
        return _unzigzag(word), cursors + length.astype(np.int64)

    def _long_number(self, cursors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same as `number`, also for numbers of nine or ten bytes."""
        value, after, shift = np.zeros(len(cursors), np.uint64), cursors.copy(), 0
        running = np.arange(len(cursors))
        while running.size:
            if shift == 70:
                raise NotVectorizableError("a number of more than ten bytes")
            byte = self.bytes[after[running]].astype(np.uint64)
            value[running] |= (byte & _GROUP) << np.uint64(shift)
            after[running] += 1
            running = running[byte >= 0x80]
            shift += 7
        return _unzigzag(value), after


def _name(schema: Schema) -> str:
    """Return the name of a type, given as a name or as an object."""
    return str(schema.get("type") if isinstance(schema, dict) else schema)
