"""Schema changes, and their application to a schema."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from paimon_core.errors import AlreadyExistsError, InvalidInputError
from paimon_core.options import ALL_OPTIONS
from paimon_core.options.option import Options
from paimon_core.schema.directives import refuse_directive
from paimon_core.schema.mutability import NEVER, check_change
from paimon_core.schema.paths import (
    FIRST,
    LAST,
    Edit,
    Fields,
    Position,
    check_free,
    each,
    index_of,
    moved,
    not_found,
    placed,
    within,
)
from paimon_core.schema.properties import check_table_options
from paimon_core.schema.references import rename, rename_inner
from paimon_core.schema.support import check_alterable
from paimon_core.schema.table_schema import CURRENT_VERSION, TableSchema
from paimon_core.schema.validate import validate
from paimon_core.types.arrow import assign_ids
from paimon_core.types.cast import can_cast, has_limit
from paimon_core.types.datatype import (
    ArrayType,
    DataField,
    DataType,
    MapType,
    RowType,
    is_blob_type,
    is_nested,
    with_nullable,
)
from paimon_core.types.parse import parse_type
from paimon_core.types.system_fields import check_names

__all__ = [
    "FIRST",
    "LAST",
    "AddColumn",
    "DropColumn",
    "DropPrimaryKey",
    "MoveColumn",
    "Position",
    "RemoveOption",
    "RenameColumn",
    "SchemaChange",
    "SetOption",
    "UpdateComment",
    "UpdateDefault",
    "UpdateNullability",
    "UpdateTableComment",
    "UpdateType",
    "apply",
]

Name: TypeAlias = str | Sequence[str]
"""A column, or the path to a nested field: field names of rows, ``element`` of an array, ``value`` of a map."""


@dataclass(frozen=True, slots=True)
class AddColumn:
    """The addition of a nullable column. Old rows have NULL in it."""

    name: Name
    type: DataType | str
    comment: str | None = None
    default: str | None = None
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class DropColumn:
    """The removal of a column. Its values stay in old files and cannot be read."""

    name: Name


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """A new name for a column: the last part of its path. Options that name the column change with it."""

    name: Name
    to: str


@dataclass(frozen=True, slots=True)
class UpdateType:
    """A new type for a column. Reads cast the values of old files.

    ``keep_nullability``: True: the nullability of ``type`` is ignored. ``whole_texts``: True: a CHAR or VARCHAR that is
    too short for some text of the old type is refused.
    """

    name: Name
    type: DataType | str
    keep_nullability: bool = True
    whole_texts: bool = False


@dataclass(frozen=True, slots=True)
class UpdateNullability:
    """A change of a column to nullable or NOT NULL."""

    name: Name
    nullable: bool


@dataclass(frozen=True, slots=True)
class UpdateComment:
    """A new comment on a column; `None`: no comment."""

    name: Name
    comment: str | None


@dataclass(frozen=True, slots=True)
class UpdateDefault:
    """A new default for rows that are written later; `None`: no default."""

    name: Name
    default: str | None


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """A new position of a column among its siblings."""

    name: Name
    position: Position


@dataclass(frozen=True, slots=True)
class SetOption:
    """A new value of a table option."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoveOption:
    """The removal of a table option, whose default applies again."""

    key: str


@dataclass(frozen=True, slots=True)
class UpdateTableComment:
    """A new comment on the table; `None`: no comment."""

    comment: str | None


@dataclass(frozen=True, slots=True)
class DropPrimaryKey:
    """The removal of the primary key; only for a table without data."""


ColumnChange: TypeAlias = (
    AddColumn | DropColumn | RenameColumn | UpdateType | UpdateNullability | UpdateComment | UpdateDefault | MoveColumn
)
SchemaChange: TypeAlias = ColumnChange | SetOption | RemoveOption | UpdateTableComment | DropPrimaryKey


