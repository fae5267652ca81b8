"""The aggregate functions rbm32 and rbm64: unions of roaring bitmaps. Null has no effect; a single value is unchanged.

The bytes equal the Java engine's: the portable format for 32 bits, the format of :mod:`bitmap64` for 64 bits. A
container is stored as runs if that is smaller (with 32 bits, runs of equal size may be stored either way). A Python
loop unites the values, because each is a data structure of its own.
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
    """Make rbm32: union of roaring bitmaps of 32-bit integers. Associative."""
    field.check_root("rbm32", "VARBINARY")

    def union(left: bytes, right: bytes) -> bytes:
        both = BitMap.deserialize(left)
        both |= BitMap.deserialize(right)
        both.run_optimize()
        return bytes(both.serialize())

    return partial(unions, field, "rbm32", union)


def rbm64(field: FieldOptions) -> Aggregate:
    """Make rbm64: union of roaring bitmaps of 64-bit integers. Associative."""
    field.check_root("rbm64", "VARBINARY")

    def union(left: bytes, right: bytes) -> bytes:
        both = Bitmap64.parse(left)
        both.update(Bitmap64.parse(right))
        return both.serialize()

    return partial(unions, field, "rbm64", union)


def unions(field: FieldOptions, function: str, union: Union, column: Column, inputs: AggregateInput) -> Column:
    """Return the union of each group's values: `union(so_far, value)`, or `union(value, so_far)` for a late row.

    Raises CorruptedError, naming the column, for a value that cannot be parsed.
    """
    refuse_retract(field, function, inputs)
    values, late_rows = column.to_pylist(), inputs.late.tolist()
    united: list[bytes | None] = []
    for begin, end in itertools.pairwise([*inputs.starts.tolist(), len(values)]):
        so_far: bytes | None = None
        for value, late in zip(values[begin:end], late_rows[begin:end], strict=True):
            if so_far is None or value is None:
                so_far = value if so_far is None else so_far
                continue
            try:
                so_far = union(value, so_far) if late else union(so_far, value)
            except (ValueError, IndexError, RuntimeError, MemoryError) as error:
                raise CorruptedError(
                    f"column {field.name!r}: a value of {len(value)} bytes, or the union of {len(so_far)} bytes of "
                    f"older values, cannot be read by the aggregate function {function}: {error}"
                ) from error
        united.append(so_far)
    return pa.array(united, column.type)
