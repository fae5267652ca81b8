"""What a kind of index can do, and what a search in one finds."""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from paimon_core.predicate.expr import Leaf, Not
from paimon_core.types.datatype import AtomicType

Test: TypeAlias = Leaf | Not
"""One test of one column; Not only around tests that have no opposite."""

Found: TypeAlias = bool | np.ndarray
"""Which rows of the file a test may be true for: any (True), none (False), or those of a mask of all its rows."""


class Builder(Protocol):
    """An index being made of the rows of one file."""

    def add(self, values: pa.Array) -> None:
        """Add the next rows."""

    def finish(self) -> bytes | None:
        """Return the index; ``None``: these values cannot be indexed."""


class FileIndex(Protocol):
    """A kind of index. Implementations are stateless."""

    @property
    def name(self) -> str:
        """The word in options and containers."""

    def check(self, kind: AtomicType, options: Mapping[str, str]) -> None:
        """Raise ValueError saying why a column of this type cannot be indexed so, or what is wrong with an option."""

    def builder(self, kind: AtomicType, options: Mapping[str, str]) -> Builder:
        """Begin the index of one file. REQUIRES: :meth:`check` has passed."""

    def search(self, data: bytes, kind: AtomicType, test: Test, rows: int) -> Found:
        """Where ``test`` may be true in a file of ``rows`` rows; never leaves out a row it is true for.

        Raises ValueError or struct.error for bytes that are no such index of such a file.
        """


def check_root(kind: AtomicType, roots: frozenset[str]) -> None:
    """Raise ValueError for a type whose root is not among these."""
    if kind.root not in roots:
        raise ValueError(f"{kind} is not among the types it takes: {', '.join(sorted(roots))}")


def check_rows(found: int, rows: int) -> None:
    """Raise ValueError when an index counts another number of rows than its file has."""
    if found != rows:
        raise ValueError(f"it is for {found} rows, the file has {rows}")
