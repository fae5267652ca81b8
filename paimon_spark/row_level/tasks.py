"""The Spark tasks of a statement, which write and count changed rows, and collect the positions of old rows."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.engine import RowPositions
from paimon_core.types.system_fields import FILE_PATH, ROW_INDEX, ROW_KIND
from paimon_spark.row_level.rows import DELETED, INSERTED, MATCHED, UPDATED
from paimon_spark.write_job import TaskWrites, WriteJob

NOT_WRITTEN = [FILE_PATH.name, ROW_INDEX.name]
"""The columns that are not written, of rows with positions."""


@dataclass
class ChangeCounts:
    """The number of rows of each kind, and the positions of removed table rows and of unchanged rows that matched."""

    kinds: Counter[str] = field(default_factory=Counter)
    removed: RowPositions = field(default_factory=RowPositions)
    matched: RowPositions = field(default_factory=RowPositions)

    @property
    def repeated(self) -> bool:
        """True if a table row was counted more than once."""
        all_rows = RowPositions()
        all_rows.update(self.removed)
        all_rows.update(self.matched)
        return all_rows.distinct < all_rows.added

    def plus(self, other: "ChangeCounts") -> "ChangeCounts":
        """Add the counts of another task, and return the sum."""
        self.kinds.update(other.kinds)
        self.removed.update(other.removed)
        self.matched.update(other.matched)
        return self

    def added(self, batches: Iterable[pa.RecordBatch], positions: bool) -> Iterator[pa.RecordBatch]:
        """Count the rows of batches; yield the rows to write.

        `positions`: True if rows have positions, which are collected, and removed from the rows.
        """
        for batch in batches:
            kinds = batch.column(ROW_KIND.name)
            self.kinds.update({str(count["values"]): count["counts"] for count in kinds.value_counts().to_pylist()})
            if not positions:
                yield batch
                continue
            self._collect(batch, pc.is_in(kinds, pa.array([DELETED, UPDATED])), self.removed)
            self._collect(batch, pc.equal(kinds, MATCHED), self.matched)
            written = batch.filter(pc.is_in(kinds, pa.array([UPDATED, INSERTED])))
            yield written.drop_columns(NOT_WRITTEN)

    @staticmethod
    def _collect(batch: pa.RecordBatch, chosen: pa.Array, to: RowPositions) -> None:
        rows = batch.select([FILE_PATH.name, ROW_INDEX.name]).filter(chosen)
        if rows.num_rows:
            to.add(rows.column(0), rows.column(1))


@dataclass(frozen=True)
class TaskChanges(TaskWrites):
    """The result of one task of a statement."""

    counts: ChangeCounts = field(default_factory=ChangeCounts)


@dataclass(frozen=True)
class ChangeTask:
    """The function that each task runs. It pickles.

    Args:
        job: writes the changed rows; `None`: the statement writes no rows.
        positions: True if rows have columns with their stored positions.
    """

    job: WriteJob | None
    positions: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> TaskChanges:
        """Write the rows of one task."""
        counts = ChangeCounts()
        rows = counts.added(batches, self.positions)
        written = TaskWrites() if self.job is None else self.job.write(rows)
        deque(rows, maxlen=0)
        return TaskChanges(**{f.name: getattr(written, f.name) for f in fields(TaskWrites)}, counts=counts)


def total(results: Iterable[object]) -> ChangeCounts:
    """Return the sum of the counts of all tasks."""
    counts = (result.counts for result in results if isinstance(result, TaskChanges))
    return reduce(ChangeCounts.plus, counts, ChangeCounts())
