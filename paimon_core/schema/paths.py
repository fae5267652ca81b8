"""Edits of a column at the end of a path: rows by field name, arrays by ``element``, maps by ``value``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError, listed_names
from paimon_core.types.columns import ColumnNames
from paimon_core.types.datatype import ArrayType, DataField, DataType, MapType, RowType

Fields: TypeAlias = tuple[DataField, ...]
Edit: TypeAlias = Callable[[Fields, str], Fields]
"""A function from the siblings at the end of a path, and the name of a sibling, to the edited siblings."""


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a column among its siblings; ``reference`` is a sibling's name."""

    where: Literal["first", "last", "after", "before"]
    reference: str | None = None


FIRST = Position("first")
LAST = Position("last")


def within(fields: Fields, path: Sequence[str], edit: Edit, above: tuple[str, ...]) -> Fields:
    """Return ``fields`` after an edit at the end of a path.

    Args:
        fields: the fields in which the path begins.
        path: the names down to the edited field.
        edit: the edit.
        above: the names of the path that lead to ``fields``, for error messages.
    """
    name, *rest = path
    if not rest:
        return edit(fields, name)
    at = index_of(fields, name, above)
    changed = replace(fields[at], type=_within_type(fields[at].type, rest, edit, (*above, name)))
    return (*fields[:at], changed, *fields[at + 1 :])


def _within_type(t: DataType, path: Sequence[str], edit: Edit, above: tuple[str, ...]) -> DataType:
    match t:
        case RowType():
            return replace(t, fields=within(t.fields, path, edit, above))
        case ArrayType() if path[0] == "element":
            return replace(t, element=_part(t.element, path, edit, above))
        case MapType() if path[0] == "value":
            return replace(t, value=_part(t.value, path, edit, above))
    hint = {ArrayType: "'element'", MapType: "'value' (keys cannot change)"}.get(type(t), "nothing")
    raise InvalidInputError(f"{'.'.join(above)!r} is {t}, in which {hint} can be named, not {path[0]!r}")


def _part(t: DataType, path: Sequence[str], edit: Edit, above: tuple[str, ...]) -> DataType:
    """Return the element type of an array, or the value type of a map, after an edit of the type or of its parts."""
    name, *rest = path
    if rest:
        return _within_type(t, rest, edit, (*above, name))
    try:
        (edited,) = edit((DataField(-1, name, t),), name)
    except AlreadyExistsError:
        edited = None
    if edited is None or edited.name != name:
        raise InvalidInputError(
            f"{'.'.join((*above, name))!r} is part of {'.'.join(above)!r}: it has no name to change"
        )
    return edited.type


def each(change: Callable[[DataField], DataField]) -> Edit:
    """Return the edit that applies ``change`` to the named field."""

    def edit(fields: Fields, name: str) -> Fields:
        at = index_of(fields, name)
        return (*fields[:at], change(fields[at]), *fields[at + 1 :])

    return edit


def moved(position: Position) -> Edit:
    """Return the edit that moves the named field to a position among its siblings."""

    def edit(fields: Fields, name: str) -> Fields:
        at = index_of(fields, name)
        if position.reference == name:
            raise InvalidInputError(f"column {name!r} cannot be moved next to itself")
        return placed((*fields[:at], *fields[at + 1 :]), fields[at], position)

    return edit


def placed(fields: Fields, field: DataField, position: Position) -> Fields:
    """Return ``fields`` with ``field`` inserted at a position."""
    match position.where:
        case "first":
            at = 0
        case "last":
            at = len(fields)
        case "after" | "before" as where:
            if position.reference is None:
                raise InvalidInputError(f"position {where!r} needs the name of another column")
            at = index_of(fields, position.reference) + (where == "after")
        case other:
            raise InvalidInputError(f"unknown position {other!r}: it is first, last, after or before")
    return (*fields[:at], field, *fields[at:])


def index_of(fields: Fields, name: str, above: tuple[str, ...] = ()) -> int:
    """Return the index of the field ``name``. Raises NotFoundError with the path ``above`` if it does not exist."""
    for i, field in enumerate(fields):
        if field.name == name:
            return i
    raise not_found(fields, name, above)


def not_found(fields: Fields, name: str, above: tuple[str, ...] = ()) -> NotFoundError:
    """Return the error for a missing name, with the existing names."""
    names = listed_names(name, (f.name for f in fields))
    return NotFoundError(f"no column {'.'.join((*above, name))!r}; there are {names}")


def check_free(fields: Fields, name: str, shown: str) -> None:
    """Refuse a name that a field already has, also in another case. Raises AlreadyExistsError naming ``shown``."""
    for i in ColumnNames(field.name for field in fields).positions(name):
        raise AlreadyExistsError(f"column {shown!r} cannot be added: {fields[i].name!r} exists, choose another name")
