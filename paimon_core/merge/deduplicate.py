"""The deduplicate engine: the newest row of every key wins. Folding folded parts gives the fold of the whole."""

import numpy as np
import pyarrow as pa

from paimon_core.merge.fold import Fold
from paimon_core.merge.groups import Window
from paimon_core.merge.kinds import VALUE_KIND, retracts


def deduplicate(*, ignore_delete: bool = False) -> Fold:
    """The last row of each group with its kind; with ``ignore_delete`` the last one that adds, if there is one."""
    return _last_adding if ignore_delete else _last


def _last(window: Window) -> pa.Table:
    if window.order is None and window.num_groups == window.rows.num_rows:
        return window.rows
    return window.take(window.ends - 1)


def _last_adding(window: Window) -> pa.Table:
    retracting = retracts(window.rows.column(VALUE_KIND))
    if not retracting.any():
        return _last(window)
    if window.order is not None:
        retracting = retracting[window.order]
    adding = np.where(retracting, -1, np.arange(len(retracting)))
    last = np.maximum.reduceat(adding, window.starts)
    return window.take(last[last >= 0])
