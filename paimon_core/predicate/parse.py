"""Filters written as text, in a small part of SQL.

``a > 1 AND (b IN ('x', 'y') OR c IS NULL) AND NOT d LIKE 'abc%' AND e BETWEEN DATE '2026-01-01' AND DATE '2026-02-01'``
"""

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

from paimon_core.errors import InvalidInputError
from paimon_core.predicate.expr import FALSE, TRUE, UNKNOWN, And, Leaf, Not, Or, Predicate

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<hex>[xX]'[0-9a-fA-F]*')
  | (?P<text>'(?:[^']|'')*')
  | (?P<name>`(?:[^`]|``)+`)
  | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<word>[^\W\d]\w*(?:\.[^\W\d]\w*)*)
  | (?P<sign><=>|<>|!=|==|<=|>=|<|>|=|\(|\)|,)
  | (?P<bad>\S)
    )""",
    re.VERBOSE,
)
_SIGNS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>"}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def parse_predicate(text: str) -> Predicate:
    """A filter from its text. Raises InvalidInputError that shows where the text stops making sense."""
    parser = _Parser(text)
    found = parser.disjunction()
    parser.end()
    return found


class _Parser:
    """One pass over the tokens, a method per rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [
            (m.lastgroup or "", m[m.lastgroup or 0], m.start(m.lastgroup or 0)) for m in _TOKEN.finditer(text)
        ]
        self._at = 0

    def disjunction(self) -> Predicate:
        return self._joined("or", Or, lambda: self._joined("and", And, self._negation))

    def _joined(
        self, word: str, make: Callable[[tuple[Predicate, ...]], Predicate], part: Callable[[], Predicate]
    ) -> Predicate:
        parts = [part()]
        while self._word(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else make(tuple(parts))

    def _negation(self) -> Predicate:
        if self._word("not"):
            return Not(self._negation())
        if self._sign("("):
            inner = self.disjunction()
            self._expect(")")
            return inner
        for word, constant in (("true", TRUE), ("false", FALSE), ("unknown", UNKNOWN)):
            if self._peek_word() == word and self._kind(1) != "sign":
                self._at += 1
                return constant
        return self._test()

    def _test(self) -> Predicate:
        if self._kind() in ("number", "text", "hex"):
            value = self._literal()
            op = self._comparison()
            return Leaf(_FLIPPED.get(op, op), self._column(), (value,))
        column = self._column()
        if self._word("is"):
            negated = self._word("not")
            self._need("null")
            return Leaf("is not null" if negated else "is null", column)
        negated = self._word("not")
        if self._word("in"):
            return Leaf("not in" if negated else "in", column, self._list())
        if self._word("between"):
            low = self._literal()
            self._need("and")
            between = And((Leaf(">=", column, (low,)), Leaf("<=", column, (self._literal(),))))
            return Not(between) if negated else between
        if self._word("like"):
            like = self._like(column, self._literal())
            return Not(like) if negated else like
        if negated:
            self._fail("expected IN, BETWEEN or LIKE after NOT")
        return Leaf(self._comparison(), column, (self._literal(),))

    def _comparison(self) -> str:
        kind, token, _ = self._token()
        if kind != "sign" or token not in _SIGNS:
            self._fail("expected a comparison")
        self._at += 1
        return _SIGNS[token]

    def _list(self) -> tuple[Any, ...]:
        self._expect("(")
        if self._sign(")"):
            return ()
        values = [self._literal()]
        while self._sign(","):
            values.append(self._literal())
        self._expect(")")
        return tuple(values)

    def _like(self, column: str, pattern: Any) -> Leaf:
        if not isinstance(pattern, str):
            self._fail("LIKE needs a text")
        parts = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
        wild = [p in ("%", "_") for p in parts]
        before, after = bool(parts) and parts[0] == "%", len(parts) > 1 and parts[-1] == "%"
        inner = wild[1 if before else 0 : len(parts) - 1 if after else len(parts)]
        if any(inner):
            self._fail("LIKE is supported with % at the beginning or the end only")
        literal = "".join(p[-1] for p, w in zip(parts, wild, strict=True) if not w)
        if before and after:
            return Leaf("contains", column, (literal,))
        if before:
            return Leaf("ends with", column, (literal,))
        return Leaf("starts with", column, (literal,)) if after else Leaf("=", column, (literal,))

    def _column(self) -> str:
        kind, token, _ = self._token()
        if kind not in ("word", "name"):
            self._fail("expected a column name")
        self._at += 1
        return token[1:-1].replace("``", "`") if kind == "name" else token

    def _literal(self) -> Any:
        kind, token, _ = self._token()
        self._at += 1
        if kind == "text":
            return token[1:-1].replace("''", "'")
        if kind == "hex":
            return bytes.fromhex(token[2:-1])
        if kind == "number":
            return _number(token)
        word = token.lower() if kind == "word" else ""
        if word in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[word]
        if word in ("date", "timestamp") and self._kind() == "text":
            moment = self._token()[1][1:-1]
            self._at += 1
            try:
                return dt.date.fromisoformat(moment) if word == "date" else dt.datetime.fromisoformat(moment)
            except ValueError:
                self._at -= 1
                self._fail(f"not a {word}")
        self._at -= 1
        return self._fail(
            "expected a literal: a number, 'text', TRUE, FALSE, NULL, DATE '...', TIMESTAMP '...' or X'...'"
        )

    def _token(self) -> tuple[str, str, int]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "", len(self._text))

    def _kind(self, ahead: int = 0) -> str:
        return self._tokens[self._at + ahead][0] if self._at + ahead < len(self._tokens) else "end"

    def _peek_word(self) -> str:
        kind, token, _ = self._token()
        return token.lower() if kind == "word" else ""

    def _word(self, word: str) -> bool:
        found = self._peek_word() == word
        self._at += found
        return found

    def _sign(self, sign: str) -> bool:
        found = self._token()[:2] == ("sign", sign)
        self._at += found
        return found

    def _need(self, word: str) -> None:
        if not self._word(word):
            self._fail(f"expected {word.upper()}")

    def _expect(self, sign: str) -> None:
        if not self._sign(sign):
            self._fail(f"expected {sign!r}")

    def end(self) -> None:
        if self._at < len(self._tokens):
            self._fail("expected the end of the filter")

    def _fail(self, why: str) -> NoReturn:
        _, token, at = self._token()
        raise InvalidInputError(
            f"cannot read the filter {self._text!r}: {why} at {token or 'its end'!r} (position {at})"
        )


def _number(token: str) -> int | float | Decimal:
    if re.fullmatch(r"[+-]?\d+", token):
        return int(token)
    return float(token) if "e" in token.lower() else Decimal(token.removesuffix("."))
