"""Explain a scan and its plan, and execute the read to measure it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from paimon_core.datafile.indexes import index_names
from paimon_core.errors import InvalidInputError, hide_secrets
from paimon_core.inspect.explain.explanation import Explanation
from paimon_core.inspect.explain.limits import DEFAULT_LISTED
from paimon_core.inspect.explain.parts import FilterUse, LevelFiles, Pruned, Run, Section, SplitPlan, Totals
from paimon_core.lsm.intervals import sections
from paimon_core.lsm.row_ranges import group_by_row_range
from paimon_core.lsm.sorted_run import SortedRun
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.metrics.values import ReadMetrics
from paimon_core.operations.jobs.runner import Runner
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import columns as columns_of
from paimon_core.predicate.rewrite import conjuncts, restrict
from paimon_core.read.metrics import ReadRecorder
from paimon_core.read.table_read import TableRead
from paimon_core.scan.file_filter import PruningStep
from paimon_core.scan.split import DataSplit
from paimon_core.scan.table_scan import Plan, TableScan
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import MAIN_BRANCH
from paimon_core.store.location import READ_OPTIMIZED, TableLocation


def explain(
    scan: TableScan, plan: Plan, columns: Sequence[str] | None = None, *, listed: int = DEFAULT_LISTED
) -> Explanation:
    """Return the explanation of a plan of ``scan``, without reading a data file.

    Cost: computing the merge sections of the plan, as planning does. Memory: a few numbers for each bucket of a split,
    and the listed parts. Raises InvalidInputError for a negative ``listed``.

    Args:
        scan: the scan to explain.
        plan: the plan of this scan.
        columns: the columns of the result; `None`: all.
        listed: the largest number of splits, of sections, and of runs in a section to list.
    """
    if isinstance(listed, bool) or not isinstance(listed, int) or listed < 0:
        raise InvalidInputError(f"listed must be 0 or more, not {listed!r}")
    store, predicate = scan.store, scan.predicate
    described = _Described(store, listed)
    for split in plan.splits:
        described.add(split)
    return Explanation(
        table=_name(scan),
        snapshot_id=None if plan.snapshot is None else plan.snapshot.id,
        schema_id=store.schema.id,
        merge_engine=store.traits.engine_type.name if store.traits.keyed else None,
        columns=None if columns is None or list(columns) == [f.name for f in store.schema.fields] else tuple(columns),
        filter=None if predicate is None else str(predicate),
        manifests=plan.manifests,
        manifests_read=plan.manifests_read,
        pruning=tuple(Pruned(s.name, s.before, s.after, _note(scan, s)) for s in plan.steps),
        filters=filter_uses(store, predicate, described.totals),
        totals=described.totals,
        levels=described.levels() if store.traits.keyed else (),
        splits=tuple(described.splits),
    )


def execute(
    explanation: Explanation, read: TableRead, plan: Plan, plan_seconds: float, runner: Runner | None = None
) -> Explanation:
    """Read all splits, drop their rows, and return the explanation with the measurements.

    Memory: as for a read by record batches. Raises the errors of `TableRead.to_batches`.

    Args:
        explanation: the explanation of the plan.
        read: the reader of the plan's splits.
        plan: the plan to execute.
        plan_seconds: the time that planning took.
        runner: runs the reads; `None`: this process reads the splits one after another.
    """
    run = partial(measure, read)
    results = map(partial(run, read.store), plan.splits) if runner is None else runner.map(read.store, run, plan.splits)
    total = ReadMetrics()
    measured: list[ReadMetrics] = []
    for result in results:
        total += result
        if len(measured) < len(explanation.splits):
            measured.append(result)
    splits = tuple(replace(s, executed=m) for s, m in zip(explanation.splits, measured, strict=True))
    return replace(explanation, splits=splits, executed=total.with_phase("plan", plan_seconds))


def measure(read: TableRead, store: FileStore, split: DataSplit) -> ReadMetrics:
    """Read a split of ``store`` with ``read``, batch by batch, drop its rows, and return the measurements."""
    recorder = ReadRecorder()
    for _ in replace(read, store=store, recorder=recorder).to_batches(split):
        pass
    return recorder.metrics()


def filter_uses(store: FileStore, predicate: Predicate | None, totals: Totals) -> tuple[FilterUse, ...]:
    """Return, for each conjunct of a filter, the stage at which a plan with these totals applies it, and why."""
    if predicate is None:
        return ()
    return tuple(_use(store, part, totals) for part in conjuncts(predicate))


def _use(store: FileStore, part: Predicate, totals: Totals) -> FilterUse:
    text, names, traits = str(part), columns_of(part), store.traits
    partitions, key = set(store.schema.partition_keys), set(store.schema.trimmed_primary_keys)
    if names and names <= partitions:
        return FilterUse(text, "partition")
    if totals.join:
        return FilterUse(
            text, "after the merge", "columns of one row are stored in several files, which are joined first"
        )
    if not traits.keyed or not totals.merged_sections:
        return FilterUse(text, "read")
    if names <= key:
        return FilterUse(text, "before the merge")
    weaker = restrict(part, key)
    other_columns = names - key - partitions
    if other_columns:
        reason = f"{', '.join(sorted(other_columns))} {traits.engine_type.late_filter}"
    else:
        reason = f"{', '.join(sorted(names - key))} is not a key column within a partition"
    return FilterUse(text, "after the merge", reason, None if weaker is None else str(weaker))


def _name(scan: TableScan) -> str:
    branch = scan.store.branch
    location = TableLocation(
        scan.store.root, None if branch == MAIN_BRANCH else branch, READ_OPTIMIZED if scan.read_optimized else None
    )
    return hide_secrets(str(location))


def _note(scan: TableScan, step: PruningStep) -> str | None:
    """Return the note that explains a step's numbers, or `None`."""
    traits = scan.store.traits
    if step.name == "visibility":
        if scan.read_optimized and traits.keyed:
            return "the view $ro shows the highest level only"
        if traits.hides_level_0:
            reason = "first-row" if traits.engine_type.skips_level_0 else "deletion-vectors.enabled"
            return f"with {reason}, a batch read does not show level 0 until it is compacted"
        return "rows of bucket -2 are not shown until a compaction gives them a bucket"
    if step.name in ("statistics", "index") and traits.keyed and step.before:
        if not traits.keeps_rows:
            return f"only files without overlap: {traits.engine_type.name} makes rows that no file holds"
        return "overlapping files only together with their whole bucket"
    if step.name == "statistics" and traits.data_evolution:
        return "not files that share their rows with other files"
    if step.name == "row ranges":
        return "by the newest file of each column"
    return None


