"""Row kinds as int8 vectors: 0 ``+I``, 1 ``-U``, 2 ``+U``, 3 ``-D`` (format 7.2). Odd kinds retract a row."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError

INSERT = 0
UPDATE_BEFORE = 1
UPDATE_AFTER = 2
DELETE = 3

SHORT_NAMES = ("+I", "-U", "+U", "-D")
"""The text of each kind, at the position of its number."""


@cache
def _names() -> Any:
    return pa.array(
        SHORT_NAMES, pa.string()
    )  # created at the first call, because Arrow's first array imports pandas if it is installed


def is_retract(kinds: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """Return a mask: True for the rows that retract another row (``-U``, ``-D``)."""
    return (kinds & 1).astype(np.bool_)


def parse_kinds(names: Any) -> Any:
    """Return the kinds (Arrow int8, no nulls) of an Arrow text column of ``+I -U +U -D``.

    Raises InvalidInputError, which names the first row with another value or null.
    """
    array: Any = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type != pa.string():
        if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type) or pa.types.is_null(array.type)):
            raise InvalidInputError(f"row kinds must be text ({', '.join(SHORT_NAMES)}), not {array.type}")
        array = array.cast(pa.string())
    kinds = pc.index_in(array, value_set=_names())
    if kinds.null_count:
        row = pc.index(kinds.is_null(), True).as_py()
        raise InvalidInputError(
            f"row {row}: {array[row].as_py()!r} is not a row kind; known are {', '.join(SHORT_NAMES)}"
        )
    return kinds.cast(pa.int8())


def kind_names(kinds: Any) -> Any:
    """Return the text (Arrow string) of an int8 vector of kinds, an Arrow or numpy array."""
    return _names().take(kinds if isinstance(kinds, pa.Array | pa.ChunkedArray) else pa.array(kinds, pa.int8()))
