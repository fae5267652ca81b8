"""Predicates taken apart, bound to columns, moved to another schema."""

from collections.abc import Collection, Sequence
from typing import Any

from paimon_core.errors import InvalidInputError
from paimon_core.predicate.expr import FALSE, TRUE, UNKNOWN, And, Constant, Leaf, Not, Or, Predicate, conjunction
from paimon_core.predicate.literal import Fit, fit
from paimon_core.types.datatype import AtomicType, DataField, DataType

_NEGATED = {
    "=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "in": "not in", "not in": "in",
    "is null": "is not null", "is not null": "is null",
}  # fmt: skip
_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_TEXT_OPS = ("starts with", "ends with", "contains")


def conjuncts(p: Predicate) -> list[Predicate]:
    """The parts that must all hold, nested ANDs flattened."""
    return [part for child in p.children for part in conjuncts(child)] if isinstance(p, And) else [p]


def columns(p: Predicate) -> set[str]:
    """The columns a predicate looks at."""
    match p:
        case And(children) | Or(children):
            return set().union(*(columns(c) for c in children))
        case Not(child):
            return columns(child)
        case Leaf():
            return {p.column}
    return set()


def restrict(p: Predicate, names: Collection[str]) -> Predicate | None:
    """The conjuncts that look at nothing but these columns."""
    return conjunction([part for part in conjuncts(p) if columns(part) <= set(names)])


def split_by(p: Predicate, names: Collection[str]) -> tuple[Predicate | None, Predicate | None]:
    """The conjuncts on these columns only, and all the others."""
    inside = [part for part in conjuncts(p) if columns(part) <= set(names)]
    outside = [part for part in conjuncts(p) if not columns(part) <= set(names)]
    return conjunction(inside), conjunction(outside)


def pinned_values(p: Predicate, names: Sequence[str]) -> dict[str, list[Any]] | None:
    """For each of the columns the values it can have, as far as conjuncts of = and IN on that column alone say.

    None when one of the columns is not pinned. NULL is never among the values. ``p`` is bound.
    """
    found: dict[str, list[Any]] = {}
    for part in conjuncts(p):
        on = columns(part)
        name = next(iter(on)) if len(on) == 1 else None
        values = _alternatives(part) if name in names else None
        if name is None or values is None:
            continue
        known = found.get(name)
        found[name] = values if known is None else [v for v in known if v in values]
    return found if set(names) <= set(found) else None


def _alternatives(p: Predicate) -> list[Any] | None:
    match p:
        case Leaf("=" | "in", _, values):
            return list(dict.fromkeys(v for v in values if v is not None))
        case Or(children):
            each = [_alternatives(c) for c in children]
            return None if any(e is None for e in each) else list(dict.fromkeys(v for e in each for v in e or []))
        case Constant(None) | Constant(False):
            return []
    return None


# ---- binding


def bind(p: Predicate, fields: Sequence[DataField]) -> Predicate:
    """The predicate on exactly these columns, its literals as internal values of their types.

    A name may differ in case if one column only is meant. A literal no value of the type can equal (5.5 for an INT)
    is worked into the test. Raises InvalidInputError for an unknown column and a literal of the wrong kind.
    """
    match p:
        case And(children):
            return And(tuple(bind(c, fields) for c in children))
        case Or(children):
            return Or(tuple(bind(c, fields) for c in children))
        case Not(child):
            return Not(bind(child, fields))
        case Leaf():
            field = _field(p.column, fields)
            return bind_leaf(Leaf(p.op, field.name, p.values), field.type)
    return p


def _field(name: str, fields: Sequence[DataField]) -> DataField:
    found = [f for f in fields if f.name == name] or [f for f in fields if f.name.lower() == name.lower()]
    if len(found) != 1:
        why = "more than one column differs from it in case only" if found else "no such column"
        raise InvalidInputError(f"filter on {name!r}: {why} in {[f.name for f in fields]}")
    return found[0]


def bind_leaf(leaf: Leaf, kind: DataType) -> Predicate:
    """One test with its literals fitted to the column's type."""
    op, name = leaf.op, leaf.column
    if op in ("is null", "is not null"):
        return leaf
    if not isinstance(kind, AtomicType):
        raise InvalidInputError(f"filter {leaf}: a {kind} column can only be tested for NULL")
    if op in _TEXT_OPS:
        if kind.root not in ("CHAR", "VARCHAR") or not all(isinstance(v, str) for v in leaf.values):
            raise InvalidInputError(f"filter {leaf}: needs a text column and a text, the column is {kind}")
        return leaf
    if op in ("in", "not in"):
        fitted = [fit(v, kind, name) for v in leaf.values if v is not None]
        test = Leaf(op, name, tuple(dict.fromkeys(f.floor for f in fitted if f.exact)))
        if len(fitted) == len(leaf.values):
            return test
        return Or((test, UNKNOWN)) if op == "in" else And((test, UNKNOWN))
    if leaf.values[0] is None:
        return Leaf("is null", name) if op == "<=>" else UNKNOWN
    return _compared(op, name, fit(leaf.values[0], kind, name))


