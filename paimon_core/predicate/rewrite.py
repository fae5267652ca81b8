"""Predicates taken apart, bound to columns, moved to another schema."""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

from paimon_core.errors import InvalidInputError
from paimon_core.predicate.expr import (
    FALSE,
    LISTS,
    NULL_TESTS,
    TEXT_TESTS,
    TRUE,
    UNKNOWN,
    And,
    Constant,
    Leaf,
    Not,
    Or,
    Predicate,
    conjunction,
    disjunction,
)
from paimon_core.predicate.literal import Fit, fit
from paimon_core.types.arrow import timestamp_unit
from paimon_core.types.columns import find_column
from paimon_core.types.datatype import (
    BINARY_ROOTS,
    INTEGER_ROOTS,
    TEXT_ROOTS,
    TIME_ROOTS,
    AtomicType,
    DataField,
    DataType,
    with_nullable,
)

MAX_PINNED = 1_000
"""More combinations of pinned values than this are not worth hashing."""

_OPPOSITES = {"=": "!=", "<": ">=", ">": "<=", "in": "not in", "is null": "is not null"}
_OPPOSITES |= {there: here for here, there in _OPPOSITES.items()}

_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_TICKS = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


# ---- shape


def columns(p: Predicate) -> set[str]:
    """The columns a predicate looks at."""
    match p:
        case And(children) | Or(children):
            return set().union(*map(columns, children))
        case Not(child):
            return columns(child)
        case Leaf():
            return {p.column}
    return set()


def positive(p: Predicate) -> Predicate:
    """The same predicate with NOT only around tests that have no opposite: ``<=>`` and those of text."""
    match p:
        case And(children):
            return And(tuple(map(positive, children)))
        case Or(children):
            return Or(tuple(map(positive, children)))
        case Not(child):
            return _negative(child)
    return p


def _negative(p: Predicate) -> Predicate:
    match p:
        case And(children):
            return Or(tuple(map(_negative, children)))
        case Or(children):
            return And(tuple(map(_negative, children)))
        case Not(child):
            return positive(child)
        case Constant(value):
            return Constant(None if value is None else not value)
        case Leaf(op, column, values) if op in _OPPOSITES:
            return Leaf(_OPPOSITES[op], column, values)
    return Not(p)


def _simplified(p: Predicate) -> Predicate:
    """A positive predicate that is true for the same rows, flat, without constants inside: unknown counts as false."""
    match p:
        case And(children):
            parts = _merged(And, map(_simplified, children), TRUE)
            return FALSE if FALSE in parts else _one(conjunction(parts), TRUE)
        case Or(children):
            parts = _merged(Or, map(_simplified, children), FALSE)
            return TRUE if TRUE in parts else _one(disjunction(parts), FALSE)
        case Constant(None):
            return FALSE
    return p


def _one(p: Predicate | None, default: Predicate) -> Predicate:
    return default if p is None else p


def _merged(kind: type[And] | type[Or], parts: Any, neutral: Predicate) -> list[Predicate]:
    found: list[Predicate] = []
    for part in parts:
        found += part.children if isinstance(part, kind) else [] if part == neutral else [part]
    return found


def conjuncts(p: Predicate) -> list[Predicate]:
    """Parts that are all true exactly for the rows ``p`` is true for; none for TRUE.

    NOT is moved inwards first, so ``NOT (a = 1 OR b = 2)`` has two.
    """
    simple = _simplified(positive(p))
    return list(simple.children) if isinstance(simple, And) else [] if simple == TRUE else [simple]


def restrict(p: Predicate, names: Collection[str]) -> Predicate | None:
    """The most that ``p`` says about these columns alone: true wherever ``p`` is; None when it says nothing.

    That is the conjuncts on these columns, and of a disjunction what each of its branches says:
    ``(a = 1 AND b = 1) OR (a = 2 AND b = 5)`` becomes ``a = 1 OR a = 2``.
    """
    weaker = _simplified(_only(positive(p), names))
    return None if weaker == TRUE else weaker


def _only(p: Predicate, names: Collection[str]) -> Predicate:
    match p:
        case And(children):
            return And(tuple(_only(c, names) for c in children))
        case Or(children):
            return Or(tuple(_only(c, names) for c in children))
        case Leaf(_, column) | Not(Leaf(_, column)) if column not in names:
            return TRUE
    return p


def split_by(p: Predicate, names: Collection[str]) -> tuple[Predicate | None, Predicate | None]:
    """What ``p`` says about these columns alone (see :func:`restrict`), and the conjuncts that need others too.

    Both together are true for the same rows as ``p``; None stands for TRUE.
    """
    return restrict(p, names), conjunction([part for part in conjuncts(p) if not columns(part) <= set(names)])


