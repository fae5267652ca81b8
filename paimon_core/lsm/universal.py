"""The policy that picks the runs of a bucket to compact next and their output level (behaviour 3.3).

It computes with sizes and sequence numbers only, and does no I/O.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile

from paimon_core.lsm.levels import Levels
from paimon_core.lsm.sorted_run import SortedRun
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.merge import engine_type, needs_lookup
from paimon_core.options.lsm import (
    COMPACTION_FORCE_REWRITE_ALL_FILES,
    COMPACTION_FORCE_UP_LEVEL_0,
    COMPACTION_INCREMENTAL_SIZE_THRESHOLD,
    COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT,
    COMPACTION_OFFPEAK_END_HOUR,
    COMPACTION_OFFPEAK_RATIO,
    COMPACTION_OFFPEAK_START_HOUR,
    COMPACTION_OPTIMIZATION_INTERVAL,
    COMPACTION_SIZE_RATIO,
    COMPACTION_TOTAL_SIZE_THRESHOLD,
    LOOKUP_COMPACT,
    LOOKUP_COMPACT_MAX_INTERVAL,
    NUM_LEVELS,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    NUM_SORTED_RUN_STOP_TRIGGER,
)
from paimon_core.options.option import Options

_HOUR = 3_600_000


@dataclass(frozen=True, slots=True)
class CompactUnit:
    """The files of one compaction. ``rewrite``: every file is rewritten, even if it has the output level already."""

    output_level: int
    files: tuple[DataFileMeta, ...]
    rewrite: bool = False

    @property
    def changes_nothing(self) -> bool:
        """True if there is no file, or a single file that has the output level already."""
        if self.rewrite:
            return not self.files
        return not self.files or (len(self.files) == 1 and self.files[0].level == self.output_level)


@dataclass(frozen=True, slots=True)
class OffPeak:
    """Hours of the local day, ``start`` (inclusive) to ``end``, in which the size ratio is ``ratio`` percent higher."""

    start: int = -1
    end: int = -1
    ratio: int = 0

    def at(self, clock: int) -> int:
        """Return the percent to add to the size ratio at this local time (milliseconds)."""
        hour = clock // _HOUR % 24
        if -1 in (self.start, self.end) or self.start == self.end:
            return 0
        inside = self.start <= hour < self.end if self.start < self.end else hour >= self.start or hour < self.end
        return self.ratio if inside else 0


@dataclass(frozen=True, slots=True)
class EarlyFull:
    """Reasons for a full compaction before the sizes of the runs require one; `None`: the reason is off."""

    interval: int | None = None
    """Milliseconds since the last full compaction."""
    total_size: int | None = None
    """Buckets with fewer bytes are always compacted fully."""
    incremental_size: int | None = None
    """A full compaction is due if more bytes than this are below the highest level."""

    def due(self, runs: Sequence[SortedRun], max_level: int, clock: int, last_full: int | None) -> bool:
        """Return True if a reason applies. A bucket with a single run is never due."""
        if len(runs) < 2:
            return False
        if self.interval is not None and (last_full is None or clock - last_full > self.interval):
            return True
        if self.total_size is not None and sum(run.size for run in runs) < self.total_size:
            return True
        return self.incremental_size is not None and (
            sum(run.size for run in runs if run.level != max_level) > self.incremental_size
        )


@dataclass(frozen=True, slots=True)
class UniversalCompaction:
    """The policy of universal compaction: few runs, each larger than all newer runs together.

    ``max_size_amplification``: the allowed total size of all newer runs, in percent of the oldest run.
    ``size_ratio``: a compaction includes the next run if it is at most this many percent larger than all runs before
    it. ``run_trigger``: with fewer runs no compaction is due. ``force_level_0``: every n-th call that finds no other
    reason compacts level 0; 0: never. ``force_rewrite``: a full compaction rewrites all files. ``consecutive``: merged
    rows must be consecutive versions of their key, because the merged row may differ from each of them.
    ``full_with_deletes``: runs with deletes are merged with all older runs. If a -D were merged with newer rows only,
    it would no longer hide older rows.
    """

    max_size_amplification: int = 50
    size_ratio: int = 1
    run_trigger: int = 5
    off_peak: OffPeak = OffPeak()
    early: EarlyFull = EarlyFull()
    force_level_0: int = 0
    force_rewrite: bool = False
    consecutive: bool = False
    full_with_deletes: bool = False

    @staticmethod
    def of(options: Options) -> "UniversalCompaction":
        """Return the policy that a table's options define."""
        interval = options.value(COMPACTION_OPTIMIZATION_INTERVAL)
        return UniversalCompaction(
            options.value(COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT),
            options.value(COMPACTION_SIZE_RATIO),
            options.value(NUM_SORTED_RUN_COMPACTION_TRIGGER),
            OffPeak(
                options.value(COMPACTION_OFFPEAK_START_HOUR),
                options.value(COMPACTION_OFFPEAK_END_HOUR),
                options.value(COMPACTION_OFFPEAK_RATIO),
            ),
            EarlyFull(
                None if interval is None else int(interval.total_seconds() * 1000),
                options.value(COMPACTION_TOTAL_SIZE_THRESHOLD),
                options.value(COMPACTION_INCREMENTAL_SIZE_THRESHOLD),
            ),
            _calls_between_forced(options),
            options.value(COMPACTION_FORCE_REWRITE_ALL_FILES),
            not engine_type(options).keeps_rows and not needs_lookup(options),
            engine_type(options).removes_records(options) and not needs_lookup(options),
        )

    def pick(self, levels: Levels, clock: int, last_full: int | None = None, calls: int = 1) -> CompactUnit | None:
        """Return the next compaction. `None`: no compaction is due.

        Args:
            levels: the files of the bucket.
            clock: the time now, in local milliseconds.
            last_full: the time of the last full compaction in local milliseconds, if later than the newest file of the
                highest level. `None`: unknown.
            calls: number of calls for this bucket, including this one.
        """
        runs = levels.runs
        full_compaction_times = [time for time in (last_full, levels.last_full) if time is not None]
        unit = (
            self._unit(runs, levels.max_level, len(runs))
            if self.early.due(runs, levels.max_level, clock, max(full_compaction_times, default=None))
            else self._by_size(runs, levels.max_level, clock)
        )
        if unit is None and self.force_level_0 and calls % self.force_level_0 == 0:
            newest = sum(1 for _ in takewhile(lambda run: run.level == 0, runs))
            unit = self._extended(runs, levels.max_level, newest, clock, triggered=True) if newest else None
        return None if unit is None or unit.changes_nothing else unit

    def full(self, levels: Levels, stale: Collection[str] = ()) -> CompactUnit | None:
        """Return the compaction of all files to the highest level.

        `None`: all files have that level, and no file has deletes. ``stale``: names of files to rewrite in any case.
        """
        runs, top = levels.runs, levels.max_level
        if [run.level for run in runs] == [top]:
            rewritten = tuple(f for f in runs[0].files if self.force_rewrite or f.may_delete or f.file_name in stale)
            return CompactUnit(top, rewritten, rewrite=True) if rewritten else None
        unit = CompactUnit(top, levels.all_files)
        return None if unit.changes_nothing else unit

    def _by_size(self, runs: Sequence[SortedRun], max_level: int, clock: int) -> CompactUnit | None:
        """Return the compaction that the number and sizes of the runs require; `None`: no compaction is due."""
        if runs and len(runs) >= self.run_trigger:
            *newer, oldest = (run.size for run in runs)
            if sum(newer) * 100 > self.max_size_amplification * oldest:
                return self._unit(runs, max_level, len(runs))
            if unit := self._extended(runs, max_level, 1, clock):
                return unit
        if len(runs) > self.run_trigger:
            return self._extended(runs, max_level, len(runs) - self.run_trigger + 1, clock)
        return None

    def _extended(
        self, runs: Sequence[SortedRun], max_level: int, count: int, clock: int, *, triggered: bool = False
    ) -> CompactUnit | None:
        """Return the compaction of the first ``count`` runs and each next run not much larger than all before it."""
        count = min(count, len(runs))
        ratio = 100.0 + self.size_ratio + self.off_peak.at(clock)
        size = sum(run.size for run in runs[:count])
        triggered = triggered or count > 1
        for following in runs[count:]:
            if size * ratio / 100.0 < following.size and not (triggered and following.level <= 1):
                break
            size += following.size
            count += 1
            triggered = True
        return self._unit(runs, max_level, count) if triggered else None

    def _unit(self, runs: Sequence[SortedRun], max_level: int, count: int) -> CompactUnit:
        """Return the compaction of the first ``count`` runs into the level just below the next run's level number.

        More runs are included if this level would be 0 or ``consecutive`` requires them, and all runs if
        ``full_with_deletes`` does.
        """
        level = max_level if count == len(runs) else max(0, runs[count].level - 1)
        while level == 0 and count < len(runs):
            level = runs[count].level
            count += 1
        if count == len(runs):
            level = max_level
        elif self.full_with_deletes and count > 1 and any(f.may_delete for run in runs[:count] for f in run.files):
            return self._unit(runs, max_level, len(runs))
        elif self.consecutive and (more := _consecutive(runs, count)) > count:
            return self._unit(runs, max_level, more)
        return CompactUnit(level, tuple(file for run in runs[:count] for file in run.files))


