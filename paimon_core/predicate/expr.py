"""Predicates as frozen values, built with ``col`` or parsed from text.

They follow SQL's three-valued logic: a comparison with NULL is unknown, and NOT of unknown is unknown. A filter keeps a
row only if the predicate is true. ``in`` without values is false and ``not in`` without values is true, for NULL too.
"""

import datetime as dt
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from paimon_core.errors import InvalidInputError

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "<=>")
TEXT_TESTS = ("starts with", "ends with", "contains")
ZERO_TESTS = ("is zero", "is negative zero")
"""Tests for exactly 0.0 or -0.0, which are equal numbers but two partitions. Filter texts have no such tests."""
NULL_TESTS = ("is null", "is not null")
LISTS = ("in", "not in")
OPS = (*COMPARISONS, *LISTS, *NULL_TESTS, *TEXT_TESTS, *ZERO_TESTS)

KEYWORDS = frozenset(
    {"and", "or", "not", "in", "is", "null", "like", "between", "escape", "true", "false", "unknown"}
    | {"date", "time", "timestamp", "double", "x"}
)
"""Words that need backticks when they are column names."""

VARIANT_GET, TRY_VARIANT_GET = "variant_get", "try_variant_get"
"""The functions of filters and columns: the value at a path of a variant; the second one returns NULL, not an error."""

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


class FieldPath(str):
    """The path of a struct's field, as the column of a test. It equals no name of a column.

    ``parts``: the names of the column and of the fields, from the outside to the inside.
    """

    __slots__ = ("parts",)
    parts: tuple[str, ...]

    def __new__(cls, parts: Sequence[str]) -> "FieldPath":
        """Return the path with these parts."""
        path = super().__new__(cls, "\0" + "\0".join(parts))
        path.parts = tuple(parts)
        return path

    def __reduce__(self) -> tuple[type["FieldPath"], tuple[tuple[str, ...]]]:
        return FieldPath, (self.parts,)

    def __str__(self) -> str:
        return ".".join(map(quoted, self.parts))

    def __repr__(self) -> str:
        return repr(str(self))


class VariantPath(FieldPath):
    """The values at a path of variants, as the column of a test. It equals no name of a column.

    ``parts``: the names of the column, and of the fields of structs down to the one with the variants. ``path``: the
    path in the variants, such as ``$.a``. ``type``: the type of the values, as text; `None`: variants. ``strict``: True
    to raise for a value of another type, False for NULL.
    """

    __slots__ = ("path", "strict", "type")
    path: str
    type: str | None
    strict: bool

    def __new__(
        cls, parts: Sequence[str], path: str = "$", type: str | None = None, strict: bool = True
    ) -> "VariantPath":
        """Return the values at this path of these variants."""
        key = "\0\0" + "\0".join([*parts, path, "\0" if type is None else type, str(strict)])
        values = str.__new__(cls, key)
        values.parts, values.path, values.type, values.strict = tuple(parts), path, type, strict
        return values

    def __reduce__(self) -> Any:
        return VariantPath, (self.parts, self.path, self.type, self.strict)

    def __str__(self) -> str:
        name = quoted(self.parts[0]) if len(self.parts) == 1 else ".".join(map(quoted, self.parts))
        texts = [literal_text(text) for text in (self.path, self.type) if text is not None]
        return f"{VARIANT_GET if self.strict else TRY_VARIANT_GET}({', '.join([name, *texts])})"


def column_of(name: str) -> str:
    """Return the column of a test, which may be on a field of a struct, or on a path of variants."""
    return name.parts[0] if isinstance(name, FieldPath) else name


_PATH_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")


def unquoted(text: str) -> str:
    """Return the name of a column that is written in backticks; other texts are returned as they are."""
    match = _PATH_PART.fullmatch(text)
    return match[1].replace("``", "`") if match and match[1] else text


def path_of(text: str) -> FieldPath | None:
    """Return the path that a text such as ``a.b`` or ``a.`odd name``` names; `None`: the text is no path."""
    parts, at = [], 0
    while match := _PATH_PART.match(text, at):
        parts.append(match[2] or match[1].replace("``", "`"))
        at = match.end() + 1
        if text[match.end() : at] != ".":
            break
    return FieldPath(parts) if len(parts) > 1 and at == len(text) + 1 else None


