"""The stored statistics of a set of rows: two serialised rows, and counts of nulls (format 5.7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import DataField

_EMPTY_ROW: Final = bytes(12)


@dataclass(frozen=True, slots=True)
class SimpleStats:
    """The smallest values, largest values and null counts of columns. The columns are listed elsewhere.

    ``min_values`` and ``max_values`` are BinaryRows with arity prefix and one field per column (null: unknown).
    ``null_counts`` has one item per column (`None`: unknown).
    """

    min_values: bytes
    max_values: bytes
    null_counts: tuple[int | None, ...]


EMPTY_STATS: Final = SimpleStats(_EMPTY_ROW, _EMPTY_ROW, ())
"""Statistics without columns."""


def stats_schema(fields: Sequence[DataField]) -> pa.Schema:
    """Return the Arrow schema of the serialised bounds of these columns, all nullable.

    A column of a nested type has no bounds: its field is always null, and has the type int64 here.
    """
    kinds = [to_arrow(f.type) for f in fields]
    return pa.schema(
        [(f.name, pa.int64() if pa.types.is_nested(kind) else kind) for f, kind in zip(fields, kinds, strict=True)]
    )
