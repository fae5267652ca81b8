"""Rewriting of predicates: into conjuncts, to internal values, and to the schema of a file."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from paimon_core.errors import InvalidInputError
from paimon_core.lazy import deferred
from paimon_core.predicate.expr import (
    FALSE,
    LISTS,
    NULL_TESTS,
    TEXT_TESTS,
    TRUE,
    UNKNOWN,
    ZERO_TESTS,
    And,
    Constant,
    FieldPath,
    Leaf,
    Not,
    Or,
    Predicate,
    VariantPath,
    column_of,
    conjunction,
    disjunction,
    path_of,
    quoted,
    unquoted,
)
from paimon_core.predicate.literal import Fit, fit
from paimon_core.predicate.parse import variant_path_of
from paimon_core.types.arrow import timestamp_unit
from paimon_core.types.columns import ColumnNames, find_column
from paimon_core.types.datatype import (
    BINARY_ROOTS,
    INTEGER_ROOTS,
    TEXT_ROOTS,
    TIME_ROOTS,
    VARIANT,
    AtomicType,
    DataField,
    DataType,
    RowType,
    with_nullable,
)

if TYPE_CHECKING:
    from paimon_core.variant.paths import variant_steps, variant_value_type
else:
    variant_steps = deferred("paimon_core.variant.paths", "variant_steps")
    variant_value_type = deferred("paimon_core.variant.paths", "variant_value_type")

MAX_PINNED = 1_000
"""The most combinations of pinned values that are worth hashing."""
_WHOLE_ROOTS = (*INTEGER_ROOTS, "DATE")
_EQUALITIES = {"=": "in", "!=": "not in", "in": "in", "not in": "not in", "<=>": "<=>"}
"""The tests for equality; except for ``<=>``, each with the test that takes a list."""

_OPPOSITES = {"=": "!=", "<": ">=", ">": "<=", "in": "not in", "is null": "is not null"}
_OPPOSITES |= {opposite: op for op, opposite in _OPPOSITES.items()}

_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_TICKS = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


# ---- structure


def columns(p: Predicate) -> set[str]:
    """Return the names of a predicate's columns; a test of a field of a struct needs the column of the struct."""
    return {column_of(name) for name in tested(p)}


def tested(p: Predicate) -> set[str]:
    """Return the names and the paths that a predicate tests."""
    match p:
        case And(children) | Or(children):
            return set().union(*map(tested, children))
        case Not(child):
            return tested(child)
        case Leaf():
            return {p.column}
    return set()


def tests_fields(p: Predicate) -> bool:
    """Return True if a predicate tests a field of a struct, or values in variants, by a path."""
    return any(isinstance(name, FieldPath) for name in tested(p))


def positive(p: Predicate) -> Predicate:
    """Return an equivalent predicate with NOT only around tests that have no opposite: ``<=>`` and text tests."""
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
    """Return a flat predicate without constants that is true for the same rows as ``p``; unknown counts as false.

    REQUIRES: ``p`` is a result of `positive`.
    """
    match p:
        case And(children):
            parts = _merged(And, map(_simplified, children), TRUE)
            return FALSE if FALSE in parts else _or_default(conjunction(parts), TRUE)
        case Or(children):
            parts = _merged(Or, map(_simplified, children), FALSE)
            return TRUE if TRUE in parts else _or_default(disjunction(parts), FALSE)
        case Constant(None):
            return FALSE
    return p


def _or_default(p: Predicate | None, default: Predicate) -> Predicate:
    return default if p is None else p


def _merged(kind: type[And] | type[Or], parts: Any, neutral: Predicate) -> list[Predicate]:
    members: list[Predicate] = []
    for part in parts:
        members += part.children if isinstance(part, kind) else [] if part == neutral else [part]
    return members


def conjuncts(p: Predicate) -> list[Predicate]:
    """Return predicates whose AND is true for the same rows as ``p``; an empty list: all rows.

    NOT is pushed inwards first, so ``NOT (a = 1 OR b = 2)`` has two conjuncts.
    """
    simple = _simplified(positive(p))
    return list(simple.children) if isinstance(simple, And) else [] if simple == TRUE else [simple]


