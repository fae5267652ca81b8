"""Convert a caller's rows to exactly the table's columns.

Columns match by exact name, else by the only name that differs in case. A missing column gets its default, or NULL
without one. A value that the column cannot store without loss is refused.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.format.blob_descriptor import begins_as_descriptor
from paimon_core.format.blob_view import begins_as_view
from paimon_core.options.file import BLOB_DESCRIPTOR_FIELD, BLOB_VIEW_FIELD
from paimon_core.schema.blob_columns import given_as_descriptors, stored_as_views
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.coerce import coerce_array
from paimon_core.types.columns import matching_positions, repeated_names
from paimon_core.types.datatype import DataField
from paimon_core.types.default import default_value

Positions = tuple[int | None, ...]
FillsDefaults: TypeAlias = bool | pa.BooleanArray
"""In which rows NULL becomes the default of its column: True: in all; False: in none; a mask: where it is true."""


def align(
    data: pa.RecordBatch,
    schema: TableSchema,
    positions: Positions,
    first_row: int = 0,
    fills_defaults: FillsDefaults = True,
) -> pa.RecordBatch:
    """Return ``data`` as a batch with exactly ``schema.arrow``.

    Args:
        data: the caller's rows.
        schema: the table's schema.
        positions: the result of :func:`column_positions` for the column names of ``data``.
        first_row: the number that error messages give the first row.
        fills_defaults: see `FillsDefaults`. A column that ``data`` lacks gets its default in any case.

    Raises InvalidInputError for a NULL in a NOT NULL column, and for a value that the column's type cannot hold. The
    error names column and row. Also for a value that is no descriptor or view of a blob, where the column stores these.
    """
    columns = []
    for field, position in zip(schema.fields, positions, strict=True):
        if position is None:
            columns.append(_missing(field, data.num_rows))
            continue
        array = coerce_array(data.column(position), field.type, field.name, first_row)
        columns.append(_filled(_not_null(array, field, first_row), field, fills_defaults))
    rows = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(schema.fields))
    check_references(schema, rows, first_row)
    return rows


def check_references(schema: TableSchema, rows: pa.RecordBatch, first_row: int = 0) -> None:
    """Raise InvalidInputError for a value that is no descriptor or view of a blob, where a column stores only these.

    Args:
        schema: the table's schema.
        rows: rows with columns of the table, in their Arrow types.
        first_row: the number that error messages give the first row.
    """
    kinds = (
        (given_as_descriptors(schema), begins_as_descriptor, "descriptor", BLOB_DESCRIPTOR_FIELD.key),
        (stored_as_views(schema), begins_as_view, "view", BLOB_VIEW_FIELD.key),
    )
    for names, fits, kind, option in kinds:
        for name in sorted(names & {*rows.schema.names}):
            values = rows.column(name)
            wrong = values.is_valid().to_numpy(zero_copy_only=False) & ~fits(values)
            if wrong.any():
                raise InvalidInputError(
                    f"cannot write to column {name!r} bytes that are no blob {kind} (row "
                    f"{first_row + int(np.argmax(wrong))} of the data): the option {option!r} names the column, so it "
                    f"stores where blobs are. Read {kind}s with 'blob-as-descriptor' = 'true', or write the bytes to a "
                    "column of 'blob-field'"
                )


def column_positions(names: Sequence[str], schema: TableSchema) -> Positions:
    """Return the position in ``names`` of each table column. `None`: the data lacks the column.

    Raises InvalidInputError for an unknown column, for two columns that match one table column, and for a missing
    primary key column.
    """
    if repeated := repeated_names(names):
        raise InvalidInputError(f"the data has column {repeated[0]!r} more than once: give every column one name")
    positions: list[int | None] = []
    field_names: dict[int, str] = {}
    for field, candidates in zip(schema.fields, matching_positions(schema.names, names), strict=True):
        if len(candidates) > 1:
            raise InvalidInputError(
                f"columns {[names[i] for i in candidates]} of the data differ only in case, and either could be the "
                f"table's {field.name!r}: rename or drop all but one"
            )
        if candidates and field_names.setdefault(candidates[0], field.name) != field.name:
            raise InvalidInputError(
                f"column {names[candidates[0]]!r} of the data could be the table's {field_names[candidates[0]]!r} or "
                f"its {field.name!r}: give it the exact name"
            )
        positions.append(candidates[0] if candidates else None)
    extra = [n for i, n in enumerate(names) if i not in field_names]
    if extra:
        raise InvalidInputError(
            f"the data has columns {extra} that the table lacks (it has {[f.name for f in schema.fields]}): "
            "drop them, or add them to the table first"
        )
    missing_keys = [k for k in schema.primary_keys if positions[[f.name for f in schema.fields].index(k)] is None]
    if missing_keys:
        raise InvalidInputError(f"the data lacks the primary key columns {missing_keys}; it has {list(names)}")
    return tuple(positions)


def _missing(field: DataField, rows: int) -> pa.Array:
    if field.default is not None:
        return pa.repeat(default_value(field), rows)
    if not field.type.nullable:
        raise InvalidInputError(f"column {field.name!r} is NOT NULL, has no default, and the data lacks it")
    return pa.nulls(rows, to_arrow(field.type))


def _not_null(array: pa.Array, field: DataField, first_row: int) -> pa.Array:
    if array.null_count and not field.type.nullable:
        row = first_row + pc.index(pc.is_null(array), True).as_py()
        raise InvalidInputError(
            f"cannot write NULL to column {field.name!r}, which is NOT NULL (row {row} of the data)"
        )
    return array


def _filled(array: pa.Array, field: DataField, rows: FillsDefaults) -> pa.Array:
    if field.default is None or not array.null_count or rows is False:
        return array
    filled = pc.is_null(array) if rows is True else pc.and_(pc.is_null(array), rows)
    return pc.if_else(filled, default_value(field), array)