class _Described:
    """The totals of all splits, and descriptions of the first splits and sections."""

    def __init__(self, store: FileStore, listed: int) -> None:
        self._store, self._listed, self._left = store, listed, listed
        self._counts: Counter[str] = Counter()
        self._most_runs = 0
        self._levels: dict[int, list[int]] = {}
        self.splits: list[SplitPlan] = []

    @property
    def totals(self) -> Totals:
        """The totals so far."""
        return Totals(**self._counts, most_runs=self._most_runs)

    def levels(self) -> tuple[LevelFiles, ...]:
        """Return the files by level, level 0 first."""
        return tuple(LevelFiles(level, *counts) for level, counts in sorted(self._levels.items()))

    def add(self, split: DataSplit) -> None:
        """Count a split, and describe it if the limit of listed splits is not reached."""
        schema, runs, ranges = self._store.schema, [], 0
        if split.raw_convertible:
            way = "raw"
        elif schema.primary_keys:
            way, runs = "merge", sections(split.files, schema.key_arrow)
        else:
            way, ranges = "join", len(group_by_row_range(split.files))
        self._count(split, way, runs)
        if len(self.splits) == self._listed:
            return
        described_runs = runs[: self._left]
        self._left -= len(described_runs)
        self.splits.append(
            SplitPlan(
                partition=self._store.partition_path(split.partition),
                bucket=split.bucket,
                way=way,
                files=len(split.files),
                rows=split.row_count,
                bytes=split.size,
                levels=tuple(sorted({f.level for f in split.files})) if schema.primary_keys else (),
                vectors=len(split.vectors),
                part=None if split.part is None else (split.part.start, split.part.stop - 1),
                row_ranges=ranges,
                sections=tuple(_section(section, self._listed) for section in described_runs),
                further_sections=len(runs) - len(described_runs),
            )
        )

    def _count(self, split: DataSplit, way: str, runs: Sequence[Sequence[SortedRun]]) -> None:
        first = split.part is None or split.part.start == 0  # the parts of a file count once
        files: Sequence[DataFileMeta] = split.files if first else ()
        counts = self._counts
        counts["splits"] += 1
        counts[way] += 1
        counts["files"] += len(files)
        counts["rows"] += split.row_count
        counts["bytes"] += split.size
        counts["sections"] += len(runs)
        counts["merged_sections"] += sum(len(section) > 1 for section in runs)
        counts["index_files"] += sum(bool(index_names(file)) for file in files if file.extra_files)
        if first and split.vectors:
            counts["vectors"] += len(split.vectors)
            counts["deleted_rows"] += sum(vector.range.cardinality or 0 for vector in split.vectors)
        self._most_runs = max(self._most_runs, *map(len, runs), 0)
        for file in files:
            level = self._levels.setdefault(file.level, [0, 0, 0])
            level[0] += 1
            level[1] += file.row_count
            level[2] += file.file_size


def _section(runs: Sequence[SortedRun], listed: int) -> Section:
    first_runs = sorted(runs, key=lambda run: run.level)[:listed]
    return Section(
        tuple(Run(run.level, len(run.files), run.row_count, run.size) for run in first_runs),
        len(runs) - len(first_runs),
        sum(run.row_count for run in runs),
    )