def restrict(p: Predicate, names: Collection[str]) -> Predicate | None:
    """Return the strictest predicate on only these columns that is true for every row that matches ``p``.

    For the column a, ``(a = 1 AND b = 1) OR (a = 2 AND b = 5)`` becomes ``a = 1 OR a = 2``. `None`: ``p`` does not
    restrict these columns.
    """
    weaker = _simplified(_only(positive(p), names))
    return None if weaker == TRUE else weaker


def _only(p: Predicate, names: Collection[str]) -> Predicate:
    match p:
        case And(children):
            return And(tuple(_only(c, names) for c in children))
        case Or(children):
            return Or(tuple(_only(c, names) for c in children))
        case Leaf(_, column) | Not(Leaf(_, column)) if column_of(column) not in names:
            return TRUE
    return p


def split_by(p: Predicate, names: Collection[str]) -> tuple[Predicate | None, Predicate | None]:
    """Return the result of :func:`restrict` for these columns, and the AND of the conjuncts that need other columns.

    The AND of both is true for the same rows as ``p``. `None`: TRUE.
    """
    return restrict(p, names), conjunction([part for part in conjuncts(p) if not columns(part) <= set(names)])


def pinned_values(p: Predicate, names: Sequence[str]) -> dict[str, list[Any]] | None:
    """Return, for each column, the internal values it can have in rows that match the bound ``p`` (behaviour 8.1).

    A column is pinned by conjuncts that are disjunctions of ``=`` and IN on the column; several conjuncts intersect.
    The values never include null; an empty list: no row matches. They include both zeros or neither, because 0.0 equals
    -0.0 but differs in bytes. NaN has many byte forms and does not pin a column. `None`: a column is not pinned, or
    there are more than MAX_PINNED combinations.
    """
    values_of: dict[str, list[Any]] = {}
    for part in conjuncts(p):
        if part == FALSE:
            return {name: [] for name in names}
        on = columns(part)
        name = next(iter(on)) if len(on) == 1 else ""
        values = _alternatives(part) if name in names else None
        if values is not None:
            both = set(values)
            values_of[name] = [v for v in values_of[name] if v in both] if name in values_of else values
    if not set(names) <= set(values_of):
        return None
    pinned = {name: _all_zeros(values_of[name]) for name in names}
    combinations = 1
    for values in pinned.values():
        combinations *= len(values)
    return pinned if combinations <= MAX_PINNED else None


def most_keys(p: Predicate, fields: Iterable[DataField]) -> int | None:
    """Return an upper limit on the combinations of column values in the rows that match the bound ``p``.

    The limit counts pinned values, and integers and days between two bounds. `None`: a column may have any value.
    """
    combinations = 1
    for field in fields:
        pinned = pinned_values(p, [field.name])
        number = _values_between(p, field) if pinned is None else len(pinned[field.name])
        if number is None:
            return None
        combinations *= number
    return combinations


def _values_between(p: Predicate, field: DataField) -> int | None:
    """Return the number of integers or days between the two bounds of a column; `None`: it lacks a bound."""
    if getattr(field.type, "root", None) not in _WHOLE_ROOTS:
        return None
    least: list[int] = []
    most: list[int] = []
    for part in conjuncts(p):
        match part:
            case Leaf(">" | ">=", field.name, (int(value),)):
                least.append(value + (part.op == ">"))
            case Leaf("<" | "<=", field.name, (int(value),)):
                most.append(value - (part.op == "<"))
    return max(0, min(most) - max(least) + 1) if least and most else None


def _alternatives(p: Predicate) -> list[Any] | None:
    """Return the distinct values of a disjunction of ``=`` and IN; `None` for any other predicate."""
    match p:
        case Leaf("=" | "<=>" | "in", _, values):
            non_null = [v for v in values if v is not None]
            return (
                None
                if any(v != v for v in non_null) or (p.op == "<=>" and not non_null)
                else list(dict.fromkeys(non_null))
            )
        case Or(children):
            each = [_alternatives(c) for c in children]
            return None if None in each else list(dict.fromkeys(v for values in each for v in values or []))
    return None


