"""The text forms of values in system tables, as Paimon 2.0.0 prints them."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError, hide_secrets
from paimon_core.options.bucket import PARTITION_DEFAULT_NAME
from paimon_core.predicate.expr import Leaf, Or, Predicate, conjunction, disjunction
from paimon_core.predicate.rewrite import bind
from paimon_core.row.binary_row import internal_values
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import is_blank, partition_text
from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import (
    BINARY_ROOTS,
    INTEGER_ROOTS,
    STRING,
    TEXT_ROOTS,
    AtomicType,
    DataField,
    DataType,
)

_SECRET: Final = re.compile(r"(?i)secret|password|token|access[._-]?key|credential|signature")
_HIDDEN: Final = "******"
_NULL: Final = "null"
_WITHOUT_TEXT: Final = frozenset({"VARIANT", "BLOB", "GEOMETRY", "GEOGRAPHY"})


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options without passwords: hide each value whose key names a secret, and the user of a URL."""
    return {key: _HIDDEN if is_secret(key) else hide_secrets(value) for key, value in options.items()}


def is_secret(key: str) -> bool:
    """Return True if the value of an option is a secret, judged by its key."""
    return _SECRET.search(key) is not None


def iso_duration(age: timedelta) -> str:
    """Return a duration in Java's notation: ``PT48H``, ``PT1H30M``, ``PT1.5S``, ``PT0S``."""
    micros = age // timedelta(microseconds=1)
    seconds, fraction = divmod(micros, 1_000_000)
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    second = f"{seconds % 60}.{fraction:06}".rstrip("0").rstrip(".")
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else "", "" if second == "0" else f"{second}S"]
    return "PT" + ("".join(parts) or "0S")


# ---- partitions


def partition_texts(
    store: FileStore, partitions: Sequence[bytes], *, legacy: bool = False
) -> list[tuple[str | None, ...]]:
    """Return the values of serialised partitions, or of their bounds, as texts; ``legacy``: see `partition_text`."""
    fields = store.schema.partition_fields
    if not fields:
        return [()] * len(partitions)
    columns = [
        [None if value is None else partition_text(value, field, legacy=legacy) for value in values]
        for field, values in zip(fields, internal_values(partitions, store.schema.partition_arrow), strict=True)
    ]
    return list(zip(*columns, strict=True))


def braced_all(store: FileStore, partitions: Sequence[bytes]) -> list[str]:
    """Return each partition as ``{v1, v2}``; ``{}`` for an unpartitioned table."""
    rows = partition_texts(store, partitions)
    return ["{" + ", ".join([_NULL if text is None else text for text in texts]) + "}" for texts in rows]


def named_all(store: FileStore, partitions: Sequence[bytes], *, legacy: bool = False) -> list[str]:
    """Return each partition as ``k1=v1/k2=v2``, with blank values as NULL; empty for an unpartitioned table."""
    default, keys = store.options.value(PARTITION_DEFAULT_NAME), store.schema.partition_keys
    rows = partition_texts(store, partitions, legacy=legacy)
    return [
        "/".join(
            [
                f"{key}={default if text is None or is_blank(text) else text}"
                for key, text in zip(keys, texts, strict=True)
            ]
        )
        for texts in rows
    ]


def braced_predicate(store: FileStore, texts: Sequence[str] | None) -> Predicate | None:
    """Return a bound predicate that is true for each partition whose text from `braced_all` is one of these.

    It may be true for other partitions, too. `None`: every partition may have one of the texts.
    """
    keys = store.schema.partition_keys

    def parts(text: str) -> list[str] | None:
        inner = text[1:-1]
        values = [inner] if len(keys) == 1 else inner.split(", ")
        return values if text[:1] + text[-1:] == "{}" and len(values) == len(keys) else None

    return _predicate(store, None if texts is None else [parts(text) for text in texts], _NULL)


def named_predicate(store: FileStore, texts: Sequence[str] | None) -> Predicate | None:
    """Return a bound predicate that is true for each partition whose text from `named_all` is one of these.

    It may be true for other partitions, too. `None`: every partition may have one of the texts.
    """
    keys = store.schema.partition_keys

    def parts(text: str) -> list[str] | None:
        parts_ = [text] if len(keys) == 1 else text.split("/")
        if len(parts_) != len(keys) or not all(t.startswith(f"{k}=") for t, k in zip(parts_, keys, strict=True)):
            return None
        return [t[len(k) + 1 :] for t, k in zip(parts_, keys, strict=True)]

    default = str(store.options.value(PARTITION_DEFAULT_NAME))
    if texts is None or any(default in text for text in texts):  # blank values also have the default name
        return None
    return _predicate(store, [parts(text) for text in texts], default)


