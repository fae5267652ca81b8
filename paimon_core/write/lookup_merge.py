"""Merge functions of compactions that also collect changelog rows and superseded rows of higher levels."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.merge.changelog_diff import ChangelogDiff, RowVersions
from paimon_core.merge.engine import MergeEngine
from paimon_core.merge.high_level import LEVEL, levels_of, pick_high_level
from paimon_core.merge.result import all_true
from paimon_core.merge.row_kinds import VALUE_KIND, is_retract_batch
from paimon_core.merge.segments import any_of, last, numbered
from paimon_core.merge.window import Window
from paimon_core.types.columns import free_name
from paimon_core.types.selection import only_chunk, take_rows
from paimon_core.write.lookup_levels import LookupFiles

_GROUP = "_GROUP"
Groups = npt.NDArray[np.bool_]


class _ChangelogCollector:
    """A merge function that collects changes until `taken` returns them."""

    def __init__(self, engine: MergeEngine, difference: ChangelogDiff | None) -> None:
        self._engine, self._difference = engine, difference
        self._changes: list[pa.Table] = []

    def taken(self) -> list[pa.Table]:
        """Return the changes since the last call, in key order."""
        changes, self._changes = self._changes, []
        return changes

    def _fold(self, window: Window, old: npt.NDArray[np.int64], counting: Groups) -> pa.Table:
        """Fold the window. For each group with ``counting[g]``, also record its change from row ``old[g]``.

        ``old``: indices into ``window.rows``; -1: the key is new.
        """
        rows = window.rows.drop_columns([LEVEL])
        if self._difference is None:
            return self._engine.fold(Window(rows, window.order, window.starts, window.merged))
        number = np.zeros(rows.num_rows, np.int64)
        number[window.at(np.arange(window.num_rows))] = numbered(window.starts, window.num_rows)
        group = free_name(_GROUP, rows.column_names)
        marked = rows.append_column(group, pa.array(number))
        merged = self._engine.fold(Window(marked, window.order, window.starts, window.merged))
        groups = merged.column(group).to_numpy()
        merged = merged.drop_columns([group]).combine_chunks()
        if not merged.num_rows and not (old >= 0).any():
            return merged
        old_groups = np.flatnonzero(counting & (old >= 0))
        old_rows = take_rows(rows, old[old_groups])
        existed = np.flatnonzero(~is_retract_batch(old_rows.column(VALUE_KIND)))
        new = np.flatnonzero(counting[groups] & ~is_retract_batch(merged.column(VALUE_KIND)))
        if self._engine.skips_level_0:  # new rows keep their kind, and no row is removed
            changes = _take_ascending(merged, new)
        else:
            before = RowVersions(_take_ascending(old_rows, existed), old_groups[existed])
            changes = self._difference.changes(before, RowVersions(_take_ascending(merged, new), groups[new]))
        if changes.num_rows:
            self._changes.append(changes)
        return merged


class FullCompactionChangelog(_ChangelogCollector):
    """The merge function of a full compaction that records changes from the rows of the highest level."""

    def __init__(self, engine: MergeEngine, difference: ChangelogDiff, top: int) -> None:
        super().__init__(engine, difference)
        self._top = top

    def __call__(self, window: Window) -> pa.Table:
        """Return one row per group. A group that is only a row of the highest level has not changed."""
        old = _row_indices(window, last(levels_of(window) == self._top, window.starts))
        multiple = window.ends - window.starts > 1
        return self._fold(window, old, multiple | (old < 0))


class LookupChangelogMerge(_ChangelogCollector):
    """The merge function of a compaction that takes keys out of level 0, with lookups in higher levels.

    Above level 0, in the compacted files and in ``lookups``, only the row of the smallest level is used: it is the
    key's previous value. Merging it with the rows of level 0 gives the new value. Keys without a row of level 0 are not
    looked up. Rows of ``lookups`` are written only as part of a result. With ``first-row`` they remain the first rows.
    """

    def __init__(
        self, engine: MergeEngine, difference: ChangelogDiff | None, level: int, lookups: LookupFiles | None
    ) -> None:
        super().__init__(engine, difference)
        self._level, self._lookups = level, lookups
        self._needs_old = difference is not None or not engine.newest_wins
        self.superseded: list[npt.NDArray[np.int64]] = []

    def __call__(self, window: Window) -> pa.Table:
        """Return one row for each compacted group."""
        picked = pick_high_level(window)
        rows = picked if self._lookups is None else self._look_up(picked, self._lookups)
        if not rows.num_groups:
            added = [LEVEL] if self._lookups is None else [LEVEL, self._lookups.location]
            return window.rows.slice(0, 0).drop_columns(added)
        levels = levels_of(rows)
        leaves_level_0 = any_of(levels == 0, rows.starts)
        old = _row_indices(rows, last(levels > 0, rows.starts))
        counting = leaves_level_0 & (old < 0) if self._engine.skips_level_0 else leaves_level_0
        return self._fold(Window(rows.rows, rows.order, rows.starts, all_true(rows.num_groups)), old, counting)

    def _look_up(self, window: Window, lookups: LookupFiles) -> Window:
        """Return the compacted groups with the rows of ``lookups`` that they need."""
        levels = levels_of(window)
        if self._engine.skips_level_0:
            compacted = ~any_of(levels > self._level, window.starts)
        else:
            compacted = any_of(levels <= self._level, window.starts)
        sizes = window.ends - window.starts
        matches = np.flatnonzero(np.repeat(compacted, sizes) & (levels > self._level))
        locations = only_chunk(window.rows, lookups.location).to_numpy()[window.at(matches)]
        if len(matches):
            self.superseded.append(locations)
        if not compacted.any():
            return Window(window.rows, np.zeros(0, np.int64), np.zeros(0, np.int64))
        groups = window.only(compacted)
        is_higher = levels_of(groups) > self._level
        if not self._needs_old or not len(matches):
            groups = groups.filter(~is_higher)
            return Window(groups.rows.drop_columns([lookups.location]), groups.order, groups.starts)
        higher = lookups.rows(locations).append_column(LEVEL, pa.array(lookups.level(locations)))
        lower = take_rows(window.rows.drop_columns([lookups.location]), groups.at(np.flatnonzero(~is_higher)))
        rows = pa.concat_tables([lower, higher.select(lower.column_names).cast(lower.schema)]).combine_chunks()
        order = np.where(is_higher, lower.num_rows + np.cumsum(is_higher) - 1, np.cumsum(~is_higher) - 1)
        return Window(rows, order, groups.starts)


def _row_indices(window: Window, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Convert positions in the sorted order to row indices. -1 stays -1."""
    return np.where(positions < 0, -1, window.at(positions)) if window.num_rows else positions


def _take_ascending(rows: pa.Table, ascending: npt.NDArray[np.int64]) -> pa.Table:
    """Return the rows at these ascending indices, without a copy if they are all rows of the table."""
    return rows if len(ascending) == rows.num_rows else take_rows(rows, ascending)
