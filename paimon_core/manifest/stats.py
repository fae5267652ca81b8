"""Statistics of a set of rows as stored: two serialised rows and counts of nulls (format 5.7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import DataField

_EMPTY_ROW: Final = bytes(12)


@dataclass(frozen=True, slots=True)
class SimpleStats:
    """Smallest and largest values and null counts of some columns.

    ``min_values`` and ``max_values`` are BinaryRows with arity prefix, one field per column, null where unknown;
    ``null_counts`` has one item per column, None where unknown. Which columns is said elsewhere.
    """

    min_values: bytes
    max_values: bytes
    null_counts: tuple[int | None, ...]


EMPTY_STATS: Final = SimpleStats(_EMPTY_ROW, _EMPTY_ROW, ())
"""Statistics of no column."""


def stats_schema(fields: Sequence[DataField]) -> pa.Schema:
    """The Arrow schema that bounds of these columns are serialised by: every one nullable.

    Columns of nested types have no bounds, so their slot is a null of whatever fixed width.
    """
    kinds = [to_arrow(f.type) for f in fields]
    return pa.schema(
        [(f.name, pa.int64() if pa.types.is_nested(kind) else kind) for f, kind in zip(fields, kinds, strict=True)]
    )
