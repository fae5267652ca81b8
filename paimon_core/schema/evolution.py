"""Schema evolution: batches of a file written with one schema, as batches of another schema (format 3.6).

Columns with equal ids are the same column, even under other names. So a column that was renamed, moved, or dropped and
added again has the right values, also inside rows, arrays and maps. A column that the file does not have is null. A
column of another type is cast. Column defaults are applied by writes only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from paimon_core.errors import UnsupportedError
from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import (
    VARIANT,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    PartialVariant,
    RowType,
    with_nullable,
    without_finer_digits,
)

ArrowArray: TypeAlias = Any
"""A ``pa.Array`` of any type. It is ``Any``, because the methods depend on a type known only at run time."""

Conversion: TypeAlias = Callable[[ArrowArray], ArrowArray]


@dataclass(frozen=True, slots=True)
class Evolution:
    """A conversion of batches of ``file_columns`` to batches of the read fields."""

    file_columns: tuple[DataField, ...]
    """The columns to read from the file, with the file's own names and types."""
    columns: tuple[tuple[int, Conversion | None], ...]
    """The index of each read field in ``file_columns`` (-1: not in the file) and its conversion (`None`: unchanged)."""
    schema: pa.Schema
    identity: bool

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with exactly the read fields, or the same object if nothing changes.

        Raises InvalidInputError for a value that cannot be cast, such as a text that is not a number.
        """
        if self.identity:
            return batch
        arrays = []
        for (position, convert), field in zip(self.columns, self.schema, strict=True):
            if position < 0:
                arrays.append(pa.nulls(batch.num_rows, field.type))
            else:
                array = batch.column(position)
                arrays.append(array if convert is None else convert(array))
        if not arrays:
            return batch.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def evolve(file_fields: Sequence[DataField], read_fields: Sequence[DataField]) -> Evolution:
    """Return the conversion from a file of ``file_fields`` to ``read_fields``. The last 256 results are cached.

    Raises UnsupportedError for a type that cannot be cast to the other type.
    """
    return _evolve(tuple(file_fields), tuple(read_fields))


@lru_cache(maxsize=256)
def _evolve(file_fields: tuple[DataField, ...], read_fields: tuple[DataField, ...]) -> Evolution:
    stored = {field.id: field for field in file_fields}
    file_columns: list[DataField] = []
    columns: list[tuple[int, Conversion | None]] = []
    for field in read_fields:
        source = stored.get(field.id)
        if source is None:
            # a column that the file does not have is null, even if the read schema says NOT NULL
            columns.append((-1, None))
            continue
        source = _no_finer(source, field)
        columns.append((len(file_columns), _conversion(source.type, field.type, field.name)))
        file_columns.append(source)
    identity = len(file_columns) == len(read_fields) and all(
        convert is None and file.name == read.name and file.type.nullable == read.type.nullable
        for file, read, (_, convert) in zip(file_columns, read_fields, columns, strict=True)
    )
    return Evolution(tuple(file_columns), tuple(columns), arrow_schema(read_fields), identity)


def narrowed(file_fields: Sequence[DataField], read_fields: Sequence[DataField]) -> tuple[DataField, ...]:
    """Return the file's columns, without the fields of structs and the paths of variants that no read field has."""
    types = {field.id: field.type for field in read_fields}
    return tuple(replace(f, type=_narrowed(f.type, types[f.id])) if f.id in types else f for f in file_fields)


def _narrowed(source: DataType, target: DataType) -> DataType:
    if isinstance(target, PartialVariant) and with_nullable(source, True) == VARIANT:
        return with_nullable(target, source.nullable)
    if not isinstance(source, RowType) or not isinstance(target, RowType):
        return source
    common = {field.id for field in target.fields}
    fields = narrowed([f for f in source.fields if f.id in common], target.fields)
    return replace(source, fields=fields) if fields else source  # the nulls of a struct are stored with its fields


