"""Editing columns where a path leads: into rows by field name, arrays by ``element``, maps by ``value``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from paimon_core.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from paimon_core.types.columns import ColumnNames
from paimon_core.types.datatype import ArrayType, DataField, DataType, MapType, RowType

Fields: TypeAlias = tuple[DataField, ...]
Edit: TypeAlias = Callable[[Fields, str], Fields]
"""From the siblings at the end of a path and the name meant among them to the siblings afterwards."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a column goes among its siblings; ``reference`` is a sibling's name."""

    where: Literal["first", "last", "after", "before"]
    reference: str | None = None


FIRST = Position("first")
LAST = Position("last")


def within(fields: Fields, path: Sequence[str], edit: Edit, above: tuple[str, ...]) -> Fields:
    """``fields`` with the edit made where the path leads."""
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
    """The element of an array or the value of a map, edited itself or further inside."""
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
    """The edit that changes the one field meant."""

    def edit(fields: Fields, name: str) -> Fields:
        at = index_of(fields, name)
        return (*fields[:at], change(fields[at]), *fields[at + 1 :])

    return edit


def moved(position: Position) -> Edit:
    """The edit that puts the field meant elsewhere among its siblings."""

    def edit(fields: Fields, name: str) -> Fields:
        at = index_of(fields, name)
        if position.reference == name:
            raise InvalidInputError(f"column {name!r} cannot be moved next to itself")
        return placed((*fields[:at], *fields[at + 1 :]), fields[at], position)

    return edit


def placed(fields: Fields, one: DataField, position: Position) -> Fields:
    """``fields`` with one more at the position."""
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
    return (*fields[:at], one, *fields[at:])


def index_of(fields: Fields, name: str, above: tuple[str, ...] = ()) -> int:
    """Where the field of that name is; NotFoundError with the path ``above`` otherwise."""
    for i, one in enumerate(fields):
        if one.name == name:
            return i
    raise not_found(fields, name, above)


def not_found(fields: Fields, name: str, above: tuple[str, ...] = ()) -> NotFoundError:
    """The error for a name that is not there, with those that are."""
    return NotFoundError(f"no column {'.'.join((*above, name))!r}; there are {', '.join(f.name for f in fields)}")


def check_free(fields: Fields, name: str, shown: str) -> None:
    """Refuse a name that is taken, be it in another case."""
    for i in ColumnNames(field.name for field in fields).positions(name):
        raise AlreadyExistsError(f"column {shown!r} cannot be added, there is {fields[i].name!r}: choose another name")
