"""Predicates as frozen values, built with ``col`` or parsed from text.

Truth is SQL's, of three values: a comparison with NULL is unknown, and a filter keeps a row only if it is true. A leaf
of ``in`` without values is false for every value (and unknown for NULL); ``not in`` without values is its opposite.
"""

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "<=>")
OPS = (*COMPARISONS, "in", "not in", "is null", "is not null", "starts with", "ends with", "contains")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_KEYWORDS = {
    "and", "or", "not", "in", "is", "null", "like", "between", "true", "false", "unknown", "date", "timestamp", "x",
    "escape",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Predicate:
    """Root of all predicates; ``&``, ``|`` and ``~`` combine them."""

    def __and__(self, other: "Predicate") -> "Predicate":
        return And((self, other))

    def __or__(self, other: "Predicate") -> "Predicate":
        return Or((self, other))

    def __invert__(self) -> "Predicate":
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError("a predicate is neither true nor false by itself: combine with & | ~ instead of and, or, not")


@dataclass(frozen=True, slots=True)
class Constant(Predicate):
    """True, false or unknown for every row."""

    value: bool | None

    def __str__(self) -> str:
        return "UNKNOWN" if self.value is None else str(self.value).upper()


TRUE, FALSE, UNKNOWN = Constant(True), Constant(False), Constant(None)


@dataclass(frozen=True, slots=True)
class And(Predicate):
    """True where all children are."""

    children: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " AND ".join(_nested(c, (Or, And)) for c in self.children)


@dataclass(frozen=True, slots=True)
class Or(Predicate):
    """True where one child is."""

    children: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " OR ".join(_nested(c, (Or,)) for c in self.children)


@dataclass(frozen=True, slots=True)
class Not(Predicate):
    """True where the child is false."""

    child: Predicate

    def __str__(self) -> str:
        return f"NOT ({self.child})"


@dataclass(frozen=True, slots=True)
class Leaf(Predicate):
    """One test of one column; ``op`` is one of OPS, ``values`` its literals."""

    op: str
    column: str
    values: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise ValueError(f"unknown operator {self.op!r}: one of {OPS}")

    def __str__(self) -> str:
        name = quoted(self.column)
        if self.op in ("is null", "is not null"):
            return f"{name} {self.op.upper()}"
        if self.op in ("in", "not in"):
            return f"{name} {self.op.upper()} ({', '.join(map(literal_text, self.values))})"
        if self.op in ("starts with", "ends with", "contains"):
            pattern = re.sub(r"([\\%_])", r"\\\1", str(self.values[0]))
            before = "" if self.op == "starts with" else "%"
            after = "" if self.op == "ends with" else "%"
            return f"{name} LIKE {literal_text(before + pattern + after)}"
        return f"{name} {self.op} {literal_text(self.values[0])}"


def _nested(p: Predicate, wrapped: tuple[type, ...]) -> str:
    return f"({p})" if isinstance(p, wrapped) else str(p)


def quoted(name: str) -> str:
    """A column name as text that parses back to it."""
    if _PLAIN.fullmatch(name) and name.lower() not in _KEYWORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def literal_text(value: Any) -> str:
    """A literal as text that parses back to it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case float():
            return repr(value) if value - value == 0 else f"'{value}'"
        case Decimal():
            return f"{value:f}" if "." in f"{value:f}" else f"{value:f}."
    return str(value)


class Column:
    """A column to compare: ``col("a") > 1``, ``col("b").isin(["x", "y"])``."""

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
        """Equal to one of the values."""
        return self._leaf("in", *values)

    def between(self, low: Any, high: Any) -> And:
        """From ``low`` to ``high``, both included."""
        return And((self >= low, self <= high))

    def is_null(self) -> Leaf:
        """NULL."""
        return self._leaf("is null")

    def is_not_null(self) -> Leaf:
        """Not NULL."""
        return self._leaf("is not null")

    def eq_null_safe(self, value: Any) -> Leaf:
        """Equal, NULL being equal to NULL; never unknown."""
        return self._leaf("<=>", value)

    def startswith(self, prefix: str) -> Leaf:
        """Text that begins with ``prefix``."""
        return self._leaf("starts with", prefix)

    def endswith(self, suffix: str) -> Leaf:
        """Text that ends with ``suffix``."""
        return self._leaf("ends with", suffix)

    def contains(self, part: str) -> Leaf:
        """Text that has ``part`` in it."""
        return self._leaf("contains", part)


def col(name: str) -> Column:
    """The column of that name, to build predicates with."""
    return Column(name)


def conjunction(parts: Sequence[Predicate]) -> Predicate | None:
    """All of the parts; None without any."""
    return None if not parts else parts[0] if len(parts) == 1 else And(tuple(parts))
