"""Random filters as SQL text, each with a plain model that says for a row what SQL says: true, false or unknown."""

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from paimon_core.types.datatype import AtomicType, DataField
from tests.conformance.values import plain

Row = dict[str, Any]
Verdict = Callable[[Row], bool | None]
_COMPARED = {
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "CHAR", "VARCHAR",
    "BINARY", "VARBINARY", "DATE", "TIMESTAMP",
}  # fmt: skip
_ORDERINGS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def draw(rng: Random, fields: Sequence[DataField], rows: Sequence[Row], depth: int = 2) -> tuple[str, Verdict]:
    """A filter over these columns with literals from (and near) the written rows given."""
    if depth and rng.random() < 0.5:
        joint = rng.choice(("AND", "OR", "NOT"))
        left, says_left = draw(rng, fields, rows, depth - 1)
        if joint == "NOT":
            return f"NOT ({left})", lambda row: _not(says_left(row))
        right, says_right = draw(rng, fields, rows, depth - 1)
        join = _and if joint == "AND" else _or
        return f"({left}) {joint} ({right})", lambda row: join(says_left(row), says_right(row))
    return _leaf(rng, rng.choice(fields), rows)


def _leaf(rng: Random, field: DataField, rows: Sequence[Row]) -> tuple[str, Verdict]:
    column = f"`{field.name}`"
    literals = [row[field.name] for row in rows if _usable(row[field.name], field)]
    if not _comparable(field) or not literals or rng.random() < 0.1:
        if rng.random() < 0.5:
            return f"{column} IS NULL", lambda row: row[field.name] is None
        return f"{column} IS NOT NULL", lambda row: row[field.name] is not None
    if rng.random() < 0.25:
        chosen = [rng.choice(literals) for _ in range(rng.randint(1, 4))]
        inside = rng.random() < 0.7
        text = f"{column} {'' if inside else 'NOT '}IN ({', '.join(_literal(v, field) for v in chosen)})"
        keys = [_equal_key(_key(v, field), field) for v in chosen]
        return text, _known(field, lambda v: (_equal_key(v, field) in keys) == inside)
    if field.type.root == "VARCHAR" and rng.random() < 0.3:
        return _like(rng, column, field, rng.choice(literals))
    symbol, limit = rng.choice(list(_ORDERINGS)), rng.choice(literals)
    ordered = _ORDERINGS[symbol]
    text = f"{column} {symbol} {_literal(limit, field)}"
    if symbol in ("=", "<>"):
        equal = _equal_key(_key(limit, field), field)
        return text, _known(field, lambda v: ordered(_equal_key(v, field), equal))
    bound = _key(limit, field)
    return text, _known(field, lambda v: ordered(v, bound))


def _like(rng: Random, column: str, field: DataField, text: str) -> tuple[str, Verdict]:
    part = "".join(c for c in text[: rng.randint(0, 3)] if c not in "%_\\")
    how = rng.choice(("starts", "ends", "contains"))
    pattern = {"starts": f"{part}%", "ends": f"%{part}", "contains": f"%{part}%"}[how]
    test = {"starts": str.startswith, "ends": str.endswith, "contains": str.__contains__}[how]
    return f"{column} LIKE {_quoted(pattern)}", _known(field, lambda v: test(v, part))


def _known(field: DataField, says: Callable[[Any], bool]) -> Verdict:
    """Unknown for NULL, else what ``says`` says of the value's place in its type's order."""
    return lambda row: None if row[field.name] is None else says(_key(row[field.name], field))


def _comparable(field: DataField) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root in _COMPARED


def _usable(value: Any, field: DataField) -> bool:
    """Literals SQL can write; zero is left out of floats, as engines differ on whether -0.0 is below it."""
    if value is None or not _comparable(field):
        return False
    if field.type.root in ("FLOAT", "DOUBLE"):
        return math.isfinite(float(value)) and float(value) != 0
    return not (isinstance(value, str) and "\x00" in value)


def _key(value: Any, field: DataField) -> Any:
    found = plain(value, field.type)
    if isinstance(found, float):
        return (1, 0.0) if math.isnan(found) else (0, found)
    return found


def _equal_key(key: Any, field: DataField) -> Any:
    """The key of a value where it is compared for equality: blanks at the end of CHAR values do not count."""
    return key.rstrip(" ") if field.type.root == "CHAR" else key


def _literal(value: Any, field: DataField) -> str:
    match field.type.root:
        case "BOOLEAN":
            return str(value).upper()
        case "CHAR" | "VARCHAR":
            return _quoted(value)
        case "BINARY" | "VARBINARY":
            return f"X'{value}'"
        case "DATE":
            return f"DATE '{value}'"
        case "TIMESTAMP":
            return f"TIMESTAMP '{value.replace('T', ' ')}'"
        case "FLOAT" | "DOUBLE":
            return repr(float(value))
    return str(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _not(verdict: bool | None) -> bool | None:
    return None if verdict is None else not verdict


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: bool | None, right: bool | None) -> bool | None:
    return _not(_and(_not(left), _not(right)))
