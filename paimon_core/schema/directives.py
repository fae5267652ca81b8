"""Directives at the start of column comments, such as ``__BLOB_FIELD; a picture``, with which SQL declares types."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.options.file import BLOB_DESCRIPTOR_FIELD, BLOB_FIELD, BLOB_VIEW_FIELD
from paimon_core.options.option import Option, Options
from paimon_core.types.datatype import DataField

_OPTIONS: Final = {
    "__BLOB_FIELD": BLOB_FIELD,
    "__BLOB_DESCRIPTOR_FIELD": BLOB_DESCRIPTOR_FIELD,
    "__BLOB_VIEW_FIELD": BLOB_VIEW_FIELD,
}
"""The option that names the columns of each directive."""
_UNSUPPORTED: Final = {
    "__VECTOR_FIELD": "there is no vector type; leave the directive out to store an array",
}
_STARTS: Final = ("__BLOB", "__VECTOR")


def with_directives(fields: Sequence[DataField], options: dict[str, str]) -> tuple[DataField, ...]:
    """Return the columns of a new table without directives; ``blob-field`` or another option names their columns.

    Args:
        fields: the columns.
        options: the options of the table, which are extended in place.

    Raises UnsupportedError for a directive of a feature that this engine lacks, InvalidInputError for an unknown one.
    """
    columns = []
    for field in fields:
        option, comment = _parsed(field.name, field.description)
        if option is not None:
            names = dict.fromkeys((*Options(options).value(option), field.name))
            for old in option.old_keys:
                options.pop(old, None)
            options[option.key] = ",".join(names)
            field = replace(field, description=comment)
        columns.append(field)
    return tuple(columns)


def refuse_directive(column: str, comment: str | None) -> None:
    """Raise UnsupportedError if the new comment of a column of an existing table begins with a directive."""
    if _parsed(column, comment)[0] is not None:
        directive = (comment or "").strip().partition(";")[0]
        raise UnsupportedError(
            f"column {column!r}: {directive!r} in a comment is not supported for existing tables: declare the columns "
            "of blobs when you create the table"
        )


def _parsed(column: str, comment: str | None) -> tuple[Option[tuple[str, ...]] | None, str | None]:
    """Return the option of the directive with which a comment begins, and the comment without it.

    `None`: the comment begins with no directive.
    """
    text = (comment or "").strip()
    if not text.startswith(_STARTS):
        return None, comment
    directive, _, rest = text.partition(";")
    if directive in _UNSUPPORTED:
        raise UnsupportedError(
            f"column {column!r}: the comment directive {directive!r} is not supported: {_UNSUPPORTED[directive]}"
        )
    if directive not in _OPTIONS:
        raise InvalidInputError(
            f"column {column!r}: unknown directive {directive!r} at the start of its comment; supported are "
            f"{', '.join(map(repr, _OPTIONS))}"
        )
    return _OPTIONS[directive], rest.strip() or None
