"""Conversion of the columns of a file to the canonical Arrow types of the engine.

Writers use different physical types for one column type (format 7.4-7.6): narrow integers in wide ones, strings without
annotation, decimals in fixed bytes, times as integers, other names of list elements. A conversion without loss is done
here; any other stored type is refused. A column of the canonical type costs nothing.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import CorruptedError, UnsupportedError
from paimon_core.format.int96 import BEYOND_NANOSECONDS, NANOS, WIDTH, decode_int96
from paimon_core.types import datatype
from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.datatype import AtomicType, DataField, DataType, MapType, PartialVariant, RowType
from paimon_core.types.map_entries import map_entries
from paimon_core.variant.rebuild import is_shredded, rebuilt

_INT96 = pa.binary(WIDTH)
_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
_VARIANT = to_arrow(datatype.VARIANT)
_VIEWS = tuple(t for t in (getattr(pa.types, n, None) for n in ("is_string_view", "is_binary_view")) if t)


def conform_batch(batch: pa.RecordBatch, fields: Sequence[DataField], path: str) -> pa.RecordBatch:
    """Return the columns of ``fields``, found by name, in canonical types; a missing column is all null.

    Args:
        batch: the rows with the stored types.
        fields: the columns of the result.
        path: the file's name in messages.

    Raises CorruptedError for a stored type that no writer uses for the column's type, UnsupportedError for values that
    the canonical type cannot hold.
    """
    if not fields:
        return batch.select([])  # which keeps the number of rows
    schema = arrow_schema(fields)
    if batch.schema.equals(schema):
        return batch
    columns = []
    types = {field.name: field.type for field in fields}
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        try:
            columns.append(_of_type(batch.column(index), field.type, types[field.name]))
        except (CorruptedError, UnsupportedError) as cause:
            raise type(cause)(f"column {field.name!r} of {path or 'the file'}: {cause}") from cause
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as cause:
            stored_type = batch.schema.field(index).type
            raise CorruptedError(
                f"column {field.name!r} of {path or 'the file'} is stored as {stored_type} and cannot be read as "
                f"{field.type}: {cause}"
            ) from cause
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _of_type(array: pa.Array, target: pa.DataType, kind: DataType) -> pa.Array:
    """Return a column in type ``target``, which is of the column type ``kind``. Raises as `conform`."""
    stored = array.storage if isinstance(array, pa.ExtensionArray) else array
    if isinstance(kind, PartialVariant) and pa.types.is_struct(stored.type) and not _is_plain_variant(stored):
        return _variants(stored, partial=True)
    return conform(array, target, variants=_has_variants(kind))


def _is_plain_variant(array: pa.StructArray) -> bool:
    """Return True if each variant that is not null has a value in the column `value`."""
    at = array.type.get_field_index("value")
    return not is_shredded(array.type) and at >= 0 and pc.struct_field(array, [at]).null_count == array.null_count


def counted(rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches without columns, of ``rows`` rows in all and at most ``batch_rows`` each."""
    for start in range(0, rows, batch_rows):
        nulls = pa.nulls(min(batch_rows, rows - start))
        yield pa.RecordBatch.from_arrays([nulls], names=[""]).select([])


def _has_variants(t: DataType) -> bool:
    """Return True if a column type is or contains VARIANT."""
    match t:
        case AtomicType():
            return t.root == "VARIANT"
        case RowType(fields):
            return any(_has_variants(field.type) for field in fields)
        case MapType(key, value):
            return _has_variants(key) or _has_variants(value)
        case _:
            return _has_variants(t.element)


def conform(array: pa.Array, target: pa.DataType, *, variants: bool = False) -> pa.Array:
    """Return the array in type ``target``.

    Args:
        array: the stored values.
        target: a canonical type.
        variants: True if structs of the fields `value` and `metadata` are variants, which may be shredded.

    Raises ArrowInvalid or TypeError if the conversion would change or lose values, CorruptedError for invalid shredded
    variants, UnsupportedError for a timestamp that nanoseconds cannot hold.
    """
    if array.type == target:
        return array
    if isinstance(array, pa.ExtensionArray):
        return conform(array.storage, target, variants=variants)
    if pa.types.is_dictionary(array.type):
        return conform(array.dictionary_decode(), target)
    if pa.types.is_nested(target):
        return _nested(array, target, variants)
    if _is_text(target) and not _is_text(array.type) and not pa.types.is_fixed_size_binary(array.type):
        raise TypeError("it is not text or binary")
    if pa.types.is_temporal(target):
        return _temporal(array, target)
    if pa.types.is_temporal(array.type) or pa.types.is_boolean(array.type) or pa.types.is_boolean(target):
        raise TypeError("the kinds differ")
    if pa.types.is_floating(array.type) != pa.types.is_floating(target):
        raise TypeError("the kinds differ")
    return array.cast(target)


def _is_text(t: pa.DataType) -> bool:
    return any(test(t) for test in (*_TEXT, *_VIEWS))


