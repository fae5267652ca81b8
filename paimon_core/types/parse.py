"""The text and JSON forms of types (format 3.4).

Schema files hold an atomic type as text (``"DECIMAL(10, 2) NOT NULL"``). A constructed type is an object whose ``type``
is its name and nullability, or SQL text (``ROW<a INT, b ARRAY<STRING>> NOT NULL``). Keywords are
case-insensitive, names of row fields are not.
"""

import re
from collections.abc import Mapping
from typing import Any

from paimon_core.errors import InvalidInputError
from paimon_core.types.datatype import (
    MAX_LENGTH,
    NO_ID,
    ROOTS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    with_nullable,
)
from paimon_core.types.json_text import optional_text

_TOKEN = re.compile(
    r"\s*(?:(?P<name>`(?:[^`]|``)*`)|(?P<text>'(?:[^']|'')*')|(?P<word>[^\s<>(),`']+)|(?P<symbol>[<>(),]))",
)

_ALIASES = {"INTEGER": "INT", "DEC": "DECIMAL", "NUMERIC": "DECIMAL"}
_CLOSING = {"<": ">", "(": ")"}


def parse_type(text_or_json: str | Mapping[str, Any]) -> DataType:
    """Return the type of a JSON form or a text; a nested field without an id gets -1.

    Raises InvalidInputError, which quotes the text and the position of the error.
    """
    if isinstance(text_or_json, str):
        return _TypeParser(text_or_json).whole()
    if not isinstance(text_or_json, Mapping) or not isinstance(text_or_json.get("type"), str):
        raise InvalidInputError(f"a type is a text or an object with a text 'type', not {text_or_json!r}")
    return _from_object(text_or_json)


def _from_object(json: Mapping[str, Any]) -> DataType:
    root, *suffix = json["type"].upper().split() or [""]
    nullable = suffix != ["NOT", "NULL"]
    try:
        match root:
            case "ARRAY":
                return ArrayType(parse_type(json["element"]), nullable)
            case "MULTISET":
                return MultisetType(parse_type(json["element"]), nullable)
            case "MAP":
                return MapType(parse_type(json["key"]), parse_type(json["value"]), nullable)
            case "ROW":
                return RowType(tuple(field_from_json(field) for field in json["fields"]), nullable)
            case "VECTOR":
                return VectorType(parse_type(json["element"]), int(json["length"]), nullable)
            case _:
                return parse_type(json["type"])
    except KeyError as missing:
        raise InvalidInputError(f"type {json['type']!r} lacks {missing}: {dict(json)!r}") from missing


def type_to_json(t: DataType) -> str | dict[str, Any]:
    """Return the JSON form of a type in schema files."""
    if isinstance(t, AtomicType):
        return str(t)
    suffix = "" if t.nullable else " NOT NULL"
    match t:
        case ArrayType(element):
            return {"type": "ARRAY" + suffix, "element": type_to_json(element)}
        case MultisetType(element):
            return {"type": "MULTISET" + suffix, "element": type_to_json(element)}
        case MapType(key, value):
            return {"type": "MAP" + suffix, "key": type_to_json(key), "value": type_to_json(value)}
        case RowType(fields):
            return {"type": "ROW" + suffix, "fields": [field_to_json(field) for field in fields]}
        case VectorType(element, length):
            return {"type": "VECTOR" + suffix, "element": type_to_json(element), "length": length}


def field_from_json(given: Mapping[str, Any]) -> DataField:
    """Return the field of a JSON object in a schema file; unknown keys and a null comment or default are ignored."""
    try:
        field_id, name, t = int(given.get("id", NO_ID)), given["name"], given["type"]
        if not isinstance(name, str):
            raise TypeError(name)
        description, default = (optional_text(given.get(key), key) for key in ("description", "defaultValue"))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidInputError(f"not a field object (id, name, type): {given!r}") from error
    return DataField(field_id, name, parse_type(t), description, default)


def field_to_json(field: DataField) -> dict[str, Any]:
    """Return the JSON object of a field in a schema file, with its comment and default if it has them."""
    result: dict[str, Any] = {"id": field.id, "name": field.name, "type": type_to_json(field.type)}
    if field.description is not None:
        result["description"] = field.description
    if field.default is not None:
        result["defaultValue"] = field.default
    return result