def apply(schema: TableSchema, changes: Iterable[SchemaChange], has_snapshots: bool) -> TableSchema:
    """Return the schema after all changes, in order, with the next id.

    Args:
        schema: the schema before the changes; it is not modified.
        changes: the changes, in order.
        has_snapshots: True if the table has data.

    Raises InvalidInputError for a change that breaks a rule, NotFoundError for a column that does not exist,
    AlreadyExistsError for a name that another column has. Raises UnsupportedError for a change after which this engine
    could no longer write to the table.
    """
    edit = _SchemaEdit(schema, has_snapshots)
    for change in changes:
        match change:
            case SetOption():
                edit.set_option(change.key, change.value)
            case RemoveOption():
                edit.set_option(change.key, None)
            case UpdateTableComment():
                edit.comment = change.comment
            case DropPrimaryKey():
                edit.drop_primary_key()
            case _ if isinstance(change, ColumnChange):
                edit.change_column(change)
            case _:
                raise InvalidInputError(f"{change!r} is no schema change: pass a list such as [SetOption(key, value)]")
    changed = replace(
        schema,
        id=schema.id + 1,
        fields=edit.fields,
        highest_field_id=edit.highest_field_id,
        primary_keys=edit.primary_keys,
        options=Options(edit.options),
        comment=edit.comment,
        version=CURRENT_VERSION,
    )
    validate(changed)
    check_alterable(schema, changed)
    return changed


