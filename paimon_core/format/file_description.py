"""The description of a data file that another tool wrote: its columns, rows and statistics, from its footer."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paimon_core.errors import UnsupportedError
from paimon_core.format.stats import ColumnBounds
from paimon_core.types.datatype import DataField

REWRITE = "let Spark read the files and insert their rows into a table instead"


@dataclass(frozen=True, slots=True)
class FileDescription:
    """A data file as its footer describes it."""

    path: str
    format: str
    fields: tuple[DataField, ...]
    """The columns, all nullable and without ids, in the types that every engine reads from this file."""
    row_count: int
    bounds: Mapping[str, ColumnBounds] = field(default_factory=dict)
    """The statistics of columns, as far as they are known and their order is that of the engine."""
    required: frozenset[str] = frozenset()
    """The columns that cannot hold NULL."""

    def holds_nulls(self, column: str) -> bool:
        """Return True unless the file tells that a column has no NULL."""
        known = self.bounds.get(column)
        return column not in self.required and (known is None or known.null_count != 0)


@dataclass(frozen=True, slots=True)
class ColumnInFile:
    """A column, or a part of a nested one, in a file: for messages."""

    path: str
    column: str

    def part(self, name: str) -> "ColumnInFile":
        """Return a part of this column."""
        return ColumnInFile(self.path, f"{self.column}.{name}")

    def refuse(self, found: str, why: str) -> UnsupportedError:
        """Return the error for a column that not every engine reads right."""
        return UnsupportedError(
            f"column {self.column!r} of {self.path} is stored as {found}, {why}: the file is not added; {REWRITE}"
        )