def _no_finer(source: DataField, target: DataField) -> DataField:
    """Return the file's column, with nanoseconds as microseconds if ``target`` has no finer digits.

    Decoders round down as a cast does, and 64-bit microseconds can represent every timestamp.
    """
    coarse = without_finer_digits(source.type)
    if not isinstance(coarse, AtomicType) or not isinstance(target.type, AtomicType) or coarse == source.type:
        return source
    is_enough = target.type.root == coarse.root and without_finer_digits(target.type) == target.type
    return replace(source, type=coarse) if is_enough else source


def _conversion(source: DataType, target: DataType, name: str) -> Conversion | None:
    """Return the conversion between two types, regardless of nullability. `None`: the arrays are equal."""
    wanted = VARIANT if isinstance(target, PartialVariant) and not isinstance(source, PartialVariant) else target
    if with_nullable(source, True) == with_nullable(wanted, True):
        return None
    match source, target:
        case RowType(), RowType():
            return _row_conversion(source, target, name)
        case ArrayType(), ArrayType():
            return _array_conversion(_or_same(_conversion(source.element, target.element, name)), target)
        case MapType(), MapType():
            keys = _or_same(_conversion(source.key, target.key, name))
            return _map_conversion(keys, _or_same(_conversion(source.value, target.value, name)), target)
        case MultisetType(), MultisetType():
            return _map_conversion(_or_same(_conversion(source.element, target.element, name)), _same, target)
        case _, AtomicType():
            return lambda array: cast_array(array, source, target)
    raise UnsupportedError(f"column {name}: data stored as {source} cannot be read as {target}")


def _same(array: ArrowArray) -> ArrowArray:
    return array


def _or_same(conversion: Conversion | None) -> Conversion:
    return conversion or _same


def _row_conversion(source: RowType, target: RowType, name: str) -> Conversion:
    positions = {field.id: i for i, field in enumerate(source.fields)}
    plan: list[tuple[int, Conversion]] = []
    for field in target.fields:
        at = positions.get(field.id, -1)
        change = _conversion(source.fields[at].type, field.type, f"{name}.{field.name}") if at >= 0 else None
        plan.append((at, _or_same(change)))
    arrow_type = to_arrow(target)
    fields = [arrow_type.field(i) for i in range(arrow_type.num_fields)]

    def convert(array: ArrowArray) -> ArrowArray:
        children = array.flatten()  # with the nulls of the row itself, so that no hidden value is cast
        arrays = [
            pa.nulls(len(array), field.type) if at < 0 else change(children[at])
            for (at, change), field in zip(plan, fields, strict=True)
        ]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)

    return convert


def _array_conversion(element: Conversion, target: ArrayType) -> Conversion:
    arrow_type = to_arrow(target)

    def convert(array: ArrowArray) -> ArrowArray:
        array = _without_hidden_values(array)
        offsets, start, length = _offsets(array)
        return pa.ListArray.from_arrays(offsets, element(array.values.slice(start, length)), type=arrow_type)

    return convert


def _map_conversion(key: Conversion, value: Conversion, target: MapType | MultisetType) -> Conversion:
    arrow_type = to_arrow(target)

    def convert(array: ArrowArray) -> ArrowArray:
        array = _without_hidden_values(array)
        offsets, start, length = _offsets(array)
        keys, items = array.keys.slice(start, length), array.items.slice(start, length)
        return pa.MapArray.from_arrays(offsets, key(keys), value(items), type=arrow_type)

    return convert


def _without_hidden_values(array: ArrowArray) -> ArrowArray:
    """Return the lists without values under null lists, which a null offset would add to the previous list."""
    if not array.null_count:
        return array
    lengths = np.diff(array.offsets.to_numpy())
    if not lengths[array.is_null().to_numpy(zero_copy_only=False)].any():
        return array
    return array.take(pa.array(np.arange(len(array))))


def _offsets(array: ArrowArray) -> tuple[ArrowArray, int, int]:
    """Return offsets from 0 on, null for null lists; the index of the first value; and the number of values."""
    offsets = array.offsets.to_numpy()
    start, end = int(offsets[0]), int(offsets[-1])
    mask = np.append(array.is_null().to_numpy(zero_copy_only=False), False) if array.null_count else None
    return pa.array(offsets - start, pa.int32(), mask=mask), start, end - start
