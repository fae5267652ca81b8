"""Types to shred variants by, inferred from the first rows of a file.

A field is shredded if enough rows have it and all its values fit one type. Nulls fit every type. The other parts of a
variant stay whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.options.file import (
    VARIANT_SHREDDING_MAXSCHEMADEPTH,
    VARIANT_SHREDDING_MINFIELDCARDINALITYRATIO,
)
from paimon_core.options.option import Options
from paimon_core.types.datatype import (
    BIGINT,
    BOOLEAN,
    BYTES,
    NO_ID,
    STRING,
    VARIANT,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    RowType,
    decimal,
)
from paimon_core.variant.encoding import (
    ARRAY,
    BINARY,
    DATE,
    DECIMAL4,
    DECIMAL16,
    DOUBLE,
    FALSE,
    FLOAT,
    INT8,
    INT64,
    NULL,
    OBJECT,
    PRIMITIVE,
    SHORT_TEXT,
    TEXT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TRUE,
    FieldNames,
    Numbers,
    Slices,
    elements_of,
    in_field_order,
    slices_of,
)
from paimon_core.variant.layout import is_variant
from paimon_core.variant.scalars import decimal_digits

_MOST_FIELDS = 1000  # of one object
_LONG, _MOST_DIGITS = 18, 38  # digits of a decimal in 8 bytes, and of any decimal
_SCALARS = {
    TRUE: BOOLEAN,
    FALSE: BOOLEAN,
    DOUBLE: AtomicType("DOUBLE"),
    FLOAT: AtomicType("FLOAT"),
    DATE: AtomicType("DATE"),
    TIMESTAMP: AtomicType("TIMESTAMP_LTZ", precision=6),
    TIMESTAMP_NTZ: AtomicType("TIMESTAMP", precision=6),
    BINARY: BYTES,
    TEXT: STRING,
}


@dataclass
class Width:
    """The number of stored columns that may still be added to a file."""

    left: int


def inferred_layout(column: pa.Array, t: DataType, options: Options, width: Width) -> DataType | None:
    """Return the type to shred by of a VARIANT column or of a ROW with variants; `None`: nothing is shredded.

    Args:
        column: the first rows of the file.
        t: the type of the column.
        options: the options of the table, with the limits of the inference.
        width: the limit of the stored columns, which becomes smaller.

    Raises CorruptedError for bytes that are no variant.
    """
    if is_variant(t):
        layout = _of_variants(column.drop_null(), options, width)
        return None if layout == VARIANT else layout
    if not isinstance(t, RowType):
        return None
    inner = [
        (f.name, inferred_layout(pc.struct_field(column, [i]), f.type, options, width)) for i, f in enumerate(t.fields)
    ]
    chosen = tuple(DataField(NO_ID, name, layout) for name, layout in inner if layout is not None)
    return RowType(chosen) if chosen else None


def _of_variants(variants: pa.StructArray, options: Options, width: Width) -> DataType:
    if not len(variants):
        return VARIANT
    names = FieldNames(pc.struct_field(variants, "metadata"))
    values = slices_of(pc.struct_field(variants, "value"))
    least = int(np.ceil(len(values) * options.value(VARIANT_SHREDDING_MINFIELDCARDINALITYRATIO)))
    inference = _Inference(names, least, width)
    return inference.layout(values, names.rows, options.value(VARIANT_SHREDDING_MAXSCHEMADEPTH))


@dataclass(frozen=True)
class _Inference:
    """The inference of the type of one column.

    Args:
        names: the names of the fields of objects.
        least: the least number of values of a field that is shredded.
        width: the limit of the stored columns.
    """

    names: FieldNames
    least: int
    width: Width

    def layout(self, values: Slices, metadata: Numbers, depth: int) -> DataType:
        """Return the type to shred values by. ``depth``: the levels of objects and arrays that may be shredded."""
        self.width.left -= 1  # the column of values in the binary encoding
        basic, details = values.basic_types(), values.type_details()
        given = np.flatnonzero((basic != PRIMITIVE) | (details != NULL))
        kinds = {int(kind) for kind in np.unique(basic[given])}
        if self.width.left <= 0 or not kinds:
            return VARIANT
        if kinds == {OBJECT}:
            return self._object(values.take(given), metadata[given], depth) if depth > 0 else VARIANT
        if kinds == {ARRAY}:
            elements = elements_of(values.take(given), ARRAY)
            if depth <= 0:
                return VARIANT
            return ArrayType(self.layout(elements.values(), metadata[given][elements.rows()], depth - 1))
        if not kinds <= {PRIMITIVE, SHORT_TEXT}:
            return VARIANT
        scalar = _scalar(values.take(given), np.where(basic[given] == SHORT_TEXT, TEXT, details[given]))
        self.width.left -= scalar != VARIANT
        return scalar

    def _object(self, objects: Slices, metadata: Numbers, depth: int) -> DataType:
        elements = elements_of(objects, OBJECT)
        owners = metadata[elements.rows()]
        codes = self.names.codes(owners, elements.ids)
        values = elements.values()
        fields: list[DataField] = []
        for name, rows in self._fields(codes):
            if self.width.left <= 0:
                break
            layout = self.layout(values.take(rows), owners[rows], depth - 1)
            fields.append(DataField(len(fields), name, layout))
        return RowType(tuple(fields)) if fields else VARIANT

    def _fields(self, codes: Numbers) -> Iterator[tuple[str, Numbers]]:
        """Yield the names of common fields, in the order of fields, with the numbers of their values."""
        counts = np.bincount(codes, minlength=len(self.names.names))
        common = np.flatnonzero((counts > 0) & (counts >= self.least))
        by_name = {self.names.names[code]: code for code in common}
        for name in in_field_order([name for name in by_name if name.strip()])[:_MOST_FIELDS]:
            yield name, np.flatnonzero(codes == by_name[name])


def _scalar(values: Slices, kinds: Numbers) -> DataType:
    """Return the type of scalars without nulls; VARIANT: they fit no one type."""
    found = np.unique(kinds)
    numbers = (found >= INT8) & (found <= INT64) | (found >= DECIMAL4) & (found <= DECIMAL16)
    if numbers.all():
        whole, fraction = decimal_digits(values, kinds)
        if fraction == 0 and (whole <= _LONG or int(found.max()) <= INT64):
            return BIGINT
        digits = whole + fraction
        if digits > _MOST_DIGITS:
            return VARIANT
        return decimal(_LONG if digits <= _LONG else _MOST_DIGITS, fraction)
    types = {_SCALARS.get(int(kind), VARIANT) for kind in found}
    return types.pop() if len(types) == 1 else VARIANT
