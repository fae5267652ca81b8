"""The strategy of a scan: the reader of its rows, and the reason for the choice.

To add a strategy, write a class with `description` and `source` and a function of type `Offer`. Add the function to
`OFFERS`, and the kind of the source to ``PaimonScan.java``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from paimon_core import Plan
from paimon_core.engine import reads_branches
from paimon_core.options.scan import SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.driver_rows import matching_rows, rows_of_small_files, small_read, stream_of_batches
from paimon_spark.sql.reads.expired_reads import native_read
from paimon_spark.sql.reads.mask_choice import merge_choice
from paimon_spark.sql.reads.masks import FileMask, MergeMask, masked_text, masks_of, unsuitable_masks, unsuitable_merge
from paimon_spark.sql.reads.native import (
    NativeFiles,
    divided_plan,
    native_files,
    scan_text,
    sizes_of,
    unsuitable_variants,
    with_options,
)
from paimon_spark.sql.reads.planned_scan import PlannedScan
from paimon_spark.sql.reads.source import Source, source_of_reader
from paimon_spark.sql.session_options import NATIVE_READS, ReadSettings


@dataclass(frozen=True)
class Native:
    """Spark's own scan reads the files."""

    files: NativeFiles
    masks: Sequence[FileMask] = ()
    """The masks of the files with deleted rows, in the order of their indexes."""
    note: str = ""
    """A remark for plans about the files that this scan does not read."""

    @property
    def description(self) -> str:
        """The strategy in words, for plans and EXPLAIN."""
        return f"{self.summary}{self.note}"

    @property
    def summary(self) -> str:
        """The strategy in words, without the remark about other files."""
        if not self.masks:
            return str(self.files)
        merged = any(isinstance(mask, MergeMask) for mask in self.masks)
        return f"{self.files}, with {'superseded' if merged else 'deleted'} rows masked"

    def restricted(self, planned: PlannedScan) -> "Native":
        """Return the strategy for the files of a narrowed scan; the masks keep their indexes."""
        sizes = sizes_of(planned.scan.store, planned.plan)
        return replace(
            self, files=replace(self.files, sizes={uri: sizes[uri] for uri in self.files.sizes if uri in sizes})
        )

    def source(self, planned: PlannedScan, jvm: Jvm) -> Source:
        """Return the files as the source. Errors of the read are translated while the source is alive."""
        store, snapshot = planned.scan.store, planned.scan.snapshot
        read = None if snapshot is None else native_read(store, snapshot, self.files.sizes)
        masked = masked_text(self.masks) if self.masks else None
        keys = None if planned.bucketing is None else planned.bucketing.keys_of_files(planned.plan.splits)
        text = scan_text(store.schema, self.files, planned.request.columns, masked)
        return Source("native", text, read, keys)


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
        return Source("rows", stream_of_batches(batches, planned.request.columns))


@dataclass(frozen=True)
class ReadRows:
    """The driver has read the rows while it planned the scan, and sends them to one task."""

    batches: Sequence[pa.RecordBatch]
    files: int
    """The number of files of the scan."""
    kind: str = "matching rows"
    """The rows in words: those that match a filter for a few values, or all of them."""

    @property
    def description(self) -> str:
        """The strategy in words, for plans and EXPLAIN."""
        rows = sum(batch.num_rows for batch in self.batches)
        return f"in the driver: {rows} {self.kind} of {self.files} files"

    def source(self, planned: PlannedScan, jvm: Jvm) -> Source:
        """Return the rows. Runtime filters of a join do not select from them, because Spark joins them anyway."""
        return Source("rows", stream_of_batches(self.batches, planned.request.columns))


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
        return source_of_reader(jvm, planned.reader(), planned.request, planned.source_options(), planned.bucketing)


