"""One version of a table's schema, in the file ``schema/schema-<id>`` (format 3)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from paimon_core.errors import CorruptedError, NotFoundError, UnsupportedError, listed_names
from paimon_core.options.bucket import BUCKET, BUCKET_KEY
from paimon_core.options.file import FILE_FORMAT
from paimon_core.options.option import Options
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.display import table_html, table_text
from paimon_core.types.human_text import count
from paimon_core.types.json_text import optional_text, parse_object
from paimon_core.types.parse import field_from_json, field_to_json
from paimon_core.types.system_fields import LARGEST_COLUMN_ID

CURRENT_VERSION = 3
NO_OPTIONS = Options()
_COLUMN_NAMES = ("id", "name", "type", "role", "default", "comment")
_KNOWN_KEYS = {
    "version", "id", "fields", "highestFieldId", "partitionKeys", "primaryKeys", "options", "comment", "timeMillis",
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class TableSchema:
    """One version of a table's schema. Columns of two versions are the same if their ids are equal.

    The class has no slots, because its cached properties need an instance dictionary.
    """

    id: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Options = NO_OPTIONS
    comment: str | None = None
    time_millis: int = 0
    version: int = CURRENT_VERSION
    extra: tuple[tuple[str, str], ...] = ()
    """Keys of the file that this engine does not know, with their JSON texts. They are written back unchanged."""

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        """Return the id and the number of columns; ``str`` also returns the columns, and `to_json` everything."""
        return f"TableSchema({self.id}, {count(len(self.fields), 'column')})"

    def __str__(self) -> str:
        return f"schema {self.id}\n{table_text(_COLUMN_NAMES, self._column_rows())}"

    def _repr_html_(self) -> str:
        """Return the columns as a table for a notebook."""
        return table_html(_COLUMN_NAMES, self._column_rows(), f"schema {self.id}")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the columns in IPython."""
        printer.text(str(self))

    def _column_rows(self) -> list[tuple[object, ...]]:
        roles = (("primary key", self.primary_keys), ("partition", self.partition_keys))
        return [
            (f.id, f.name, str(f.type), ", ".join(r for r, names in roles if f.name in names), f.default, f.description)
            for f in self.fields
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Return the stored values for pickling, without cached properties."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @staticmethod
    def from_json(data: bytes, path: str) -> "TableSchema":
        """Parse ``data``, the content of a schema file. ``path``: the path of the file, for errors.

        Versions before 3 had other defaults. They become explicit options, so that a rewrite keeps them.
        Raises CorruptedError for bad content, UnsupportedError for a newer version.
        """
        try:
            schema = _from_dict(parse_object(data))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise CorruptedError(f"schema file {path} cannot be read: {type(error).__name__}: {error}") from error
        if schema.version > CURRENT_VERSION:
            raise UnsupportedError(
                f"schema file {path} has version {schema.version}, but this engine reads versions up to "
                f"{CURRENT_VERSION}: upgrade it"
            )
        return schema

    def to_json(self) -> bytes:
        """Return the bytes of the schema file, without absent values: Java reads null as the text ``null``.

        Raises CorruptedError for an id that no reader would accept.
        """
        try:
            _check_ids(self.id, self.highest_field_id)
        except ValueError as error:
            raise CorruptedError(f"schema {self.id} cannot be written: it has {error}") from error
        document: dict[str, Any] = {
            "version": self.version,
            "id": self.id,
            "fields": [field_to_json(field) for field in self.fields],
            "highestFieldId": self.highest_field_id,
            "partitionKeys": list(self.partition_keys),
            "primaryKeys": list(self.primary_keys),
            "options": dict(self.options),
        }
        if self.comment is not None:
            document["comment"] = self.comment
        document["timeMillis"] = self.time_millis
        document.update((key, json.loads(text)) for key, text in self.extra)
        return json.dumps(document, indent=2, ensure_ascii=False).encode()

    def field(self, name: str) -> DataField:
        """Return the column with exactly this name. Raises NotFoundError with the existing names."""
        try:
            return self._by_name[name]
        except KeyError:
            raise NotFoundError(f"no column {name!r}; the table has {listed_names(name, self._by_name)}") from None

    def has_field(self, name: str) -> bool:
        """Return True if a column has exactly this name."""
        return name in self._by_name

    def copy(self, options: Mapping[str, str | None]) -> "TableSchema":
        """Return the schema with dynamic options; a value `None` removes an option."""
        return replace(self, options=self.options.merged(options)) if options else self

    @cached_property
    def _hash(self) -> int:
        return hash((self.id, self.fields, self.options, self.primary_keys, self.partition_keys))

    @cached_property
    def _by_name(self) -> dict[str, DataField]:
        return {field.name: field for field in self.fields}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(field.name for field in self.fields)

    @cached_property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """The primary key without partition columns. It identifies a row in a bucket and orders the rows of files."""
        return tuple(key for key in self.primary_keys if key not in self.partition_keys)

    @cached_property
    def bucket_keys(self) -> tuple[str, ...]:
        """The columns whose hash selects the bucket: ``bucket-key``, else the trimmed primary key. May be empty."""
        return self.options.value(BUCKET_KEY) or self.trimmed_primary_keys

    @property
    def bucket(self) -> int:
        """Option ``bucket``: n > 0 fixed, -1 dynamic or unaware, -2 postpone."""
        return self.options.value(BUCKET)

    @property
    def is_cross_partition(self) -> bool:
        """True if a key can move between partitions: the primary key lacks a partition column."""
        return bool(self.primary_keys) and not set(self.partition_keys) <= set(self.primary_keys)

    @cached_property
    def key_fields(self) -> tuple[DataField, ...]:
        """The columns of the trimmed primary key, under their own names."""
        return tuple(self.field(key) for key in self.trimmed_primary_keys)

    @cached_property
    def partition_fields(self) -> tuple[DataField, ...]:
        """The partition columns, in partition order."""
        return tuple(self.field(key) for key in self.partition_keys)

    @cached_property
    def bucket_fields(self) -> tuple[DataField, ...]:
        """The bucket key columns, in hash order."""
        return tuple(self.field(key) for key in self.bucket_keys)

    @cached_property
    def arrow(self) -> pa.Schema:
        """All columns as an Arrow schema."""
        schema: pa.Schema = arrow_schema(self.fields)
        return schema

    @cached_property
    def partition_arrow(self) -> pa.Schema:
        """The layout of a serialised partition."""
        schema: pa.Schema = arrow_schema(self.partition_fields)
        return schema

    @cached_property
    def key_arrow(self) -> pa.Schema:
        """The layout of a serialised key in file metadata."""
        schema: pa.Schema = arrow_schema(self.key_fields)
        return schema


def _from_dict(document: dict[str, Any]) -> TableSchema:
    version = int(document.get("version", 1))
    fields = tuple(field_from_json(item) for item in document["fields"])
    options = {str(key): _text(value) for key, value in (document.get("options") or {}).items()}
    if version <= 1:
        options.setdefault(BUCKET.key, "1")
    if version <= 2:
        options.setdefault(FILE_FORMAT.key, "orc")
    schema_id, highest_field_id = int(document["id"]), int(document["highestFieldId"])
    _check_ids(schema_id, max([highest_field_id, *(field.id for field in fields)]))
    _check_distinct("name", [field.name for field in fields])
    _check_distinct("id", [field.id for field in fields])
    return TableSchema(
        id=schema_id,
        fields=fields,
        highest_field_id=highest_field_id,
        partition_keys=_names(document, "partitionKeys"),
        primary_keys=_names(document, "primaryKeys"),
        options=Options(options),
        comment=optional_text(document.get("comment"), "comment"),
        time_millis=int(document.get("timeMillis") or 0),
        version=version,
        extra=tuple((key, json.dumps(value)) for key, value in document.items() if key not in _KNOWN_KEYS),
    )


def _check_ids(schema_id: int, highest_field_id: int) -> None:
    """Raise ValueError for a schema id or a column id that is outside of the format's range."""
    if not 0 <= schema_id < 2**63:
        raise ValueError(f"the id {schema_id}: ids of schemas are from 0 to {2**63 - 1}")
    if highest_field_id > LARGEST_COLUMN_ID:
        raise ValueError(f"the column id {highest_field_id} is above the largest id, {LARGEST_COLUMN_ID}")


def _check_distinct(what: str, values: Sequence[object]) -> None:
    """Raise ValueError if two columns have the same name or id."""
    if len(set(values)) < len(values):
        repeated = next(value for value in values if values.count(value) > 1)
        raise ValueError(f"two columns with the {what} {repeated!r}")


def _names(document: dict[str, Any], key: str) -> tuple[str, ...]:
    """Return a list of column names. Raises ValueError for another value."""
    names = document.get(key) or ()
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{key!r} must be a list of names, found {names!r}")
    return tuple(names)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
