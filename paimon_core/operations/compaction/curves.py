"""Space-filling curves: one number for several coordinates, so that points close on the curve are close in space.

Vectorised over points. A coordinate is a ``uint64`` array of numbers below ``2**bits``; ``bits`` times the number of
coordinates is at most 64. Both curves visit every cell exactly once. Adjacent cells of the Hilbert curve are adjacent
in space; the Z curve is cheaper, but jumps.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]


def z_order(coordinates: Sequence[U64], bits: int) -> U64:
    """Return the position of each point on the Z curve: the bits of its coordinates, interleaved.

    The highest bit of the first coordinate comes first.
    """
    unit = np.uint64(1)
    position = np.zeros(len(coordinates[0]), np.uint64)
    for level in range(bits - 1, -1, -1):
        for values in coordinates:
            position = (position << unit) | ((values >> np.uint64(level)) & unit)
    return position


def hilbert(coordinates: Sequence[U64], bits: int) -> U64:
    """Return the position of each point on the Hilbert curve.

    The transformation is Skilling's ("Programming the Hilbert curve", 2004).
    """
    axes = [values.astype(np.uint64) for values in coordinates]
    for level in range(bits - 1, 0, -1):
        bit, lower_bits = np.uint64(1 << level), np.uint64((1 << level) - 1)
        for i in range(len(axes)):
            high = (axes[i] & bit) != 0
            swapped = np.where(high, np.uint64(0), (axes[0] ^ axes[i]) & lower_bits)
            axes[i] ^= swapped
            axes[0] ^= np.where(high, lower_bits, swapped)
    for i in range(1, len(axes)):
        axes[i] ^= axes[i - 1]
    turned = np.zeros(len(axes[0]), np.uint64)
    for level in range(bits - 1, 0, -1):
        turned ^= np.where((axes[-1] & np.uint64(1 << level)) != 0, np.uint64((1 << level) - 1), np.uint64(0))
    return z_order([values ^ turned for values in axes], bits)


CURVES = {"zorder": z_order, "hilbert": hilbert}
"""Curves by the name of their strategy."""
