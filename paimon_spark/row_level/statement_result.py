"""What a statement has changed."""

from dataclasses import dataclass, field

from paimon_core import Snapshot
from paimon_core.engine import OperationMetrics


@dataclass(frozen=True)
class RowChanges:
    """The rows that a statement changed, by kind, and the snapshot it made; `None`: no row changed.

    ``num_deleted_rows`` is `None` if whole partitions were dropped unread. ``metrics`` measures the commit, the
    compaction that followed, and attempts that failed before.
    """

    num_updated_rows: int = 0
    num_deleted_rows: int | None = 0
    num_inserted_rows: int = 0
    snapshot: Snapshot | None = None
    metrics: OperationMetrics = field(default_factory=OperationMetrics, compare=False, repr=False)

    @property
    def num_affected_rows(self) -> int | None:
        """The number of rows updated, deleted and inserted."""
        deleted = self.num_deleted_rows
        return None if deleted is None else self.num_updated_rows + deleted + self.num_inserted_rows
