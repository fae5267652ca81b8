"""Column types as frozen values.

A type is an :class:`AtomicType` or one of the constructed types below; every type has a flag ``nullable``. ``str(t)``
returns the text in a schema file for an atomic type (``DECIMAL(10, 2) NOT NULL``), and the SQL text for a constructed
type. Only the fields of a :class:`RowType` have ids; elements of arrays, maps and multisets do not.
"""

import re
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from paimon_core.errors import InvalidInputError

MAX_LENGTH = 2147483647
"""The length of STRING (as VARCHAR) and BYTES (as VARBINARY): unbounded in practice."""

MAX_DECIMAL_PRECISION = 38

_SURROGATES = re.compile("[\ud800-\udfff]")

NO_ID = -1
"""The id of a nested field that is not numbered yet."""

INTEGER_ROOTS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
"""Integer types from narrow to wide."""

TEXT_ROOTS = frozenset({"CHAR", "VARCHAR"})
BINARY_ROOTS = frozenset({"BINARY", "VARBINARY"})
LENGTH_ROOTS = TEXT_ROOTS | BINARY_ROOTS
TIME_ROOTS = frozenset({"TIME", "TIMESTAMP", "TIMESTAMP_LTZ"})
VECTOR_ELEMENT_ROOTS = frozenset({"BOOLEAN", *INTEGER_ROOTS, "FLOAT", "DOUBLE"})

ROOTS = frozenset(
    {"BOOLEAN", *INTEGER_ROOTS, "FLOAT", "DOUBLE", "DECIMAL", *LENGTH_ROOTS, "DATE", *TIME_ROOTS}
    | {"VARIANT", "BLOB", "GEOMETRY", "GEOGRAPHY"}
)

_DEFAULT_TIME_PRECISION = {"TIME": 0, "TIMESTAMP": 6, "TIMESTAMP_LTZ": 6}


def _suffix(nullable: bool) -> str:
    return "" if nullable else " NOT NULL"


def _is_unicode(text: str) -> bool:
    """Return False for half of a surrogate pair, which neither JSON nor Arrow can hold."""
    return not _SURROGATES.search(text)


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise InvalidInputError(message)


@dataclass(frozen=True, slots=True)
class AtomicType:
    """A type without element types, with the parameters of its root.

    Missing parameters get the defaults of SQL: ``DECIMAL`` is (10, 0), ``CHAR`` has length 1, ``TIME`` precision 0 and
    ``TIMESTAMP`` precision 6. Parameters that the root does not have must be `None`. GEOMETRY and GEOGRAPHY have
    ``crs``; GEOGRAPHY also has ``algorithm``.
    """

    root: str
    nullable: bool = True
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    crs: str | None = None
    algorithm: str | None = None

    def __post_init__(self) -> None:
        root = self.root
        _check(root in ROOTS, f"unknown type {root!r}; known types are {', '.join(sorted(ROOTS))}")
        if root in LENGTH_ROOTS:
            self._fill("length", 1)
            length = self._int("length")
            _check(1 <= length <= MAX_LENGTH, f"{root}({length}): the length must be 1 to {MAX_LENGTH}")
        elif root == "DECIMAL":
            self._fill("precision", 10)
            self._fill("scale", 0)
            precision, scale = self._int("precision"), self._int("scale")
            _check(
                1 <= precision <= MAX_DECIMAL_PRECISION and 0 <= scale <= precision,
                f"DECIMAL({precision}, {scale}): the precision must be 1 to {MAX_DECIMAL_PRECISION}, "
                "the scale 0 to the precision",
            )
        elif root in TIME_ROOTS:
            self._fill("precision", _DEFAULT_TIME_PRECISION[root])
            _check(0 <= self._int("precision") <= 9, f"{root}({self.precision}): the precision must be 0 to 9")
        elif root in {"GEOMETRY", "GEOGRAPHY"}:
            self._fill("crs", "OGC:CRS84")
            if root == "GEOGRAPHY":
                self._fill("algorithm", "SPHERICAL")
        self._refuse_foreign_parameters()

    def _fill(self, name: str, default: object) -> None:
        if getattr(self, name) is None:
            object.__setattr__(self, name, default)

    def _int(self, name: str) -> int:
        value = getattr(self, name)
        if not isinstance(value, int):
            raise InvalidInputError(f"{self.root}: {name} must be an integer, not {value!r}")
        return value

    def _refuse_foreign_parameters(self) -> None:
        root = self.root
        for name, owners in (
            ("length", LENGTH_ROOTS),
            ("precision", TIME_ROOTS | {"DECIMAL"}),
            ("scale", {"DECIMAL"}),
            ("crs", {"GEOMETRY", "GEOGRAPHY"}),
            ("algorithm", {"GEOGRAPHY"}),
        ):
            _check(root in owners or getattr(self, name) is None, f"{root} has no {name}")

    def __str__(self) -> str:
        return self._name() + _suffix(self.nullable)

    def _name(self) -> str:
        match self.root:
            case "VARCHAR" if self.length == MAX_LENGTH:
                return "STRING"
            case "VARBINARY" if self.length == MAX_LENGTH:
                return "BYTES"
            case "CHAR" | "VARCHAR" | "BINARY" | "VARBINARY":
                return f"{self.root}({self.length})"
            case "DECIMAL":
                return f"DECIMAL({self.precision}, {self.scale})"
            case "TIME" | "TIMESTAMP":
                return f"{self.root}({self.precision})"
            case "TIMESTAMP_LTZ":
                return f"TIMESTAMP({self.precision}) WITH LOCAL TIME ZONE"
            case "GEOMETRY":
                return f"GEOMETRY({self.crs})"
            case "GEOGRAPHY":
                return f"GEOGRAPHY({self.crs}, {self.algorithm})"
            case root:
                return root


