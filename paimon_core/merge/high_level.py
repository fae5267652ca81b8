"""The rows of a key that are merged in a table with lookups (behaviour 8.5).

A lookup compaction merges older rows from higher levels into the row that it writes. So above level 0, only a key's row
at the smallest level is merged: merging the older rows again would make sums too large.
"""

import numpy as np
import numpy.typing as npt

from paimon_core.merge.engine import MergeFunction
from paimon_core.merge.segments import tally
from paimon_core.merge.window import Window
from paimon_core.types import system_fields
from paimon_core.types.selection import only_chunk

LEVEL = system_fields.LEVEL.name
_NONE = np.int8(127)


def levels_of(window: Window) -> npt.NDArray[np.int8]:
    """Return the level of each row's file, in sorted order. REQUIRES: the window has the column ``_LEVEL`` (int8)."""
    levels: npt.NDArray[np.int8] = only_chunk(window.rows, LEVEL).to_numpy()
    return levels if window.order is None else levels[window.order]


def pick_high_level(window: Window) -> Window:
    """Return the rows to merge: each key's rows at level 0 and, above level 0, only its row at the smallest level.

    A group that had several rows is merged even if only one row is left.
    """
    if window.num_groups == window.num_rows:
        return window
    levels, sizes = levels_of(window), window.ends - window.starts
    above = levels > 0
    if (tally(above, window.starts) < 2).all():
        return window
    least = np.minimum.reduceat(np.where(above, levels, _NONE), window.starts)
    return window.filter(~above | (levels == np.repeat(least, sizes)), sizes > 1)


def read_high_level(fold: MergeFunction) -> MergeFunction:
    """Return ``fold`` applied to the rows of :func:`pick_high_level`."""
    return lambda window: fold(pick_high_level(window))
