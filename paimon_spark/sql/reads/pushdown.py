"""Translation of Spark's filters to predicates of the engine.

A filter arrives as the tree of its connector expression (``Trees.java``); `None`: Spark has no such expression. Spark
evaluates filters again, so a predicate may accept more rows than its filter, but never fewer. Under NOT, a predicate
must be equivalent to its filter.
"""

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from paimon_core import TableSchema
from paimon_core.engine import (
    FALSE,
    TEXT_TESTS,
    TRUE,
    And,
    Leaf,
    Not,
    Or,
    Predicate,
    bind,
    conjunction,
    predicate_columns,
    variant_field,
)
from paimon_core.errors import InvalidInputError
from paimon_core.types.arrow import timestamp_unit
from paimon_core.types.columns import find_column
from paimon_core.types.datatype import BINARY_ROOTS, INTEGER_ROOTS, TEXT_ROOTS, AtomicType, DataField
from paimon_spark.types import finer_than_spark

Tree: TypeAlias = dict[str, Any]

_COMPARISONS = {"=": "=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>"}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TEXT_TESTS = {"STARTS_WITH": "starts with", "ENDS_WITH": "ends with", "CONTAINS": "contains"}
_NULL_TESTS = {"IS_NULL": "is null", "IS_NOT_NULL": "is not null"}
_CONSTANTS = {"ALWAYS_TRUE": TRUE, "ALWAYS_FALSE": FALSE}
_TYPES = {
    "date": {"DATE"}, "timestamp": {"TIMESTAMP_LTZ"}, "timestamp_ntz": {"TIMESTAMP"}, "boolean": {"BOOLEAN"},
    "float": {"FLOAT"}, "double": {"DOUBLE"}, "decimal": {"DECIMAL"}, "string": set(TEXT_ROOTS),
    "binary": set(BINARY_ROOTS),
    "byte": set(INTEGER_ROOTS), "short": set(INTEGER_ROOTS), "integer": set(INTEGER_ROOTS), "long": set(INTEGER_ROOTS),
}  # fmt: skip
"""The column types with which a literal of a Spark type may be compared."""
_PARSERS: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: text == "true", "string": str, "binary": bytes.fromhex, "decimal": Decimal,
    "float": lambda text: float(np.float32(text)), "double": float,
}  # fmt: skip
"""By Spark type, how the text of a literal becomes a value; all others are whole numbers."""
_VARIANT = "\0variant_get"
"""The prefix of a name that stands for values in variants."""
_DAY = 86_400_000_000
"""A day in microseconds."""
_TICKS = {"ms": Fraction(1, 1000), "us": Fraction(1), "ns": Fraction(1000)}
"""The ticks of a timestamp column in a microsecond, by their unit."""


class _Untranslatable(Exception):
    """A filter, or a part of a filter, has no equivalent predicate."""


_FALSE_FOR_NULL = {"=", "!=", "<", "<=", ">", ">=", "in", *TEXT_TESTS}
"""The tests that NULL never passes."""


def predicates_of(trees: Sequence[Tree | None], schema: TableSchema) -> list[Predicate | None]:
    """Return for each filter a bound predicate that is true for every row that passes; `None`: not translatable."""
    return [_bound(tree, schema, exact=False) for tree in trees]


def predicate_of(trees: Sequence[Tree | None], schema: TableSchema) -> Predicate | None:
    """Return the AND of `predicates_of`; `None`: no filter has a predicate."""
    return conjunction([p for p in predicates_of(trees, schema) if p is not None])


def exact_predicate(trees: Sequence[Tree | None], schema: TableSchema) -> Predicate | None:
    """Return a bound predicate that is equivalent to the AND of the filters; `None`: a filter is not translatable."""
    predicates = [_bound(tree, schema, exact=True) for tree in trees]
    return None if any(p is None for p in predicates) else conjunction([p for p in predicates if p is not None])


def decided_by_partitions(tree: Tree | None, schema: TableSchema) -> bool:
    """Return True if partition values alone decide the filter, so that the engine evaluates it exactly."""
    predicate = _bound(tree, schema, exact=True)
    return predicate is not None and predicate_columns(predicate) <= set(schema.partition_keys)


def without_implied(p: Predicate | None) -> Predicate | None:
    """Return an equivalent predicate without the ``IS NOT NULL`` tests that Spark adds for compared columns."""
    if not isinstance(p, And):
        return p
    compared = {part.column for part in p.children if isinstance(part, Leaf) and part.op in _FALSE_FOR_NULL}
    left = [part for part in p.children if not (_is_not_null(part) and predicate_columns(part) <= compared)]
    return conjunction(left)


def variant_tests(trees: Sequence[Tree | None], schema: TableSchema) -> Predicate | None:
    """Return the tests of values in variants that each needed row passes; `None`: no filter tests variants.

    They are separate from `predicate_of` because only statistics may decide them: Spark raises an error for a value of
    another type, and does not evaluate a test of a row that another test excludes.
    """
    if any(field.name.startswith(_VARIANT) for field in schema.fields):
        return None
    predicates = [_bound(tree, schema, exact=False, variants=True) for tree in trees if _names_variants(tree)]
    return conjunction([p for p in predicates if p is not None])


def _names_variants(tree: Tree | None) -> bool:
    parts = () if tree is None else tree.get("args", ())
    return tree is not None and (tree.get("column", ("",))[0].startswith(_VARIANT) or any(map(_names_variants, parts)))


def _is_not_null(p: Predicate) -> bool:
    return isinstance(p, Leaf) and p.op == "is not null"