@dataclass(slots=True)
class _SchemaEdit:
    """A schema to which changes are applied one by one."""

    base: TableSchema
    has_snapshots: bool
    fields: Fields = field(init=False)
    highest_field_id: int = field(init=False)
    primary_keys: tuple[str, ...] = field(init=False)
    options: dict[str, str] = field(init=False)
    comment: str | None = field(init=False)

    def __post_init__(self) -> None:
        self.fields, self.highest_field_id = self.base.fields, self.base.highest_field_id
        self.primary_keys, self.comment = self.base.primary_keys, self.base.comment
        self.options = dict(self.base.options)

    # ---- options and keys

    def set_option(self, key: str, value: str | None) -> None:
        if self.options.get(key) == value:
            return
        if value is not None:
            check_table_options({key: value}, "the change of options")
        if key in NEVER or self.has_snapshots:
            check_change(self.options, key, value)
        if key in ("primary-key", "partition"):
            raise InvalidInputError(f"option {key!r} cannot change: the {key} columns of a table are fixed")
        if value is None:
            self.options.pop(key)
        else:
            self.options[key] = value

    def drop_primary_key(self) -> None:
        if self.has_snapshots:
            raise InvalidInputError(
                "the primary key cannot be dropped once the table has data; copy the rows into a new table"
            )
        self.primary_keys = ()

    def flag(self, key: str) -> bool:
        return bool(Options(self.options).value(ALL_OPTIONS[key]))

    # ---- columns

    def change_column(self, change: ColumnChange) -> None:
        path = (change.name,) if isinstance(change.name, str) else tuple(change.name)
        if not path:
            raise InvalidInputError(f"{type(change).__name__} names no column")
        self.fields = within(self.fields, path, self._edit(change, path), ())
        if isinstance(change, RenameColumn):
            self._follow(path, change.to)

    def _edit(self, change: ColumnChange, path: Sequence[str]) -> Edit:
        """Return the edit of the siblings at the end of the path. Refuse a change that always breaks a rule."""
        column = path[0] if len(path) == 1 else None
        match change:
            case AddColumn():
                return self._add(change, ".".join(path), top_level=column is not None)
            case DropColumn():
                return self._drop(column)
            case RenameColumn():
                return self._rename(change, column)
            case UpdateType():
                return self._retype(change, path, column)
            case UpdateNullability():
                return self._nullable(change.nullable, path, column)
            case UpdateComment():
                if column is not None:
                    refuse_directive(column, change.comment)
                return each(lambda column: replace(column, description=change.comment))
            case UpdateDefault():
                return self._default(change.default, path)
            case MoveColumn():
                return moved(change.position)

    def _add(self, change: AddColumn, shown: str, *, top_level: bool) -> Edit:
        kind = parse_type(change.type) if isinstance(change.type, str) else change.type
        if not kind.nullable:
            raise InvalidInputError(f"new column {shown!r} is NOT NULL, but existing rows have no value for it")
        if change.default is not None and not top_level:
            raise InvalidInputError(f"nested field {shown!r} cannot have a default")

        def add(fields: Fields, name: str) -> Fields:
            check_free(fields, name, shown)
            if top_level:
                check_names([name])
                refuse_directive(name, change.comment)
            (added,), highest = assign_ids(
                [DataField(-1, name, kind, change.comment, change.default)], self.highest_field_id + 1
            )
            self.highest_field_id = highest
            position = change.position or (self._default_position() if top_level else LAST)
            return placed(fields, added, position)

        return add

    def _default_position(self) -> Position:
        partitions = [f.name for f in self.fields if f.name in self.base.partition_keys]
        if partitions and self.flag("add-column-before-partition"):
            return Position("before", partitions[0])
        return LAST

    def _drop(self, column: str | None) -> Edit:
        if column in self.base.partition_keys or column in self.primary_keys:
            raise InvalidInputError(
                f"column {column!r} cannot be dropped: it is a partition or primary key column; "
                "copy the rows into a new table without it"
            )

        def drop(fields: Fields, name: str) -> Fields:
            remaining = tuple(f for f in fields if f.name != name)
            if len(remaining) == len(fields):
                raise not_found(fields, name)
            if not remaining:
                raise InvalidInputError(f"column {name!r} cannot be dropped: it is the only column")
            return remaining

        return drop

    def _rename(self, change: RenameColumn, column: str | None) -> Edit:
        if column in self.base.partition_keys:
            raise InvalidInputError(
                f"partition column {column!r} cannot be renamed: directories contain its name; "
                "copy the rows into a new table with the other name"
            )
        if column is not None:
            check_names([change.to])
        if not change.to.strip():
            raise InvalidInputError("a column name must not be blank")

        def change_name(fields: Fields, name: str) -> Fields:
            at = index_of(fields, name)
            if is_blob_type(fields[at].type):
                raise InvalidInputError(
                    f"column {name!r} cannot be renamed: its type is {fields[at].type}, and its files contain the name"
                )
            if change.to == name:
                raise AlreadyExistsError(f"column {name!r} has this name already: a rename needs another one")
            check_free((*fields[:at], *fields[at + 1 :]), change.to, change.to)
            return (*fields[:at], replace(fields[at], name=change.to), *fields[at + 1 :])

        return change_name

    def _follow(self, path: Sequence[str], to: str) -> None:
        """Replace the renamed column's name in keys and options."""
        if len(path) == 1:
            self.primary_keys = tuple(to if key == path[0] else key for key in self.primary_keys)
            self.options = rename(self.options, path[0], to)
        elif len(path) == 3 and path[1] == "element":
            self.options = rename_inner(self.options, path[0], path[2], to)

    def _retype(self, change: UpdateType, path: Sequence[str], column: str | None) -> Edit:
        target = parse_type(change.type) if isinstance(change.type, str) else change.type
        shown = ".".join(path)
        if column in self.base.partition_keys or column in self.primary_keys:
            raise InvalidInputError(f"the type of {shown!r} cannot change: it is a partition or primary key column")
        if column is not None and column in self.base.bucket_keys:
            raise InvalidInputError(f"the type of {shown!r} cannot change: its values determine the buckets of rows")
        explicit = not self.flag("disable-explicit-type-casting")

        def retype(old: DataField) -> DataField:
            source = old.type
            new = with_nullable(target, source.nullable) if change.keep_nullability else target
            self._check_nullability(source.nullable, new.nullable, shown)
            if _without_ids(source) == _without_ids(with_nullable(new, source.nullable)):
                return replace(old, type=with_nullable(source, new.nullable))
            limited = change.whole_texts and has_limit(new)
            if is_nested(new) or not can_cast(source, new, explicit=explicit and not limited):
                raise InvalidInputError(
                    f"the type of {shown!r} cannot change from {source} to {new}: existing values could be lost"
                    + ("; change its parts by their paths" if is_nested(new) else "")
                )
            return replace(old, type=new)

        return each(retype)

    def _nullable(self, nullable: bool, path: Sequence[str], column: str | None) -> Edit:
        if column in self.primary_keys:
            raise InvalidInputError(f"the nullability of {column!r} cannot change: it is a primary key column")

        def change(old: DataField) -> DataField:
            self._check_nullability(old.type.nullable, nullable, ".".join(path))
            return replace(old, type=with_nullable(old.type, nullable))

        return each(change)

    def _check_nullability(self, old: bool, new: bool, shown: str) -> None:
        if old and not new and self.flag("alter-column-null-to-not-null.disabled"):
            raise InvalidInputError(
                f"column {shown!r} cannot become NOT NULL, because rows may have NULL in it; option "
                "'alter-column-null-to-not-null.disabled' = 'false' allows it"
            )

    def _default(self, default: str | None, path: Sequence[str]) -> Edit:
        if len(path) > 1:
            raise InvalidInputError(f"nested field {'.'.join(path)!r} cannot have a default")
        return each(lambda column: replace(column, default=default))


def _without_ids(t: Any) -> Any:
    match t:
        case RowType():
            return replace(t, fields=tuple(replace(f, id=-1, type=_without_ids(f.type)) for f in t.fields))
        case ArrayType():
            return replace(t, element=_without_ids(t.element))
        case MapType():
            return replace(t, key=_without_ids(t.key), value=_without_ids(t.value))
    return t