@dataclass(frozen=True, slots=True)
class PartialVariant(AtomicType):
    """The type VARIANT of a column of a read that needs only the values at ``paths``; others may be left out.

    ``paths``: the names of fields and the indexes of elements, from the outside to the inside.
    """

    paths: tuple[tuple[str | int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list of elements of one type."""

    element: "DataType"
    nullable: bool = True

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>{_suffix(self.nullable)}"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from keys to values; a key is never null, even if its type is nullable."""

    key: "DataType"
    value: "DataType"
    nullable: bool = True

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>{_suffix(self.nullable)}"


@dataclass(frozen=True, slots=True)
class MultisetType:
    """A multiset: elements, each with its number of occurrences (a non-null INT)."""

    element: "DataType"
    nullable: bool = True

    def __str__(self) -> str:
        return f"MULTISET<{self.element}>{_suffix(self.nullable)}"


@dataclass(frozen=True, slots=True)
class VectorType:
    """A fixed number of numbers or booleans."""

    element: "DataType"
    length: int
    nullable: bool = True

    def __post_init__(self) -> None:
        known = isinstance(self.element, AtomicType) and self.element.root in VECTOR_ELEMENT_ROOTS
        _check(known, f"VECTOR<{self.element}>: elements must be {', '.join(sorted(VECTOR_ELEMENT_ROOTS))}")
        _check(1 <= self.length <= MAX_LENGTH, f"VECTOR of length {self.length}: the length must be 1 to {MAX_LENGTH}")

    def __str__(self) -> str:
        return f"VECTOR<{self.element}, {self.length}>{_suffix(self.nullable)}"


@dataclass(frozen=True, slots=True)
class DataField:
    """A column, or a field of a ROW. Its id never changes; its name and type may.

    ``default`` is the SQL text applied to a missing value when *writing*; readers ignore it.
    """

    id: int
    name: str
    type: "DataType"
    description: str | None = None
    default: str | None = None

    def __post_init__(self) -> None:
        for text in (self.name, self.description, self.default):
            _check(text is None or text.isascii() or _is_unicode(text), f"{text!r} has half of a surrogate pair")

    def __str__(self) -> str:
        comment = "" if self.description is None else " '" + self.description.replace("'", "''") + "'"
        return "`" + self.name.replace("`", "``") + f"` {self.type}{comment}"


@dataclass(frozen=True, slots=True)
class RowType:
    """Named fields, each with an id; names are unique."""

    fields: tuple[DataField, ...]
    nullable: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        names = [field.name for field in self.fields]
        repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        _check(not repeated, f"a ROW cannot hold two fields of one name: {', '.join(repeated)}")

    def __str__(self) -> str:
        return f"ROW<{', '.join(map(str, self.fields))}>{_suffix(self.nullable)}"


DataType: TypeAlias = AtomicType | ArrayType | MapType | MultisetType | RowType | VectorType

_MICROS = 6  # digits

_T = TypeVar("_T", bound=DataType)

BOOLEAN = AtomicType("BOOLEAN")
TINYINT = AtomicType("TINYINT")
SMALLINT = AtomicType("SMALLINT")
INT = AtomicType("INT")
BIGINT = AtomicType("BIGINT")
FLOAT = AtomicType("FLOAT")
DOUBLE = AtomicType("DOUBLE")
STRING = AtomicType("VARCHAR", length=MAX_LENGTH)
BYTES = AtomicType("VARBINARY", length=MAX_LENGTH)
DATE = AtomicType("DATE")
VARIANT = AtomicType("VARIANT")


def decimal(precision: int, scale: int = 0, nullable: bool = True) -> AtomicType:
    """Return the type ``DECIMAL(precision, scale)``."""
    return AtomicType("DECIMAL", nullable, precision=precision, scale=scale)


def with_nullable(t: _T, nullable: bool) -> _T:
    """Return the type with this nullability; ``t`` itself if it has this nullability already."""
    return t if t.nullable == nullable else replace(t, nullable=nullable)


def without_finer_digits(t: DataType) -> DataType:
    """Return a timestamp type with at most six digits (microseconds); any other type unchanged."""
    if isinstance(t, AtomicType) and t.root in ("TIMESTAMP", "TIMESTAMP_LTZ") and (t.precision or 0) > _MICROS:
        return replace(t, precision=_MICROS)
    return t


def is_blob_type(t: DataType) -> bool:
    """Return True for BLOB, ARRAY<BLOB> and MAP<key, BLOB>, whose values are stored in separate files."""
    if isinstance(t, ArrayType):
        t = t.element
    elif isinstance(t, MapType):
        t = t.value
    return isinstance(t, AtomicType) and t.root == "BLOB"


def is_nested(t: DataType) -> bool:
    """Return True for ARRAY, MAP, MULTISET, ROW and VECTOR: columns of these types cannot be keys."""
    return not isinstance(t, AtomicType)
