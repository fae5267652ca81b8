"""The schema changes that let a table hold the columns of new rows: the option ``write.merge-schema``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from paimon_core.errors import InvalidInputError
from paimon_core.options.parse import boolean
from paimon_core.schema.change import AddColumn, SchemaChange, UpdateType
from paimon_core.types.cast import can_cast
from paimon_core.types.columns import ColumnNames
from paimon_core.types.datatype import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    RowType,
    with_nullable,
)
from paimon_core.types.widening import holds


@dataclass(frozen=True, slots=True)
class MergeRules:
    """The type changes that a write may make.

    ``type_widening``: a column may become a wider type, which holds every value of both types. ``explicit_cast``: a
    column whose type does not hold the new values becomes the new type, even if old values lose a part.
    """

    type_widening: bool = False
    explicit_cast: bool = False


MERGE_OPTIONS = ("write.merge-schema", "write.merge-schema.type-widening", "write.merge-schema.explicit-cast")
"""Options of a write. As a property of a table they have no effect."""


def rules_of(options: Mapping[str, str | None], base: MergeRules | None = None) -> MergeRules | None:
    """Return the rules of a write's options on top of `base`. `None`: the schema does not change."""
    flags = (base is not None, base is not None and base.type_widening, base is not None and base.explicit_cast)
    values = []
    for key, flag in zip(MERGE_OPTIONS, flags, strict=True):
        text = options.get(key, str(flag))
        try:
            values.append(boolean(text or "false"))
        except ValueError as error:
            raise InvalidInputError(f"option {key!r} is {text!r}: it {error}") from error
    return MergeRules(*values[1:]) if values[0] else None


def merge_changes(old: Sequence[DataField], new: Sequence[DataField], rules: MergeRules) -> list[SchemaChange]:
    """Return the changes that let the columns ``old`` hold rows of the columns ``new``. Empty: no change is needed.

    Columns match by exact name, else without case. New columns and new fields of structs are appended as nullable. A
    column keeps its type if `rules` allow no change: a write then refuses values that the column cannot hold. Lengths
    of texts and digits of timestamps never change.

    Raises InvalidInputError for a name that matches several columns and, if types may change, for types without a
    common type.
    """
    return list(_merged(old, new, rules, ()))


def _merged(
    old: Sequence[DataField], new: Sequence[DataField], rules: MergeRules, path: tuple[str, ...]
) -> Iterator[SchemaChange]:
    names = ColumnNames(field.name for field in old)
    merged_names: dict[str, str] = {}
    for field in new:
        positions, full = names.positions(field.name), (*path, field.name)
        name = old[positions[0]].name if len(positions) == 1 else field.name.lower()
        if len(positions) > 1 or name in merged_names:
            raise InvalidInputError(
                f"column {'.'.join(full)!r} of the rows cannot be merged into the table: "
                + (
                    f"{merged_names[name]!r} is the same column"
                    if name in merged_names
                    else "several columns have this name"
                )
            )
        merged_names[name] = field.name
        if positions:
            yield from _merged_type(old[positions[0]].type, field.type, rules, (*path, name))
        else:
            yield AddColumn(full, with_nullable(field.type, True), field.description)


def _merged_type(old: DataType, new: DataType, rules: MergeRules, path: tuple[str, ...]) -> Iterator[SchemaChange]:
    match old, new:
        case RowType(), RowType():
            yield from _merged(old.fields, new.fields, rules, path)
        case ArrayType(), ArrayType():
            yield from _merged_type(old.element, new.element, rules, (*path, "element"))
        case MapType(), MapType():
            yield from _merged_type(old.value, new.value, rules, (*path, "value"))
        case AtomicType(), AtomicType() if rules.type_widening or rules.explicit_cast:
            common = _common(old, new, rules)
            if common is None:
                raise InvalidInputError(
                    f"column {'.'.join(path)!r} of type {old} cannot be merged with {new}: cast the rows"
                    + ("" if rules.explicit_cast else ", or set 'write.merge-schema.explicit-cast' = 'true'")
                )
            if common is not old:
                yield UpdateType(path, common)


def _common(old: AtomicType, new: AtomicType, rules: MergeRules) -> AtomicType | None:
    """Return the common type of a column. `old` itself: no change is needed. `None`: no common type."""
    if holds(old, new):
        return old
    if holds(new, old):
        return new
    return new if rules.explicit_cast and can_cast(old, new, explicit=True) else None
