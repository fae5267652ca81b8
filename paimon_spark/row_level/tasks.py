"""The Spark tasks of a statement: they write changed rows, count them, and collect the positions of old ones."""

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

NOT_WRITTEN = [FILE_PATH.name, ROW_INDEX.name, ROW_KIND.name]
"""The columns of rows with positions that are not written."""


@dataclass
class ChangeCounts:
    """The rows of each kind, and the positions of rows that the table has: removed ones, and others that matched."""

    kinds: Counter[str] = field(default_factory=Counter)
    removed: RowPositions = field(default_factory=RowPositions)
    matched: RowPositions = field(default_factory=RowPositions)

    @property
    def repeated(self) -> bool:
        """True if a row of the table is there several times."""
        all_rows = RowPositions()
        all_rows.update(self.removed)
        all_rows.update(self.matched)
        return all_rows.distinct < all_rows.added

    def plus(self, other: "ChangeCounts") -> "ChangeCounts":
        """Return the counts with those of another task added."""
        self.kinds.update(other.kinds)
        self.removed.update(other.removed)
        self.matched.update(other.matched)
        return self

    def added(self, batches: Iterable[pa.RecordBatch], positions: bool) -> Iterator[pa.RecordBatch]:
        """Count the rows of batches; yield those to write: if rows have positions, without them and their kinds."""
        for batch in batches:
            kinds = batch.column(ROW_KIND.name)
            self.kinds.update({str(found["values"]): found["counts"] for found in kinds.value_counts().to_pylist()})
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
        job: writes the changed rows; `None`: no row is to be written.
        positions: rows have columns that say where they are stored.
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
    """Return the counts of all tasks."""
    found = (result.counts for result in results if isinstance(result, TaskChanges))
    return reduce(ChangeCounts.plus, found, ChangeCounts())
