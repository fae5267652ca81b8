"""Selection: which columns, rows and snapshot a read returns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral

import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.predicate.filter import Filter
from paimon_core.snapshot.time_travel import NEWEST, TimeTravel


@dataclass(frozen=True, slots=True)
class Selection:
    """The columns, the rows and the snapshot of one read.

    Raises InvalidInputError for a negative limit, and for one text as columns.
    """

    columns: Sequence[str] | None = None
    """Names of columns, in the order of the result; `None`: all columns."""
    filter: Filter = None
    """The rows to return, as text or a predicate; `None`: all rows."""
    limit: int | None = None
    """The maximum number of rows; `None`: all rows."""
    at: TimeTravel = NEWEST
    """The snapshot to read."""

    def __post_init__(self) -> None:
        if isinstance(self.columns, str):
            raise InvalidInputError(f"columns must be a list of names, such as [{self.columns!r}], not one text")
        if self.limit is not None and not isinstance(self.limit, Integral):
            raise InvalidInputError(f"limit must be a whole number, but is {self.limit!r}")
        if self.limit is not None and self.limit < 0:
            raise InvalidInputError(f"limit must not be negative, but is {self.limit}")

    @staticmethod
    def of(
        columns: Sequence[str] | None, filter: Filter, limit: int | None, arguments: Mapping[str, object]
    ) -> "Selection":
        """Return the selection of a call; ``arguments`` are the time-travel arguments. Raises as `TimeTravel.of`."""
        return Selection(columns, filter, limit, TimeTravel.of(arguments))

    def limited(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches up to the limit, and read no batch after it."""
        remaining = self.limit
        for batch in batches:
            if remaining is None:
                yield batch
                continue
            if remaining > 0:
                yield batch.slice(0, remaining)
                remaining -= batch.num_rows
            if remaining <= 0:
                return
