"""The first-row engine: the oldest row of every key stays. The merge is associative."""

from collections.abc import Collection, Sequence

import pyarrow as pa

from paimon_core.errors import InvalidInputError
from paimon_core.merge.engine import EngineType, KeyMove, MergeEngine, MergeFunction
from paimon_core.merge.result import kinds_of, retracts_of
from paimon_core.merge.segments import first
from paimon_core.merge.window import Window
from paimon_core.options.merge import IGNORE_DELETE
from paimon_core.options.option import Options
from paimon_core.types.datatype import DataField
from paimon_core.types.row_kind import DELETE, UPDATE_BEFORE

_REFUSED = (
    "merge engine first-row keeps the first row of a key and cannot take rows of kind -U or -D; "
    "set 'ignore-delete' = 'true' to leave them out"
)


def first_row(*, ignore_delete: bool = False) -> MergeFunction:
    """Return a merge function that keeps the first row of each group.

    With ``ignore_delete`` it keeps the first row that adds, if any; without, it raises InvalidInputError for a row that
    retracts.
    """

    def fold(window: Window) -> pa.Table:
        retract = retracts_of(kinds_of(window))
        if retract is None:
            unchanged = window.order is None and window.num_groups == window.num_rows
            return window.rows if unchanged else window.take(window.starts)
        if not ignore_delete:
            raise InvalidInputError(_REFUSED)
        index = first(~retract, window.starts)
        return window.take(index[index >= 0])

    return fold


def _make(options: Options, _fields: Sequence[DataField], _key: Collection[str]) -> MergeEngine:
    ignore = options.value(IGNORE_DELETE)
    refuses = {} if ignore else {UPDATE_BEFORE: _REFUSED, DELETE: _REFUSED}
    return MergeEngine(first_row(ignore_delete=ignore), refuses=refuses)


FIRST_ROW = EngineType(
    "first-row",
    _make,
    "may differ in later rows of the key, which would appear if the first row were left out",
    skips_level_0=True,
    key_move=KeyMove.DROP_ROW,
    delete_options=None,
    refused_producers=("input", "full-compaction"),
    refuses_sequence_field="merge engine first-row keeps the first row and takes no 'sequence.field'",
    deletion_vectors=False,
)
