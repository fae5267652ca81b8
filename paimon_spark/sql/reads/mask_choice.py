"""The choice between masks and tasks for a scan whose files are merged, and its cost model.

The constants are processor time on one core of the test machine. Only their ratios decide.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from paimon_core.engine import FileStore, key_condition
from paimon_spark.distribute import parallelism
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.masks import FileMask, MergeMask, masks_of, merge_threads, merged_rows
from paimon_spark.sql.reads.planned_scan import PlannedScan
from paimon_spark.sql.reads.pushdown import without_implied
from paimon_spark.sql.session_options import MASK_ROWS

_KEY = 45e-9
"""Seconds to decode and merge one key column of one row."""
_NATIVE = 25e-9
"""Seconds for one column of one row in Spark's own scan."""
_TASK = 40e-9
"""Seconds for one column of one row that a task decodes, merges and passes to Spark."""
_START = 0.15
"""Seconds until tasks in Python return the first row."""
_QUERIES = 2
"""The number of queries on the same files for which masks, which are computed once, must pay off."""


@dataclass(frozen=True)
class MergeCost:
    """The work of a scan whose files are merged, and the time that each strategy takes."""

    rows: int
    """The rows of the files that are merged."""
    keys: int
    """The number of key and sequence columns."""
    columns: int
    """The number of columns of the query."""
    sections: int
    """The number of merges, which can run at the same time."""
    threads: int
    """The number of merges that the driver runs at a time."""
    slots: int
    """The number of tasks that Spark runs at a time."""
    in_tasks: bool = False
    """True if the rows are too many for the driver, so that Spark's tasks compute the masks."""

    @property
    def merge_seconds(self) -> float:
        """The time in which the driver or tasks compute the masks."""
        seconds = self.rows * self.keys * _KEY
        if self.in_tasks:
            return _START + seconds / min(self.sections, self.slots)
        return seconds / min(self.sections, self.threads)

    @property
    def native_seconds(self) -> float:
        """The time of Spark's own scan with masks."""
        return self.rows * (1 + self.columns) * _NATIVE / self.slots

    @property
    def task_seconds(self) -> float:
        """The time of tasks that merge the files."""
        seconds = self.rows * (self.keys * _KEY + self.columns * _TASK)
        return _START + seconds / min(self.sections, self.slots)

    @property
    def pays(self) -> bool:
        """True if masks are faster than tasks, over a few queries on the same files."""
        return self.merge_seconds + _QUERIES * self.native_seconds <= _QUERIES * self.task_seconds

    @property
    def counting_pays(self) -> bool:
        """True if masks are faster than tasks for a few queries that only count the rows."""
        return self.merge_seconds <= _QUERIES * self.task_seconds


@dataclass(frozen=True)
class MergeChoice:
    """The choice between masks and tasks."""

    masks: Sequence[FileMask] | None
    """The masks of the scan; `None`: tasks are faster."""
    reason: str
    """The reason for the choice in words, for EXPLAIN."""


def merge_choice(jvm: Jvm, planned: PlannedScan, masks: Sequence[FileMask], most_rows: int) -> MergeChoice:
    """Choose between masks and tasks.

    If the driver has no masks of the files, it computes masks for the rows that a condition on the key selects.

    Args:
        jvm: the JVM of the session, which caches masks.
        planned: the scan.
        masks: the masks of all files.
        most_rows: the most rows that the driver merges; Spark's tasks compute the masks of more rows.
    """
    store, plan = planned.scan.store, planned.plan
    if _are_cached(jvm, masks):
        return MergeChoice(masks, "the driver has the masks")
    condition = key_condition(store, without_implied(planned.scan.predicate))
    rows = merged_rows(masks)
    if condition is not None and rows > most_rows:
        return MergeChoice(None, f"the filter selects keys of {rows} rows, which exceed {MASK_ROWS}")
    if condition is not None:
        return MergeChoice(masks_of(store, plan, condition), "the driver merges the keys of the filter")
    cost = _cost(jvm, store, masks, len(planned.request.columns), most_rows)
    if cost.pays:
        return MergeChoice(masks, f"{'Spark tasks merge' if cost.in_tasks else 'the driver merges'} {rows} rows")
    seconds = cost.merge_seconds + cost.native_seconds
    return MergeChoice(None, f"tasks take about {cost.task_seconds:.1f} s, and masks about {seconds:.1f} s")


def counts_pay(jvm: Jvm, store: FileStore, masks: Sequence[FileMask], most_rows: int) -> bool:
    """Return True if the driver counts rows by masks at least as fast as tasks count them.

    Args:
        jvm: the JVM of the session, which caches masks.
        store: the table.
        masks: the masks of all files.
        most_rows: as for `merge_choice`.
    """
    return _are_cached(jvm, masks) or _cost(jvm, store, masks, 1, most_rows).counting_pays


def _are_cached(jvm: Jvm, masks: Sequence[FileMask]) -> bool:
    """Return True if the JVM has the masks of all merged files."""
    keys = [mask.key for mask in masks if isinstance(mask, MergeMask)]
    return bool(jvm.call("PositionMask", "holds", json.dumps(keys)))


def _cost(jvm: Jvm, store: FileStore, masks: Sequence[FileMask], columns: int, most_rows: int) -> MergeCost:
    merges, rows = [mask for mask in masks if isinstance(mask, MergeMask)], merged_rows(masks)
    order = store.traits.merge_order()
    return MergeCost(
        rows,
        len(order.key) + len(order.sequence_fields),
        columns,
        len({mask.digest for mask in merges}) or 1,
        merge_threads(store),
        parallelism(jvm.spark),
        in_tasks=rows > most_rows,
    )