def _bound(tree: Tree | None, schema: TableSchema, *, exact: bool, variants: bool = False) -> Predicate | None:
    if tree is None:
        return None
    kind = _VariantTranslation if variants else _Translation
    try:
        return bind(kind(schema.fields).of(tree, exact=exact), schema.fields)
    except (_Untranslatable, InvalidInputError):
        return None


class _Translation:
    """The translation of filters on some columns."""

    def __init__(self, fields: Sequence[DataField]) -> None:
        self._fields, self._finer = fields, finer_than_spark(fields)

    def of(self, tree: Tree, *, exact: bool) -> Predicate:
        """Return a predicate that accepts every row that passes the filter; if ``exact``, only these rows."""
        op, args = tree.get("op"), tree.get("args", [])
        if op == "AND":
            return self._and(args, exact=exact)
        if op == "OR":
            return Or(tuple(self.of(arg, exact=exact) for arg in args))
        if op == "NOT":
            return Not(self.of(args[0], exact=True))
        if op == "BOOLEAN_EXPRESSION":
            return self.of(args[0], exact=exact)
        if op in _CONSTANTS:
            return _CONSTANTS[op]
        if tree.get("type") == "boolean" and tree.get("value") is not None:  # DELETE without WHERE: the literal true
            return TRUE if tree["value"] == "true" else FALSE
        if "column" in tree:
            return Leaf("=", self._column(tree, "BOOLEAN").name, (True,))
        if op in _NULL_TESTS:
            return Leaf(_NULL_TESTS[op], self._column(args[0]).name)
        return self._test(op, args)

    def _and(self, args: Sequence[Tree], *, exact: bool) -> Predicate:
        if exact:
            return And(tuple(self.of(arg, exact=True) for arg in args))
        predicate = conjunction([p for arg in args if (p := self._if_possible(arg)) is not None])
        if predicate is None:
            raise _Untranslatable
        return predicate

    def _if_possible(self, tree: Tree) -> Predicate | None:
        try:
            return self.of(tree, exact=False)
        except _Untranslatable:
            return None

    def _test(self, op: Any, args: Sequence[Tree]) -> Predicate:
        if op in _TEXT_TESTS:
            name, values = self._compared(args[0], args[1:], nulls=False)
            if not all(isinstance(value, str) for value in values):  # Spark tests beginnings of binaries, too
                raise _Untranslatable
            return Leaf(_TEXT_TESTS[op], name, values)
        if op == "IN":
            return Leaf("in", *self._compared(args[0], args[1:], nulls=True))
        if op not in _COMPARISONS:
            raise _Untranslatable
        left, right = args
        if "value" in left:
            left, right, op = right, left, _MIRRORED.get(op, op)
        if left.get("op") == "CAST":
            return self._on_days(_COMPARISONS[op], left, right)
        return Leaf(_COMPARISONS[op], *self._compared(left, [right], nulls=op == "<=>"))

    def _compared(self, column: Tree, literals: Sequence[Tree], *, nulls: bool) -> tuple[str, tuple[Any, ...]]:
        """Return the name of a column and the values with which it is compared."""
        field = self._column(column)
        if field.name in self._finer or not all("value" in literal for literal in literals):
            raise _Untranslatable
        values = tuple(_value(literal, field) for literal in literals)
        if not nulls and None in values:
            raise _Untranslatable
        return field.name, values

    def _column(self, tree: Tree, root: str | None = None) -> DataField:
        """Return the table column that a reference names; a nested field is untranslatable."""
        path = tree.get("column", ())
        if len(path) != 1:
            raise _Untranslatable
        try:
            field = find_column(self._fields, path[0], "the table")
        except InvalidInputError:  # a metadata column
            raise _Untranslatable from None
        if root is not None and getattr(field.type, "root", None) != root:
            raise _Untranslatable
        return field

    def _on_days(self, op: str, cast: Tree, literal: Tree) -> Predicate:
        """Return ``CAST(timestamp without zone AS DATE) op day`` as a comparison of the timestamp."""
        field = self._column(cast["args"][0], "TIMESTAMP")
        if cast["type"] != "date" or literal.get("type") != "date" or not literal.get("value"):
            raise _Untranslatable
        if field.name in self._finer:
            raise _Untranslatable
        day = int(literal["value"])
        start, end = _of_microseconds(day * _DAY, field), _of_microseconds((day + 1) * _DAY, field)
        match op:
            case "=":
                return And((Leaf(">=", field.name, (start,)), Leaf("<", field.name, (end,))))
            case "<" | ">=":
                return Leaf(op, field.name, (start,))
            case "<=":
                return Leaf("<", field.name, (end,))
            case ">":
                return Leaf(">=", field.name, (end,))
        raise _Untranslatable


class _VariantTranslation(_Translation):
    """The translation of filters on columns and on values in variants, which ``VariantTests.java`` names."""

    def _column(self, tree: Tree, root: str | None = None) -> DataField:
        path = tree.get("column", ())
        if len(path) != 1 or not path[0].startswith(_VARIANT):
            return super()._column(tree, root)
        return variant_field(*json.loads(path[0].removeprefix(_VARIANT)))


def _value(literal: Tree, field: DataField) -> Any:
    """Return the Python value of a literal that is compared with a column."""
    text, kind = literal["value"], literal["type"].partition("(")[0]
    if text is None:
        return None
    if not isinstance(field.type, AtomicType) or field.type.root not in _TYPES.get(kind, ()):
        raise _Untranslatable
    if kind not in ("timestamp", "timestamp_ntz"):
        return _PARSERS.get(kind, int)(text)
    return _of_microseconds(int(text), field)


def _of_microseconds(value: int, field: DataField) -> Fraction:
    """Return a timestamp in ticks of its column: Python's datetime lacks most of the years that Spark has."""
    return value * _TICKS[timestamp_unit(getattr(field.type, "precision", None) or 0)]
