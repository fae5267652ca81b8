"""The evidence of a sample of variants: at each place, the number of values, and the type that all of them have.

Evidence of several files can be added, and gives the types to shred by (format 7.4).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, Union

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.types.datatype import BIGINT, BOOLEAN, BYTES, STRING, VARIANT, AtomicType, DataType, decimal
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


@dataclass(frozen=True, slots=True)
class Digits:
    """The digits that integers and decimals need, before and after the point.

    Args:
        whole: the most digits before the point.
        fraction: the most digits after the point.
        integers: True if no value is encoded as a decimal.
    """

    whole: int
    fraction: int
    integers: bool

    def added(self, other: "Digits") -> "Digits":
        """Return the digits that the values of both need."""
        whole, fraction = max(self.whole, other.whole), max(self.fraction, other.fraction)
        return Digits(whole, fraction, self.integers and other.integers)

    def type(self) -> DataType:
        """Return the type to shred the numbers by; VARIANT if no decimal has room for them."""
        digits = self.whole + self.fraction
        if self.fraction == 0 and (self.whole <= _LONG or self.integers):
            return BIGINT
        if digits > _MOST_DIGITS:
            return VARIANT
        return decimal(_LONG if digits <= _LONG else _MOST_DIGITS, self.fraction)


Shape: TypeAlias = Union[DataType, Digits, Mapping[str, "Evidence"], "Evidence", None]
"""The kind of values: only nulls (`None`), several types (VARIANT), one type, numbers, objects with these fields, or
arrays with these elements."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The values at one place of a column.

    Args:
        count: the number of values, with nulls; no whole number once it was scaled.
        shape: what the values are, apart from nulls, which fit every shape.
    """

    count: float
    shape: Shape

    def scaled(self, factor: float) -> "Evidence":
        """Return the same evidence with all counts multiplied."""
        shape = self.shape
        if isinstance(shape, Mapping):
            return Evidence(self.count * factor, {name: field.scaled(factor) for name, field in shape.items()})
        return Evidence(self.count * factor, shape.scaled(factor) if isinstance(shape, Evidence) else shape)

    def at_most(self, count: float) -> "Evidence":
        """Return the same evidence as if of at most ``count`` values."""
        return self.scaled(count / self.count) if self.count > count else self

    def added(self, later: "Evidence") -> "Evidence":
        """Return the evidence of both. Where their values have no one type, the later ones decide."""
        return Evidence(self.count + later.count, _added(self.shape, later.shape))


def _added(shape: Shape, later: Shape) -> Shape:
    if later is None:
        return shape
    if isinstance(shape, Mapping) and isinstance(later, Mapping):
        fields = {**shape, **{n: shape[n].added(f) if n in shape else f for n, f in later.items()}}
        most = sorted(fields, key=lambda name: -fields[name].count)[:_MOST_FIELDS]
        return {name: fields[name] for name in in_field_order(most)}
    if isinstance(shape, Digits) and isinstance(later, Digits):
        both = shape.added(later)
        return later if both.type() == VARIANT else both
    return shape.added(later) if isinstance(shape, Evidence) and isinstance(later, Evidence) else later


def evidence_of(variants: pa.StructArray, ratio: float, depth: int) -> Evidence:
    """Return what the values of a column show.

    Args:
        variants: the variants, without nulls.
        ratio: a field that fewer than this share of the variants has is left out.
        depth: the levels of objects and arrays to look into; those below are VARIANT.

    Raises CorruptedError for bytes that are no variant.
    """
    if not len(variants):
        return Evidence(0, None)
    names = FieldNames(pc.struct_field(variants, "metadata"))
    values = slices_of(pc.struct_field(variants, "value"))
    return _Observation(names, math.ceil(len(values) * ratio)).of(values, names.rows, depth)


@dataclass(frozen=True)
class _Observation:
    """The observation of the values of one column.

    Args:
        names: the names of the fields of objects.
        least: the least number of values of a field that is looked at.
    """

    names: FieldNames
    least: int

    def of(self, values: Slices, metadata: Numbers, depth: int) -> Evidence:
        basic, details = values.basic_types(), values.type_details()
        given = np.flatnonzero((basic != PRIMITIVE) | (details != NULL))
        kinds = {int(kind) for kind in np.unique(basic[given])}
        shape: Shape = VARIANT
        if not kinds:
            shape = None
        elif kinds <= {PRIMITIVE, SHORT_TEXT}:
            shape = _scalar(values.take(given), np.where(basic[given] == SHORT_TEXT, TEXT, details[given]))
        elif depth > 0 and kinds == {OBJECT}:
            shape = dict(self._fields(values.take(given), metadata[given], depth - 1))
        elif depth > 0 and kinds == {ARRAY}:
            elements = elements_of(values.take(given), ARRAY)
            shape = self.of(elements.values(), metadata[given][elements.rows()], depth - 1)
        return Evidence(len(values), shape)

    def _fields(self, objects: Slices, metadata: Numbers, depth: int) -> Iterator[tuple[str, Evidence]]:
        """Yield the names of common fields, in the order of fields, with the evidence of their values."""
        elements = elements_of(objects, OBJECT)
        owners = metadata[elements.rows()]
        codes = self.names.codes(owners, elements.ids)
        values = elements.values()
        counts = np.bincount(codes, minlength=len(self.names.names))
        common = np.flatnonzero((counts > 0) & (counts >= self.least))
        by_name = {self.names.names[code]: code for code in common}
        by_code = np.argsort(codes, kind="stable")
        ends = np.cumsum(counts)
        for name in in_field_order([name for name in by_name if name.strip()])[:_MOST_FIELDS]:
            code = by_name[name]
            rows = by_code[ends[code] - counts[code] : ends[code]]
            yield name, self.of(values.take(rows), owners[rows], depth)


def _scalar(values: Slices, kinds: Numbers) -> DataType | Digits:
    """Return the type of scalars without nulls, or their digits; VARIANT: they fit no one type."""
    found = np.unique(kinds)
    numbers = (found >= INT8) & (found <= INT64) | (found >= DECIMAL4) & (found <= DECIMAL16)
    if numbers.all():
        return Digits(*decimal_digits(values, kinds), integers=int(found.max()) <= INT64)
    types = {_SCALARS.get(int(kind), VARIANT) for kind in found}
    return types.pop() if len(types) == 1 else VARIANT
