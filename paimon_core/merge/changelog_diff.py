"""Changelog rows, computed from the rows of some keys before and after a change."""

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
    """At most one row for each of some keys.

    ``keys``: the number of each row's key, ascending. Each column of ``rows`` is one chunk.
    """

    rows: pa.Table
    keys: Positions


@dataclass(frozen=True, slots=True)
class ChangelogDiff:
    """The rule of changelog rows: an added row is a +I, a removed row a -D, a changed row a -U (old) and a +U (new).

    ``compared``: a row has changed if one of these columns differs; `None`: every row that was written again has
    changed.
    """

    compared: Sequence[str] | None = None

    def changes(self, before: RowVersions, after: RowVersions) -> pa.Table:
        """Return the changes in key order, the old row before the new row, with the columns of ``before``."""
        old_keys, new_keys = before.keys, after.keys
        common = np.isin(old_keys, new_keys, assume_unique=True), np.isin(new_keys, old_keys, assume_unique=True)
        old = np.where(common[0], np.int8(UPDATE_BEFORE), np.int8(DELETE))
        new = np.where(common[1], np.int8(UPDATE_AFTER), np.int8(INSERT))
        changed = np.ones(len(old), np.bool_), np.ones(len(new), np.bool_)
        if self.compared is not None and common[0].any():
            in_both = np.flatnonzero(common[0]), np.flatnonzero(common[1])
            same = self._same(before.rows, after.rows, in_both)
            changed[0][in_both[0][same]] = False
            changed[1][in_both[1][same]] = False
        keys = np.concatenate([2 * before.keys, 2 * after.keys + 1])
        order = np.argsort(keys, kind="stable")
        order = order[np.concatenate(changed)[order]]
        rows = pa.concat_tables([before.rows, after.rows.select(before.rows.column_names)]).combine_chunks()
        kinds = pa.array(np.concatenate([old, new])[order])
        changed_rows = take_rows(rows, order)
        return changed_rows.set_column(changed_rows.column_names.index(VALUE_KIND), VALUE_KIND, kinds)

    def _same(self, before: pa.Table, after: pa.Table, rows: tuple[Positions, Positions]) -> Positions:
        """Return the indexes of the row pairs that are equal in all compared columns."""
        equal = np.arange(len(rows[0]))
        for name in self.compared or ():
            old, new = only_chunk(before, name), only_chunk(after, name)
            equal = equal[equal_values(take_rows(old, rows[0][equal]), take_rows(new, rows[1][equal]))]
        return equal