def _temporal(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return dates, times or timestamps in type ``target``; raises as `conform` does."""
    stored_type = array.type
    if pa.types.is_integer(stored_type):  # numbers of the column's own unit
        width = pa.int32() if target.bit_width == 32 else pa.int64()
        return array.cast(width).view(target)
    if pa.types.is_timestamp(target):
        if stored_type == _INT96:
            return decode_int96(array, target.unit).view(target)
        if not pa.types.is_timestamp(stored_type):
            raise TypeError("it is not a timestamp")
        return _timestamp(array, target)
    if pa.types.is_time(target) and pa.types.is_time(stored_type):
        return array.cast(target)
    raise TypeError("the kinds differ")


def _timestamp(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return timestamps in another unit; a coarser unit rounds down, values must fit a finer one.

    Raises UnsupportedError if a value does not fit. Timestamps with and without time zone have the same values.
    """
    found, requested = NANOS[array.type.unit], NANOS[target.unit]
    if found == requested:
        return array.view(target)
    if found < requested:
        return _floor(array, requested // found).view(target)
    try:
        return array.view(pa.timestamp(array.type.unit)).cast(pa.timestamp(target.unit)).view(target)
    except pa.ArrowInvalid as cause:
        raise UnsupportedError(BEYOND_NANOSECONDS) from cause


def _floor(array: pa.Array, factor: int) -> pa.Array:
    """Return the numbers of a timestamp array divided by ``factor``, rounded down."""
    numbers = pc.fill_null(array.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(np.floor_divide(numbers, factor), pa.int64(), mask=mask)


def _nested(array: pa.Array, target: pa.DataType, variants: bool) -> pa.Array:
    """Return structs, lists or maps in type ``target``; raises as `conform` does."""
    stored_type = array.type
    if pa.types.is_struct(target):
        return _struct(array, target, variants)
    if pa.types.is_fixed_size_list(target):
        inner = pa.list_(target.value_field)
        if pa.types.is_fixed_size_list(stored_type):
            array = array.cast(pa.list_(stored_type.value_field))
        return _list(array, inner, variants).cast(target)
    if pa.types.is_large_list(stored_type) or pa.types.is_fixed_size_list(stored_type):
        array = array.cast(pa.list_(stored_type.value_field))
    return _map(array, target, variants) if pa.types.is_map(target) else _list(array, target, variants)


def _struct(array: pa.Array, target: pa.DataType, variants: bool) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise TypeError("it is not a row")
    if variants and target == _VARIANT and is_shredded(array.type):
        return _variants(array)
    children = []
    for field in target:
        index = array.type.get_field_index(field.name)
        stored = None if index < 0 else pc.struct_field(array, [index]) if variants else array.field(index)
        children.append(
            pa.nulls(len(array), field.type) if stored is None else conform(stored, field.type, variants=variants)
        )
    mask = array.is_null() if array.null_count else None
    if not children:
        return pa.array([{}] * len(array), target, mask=mask)
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _variants(array: pa.StructArray, *, partial: bool = False) -> pa.Array:
    """Return shredded variants in the type of variants; ``partial``: see `rebuilt`."""
    if not array.null_count:
        return pa.StructArray.from_arrays(rebuilt(array, partial=partial), fields=list(_VARIANT))
    value, metadata = rebuilt(array.filter(array.is_valid()), partial=partial)
    present = array.is_valid().to_numpy(zero_copy_only=False)
    places = np.where(present, np.cumsum(present), 0)  # place 0 is an empty value, for rows that are null
    parts = [
        pa.concat_arrays([pa.array([b""], pa.binary()), part]).take(pa.array(places)) for part in (value, metadata)
    ]
    return pa.StructArray.from_arrays(parts, fields=list(_VARIANT), mask=pa.array(~present))


def _list(array: pa.Array, target: pa.DataType, variants: bool) -> pa.Array:
    if not pa.types.is_list(array.type):
        raise TypeError("it is not a list")
    return with_children(array, target, conform(array.values, target.value_type, variants=variants))


def _map(array: pa.Array, target: pa.DataType, variants: bool) -> pa.Array:
    stored_type = array.type
    if pa.types.is_map(stored_type):
        keys, items = array.keys, array.items
    elif (
        pa.types.is_list(stored_type)
        and pa.types.is_struct(stored_type.value_type)
        and stored_type.value_type.num_fields == 2
    ):
        keys, items = array.values.field(0), array.values.field(1)
    else:
        raise TypeError("it is not a map")
    entries = map_entries(
        conform(keys, target.key_type, variants=variants), conform(items, target.item_type, variants=variants), target
    )
    return with_children(array, target, entries)


def with_children(array: pa.Array, target: pa.DataType, children: pa.Array) -> pa.Array:
    """Return the lists or maps in type ``target`` with other elements; offsets and nulls are shared, not copied."""
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, children=[children]
    )
