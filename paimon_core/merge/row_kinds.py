"""The handling of rows that retract (-U, -D) among rows that add (+I, +U)."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.merge.normalized_keys import Column
from paimon_core.types import system_fields
from paimon_core.types.row_kind import is_retract
from paimon_core.types.selection import bits, filter_rows

SEQUENCE_NUMBER = system_fields.SEQUENCE_NUMBER.name
VALUE_KIND = system_fields.VALUE_KIND.name
FILE_AGE = "_FILE_AGE"
"""A column (int32) of rows to merge: the rank of a row's file in its bucket, the oldest file lowest."""


def is_retract_batch(kinds: Column) -> npt.NDArray[np.bool_]:
    """Return the mask of the kinds (int8, no nulls) that retract."""
    return is_retract(kinds.to_numpy())


def drop_retracts(table: pa.Table) -> pa.Table:
    """Return the rows that add; without a copy if no row retracts. REQUIRES: a column ``_VALUE_KIND``."""
    retracting = is_retract_batch(table.column(VALUE_KIND))
    return filter_rows(table, bits(~retracting)) if retracting.any() else table
