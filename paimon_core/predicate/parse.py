"""Parsing of filters from text, in a subset of SQL.

``a > 1 AND (b IN ('x', 'y') OR c IS NULL) AND NOT d LIKE 'abc%' AND e BETWEEN DATE '2026-01-01' AND DATE '2026-02-01'``

Literals: ``5``, ``1.5`` (exact), ``1.5e0`` (DOUBLE), ``'text'``, ``"text"``, ``X'00ff'``, TRUE, FALSE, NULL,
``DATE '...'``, ``TIME '...'``, ``TIMESTAMP '...'``, ``DOUBLE 'NaN'``. ``a.b`` is the field ``b`` of the struct ``a``.
A name that is a keyword or contains a dot needs backticks. A column without a comparison means ``= TRUE``. LIKE takes %
at the ends of its pattern; a backslash makes the next character literal. In place of a column,
``variant_get(v, '$.a', 'INT')`` is the value at a path of a variant; ``try_variant_get`` is NULL where that raises.
"""

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

from paimon_core.errors import InvalidInputError
from paimon_core.predicate.expr import (
    FALSE,
    TRUE,
    TRY_VARIANT_GET,
    UNKNOWN,
    VARIANT_GET,
    And,
    FieldPath,
    Leaf,
    Not,
    Or,
    Predicate,
    VariantPath,
    path_of,
)

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<hex>[xX]'(?:[0-9a-fA-F]{2})*')
  | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
  | (?P<path>(?:`(?:[^`]|``)+`|[^\W\d]\w*)(?:\.(?:`(?:[^`]|``)+`|[^\W\d]\w*))+)
  | (?P<name>`(?:[^`]|``)+`)
  | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<word>[^\W\d]\w*)
  | (?P<sign><=>|<>|!=|==|<=|>=|<|>|=|\(|\)|,)
  | (?P<bad>\S)
    )""",
    re.VERBOSE,
)
_COMPARISONS = {"==": "=", "<>": "!=", **{op: op for op in ("=", "!=", "<", "<=", ">", ">=", "<=>")}}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CONSTANTS = {"true": TRUE, "false": FALSE, "unknown": UNKNOWN}
_FUNCTIONS = {VARIANT_GET: True, TRY_VARIANT_GET: False}
"""The functions of variants, each with True if it raises for a value of another type."""
_WORDS = {"true": True, "false": False, "null": None}
_RESERVED = frozenset({"and", "or", "not", "in", "is", "like", "between", *_WORDS})
_MAX_DEPTH = 100
"""The maximum depth of nested parentheses and NOTs; the limit protects Python's stack."""


def parse_predicate(text: str) -> Predicate:
    """Parse a filter without checking the names of columns. ``parse_predicate(str(p)) == p``.

    Raises InvalidInputError, naming the position of the error in the text.
    """
    parser = _Parser(text)
    predicate = parser.disjunction()
    parser.end()
    return predicate


def variant_path_of(text: str) -> VariantPath | None:
    """Return the values that a text such as ``variant_get(v, '$.a', 'INT')`` names; `None`: no call of a function.

    Raises InvalidInputError for a call with other arguments.
    """
    parser = _Parser(text, "the column")
    if not parser.at_function():
        return None
    values = parser.values_of_variants()
    parser.end()
    return values


class _Parser:
    """A recursive-descent parser: one pass over the tokens, one method per grammar rule."""

    def __init__(self, text: str, what: str = "the filter") -> None:
        self._text, self._what = text, what
        matches = ((m.lastgroup or "", m) for m in _TOKEN.finditer(text))
        self._tokens = [(kind, m[kind], m.start(kind)) for kind, m in matches if kind]
        self._at = 0
        self._depth = 0

    def disjunction(self) -> Predicate:
        return self._joined("or", Or, lambda: self._joined("and", And, self._negation))

    def _joined(
        self, word: str, make: Callable[[tuple[Predicate, ...]], Predicate], part: Callable[[], Predicate]
    ) -> Predicate:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else make(tuple(parts))

    def _negation(self) -> Predicate:
        negated = self._take("not")
        if not negated and not self._take("("):
            return self._constant_or_test()
        if self._depth == _MAX_DEPTH:
            self._fail(f"more than {_MAX_DEPTH} nested parentheses and NOTs")
        self._depth += 1
        inner = self._negation() if negated else self.disjunction()
        self._depth -= 1
        if negated:
            return Not(inner)
        self._need(")")
        return inner

    def _constant_or_test(self) -> Predicate:
        word = self._word()
        if self._token(1)[1].lower() in ("", "and", "or", ")"):
            if word in _CONSTANTS:
                self._at += 1
                return _CONSTANTS[word]
            if word not in _RESERVED and self._token()[0] in ("word", "name", "path"):
                return Leaf("=", self._column(), (True,))
        if self.at_function():
            values = self.values_of_variants()
            is_test = self._token()[1].lower() not in ("", "and", "or", ")")
            return self._test(values) if is_test else Leaf("=", values, (True,))
        if self._at_literal():
            value = self._literal()
            op = self._comparison()
            return Leaf(_FLIPPED.get(op, op), self._column(), (value,))
        return self._test(self._column())

    def _test(self, column: str) -> Predicate:
        if self._take("is"):
            negated = self._take("not")
            self._need("null")
            return Leaf("is not null" if negated else "is null", column)
        negated = self._take("not")
        if self._take("in"):
            return Leaf("not in" if negated else "in", column, self._list())
        if self._take("between"):
            low = self._literal()
            self._need("and")
            test: Predicate = And((Leaf(">=", column, (low,)), Leaf("<=", column, (self._literal(),))))
        elif self._take("like"):
            test = self._like(column)
        elif negated:
            self._fail("expected IN, BETWEEN or LIKE after NOT")
        else:
            test = Leaf(self._comparison(), column, (self._literal(),))
        return Not(test) if negated else test

    def _comparison(self) -> str:
        kind, token, _ = self._token()
        if kind != "sign" or token not in _COMPARISONS:
            self._fail("functions cannot be evaluated here" if token == "(" else "expected a comparison")
        self._at += 1
        return _COMPARISONS[token]

    def _list(self) -> tuple[Any, ...]:
        self._need("(")
        if self._take(")"):
            return ()
        values = [self._literal()]
        while self._take(","):
            values.append(self._literal())
        self._need(")")
        return tuple(values)

    def _like(self, column: str) -> Leaf:
        kind, token, _ = self._token()
        pattern = _unquoted(token) if kind == "text" else ""
        parts = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
        if kind != "text" or len("".join(parts)) < len(pattern):
            self._fail("expected a pattern in quotes that does not end with a backslash")
        before, after = parts[:1] == ["%"], len(parts) > 1 and parts[-1] == "%"
        inner = parts[before : len(parts) - after]
        if "%" in inner or "_" in inner:
            self._fail(
                "LIKE takes % only at the start and the end of a pattern; write \\% and \\_ for these characters"
            )
        self._at += 1
        op = "contains" if before and after else "ends with" if before else "starts with" if after else "="
        return Leaf(op, column, ("".join(part[-1] for part in inner),))

    def at_function(self) -> bool:
        """Return True if a call of `variant_get` or `try_variant_get` comes next."""
        return self._word() in _FUNCTIONS and self._token(1)[1] == "("

    def values_of_variants(self) -> VariantPath:
        """Consume a call of a function: a column, a path, and perhaps a type."""
        strict = _FUNCTIONS[self._word()]
        self._at += 1
        self._need("(")
        if self.at_function():
            self._fail("expected the name of a column")
        column = self._column()
        self._need(",")
        path = self._quoted("a path such as '$.a'")
        kind = self._quoted("a type such as 'INT'") if self._take(",") else None
        self._need(")")
        return VariantPath(column.parts if isinstance(column, FieldPath) else (column,), path, kind, strict)

    def _quoted(self, what: str) -> str:
        kind, token, _ = self._token()
        if kind != "text":
            self._fail(f"expected {what}")
        self._at += 1
        return _unquoted(token)

    def _column(self) -> str:
        if self.at_function():
            return self.values_of_variants()
        kind, token, _ = self._token()
        if kind not in ("word", "name", "path") or self._word() in _RESERVED:
            self._fail("expected the name of a column")
        self._at += 1
        path = path_of(token) if kind == "path" else None
        if path is not None:
            return path
        return token[1:-1].replace("``", "`") if kind == "name" else token

    def _at_literal(self) -> bool:
        typed = self._word() in _TYPED and self._token(1)[0] == "text"
        return typed or self._word() in _WORDS or self._token()[0] in ("number", "text", "hex")

    def _literal(self) -> Any:
        kind, token, _ = self._token()
        if not self._at_literal():
            self._fail(
                "expected a literal: a number, 'text', TRUE, FALSE, NULL, X'00', DATE '...', TIME '...', "
                "TIMESTAMP '...' or DOUBLE '...'"
            )
        self._at += 1
        if kind == "text":
            return _unquoted(token)
        if kind == "hex":
            return bytes.fromhex(token[2:-1])
        if kind == "number":
            return _number(token)
        if token.lower() in _WORDS:
            return _WORDS[token.lower()]
        try:
            value = _TYPED[token.lower()](_unquoted(self._token()[1]))
        except ValueError as error:
            self._fail(f"not a {token.upper()} ({error})")
        self._at += 1
        return value

    def _token(self, ahead: int = 0) -> tuple[str, str, int]:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ("end", "", len(self._text))

    def _word(self) -> str:
        kind, token, _ = self._token()
        return token.lower() if kind == "word" else ""

    def _take(self, expected: str) -> bool:
        """Consume the next token and return True if it is this word or sign."""
        kind, token, _ = self._token()
        matches = kind in ("word", "sign") and token.lower() == expected
        self._at += matches
        return matches

    def _need(self, expected: str) -> None:
        if not self._take(expected):
            self._fail(f"expected {expected.upper()}")

    def end(self) -> None:
        if self._at < len(self._tokens):
            self._fail("expected AND, OR or the end")

    def _fail(self, why: str) -> NoReturn:
        _, token, at = self._token()
        where = f"at {token!r}, character {at + 1}" if token else "at its end"
        raise InvalidInputError(f"cannot parse {self._what} {self._text!r}: {why}, {where}")


