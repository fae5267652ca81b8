"""The result of a DELETE, UPDATE or MERGE."""

from dataclasses import dataclass, field

from paimon_core import Snapshot
from paimon_core.engine import OperationMetrics


@dataclass(frozen=True)
class RowChanges:
    """The numbers of rows that a statement changed, and its snapshot; `None`: no row changed.

    ``num_deleted_rows``: `None` if whole partitions were dropped without counting their rows. ``metrics``: measures the
    commit, the compaction after it, and failed attempts before it.
    """

    num_updated_rows: int = 0
    num_deleted_rows: int | None = 0
    num_inserted_rows: int = 0
    snapshot: Snapshot | None = None
    metrics: OperationMetrics = field(default_factory=OperationMetrics, compare=False, repr=False)

    @property
    def num_affected_rows(self) -> int | None:
        """The number of rows updated, deleted and inserted; `None` if the deleted rows were not counted."""
        deleted = self.num_deleted_rows
        return None if deleted is None else self.num_updated_rows + deleted + self.num_inserted_rows
