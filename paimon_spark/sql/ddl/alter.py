"""``ALTER TABLE``: the conversion of Spark's table changes to schema changes of the engine."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from paimon_core import (
    AddColumn,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SetOption,
    TableSchema,
    UpdateComment,
    UpdateDefault,
    UpdateNullability,
    UpdateTableComment,
    UpdateType,
)
from paimon_core.engine import FIRST, ColumnPosition, DropPrimaryKey, SchemaChange, is_format_table
from paimon_core.errors import UnsupportedError
from paimon_core.types.datatype import DataType, with_nullable
from paimon_spark.option_names import check_property
from paimon_spark.sql.ddl.defaults import default_text
from paimon_spark.sql.ddl.schema import declared_type, refuse_constraint

_log = logging.getLogger(__name__)
_PRIMARY_KEY = "primary-key"
_RESERVED = {
    "location": "the directory of a table is fixed",
    "provider": "the kind of a table is fixed",
}


def schema_changes(session: SparkSession, changes: Iterable[Any], schema: TableSchema) -> list[SchemaChange]:
    """Return the engine's schema changes for the changes of ``ALTER TABLE``.

    Spark sends ``REPLACE COLUMNS`` as deletes of all columns, followed by additions. A column whose name stays keeps
    its id, and so its values.

    Args:
        session: the session that issued the statement.
        changes: Spark's changes, in order.
        schema: the table's schema.

    Raises UnsupportedError for a change that Paimon tables do not support.
    """
    changes = list(changes)
    kinds = [change.getClass().getSimpleName() for change in changes]
    alter = _Alter(session, schema)
    dropped = [change.fieldNames()[0] for change, kind in zip(changes, kinds, strict=True) if kind == "DeleteColumn"]
    added = changes[len(schema.fields) :]
    everything = dropped == [field.name for field in schema.fields]
    if everything and added and set(kinds[len(schema.fields) :]) == {"AddColumn"}:
        return list(alter.replace_columns(added))
    return [converted for change, kind in zip(changes, kinds, strict=True) for converted in alter.change(kind, change)]


def without_nullable_keys(changes: Any, schema: TableSchema) -> list[Any]:
    """Return Spark's changes, except changes that make a primary key column nullable.

    A declarative pipeline gives a table the schema of its query in each run, and queries rarely know that a column has
    no NULL. The write still refuses NULL in the key.
    """
    return [
        change
        for change in changes
        if change.getClass().getSimpleName() != "UpdateColumnNullability"
        or not change.nullable()
        or change.fieldNames()[0] not in schema.primary_keys
    ]


@dataclass(frozen=True)
class _Alter:
    session: SparkSession
    schema: TableSchema

    def change(self, kind: str, change: Any) -> Sequence[SchemaChange]:
        """Return the engine's schema changes for one change of Spark."""
        if kind == "RemoveProperty" and change.property() == _PRIMARY_KEY and self.schema.primary_keys:
            return [DropPrimaryKey()]
        if kind == "RemoveProperty" and change.property() not in ("comment", *self.schema.options):
            _log.warning("UNSET TBLPROPERTIES changes nothing: the table has no property %r", change.property())
        if kind == "SetProperty" and not is_format_table(self.schema.options):
            check_property(change.property())
        if kind in _OF_TABLE:
            return [_OF_TABLE[kind](change)]
        path = tuple(change.fieldNames()) if "Column" in kind else ()
        if kind in _OF_COLUMN:
            return [_OF_COLUMN[kind](path, change)]
        if kind == "AddColumn":
            return [self._add(path, change, _position(change.position()))]
        if kind == "UpdateColumnDefaultValue":
            value = self._default(change.newDefaultValue(), self.schema.field(path[0]).type, path)
            return [UpdateDefault(path, value)]
        if kind == "ClusterBy":
            raise UnsupportedError("CLUSTER BY is not possible: set the property 'clustering.columns'")
        if kind == "AddConstraint":
            refuse_constraint(change.constraint().toDDL())
        raise UnsupportedError(f"ALTER TABLE with {kind} is not possible for a Paimon table")

    def replace_columns(self, added: Sequence[Any]) -> Iterator[SchemaChange]:
        """Yield the changes that replace the columns of the table with these columns, in this order."""
        names = {change.fieldNames()[0].lower(): change for change in added}
        retained = {field.name.lower(): field for field in self.schema.fields if field.name.lower() in names}
        last: str | None = None
        for key, change in names.items():
            name, kind = change.fieldNames()[0], declared_type(change.dataType(), change.fieldNames()[0])
            kind = with_nullable(kind, change.isNullable())
            if key in retained:
                old = retained[key]
                if old.name != name:
                    yield RenameColumn(old.name, name)
                if with_nullable(old.type, True) != with_nullable(kind, True):
                    yield UpdateType(name, kind)
                if old.type.nullable != kind.nullable and old.name not in self.schema.primary_keys:
                    yield UpdateNullability(name, kind.nullable)
                yield UpdateComment(name, change.comment())
                value = change.defaultValue()
                yield UpdateDefault(name, self._default(None if value is None else value.getSql(), kind, (name,)))
            else:
                yield self._add((name,), change, None)
            yield MoveColumn(name, FIRST if last is None else ColumnPosition("after", last))
            last = name
        for field in self.schema.fields:
            if field.name.lower() not in names:
                yield DropColumn(field.name)

    def _add(self, path: tuple[str, ...], change: Any, position: ColumnPosition | None) -> AddColumn:
        kind = with_nullable(declared_type(change.dataType(), ".".join(path)), change.isNullable())
        value = change.defaultValue()
        default = self._default(None if value is None else value.getSql(), kind, path)
        return AddColumn(path, kind, change.comment(), default, position)

    def _default(self, sql: str | None, kind: DataType, path: tuple[str, ...]) -> str | None:
        return default_text(self.session, sql, kind, ".".join(path))


def _set_property(change: Any) -> SchemaChange:
    key = change.property()
    if key in _RESERVED:
        raise UnsupportedError(f"property {key!r} cannot be set: {_RESERVED[key]}")
    return UpdateTableComment(change.value()) if key == "comment" else SetOption(key, change.value())


def _remove_property(change: Any) -> SchemaChange:
    return UpdateTableComment(None) if change.property() == "comment" else RemoveOption(change.property())


def _position(position: Any) -> ColumnPosition | None:
    if position is None:
        return None
    return FIRST if position.toString() == "FIRST" else ColumnPosition("after", position.column())


_OF_TABLE: Mapping[str, Any] = {"SetProperty": _set_property, "RemoveProperty": _remove_property}
_OF_COLUMN: Mapping[str, Any] = {
    "DeleteColumn": lambda path, _: DropColumn(path),
    "RenameColumn": lambda path, c: RenameColumn(path, c.newName()),
    "UpdateColumnType": lambda path, c: UpdateType(
        path, declared_type(c.newDataType(), ".".join(path)), whole_texts=True
    ),
    "UpdateColumnNullability": lambda path, c: UpdateNullability(path, c.nullable()),
    "UpdateColumnComment": lambda path, c: UpdateComment(path, c.newComment() or None),
    "UpdateColumnPosition": lambda path, c: MoveColumn(path, _position(c.position()) or FIRST),
}
