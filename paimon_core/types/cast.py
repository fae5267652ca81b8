"""The change of column types: the changes that a schema allows, and the casts of stored data to the new type.

Results agree with the format's reference engine: integers wrap, floats truncate and saturate, timestamps round
down, decimals round half up and become null if they do not fit, and a text that is not a value is an error. A cast is
refused if its result depends on the time zone of the machine (TIMESTAMP to and from TIMESTAMP_LTZ) or is not known
exactly.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.types import cast_text
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import (
    BINARY_ROOTS,
    INTEGER_ROOTS,
    MAX_LENGTH,
    TEXT_ROOTS,
    AtomicType,
    DataType,
    with_nullable,
)
from paimon_core.types.decimals import decimal_text, fitted, low_halves, widened
from paimon_core.types.float_text import float_text

ArrowArray: TypeAlias = Any
Cast: TypeAlias = Callable[[ArrowArray, AtomicType, AtomicType], ArrowArray]

_NUMBERS = (*INTEGER_ROOTS, "DECIMAL", "FLOAT", "DOUBLE")
_MOMENTS = ("TIMESTAMP", "TIMESTAMP_LTZ")
_DATES_AND_TIMES = ("DATE", "TIME", "TIMESTAMP")

_IMPLICIT: dict[str, frozenset[str]] = {
    "CHAR": frozenset({"CHAR"}),
    "VARCHAR": frozenset({"CHAR", "VARCHAR"}),
    "BOOLEAN": frozenset({"BOOLEAN"}),
    "BINARY": frozenset({"BINARY"}),
    "VARBINARY": frozenset({"BINARY", "VARBINARY"}),
    **{root: frozenset(INTEGER_ROOTS[: position + 1]) for position, root in enumerate(INTEGER_ROOTS)},
    "FLOAT": frozenset({*INTEGER_ROOTS, "FLOAT", "DECIMAL"}),
    "DOUBLE": frozenset(_NUMBERS),
    "DECIMAL": frozenset(_NUMBERS),
    "DATE": frozenset({"DATE", "TIMESTAMP"}),
    "TIME": frozenset({"TIME", "TIMESTAMP"}),
    "TIMESTAMP": frozenset({"TIMESTAMP"}),
    "TIMESTAMP_LTZ": frozenset({"TIMESTAMP_LTZ"}),
}

_SCALARS = frozenset({*_NUMBERS, "BOOLEAN", "DATE", "TIME", "TIMESTAMP", *TEXT_ROOTS, *BINARY_ROOTS})

_EXPLICIT: dict[str, frozenset[str]] = {
    "CHAR": _SCALARS,
    "VARCHAR": _SCALARS,
    "BOOLEAN": frozenset({*TEXT_ROOTS, *INTEGER_ROOTS}),
    "BINARY": TEXT_ROOTS | {"VARBINARY"},
    "VARBINARY": TEXT_ROOTS,
    "TINYINT": frozenset({*_NUMBERS, *TEXT_ROOTS, "BOOLEAN"}),
    "SMALLINT": frozenset({*_NUMBERS, *TEXT_ROOTS, "BOOLEAN"}),
    "INT": frozenset({*_NUMBERS, *TEXT_ROOTS, "BOOLEAN", *_MOMENTS}),
    "BIGINT": frozenset({*_NUMBERS, *TEXT_ROOTS, "BOOLEAN", *_MOMENTS}),
    "FLOAT": frozenset({"DOUBLE", *TEXT_ROOTS, "BOOLEAN"}),
    "DOUBLE": TEXT_ROOTS | {"BOOLEAN"},
    "DECIMAL": TEXT_ROOTS | {"BOOLEAN"},
    "DATE": TEXT_ROOTS,
    "TIME": TEXT_ROOTS,
    "TIMESTAMP": TEXT_ROOTS | {"DATE", "TIME", "INT", "BIGINT"},
}


def can_cast(source: DataType, target: DataType, explicit: bool) -> bool:
    """Return True if a column may change its type. ``explicit`` allows casts that may lose a part of a value.

    The format allows more changes. This engine allows only changes after which it reads the stored values exactly, in
    every time zone. Constructed types change through their elements, never as a whole. Nullability is ignored; a
    shorter length or precision is an explicit cast. The reference engine lacks casts from dates and times to text of
    limited length, and from TIME to TIME of another precision: it could no longer read the table.
    """
    if with_nullable(source, True) == with_nullable(target, True):
        return True
    if not (isinstance(source, AtomicType) and isinstance(target, AtomicType)):
        return False
    if source.root in _DATES_AND_TIMES and target.root in TEXT_ROOTS and not _is_unlimited(target):
        return False
    if source.root == target.root == "TIME":
        return False
    if source.root in _IMPLICIT.get(target.root, ()):
        return explicit or not _narrower(source, target)
    return explicit and source.root in _EXPLICIT.get(target.root, ())


def has_limit(type_: DataType) -> bool:
    """Return True for CHAR, and for VARCHAR except STRING."""
    return isinstance(type_, AtomicType) and type_.root in TEXT_ROOTS and not _is_unlimited(type_)


def _is_unlimited(text: AtomicType) -> bool:
    return text.root == "VARCHAR" and text.length == MAX_LENGTH


def _narrower(source: AtomicType, target: AtomicType) -> bool:
    """Return True if ``target`` is of the same family with a shorter length or fewer digits on a side of the point."""
    if _family(source) != _family(target):
        return False
    return (
        (source.length or 0) > (target.length or 0)
        or (source.scale or 0) > (target.scale or 0)
        or (source.precision or 0) - (source.scale or 0) > (target.precision or 0) - (target.scale or 0)
    )


def cast_array(array: ArrowArray, source: DataType, target: DataType) -> ArrowArray:
    """Cast stored data to another type; return it in the canonical Arrow type of ``target``. Null stays null.

    REQUIRES: ``array`` has the canonical type of ``source``. Raises InvalidInputError, quoting the text, for a text
    that is not a value of the target. Raises UnsupportedError, naming both types, if the result is not known exactly.
    """
    if with_nullable(source, True) == with_nullable(target, True):
        return array
    if isinstance(source, AtomicType) and isinstance(target, AtomicType):
        cast = _CASTS.get((_family(source), _family(target)))
        if cast is not None:
            return cast(array, source, target)
    raise _unsupported(source, target)


def _unsupported(source: DataType, target: DataType, why: str = "") -> UnsupportedError:
    return UnsupportedError(f"data stored as {source} cannot be read as {target}" + (f": {why}" if why else ""))


def _family(t: AtomicType) -> str:
    if t.root in INTEGER_ROOTS:
        return "INTEGER"
    if t.root in TEXT_ROOTS:
        return "TEXT"
    if t.root in BINARY_ROOTS:
        return "BINARY"
    return "FLOAT" if t.root == "DOUBLE" else t.root


def _parameters(t: AtomicType) -> tuple[int, int]:
    return t.precision or 0, t.scale or 0


def _numpy(array: ArrowArray) -> tuple[Any, Any]:
    """Return the values (undefined at nulls) and the mask of nulls. `None` for the mask: no nulls."""
    if not array.null_count:
        return array.to_numpy(zero_copy_only=False), None
    mask = array.is_null().to_numpy(zero_copy_only=False)
    return array.fill_null(0).to_numpy(zero_copy_only=False), mask


# ---------------------------------------------------------------------------------------------- numbers


def _wrap(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    return array.cast(to_arrow(target), safe=False)


def _float_to_integer(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    values, mask = _numpy(array)
    wide = np.int64 if target.root == "BIGINT" else np.int32  # narrower ones saturate as int and then wrap
    limits = np.iinfo(wide)
    values = values.astype(np.float64)
    inside = (values > limits.min) & (values < float(limits.max))
    result = np.where(inside, values, 0).astype(wide)
    result[values <= limits.min] = limits.min
    result[values >= float(limits.max)] = limits.max
    return pa.array(result, mask=mask).cast(to_arrow(target), safe=False)


def _integer_to_decimal(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    return fitted(array.cast(pa.int64()).cast(pa.decimal256(20, 0)), *_parameters(target))


def _float_to_decimal(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    finite = pc.is_finite(array)
    bad = pc.index(finite, False).as_py()
    if bad >= 0:
        raise InvalidInputError(f"{array[bad].as_py()} has no value as {target}")
    precision, scale = _parameters(target)
    wide = array.cast(pa.float64())
    size = pc.abs(wide)
    # numbers far too large become null, numbers far too small become zero
    small = pc.less(size, 10.0 ** -(scale + 2))
    fitting = pc.if_else(pc.less(size, 10.0 ** (precision - scale + 1)), wide, pa.scalar(None, pa.float64()))
    fitting = pc.if_else(small, 0.0, fitting)
    digits = pa.decimal256(precision + 22, scale + 20)
    return fitted(fitting.cast(pa.string()).cast(digits), precision, scale)


def _decimal_to_decimal(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    return fitted(widened(array), *_parameters(target))


def _decimal_to_integer(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    whole = pc.round(widened(array), 0, round_mode="towards_zero").cast(pa.decimal128(38, 0))
    mask = whole.is_null().to_numpy(zero_copy_only=False) if whole.null_count else None
    return pa.array(low_halves(whole), pa.int64(), mask=mask).cast(to_arrow(target), safe=False)


def _decimal_to_float(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    precision, scale = _parameters(source)
    if precision <= 18:
        mask = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        numbers = pa.array(low_halves(array).astype(np.float64) / 10.0**scale, mask=mask)
    else:
        numbers = array.cast(pa.string()).cast(pa.float64())  # by its text: correctly rounded
    return numbers.cast(to_arrow(target), safe=False)


def _boolean_to_number(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    return array.cast(pa.int8()).cast(to_arrow(target))


def _boolean_to_decimal(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    return _integer_to_decimal(array.cast(pa.int8()), source, target)


def _integer_to_boolean(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    return pc.not_equal(array, pa.scalar(0, array.type))


# ---------------------------------------------------------------------------------------------- dates and times

_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY_SECONDS = 86_400


def _ticks(array: ArrowArray) -> tuple[Any, Any, int]:
    """Return the numbers of a timestamp array, its mask of nulls, and its ticks per second."""
    values, mask = _numpy(array.view(pa.int64()))
    return values, mask, _PER_SECOND[array.type.unit]


def _change_precision(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    if (source.precision or 0) <= (target.precision or 0):
        return _to_finer_unit(array, source, target)
    values, mask, per_second = _ticks(array)
    step = per_second // 10 ** (target.precision or 0)
    rounded = values // step * step  # down, also before 1970
    if (rounded > values).any():
        raise _unsupported(source, target, "a time is too early to be rounded down")
    coarser = per_second // _PER_SECOND[to_arrow(target).unit]
    return pa.array(rounded // coarser, pa.int64(), mask=mask).view(to_arrow(target))


def _to_finer_unit(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    """Return the array in a finer unit. Raises UnsupportedError for a time outside of the years of the unit."""
    try:
        return array.cast(to_arrow(target))
    except pa.ArrowInvalid as error:
        raise _unsupported(source, target, str(error)) from error


def _timestamp_to_date(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    values, mask, per_second = _ticks(array)
    days = values // (per_second * _DAY_SECONDS)
    return pa.array(days.astype(np.int32), mask=mask).view(pa.date32())


def _timestamp_to_time(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    values, mask, per_second = _ticks(array)
    millis = values % (per_second * _DAY_SECONDS) // (per_second // 1000)
    return pa.array(millis.astype(np.int32), mask=mask).view(pa.time32("ms"))


def _timestamp_to_integer(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    if target.root not in ("INT", "BIGINT"):
        raise _unsupported(source, target)
    values, mask, per_second = _ticks(array)
    return pa.array(values // per_second, mask=mask).cast(to_arrow(target), safe=False)


def _integer_to_timestamp(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    if source.root not in ("INT", "BIGINT"):
        raise _unsupported(source, target)
    return _to_finer_unit(array.cast(pa.int64()).view(pa.timestamp("s")), source, target)


def _time_to_timestamp(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    millis = array.view(pa.int32()).cast(pa.int64()).view(pa.timestamp("ms"))
    return _to_finer_unit(millis, source, target)  # the reference engine cuts no digits here


def _time_to_time(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    return array  # any precision is stored in milliseconds, which the reference engine does not change


# ---------------------------------------------------------------------------------------------- text and bytes


def _to_text(text: Callable[[ArrowArray, AtomicType], ArrowArray]) -> Cast:
    def cast(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
        return cast_text.fit_text(text(array, source), target)

    return cast


def _text_to_binary(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    return cast_text.fit_bytes(array.cast(pa.binary()), target)


def _binary_to_binary(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    return cast_text.fit_bytes(array, target)


def _binary_to_text(array: ArrowArray, source: AtomicType, target: AtomicType) -> ArrowArray:
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise _unsupported(source, target, "the bytes are not UTF-8") from error


_CASTS: dict[tuple[str, str], Cast] = {
    ("INTEGER", "INTEGER"): _wrap,
    ("INTEGER", "FLOAT"): _wrap,
    ("FLOAT", "FLOAT"): _wrap,
    ("FLOAT", "INTEGER"): _float_to_integer,
    ("INTEGER", "DECIMAL"): _integer_to_decimal,
    ("FLOAT", "DECIMAL"): _float_to_decimal,
    ("DECIMAL", "DECIMAL"): _decimal_to_decimal,
    ("DECIMAL", "INTEGER"): _decimal_to_integer,
    ("DECIMAL", "FLOAT"): _decimal_to_float,
    ("BOOLEAN", "INTEGER"): _boolean_to_number,
    ("BOOLEAN", "FLOAT"): _boolean_to_number,
    ("BOOLEAN", "DECIMAL"): _boolean_to_decimal,
    ("INTEGER", "BOOLEAN"): _integer_to_boolean,
    ("TIMESTAMP", "TIMESTAMP"): _change_precision,
    ("TIMESTAMP_LTZ", "TIMESTAMP_LTZ"): _change_precision,
    ("TIMESTAMP", "DATE"): _timestamp_to_date,
    ("TIMESTAMP", "TIME"): _timestamp_to_time,
    ("TIMESTAMP", "INTEGER"): _timestamp_to_integer,
    ("TIMESTAMP_LTZ", "INTEGER"): _timestamp_to_integer,
    ("INTEGER", "TIMESTAMP"): _integer_to_timestamp,
    ("DATE", "TIMESTAMP"): _to_finer_unit,
    ("TIME", "TIMESTAMP"): _time_to_timestamp,
    ("TIME", "TIME"): _time_to_time,
    ("INTEGER", "TEXT"): _to_text(lambda array, source: array.cast(pa.string())),
    ("BOOLEAN", "TEXT"): _to_text(lambda array, source: array.cast(pa.string())),
    ("FLOAT", "TEXT"): _to_text(lambda array, source: float_text(array)),
    ("DECIMAL", "TEXT"): _to_text(lambda array, source: decimal_text(array)),
    ("DATE", "TEXT"): _to_text(cast_text.date_text),
    ("TIME", "TEXT"): _to_text(cast_text.time_text),
    ("TIMESTAMP", "TEXT"): _to_text(cast_text.timestamp_text),
    ("TEXT", "TEXT"): _to_text(lambda array, source: array),
    ("BINARY", "TEXT"): _binary_to_text,
    ("TEXT", "BINARY"): _text_to_binary,
    ("BINARY", "BINARY"): _binary_to_binary,
    ("TEXT", "BOOLEAN"): cast_text.to_boolean,
    ("TEXT", "INTEGER"): cast_text.to_integer,
    ("TEXT", "FLOAT"): cast_text.to_float,
    ("TEXT", "DECIMAL"): cast_text.to_decimal,
    ("TEXT", "DATE"): cast_text.to_date,
    ("TEXT", "TIME"): cast_text.to_time,
    ("TEXT", "TIMESTAMP"): cast_text.to_timestamp,
}