def num_levels(options: Options) -> int:
    """Return the minimum number of levels of a bucket, level 0 included."""
    configured = options.value(NUM_LEVELS)
    return int(options.value(NUM_SORTED_RUN_COMPACTION_TRIGGER) + 1 if configured is None else configured)


def stop_trigger(options: Options) -> int:
    """Return the number of sorted runs above which a writer must compact."""
    trigger, configured = options.value(NUM_SORTED_RUN_COMPACTION_TRIGGER), options.value(NUM_SORTED_RUN_STOP_TRIGGER)
    return int(trigger + 3 if configured is None else max(trigger, configured))


def _calls_between_forced(options: Options) -> int:
    """Return the number of calls between forced compactions of level 0 (0: never).

    Tables whose readers skip level 0, or look up rows by level, need them.
    """
    if options.value(COMPACTION_FORCE_UP_LEVEL_0):
        return 1
    if not needs_lookup(options):
        return 0
    if options.value(LOOKUP_COMPACT) == "radical":
        return 1
    configured = options.value(LOOKUP_COMPACT_MAX_INTERVAL)
    return max(1, int(2 * options.value(NUM_SORTED_RUN_COMPACTION_TRIGGER) if configured is None else configured))


def _consecutive(runs: Sequence[SortedRun], count: int) -> int:
    """Return how many runs to compact, at least ``count``: no remaining run may have rows between compacted rows.

    Of two rows with equal sequence numbers, the row in the remaining run is older (decision 13).
    """
    least = min(run.min_sequence_number for run in runs[:count])
    for number, run in enumerate(runs[count:], count + 1):
        if run.max_sequence_number > least:
            return _consecutive(runs, number)
    return count