def _all_zeros(values: list[Any]) -> list[Any]:
    zeros = [0.0, -0.0] if any(isinstance(v, float) and v == 0 for v in values) else []
    return zeros + [v for v in values if not (zeros and v == 0)]


# ---- binding


def bind(p: Predicate, fields: Sequence[DataField]) -> Predicate:
    """Return the predicate on these columns, with literals as internal values of the columns' types.

    Binding a bound predicate changes nothing. A name may differ in case if exactly one column matches. A test whose
    literal is not a value of the type (for an INT: 5.5, or 10^12) is rewritten so that its result stays the same for
    every row. Raises InvalidInputError for an unknown column or a literal of the wrong kind.
    """
    match p:
        case And(children):
            return And(tuple(bind(c, fields) for c in children))
        case Or(children):
            return Or(tuple(bind(c, fields) for c in children))
        case Not(child):
            return Not(bind(child, fields))
        case Leaf():
            name, kind = find_path(fields, p.column, "the filtered table")
            return _bind_leaf(Leaf(p.op, name, p.values), kind)
    return p


def find_path(fields: Sequence[DataField], name: str, where: str) -> tuple[str, DataType]:
    """Return the name and the type of a column, or the path and the type of a field of a struct or of variants.

    A column that is called ``a.b`` hides the field ``b`` of the column ``a``, unless ``name`` is a `FieldPath`.
    Backticks around a name are left out, unless a column has them. A field of a struct that may be NULL may be NULL
    too.

    Args:
        fields: the columns.
        name: the name of a column, the text of a path or of a call of ``variant_get``, or a path; case is ignored if
            one name matches.
        where: the owner of the columns, for errors.

    Raises InvalidInputError if no column, or no field, has the name, or if a variant has no such path or type.
    """
    path = name if isinstance(name, FieldPath) else None
    named = path is None and bool(ColumnNames(f.name for f in fields).positions(name))
    if path is None and not named:
        path = variant_path_of(name) or path_of(name)
    if isinstance(path, VariantPath):
        return _find_in_variants(fields, path, where)
    if path is None:
        field = find_column(fields, name if named else unquoted(name), where)
        return field.name, field.type
    text = ".".join(path.parts)
    if (
        isinstance(name, FieldPath)
        and not ColumnNames(f.name for f in fields).positions(path.parts[0])
        and (ColumnNames(f.name for f in fields).positions(text))
    ):
        raise InvalidInputError(f"{text} is a field of a struct, but {where} has a column of this name: write `{text}`")
    parts, nullable = [], False
    for position, part in enumerate(path.parts):
        field = find_column(fields, part, where)
        parts.append(field.name)
        nullable = nullable or field.type.nullable
        if position == len(path.parts) - 1:
            return FieldPath(parts), with_nullable(field.type, nullable)
        shown = ".".join(map(quoted, parts))
        if not isinstance(field.type, RowType):
            raise InvalidInputError(f"{path} does not exist in {where}: {shown} of type {field.type} has no fields")
        fields, where = field.type.fields, f"the struct {shown}"
    raise AssertionError("a path has parts")


def _find_in_variants(fields: Sequence[DataField], values: VariantPath, where: str) -> tuple[str, DataType]:
    """Return the path, with the names of the columns, and the type of values in variants."""
    parts = values.parts
    name, kind = find_path(fields, parts[0] if len(parts) == 1 else FieldPath(parts), where)
    if not (isinstance(kind, AtomicType) and kind.root == "VARIANT"):
        raise InvalidInputError(f"{values} is for a column of type VARIANT, but {name!r} of {where} is {kind}")
    variant_steps(values.path)
    target = VARIANT if values.type is None else with_nullable(variant_value_type(values.type), True)
    found = name.parts if isinstance(name, FieldPath) else (name,)
    return VariantPath(found, values.path, None if values.type is None else str(target), values.strict), target


