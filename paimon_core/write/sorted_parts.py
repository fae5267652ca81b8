"""Sorted columns that grow in parts: adding rows is cheap, and a lookup is a binary search in each part."""

from collections.abc import Iterator

import numpy as np

_GROWTH = 4  # a part is merged with its predecessor if the predecessor is at most four times as large

Columns = tuple[np.ndarray, ...]


class SortedParts:
    """Parts of the same columns, each sorted by its first column and at most a quarter of the part before."""

    def __init__(self) -> None:
        self._parts: list[Columns] = []

    def __iter__(self) -> Iterator[Columns]:
        return iter(self._parts)

    def __len__(self) -> int:
        return sum(len(part[0]) for part in self._parts)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(column.nbytes for part in self._parts for column in part)

    def append(self, part: Columns) -> None:
        """Add rows. REQUIRES: ``part`` is sorted by its first column."""
        self._parts.append(part)
        while len(self._parts) > 1 and _GROWTH * len(self._parts[-1][0]) >= len(self._parts[-2][0]):
            both = tuple(np.concatenate(columns) for columns in zip(*self._parts[-2:], strict=True))
            self._parts[-2:] = [sort_columns(both)]


def sort_columns(columns: Columns) -> Columns:
    """Return the columns with their rows sorted by the first column."""
    if len(columns) == 1:
        return (np.sort(columns[0]),)  # much faster than sorting positions
    order = np.argsort(columns[0])
    return tuple(column[order] for column in columns)