class _TypeParser:
    """A parser of a type text, which reads tokens from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []
        self._at = 0
        position, end = 0, len(text.rstrip())
        while position < end:
            token = _TOKEN.match(text, position)
            if token is None:
                raise InvalidInputError(f"type {text!r}: cannot read {text[position:]!r}")
            self._tokens.append((token.lastgroup or "", token[token.lastgroup or 0], token.start(token.lastgroup or 0)))
            position = token.end()

    def whole(self) -> DataType:
        """Return the type. Raises InvalidInputError if text follows the type."""
        t = self._type()
        if self._at < len(self._tokens):
            raise self._error("the end")
        return t

    def _error(self, expected: str) -> InvalidInputError:
        token = "the end" if self._at >= len(self._tokens) else repr(self._text[self._tokens[self._at][2] :])
        return InvalidInputError(f"type {self._text!r}: expected {expected}, found {token}")

    def _peek(self) -> str:
        if self._at >= len(self._tokens):
            return ""
        group, text, _ = self._tokens[self._at]
        return text.upper() if group in ("word", "symbol") else ""

    def _accept(self, *expected: str) -> bool:
        """Return True, and consume the tokens, if these keywords or symbols are next."""
        tokens = [(group, text.upper()) for group, text, _ in self._tokens[self._at : self._at + len(expected)]]
        if [text for group, text in tokens if group in ("word", "symbol")] != list(expected):
            return False
        self._at += len(expected)
        return True

    def _expect(self, symbol: str) -> None:
        if not self._accept(symbol):
            raise self._error(repr(symbol))

    def _type(self) -> DataType:
        word = self._peek()
        if not word or word in "<>(),":
            raise self._error("a type")
        self._at += 1
        t = self._constructed(word) if word in ("ARRAY", "MAP", "MULTISET", "ROW", "VECTOR") else self._atomic(word)
        if self._accept("NOT", "NULL"):
            return with_nullable(t, False)
        self._accept("NULL")
        return t

    def _constructed(self, word: str) -> DataType:
        opening = self._peek()
        if opening not in _CLOSING or (opening == "(" and word != "ROW"):
            raise self._error("'<'")
        self._at += 1
        t: DataType
        match word:
            case "ARRAY":
                t = ArrayType(self._type())
            case "MULTISET":
                t = MultisetType(self._type())
            case "MAP":
                key = self._type()
                self._expect(",")
                t = MapType(key, self._type())
            case "VECTOR":
                element = self._type()
                self._expect(",")
                t = VectorType(element, self._number())
            case _:
                t = RowType(self._fields(_CLOSING[opening]))
        self._expect(_CLOSING[opening])
        return t

    def _fields(self, closing: str) -> tuple[DataField, ...]:
        fields: list[DataField] = []
        while self._peek() != closing:
            if fields:
                self._expect(",")
            name, t = self._name(), self._type()
            fields.append(DataField(NO_ID, name, t, self._comment()))
        return tuple(fields)

    def _name(self) -> str:
        if self._at >= len(self._tokens) or self._tokens[self._at][0] not in ("name", "word"):
            raise self._error("a field name")
        group, text, _ = self._tokens[self._at]
        self._at += 1
        return text[1:-1].replace("``", "`") if group == "name" else text

    def _comment(self) -> str | None:
        self._accept("COMMENT")
        if self._at >= len(self._tokens) or self._tokens[self._at][0] != "text":
            return None
        self._at += 1
        return self._tokens[self._at - 1][1][1:-1].replace("''", "'")

    def _number(self) -> int:
        word = self._peek()
        if not (word.isascii() and word.isdigit()):
            raise self._error("a number")
        self._at += 1
        return int(word)

    def _arguments(self) -> list[str]:
        """Return the parameters between parentheses; empty: there are no parentheses."""
        arguments: list[str] = []
        if self._accept("("):
            while not arguments or self._accept(","):
                if self._at >= len(self._tokens) or self._tokens[self._at][0] != "word":
                    raise self._error("a parameter")
                arguments.append(self._tokens[self._at][1])
                self._at += 1
            self._expect(")")
        return arguments

    def _numbers(self, root: str, maximum: int) -> list[int]:
        start = self._at
        arguments = self._arguments()
        if len(arguments) > maximum or not all(text.isascii() and text.isdigit() for text in arguments):
            self._at = start
            raise self._error(f"at most {maximum} number(s) as parameters of {root}")
        return [int(text) for text in arguments]

    def _atomic(self, word: str) -> AtomicType:
        root = _ALIASES.get(word, word)
        match root:
            case "STRING":
                return AtomicType("VARCHAR", length=MAX_LENGTH)
            case "BYTES":
                return AtomicType("VARBINARY", length=MAX_LENGTH)
            case "CHAR" | "VARCHAR" | "BINARY" | "VARBINARY":
                return AtomicType(root, length=next(iter(self._numbers(root, 1)), None))
            case "DECIMAL":
                precision, scale = [*self._numbers(root, 2), None, None][:2]
                return AtomicType(root, precision=precision, scale=scale)
            case "TIME" | "TIMESTAMP" | "TIMESTAMP_LTZ":
                return self._temporal(root)
            case "GEOMETRY" | "GEOGRAPHY":
                return self._geo(root)
            case "DOUBLE":
                self._accept("PRECISION")
        if root not in ROOTS:
            self._at -= 1
            raise self._error(f"a type ({', '.join(sorted(ROOTS))}, STRING, BYTES, ARRAY, MAP, MULTISET, ROW, VECTOR)")
        return AtomicType(root)

    def _temporal(self, root: str) -> AtomicType:
        precision = next(iter(self._numbers(root, 1)), None)
        if root == "TIMESTAMP" and self._accept("WITH", "LOCAL", "TIME", "ZONE"):
            root = "TIMESTAMP_LTZ"
        elif root != "TIMESTAMP_LTZ":
            self._accept("WITHOUT", "TIME", "ZONE")
        return AtomicType(root, precision=precision)

    def _geo(self, root: str) -> AtomicType:
        arguments = self._arguments()
        if len(arguments) > (2 if root == "GEOGRAPHY" else 1):
            raise self._error(f"no further parameter of {root}")
        crs, algorithm = [*arguments, None, None][:2]
        return AtomicType(root, crs=crs, algorithm=algorithm)