def _bind_leaf(leaf: Leaf, kind: DataType, *, ignores_blanks: bool = True) -> Predicate:
    op, name = leaf.op, leaf.column
    if op in (*NULL_TESTS, *ZERO_TESTS):
        return leaf
    if not isinstance(kind, AtomicType) or kind.root == "VARIANT":
        raise InvalidInputError(f"filter {leaf}: a column of type {kind} can only be tested for NULL")
    if ignores_blanks and kind.root == "CHAR" and op in _EQUALITIES:
        return _bind_blank_padded(leaf, kind)
    if op in LISTS:
        return _bind_list(leaf, kind)
    value = leaf.values[0]
    if value is None:
        return Leaf("is null", name) if op == "<=>" else UNKNOWN
    if op in TEXT_TESTS:
        if kind.root not in TEXT_ROOTS or not isinstance(value, str):
            raise InvalidInputError(f"filter {leaf} needs a text column and a text literal; the column is {kind}")
        return leaf
    return _compared(op, name, fit(value, kind, name))


def _bind_blank_padded(leaf: Leaf, kind: AtomicType) -> Predicate:
    """Return a test for equality on a CHAR column. Values that differ only in blanks at their ends are equal.

    A file may have the value with all blanks of its length, with some, or with none, so the test lists all forms.
    """
    if leaf.op == "<=>":
        if leaf.values[0] is None:
            return Leaf("is null", leaf.column)
        equal = _bind_blank_padded(Leaf("=", leaf.column, leaf.values), kind)
        return And((Leaf("is not null", leaf.column), equal))
    forms: dict[Any, None] = {}
    for value in leaf.values:
        if value is not None:
            fit(value, kind, leaf.column)
            forms.update(dict.fromkeys(_padded_forms(value, kind.length or 1, leaf.column)))
        else:
            forms[None] = None
    if len(leaf.values) == len(forms) == 1 and leaf.op not in LISTS:
        value = next(iter(forms))
        return UNKNOWN if value is None else Leaf(leaf.op, leaf.column, (value,))
    return _bind_list(Leaf(_EQUALITIES[leaf.op], leaf.column, tuple(forms)), kind)


def _padded_forms(text: str, length: int, column: str) -> list[str]:
    """Return the text without blanks at its end, and with each number of blanks up to the length in characters."""
    base = text.rstrip(" ")
    missing = max(0, length - len(base))
    if missing > MAX_PINNED:
        raise InvalidInputError(
            f"filter on {column!r}: comparing CHAR({length}) with a text of {len(base)} characters would need "
            f"{missing + 1} forms of the text, more than {MAX_PINNED}: use LIKE, or change the column to VARCHAR"
        )
    return [base + " " * blanks for blanks in range(missing + 1)]


def _bind_list(leaf: Leaf, kind: AtomicType) -> Predicate:
    inside = leaf.op == "in"
    if not leaf.values:
        return FALSE if inside else TRUE
    fitted = [fit(v, kind, leaf.column) for v in leaf.values if v is not None]
    exact = tuple(dict.fromkeys(f.floor for f in fitted if f.exact))
    if len(fitted) < len(leaf.values):  # with a NULL in the list, a value without a match is unknown
        test = Leaf(leaf.op, leaf.column, exact)
        return UNKNOWN if not exact else Or((test, UNKNOWN)) if inside else And((test, UNKNOWN))
    if not exact:
        return _never(leaf.column) if inside else _always(leaf.column)
    return Leaf(leaf.op, leaf.column, exact)


def _never(name: str) -> Predicate:
    """Return a predicate that is false for every value and unknown for NULL."""
    return And((Leaf("is null", name), UNKNOWN))


def _always(name: str) -> Predicate:
    """Return a predicate that is true for every value and unknown for NULL."""
    return Or((Leaf("is not null", name), UNKNOWN))


