"""The deduplicate engine: the newest row of every key wins. The merge is associative."""

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from paimon_core.merge.engine import EngineType, KeyMove, MergeEngine, MergeFunction
from paimon_core.merge.result import kinds_of, retracts_of
from paimon_core.merge.segments import last
from paimon_core.merge.window import Window
from paimon_core.options.merge import IGNORE_DELETE, SEQUENCE_FIELD
from paimon_core.options.option import Options
from paimon_core.types.datatype import DataField


def deduplicate(*, ignore_delete: bool = False) -> MergeFunction:
    """Return a merge function that keeps the last row of each group, with its kind.

    With ``ignore_delete`` it keeps the last row that adds, if any. A group of one row always passes unchanged.
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
    index = np.where(window.single, window.starts, index)
    return window.take(index[index >= 0])


def _make(options: Options, _fields: Sequence[DataField], _key: Collection[str]) -> MergeEngine:
    ignore = options.value(IGNORE_DELETE)
    newest_wins = not ignore and not options.value(SEQUENCE_FIELD)
    return MergeEngine(deduplicate(ignore_delete=ignore), newest_wins=newest_wins)


DEDUPLICATE = EngineType(
    "deduplicate",
    _make,
    "may differ in older rows of the key, which would reappear if the newest row were left out",
    key_move=KeyMove.DELETE_OLD,
)