def _compared(op: str, name: str, literal: Fit) -> Predicate:
    never, always = Leaf("in", name, ()), Leaf("not in", name, ())
    if literal.exact:
        return Leaf(op, name, (literal.floor,))
    if op == "<=>":
        return FALSE
    if op in ("=", "!="):
        return never if op == "=" else always
    if literal.beyond:
        return always if (literal.beyond > 0) == (op in ("<", "<=")) else never
    return Leaf("<=" if op in ("<", "<=") else ">", name, (literal.floor,))


# ---- moving to a file's schema


def positive(p: Predicate) -> Predicate:
    """The same predicate with NOT only where no test has an opposite."""
    match p:
        case And(children):
            return And(tuple(positive(c) for c in children))
        case Or(children):
            return Or(tuple(positive(c) for c in children))
        case Not(child):
            return _negative(child)
    return p


def _negative(p: Predicate) -> Predicate:
    match p:
        case And(children):
            return Or(tuple(_negative(c) for c in children))
        case Or(children):
            return And(tuple(_negative(c) for c in children))
        case Not(child):
            return positive(child)
        case Constant(value):
            return Constant(None if value is None else not value)
        case Leaf(op, column, values) if op in _NEGATED:
            return Leaf(_NEGATED[op], column, values)
    return Not(p)


def to_file(p: Predicate, read_fields: Sequence[DataField], file_fields: Sequence[DataField]) -> Predicate | None:
    """What a bound predicate says about rows of a file of another schema, for skipping only; None: nothing.

    Columns are found by id. A column the file lacks is NULL in all its rows. A test that the change of type makes
    unsafe counts as passed, so what comes out is true for every row the original is true for.
    """
    by_name = {f.name: f for f in read_fields}
    by_id = {f.id: f for f in file_fields}
    moved = _simplified(_moved(positive(p), by_name, by_id))
    return None if moved == TRUE else moved


def _moved(p: Predicate, read: dict[str, DataField], stored: dict[int, DataField]) -> Predicate:
    match p:
        case And(children):
            return And(tuple(_moved(c, read, stored) for c in children))
        case Or(children):
            return Or(tuple(_moved(c, read, stored) for c in children))
        case Not(Leaf() as leaf):
            moved = _moved_leaf(leaf, read, stored)
            return TRUE if moved == TRUE else Not(moved)
        case Leaf():
            return _moved_leaf(p, read, stored)
    return p


def _moved_leaf(leaf: Leaf, read: dict[str, DataField], stored: dict[int, DataField]) -> Predicate:
    target = read.get(leaf.column)
    if target is None:
        return TRUE
    source = stored.get(target.id)
    if source is None:
        return _of_null(leaf)
    here = Leaf(leaf.op, source.name, leaf.values)
    if _same(source.type, target.type):
        return here
    if _widened(source.type, target.type):
        return bind_leaf(here, source.type)
    return TRUE


def _of_null(leaf: Leaf) -> Predicate:
    if leaf.op == "is null":
        return TRUE
    return FALSE if leaf.op in ("is not null", "<=>") else UNKNOWN


def _same(one: DataType, other: DataType) -> bool:
    return type(one) is type(other) and str(one).removesuffix(" NOT NULL") == str(other).removesuffix(" NOT NULL")


def _widened(source: DataType, target: DataType) -> bool:
    return (
        isinstance(source, AtomicType)
        and isinstance(target, AtomicType)
        and source.root in _INTEGERS
        and target.root in _INTEGERS
        and _INTEGERS.index(source.root) <= _INTEGERS.index(target.root)
    )


def _simplified(p: Predicate) -> Predicate:
    match p:
        case And(children):
            parts = [c for c in map(_simplified, children) if c != TRUE]
            together = FALSE if FALSE in parts else conjunction(parts)
            return TRUE if together is None else together
        case Or(children):
            parts = [c for c in map(_simplified, children) if c != FALSE]
            if TRUE in parts:
                return TRUE
            return FALSE if not parts else parts[0] if len(parts) == 1 else Or(tuple(parts))
    return p
