"""Search the indexes of a file for rows that may match a predicate."""

import struct
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from paimon_core.errors import CorruptedError
from paimon_core.fileindex import FILE_INDEXES
from paimon_core.fileindex.index import Found, Test
from paimon_core.fileindex.values import matching
from paimon_core.predicate.expr import And, Constant, Leaf, Not, Or, Predicate
from paimon_core.predicate.rewrite import positive
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import AtomicType, DataField


def search(
    indexes: Mapping[str, Mapping[str, bytes]], p: Predicate, fields: Sequence[DataField], rows: int, where: str
) -> Found:
    """Return the rows of a file that may match a predicate. Every row that matches is included.

    Args:
        indexes: bodies of indexes by column and kind; unknown kinds are ignored.
        p: a predicate bound to ``fields``.
        fields: the columns of the file.
        rows: the number of rows in the file.
        where: the origin of the indexes, for errors.

    Raises CorruptedError naming ``where``.
    """
    kinds = {f.name: f.type for f in fields if isinstance(f.type, AtomicType)}

    def candidates(p: Predicate) -> Found:
        match p:
            case And(children):
                return _and([candidates(c) for c in children])
            case Or(children):
                return _or([candidates(c) for c in children])
            case Constant(value):
                return value is True
            case Leaf(_, column) | Not(Leaf(_, column)) if column in indexes and column in kinds:
                return _and([tested(p, column, kind, body) for kind, body in indexes[column].items()])
        return True

    def tested(test: Test, column: str, kind: str, body: bytes) -> Found:
        if not body:
            return bool(matching(test, pa.nulls(1, to_arrow(kinds[column])), kinds[column])[0])
        if kind not in FILE_INDEXES:
            return True
        try:
            return FILE_INDEXES[kind].search(body, kinds[column], test, rows)
        except (ValueError, struct.error, IndexError) as error:
            raise CorruptedError(f"{where}: the {kind} index of column {column!r} is damaged: {error}") from error

    return _simplified(candidates(positive(p)))


def _and(parts: list[Found]) -> Found:
    masks = [p for p in parts if isinstance(p, np.ndarray)]
    if any(p is False for p in parts):
        return False
    return np.logical_and.reduce(masks) if masks else True


def _or(parts: list[Found]) -> Found:
    masks = [p for p in parts if isinstance(p, np.ndarray)]
    if any(p is True for p in parts):
        return True
    return np.logical_or.reduce(masks) if masks else False


def _simplified(rows: Found) -> Found:
    """Replace a mask with equal values by this value."""
    if isinstance(rows, bool):
        return rows
    return False if not rows.any() else True if rows.all() else rows
