"""Variants, shredded over several columns.

Values that the types of a layout hold exactly become typed columns; others stay in the binary encoding. Spark stores an
integer also in a decimal column, and a decimal in an integer column. This engine does not, because the value would be
read as the other type.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import CorruptedError
from paimon_core.types.datatype import ArrayType, AtomicType, DataType, RowType
from paimon_core.variant.encoding import (
    ARRAY,
    OBJECT,
    FieldNames,
    Flags,
    Numbers,
    Slices,
    container_headers,
    elements_of,
    grouped,
    joined,
    placed,
    slices_of,
)
from paimon_core.variant.layout import is_variant
from paimon_core.variant.scalars import decoded_scalars


def shredded(variants: pa.StructArray, layout: DataType) -> pa.StructArray:
    """Return variants as groups of `metadata`, `value` and `typed_value`; null stays null.

    Args:
        variants: structs of `value` and `metadata`.
        layout: the type to shred by.

    Raises CorruptedError for bytes that are no variant.
    """
    present = variants.is_valid().to_numpy(zero_copy_only=False)
    rows = variants if present.all() else variants.filter(pa.array(present))
    metadata = pc.struct_field(rows, "metadata")
    names = FieldNames(metadata)
    group = _shred(slices_of(pc.struct_field(rows, "value")), names.rows, layout, names)
    columns = {"metadata": metadata, **group.columns()}
    structs = pa.StructArray.from_arrays(list(columns.values()), list(columns))
    return structs if present.all() else placed(structs, np.flatnonzero(present), len(present))


@dataclass(frozen=True, slots=True)
class _Group:
    """The columns of groups: `value`, and `typed_value` if the layout has one."""

    value: pa.Array
    typed: pa.Array | None = None

    def columns(self) -> dict[str, pa.Array]:
        """Return the columns by name."""
        return {"value": self.value} if self.typed is None else {"value": self.value, "typed_value": self.typed}

    def struct(self) -> pa.StructArray:
        """Return the groups."""
        columns = self.columns()
        return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def _shred(values: Slices, metadata: Numbers, layout: DataType, names: FieldNames) -> _Group:
    """Shred values. ``metadata``: the number of the metadata of each value."""
    match layout:
        case RowType():
            return _objects(values, metadata, layout, names)
        case ArrayType(element):
            return _arrays(values, metadata, element, names)
    if is_variant(layout) or not isinstance(layout, AtomicType):
        return _Group(values.to_arrow())
    typed = decoded_scalars(values, layout)
    return _Group(_rest(values, typed.is_null().to_numpy(zero_copy_only=False)), typed)


def _rest(values: Slices, missing: Flags) -> pa.Array:
    """Return the bytes of the values that are not in a typed column, and null for the others."""
    return values.to_arrow(~missing)


def _objects(values: Slices, metadata: Numbers, layout: RowType, names: FieldNames) -> _Group:
    is_object = values.basic_types() == OBJECT
    rows = np.flatnonzero(is_object)
    elements = elements_of(values.take(rows), OBJECT)
    owners = elements.rows()
    codes = names.codes(metadata[rows][owners], elements.ids)
    parts = elements.values()
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(len(names.names) + 1))
    others: Flags = np.ones(len(codes), np.bool_)
    fields = []
    for field in layout.fields:
        code = names.code(field.name)
        picked = order[edges[code] : edges[code + 1]] if code >= 0 else order[:0]
        owner = owners[picked]
        if (np.diff(owner) == 0).any():
            raise CorruptedError(f"a variant has an object with two fields {field.name!r}")
        others[picked] = False
        group = _shred(parts.take(picked), metadata[rows][owner], field.type, names)
        whole = (
            group
            if len(picked) == len(rows)
            else _Group(*(None if c is None else placed(c, owner, len(rows)) for c in (group.value, group.typed)))
        )
        fields.append(whole.struct())
    typed = pa.StructArray.from_arrays(fields, [field.name for field in layout.fields])
    rest = _other_fields(parts.take(others), elements.ids[others], np.bincount(owners[others], minlength=len(rows)))
    if len(rows) == len(values):
        return _Group(rest, typed)
    rest = pc.coalesce(placed(rest, rows, len(values)), _rest(values, ~is_object))
    return _Group(rest, placed(typed, rows, len(values)))


def _other_fields(parts: Slices, ids: Numbers, counts: Numbers) -> pa.Array:
    """Return objects of the fields that are not shredded; null: an object without such fields.

    Args:
        parts: the values of the fields, object by object, in the order of their names.
        ids: the ids of their names.
        counts: the number of fields of each object.
    """
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    bodies, offsets = grouped(parts.to_arrow(), ends)
    sizes = pc.binary_length(bodies).to_numpy(zero_copy_only=False).astype(np.int64)
    return joined(container_headers(counts, ids, offsets, sizes), [bodies], counts == 0)


def _arrays(values: Slices, metadata: Numbers, element: DataType, names: FieldNames) -> _Group:
    is_array = values.basic_types() == ARRAY
    rows = np.flatnonzero(is_array)
    elements = elements_of(values.take(rows), ARRAY)
    groups = _shred(elements.values(), metadata[rows][elements.rows()], element, names).struct()
    counts = np.zeros(len(values), np.int64)
    counts[rows] = elements.counts
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    mask = None if is_array.all() else pa.array(~is_array)
    typed = pa.ListArray.from_arrays(pa.array(offsets), groups, mask=mask)
    return _Group(_rest(values, ~is_array), typed)