@dataclass(frozen=True)
class Masked:
    """Spark's own scan reads the files, and a filter, which an optimizer rule adds, drops their deleted rows."""

    native: Native
    reason: str
    """Why Spark's own scan cannot read without the filter."""
    origin: str = ""
    """The origin of the masks in words, for EXPLAIN; empty: deletion vectors."""

    @property
    def description(self) -> str:
        """The strategy of the scan while it has no filter of deleted rows."""
        return f"through Python: {self.reason}"

    @property
    def summary(self) -> str:
        """The strategy of the scan with the filter in words, for EXPLAIN."""
        return f"{self.native.summary}: {self.origin}" if self.origin else self.native.summary

    def source(self, planned: PlannedScan, jvm: Jvm) -> Source:
        """Return the tasks of the scan, in case no rule has added the filter."""
        return Tasks(self.reason).source(planned, jvm)


@dataclass(frozen=True)
class Divided:
    """Spark's own scan reads some files, and tasks read the rest: an optimizer rule divides the scan if it can."""

    native: Native | Masked
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
        return f"{self.native.summary}; {self.rest.description.partition(';')[0]}"

    def source(self, planned: PlannedScan, jvm: Jvm) -> Source:
        """Return the tasks of the whole scan, in case no rule has divided it."""
        return Tasks(self.reason).source(planned, jvm)


Strategy: TypeAlias = Native | DriverRows | ReadRows | Tasks | Masked | Divided
Offer: TypeAlias = Callable[[PlannedScan, Jvm, ReadSettings, str], Strategy | str]
"""A function from a scan and the reason why it is not native to a strategy.

If the strategy does not apply, the function returns the reason for the next one, which may say more.
"""


def choose(planned: PlannedScan, jvm: Jvm, settings: ReadSettings) -> Strategy:
    """Choose the strategy of a scan.

    Args:
        planned: the scan.
        jvm: the JVM of the session.
        settings: the settings of the session.
    """
    if not settings.native:
        return Tasks(f"{NATIVE_READS} is off")
    reason = _unsuitable(planned) or unsuitable_variants(planned.request.columns, settings)
    if reason is not None:
        return Tasks(reason)
    files = native_files(jvm, planned.scan.store, planned.request.columns, lambda: planned.plan)
    if isinstance(files, NativeFiles):
        rows = _matching_rows(planned, files) or _rows_of_small_files(planned, files)
        if rows is not None:
            return rows
        if planned.selects is None:
            return Native(files)
        files = with_options(["filter"])
    result: Strategy | str = files
    for offer in OFFERS if planned.selects is None else (_driver_rows,):
        if not isinstance(result, str):
            return result
        result = offer(planned, jvm, settings, result)
    return Tasks(result) if isinstance(result, str) else result


def _matching_rows(planned: PlannedScan, files: NativeFiles) -> ReadRows | None:
    """Return the rows of a filter for a few values; `None`: Spark's own scan of the files is faster."""
    batches = None if planned.scan.predicate is None else matching_rows(planned.reader_of_plan(), planned.plan)
    return None if batches is None else ReadRows(batches, len(files.sizes))


def _rows_of_small_files(planned: PlannedScan, files: NativeFiles) -> ReadRows | None:
    """Return the rows of many small local files; `None`: Spark's own scan of the files is as fast."""
    if not files.is_local or planned.bucketing is not None:
        return None
    batches = rows_of_small_files(planned.reader_of_plan(), planned.plan, planned.request.columns)
    return None if batches is None else ReadRows(batches, len(files.sizes), "rows")


def summary(strategy: Strategy) -> str:
    """Return a strategy in words for EXPLAIN, on the condition that the optimizer rules are applied."""
    return strategy.summary if isinstance(strategy, Masked | Divided) else strategy.description


def _unsuitable(planned: PlannedScan) -> str | None:
    """Return the reason why tasks must read the scan, regardless of its files; `None`: it depends on the files."""
    request, store = planned.request, planned.scan.store
    if store.is_restricted:
        return "the catalog's server filters the rows or masks the columns"
    if request.other_options:
        return with_options(request.other_options)
    if reads_branches(store):
        return "rows come from two branches"
    if store.options.has(SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED):
        return f"{SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED.key} tags what tasks read"
    return planned.mismatch


