"""Row filters and column masks: what the server of a catalog lets its user see of a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import Predicate, conjunction
from paimon_core.predicate.rewrite import columns, restrict, split_by
from paimon_core.types.arrow import to_arrow
from paimon_core.types.cast import cast_array
from paimon_core.types.datatype import DataField, DataType
from paimon_core.types.selection import filter_rows

COLUMN: Final = "column"
CAST: Final = "cast"
CONCAT: Final = "concat"
CONCAT_WS: Final = "concat_ws"
UPPERCASE: Final = "upper"
LOWERCASE: Final = "lower"
NULL: Final = "null"
LIKE: Final = "like"
Argument: TypeAlias = DataField | str | None
"""A column, or a text literal."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A value that is computed from the columns of a row.

    ``function`` is one of the constants of this module. ``type`` is the type of its results. The last argument of
    `LIKE` is its pattern, and the first one of `CONCAT_WS` its separator.
    """

    function: str
    arguments: tuple[Argument, ...]
    type: DataType

    def inputs(self) -> set[str]:
        """Return the names of the columns that the expression needs."""
        return {argument.name for argument in self.arguments if isinstance(argument, DataField)}

    def values(self, rows: pa.RecordBatch) -> Any:
        """Return the value for each row, in the Arrow type of ``type``.

        Raises InvalidInputError, without the value, for a text that cannot be cast.
        """
        given = [_values(argument, rows) for argument in self.arguments]
        match self.function:
            case "column":
                return given[0]
            case "cast":
                return self._cast(given[0])
            case "upper" | "lower":
                return _in_case(given[0], uppercase=self.function == UPPERCASE)
            case "concat":
                empty = pa.scalar("", pa.string())
                return pc.binary_join_element_wise(*given, empty, null_handling="emit_null")
            case "concat_ws":
                separator, *texts = given
                missing = reduce(pc.and_, map(pc.is_null, texts))
                texts[0] = pc.if_else(missing, "", texts[0])  # Arrow loses a row whose texts are all null
                joined = pc.binary_join_element_wise(*texts, separator, null_handling="skip")
                return pc.if_else(pc.is_valid(separator), joined, pa.scalar(None, pa.string()))
            case "like":
                return pc.match_like(given[0], str(self.arguments[1]))
        return pa.nulls(rows.num_rows, to_arrow(self.type))

    def _cast(self, values: Any) -> Any:
        (source,) = self.arguments
        assert isinstance(source, DataField)
        try:
            return cast_array(values, source.type, self.type)
        except InvalidInputError:  # it quotes a value that the user may not see
            raise InvalidInputError(
                f"the catalog's server casts column {source.name!r} to {self.type} in a rule, but a value does not fit"
            ) from None


@dataclass(frozen=True, slots=True)
class Permissions:
    """The rows and the values of a table that its user may see. Without a filter and masks: all of them.

    A row is seen if ``row_filter`` is true for its stored values; then ``masks`` replace the values of columns. A mask
    is computed from stored values, too.
    """

    row_filter: Predicate | None = field(default=None, repr=False)
    """A bound predicate on stored columns and on the names of ``computed``."""
    computed: tuple[tuple[str, Expression], ...] = field(default=(), repr=False)
    """Values that only the row filter tests, by names that no column has."""
    masks: tuple[tuple[str, Expression], ...] = field(default=(), repr=False)
    """The masks by the names of their columns."""
    fields: tuple[DataField, ...] = field(default=(), repr=False)
    """The columns that the filter and the masks name, as they are in the newest schema."""
    absent: frozenset[str] = field(default=frozenset(), repr=False)
    """The names of masked columns that the newest schema does not have: an older schema may have them."""
    enforced: bool = False
    """True for a read that applies the filter and the masks."""

    @property
    def restricts(self) -> bool:
        """True if a row or a value may be hidden."""
        return self.row_filter is not None or bool(self.masks)

    @property
    def masked(self) -> frozenset[str]:
        """The names of the masked columns."""
        return frozenset(name for name, _ in self.masks)

    def needed(self, names: Iterable[str]) -> set[str]:
        """Return the stored columns that the filter, and the masks of the columns ``names``, need."""
        hidden = {name for name, _ in self.computed}
        found = set() if self.row_filter is None else columns(self.row_filter) - hidden
        read = set(names)
        used = [e for name, e in self.masks if name in read] + [expression for _, expression in self.computed]
        return found.union(*(expression.inputs() for expression in used))

    def split(self, predicate: Predicate | None) -> tuple[Predicate | None, Predicate | None]:
        """Return the part of a bound predicate that stored rows may be tested with, and the part for masked rows."""
        if predicate is None or not columns(predicate) & self.masked:
            return predicate, None
        return split_by(predicate, columns(predicate) - self.masked)

    def pushed(self, predicate: Predicate | None) -> Predicate | None:
        """Return a predicate on stored rows that is true for each row to show; `None`: it selects no rows."""
        stored, _ = self.split(predicate)
        own = None
        if self.row_filter is not None:
            own = restrict(self.row_filter, {field.name for field in self.fields})
        return conjunction([part for part in (stored, own) if part is not None])

    def shown(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that may be seen, with masked values. REQUIRES: ``rows`` has the `needed` columns."""
        if self.row_filter is not None:
            tested = rows
            for name, expression in self.computed:
                tested = tested.append_column(name, expression.values(rows))
            rows = filter_rows(rows, evaluate(self.row_filter, tested))
        stored = rows
        for name, expression in self.masks:
            position = rows.schema.get_field_index(name)
            if position >= 0:
                rows = rows.set_column(position, rows.schema.field(name), self._masked(name, expression, stored))
        return rows

    def _masked(self, name: str, expression: Expression, stored: pa.RecordBatch) -> Any:
        values = expression.values(stored)
        if values.null_count and not next(f for f in self.fields if f.name == name).type.nullable:
            raise UnsupportedError(
                f"the catalog's server masks column {name!r} with NULL, but the column is NOT NULL: make it nullable, "
                "or change the mask"
            )
        return values

    def check_columns(self, fields: Sequence[DataField], where: str) -> None:
        """Raise UnsupportedError if the rules cannot be applied to an older schema, whose columns are ``fields``.

        ``where``: the schema, for the message.
        """
        ids, names = {f.id: f for f in fields}, {f.name: f for f in fields}
        absent = sorted(self.absent & names.keys())
        if absent:
            raise UnsupportedError(
                f"{where} cannot be read: the catalog's server masks column {absent[0]!r}, which the newest schema "
                "does not have"
            )
        for rule in self.fields:
            by_id, by_name = ids.get(rule.id), names.get(rule.name)
            if by_id is None or by_id is not by_name or _root(by_id.type) != _root(rule.type):
                raise UnsupportedError(
                    f"{where} cannot be read: the catalog's server filters or masks column {rule.name!r}, which this "
                    "schema does not have in this form"
                )


UNRESTRICTED: Final = Permissions()
"""The permissions of a user who may see everything."""


def _root(kind: DataType) -> object:
    return getattr(kind, "root", type(kind))


def _values(argument: Argument, rows: pa.RecordBatch) -> Any:
    if isinstance(argument, DataField):
        return rows.column(argument.name)
    return pa.repeat(pa.scalar(argument, pa.string()), rows.num_rows)


def _in_case(texts: Any, *, uppercase: bool) -> Any:
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return (pc.ascii_upper if uppercase else pc.ascii_lower)(texts)
    # Arrow maps one character to one; Java maps some to several, as Python does: each distinct text is mapped once
    distinct = texts.dictionary_encode()
    mapped = [text.upper() if uppercase else text.lower() for text in distinct.dictionary.to_pylist()]
    return pa.array(mapped, pa.string()).take(distinct.indices)
