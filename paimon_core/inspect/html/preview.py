"""The first rows of a table as texts."""

from dataclasses import dataclass

import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.inspect.html.tree import column_texts
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import AtomicType, is_blob_type
from paimon_core.types.human_text import short

MOST_ROWS = 100
MOST_COLUMNS = 20
"""The most columns of a preview, so that a read of a wide table stays small."""
_LENGTH = 200  # characters of a value
_NUMBERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"})


@dataclass(frozen=True, slots=True)
class Preview:
    """The first rows of a table. A value is a text, or `None` for NULL; ``right``: True for a column of numbers."""

    names: tuple[str, ...]
    right: tuple[bool, ...]
    rows: tuple[tuple[str | None, ...], ...]


def check_rows(rows: int) -> None:
    """Raise InvalidInputError for a number of rows that a preview cannot have."""
    if not 0 <= rows <= MOST_ROWS:
        raise InvalidInputError(f"a page shows from 0 to {MOST_ROWS} rows, not {rows}")


def preview_columns(schema: TableSchema) -> list[str]:
    """Return the names of the columns of a preview. Blobs are left out, because one value can be very large."""
    names = [field.name for field in schema.fields if not is_blob_type(field.type)]
    return names[:MOST_COLUMNS]


def preview_of(rows: pa.Table, schema: TableSchema) -> Preview:
    """Return rows as texts; ``schema`` has the types of the columns."""
    types = [schema.field(name).type for name in rows.column_names]
    columns: list[list[str | None]] = []
    for column, kind in zip(rows.columns, types, strict=True):
        values = column.combine_chunks()
        texts = column_texts(values, kind)
        columns.append(
            [
                short(text, _LENGTH) if valid else None
                for text, valid in zip(texts, values.is_valid().to_pylist(), strict=True)
            ]
        )
    return Preview(
        tuple(rows.column_names),
        tuple(isinstance(kind, AtomicType) and kind.root in _NUMBERS for kind in types),
        tuple(zip(*columns, strict=True)),
    )
