"""The JSON of the REST interface: schemas, schema changes, changes of views, tables and partitions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from paimon_core.catalog.identifier import Identifier
from paimon_core.catalog.rest.client import RestServerError
from paimon_core.catalog.view import View
from paimon_core.errors import UnsupportedError
from paimon_core.fileio.paths import join
from paimon_core.format_table.registry import PartitionCounts
from paimon_core.options.option import Options
from paimon_core.schema.change import (
    AddColumn,
    DropColumn,
    DropPrimaryKey,
    MoveColumn,
    Position,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateComment,
    UpdateDefault,
    UpdateNullability,
    UpdateTableComment,
    UpdateType,
)
from paimon_core.schema.support import QUERY_AUTH
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.arrow import assign_ids
from paimon_core.types.datatype import DataField, DataType
from paimon_core.types.json_text import optional_text
from paimon_core.types.parse import field_from_json, field_to_json, parse_type, type_to_json

_PATH: Final = "path"
_NO_BUCKETS: Final = -1
_FORMAT_TABLE: Final = "format-table"
_PAIMON_TYPES: Final = ("table", "materialized-table")


@dataclass(frozen=True, slots=True)
class RestTable:
    """A table as the server describes it.

    ``table_id``: the id that a commit must name. ``schema_id``: the id of the newest schema.
    """

    table_id: str
    path: str = field(repr=False)
    is_external: bool
    schema_id: int
    options: Mapping[str, str] = field(repr=False)
    columns: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)
    """The JSON object of the schema."""

    @staticmethod
    def from_json(answer: Mapping[str, Any], name: Identifier) -> "RestTable":
        """Parse the description of a table. Raises RestServerError if a part is missing."""
        try:
            schema = answer["schema"]
            options = {str(key): str(value) for key, value in (schema.get("options") or {}).items()}
            path = answer.get("path") or options.get(_PATH)
            if not path:
                raise KeyError(_PATH)
            return RestTable(
                table_id=str(answer["id"]),
                path=join(str(path)),
                is_external=bool(answer.get("isExternal")),
                schema_id=int(answer["schemaId"]),
                options=options,
                columns=schema,
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise RestServerError(
                f"the catalog's server describes table {str(name)!r} in a way that this engine does not know: {error!r}"
            ) from None

    @property
    def hides(self) -> bool:
        """True if the server may hide rows and values of the table from its user."""
        return self.options.get(QUERY_AUTH, "false").strip().lower() == "true"

    def format_schema(self, name: Identifier) -> TableSchema | None:
        """Return the schema of a format table, which only the server has; `None`: a table of another kind.

        Raises RestServerError for a schema that cannot be parsed.
        """
        if self.options.get("type", "table").strip().lower() != _FORMAT_TABLE:
            return None
        try:
            fields = tuple(map(field_from_json, self.columns["fields"]))
            partition_keys = tuple(map(str, self.columns.get("partitionKeys") or ()))
            comment = optional_text(self.columns.get("comment"), "comment")
        except (KeyError, TypeError, ValueError) as error:
            raise RestServerError(
                f"the catalog's server describes the columns of {str(name)!r} wrongly: {error!r}"
            ) from None
        options = Options({key: value for key, value in self.options.items() if key != _PATH})
        highest = max((column.id for column in fields), default=0)
        return TableSchema(self.schema_id, fields, highest, partition_keys, (), options, comment)

    def check_kind(self, name: Identifier) -> None:
        """Raise UnsupportedError for a table without the files of Paimon, such as an Iceberg table."""
        kind = self.options.get("type", "table").lower()
        if kind not in _PAIMON_TYPES:
            raise UnsupportedError(
                f"table {str(name)!r} has the type {kind!r}, which this engine does not read: read its files at "
                f"{self.path} with another engine"
            )


@dataclass(frozen=True, slots=True)
class RestPartition:
    """A partition as the server counts it. ``spec``: the values as texts, by column."""

    spec: Mapping[str, str]
    record_count: int
    file_size_in_bytes: int
    file_count: int
    last_file_creation_time: int
    done: bool

    @staticmethod
    def from_json(answer: Any, name: Identifier) -> "RestPartition":
        """Parse the description of a partition of a table. Raises RestServerError for another answer."""
        try:
            return RestPartition(
                spec=dict(answer["spec"]),
                record_count=int(answer.get("recordCount") or 0),
                file_size_in_bytes=int(answer.get("fileSizeInBytes") or 0),
                file_count=int(answer.get("fileCount") or 0),
                last_file_creation_time=int(answer.get("lastFileCreationTime") or 0),
                done=bool(answer.get("done")),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise RestServerError(
                f"the catalog's server describes a partition of {str(name)!r} wrongly: {error!r}"
            ) from None


def partition_spec(answer: Any, name: Identifier) -> dict[str, str]:
    """Return the texts of the values of a partition, by column. Raises RestServerError for an answer without them."""
    spec = answer.get("spec") if isinstance(answer, Mapping) else None
    if not isinstance(spec, Mapping) or not all(isinstance(text, str) for text in spec.values()):
        raise RestServerError(f"the catalog's server describes a partition of {str(name)!r} wrongly: {answer!r}")
    return dict(spec)


def counts_to_json(counts: PartitionCounts) -> dict[str, Any]:
    """Return the JSON object of what a partition holds. It has no buckets."""
    return {
        "spec": dict(counts.spec),
        "recordCount": counts.rows,
        "fileSizeInBytes": counts.size,
        "fileCount": counts.files,
        "lastFileCreationTime": counts.last_file_millis,
        "totalBuckets": _NO_BUCKETS,
    }


def identifier_to_json(name: Identifier) -> dict[str, str]:
    """Return the JSON object of the name of a table, a view or a function."""
    return {"database": name.database, "object": object_name(name)}


def object_name(name: Identifier) -> str:
    """Return the name of a table without its database: a branch is a part of it."""
    return str(Identifier("d", name.table, name.branch))[2:]


def schema_to_json(schema: TableSchema, path: str | None = None) -> dict[str, Any]:
    """Return the JSON object of the schema of a new table. ``path``: the directory of an external table."""
    options = dict(schema.options.items())
    return {
        "fields": [field_to_json(column) for column in schema.fields],
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": list(schema.primary_keys),
        "options": options if path is None else {**options, _PATH: path},
        "comment": schema.comment,
    }


def changes_to_json(changes: Sequence[SchemaChange]) -> list[dict[str, Any]]:
    """Return the JSON objects of schema changes; the addition of a column with a default is two of them."""
    return [record for change in changes for record in _change(change)]


def view_changes_to_json(old: View, new: View) -> list[dict[str, Any]]:
    """Return the JSON objects of the changes from one version of a view to another, which has the same query."""
    changes: list[dict[str, Any]] = []
    for key, value in new.options.items():
        if old.options.get(key) != value:
            changes.append({"action": "setOption", "key": key, "value": value})
    changes += [{"action": "removeOption", "key": key} for key in old.options if key not in new.options]
    for dialect, query in new.dialects.items():
        action = "updateDialect" if dialect in old.dialects else "addDialect"
        if old.dialects.get(dialect) != query:
            changes.append({"action": action, "dialect": dialect, "query": query})
    changes += [{"action": "dropDialect", "dialect": name} for name in old.dialects if name not in new.dialects]
    if old.comment != new.comment:
        changes.append({"action": "updateComment", "comment": new.comment})
    return changes


def _change(change: SchemaChange) -> list[dict[str, Any]]:
    match change:
        case SetOption():
            return [{"action": "setOption", "key": change.key, "value": change.value}]
        case RemoveOption():
            return [{"action": "removeOption", "key": change.key}]
        case UpdateTableComment():
            return [{"action": "updateComment", "comment": change.comment}]
        case DropPrimaryKey():
            return [{"action": "dropPrimaryKey"}]
        case MoveColumn():
            if len(_path(change.name)) > 1:
                raise UnsupportedError(
                    f"a REST catalog cannot move the nested field {'.'.join(_path(change.name))!r}: its interface "
                    "moves whole columns only"
                )
            return [{"action": "updateColumnPosition", "move": _move(change.name, change.position)}]
        case _:
            return _column_change(change, _path(change.name))


def _column_change(change: SchemaChange, names: list[str]) -> list[dict[str, Any]]:
    def record(action: str, **values: object) -> dict[str, Any]:
        return {"action": action, "fieldNames": names, **values}

    match change:
        case AddColumn():
            move = None if change.position is None else _move(change.name, change.position)
            added = record("addColumn", dataType=_type(change.type), comment=change.comment, move=move)
            default = record("updateColumnDefaultValue", newDefaultValue=change.default)
            return [added] if change.default is None else [added, default]
        case DropColumn():
            return [record("dropColumn")]
        case RenameColumn():
            return [record("renameColumn", newName=change.to)]
        case UpdateType():
            kind, keep = _type(change.type), change.keep_nullability
            return [record("updateColumnType", newDataType=kind, keepNullability=keep)]
        case UpdateNullability():
            return [record("updateColumnNullability", newNullability=change.nullable)]
        case UpdateComment():
            return [record("updateColumnComment", newComment=change.comment)]
        case UpdateDefault():
            return [record("updateColumnDefaultValue", newDefaultValue=change.default)]
    raise UnsupportedError(f"a REST catalog cannot apply the schema change {type(change).__name__}")


def _path(name: str | Sequence[str]) -> list[str]:
    return [name] if isinstance(name, str) else list(name)


def _type(kind: DataType | str) -> Any:
    parsed = parse_type(kind) if isinstance(kind, str) else kind
    (column,), _ = assign_ids([DataField(0, "column", parsed)], 0)  # nested fields need ids; the server gives others
    return type_to_json(column.type)


def _move(name: str | Sequence[str], position: Position) -> dict[str, Any]:
    return {"fieldName": _path(name)[-1], "referenceFieldName": position.reference, "type": position.where.upper()}
