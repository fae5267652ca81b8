"""The interface of index kinds, and the result of a search."""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from paimon_core.predicate.expr import Leaf, Not
from paimon_core.types.datatype import AtomicType

Test: TypeAlias = Leaf | Not
"""One test of one column; ``Not`` encloses only tests that have no opposite."""

Found: TypeAlias = bool | np.ndarray
"""The rows of a file that may match a test: any row (True), no row (False), or a mask of all rows."""


class Builder(Protocol):
    """A builder of one index of one file."""

    def add(self, values: pa.Array) -> None:
        """Add the next rows."""

    def finish(self) -> bytes | None:
        """Return the index; ``None``: these values cannot be indexed."""


class FileIndex(Protocol):
    """A kind of index. Implementations are stateless."""

    @property
    def name(self) -> str:
        """The name of the kind in options and index files."""

    def check(self, kind: AtomicType, options: Mapping[str, str]) -> None:
        """Raise ValueError with the reason if columns of this type cannot have the index, or an option is invalid."""

    def builder(self, kind: AtomicType, options: Mapping[str, str]) -> Builder:
        """Return a builder for one file. REQUIRES: :meth:`check` has passed."""

    def search(self, data: bytes, kind: AtomicType, test: Test, rows: int) -> Found:
        """Return the rows of a file for which a test may be true. Every row for which it is true is included.

        Args:
            data: the index.
            kind: the type of the column.
            test: the test of the column.
            rows: the number of rows in the file.

        Raises ValueError or struct.error for bytes that are not an index of this kind for a file with this many rows.
        """


def check_root(kind: AtomicType, roots: frozenset[str]) -> None:
    """Raise ValueError for a type whose root is not among these."""
    if kind.root not in roots:
        raise ValueError(f"{kind} is not one of the types that the index supports: {', '.join(sorted(roots))}")


def check_rows(index_rows: int, rows: int) -> None:
    """Raise ValueError if the numbers of rows of an index and of its file differ."""
    if index_rows != rows:
        raise ValueError(f"the index has {index_rows} rows, but the file has {rows}")
