"""The stored columns that a read of some paths of shredded variants needs, and the columns whose bounds skip rows.

A field of an object is stored either in its own group of `value` and `typed_value`, or in the column `value` of the
object, never in both. If `typed_value` is null, `value` holds no object with fields of its own group (Parquet's
specification of shredded variants). So the columns of one group are enough for the values of its field.
"""

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from paimon_core.variant.rebuild import is_shredded

Steps: TypeAlias = tuple[str | int, ...]
"""A path in variants: names of fields and indexes of elements."""
Part: TypeAlias = tuple[str, ...]
"""The names of stored columns, from the column of variants (left out) to the inside."""


def parts_to_decode(stored: pa.DataType, paths: Sequence[Steps]) -> list[Part] | None:
    """Return the parts of a stored column of variants that have the values at paths; `None`: all parts.

    Args:
        stored: the type of the column.
        paths: the paths.
    """
    groups = [_group_at(stored, steps) for steps in paths]
    parts: dict[Part, None] = {("metadata",): None}
    for group in groups:
        if group is None:
            return None
        kind, at, rest = group
        names = ["value"] if rest and isinstance(rest[0], str) else ["value", "typed_value"]
        parts |= {(*at, name): None for name in names if kind.get_field_index(name) >= 0}
    return list(parts)


def leaf_group(stored: pa.DataType, steps: Steps) -> tuple[pa.DataType, Part] | None:
    """Return the type and the place of the group that has all values at a path; `None`: no group has only these."""
    group = _group_at(stored, steps)
    return None if group is None or group[2] or not is_shredded(group[0]) else group[:2]


def _group_at(stored: pa.DataType, steps: Steps) -> tuple[pa.DataType, Part, Steps] | None:
    """Return the innermost group on a path, its place and the rest of the path; `None`: the columns are unusual."""
    at: Part = ()
    for number, step in enumerate(steps):
        if not pa.types.is_struct(stored):
            return None
        typed = stored.field("typed_value").type if is_shredded(stored) else None
        if typed is None or not isinstance(step, str) or not pa.types.is_struct(typed):
            return stored, at, steps[number:]
        if len({field.name for field in typed}) < len(typed):
            return None
        if typed.get_field_index(step) < 0:
            return stored, at, steps[number:]
        stored, at = typed.field(step).type, (*at, "typed_value", step)
    return (stored, at, ()) if pa.types.is_struct(stored) else None
