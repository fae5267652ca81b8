"""The row kinds of incoming rows, and the check for kinds that the table refuses."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.options.merge import IGNORE_DELETE, IGNORE_UPDATE_BEFORE, ROWKIND_FIELD
from paimon_core.options.option import Options
from paimon_core.types.row_kind import DELETE, INSERT, UPDATE_BEFORE, is_retract, kind_names, parse_kinds


def kinds_of(rows: pa.RecordBatch, names: pa.Array | None, options: Options, *, keyed: bool) -> pa.Array | None:
    """Return the row kinds as int8. `None`: every row is an insert.

    Args:
        rows: the rows, with the table's columns.
        names: row kinds as texts like "+I", one per row. `None`: all inserts. REQUIRES: `None` for a table with
            ``rowkind.field``, which reads the kinds from that column.
        options: the options of the table.
        keyed: False for an append table, which accepts inserts only.

    Raises InvalidInputError if the table does not accept the row kinds.
    """
    column = options.value(ROWKIND_FIELD)
    if column is not None:
        if names is not None:
            raise InvalidInputError(f"row kinds were passed, but the table reads them from its column {column!r}")
        names = rows.column(column)
    if names is None:
        return None
    if len(names) != rows.num_rows:
        raise InvalidInputError(f"got {len(names)} row kinds for {rows.num_rows} rows")
    kinds = parse_kinds(names)
    if not keyed and is_retract(kinds.to_numpy()).any():
        row = int(np.argmax(is_retract(kinds.to_numpy())))
        raise InvalidInputError(
            f"row {row} has kind {names[row].as_py()}: a table without a primary key accepts inserts only"
        )
    return None if pc.all(pc.equal(kinds, INSERT)).as_py() else kinds


def rows_to_write(kinds: pa.Array | None, options: Options) -> np.ndarray | None:
    """Return a mask without the rows that ``ignore-delete`` and ``ignore-update-before`` drop. `None`: all rows."""
    if kinds is None:
        return None
    dropped = [DELETE, UPDATE_BEFORE] if options.value(IGNORE_DELETE) else []
    if options.value(IGNORE_UPDATE_BEFORE):
        dropped.append(UPDATE_BEFORE)
    return ~np.isin(kinds.to_numpy(), dropped) if dropped else None


def check_kinds(kinds: pa.Array, refused: Mapping[int, str]) -> None:
    """Raise InvalidInputError with the reason if the table's merge engine refuses the kind of a row.

    If these rows were stored, every later merge would fail on them.
    """
    for kind in np.unique(kinds.to_numpy()).tolist() if refused else []:
        if kind in refused:
            row = int(np.argmax(kinds.to_numpy() == kind))
            raise InvalidInputError(
                f"a row of kind {kind_names(kinds)[row].as_py()} cannot be written: {refused[kind]}"
            )
