"""Rows of keys before and after, as the changes that lead from the one to the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paimon_core.merge.equality import equal_values
from paimon_core.merge.row_kinds import VALUE_KIND
from paimon_core.types.row_kind import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from paimon_core.types.selection import Positions, only_chunk, take_rows


@dataclass(frozen=True, slots=True)
class RowVersions:
    """At most one row of each of some keys: ``keys`` numbers them, ascending. The columns are one chunk each."""

    rows: pa.Table
    keys: Positions


@dataclass(frozen=True, slots=True)
class ChangelogDiff:
    """A row that comes is a +I, one that goes a -D, one that changes a -U of the old and a +U of the new.

    ``compared``: columns of which at least one must differ for a row to have changed; None: a row that was written
    again counts as changed.
    """

    compared: Sequence[str] | None = None

    def changes(self, before: RowVersions, after: RowVersions) -> pa.Table:
        """The changes in the order of the keys, the old row before the new one; with the columns of ``before``."""
        one, other = before.keys, after.keys
        kept = np.isin(one, other, assume_unique=True), np.isin(other, one, assume_unique=True)
        old = np.where(kept[0], np.int8(UPDATE_BEFORE), np.int8(DELETE))
        new = np.where(kept[1], np.int8(UPDATE_AFTER), np.int8(INSERT))
        changed = np.ones(len(old), np.bool_), np.ones(len(new), np.bool_)
        if self.compared is not None and kept[0].any():
            in_both = np.flatnonzero(kept[0]), np.flatnonzero(kept[1])
            same = self._same(before.rows, after.rows, in_both)
            changed[0][in_both[0][same]] = False
            changed[1][in_both[1][same]] = False
        keys = np.concatenate([2 * before.keys, 2 * after.keys + 1])
        order = np.argsort(keys, kind="stable")
        order = order[np.concatenate(changed)[order]]
        rows = pa.concat_tables([before.rows, after.rows.select(before.rows.column_names)]).combine_chunks()
        kinds = pa.array(np.concatenate([old, new])[order])
        told = take_rows(rows, order)
        return told.set_column(told.column_names.index(VALUE_KIND), VALUE_KIND, kinds)

    def _same(self, before: pa.Table, after: pa.Table, rows: tuple[Positions, Positions]) -> Positions:
        """Which of the pairs of rows are equal, by number."""
        left = np.arange(len(rows[0]))
        for name in self.compared or ():
            old, new = only_chunk(before, name), only_chunk(after, name)
            left = left[equal_values(take_rows(old, rows[0][left]), take_rows(new, rows[1][left]))]
        return left
