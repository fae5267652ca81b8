"""Which runs of a bucket are compacted next, and to which level (behaviour 3.3): arithmetic on sizes, nothing else."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile

from paimon_core.lsm.levels import Levels
from paimon_core.lsm.sorted_run import SortedRun
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.merge import engine_type
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
    FORCE_LOOKUP,
    LOOKUP_COMPACT,
    LOOKUP_COMPACT_MAX_INTERVAL,
    NUM_LEVELS,
    NUM_SORTED_RUN_COMPACTION_TRIGGER,
    NUM_SORTED_RUN_STOP_TRIGGER,
)
from paimon_core.options.merge import CHANGELOG_PRODUCER, DELETION_VECTORS_ENABLED
from paimon_core.options.option import Options

__all__ = ["CompactUnit", "EarlyFull", "OffPeak", "UniversalCompaction", "needs_lookup", "num_levels", "stop_trigger"]

_HOUR = 3_600_000


@dataclass(frozen=True, slots=True)
class CompactUnit:
    """Files that become files of ``output_level``; ``rewrite``: each is to be written anew, whatever its level."""

    output_level: int
    files: tuple[DataFileMeta, ...]
    rewrite: bool = False

    @property
    def changes_nothing(self) -> bool:
        """No file, or one that is where it would go."""
        if self.rewrite:
            return not self.files
        return not self.files or (len(self.files) == 1 and self.files[0].level == self.output_level)


@dataclass(frozen=True, slots=True)
class OffPeak:
    """Hours of the day, local time, in which the size ratio is raised by ``ratio`` percent; the end is not included."""

    start: int = -1
    end: int = -1
    ratio: int = 0

    def at(self, clock: int) -> int:
        """What is added to the size ratio at this local time (milliseconds)."""
        hour = clock // _HOUR % 24
        if -1 in (self.start, self.end) or self.start == self.end:
            return 0
        inside = self.start <= hour < self.end if self.start < self.end else hour >= self.start or hour < self.end
        return self.ratio if inside else 0


@dataclass(frozen=True, slots=True)
class EarlyFull:
    """Reasons to compact everything before the shape of the tree asks for it; None: not one."""

    interval: int | None = None
    """Milliseconds since the last full compaction."""
    total_size: int | None = None
    """Buckets of fewer bytes are always compacted as a whole."""
    incremental_size: int | None = None
    """So many bytes not yet at the highest level."""

    def due(self, runs: Sequence[SortedRun], max_level: int, clock: int, last_full: int | None) -> bool:
        """Whether one of them holds; a single run is left alone."""
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
    """The policy: few runs, none much larger than what lies above it together.

    ``max_size_amplification``: percent of the oldest run that all newer ones may take. ``size_ratio``: percent by
    which the next run may be larger and still be taken along. ``run_trigger``: runs below which nothing is done.
    ``force_level_0``: level 0 is emptied at every so many calls that find no other reason; 0 is never.
    """

    max_size_amplification: int = 200
    size_ratio: int = 1
    run_trigger: int = 5
    off_peak: OffPeak = OffPeak()
    early: EarlyFull = EarlyFull()
    force_level_0: int = 0
    force_rewrite: bool = False

    @staticmethod
    def of(options: Options) -> "UniversalCompaction":
        """The policy of a table's options."""
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
        )

    def pick(self, levels: Levels, clock: int, last_full: int | None = None, calls: int = 1) -> CompactUnit | None:
        """The next compaction, or None where the tree is in shape.

        ``clock`` and ``last_full``: local time in milliseconds, now and of the last full compaction if that is known
        to be later than the files of the highest level are. ``calls``: how often this was asked of the bucket, this
        time included.
        """
        runs = levels.runs
        known = [moment for moment in (last_full, levels.last_full) if moment is not None]
        unit = (
            _unit(runs, levels.max_level, len(runs))
            if self.early.due(runs, levels.max_level, clock, max(known, default=None))
            else self._by_shape(runs, levels.max_level, clock)
        )
        if unit is None and self.force_level_0 and calls % self.force_level_0 == 0:
            newest = sum(1 for _ in takewhile(lambda run: run.level == 0, runs))
            unit = self._extended(runs, levels.max_level, newest, clock, triggered=True) if newest else None
        return None if unit is None or unit.changes_nothing else unit

    def full(self, levels: Levels, stale: Collection[str] = ()) -> CompactUnit | None:
        """Everything to the highest level; None where everything is there, as files that hold no deletes.

        ``stale`` names files that are to be written anew even so.
        """
        runs, top = levels.runs, levels.max_level
        if [run.level for run in runs] == [top]:
            anew = tuple(
                f for f in runs[0].files if self.force_rewrite or f.delete_row_count != 0 or f.file_name in stale
            )
            return CompactUnit(top, anew, rewrite=True) if anew else None
        unit = CompactUnit(top, levels.all_files)
        return None if unit.changes_nothing else unit

    def _by_shape(self, runs: Sequence[SortedRun], max_level: int, clock: int) -> CompactUnit | None:
        if runs and len(runs) >= self.run_trigger:
            *newer, oldest = (run.size for run in runs)
            if sum(newer) * 100 > self.max_size_amplification * oldest:
                return _unit(runs, max_level, len(runs))
            if unit := self._extended(runs, max_level, 1, clock):
                return unit
        if len(runs) > self.run_trigger:
            return self._extended(runs, max_level, len(runs) - self.run_trigger + 1, clock)
        return None

    def _extended(
        self, runs: Sequence[SortedRun], max_level: int, count: int, clock: int, *, triggered: bool = False
    ) -> CompactUnit | None:
        """The first ``count`` runs and those behind that are not much larger than all before them together."""
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
        return _unit(runs, max_level, count) if triggered else None