def _bucketed(planned: PlannedScan, jvm: Jvm, settings: ReadSettings, reason: str) -> Tasks | str:
    masked = any(split.vectors for split in planned.plan.splits)  # a filter of deleted rows is worth more
    return reason if planned.bucketing is None or masked else Tasks(f"{reason}, and Spark joins by buckets")


def _driver_rows(planned: PlannedScan, jvm: Jvm, settings: ReadSettings, reason: str) -> Strategy | str:
    schema, request = planned.scan.store.schema, planned.request
    rows = small_read(schema, planned.plan.splits, request.columns, request.predicate)
    return reason if rows is None else DriverRows(rows, reason)


def _masked(planned: PlannedScan, jvm: Jvm, settings: ReadSettings, reason: str) -> Masked | Native | str:
    store, plan = planned.scan.store, planned.plan
    merged = any(not split.raw_convertible for split in plan.splits)
    unsuitable = unsuitable_merge(store, plan, settings.mask_rows) if merged else None
    masks = [] if unsuitable is not None else masks_of(store, plan)
    unsuitable = unsuitable or unsuitable_masks(store, masks, settings.mask_memory)
    if unsuitable is not None:
        return f"{reason}, and {unsuitable}"
    if not masks and not merged:
        return reason
    bare = replace(plan, splits=[replace(split, vectors=(), raw_convertible=True) for split in plan.splits])
    files = native_files(jvm, store, planned.request.columns, lambda: bare)
    if isinstance(files, str):
        return files
    if not masks:  # no file overlaps with another file of its split
        return Native(files)
    if files.kind != "parquet":
        return f"{reason}, and only Parquet files have masks"
    if not merged:
        return Masked(Native(files, masks), reason)
    choice = merge_choice(jvm, planned, masks, settings.mask_rows)
    if choice.masks is None:
        return f"{reason}, and {choice.reason}"
    return Masked(Native(files, choice.masks), reason, choice.reason)


def _matching_or_masked(
    planned: PlannedScan, jvm: Jvm, settings: ReadSettings, reason: str
) -> ReadRows | Masked | Native | str:
    masked = _masked(planned, jvm, settings, reason)
    if isinstance(masked, Masked):
        return _matching_rows(planned, masked.native.files) or masked
    return masked


def _divided(planned: PlannedScan, jvm: Jvm, settings: ReadSettings, reason: str) -> Divided | str:
    for masked in (True, False):
        division = divided_plan(planned.plan, masked=masked)
        native = None if division is None else _native_part(planned.of_part(division[0]), jvm, settings, reason)
        if division is not None and native is not None:
            return _division(native, division, reason)
    return reason


def _native_part(planned: PlannedScan, jvm: Jvm, settings: ReadSettings, reason: str) -> Native | Masked | None:
    """Return the strategy of a part of a scan without merged files; `None`: Spark's own scan cannot read the part."""
    if any(split.vectors for split in planned.plan.splits):
        masked = _masked(planned, jvm, settings, reason)
        return None if isinstance(masked, str) else masked
    files = native_files(jvm, planned.scan.store, planned.request.columns, lambda: planned.plan)
    return None if isinstance(files, str) else Native(files)


def _division(native: Native | Masked, plans: tuple[Plan, Plan], reason: str) -> Divided:
    """Return the strategy of a division into two plans; `native` reads the first plan."""
    scan = native.native if isinstance(native, Masked) else native
    names = {file.file_name for split in plans[1].splits for file in split.files}
    number, of = len(names), scan.files.of
    kinds = "merged" if scan.masks else "merged or with deleted rows"
    rest = Tasks(f"{number} of {of} files, {kinds}; others are native")
    noted = replace(scan, note=", others through Python")
    return Divided(
        replace(native, native=noted) if isinstance(native, Masked) else noted, plans[0], rest, plans[1], reason
    )


OFFERS: Sequence[Offer] = (_bucketed, _driver_rows, _matching_or_masked, _divided)
"""The strategies for a scan that cannot be native, from best to worst."""