def _compared(op: str, name: str, literal: Fit) -> Predicate:
    if literal.exact:
        return Leaf(op, name, (literal.floor,))
    if op == "<=>":
        return FALSE
    if op in ("=", "!="):
        return _never(name) if op == "=" else _always(name)
    less = op in ("<", "<=")
    if literal.beyond:
        return _always(name) if (literal.beyond > 0) == less else _never(name)
    return Leaf("<=" if less else ">", name, (literal.floor,))


# ---- translation to the schema of a file


def to_file(p: Predicate, read_fields: Sequence[DataField], file_fields: Sequence[DataField]) -> Predicate | None:
    """Translate a bound predicate to the stored rows of a file with another schema; columns match by id.

    The result is true for every stored row that matches ``p`` when read, and may be true for other rows. So it can
    prune rows, but not select them. A column that the file lacks is NULL in all rows. If reading changes the values of
    a column, a test on the column becomes TRUE. `None`: the result is TRUE.
    """
    stored = _simplified(_on_file(positive(p), {f.name: f for f in read_fields}, {f.id: f for f in file_fields}))
    return None if stored == TRUE else stored


def _on_file(p: Predicate, read: Mapping[str, DataField], stored: Mapping[int, DataField]) -> Predicate:
    match p:
        case And(children):
            return And(tuple(_on_file(c, read, stored) for c in children))
        case Or(children):
            return Or(tuple(_on_file(c, read, stored) for c in children))
        case Not(Leaf() as leaf):
            test = _leaf_on_file(leaf, read, stored)
            return TRUE if test is None else positive(Not(test))
        case Leaf():
            return _or_default(_leaf_on_file(p, read, stored), TRUE)
    return p


def _leaf_on_file(leaf: Leaf, read: Mapping[str, DataField], stored: Mapping[int, DataField]) -> Predicate | None:
    """Return the test on the stored column; `None` if it cannot be expressed on this column."""
    inside = leaf.column if isinstance(leaf.column, VariantPath) and len(leaf.column.parts) == 1 else None
    target = read.get(leaf.column if inside is None else inside.parts[0])
    if target is None:
        return None
    source = stored.get(target.id)
    if source is None:
        return _test_of_null(leaf)
    if inside is not None:
        name: str = VariantPath((source.name,), inside.path, inside.type, inside.strict)
        return Leaf(leaf.op, name, leaf.values) if with_nullable(source.type, True) == VARIANT else None
    test = Leaf(leaf.op, source.name, leaf.values)
    if with_nullable(source.type, True) == with_nullable(target.type, True):
        return test
    if not (isinstance(source.type, AtomicType) and isinstance(target.type, AtomicType)):
        return None
    if not keeps_values(source.type, target.type):
        return None
    if source.type.root.startswith("TIMESTAMP"):
        ticks = [_TICKS[timestamp_unit(t.precision or 0)] for t in (source.type, target.type)]
        values = tuple(v if v is None else Fraction(v * ticks[0], ticks[1]) for v in leaf.values)
        test = Leaf(leaf.op, source.name, values)
    return _bind_leaf(test, source.type, ignores_blanks=False)  # the column is read as another type, or is bound


def _test_of_null(leaf: Leaf) -> Predicate:
    """Return the result of the test on NULL."""
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


def keeps_values(source: AtomicType, target: AtomicType) -> bool:
    """Return True if every stored value is read as an equal value, and only stored NULLs are read as NULL."""
    stored, read = source.root, target.root
    if stored in INTEGER_ROOTS:
        return _keeps_integers(source, target)
    if stored == "FLOAT":
        return read in ("FLOAT", "DOUBLE")
    if stored == "DECIMAL":
        return read == "DECIMAL" and _whole_digits(source) <= _whole_digits(target) and _scale(source) <= _scale(target)
    if read == "VARCHAR":
        return stored in TEXT_ROOTS and (source.length or 0) <= (target.length or 0)
    if read == "VARBINARY":
        return stored in BINARY_ROOTS and (source.length or 0) <= (target.length or 0)
    return stored in TIME_ROOTS and stored == read and (source.precision or 0) <= (target.precision or 0)


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
