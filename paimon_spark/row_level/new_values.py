"""New values of columns."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from paimon_core import TableSchema
from paimon_core.errors import InvalidInputError
from paimon_core.types.columns import find_column


@dataclass(frozen=True)
class OnlyIf:
    """A condition: that the column of this name has this number."""

    column: str
    number: int


class NewValues(ABC):
    """New values of columns of the table. ``typed``: True if the values have the columns' types."""

    typed: ClassVar[bool] = False

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The columns that get a value."""

    def of_source(self) -> Mapping[str, int]:
        """Return the position in the source of each value that is a column of it, by the column that gets the value."""
        return {}

    def added(self, rows: DataFrame, names: Mapping[str, str], only_if: OnlyIf | None) -> DataFrame:
        """Return the rows with the other values as further columns, evaluated where a condition holds.

        Args:
            rows: of the statement.
            names: the name of the further column, by the column that gets the value.
            only_if: the condition; `None`: there is none.
        """
        return rows


@dataclass(frozen=True)
class GivenValues(NewValues):
    """New values as columns of Spark, by the table's own name of each column."""

    values: Mapping[str, Column]

    @property
    def names(self) -> Sequence[str]:
        """The columns that get a value."""
        return tuple(self.values)

    def added(self, rows: DataFrame, names: Mapping[str, str], only_if: OnlyIf | None) -> DataFrame:
        """See `NewValues`."""
        values = {names[name]: value for name, value in self.values.items()}
        if only_if is not None:
            applies = F.col(only_if.column) == only_if.number
            values = {name: F.when(applies, value) for name, value in values.items()}
        return rows.withColumns(values)


@dataclass(frozen=True)
class SourceValues(NewValues):
    """The columns of a source as new values: the position in the source, by the table's own name of each column.

    ``keys``: the positions of values that columns of the primary key must have already; the job fails for another.
    """

    positions: Mapping[str, int]
    keys: Mapping[str, int]

    @property
    def names(self) -> Sequence[str]:
        """The columns that get a value."""
        return tuple(self.positions)

    def of_source(self) -> Mapping[str, int]:
        """See `NewValues`."""
        return self.positions


def as_column(expression: str | Column | None) -> Column | None:
    """Return an expression in Spark's SQL as a column."""
    return F.expr(expression) if isinstance(expression, str) else expression


def assigned(schema: TableSchema, given: Mapping[str, str | Column], alias: str | None) -> GivenValues:
    """Return the new value of each column, under the column's own name.

    `alias`: of the table; a column may be called ``alias.column``.
    Raises InvalidInputError for an unknown column, for one named twice, and for no column.
    """
    values: dict[str, Column] = {}
    for name, value in given.items():
        field = find_column(schema.fields, column_name(name, alias), "the table")
        if field.name in values:
            raise InvalidInputError(f"column {field.name!r} gets two new values: give one")
        values[field.name] = F.expr(value) if isinstance(value, str) else value
    if not values:
        raise InvalidInputError("no column gets a new value: give {column: new value}")
    return GivenValues(values)


def column_name(name: str, alias: str | None) -> str:
    """Return the name of a column without the alias of its table."""
    return name.removeprefix(f"{alias}.") if alias is not None else name