def num_levels(options: Options) -> int:
    """Levels a bucket has at least, level 0 included."""
    given = options.value(NUM_LEVELS)
    return int(options.value(NUM_SORTED_RUN_COMPACTION_TRIGGER) + 1 if given is None else given)


def stop_trigger(options: Options) -> int:
    """Sorted runs a writer does not go beyond without compacting."""
    trigger, given = options.value(NUM_SORTED_RUN_COMPACTION_TRIGGER), options.value(NUM_SORTED_RUN_STOP_TRIGGER)
    return int(trigger + 3 if given is None else max(trigger, given))


def needs_lookup(options: Options) -> bool:
    """Whether a compaction looks up in levels below its output what they hold of the keys it lifts from level 0."""
    return bool(
        engine_type(options).skips_level_0
        or options.value(CHANGELOG_PRODUCER) == "lookup"
        or options.value(DELETION_VECTORS_ENABLED)
        or options.value(FORCE_LOOKUP)
    )


def _calls_between_forced(options: Options) -> int:
    """Tables whose readers pass over level 0, or look rows up by level, cannot leave files there."""
    if options.value(COMPACTION_FORCE_UP_LEVEL_0):
        return 1
    if not needs_lookup(options):
        return 0
    if options.value(LOOKUP_COMPACT) == "radical":
        return 1
    given = options.value(LOOKUP_COMPACT_MAX_INTERVAL)
    return max(1, int(2 * options.value(NUM_SORTED_RUN_COMPACTION_TRIGGER) if given is None else given))


def _unit(runs: Sequence[SortedRun], max_level: int, count: int) -> CompactUnit:
    """The first ``count`` runs, to just above the next one; more of them rather than into level 0."""
    level = max_level if count == len(runs) else max(0, runs[count].level - 1)
    while level == 0 and count < len(runs):
        level = runs[count].level
        count += 1
    if count == len(runs):
        level = max_level
    return CompactUnit(level, tuple(file for run in runs[:count] for file in run.files))
