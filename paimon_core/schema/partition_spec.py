"""Parse partitions from texts such as ``column=value,column=value``, by the types of their columns.

A value may be between quotes, with ``''`` for a quote in it, and a column between backticks. Bytes are ``X'00ff'``.
Without quotes a value ends at the next comma, and the table's default partition name means NULL.
"""

import math
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from paimon_core.errors import InvalidInputError, listed_names
from paimon_core.options.bucket import PARTITION_DEFAULT_NAME
from paimon_core.predicate.literal import fit
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.arrow import to_arrow
from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import (
    BINARY_ROOTS,
    INTEGER_ROOTS,
    STRING,
    TEXT_ROOTS,
    TIME_ROOTS,
    AtomicType,
    DataType,
)

_PAIR: Final = (
    r"\s*(?:`(?P<quoted_name>(?:``|[^`])+)`|(?P<name>[^`=,][^=,]*?))\s*=\s*"
    r"(?:X'(?P<hex>(?:[0-9A-Fa-f]{2})*)'|'(?P<quoted>(?:''|[^'])*)'|(?P<plain>[^'%s][^%s]*?|))\s*(?P<end>[%s]|$)"
)
_ONE: Final = re.compile(_PAIR % (",", ",", ","))
_SEVERAL: Final = re.compile(_PAIR % (",;", ",;", ",;"))
_BLANK: Final = re.compile(r"\s*(?P<end>;|$)")
_PLAIN_NAME: Final = re.compile(r"[^\W\d]\w*")
_PLAIN_VALUE: Final = re.compile(r"[\w.:+-]([\w.:+ -]*[\w.:+-])?")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_INFINITY: Final = re.compile(r"([+-]?)inf(inity)?", re.IGNORECASE)
_SHORT_DATE: Final = re.compile(r"(\d{1,4})-(\d{1,2})-(\d{1,2})(?=\D|$)")
_NULL: Final = "null"


class PartitionText(NamedTuple):
    """A partition column and its value as texts. ``quoted``: True if the value was between quotes: it is not NULL."""

    column: str
    text: str
    quoted: bool = False
    binary: bool = False
    """True if the text is hexadecimal, ``X'00ff'``."""


Spec = tuple[PartitionText, ...]


def partition_spec(text: str) -> Spec:
    """Return the columns and values of ``column=value,column=value``. Raises ValueError for another form."""
    return _checked(_pairs(text, _ONE)[0])


def partition_specs(text: str) -> list[Spec]:
    """Return partitions separated by semicolons. Raises ValueError for another form."""
    return [_checked(spec) for spec in _pairs(text, _SEVERAL) if spec]


def partition_text(column: str, text: str | None, null_name: str) -> str:
    """Return ``column=value`` as `partition_spec` reads it; ``text``: a text or a number; `None`: NULL."""
    name = column if _PLAIN_NAME.fullmatch(column) else "`" + column.replace("`", "``") + "`"
    if text is None:
        return f"{name}={null_name}"
    plain = _PLAIN_VALUE.fullmatch(text) and text.lower() != _NULL and text != null_name
    return f"{name}={text}" if plain else f"{name}='" + text.replace("'", "''") + "'"


def _pairs(text: str, pair: re.Pattern[str]) -> list[list[PartitionText]]:
    """Return the pairs of each partition of a text; a partition may be empty."""
    pairs: list[list[PartitionText]] = [[]]
    at, end = 0, ";"
    while at < len(text) or end != "":
        if pair is _SEVERAL and end == ";" and (blank := _BLANK.match(text, at)) is not None:
            at, end = blank.end(), blank["end"]
            continue
        match = pair.match(text, at)
        if match is None:
            raise ValueError("must be column=value, or several separated by commas; a value may be between quotes")
        pairs[-1].append(_pair(match))
        at, end = match.end(), match["end"]
        if end == ";":
            pairs.append([])
    return pairs


def _checked(pairs: Sequence[PartitionText]) -> Spec:
    if len({pair.column.lower() for pair in pairs}) < len(pairs):
        raise ValueError("names a column twice")
    return tuple(pairs)


def _pair(match: re.Match[str]) -> PartitionText:
    column = match["name"] if match["quoted_name"] is None else match["quoted_name"].replace("``", "`")
    if match["hex"] is not None:
        return PartitionText(column, match["hex"], quoted=True, binary=True)
    if match["quoted"] is not None:
        return PartitionText(column, match["quoted"].replace("''", "'"), quoted=True)
    return PartitionText(column, match["plain"])


