"""Unions of roaring bitmaps: rbm32 and rbm64. Null takes part in nothing; a value alone stays byte for byte.

The bytes are those of the reference engine: of 32 bits the portable format, of 64 bits the format of :mod:`bitmap64`,
in both every container as runs where that is smaller (of 32 bits, where both are as small, either). Loops over values:
each is a data structure of its own.
"""

import itertools
from collections.abc import Callable
from functools import partial

import pyarrow as pa
from pyroaring import BitMap

from paimon_core.errors import CorruptedError
from paimon_core.merge.aggregate.bitmap64 import Bitmap64
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput, refuse_retract
from paimon_core.merge.normalized_keys import Column

Union = Callable[[bytes, bytes], bytes]


def rbm32(field: FieldOptions) -> Aggregate:
    """Union of roaring bitmaps of 32-bit integers. Lawful."""
    field.check_root("rbm32", "VARBINARY")

    def union(one: bytes, other: bytes) -> bytes:
        both = BitMap.deserialize(one)
        both |= BitMap.deserialize(other)
        both.run_optimize()
        return bytes(both.serialize())

    return partial(unions, field, "rbm32", union)


def rbm64(field: FieldOptions) -> Aggregate:
    """Union of roaring bitmaps of 64-bit integers. Lawful."""
    field.check_root("rbm64", "VARBINARY")

    def union(one: bytes, other: bytes) -> bytes:
        both = Bitmap64.parse(one)
        both.update(Bitmap64.parse(other))
        return both.serialize()

    return partial(unions, field, "rbm64", union)


def unions(field: FieldOptions, function: str, union: Union, column: Column, feed: AggregateInput) -> Column:
    """The values of each group united one after the other, a late one with what is there, not the other way round.

    CorruptedError names the column where a value has no meaning.
    """
    refuse_retract(field, function, feed)
    values, older = column.to_pylist(), feed.older.tolist()
    united: list[bytes | None] = []
    for begin, end in itertools.pairwise([*feed.starts.tolist(), len(values)]):
        held: bytes | None = None
        for value, late in zip(values[begin:end], older[begin:end], strict=True):
            if held is None or value is None:
                held = value if held is None else held
                continue
            try:
                held = union(value, held) if late else union(held, value)
            except (ValueError, IndexError, RuntimeError, MemoryError) as error:
                raise CorruptedError(
                    f"column {field.name!r}: a value of {len(value)} bytes, or the one of {len(held)} bytes that it is "
                    f"to be united with, is not what {function} works on: {error}"
                ) from error
        united.append(held)
    return pa.array(united, column.type)