@dataclass(frozen=True, slots=True)
class Predicate:
    """The base class of predicates. ``&``, ``|`` and ``~`` combine them; ``str`` returns a text that can be parsed."""

    def __and__(self, other: "Predicate") -> "Predicate":
        return And((*_members(And, self), *_members(And, other)))

    def __or__(self, other: "Predicate") -> "Predicate":
        return Or((*_members(Or, self), *_members(Or, other)))

    def __invert__(self) -> "Predicate":
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError("a predicate has no truth value: combine predicates with &, | and ~, not with and, or, not")


@dataclass(frozen=True, slots=True)
class Constant(Predicate):
    """A predicate with the same value for every row; `None`: unknown."""

    value: bool | None

    def __str__(self) -> str:
        return "UNKNOWN" if self.value is None else str(self.value).upper()


TRUE, FALSE, UNKNOWN = Constant(True), Constant(False), Constant(None)


@dataclass(frozen=True, slots=True)
class And(Predicate):
    """A predicate that is true if all children are true. REQUIRES: at least one child."""

    children: tuple[Predicate, ...]

    def __post_init__(self) -> None:
        _check_children(self.children)

    def __str__(self) -> str:
        return " AND ".join(f"({c})" if isinstance(c, And | Or) else str(c) for c in self.children)


@dataclass(frozen=True, slots=True)
class Or(Predicate):
    """A predicate that is true if any child is true. REQUIRES: at least one child."""

    children: tuple[Predicate, ...]

    def __post_init__(self) -> None:
        _check_children(self.children)

    def __str__(self) -> str:
        return " OR ".join(f"({c})" if isinstance(c, Or) else str(c) for c in self.children)


@dataclass(frozen=True, slots=True)
class Not(Predicate):
    """A predicate that is true if the child is false."""

    child: Predicate

    def __str__(self) -> str:
        return f"NOT ({self.child})"


@dataclass(frozen=True, slots=True)
class Leaf(Predicate):
    """One test of one column, or of a field of a struct or a path of variants, whose ``column`` is a `FieldPath`.

    ``op`` is one of `OPS`. ``values`` are its literals: any number for `LISTS`, none for tests of NULL and zero, else
    one.
    """

    op: str
    column: str
    values: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise InvalidInputError(f"unknown operator {self.op!r} in a filter; choose one of {', '.join(OPS)}")
        count = len(self.values) if self.op in LISTS else 0 if self.op in (*NULL_TESTS, *ZERO_TESTS) else 1
        if len(self.values) != count:
            raise InvalidInputError(f"operator {self.op!r} takes {count} literals, not {len(self.values)}")
        object.__setattr__(self, "values", tuple(map(_plain_value, self.values)))
        if self.op in ("ends with", "contains") and self.values == ("",):
            object.__setattr__(self, "op", "starts with")  # these tests are equivalent and have the same text

    def __str__(self) -> str:
        name = quoted(self.column)
        if self.op in (*NULL_TESTS, *ZERO_TESTS):
            return f"{name} {self.op.upper()}"
        if self.op in LISTS:
            return f"{name} {self.op.upper()} ({', '.join(map(literal_text, self.values))})"
        if self.op in TEXT_TESTS:
            pattern = re.sub(r"([\\%_])", r"\\\1", str(self.values[0]))
            before = "" if self.op == "starts with" else "%"
            after = "" if self.op == "ends with" else "%"
            return f"{name} LIKE {literal_text(before + pattern + after)}"
        return f"{name} {self.op} {literal_text(self.values[0])}"


def is_value(column: str, value: Any) -> Predicate:
    """Return a test for one exact partition value: NULL is a value, and -0.0 differs from 0.0."""
    if value is None:
        return Leaf("is null", column)
    if isinstance(value, float | np.floating) and value == 0:
        return Leaf("is negative zero" if math.copysign(1, value) < 0 else "is zero", column)
    return Leaf("=", column, (value,))


def _members(kind: type[And] | type[Or], p: Predicate) -> tuple[Predicate, ...]:
    """Return the children of ``p`` if ``p`` is of this kind, else ``p`` alone, so that chains stay flat."""
    if not isinstance(p, Predicate):
        raise TypeError(f"{p!r} is not a predicate: put each comparison in parentheses, because & and | bind tighter")
    return p.children if isinstance(p, kind) else (p,)


def _check_children(children: tuple[Predicate, ...]) -> None:
    if not children:
        raise InvalidInputError("AND and OR need at least one child: use TRUE or FALSE instead")


