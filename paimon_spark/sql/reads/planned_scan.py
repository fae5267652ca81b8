"""A scan that is planned once, so that its strategy, statistics, explanation and tasks use the same plan."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql.datasource import DataSourceReader

from paimon_core import Plan, TableScan
from paimon_core.engine import (
    TIME_TRAVEL_OPTIONS,
    Predicate,
    branch_splits,
    conjunction,
    prune_by_footers,
    reads_branches,
)
from paimon_spark.datasource import reader_of_options
from paimon_spark.option_names import canonical
from paimon_spark.options import DEFAULT_BATCH_ROWS, DEFAULT_MIN_TASKS
from paimon_spark.reader import PaimonReader, Splits
from paimon_spark.sql.reads.bucketed import Bucketing, bucketing_of
from paimon_spark.sql.reads.native import may_be_shredded
from paimon_spark.sql.reads.scan_request import ScanRequest
from paimon_spark.sql.reads.statistics import scan_statistics


@dataclass
class PlannedScan:
    """The scan of a request, its plan and its statistics."""

    scan: TableScan
    """The scan of the snapshot that the request names, with its predicate and with timestamps in microseconds."""
    request: ScanRequest
    address: Mapping[str, str]
    """The options with which the Python data source opens the table."""
    mismatch: str | None = None
    """A description of a column that differs between Spark's schema and the snapshot's; `None`: no difference."""
    with_current_columns: bool = False
    """True if an option chose a snapshot with other columns; its rows are read with the table's current columns."""
    selects: Predicate | None = None
    """The part of the predicate that Spark does not evaluate again, so that only the engine reads; `None`: no part."""
    variant_tests: Predicate | None = None
    """Tests of values in variants, bound like the predicate of the scan, which prune files; Spark evaluates them."""
    part: Plan | None = None
    """The plan, if this scan is a part of another scan; `None`: the scan computes its plan."""
    batch_rows: int = DEFAULT_BATCH_ROWS
    """The most rows in a batch that a task passes to Spark."""
    min_tasks: int = DEFAULT_MIN_TASKS
    """The least number of tasks of the read; the plan may have fewer splits."""
    asks_buckets: bool = False
    """True if Spark uses the bucketing of a scan."""

    @property
    def reads_branches(self) -> bool:
        """True if the rows come from two branches."""
        return reads_branches(self.scan.store) and not self.request.time_travel

    @cached_property
    def splits_of_branches(self) -> Splits:
        """The splits by the branch that reads them; `None`: the branch of the scan."""
        return branch_splits(self.scan) if self.reads_branches else [(None, self.plan.splits)]

    @cached_property
    def plan(self) -> Plan:
        """The plan of the scan, with the splits of both branches if there are two."""
        if self.part is not None:
            return self.part
        if self.reads_branches:
            return Plan(self.scan.snapshot, [split for _, splits in self.splits_of_branches for split in splits])
        plan, tests = self.scan.plan(), self.variant_tests
        if tests is None or not may_be_shredded(self.scan.store, plan.splits):
            return plan
        return prune_by_footers(self.scan.store, plan, tests)

    @cached_property
    def bucketing(self) -> Bucketing | None:
        """The bucketing of the scan; `None`: Spark does not use it, or the scan has no buckets to report."""
        if not self.asks_buckets or self.reads_branches or self.request.other_options:
            return None
        return bucketing_of(self.scan.store, self.plan.splits, self.request.columns.names)

    def statistics(self) -> str:
        """Return the rows, bytes and columns of the scan as JSON, for ``PaimonScan.java``."""
        return scan_statistics(self.scan, self.plan.splits)

    def narrowed(self, predicate: Predicate | None) -> "PlannedScan":
        """Return the scan with an additional bound predicate; it is planned again."""
        if predicate is None:
            return self
        request = replace(self.request, predicate=_both(self.request.predicate, predicate))
        return replace(self, scan=replace(self.scan, predicate=_both(self.scan.predicate, predicate)), request=request)

    def of_part(self, plan: Plan) -> "PlannedScan":
        """Return the scan of a part of the plan."""
        return replace(self, part=plan)

    def reader(self) -> DataSourceReader:
        """Return the reader for tasks. It reads the plan unless options do more than choose a snapshot."""
        return self.reader_of_options() if self.request.other_options else self.reader_of_plan()

    def reader_of_plan(self) -> PaimonReader:
        """Return the reader of the plan's splits.

        REQUIRES: the options of the request do no more than choose a snapshot.
        """
        reader = PaimonReader(
            self.scan,
            self.request.columns,
            newest=not self.request.time_travel,
            batch_rows=self.batch_rows,
            min_tasks=self.min_tasks,
            by_bucket=self.bucketing is not None,
        )
        return reader.of_splits(self.splits_of_branches)

    def reader_of_options(self) -> DataSourceReader:
        """Return the reader that the options of the request describe, which may read other rows or files."""
        request = self.request
        return reader_of_options(self.source_options(), request.columns, request.predicate, request.limit)

    def of_options(self) -> "PlannedScan":
        """Return the scan that the options of the request describe.

        REQUIRES: the options read rows, not changes.
        """
        reader = self.reader_of_options()
        assert isinstance(reader, PaimonReader)
        return replace(self, scan=reader.scan)

    def source_options(self) -> dict[str, str]:
        """Return the options of the Python data source, without the filter and the limit of the query."""
        if not self.with_current_columns or self.scan.snapshot is None:
            return {**self.address, **self.request.source_options()}
        named = canonical(self.request.options)
        others = {key: value for key, value in named.items() if key not in (*TIME_TRAVEL_OPTIONS, "scan.mode")}
        return {**self.address, **others, "read.rows-of-snapshot": str(self.scan.snapshot.id)}


def _both(first: Predicate | None, second: Predicate) -> Predicate | None:
    return second if first is None else conjunction([first, second])
