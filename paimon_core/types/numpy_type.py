"""The numpy types of Arrow's numbers, without pandas, which pyarrow imports for the same conversion."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_OF: dict[pa.DataType, npt.DTypeLike] = {
    pa.int8(): np.int8,
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}


def numpy_type(kind: pa.DataType) -> np.dtype[Any]:
    """Return the numpy type of an Arrow type. REQUIRES: a signed integer, FLOAT or DOUBLE."""
    return np.dtype(_OF[kind])
