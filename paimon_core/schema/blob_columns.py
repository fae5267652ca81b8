"""The storage of the values of blob columns: in blob files, as descriptors, or as views of other tables."""

from typing import Final

from paimon_core.errors import UnsupportedError
from paimon_core.options import ALL_OPTIONS
from paimon_core.options.file import (
    BLOB_AS_DESCRIPTOR,
    BLOB_DESCRIPTOR_FIELD,
    BLOB_VIEW_FIELD,
    DATA_FILE_EXTERNAL_PATHS,
)
from paimon_core.options.option import Option
from paimon_core.options.per_field import split_list
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import is_blob_type

_ALLOWED: Final = {
    "merge-engine": ("deduplicate", "partial-update", "first-row"),
    "changelog-producer": ("none",),
    "pk-clustering-override": ("false",),
}
"""The values of options with which a table can have managed blobs."""


def in_blob_files(schema: TableSchema) -> frozenset[str]:
    """Return the columns whose values are in blob files next to the data files (format 11.3)."""
    return frozenset() if schema.primary_keys else _plain(schema)


def in_managed_files(schema: TableSchema) -> frozenset[str]:
    """Return the columns whose data files hold descriptors of ``.managed.blob`` files (format 11.4)."""
    return _plain(schema) if schema.primary_keys else frozenset()


def given_as_descriptors(schema: TableSchema) -> frozenset[str]:
    """Return the columns that store the descriptors that writers give."""
    return _blobs(schema) & _named(schema, BLOB_DESCRIPTOR_FIELD)


def stored_as_views(schema: TableSchema) -> frozenset[str]:
    """Return the columns that store views: the table, the column and the row of a blob."""
    return _blobs(schema) & _named(schema, BLOB_VIEW_FIELD)


def read_as_views(schema: TableSchema) -> frozenset[str]:
    """Return the columns whose views reads replace by blobs, so stored values do not show which of them are NULL."""
    return frozenset() if schema.options.value(BLOB_AS_DESCRIPTOR) else stored_as_views(schema)


def stored_as_descriptors(schema: TableSchema) -> frozenset[str]:
    """Return the columns whose data files hold descriptors of blobs, alone or in arrays and maps."""
    return given_as_descriptors(schema) | in_managed_files(schema)


def read_by_reference(schema: TableSchema) -> frozenset[str]:
    """Return the columns whose blobs are in none of the files of a split, so its size does not count them."""
    return stored_as_descriptors(schema) | stored_as_views(schema)


def managed_blob_fault(schema: TableSchema) -> str | None:
    """Return why a table cannot have its columns of managed blobs, as text for a message; `None`: it can."""
    managed, options = in_managed_files(schema), schema.options
    if not managed:
        return None
    for key, allowed in _ALLOWED.items():
        value = str(options.value(ALL_OPTIONS[key])).lower()
        if value not in allowed:
            return f"option {key!r} is {value!r}, but must be {' or '.join(map(repr, allowed))}"
    if options.value(DATA_FILE_EXTERNAL_PATHS):
        return f"option {DATA_FILE_EXTERNAL_PATHS.key!r} must not be set"
    if options.value(ALL_OPTIONS["ignore-delete"]) or options.value(ALL_OPTIONS["merge-engine"]) != "partial-update":
        return None
    in_groups = {n for key, names in options.items() if key.endswith(".sequence-group") for n in split_list(names)}
    for name in sorted(managed & in_groups):  # a column in no group gets no rows that delete
        function = options.get(f"fields.{name}.aggregate-function", options.get("fields.default-aggregate-function"))
        ignored = options.get(f"fields.{name}.ignore-retract", "").strip().lower() == "true"
        if function not in (None, "last_value") and not ignored:
            return (
                f"column {name!r} has the aggregate function {function!r}, but rows that delete have no blobs: set "
                f"'fields.{name}.ignore-retract' = 'true'"
            )
    return None


def check_movable(schema: TableSchema | None, where: str) -> None:
    """Raise UnsupportedError if the rows of a table name managed files by their absolute paths.

    Args:
        schema: the newest version; `None`: the table has no version.
        where: the table, for the message.
    """
    managed = in_managed_files(schema) if schema is not None else frozenset()
    if managed:
        raise UnsupportedError(
            f"the files of {where} cannot get another directory: rows name the files of the blobs in column "
            f"{min(managed)!r} by their paths. Create a new table, and insert the rows"
        )


def _plain(schema: TableSchema) -> frozenset[str]:
    return _blobs(schema) - _named(schema, BLOB_DESCRIPTOR_FIELD) - _named(schema, BLOB_VIEW_FIELD)


def _named(schema: TableSchema, option: Option[tuple[str, ...]]) -> frozenset[str]:
    names: tuple[str, ...] = schema.options.value(option)
    return frozenset(names)


def _blobs(schema: TableSchema) -> frozenset[str]:
    return frozenset(f.name for f in schema.fields if is_blob_type(f.type))