def _predicate(store: FileStore, partitions: Sequence[Sequence[str] | None] | None, null: str) -> Predicate | None:
    fields = store.schema.partition_fields
    if not partitions or not fields:
        return None
    alternatives: list[Predicate] = []
    for texts in partitions:
        if texts is None:
            return None
        tests = [_test(field, text, null) for field, text in zip(fields, texts, strict=True)]
        conjunct = conjunction([test for test in tests if test is not None])
        if conjunct is None:
            return None
        alternatives.append(conjunct)
    result = disjunction(alternatives)
    try:
        return None if result is None else bind(result, fields)
    except InvalidInputError:  # a text that is not a value of the column
        return None


def _test(field: DataField, text: str, null: str) -> Predicate | None:
    """Return the test of one partition column; `None` if the texts of its type do not determine the values."""
    root = field.type.root if isinstance(field.type, AtomicType) else ""
    tests: list[Predicate] = [Leaf("is null", field.name)] if text == null else []
    try:
        if root in INTEGER_ROOTS:
            tests += [] if text == null else [Leaf("=", field.name, (int(text),))]
        elif root == "DECIMAL":
            tests += [] if text == null else [Leaf("=", field.name, (Decimal(text),))]
        elif root == "BOOLEAN":
            tests += [] if text == null else [Leaf("=", field.name, (text == "true",))]
        elif root in TEXT_ROOTS:
            tests.append(Leaf("=", field.name, (text,)))
        elif root == "DATE":
            tests += [] if text == null else [Leaf("=", field.name, (text,))]
        else:
            return None
    except (ValueError, InvalidOperation):
        return None
    return Or(tuple(tests)) if len(tests) > 1 else tests[0]


# ---- columns of values


def object_text(array: pa.Array, kind: DataType) -> pa.Array:
    """Return values as Java's objects print them; null stays null.

    A date is the number of days since 1970, a time of day its milliseconds, a timestamp ``2024-01-31T12:00:00.500``
    without trailing zero seconds; bytes are hexadecimal. Values of types without an order have no text.
    """
    if not isinstance(kind, AtomicType) or kind.root in _WITHOUT_TEXT:
        return pa.nulls(len(array), pa.string())
    if kind.root == "DATE":
        return array.view(pa.int32()).cast(pa.string())
    if kind.root == "TIME":
        return _millis_of_day(array).cast(pa.string())
    if kind.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return _instant_text(array)
    if kind.root in BINARY_ROOTS:
        return pa.array([None if v is None else v.hex() for v in array.to_pylist()], pa.string())
    return cast_array(array, kind, STRING)


def _millis_of_day(array: pa.Array) -> pa.Array:
    if pa.types.is_time32(array.type):
        return array.view(pa.int32())
    divisor = {"us": 1_000, "ns": 1_000_000}[array.type.unit]
    return pc.divide(array.view(pa.int64()), divisor)


def _instant_text(array: pa.Array) -> pa.Array:
    """Return the shortest ISO text: without seconds if they are 0, else with 0, 3, 6 or 9 fractional digits."""
    naive = array.view(pa.int64()).view(pa.timestamp(array.type.unit))
    text = pc.replace_substring(naive.cast(pa.string()), " ", "T")
    text = pc.replace_substring_regex(text, r"\.(\d{3})(?:000|000000)$", r".\1")
    text = pc.replace_substring_regex(text, r"\.(\d{6})000$", r".\1")
    text = pc.replace_substring_regex(text, r"\.000$", "")
    return pc.replace_substring_regex(text, r"(T\d\d:\d\d):00$", r"\1")


def braced_columns(names: Sequence[str], texts: Sequence[pa.Array], rows: int) -> pa.Array:
    """Return a text like ``{a=1, b=null}`` for each row, with the columns sorted by name."""
    return _joined("{", [(f"{name}=", texts[i]) for name, i in _by_name(names)], "}", rows)


def bracketed(texts: Sequence[pa.Array], rows: int) -> pa.Array:
    """Return a text like ``[1, a]`` for each row."""
    return _joined("[", [("", text) for text in texts], "]", rows)


def _by_name(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return the names with their positions, in Java's order: by UTF-16 code units."""
    return sorted(((name, i) for i, name in enumerate(names)), key=lambda pair: pair[0].encode("utf-16-be"))


def _joined(start: str, items: Sequence[tuple[str, pa.Array]], end: str, rows: int) -> pa.Array:
    if not items:
        return pa.repeat(pa.scalar(start + end, pa.string()), rows)
    parts: list[Any] = []
    for number, (label, text) in enumerate(items):
        parts += [f"{start if number == 0 else ', '}{label}", pc.fill_null(text, _NULL)]
    return pc.binary_join_element_wise(*parts, end, "")
