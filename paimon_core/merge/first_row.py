"""The first-row engine: the oldest row of every key stays. Folding folded parts gives the fold of the whole."""

import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate.input import first
from paimon_core.merge.fold import MergeFunction
from paimon_core.merge.result import kinds_of, retracts_of
from paimon_core.merge.window import Window

REFUSED = (
    "merge engine first-row keeps the first row of a key and cannot take rows of kind -U or -D; "
    "set 'ignore-delete' = 'true' to leave them out"
)


def first_row(*, ignore_delete: bool = False) -> MergeFunction:
    """The first row of each group; with ``ignore_delete`` the first that adds, if there is one.

    Without it the fold raises InvalidInputError for a row that retracts.
    """

    def fold(window: Window) -> pa.Table:
        retract = retracts_of(kinds_of(window))
        if retract is None:
            return window.rows if _all_apart(window) else window.take(window.starts)
        if not ignore_delete:
            raise InvalidInputError(REFUSED)
        index = first(~retract, window.starts)
        return window.take(index[index >= 0])

    return fold


def _all_apart(window: Window) -> bool:
    return window.order is None and window.num_groups == window.num_rows
