"""A window: rows whose keys are complete, grouped by key, not yet moved into sorted order."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.merge.normalized_keys import Column
from paimon_core.merge.segments import tally
from paimon_core.types.selection import Positions, only_chunk, take_rows


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Rows to fold. Group i is rows `starts[i]:ends[i]` of the sorted order, oldest first.

    ``rows``: rows in order of arrival, one chunk a column. ``order``: positions in ``rows``, sorted by key and merge
    order, possibly not all; `None`: ``rows`` are sorted. A fold copies only the rows of its result, by :meth:`take`.
    """

    rows: pa.Table
    order: Positions | None
    starts: Positions
    merged: npt.NDArray[np.bool_] | None = None
    """Mask of groups that are merged even if they hold one row only; `None`: a single row passes unchanged."""
    _sorted: dict[str, Column] = field(default_factory=dict, repr=False)

    @property
    def num_groups(self) -> int:
        """Number of distinct keys."""
        return len(self.starts)

    @property
    def num_rows(self) -> int:
        """Number of rows to fold."""
        return int(self.rows.num_rows) if self.order is None else len(self.order)

    @property
    def ends(self) -> Positions:
        """Position after the last row of every group."""
        return np.append(self.starts[1:], self.num_rows)[: len(self.starts)]

    @property
    def single(self) -> npt.NDArray[np.bool_]:
        """Mask of the groups of one row, which passes unchanged."""
        one_row: npt.NDArray[np.bool_] = self.ends - self.starts == 1
        return one_row if self.merged is None else one_row & ~self.merged

    @property
    def all_single(self) -> bool:
        """True if every row passes unchanged."""
        return self.num_groups == self.num_rows and (self.merged is None or not self.merged.any())

    def filter(self, keep: npt.NDArray[np.bool_], merged: npt.NDArray[np.bool_] | None = None) -> "Window":
        """Return the window with the rows of the sorted order where ``keep`` is true.

        REQUIRES: every group keeps a row. ``merged``: as in the class.
        """
        order = np.flatnonzero(keep) if self.order is None else self.order[keep]
        counts = tally(keep, self.starts)
        return Window(self.rows, order, np.cumsum(counts) - counts, merged)

    def only(self, groups: npt.NDArray[np.bool_]) -> "Window":
        """Return the window with the groups where the mask is true."""
        sizes = self.ends - self.starts
        rows = np.flatnonzero(np.repeat(groups, sizes))
        counts = sizes[groups]
        merged = None if self.merged is None else self.merged[groups]
        return Window(self.rows, self.at(rows), np.cumsum(counts) - counts, merged)

    def take(self, positions: Positions) -> pa.Table:
        """Return the rows at these positions of the sorted order."""
        rows: pa.Table = take_rows(self.rows, self.at(positions))
        return rows

    def at(self, positions: Positions) -> Positions:
        """Convert positions of the sorted order to positions in ``rows``."""
        return positions if self.order is None else self.order[positions]

    def column(self, name: str) -> Column:
        """Return a column in sorted order; it is copied once."""
        if name not in self._sorted:
            chunk = only_chunk(self.rows, name)
            self._sorted[name] = chunk if self.order is None else take_rows(chunk, self.order)
        return self._sorted[name]
