"""The description of a data file of another tool: its columns, rows and statistics, from its footer."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paimon_core.errors import UnsupportedError
from paimon_core.format.stats import ColumnBounds
from paimon_core.types.datatype import DataField

REWRITE = "let Spark read the files and insert their rows into a table instead"


@dataclass(frozen=True, slots=True)
class FileDescription:
    """The columns, rows and statistics of a data file, from its footer."""

    path: str
    format: str
    fields: tuple[DataField, ...]
    """The columns, all nullable and without field ids, with the types that every engine reads from this file."""
    row_count: int
    bounds: Mapping[str, ColumnBounds] = field(default_factory=dict)
    """Statistics by column, only for columns with statistics in the engine's sort order."""
    required: frozenset[str] = frozenset()
    """The columns that cannot hold NULL."""

    def holds_nulls(self, column: str) -> bool:
        """Return True unless the metadata proves that a column has no NULL."""
        bounds = self.bounds.get(column)
        return column not in self.required and (bounds is None or bounds.null_count != 0)


@dataclass(frozen=True, slots=True)
class ColumnInFile:
    """The name of a column, or of a part of a nested column, and its file, for messages."""

    path: str
    column: str

    def part(self, name: str) -> "ColumnInFile":
        """Return a part of this column."""
        return ColumnInFile(self.path, f"{self.column}.{name}")

    def refuse(self, form: str, why: str) -> UnsupportedError:
        """Return the error for a column that some engines misread. ``form``: how it is stored; ``why``: the reason."""
        return UnsupportedError(
            f"column {self.column!r} of {self.path} is stored as {form}, {why}: the file is not added; {REWRITE}"
        )
