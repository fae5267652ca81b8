"""Variants that are shredded over several Parquet columns, put together again.

A shredded variant is a group of `metadata`, `value` and `typed_value`. The column `typed_value` has one type and holds
the values of that type; `value` holds all others, in the binary encoding. The fields of an object and the elements of
an array are such groups as well, without `metadata`. An object with more fields has these in `value`. If both columns
are null, a field is missing.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import CorruptedError
from paimon_core.variant.encoding import (
    OBJECT,
    VARIANT_NULL,
    FieldNames,
    Numbers,
    container_headers,
    elements_of,
    grouped,
    in_field_order,
    joined,
    placed,
    slices_of,
)
from paimon_core.variant.scalars import encoded_scalars

_MOST_CELLS = 1 << 21  # values of shredded fields in memory at a time


def is_shredded(kind: pa.DataType) -> bool:
    """Return True if variants of this stored type are shredded."""
    return bool(pa.types.is_struct(kind)) and kind.get_field_index("typed_value") != -1


def rebuilt(array: pa.StructArray, *, partial: bool = False) -> tuple[pa.Array, pa.Array]:
    """Return the binary values and the metadata of shredded variants. REQUIRES: none is null.

    ``partial``: True if columns of the file may be left out; a variant without a value is the variant null then.
    Memory: the values, and a few integers for each shredded field of some rows.

    Raises CorruptedError for variants without a value or with contradictory columns, UnsupportedError for a type that a
    variant does not have.
    """
    if array.type.get_field_index("metadata") < 0:
        raise CorruptedError("its shredded variants have no metadata")
    metadata = _binary(_child(array, "metadata"))
    if metadata.null_count:
        raise CorruptedError("a shredded variant has no metadata")
    rows = max(1, _MOST_CELLS // _leaf_count(array.type))
    parts = [_part(array.slice(i, rows), metadata.slice(i, rows), partial) for i in range(0, len(array), rows)]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.binary()), metadata


def _part(array: pa.StructArray, metadata: pa.Array, partial: bool) -> pa.Array:
    names = FieldNames(metadata)
    values = _encoded(array, names.rows, names)
    return pc.fill_null(values, VARIANT_NULL) if partial else _present(values)


def _present(values: pa.Array) -> pa.Array:
    if values.null_count:
        raise CorruptedError("a shredded variant has neither value nor typed_value")
    return values


def _encoded(group: pa.StructArray, metadata: Numbers, names: FieldNames) -> pa.Array:
    """Return the values of groups in the binary encoding; null: the value is missing.

    Args:
        group: the groups.
        metadata: the number of the metadata of each group.
        names: the names in all metadata.
    """
    value = _binary(_child(group, "value")) if group.type.get_field_index("value") >= 0 else None
    if not is_shredded(group.type):
        return pa.nulls(len(group), pa.binary()) if value is None else value
    typed = _child(group, "typed_value")
    if pa.types.is_struct(typed.type):
        result = _objects(typed, value, metadata, names)
    elif pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type):
        result = _arrays(typed, metadata, names)
    else:
        result = encoded_scalars(typed)
    return result if value is None or not result.null_count else pc.coalesce(result, value)


def _child(group: pa.StructArray, name: str) -> pa.Array:
    """Return a column of groups, null also where the group is null."""
    return pc.struct_field(group, [group.type.get_field_index(name)])


def _binary(array: pa.Array) -> pa.Array:
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        raise CorruptedError(f"a column of its shredded variants is stored as {array.type}, not as bytes")
    return array.cast(pa.binary())


def _objects(typed: pa.StructArray, value: pa.Array | None, metadata: Numbers, names: FieldNames) -> pa.Array:
    """Return objects in the binary encoding; null: the value is no object. ``value``: their other fields."""
    present = typed.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(present)
    if len(rows) < len(typed):
        selected = pa.array(rows)
        typed, metadata = typed.take(selected), metadata[rows]
        value = None if value is None else value.take(selected)
    n = len(rows)
    ordered = in_field_order([field.name for field in typed.type])
    if len({*ordered}) < len(ordered):
        raise CorruptedError("an object of a shredded variant has two fields of one name")
    fields = [_encoded(_child(typed, name), metadata, names) for name in ordered]
    sizes = np.zeros((n, len(fields)), np.int64)
    exists = np.zeros((n, len(fields)), np.bool_)
    for i, field in enumerate(fields):
        sizes[:, i] = pc.fill_null(pc.binary_length(field), 0).to_numpy(zero_copy_only=False)
        exists[:, i] = field.is_valid().to_numpy(zero_copy_only=False)
    ids = np.zeros((n, len(fields)), np.int64)
    for i, name in enumerate(ordered):
        ids[exists[:, i], i] = names.ids(name, metadata[exists[:, i]])
    offsets = np.cumsum(sizes, axis=1) - sizes
    counts, totals = exists.sum(axis=1), sizes.sum(axis=1)
    flat_ids, flat_offsets = ids[exists], offsets[exists]
    parts = list(fields)
    if value is not None and value.null_count < n:
        rest = np.flatnonzero(value.is_valid().to_numpy(zero_copy_only=False))
        codes = np.array([names.code(name) for name in ordered], np.int64)
        others = _other_fields(value.take(pa.array(rest)), metadata[rest], names, codes)
        owners = [np.repeat(np.arange(n), counts), rest[others.rows]]
        code_of_entry = np.broadcast_to(codes, exists.shape)[exists]
        ranks = names.ranks[np.concatenate([code_of_entry, others.codes])]
        order = np.lexsort((ranks, np.concatenate(owners)))
        flat_ids = np.concatenate([flat_ids, others.ids])[order]
        flat_offsets = np.concatenate([flat_offsets, others.offsets + totals[owners[1]]])[order]
        counts[rest] += others.counts
        totals[rest] += pc.binary_length(others.bodies).to_numpy(zero_copy_only=False)
        parts.append(placed(others.bodies, rest, n))
    headers = container_headers(counts, flat_ids, flat_offsets, totals)
    objects = joined(headers, parts)
    return objects if len(rows) == len(present) else placed(objects, rows, len(present))


class _OtherFields:
    """The fields of objects that are not shredded, object by object."""

    def __init__(self, values: pa.Array, metadata: Numbers, names: FieldNames) -> None:
        objects = slices_of(values)
        if (objects.basic_types() != OBJECT).any():
            raise CorruptedError("a shredded variant is an object in typed_value, but not in value")
        found = elements_of(objects, OBJECT)
        self.counts, self.ids, self.offsets = found.counts, found.ids, found.offsets
        self.rows = found.rows()
        self.codes = names.codes(metadata[self.rows], self.ids)
        self.bodies = found.bodies.to_arrow()


def _other_fields(values: pa.Array, metadata: Numbers, names: FieldNames, shredded: Numbers) -> _OtherFields:
    """Return the fields in the column `value` of objects. ``shredded``: codes of names that must not be there."""
    others = _OtherFields(values, metadata, names)
    if np.isin(others.codes, shredded).any():
        raise CorruptedError("a shredded variant has a field both in typed_value and in value")
    return others


def _arrays(typed: pa.Array, metadata: Numbers, names: FieldNames) -> pa.Array:
    """Return arrays in the binary encoding; null: the value is no array."""
    lengths = pc.fill_null(pc.list_value_length(typed), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    elements = typed.flatten()
    if not pa.types.is_struct(elements.type):
        raise CorruptedError(f"the elements of a shredded array are stored as {elements.type}, not as groups")
    encoded = _present(_encoded(elements, np.repeat(metadata, lengths), names))
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    bodies, offsets = grouped(encoded, ends)
    sizes = pc.binary_length(bodies).to_numpy(zero_copy_only=False).astype(np.int64)
    mask = typed.is_null().to_numpy(zero_copy_only=False) if typed.null_count else None
    return joined(container_headers(lengths, None, offsets, sizes), [bodies], mask)


def _leaf_count(kind: pa.DataType) -> int:
    return sum(_leaf_count(kind.field(i).type) for i in range(kind.num_fields)) or 1
