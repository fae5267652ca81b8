"""An index of the rows of a MERGE's source by the columns of ON, for matching rows of the table in batches."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import UnsupportedError
from paimon_core.predicate.expr import FALSE, Leaf, Predicate, conjunction
from paimon_core.types.coerce import coerce_array
from paimon_core.types.datatype import BINARY_ROOTS, INTEGER_ROOTS, TIME_ROOTS, AtomicType, DataField
from paimon_core.types.float_order import in_key_order

Codes = npt.NDArray[np.int64]

_MOST_VALUES = 1_000  # values of a column that a filter lists; for more values it has their bounds
_MATCHED_ROOTS = {*INTEGER_ROOTS, *TIME_ROOTS, *BINARY_ROOTS, "CHAR", "VARCHAR", "BOOLEAN", "DATE", "DECIMAL"} | {
    "FLOAT",
    "DOUBLE",
}
_FILTERED_ROOTS = {*INTEGER_ROOTS, "VARCHAR", "DATE", "DECIMAL", "TIMESTAMP", "TIMESTAMP_LTZ"}


class KeyIndex:
    """The distinct keys of rows, each with a number. Keys are equal as in SQL: a key with a NULL equals no key.

    NaN equals NaN, 0.0 equals -0.0, and blanks at the end of CHAR values do not count.

    Args:
        fields: the columns of the key, as in the table.
        columns: the values of the rows, one array for each field, of any type that the column can store.

    Raises InvalidInputError for a value that the column cannot store, UnsupportedError for a column whose values cannot
    be matched. Cost: a sort of the keys; then a batch of m rows takes m look-ups.
    """

    def __init__(self, fields: Sequence[DataField], columns: Sequence[Any]) -> None:
        wrong = [f for f in fields if not isinstance(f.type, AtomicType) or f.type.root not in _MATCHED_ROOTS]
        if wrong:
            raise UnsupportedError(f"rows cannot be matched by column {wrong[0].name!r} of type {wrong[0].type}")
        self._fields = tuple(fields)
        self._stored = [coerce_array(c, f.type, f.name) for c, f in zip(columns, fields, strict=True)]
        self._distinct: list[_Distinct] = []
        self._pairs: list[Codes] = []
        codes: Codes | None = None
        for field, column in zip(fields, self._stored, strict=True):
            distinct = _Distinct(_comparable(column, field))
            self._distinct.append(distinct)
            codes = self._joined(codes, distinct, _comparable(column, field))
        assert codes is not None  # there is a column
        self.codes: Codes = codes
        """The key number of each row; -1: the key has a NULL."""
        self.counts = np.bincount(codes[codes >= 0], minlength=self._size)
        """The number of rows of each key."""
        order = np.argsort(codes, kind="stable")[np.count_nonzero(codes < 0) :]
        self.first_rows = order[np.cumsum(self.counts) - self.counts] if len(self.counts) else order
        """The position of the first row of each key."""

    @property
    def _size(self) -> int:
        return len(self._pairs[-1])

    def _joined(self, codes: Codes | None, distinct: "_Distinct", column: Any) -> Codes:
        """Return the key numbers with one more column. ``codes``: the numbers without it; `None`: the first column."""
        pairs = _pairs(codes, distinct, column)
        self._pairs.append(np.unique(pairs[pairs >= 0]))
        return _among(self._pairs[-1], pairs)

    def find(self, columns: Sequence[pa.Array]) -> Codes:
        """Return the key number of each row of the table; -1: no row of the source has this key.

        ``columns``: one array for each column of the key, in the type of the table.
        """
        codes: Codes | None = None
        for field, distinct, known, column in zip(self._fields, self._distinct, self._pairs, columns, strict=True):
            codes = _among(known, _pairs(codes, distinct, _comparable(column, field)))
        assert codes is not None  # there is a column
        return codes

    def predicate(self) -> Predicate | None:
        """Return a filter that is true for every row of the table with one of the keys; `None`: any row may match."""
        if not self._size:
            return FALSE
        parts: list[Predicate] = []
        for field, column in zip(self._fields, self._stored, strict=True):
            if isinstance(field.type, AtomicType) and field.type.root in _FILTERED_ROOTS:
                parts += _tests(field.name, column)
        return conjunction(parts)


class _Distinct:
    """The distinct values of a column, for looking up values. NULL is no value."""

    def __init__(self, column: pa.Array) -> None:
        values = pc.unique(column).drop_null()
        self._numbers: npt.NDArray[Any] | None = None
        if pa.types.is_integer(column.type):
            self._numbers = np.sort(values.to_numpy(zero_copy_only=False))
        self._values = values
        self.size = len(values)

    def find(self, column: pa.Array) -> Codes:
        """Return the number of each value; -1: an unknown value, or NULL."""
        if self._numbers is None:
            found = pc.index_in(column, value_set=self._values)
            found_codes: Codes = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
            return found_codes
        codes = _among(self._numbers, pc.fill_null(column, 0).to_numpy(zero_copy_only=False))
        if column.null_count:
            codes[column.is_null().to_numpy(zero_copy_only=False)] = -1
        return codes


def _pairs(codes: Codes | None, distinct: _Distinct, column: pa.Array) -> Codes:
    """Return one number for each combination of a key number and a value; -1: one of them is unknown."""
    values = distinct.find(column)
    if codes is None:
        return values
    return np.where((codes < 0) | (values < 0), np.int64(-1), codes * np.int64(distinct.size) + values)


def _among(known: npt.NDArray[Any], values: npt.NDArray[Any]) -> Codes:
    """Return the position of each value in the sorted values ``known``; -1: it is not among them."""
    if not len(known):
        return np.full(len(values), -1, np.int64)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[at] == values, at, -1).astype(np.int64)


def _comparable(column: Any, field: DataField) -> pa.Array:
    """Return the values of a column in a form in which equal values have equal bytes."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_floating(array.type):
        return in_key_order(pc.add(array, pa.scalar(0.0, array.type)))  # -0.0 becomes 0.0
    if isinstance(field.type, AtomicType) and field.type.root == "CHAR":
        return pc.utf8_rtrim(array, " ")
    if pa.types.is_date32(array.type) or pa.types.is_time32(array.type):
        return array.view(pa.int32())
    return array.view(pa.int64()) if pa.types.is_timestamp(array.type) else array


def _tests(name: str, column: pa.Array) -> list[Predicate]:
    """Return tests that are true for every value of a column. REQUIRES: the column has a value other than NULL."""
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    values = pc.unique(column).drop_null()
    if len(values) <= _MOST_VALUES:
        return [Leaf("in", name, tuple(values.to_pylist()))]
    if pa.types.is_string(values.type):
        ordered = values.take(pc.array_sort_indices(values))
        low, high = ordered[0].as_py(), ordered[-1].as_py()
    else:
        low, high = (bound.as_py() for bound in pc.min_max(values).values())
    return [Leaf(">=", name, (low,)), Leaf("<=", name, (high,))]