def _unquoted(token: str) -> str:
    quote = token[:1]
    return token[1:-1].replace(quote * 2, quote)


def _number(token: str) -> int | float | Decimal:
    if re.fullmatch(r"[+-]?\d+", token):
        return int(token)
    return float(token) if "e" in token.lower() else Decimal(token)


def _timestamp(text: str) -> dt.datetime | str:
    """Return a datetime; for nanoseconds, the text, which `bind` parses by the column's type."""
    parts = re.fullmatch(r"(\S+?)(?:[ T](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?\s*(Z|[+-]\d\d:\d\d)?)?", text.strip())
    if parts is None:
        raise ValueError("write it as 2026-01-31 10:20:30.5")
    date, time, fraction, zone = parts.groups()
    if fraction and fraction[6:].strip("0"):
        return text.strip()
    zone = "+00:00" if zone == "Z" else zone or ""
    return dt.datetime.fromisoformat(
        f"{date} {time or '00:00'}{'.' + fraction[:6].ljust(6, '0') if fraction else ''}{zone}"
    )


def _time(text: str) -> dt.time:
    clock, _, fraction = text.strip().partition(".")
    return dt.time.fromisoformat(f"{clock}.{fraction.ljust(6, '0')}" if fraction else clock)


_TYPED: dict[str, Callable[[str], Any]] = {
    "date": dt.date.fromisoformat,
    "time": _time,
    "timestamp": _timestamp,
    "double": float,
}
