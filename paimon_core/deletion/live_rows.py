"""Position masks: one bit for each row of a data file, which engines test by the position of the row."""

import numpy as np
import numpy.typing as npt

from paimon_core.deletion.vector import DeletionVector
from paimon_core.types.selection import Mask

WORD_BITS = 64
WORD_BYTES = WORD_BITS // 8


def mask_bytes(rows: int) -> int:
    """Return the size of the mask of a file with this number of rows, in bytes."""
    return -(-rows // WORD_BITS) * WORD_BYTES


def live_mask(vector: DeletionVector, rows: int) -> npt.NDArray[np.int64]:
    """Return the mask of the rows that a deletion vector keeps.

    The bit ``p % 64`` of the word ``p // 64`` is 1 if row ``p`` is not deleted. Bits beyond the last row are 1.
    Positions of the vector beyond the last row have no effect.

    Args:
        vector: the positions of the deleted rows.
        rows: the number of rows of the file.
    """
    live = np.ones(rows, np.bool_)
    positions = vector.positions()
    live[positions[: np.searchsorted(positions, rows)]] = False
    return packed_mask(live)


def packed_mask(live: Mask) -> npt.NDArray[np.int64]:
    """Return the mask of a file as words, in the form of `live_mask`.

    Args:
        live: a bool for each row of the file.
    """
    padded = np.ones(mask_bytes(len(live)) * 8, np.bool_)
    padded[: len(live)] = live
    return np.packbits(padded, bitorder="little").view("<i8")
