"""The deduplicate engine: the newest row of every key wins. Folding folded parts gives the fold of the whole."""

import numpy as np
import pyarrow as pa

from paimon_core.merge.aggregate.input import last
from paimon_core.merge.fold import MergeFunction
from paimon_core.merge.result import kinds_of, retracts_of
from paimon_core.merge.window import Window


def deduplicate(*, ignore_delete: bool = False) -> MergeFunction:
    """The last row of each group with its kind; with ``ignore_delete`` the last one that adds, if there is one.

    A row that is alone passes either way.
    """
    return _last_adding if ignore_delete else _last


def _last(window: Window) -> pa.Table:
    if window.order is None and window.num_groups == window.num_rows:
        return window.rows
    return window.take(window.ends - 1)


def _last_adding(window: Window) -> pa.Table:
    retract = retracts_of(kinds_of(window))
    if retract is None:
        return _last(window)
    index = last(~retract, window.starts)
    index = np.where(window.alone, window.starts, index)
    return window.take(index[index >= 0])