def pinned_values(p: Predicate, names: Sequence[str]) -> dict[str, list[Any]] | None:
    """For each of the columns the internal values it has in rows ``p`` (bound) is true for (behaviour 8.1).

    A conjunct counts when it is a disjunction of ``=`` and IN on one of the columns; several on one column intersect.
    Null is never among the values; a column without any left has an empty list. None when a column is not pinned, or
    when there are more than MAX_PINNED combinations. Both zeros are listed where one is meant: they are equal, but not
    equal bytes. NaN, which has many forms, pins nothing.
    """
    found: dict[str, list[Any]] = {}
    for part in conjuncts(p):
        if part == FALSE:
            return {name: [] for name in names}
        on = columns(part)
        name = next(iter(on)) if len(on) == 1 else ""
        values = _alternatives(part) if name in names else None
        if values is not None:
            both = set(values)
            found[name] = [v for v in found[name] if v in both] if name in found else values
    if not set(names) <= set(found):
        return None
    pinned = {name: _all_zeros(found[name]) for name in names}
    combinations = 1
    for values in pinned.values():
        combinations *= len(values)
    return pinned if combinations <= MAX_PINNED else None


def _alternatives(p: Predicate) -> list[Any] | None:
    """The values of a disjunction of ``=`` and IN, each once; None when ``p`` is something else."""
    match p:
        case Leaf("=" | "<=>" | "in", _, values):
            known = [v for v in values if v is not None]
            return None if any(v != v for v in known) or (p.op == "<=>" and not known) else list(dict.fromkeys(known))
        case Or(children):
            each = [_alternatives(c) for c in children]
            return None if None in each else list(dict.fromkeys(v for values in each for v in values or []))
    return None


def _all_zeros(values: list[Any]) -> list[Any]:
    zeros = [0.0, -0.0] if any(isinstance(v, float) and v == 0 for v in values) else []
    return zeros + [v for v in values if not (zeros and v == 0)]


# ---- binding


def bind(p: Predicate, fields: Sequence[DataField]) -> Predicate:
    """The predicate on exactly these columns, its literals as internal values of their types.

    Binding again changes nothing. A name may differ in case if only one column can be meant. A literal that is no value
    of the type (5.5 for an INT, 10^12 too) is worked into the test, so that every row answers as it would have. Raises
    InvalidInputError for a column that is not there and for a literal of the wrong kind.
    """
    match p:
        case And(children):
            return And(tuple(bind(c, fields) for c in children))
        case Or(children):
            return Or(tuple(bind(c, fields) for c in children))
        case Not(child):
            return Not(bind(child, fields))
        case Leaf():
            field = find_column(fields, p.column, "the filtered table")
            return _bind_leaf(Leaf(p.op, field.name, p.values), field.type)
    return p


def _bind_leaf(leaf: Leaf, kind: DataType) -> Predicate:
    op, name = leaf.op, leaf.column
    if op in NULL_TESTS:
        return leaf
    if not isinstance(kind, AtomicType):
        raise InvalidInputError(f"filter {leaf}: a column of type {kind} can only be tested for NULL")
    if op in LISTS:
        return _bind_list(leaf, kind)
    value = leaf.values[0]
    if value is None:
        return Leaf("is null", name) if op == "<=>" else UNKNOWN
    if op in TEXT_TESTS:
        if kind.root not in TEXT_ROOTS or not isinstance(value, str):
            raise InvalidInputError(f"filter {leaf}: needs a column of text and a text; the column is {kind}")
        return leaf
    return _compared(op, name, fit(value, kind, name))


def _bind_list(leaf: Leaf, kind: AtomicType) -> Predicate:
    inside = leaf.op == "in"
    if not leaf.values:
        return FALSE if inside else TRUE
    fitted = [fit(v, kind, leaf.column) for v in leaf.values if v is not None]
    exact = tuple(dict.fromkeys(f.floor for f in fitted if f.exact))
    if len(fitted) < len(leaf.values):  # with a NULL in the list, what is not found may or may not be in it
        test = Leaf(leaf.op, leaf.column, exact)
        return UNKNOWN if not exact else Or((test, UNKNOWN)) if inside else And((test, UNKNOWN))
    if not exact:
        return _never(leaf.column) if inside else _always(leaf.column)
    return Leaf(leaf.op, leaf.column, exact)


def _never(name: str) -> Predicate:
    """False for every value, unknown for NULL."""
    return And((Leaf("is null", name), UNKNOWN))


def _always(name: str) -> Predicate:
    """True for every value, unknown for NULL."""
    return Or((Leaf("is not null", name), UNKNOWN))


