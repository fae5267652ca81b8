"""The lookup-levels rule (behaviour 8.5): which rows of a key count where compaction looks rows up in other levels.

Such a compaction has taken into a row what lay below it, so of a key's rows above level 0 only the one of the smallest
level counts: merged with those below, sums would come out too large.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.merge.engine import MergeFunction
from paimon_core.merge.segments import tally
from paimon_core.merge.window import Window
from paimon_core.types import system_fields
from paimon_core.types.selection import only_chunk

LEVEL = system_fields.LEVEL.name
_NONE = np.int8(127)


def levels_of(window: Window) -> npt.NDArray[np.int8]:
    """The level each row comes from, in sorted order. The window has the column ``_LEVEL`` (int8)."""
    levels: npt.NDArray[np.int8] = only_chunk(window.rows, LEVEL).to_numpy()
    return levels if window.order is None else levels[window.order]


def pick_high_level(window: Window) -> Window:
    """The rows that count: of every key those of level 0, and of those above the one of the smallest level.

    What is left of several rows is merged, even if it is one.
    """
    if window.num_groups == window.num_rows:
        return window
    levels, sizes = levels_of(window), window.ends - window.starts
    above = levels > 0
    if (tally(above, window.starts) < 2).all():
        return window
    least = np.minimum.reduceat(np.where(above, levels, _NONE), window.starts)
    return window.kept(~above | (levels == np.repeat(least, sizes)), sizes > 1)


def read_high_level(fold: MergeFunction) -> MergeFunction:
    """The fold of the rows that count."""

    def folded(window: Window) -> pa.Table:
        return fold(pick_high_level(window))

    return folded