def _plain_value(value: Any) -> Any:
    """Return numpy numbers as Python numbers, and every NaN as one object, so that equal predicates compare equal."""
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if isinstance(value, float | Decimal) and math.isnan(value):
        return math.nan
    return float(value) if isinstance(value, Decimal) and value.is_infinite() else value


def conjunction(parts: Sequence[Predicate]) -> Predicate | None:
    """Return the AND of the parts; `None` if there are no parts."""
    return None if not parts else parts[0] if len(parts) == 1 else And(tuple(parts))


def disjunction(parts: Sequence[Predicate]) -> Predicate | None:
    """Return the OR of the parts; `None` if there are no parts."""
    return None if not parts else parts[0] if len(parts) == 1 else Or(tuple(parts))


def quoted(name: str) -> str:
    """Return a column name, or a path, as it appears in a filter text, in backticks if necessary."""
    if isinstance(name, FieldPath):
        return str(name)
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def literal_text(value: Any) -> str:
    """Return a literal as a text that the parser turns into an equal value."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes() | bytearray():
            return f"X'{value.hex()}'"
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case dt.time():
            return f"TIME '{value.isoformat()}'"
        case float():
            return _float_text(value)
        case Decimal():
            text = f"{value:f}"
            return text if "." in text else text + "."
    return str(value)


def _float_text(value: float) -> str:
    """Return the text of a DOUBLE: an exponent distinguishes it from a DECIMAL."""
    if not math.isfinite(value):
        return f"DOUBLE '{value}'"
    text = repr(value)
    return text if "e" in text else f"{text}e0"


class Column:
    """A column to compare: ``col("a") > 1``, ``col("b").isin(["x", "y"])``."""

    __slots__ = ("_name",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self._name = name

    def _leaf(self, op: str, *values: Any) -> Leaf:
        return Leaf(op, self._name, values)

    def __eq__(self, other: object) -> Leaf:  # type: ignore[override]
        return self._leaf("=", other)

    def __ne__(self, other: object) -> Leaf:  # type: ignore[override]
        return self._leaf("!=", other)

    def __lt__(self, other: Any) -> Leaf:
        return self._leaf("<", other)

    def __le__(self, other: Any) -> Leaf:
        return self._leaf("<=", other)

    def __gt__(self, other: Any) -> Leaf:
        return self._leaf(">", other)

    def __ge__(self, other: Any) -> Leaf:
        return self._leaf(">=", other)

    def isin(self, values: Iterable[Any]) -> Leaf:
        """Return the test for equality with one of the values."""
        return self._leaf("in", *values)

    def between(self, low: Any, high: Any) -> And:
        """Return the test for values from ``low`` to ``high``, both included."""
        return And((self >= low, self <= high))

    def is_null(self) -> Leaf:
        """Return the test for NULL."""
        return self._leaf("is null")

    def is_not_null(self) -> Leaf:
        """Return the test for values other than NULL."""
        return self._leaf("is not null")

    def eq_null_safe(self, value: Any) -> Leaf:
        """Return the test for equality in which NULL equals NULL; its result is never unknown."""
        return self._leaf("<=>", value)

    def startswith(self, prefix: str) -> Leaf:
        """Return the test for text that begins with ``prefix``."""
        return self._leaf("starts with", prefix)

    def endswith(self, suffix: str) -> Leaf:
        """Return the test for text that ends with ``suffix``."""
        return self._leaf("ends with", suffix)

    def contains(self, part: str) -> Leaf:
        """Return the test for text that contains ``part``."""
        return self._leaf("contains", part)

    def variant_get(self, path: str, type: str | None = None, *, strict: bool = True) -> "Column":
        """Return the values at a path of the column's variants, as `paimon_core.variant_get` computes them.

        Args:
            path: the path, such as ``$.user.name``.
            type: the type of the values, as text; `None`: variants, which can only be tested for NULL.
            strict: True to raise for a value of another type; False: NULL instead.
        """
        name = self._name
        return Column(VariantPath(name.parts if isinstance(name, FieldPath) else (name,), path, type, strict))


def col(name: str) -> Column:
    """Return the column with this name, for building predicates; ``a.b`` is a field of a struct if no column has it.

    Examples:
        >>> from paimon_core import Table, col
        >>> table = Table.open("/tmp/warehouse/shop.db/items")
        >>> filter = (col("id") > 1) & ~col("name").startswith("pen")
        >>> str(filter)
        "id > 1 AND NOT (name LIKE 'pen%')"
        >>> table.to_arrow(filter=filter).num_rows
        1
    """
    return Column(name)
