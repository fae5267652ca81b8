"""The row filters and column masks that a REST server answers, which are JSON texts of Java's predicates."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from paimon_core.catalog.identifier import Identifier
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.predicate.expr import FALSE, TRUE, And, Leaf, Or, Predicate, conjunction
from paimon_core.predicate.permissions import (
    CAST,
    COLUMN,
    CONCAT,
    CONCAT_WS,
    LIKE,
    LOWERCASE,
    NULL,
    UPPERCASE,
    Argument,
    Expression,
    Permissions,
)
from paimon_core.predicate.rewrite import bind
from paimon_core.types.cast import can_cast
from paimon_core.types.datatype import BOOLEAN, INTEGER_ROOTS, STRING, TEXT_ROOTS, DataField, DataType, with_nullable
from paimon_core.types.json_text import parse_json
from paimon_core.types.parse import parse_type

_COMPARISONS: Final = {
    "EQUAL": "=", "NOT_EQUAL": "!=", "LESS_THAN": "<", "LESS_OR_EQUAL": "<=", "GREATER_THAN": ">",
    "GREATER_OR_EQUAL": ">=", "STARTS_WITH": "starts with", "ENDS_WITH": "ends with", "CONTAINS": "contains",
}  # fmt: skip
_NULL_TESTS: Final = {"IS_NULL": "is null", "IS_NOT_NULL": "is not null"}
_TEXTS: Final = {"CONCAT": CONCAT, "CONCAT_WS": CONCAT_WS, "UPPER": UPPERCASE, "LOWER": LOWERCASE}
_NUMBERS: Final = (*INTEGER_ROOTS, "FLOAT", "DOUBLE")
_LITERALS: Final = {*_NUMBERS, *TEXT_ROOTS, "BOOLEAN"}
_MASKED_TYPES: Final = {*_LITERALS, "DECIMAL", "DATE"}


def permissions_of(answer: Mapping[str, Any], fields: Sequence[DataField], name: Identifier) -> Permissions:
    """Return the permissions in the answer of a server about a table, whose columns are ``fields``.

    Raises UnsupportedError for a rule that this engine cannot apply exactly. The message names the part that it does
    not know, but no literal of the rule.
    """
    parser = _Parser(fields, name)
    filters = [parser.predicate(_parsed(text, name)) for text in answer.get("filter") or () if text]
    masking = answer.get("columnMasking") or {}
    known = {field.name for field in fields}
    named = {column: text for column, text in sorted(masking.items()) if column and text}
    masks = tuple((one, parser.mask(one, _parsed(text, name))) for one, text in named.items() if one in known)
    used = {column for column, _ in masks} | parser.used
    row_filter = conjunction(filters)
    columns = tuple(field for field in fields if field.name in used)
    absent = frozenset(named) - known  # Java ignores these rules; an older schema may have the columns
    return Permissions(row_filter, tuple(parser.computed.items()), masks, columns, absent)


class _Parser:
    """A reader of the rules of one table. It collects the computed values and the columns of the rules."""

    def __init__(self, fields: Sequence[DataField], name: Identifier) -> None:
        self._fields, self._name = {field.name: field for field in fields}, name
        self.computed: dict[str, Expression] = {}
        self.used: set[str] = set()

    def predicate(self, node: Any) -> Predicate:
        """Return the predicate of a node of a row filter."""
        if not isinstance(node, dict):
            raise self._unknown("a rule that is no object")
        if node.get("kind") == "COMPOUND":
            children = tuple(map(self.predicate, node.get("children") or ()))
            kind = {"AND": And, "OR": Or}.get(str(node.get("function")))
            if kind is None or not children:
                raise self._unknown(f"the function {node.get('function')!r}")
            return kind(children)
        if node.get("kind") != "LEAF":
            raise self._unknown(f"the kind {node.get('kind')!r}")
        function, literals = str(node.get("function")), list(node.get("literals") or ())
        if function in ("TRUE", "FALSE"):
            return TRUE if function == "TRUE" else FALSE
        tested = self._tested(self._expression(node.get("transform")))
        return self._leaf(tested, function, literals)

    def mask(self, column: str, node: Any) -> Expression:
        """Return the mask of a column."""
        expression, target = self._expression(node), self._fields[column].type
        if expression.function == NULL:
            return Expression(NULL, (), target)
        made, wanted = expression.type, with_nullable(target, True)
        roots = {getattr(made, "root", ""), getattr(wanted, "root", "")}
        if not (roots <= TEXT_ROOTS or (with_nullable(made, True) == wanted and roots <= _MASKED_TYPES)):
            raise self._unknown(f"a mask of type {made} for column {column!r} of type {target}")
        return expression

    # ---- inside

    def _leaf(self, column: DataField, function: str, literals: Sequence[Any]) -> Predicate:
        if function in _NULL_TESTS:
            return Leaf(_NULL_TESTS[function], column.name)
        root = getattr(column.type, "root", "")
        if root not in _LITERALS:
            raise self._unknown(f"a literal of type {column.type}")
        values = [self._literal(value, root) for value in literals]
        if function in ("IN", "NOT_IN"):
            return self._bound(Leaf("in" if function == "IN" else "not in", column.name, tuple(values)), column)
        if len(values) != (2 if function.endswith("BETWEEN") else 1):
            raise self._unknown(f"the function {function!r} with {len(values)} literals")
        if None in values:
            return FALSE  # in Java a test with NULL is false, and no NOT is outside of a test
        if function in ("BETWEEN", "NOT_BETWEEN"):
            operators, joined = ((">=", "<="), And) if function == "BETWEEN" else (("<", ">"), Or)
            tests = [Leaf(op, column.name, (value,)) for op, value in zip(operators, values, strict=True)]
            return joined(tuple(self._bound(test, column) for test in tests))
        if function == "LIKE":
            return self._like(column, values[0])
        if function not in _COMPARISONS or (function.endswith(("WITH", "CONTAINS")) and root not in TEXT_ROOTS):
            raise self._unknown(f"the function {function!r} for type {column.type}")
        return self._bound(Leaf(_COMPARISONS[function], column.name, (values[0],)), column)

    def _bound(self, leaf: Leaf, column: DataField) -> Predicate:
        if leaf.op == "not in" and not leaf.values:
            return Leaf("is not null", leaf.column)
        if getattr(column.type, "root", "") in TEXT_ROOTS:
            return leaf  # texts are compared with all their blanks, as in Java
        return bind(leaf, (column,))

    def _like(self, column: DataField, pattern: Any) -> Predicate:
        if getattr(column.type, "root", "") not in TEXT_ROOTS or "_" in pattern or "\\" in pattern:
            raise self._unknown("LIKE with '_' or a backslash")
        tested = self._tested(Expression(LIKE, (column, pattern), BOOLEAN))
        return Leaf("=", tested.name, (True,))

    def _literal(self, value: Any, root: str) -> Any:
        """Return a literal as a value of the column's type."""
        if value is None:
            return None
        if root in TEXT_ROOTS:
            matches = isinstance(value, str)
        elif root == "BOOLEAN":
            matches = isinstance(value, bool)
        else:
            matches = isinstance(value, int | float) and not isinstance(value, bool)
        if not matches:
            raise self._unknown(f"a literal that is no value of type {root}")
        return float(np.float32(value)) if root == "FLOAT" else value

    def _tested(self, expression: Expression) -> DataField:
        """Return the column that a test is on: a stored one, or a computed one."""
        first = expression.arguments[0] if expression.arguments else None
        if expression.function == COLUMN and isinstance(first, DataField):
            return first
        name = f"\0computed {len(self.computed)}"
        self.computed[name] = expression
        return DataField(-1, name, with_nullable(expression.type, True))

    def _expression(self, node: Any) -> Expression:
        if not isinstance(node, dict):
            raise self._unknown("a rule without a transform")
        function = str(node.get("name"))
        match function:
            case "NULL":
                return Expression(NULL, (), BOOLEAN)
            case "FIELD_REF":
                column = self._column(node.get("fieldRef"))
                return Expression(COLUMN, (column,), column.type)
            case "CAST":
                column, target = self._column(node.get("fieldRef")), self._type(node.get("type"))
                if not can_cast(column.type, target, explicit=True):
                    raise self._unknown(f"the cast of {column.type} to {target}")
                return Expression(CAST, (column,), target)
        if function not in _TEXTS:
            raise self._unknown(f"the transform {function!r}")
        arguments = tuple(map(self._text, node.get("inputs") or ()))
        if not (len(arguments) == 1 if function in ("UPPER", "LOWER") else len(arguments) > (function == "CONCAT_WS")):
            raise self._unknown(f"the transform {function!r} with {len(arguments)} inputs")
        return Expression(_TEXTS[function], arguments, STRING)

    def _text(self, node: Any) -> Argument:
        if node is None or isinstance(node, str):
            return node
        column = self._column(node)
        if getattr(column.type, "root", "") not in TEXT_ROOTS:
            raise self._unknown(f"a text function of column {column.name!r} of type {column.type}")
        return column

    def _column(self, node: Any) -> DataField:
        name = node.get("name") if isinstance(node, dict) else None
        field = self._fields.get(str(name))
        if not isinstance(node, dict) or field is None:
            raise self._unknown(f"the column {name!r}, which the table does not have")
        stated = self._type(node.get("type"))
        if with_nullable(stated, True) != with_nullable(field.type, True):
            raise self._unknown(f"column {name!r} as {stated}, but the table has {field.type}")
        self.used.add(field.name)
        return field

    def _type(self, node: Any) -> DataType:
        try:
            return parse_type(node)
        except (InvalidInputError, UnsupportedError, TypeError, ValueError, KeyError):
            raise self._unknown("a type that this engine does not know") from None

    def _unknown(self, part: str) -> UnsupportedError:
        return UnsupportedError(
            f"table {str(self._name)!r} cannot be read: the catalog's server filters its rows or masks its columns by "
            f"a rule that this engine cannot apply: {part}"
        )


def _parsed(text: Any, name: Identifier) -> Any:
    try:
        return parse_json(text)
    except (TypeError, ValueError, AttributeError):
        raise UnsupportedError(
            f"table {str(name)!r} cannot be read: the catalog's server answers a rule that is not JSON"
        ) from None
