"""The strategy of a scan: the reader of its rows, and the reason for the choice.

To add a strategy, write a class with `description` and `source` and a function of type `Offer`. Add the function to
`OFFERS`, and the kind of the source to ``PaimonScan.java``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from paimon_core import Plan
from paimon_core.engine import reads_branches
from paimon_core.options.scan import SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED
from paimon_spark.internals import java_rows
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.driver_rows import frame_of_batches, small_read
from paimon_spark.sql.reads.expired_reads import native_read
from paimon_spark.sql.reads.native import NativeFiles, divided_files, native_files, scan_text, with_options
from paimon_spark.sql.reads.planned_scan import PlannedScan
from paimon_spark.sql.reads.source import Source, source_of_reader
from paimon_spark.sql.session_options import NATIVE_READS


@dataclass(frozen=True)
class Native:
    """Spark's own scan reads the files."""

    files: NativeFiles
    note: str = ""
    """A remark for plans about the files that this scan does not read."""

    @property
    def description(self) -> str:
        """The strategy in words, for plans and EXPLAIN."""
        return f"{self.files}{self.note}"

    def source(self, planned: PlannedScan, jvm: Jvm) -> Source:
        """Return the files as the source. Errors of the read are translated while the source is alive."""
        store, snapshot = planned.scan.store, planned.scan.snapshot
        read = None if snapshot is None else native_read(store, snapshot, self.files.sizes)
        return Source("native", scan_text(store.schema, self.files, planned.request.columns), read)


@dataclass(frozen=True)
class DriverRows:
    """The driver reads the rows, which are few, and sends them to one task."""

    rows: str
    """A description of the rows."""
    reason: str
    """Why Spark's own scan does not read."""

    @property
    def description(self) -> str:
        """The strategy in words, for plans and EXPLAIN."""
        return f"in the driver: {self.rows}; {self.reason}"

    def source(self, planned: PlannedScan, jvm: Jvm) -> Source:
        """Read the rows and return them as a Java Dataset."""
        reader = planned.reader_of_plan()
        batches = reader.batches(reader.splits())
        return Source("rows", java_rows(frame_of_batches(jvm.active_session(), batches, planned.request.columns)))


@dataclass(frozen=True)
class Tasks:
    """Spark tasks of the Python data source read the rows."""

    reason: str
    """Why Spark's own scan does not read."""

    @property
    def description(self) -> str:
        """The strategy in words, for plans and EXPLAIN."""
        return f"through Python: {self.reason}"

    def source(self, planned: PlannedScan, jvm: Jvm) -> Source:
        """Return the tasks, planned by the driver."""
        return source_of_reader(jvm, planned.reader(), planned.request, planned.source_options())


@dataclass(frozen=True)
class Divided:
    """Spark's own scan reads some files, and tasks read the rest: an optimizer rule divides the scan if it can."""

    native: Native
    native_plan: Plan
    rest: Tasks
    rest_plan: Plan
    reason: str
    """Why Spark's own scan does not read all files."""

    @property
    def description(self) -> str:
        """The strategy of the scan while it is not divided."""
        return f"through Python: {self.reason}"

    @property
    def summary(self) -> str:
        """The strategies of both scans in words, for EXPLAIN."""
        return f"{self.native.files}; {self.rest.description.partition(';')[0]}"

    def source(self, planned: PlannedScan, jvm: Jvm) -> Source:
        """Return the tasks of the whole scan, in case no rule has divided it."""
        return Tasks(self.reason).source(planned, jvm)


Strategy: TypeAlias = Native | DriverRows | Tasks | Divided
Offer: TypeAlias = Callable[[PlannedScan, Jvm, str], Strategy | None]
"""A function from a scan and the reason why it is not native to a strategy; `None`: the strategy does not apply."""


def choose(planned: PlannedScan, jvm: Jvm, *, native: bool) -> Strategy:
    """Choose the strategy of a scan.

    Args:
        planned: the scan.
        jvm: the JVM of the session.
        native: True if the session allows reads without Python's tasks.
    """
    if not native:
        return Tasks(f"{NATIVE_READS} is off")
    reason = _unsuitable(planned)
    if reason is not None:
        return Tasks(reason)
    files = native_files(jvm, planned.scan.store, planned.request.columns, lambda: planned.plan)
    if isinstance(files, NativeFiles):
        return Native(files)
    offers = (offer(planned, jvm, files) for offer in OFFERS)
    return next((strategy for strategy in offers if strategy is not None), Tasks(files))


def _unsuitable(planned: PlannedScan) -> str | None:
    """Return the reason why tasks must read the scan, regardless of its files; `None`: it depends on the files."""
    request, store = planned.request, planned.scan.store
    if request.other_options:
        return with_options(request.other_options)
    if reads_branches(store):
        return "rows come from two branches"
    if store.options.has(SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED):
        return f"{SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED.key} tags what tasks read"
    return planned.mismatch


def _driver_rows(planned: PlannedScan, jvm: Jvm, reason: str) -> DriverRows | None:
    schema, request = planned.scan.store.schema, planned.request
    rows = small_read(schema, planned.plan.splits, request.columns, request.predicate)
    return None if rows is None else DriverRows(rows, reason)


def _divided(planned: PlannedScan, jvm: Jvm, reason: str) -> Divided | None:
    division = divided_files(jvm, planned.scan.store, planned.request.columns, planned.plan)
    if division is None:
        return None
    files, native_plan, rest_plan = division
    names = {file.file_name for split in rest_plan.splits for file in split.files}
    rest = Tasks(f"{len(names)} of {files.of} files, merged or with deleted rows; others are native")
    return Divided(Native(files, ", others through Python"), native_plan, rest, rest_plan, reason)


OFFERS: Sequence[Offer] = (_driver_rows, _divided)
"""The strategies for a scan that cannot be native, from best to worst."""
