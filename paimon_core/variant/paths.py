"""Paths of variants: values read and set in whole columns, without decoding the rest of the variants."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import CorruptedError, InvalidInputError
from paimon_core.types import datatype
from paimon_core.types.arrow import from_arrow, to_arrow
from paimon_core.types.datatype import AtomicType
from paimon_core.types.parse import parse_type
from paimon_core.variant.encoding import (
    ARRAY,
    NULL,
    OBJECT,
    PRIMITIVE,
    VARIANT_NULL,
    Elements,
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
    value_sizes,
    with_name,
)
from paimon_core.variant.scalars import decoded_numbers, decoded_scalars, encoded_scalars

Column: TypeAlias = Any
"""A column of variants: an Arrow array or chunked array of structs of `value` and `metadata`."""
_Steps: TypeAlias = tuple[str | int, ...]

_VARIANT = to_arrow(datatype.VARIANT)
_STEP = re.compile(r"""\.([^.\[\]'"]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_ESCAPED = re.compile(r"\\(.)")
_NUMBERS = ("FLOAT", "DOUBLE")
_SCALARS = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "VARCHAR", "VARBINARY", "DATE"),
    *("TIMESTAMP", "TIMESTAMP_LTZ"),
)
_MICROSECONDS = 6


def variant_get(column: Column, path: str, type: str | pa.DataType | None = None, *, strict: bool = True) -> Any:
    """Return the values at a path of variants, as an array or a chunked array like the column.

    A value is NULL if the variant is NULL or has nothing at the path, and with a type also for the variant null. Only
    numbers are converted: a decimal holds integers and decimals without loss, and FLOAT and DOUBLE hold the nearest
    number of each.

    Args:
        column: the variants, as `Table.to_arrow` returns them: structs of `value` and `metadata`.
        path: a path such as ``$.user.name``, ``$['odd name']`` or ``$.items[0]``.
        type: a scalar type, as text such as ``BIGINT`` or as an Arrow type; `None`: return variants.
        strict: True to raise for a value of another type; False: NULL instead.

    Raises InvalidInputError for a column of another type, an invalid path, an unsuitable type, and in strict mode for a
    value of another type; CorruptedError for bytes that are no variant.
    """
    steps, target = variant_steps(path), None if type is None else variant_value_type(type)
    return _by_chunk(column, lambda chunk, first: _get(chunk, steps, target, path, strict, first))


def variant_set(column: Column, values: Mapping[str, Any]) -> Any:
    """Return variants with other values at paths, as an array or a chunked array like the column; NULL stays NULL.

    An existing value is replaced, and a missing last field is added to its object. NULL becomes the variant null. The
    paths are set in their order. Memory: a copy of the variants for each path.

    Args:
        column: the variants, as in `variant_get`.
        values: for each path, a Python value or an Arrow scalar for all rows, or an array with a value for each row.

    Raises InvalidInputError for a path whose parent is missing or no object, for a missing element of an array, for
    another number of values than rows, and as `variant_get`.
    """
    result = column
    for path, given in values.items():
        steps = variant_steps(path)
        encoded = _encoded(given, len(column), path)
        result = _by_chunk(result, lambda chunk, first, s=steps, e=encoded, p=path: _set_chunk(chunk, s, e, p, first))
    return result


