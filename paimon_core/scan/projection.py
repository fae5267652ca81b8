"""The columns that a read returns, chosen by name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.errors import InvalidInputError
from paimon_core.lazy import deferred
from paimon_core.predicate.expr import FieldPath, VariantPath, column_of
from paimon_core.predicate.rewrite import find_path
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.columns import find_column
from paimon_core.types.datatype import NO_ID, DataField, DataType, PartialVariant, RowType
from paimon_core.types.system_fields import BUCKET, FILE_PATH, ROW_INDEX, partition_field

if TYPE_CHECKING:
    from paimon_core.variant.paths import variant_get, variant_steps, variant_value_type
else:
    variant_get = deferred("paimon_core.variant.paths", "variant_get")
    variant_steps = deferred("paimon_core.variant.paths", "variant_steps")
    variant_value_type = deferred("paimon_core.variant.paths", "variant_value_type")


@dataclass(frozen=True, slots=True)
class StructField(DataField):
    """A field of a struct as a column of a read; its name is the path that the user wrote.

    Args:
        column: the column of the table, with the struct.
        path: the names of the fields, from the outside to the inside.
    """

    column: DataField | None = None
    path: tuple[str, ...] = ()

    def of(self, rows: pa.RecordBatch) -> Any:
        """Return the values of the field; the field of a null is null."""
        assert self.column is not None  # always given
        column = rows.column(self.column.name)
        return pc.struct_field(column, list(self.path)) if self.path else column


@dataclass(frozen=True, slots=True)
class VariantField(StructField):
    """The values at a path of variants as a column of a read; its name is the call that the user wrote.

    Args:
        values: the path in the variants, and the type of the values.
    """

    values: VariantPath | None = None

    def of(self, rows: pa.RecordBatch) -> Any:
        """Return the values; the values in a null are null. Raises as `variant_get`."""
        values = self.values
        assert values is not None  # always given
        return variant_get(StructField.of(self, rows), values.path, values.type, strict=values.strict)


def columns_to_read(fields: Sequence[DataField], *, whole: bool) -> tuple[DataField, ...]:
    """Return the columns of the table that a read of these fields needs, each once.

    ``whole``: True to read all fields of a struct and all paths of a variant; False: read only the wanted ones.
    """
    needed: dict[str, DataField] = {}
    paths: dict[str, list[tuple[str, ...]]] = {}
    in_variants: dict[str, list[tuple[str | int, ...]]] = {}
    for field in fields:
        if not isinstance(field, StructField) or field.column is None:
            needed[field.name] = field
            continue
        needed.setdefault(field.column.name, field.column)
        paths.setdefault(field.column.name, []).append(field.path)
        if isinstance(field, VariantField) and field.values is not None and not field.path:
            in_variants.setdefault(field.column.name, []).append(variant_steps(field.values.path))
    plain = {field.name for field in fields if not isinstance(field, StructField)}
    return tuple(
        field
        if whole or name in plain or name not in paths
        else replace(field, type=_partial(field.type, paths[name], in_variants.get(name, ())))
        for name, field in needed.items()
    )


def _partial(
    kind: DataType, paths: Sequence[tuple[str, ...]], in_variants: Sequence[tuple[str | int, ...]]
) -> DataType:
    if in_variants:
        if () in in_variants:
            return kind
        return PartialVariant("VARIANT", kind.nullable, paths=tuple(dict.fromkeys(in_variants)))
    return _with_paths(kind, paths)


def _with_paths(kind: DataType, paths: Sequence[tuple[str, ...]]) -> DataType:
    """Return a struct type with only the fields at these paths; an empty path stands for the whole type."""
    if not isinstance(kind, RowType) or () in paths:
        return kind
    fields = []
    for field in kind.fields:
        inner = [path[1:] for path in paths if path[0] == field.name]
        if inner:
            fields.append(replace(field, type=_with_paths(field.type, inner)))
    return replace(kind, fields=tuple(fields))


def metadata_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """Return the columns that a batch read computes if they are requested by name; `SELECT *` does not include them.

    They are the path of a row's data file, the row's position in it, its partition and its bucket. A table column with
    the same name, in any letter case, hides the metadata column.
    """
    names = {field.name.lower() for field in schema.fields}
    computed = (FILE_PATH, partition_field(schema.partition_fields), BUCKET, ROW_INDEX)
    return tuple(field for field in computed if field.name not in names)


def readable_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """Return all columns that a batch read can return: the table's, the tracking columns and the metadata columns."""
    return (*schema.fields, *tracking_fields(schema), *metadata_fields(schema))


def project(
    schema: TableSchema, columns: Sequence[str] | None, *, metadata: bool = False, nested: bool = False
) -> tuple[DataField, ...]:
    """Return the fields of `columns` in that order (`None`: all fields); letter case is ignored if one column matches.

    `columns` can also name `_ROW_ID` and `_SEQUENCE_NUMBER` of a table with row tracking, and with `metadata` the
    columns of `metadata_fields`. With `nested`, a name that no column has can be the path of a struct's field, `a.b`,
    or a call of `variant_get` or `try_variant_get`.
    Raises InvalidInputError for a column that the table lacks, or that `columns` names twice.
    """
    if columns is None:
        return schema.fields
    names = None if isinstance(columns, str) or not isinstance(columns, Iterable) else list(columns)
    if names is None or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(f"columns must be a list of names, not {columns!r}")
    stored = (*schema.fields, *tracking_fields(schema))
    computed = {field.name: field for field in metadata_fields(schema)} if metadata else {}
    find = field_at if nested else find_column
    chosen = tuple(computed.get(name.lower()) or find(stored, name, "the table") for name in names)
    if len({field.name for field in chosen}) < len(chosen):
        raise InvalidInputError(f"{names} names a column twice: name each column once")
    return chosen


def variant_field(parts: Sequence[str], path: str, kind: str) -> DataField:
    """Return the field of the values at a path of variants, as a test of a predicate names it.

    Args:
        parts: the names of the column, and of the fields of structs down to the one with the variants.
        path: the path in the variants, such as ``$.a``.
        kind: the type of the values, as text; values of another type are NULL.

    Raises InvalidInputError for a type that no value in a variant has.
    """
    return DataField(NO_ID, VariantPath(parts, path, kind, strict=False), variant_value_type(kind))


def field_at(fields: Sequence[DataField], name: str, where: str = "the table") -> DataField:
    """Return the column with a name, or the field of a struct or of variants at this path. Raises as `find_path`."""
    found, kind = find_path(fields, name, where)
    column = next(field for field in fields if field.name == column_of(found))
    if not isinstance(found, FieldPath):
        return column
    if isinstance(found, VariantPath):
        return VariantField(column.id, str(name), kind, column=column, path=found.parts[1:], values=found)
    return StructField(column.id, str(name), kind, column=column, path=found.parts[1:])