def _compared(op: str, name: str, literal: Fit) -> Predicate:
    if literal.exact:
        return Leaf(op, name, (literal.floor,))
    if op == "<=>":
        return FALSE
    if op in ("=", "!="):
        return _never(name) if op == "=" else _always(name)
    below = op in ("<", "<=")
    if literal.beyond:
        return _always(name) if (literal.beyond > 0) == below else _never(name)
    return Leaf("<=" if below else ">", name, (literal.floor,))


# ---- moving to a file's schema


def to_file(p: Predicate, read_fields: Sequence[DataField], file_fields: Sequence[DataField]) -> Predicate | None:
    """What a bound predicate says about the rows of a file of another schema, as they are stored there.

    True wherever ``p`` is true for the row as it will be read: good for skipping, not for selecting. None: it says
    nothing. Columns are found by id. A column the file lacks is NULL in all its rows; a test on a column whose values
    change on their way into the read type is left out.
    """
    moved = _simplified(_moved(positive(p), {f.name: f for f in read_fields}, {f.id: f for f in file_fields}))
    return None if moved == TRUE else moved


def _moved(p: Predicate, read: Mapping[str, DataField], stored: Mapping[int, DataField]) -> Predicate:
    match p:
        case And(children):
            return And(tuple(_moved(c, read, stored) for c in children))
        case Or(children):
            return Or(tuple(_moved(c, read, stored) for c in children))
        case Not(Leaf() as leaf):
            moved = _moved_leaf(leaf, read, stored)
            return TRUE if moved is None else positive(Not(moved))
        case Leaf():
            moved = _moved_leaf(p, read, stored)
            return TRUE if moved is None else moved
    return p


def _moved_leaf(leaf: Leaf, read: Mapping[str, DataField], stored: Mapping[int, DataField]) -> Predicate | None:
    """The test on the stored column; None when it cannot be said there."""
    target = read.get(leaf.column)
    if target is None:
        return None
    source = stored.get(target.id)
    if source is None:
        return _of_null(leaf)
    here = Leaf(leaf.op, source.name, leaf.values)
    if with_nullable(source.type, True) == with_nullable(target.type, True):
        return here
    if not (isinstance(source.type, AtomicType) and isinstance(target.type, AtomicType)):
        return None
    if not _keeps_values(source.type, target.type):
        return None
    if source.type.root.startswith("TIMESTAMP"):
        ticks = [_TICKS[timestamp_unit(t.precision or 0)] for t in (source.type, target.type)]
        here = Leaf(
            here.op, here.column, tuple(v if v is None else Fraction(v * ticks[0], ticks[1]) for v in leaf.values)
        )
    return _bind_leaf(here, source.type)


def _of_null(leaf: Leaf) -> Predicate:
    """The test on a column that is NULL throughout."""
    match leaf.op:
        case "is null":
            return TRUE
        case "is not null":
            return FALSE
        case "<=>":
            return Constant(leaf.values[0] is None)
        case "in" | "not in" if not leaf.values:
            return Constant(leaf.op == "not in")
    return UNKNOWN


def _keeps_values(source: AtomicType, target: AtomicType) -> bool:
    """Whether every stored value is read as an equal value, and NULL only where NULL is stored."""
    here, there = source.root, target.root
    if here in INTEGER_ROOTS:
        return _keeps_integers(source, target)
    if here == "FLOAT":
        return there in ("FLOAT", "DOUBLE")
    if here == "DECIMAL":
        return (
            there == "DECIMAL" and _whole_digits(source) <= _whole_digits(target) and _scale(source) <= _scale(target)
        )
    if there == "VARCHAR":
        return here in TEXT_ROOTS and (source.length or 0) <= (target.length or 0)
    if there == "VARBINARY":
        return here in BINARY_ROOTS and (source.length or 0) <= (target.length or 0)
    return here in TIME_ROOTS and here == there and (source.precision or 0) <= (target.precision or 0)


def _keeps_integers(source: AtomicType, target: AtomicType) -> bool:
    if target.root in INTEGER_ROOTS:
        return INTEGER_ROOTS.index(source.root) <= INTEGER_ROOTS.index(target.root)
    if target.root == "DECIMAL":
        return _DIGITS[source.root] <= _whole_digits(target)
    return (target.root == "DOUBLE" and source.root != "BIGINT") or (
        target.root == "FLOAT" and source.root in ("TINYINT", "SMALLINT")
    )


def _scale(t: AtomicType) -> int:
    return t.scale or 0


def _whole_digits(t: AtomicType) -> int:
    return (t.precision or 0) - _scale(t)
