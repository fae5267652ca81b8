"""New values of columns in UPDATE and MERGE."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from paimon_core import TableSchema
from paimon_core.errors import InvalidInputError
from paimon_core.types.columns import Columns


@dataclass(frozen=True)
class OnlyIf:
    """The condition that the column `column` equals `number`."""

    column: str
    number: int


class NewValues(ABC):
    """New values of table columns. ``typed``: True if the values already have the types of the columns."""

    typed: ClassVar[bool] = False

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """The columns that get a value."""

    def of_source(self) -> Mapping[str, int]:
        """Return, by target column, the positions of the source columns that are used unchanged as values."""
        return {}

    def added(self, rows: DataFrame, names: Mapping[str, str], only_if: OnlyIf | None) -> DataFrame:
        """Add the remaining values to the rows as extra columns, evaluated only where a condition is true.

        Args:
            rows: the rows of the statement.
            names: the name of the extra column for each target column.
            only_if: the condition; `None`: evaluate the values for every row.
        """
        return rows


@dataclass(frozen=True)
class GivenValues(NewValues):
    """New values as Spark columns, by the column name in the table."""

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
    """Source columns as new values: positions in the source, by the column name in the table.

    ``keys``: source positions that must equal the existing primary key columns; the job fails for any other value.
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
    """Return a Spark SQL expression as a Column; a Column and `None` unchanged."""
    return F.expr(expression) if isinstance(expression, str) else expression


def assigned(schema: TableSchema, assignments: Mapping[str, str | Column], alias: str | None) -> GivenValues:
    """Return the new value of each column, under its name in the table.

    `alias`: the alias of the table, which may prefix a column as in ``alias.column``; `None`: no alias.
    Raises InvalidInputError for an unknown column, for a column with two values, and for no column.
    """
    values: dict[str, Column] = {}
    columns = Columns(schema.fields, "the table")
    for name, value in assignments.items():
        field = columns.find(column_name(name, alias))
        if field.name in values:
            raise InvalidInputError(f"column {field.name!r} gets two new values: set it once")
        values[field.name] = F.expr(value) if isinstance(value, str) else value
    if not values:
        raise InvalidInputError("no column gets a new value: pass {column: new value}")
    return GivenValues(values)


def column_name(name: str, alias: str | None) -> str:
    """Return the name of a column without the alias of its table."""
    return name.removeprefix(f"{alias}.") if alias is not None else name
