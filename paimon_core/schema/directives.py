"""Directives at the start of column comments, such as ``__BLOB_FIELD; a picture``, with which SQL declares types."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.options.file import BLOB_FIELD
from paimon_core.options.per_field import split_list
from paimon_core.types.datatype import DataField

_BLOB: Final = "__BLOB_FIELD"
_UNSUPPORTED: Final = {
    "__BLOB_DESCRIPTOR_FIELD": "blobs are stored in the table, not as descriptors",
    "__BLOB_VIEW_FIELD": "blobs are stored in the table, not as views of other tables",
    "__VECTOR_FIELD": "there is no vector type; leave the directive out to store an array",
}
_STARTS: Final = ("__BLOB", "__VECTOR")


def with_directives(fields: Sequence[DataField], options: dict[str, str]) -> tuple[DataField, ...]:
    """Return the columns of a new table without directives; the option ``blob-field`` names their columns.

    Args:
        fields: the columns.
        options: the options of the table; ``blob-field`` is extended in place.

    Raises UnsupportedError for a directive of a feature that this engine lacks, InvalidInputError for an unknown one.
    """
    blobs = split_list(options.get(BLOB_FIELD.key, ""))
    columns = []
    for field in fields:
        marked, comment = _parsed(field.name, field.description)
        if marked:
            blobs.append(field.name)
            field = replace(field, description=comment)
        columns.append(field)
    if blobs:
        options[BLOB_FIELD.key] = ",".join(dict.fromkeys(blobs))
    return tuple(columns)


def refuse_directive(column: str, comment: str | None) -> None:
    """Raise UnsupportedError if the new comment of a column of an existing table begins with a directive."""
    if _parsed(column, comment)[0]:
        raise UnsupportedError(
            f"column {column!r}: {_BLOB!r} in a comment is not supported for existing tables: declare the columns of "
            "blobs when you create the table"
        )


def _parsed(column: str, comment: str | None) -> tuple[bool, str | None]:
    """Return True if a comment begins with the directive of blobs, and the comment without it."""
    text = (comment or "").strip()
    if not text.startswith(_STARTS):
        return False, comment
    directive, _, rest = text.partition(";")
    if directive in _UNSUPPORTED:
        raise UnsupportedError(
            f"column {column!r}: the comment directive {directive!r} is not supported: {_UNSUPPORTED[directive]}"
        )
    if directive != _BLOB:
        raise InvalidInputError(
            f"column {column!r}: unknown directive {directive!r} at the start of its comment; supported is {_BLOB!r}"
        )
    return True, rest.strip() or None