def partition_values(schema: TableSchema, spec: Sequence[PartitionText], what: str, path: str) -> dict[str, object]:
    """Convert the texts of a partition to values of the column types.

    Args:
        schema: the schema of the table.
        spec: columns and texts; the table's default partition name without quotes means NULL.
        what: the option or argument with the texts, for messages.
        path: the path of the table, for messages.

    Raises InvalidInputError for an unknown column, and for a text that is not exactly a value of its column. The text
    ``null`` without quotes is NULL in a column of numbers or times. In a text column it is ambiguous, and is refused.
    """
    null_name = schema.options.value(PARTITION_DEFAULT_NAME)
    keys = {k.lower(): k for k in schema.partition_keys}
    values: dict[str, object] = {}
    for pair in spec:
        key = keys.get(pair.column.lower())
        if key is None:
            raise InvalidInputError(
                f"{what} names {pair.column!r}, but the partition columns of {path} are "
                f"{listed_names(pair.column, keys.values())}"
            )
        values[key] = _value(key, pair, schema.field(key).type, null_name, what)
    return values


def _value(key: str, pair: PartitionText, kind: DataType, null_name: str, what: str) -> object:
    root = kind.root if isinstance(kind, AtomicType) else ""
    if pair.binary:
        if root not in BINARY_ROOTS:
            raise InvalidInputError(f"{what}: X'{pair.text}' is bytes, but column {key!r} is {kind}")
        return bytes.fromhex(pair.text)
    if not pair.quoted:
        if pair.text == null_name:
            return None
        if pair.text.lower() == _NULL and root in TEXT_ROOTS | BINARY_ROOTS:
            raise InvalidInputError(
                f"{what}: {key}={pair.text} may be NULL or a text; write {key}={null_name} for NULL, "
                f"{key}='{pair.text}' for the text"
            )
        if pair.text.lower() == _NULL:
            return None
    return value_of_text(key, pair.text, kind, what)


def value_of_text(column: str, text: str, kind: DataType, what: str) -> object:
    """Convert a text to a value of type ``kind``. Raises InvalidInputError if the text is not exactly a value.

    Args:
        column: the name of the column, for messages.
        text: a text such as "7", "a" or "2026-01-31"; an instant needs its zone, "2026-01-31 10:00:00Z".
        kind: the type of the column.
        what: the option or argument with the text, for messages.
    """
    wrong = f"{what}: {text!r} is not a value of column {column!r}, a {kind}"
    if not isinstance(kind, AtomicType):
        raise InvalidInputError(wrong)
    if kind.root in TEXT_ROOTS:
        return text
    try:
        value = _of_time(column, text, kind) if kind.root in (*TIME_ROOTS, "DATE") else _of_number(text, kind)
    except (InvalidInputError, ValueError, ArithmeticError) as error:
        raise InvalidInputError(wrong) from error
    if value is None:
        raise InvalidInputError(wrong)
    return value


def _of_time(column: str, text: str, kind: AtomicType) -> object:
    """Return the time of a text, or Arrow's integer for a time that Python does not have. `None`: no exact value."""
    padded = _SHORT_DATE.sub(lambda date: f"{int(date[1]):04}-{int(date[2]):02}-{int(date[3]):02}", text, count=1)
    if kind.root == "TIMESTAMP_LTZ" and not re.search(r"(Z|[+-]\d\d:\d\d)$", padded):
        raise InvalidInputError("an instant needs its zone, such as Z or +01:00")
    number = kind.root in ("DATE", "TIME") and text.isascii() and text.isdecimal()  # as directories spell them
    fitted = fit(int(text) if number else padded, kind, column)
    if not fitted.exact or fitted.beyond:
        return None
    arrow_type = to_arrow(kind)
    ticks = pa.array([fitted.floor], pa.int32() if kind.root in ("DATE", "TIME") else pa.int64())
    try:
        return ticks.view(arrow_type)[0].as_py()
    except (ValueError, OverflowError):
        return fitted.floor


def _of_number(text: str, kind: AtomicType) -> object:
    """Return the number, the boolean or the bytes of a text. `None`: no exact value."""
    root = kind.root
    if root in INTEGER_ROOTS and _INTEGER.fullmatch(text) is None:
        return None
    if root in ("FLOAT", "DOUBLE"):
        infinity = _INFINITY.fullmatch(text)
        if infinity is not None:
            return -math.inf if infinity[1] == "-" else math.inf
        text = "NaN" if text.lower() == "nan" else text
    value = cast_array(pa.array([text]), STRING, kind)[0].as_py()
    if root in ("FLOAT", "DOUBLE") and value is not None:
        overflows, underflows = math.isinf(value), value == 0 and re.match(r"[+-]?[0.]*[1-9]", text)
        return None if overflows or underflows else value
    if root == "DECIMAL" and value is not None:
        return value if value == type(value)(text) else None
    return value