def _by_chunk(column: Column, function: Any) -> Any:
    """Apply a function of an array and the number of its first row to each chunk of a column."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if not isinstance(column, pa.Array | pa.ChunkedArray) or not _is_variants(column.type):
        kind = column.type if hasattr(column, "type") else type(column).__name__
        raise InvalidInputError(f"the column is of type {kind}: variants are structs of binary `value` and `metadata`")
    firsts = np.cumsum([0, *map(len, chunks)]).tolist()
    found = [function(chunk, first) for chunk, first in zip(chunks, firsts, strict=False)]
    if not isinstance(column, pa.ChunkedArray):
        return found[0]
    return pa.chunked_array(found or [function(pa.array([], _VARIANT), 0)])


def _is_variants(kind: pa.DataType) -> bool:
    names = [field.name for field in kind] if pa.types.is_struct(kind) else []
    return names == ["value", "metadata"] and all(pa.types.is_binary(field.type) for field in kind)


def variant_steps(path: str) -> _Steps:
    """Return the names of fields and the indexes of elements in a path. Raises InvalidInputError."""
    steps: list[str | int] = []
    at = 1
    if not isinstance(path, str) or not path.startswith("$"):
        raise InvalidInputError(f"a path of a variant begins with $, such as $.a or $[0], but it is {path!r}")
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise InvalidInputError(
                f"the path {path!r} of a variant is wrong from character {at + 1} on: {path[at:]!r}"
            )
        quoted = match[3] if match[3] is not None else match[4]
        name = match[1] if quoted is None else _ESCAPED.sub(r"\1", quoted)
        steps.append(int(match[2]) if match[2] is not None else str(name))
        at = match.end()
    return tuple(steps)


def variant_value_type(kind: str | pa.DataType) -> AtomicType:
    """Return the type of the values that `variant_get` returns for a type. Raises InvalidInputError."""
    t = parse_type(kind) if isinstance(kind, str) else from_arrow(kind)
    is_scalar = isinstance(t, AtomicType) and t.root in _SCALARS
    if is_scalar and isinstance(t, AtomicType):
        unbounded = datatype.STRING if t.root == "VARCHAR" else datatype.BYTES
        bounded = t.root in ("VARCHAR", "VARBINARY") and t.length != unbounded.length
        coarse = t.root.startswith("TIMESTAMP") and t.precision != _MICROSECONDS
        if not bounded and not coarse:
            return t
    raise InvalidInputError(
        f"variant_get cannot return {t}: use BOOLEAN, a number, STRING, BYTES, DATE, TIMESTAMP(6) or TIMESTAMP_LTZ(6), "
        f"or no type for variants"
    )


def _present(variants: pa.StructArray) -> tuple[pa.StructArray, Numbers]:
    """Return the variants that are not NULL, and their rows."""
    rows = np.flatnonzero(variants.is_valid().to_numpy(zero_copy_only=False))
    return (variants if len(rows) == len(variants) else variants.take(pa.array(rows))), rows


def _found(elements: Elements, codes: Numbers | None, wanted: int) -> Numbers:
    """Return the elements of a name, given by its code, or of an index. Raises CorruptedError for a repeated name."""
    owners = elements.rows()
    if codes is None:
        numbers = np.arange(len(owners)) - (np.cumsum(elements.counts) - elements.counts)[owners]
        return np.flatnonzero(numbers == wanted)
    chosen = np.flatnonzero(codes == wanted) if wanted >= 0 else np.zeros(0, np.int64)
    if (np.diff(owners[chosen]) == 0).any():
        raise CorruptedError("a variant has an object with two fields of one name")
    return chosen


def _get(
    variants: pa.StructArray, steps: _Steps, target: AtomicType | None, path: str, strict: bool, first: int
) -> pa.Array:
    """Return the values at a path. ``first``: the number of the first row, for errors."""
    present, rows = _present(variants)
    metadata = pc.struct_field(present, "metadata")
    names = FieldNames(metadata)
    values, owners = slices_of(pc.struct_field(present, "value")), np.arange(len(rows))
    for step in steps:
        kind = OBJECT if isinstance(step, str) else ARRAY
        inside = np.flatnonzero(values.basic_types() == kind)
        values, owners = values.take(inside), owners[inside]
        elements = elements_of(values, kind)
        of = elements.rows()
        codes = names.codes(names.rows[owners][of], elements.ids) if isinstance(step, str) else None
        chosen = _found(elements, codes, names.code(step) if isinstance(step, str) else step)
        starts = elements.bodies.starts[of[chosen]] + elements.offsets[chosen]
        values = Slices(values.data, starts, value_sizes(values.data, starts))
        owners = owners[of[chosen]]
    if target is None:
        parts = pa.StructArray.from_arrays([values.to_arrow(), metadata.take(pa.array(owners))], fields=list(_VARIANT))
        return placed(parts, rows[owners], len(variants))
    is_null = (values.basic_types() == PRIMITIVE) & (values.type_details() == NULL)
    values, owners = values.take(~is_null), owners[~is_null]
    numeric = target.root in (*_NUMBERS, "DECIMAL")
    found = decoded_numbers(values, target) if numeric else decoded_scalars(values, target)
    if strict and found.null_count:
        row = first + int(rows[owners][np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))[0]])
        raise InvalidInputError(
            f"variant_get: {found.null_count} values at {path} are no {target}, the first in row {row}: choose "
            f"another type, or strict=False for NULL"
        )
    return placed(found, rows[owners], len(variants))


def _encoded(given: Any, n: int, path: str) -> pa.Array:
    """Return the binary encoding of a value, or of ``n`` values; NULL becomes the variant null."""
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if isinstance(given, pa.Array):
        if len(given) != n:
            raise InvalidInputError(f"variant_set: {len(given)} values for {path}, but {n} rows")
        array = given
    else:
        array = pa.array([given.as_py()], given.type) if isinstance(given, pa.Scalar) else pa.array([given])
    is_null = pa.types.is_null(array.type)
    if not is_null and not (pa.types.is_primitive(array.type) or _is_text(array.type)):
        raise InvalidInputError(f"variant_set: the values for {path} are of type {array.type}: give scalars")
    encoded = pc.fill_null(array.cast(pa.binary()) if is_null else encoded_scalars(array), VARIANT_NULL)
    return encoded if isinstance(given, pa.Array) else encoded.take(pa.array(np.zeros(n, np.int64)))


def _is_text(t: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(t) for test in (*tests, pa.types.is_decimal))


def _set_chunk(variants: pa.StructArray, steps: _Steps, encoded: pa.Array, path: str, first: int) -> pa.Array:
    present, rows = _present(variants)
    metadata = pc.struct_field(present, "metadata")
    if steps and isinstance(steps[-1], str):
        metadata = with_name(metadata, steps[-1])
    new = encoded.take(pa.array(first + rows))
    setter = _Setter(FieldNames(metadata), path)
    values = setter.set(slices_of(pc.struct_field(present, "value")), np.arange(len(rows)), steps, new, first + rows)
    return placed(pa.StructArray.from_arrays([values, metadata], fields=list(_VARIANT)), rows, len(variants))


class _Setter:
    """Sets the values at a path. ``names``: the names of the fields; ``path``: the path in errors."""

    def __init__(self, names: FieldNames, path: str) -> None:
        self._names, self._path = names, path

    def set(
        self, values: Slices, owners: Numbers, steps: Sequence[str | int], new: pa.Array, rows: Numbers
    ) -> pa.Array:
        """Return values with other values at a path within them.

        Args:
            values: the values.
            owners: the number of the variant that contains each value.
            steps: the path from these values on.
            new: the new value within each value, in the binary encoding.
            rows: the row of each value, for errors.
        """
        if not steps:
            return new
        step, kind = steps[0], OBJECT if isinstance(steps[0], str) else ARRAY
        self._check(values.basic_types() == kind, rows, f"no {'object' if kind == OBJECT else 'array'} with {step!r}")
        elements, metadata = elements_of(values, kind), self._names.rows[owners]
        of = elements.rows()
        codes = self._names.codes(metadata[of], elements.ids) if isinstance(step, str) else None
        chosen = _found(elements, codes, self._names.code(step) if isinstance(step, str) else step)
        exists: Flags = np.zeros(len(values), np.bool_)
        exists[of[chosen]] = True
        if kind == ARRAY or len(steps) > 1:
            self._check(exists, rows, f"nothing at {step!r}")
        added = np.flatnonzero(~exists)
        parts = elements.values()
        at = of[chosen]
        inner = self.set(parts.take(chosen), owners[at], steps[1:], new.take(pa.array(at)), rows[at])
        pool = pa.concat_arrays([parts.to_arrow(), inner, new.take(pa.array(added))])
        places = np.arange(len(parts) + len(added))
        places[chosen] = len(parts) + np.arange(len(chosen))
        places[len(parts) :] += len(chosen)
        ids = None
        if isinstance(step, str) and codes is not None:
            ids = np.concatenate([elements.ids, self._names.ids(step, metadata[added])])
            ranks = self._names.ranks[np.concatenate([codes, np.full(len(added), self._names.code(step))])]
            order = np.lexsort((ranks, np.concatenate([of, added])))
            places, ids = places[order], ids[order]
        counts = elements.counts + ~exists
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        bodies, offsets = grouped(pool.take(pa.array(places)), ends)
        sizes = pc.binary_length(bodies).to_numpy(zero_copy_only=False).astype(np.int64)
        return joined(container_headers(counts, ids, offsets, sizes), [bodies])

    def _check(self, right: Flags, rows: Numbers, what: str) -> None:
        if not right.all():
            row = int(rows[np.flatnonzero(~right)[0]])
            raise InvalidInputError(f"variant_set: cannot set {self._path}: row {row} has {what}")
