"""The order of clustered rows, by column values or along a curve through the ranks of the values.

A curve needs coordinates of one scale. Therefore a value is replaced by its rank among cut values from a sample. This
spreads every column evenly over its bits, regardless of its type: a timestamp does not outweigh a flag, and texts with
a common prefix get different coordinates. The keys are never stored; they only decide which rows share a file.

Values have Paimon's usual order (`merge.normalized_keys`), nulls first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.merge.normalized_keys import KeyWord, comparable, nullable_key_words
from paimon_core.merge.sorting import sort_groups
from paimon_core.operations.compaction.curves import CURVES
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.arrow import to_arrow
from paimon_core.types.selection import only_chunk

STRATEGIES = ("order", *CURVES)
_KEY_BITS, _COLUMN_BITS = 64, 16  # bits of a position on a curve, and of one coordinate at most
_SIGN = np.uint64(1 << 63)

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ClusterKey:
    """A sort strategy over columns. A curve needs cuts (`learned`) before it can compute keys. Picklable."""

    strategy: str
    columns: tuple[str, ...]
    cuts: tuple[pa.Table, ...] = ()
    """For each column ``2**bits - 1`` ascending values, possibly repeated. A value's rank is its coordinate."""

    @staticmethod
    def over(schema: TableSchema, columns: Sequence[str], strategy: str) -> "ClusterKey":
        """Return the key for columns of a table. Raises InvalidInputError for a missing or unordered column."""
        if strategy not in STRATEGIES:
            raise InvalidInputError(f"order_strategy must be one of {list(STRATEGIES)}, not {strategy!r}")
        names = [f.name for f in schema.fields]
        if isinstance(columns, str):
            raise InvalidInputError(f"order_by must be a list of names, not the text {columns!r}")
        if not columns or len(set(columns)) < len(columns) or len(columns) > _KEY_BITS:
            raise InvalidInputError(
                f"order_by must name 1 to {_KEY_BITS} different columns of {names}, not {list(columns)}"
            )
        for name in columns:
            if name not in names:
                raise InvalidInputError(f"no column {name!r} to order by in {names}")
            kind = to_arrow(schema.field(name).type)
            try:
                comparable(pa.nulls(0, kind), name)
            except UnsupportedError as error:
                raise InvalidInputError(f"rows cannot be ordered by {name!r}, a column of type {kind}") from error
        return ClusterKey(strategy, tuple(columns))

    @property
    def is_ready(self) -> bool:
        """True if keys can be computed."""
        return self.strategy not in CURVES or bool(self.cuts)

    def learned(self, sample: pa.Table) -> "ClusterKey":
        """Return the key with cuts from sample rows with the key's columns; an order by values needs no cuts."""
        if self.strategy not in CURVES:
            return self
        bits = max(1, min(_COLUMN_BITS, _KEY_BITS // len(self.columns), sample.num_rows.bit_length()))
        columns = [pa.table([sample.column(name).combine_chunks()], names=[name]) for name in self.columns]
        return replace(self, cuts=tuple(quantiles(column, (1 << bits) - 1) for column in columns))

    def of(self, rows: pa.Table) -> pa.Table:
        """Return the key of every row: columns of one chunk each that order the rows. REQUIRES: ``is_ready``."""
        columns = [rows.column(name).combine_chunks() for name in self.columns]
        if self.strategy not in CURVES:
            return pa.table(columns, names=list(self.columns))
        ranks = [
            bound_ranks(cuts, pa.table([column], names=cuts.column_names)).through.astype(np.uint64)
            for cuts, column in zip(self.cuts, columns, strict=True)
        ]
        position = CURVES[self.strategy](ranks, self.cuts[0].num_rows.bit_length())
        return pa.table([pa.array((position ^ _SIGN).view(np.int64))], names=["position"])


@dataclass(frozen=True, slots=True)
class BoundRanks:
    """The ranks of keys among ascending bounds, as ``int64`` arrays with one element for each key.

    ``smaller``: number of bounds below the key. ``through``: number of bounds below or equal to the key.
    """

    smaller: Positions
    through: Positions


def bound_ranks(bounds: pa.Table, keys: pa.Table) -> BoundRanks:
    """Return the ranks of keys among ascending bounds. REQUIRES: the same columns in both, in the same order."""
    count = bounds.num_rows
    if not keys.num_rows:
        return BoundRanks(np.zeros(0, np.int64), np.zeros(0, np.int64))
    both = pa.concat_tables([bounds, keys]).combine_chunks()
    order, starts = sort_groups(_normalized_keys(both), (), both.num_rows, runs=None)
    order = np.arange(both.num_rows) if order is None else order
    is_bound = order < count
    bounds_before = np.cumsum(is_bound)
    sizes = np.diff(starts, append=both.num_rows)
    smaller, through = np.empty(both.num_rows, np.int64), np.empty(both.num_rows, np.int64)
    smaller[order] = np.repeat(bounds_before[starts] - is_bound[starts], sizes)
    through[order] = np.repeat(bounds_before[starts + sizes - 1], sizes)
    return BoundRanks(smaller[count:], through[count:])


def sorted_positions(keys: pa.Table) -> Positions:
    """Return the positions of keys in stable ascending order. REQUIRES: one chunk for each column."""
    order = sort_groups(_normalized_keys(keys), (), keys.num_rows, runs=None)[0] if keys.num_rows else None
    return np.arange(keys.num_rows) if order is None else order


def quantiles(keys: pa.Table, count: int) -> pa.Table:
    """Return ``count`` ascending keys that divide the keys into parts of about equal size; the keys may repeat."""
    if not keys.num_rows:
        return keys
    order = sorted_positions(keys)
    positions = order[np.arange(1, count + 1) * keys.num_rows // (count + 1)]
    return keys.take(pa.array(positions)).combine_chunks()


def distinct(keys: pa.Table) -> pa.Table:
    """Return the keys in ascending order, without repetition."""
    if not keys.num_rows:
        return keys
    order, starts = sort_groups(_normalized_keys(keys), (), keys.num_rows, runs=None)
    return keys.take(pa.array(starts if order is None else order[starts])).combine_chunks()


def _normalized_keys(keys: pa.Table) -> list[KeyWord]:
    return [word for name in keys.column_names for word in nullable_key_words(only_chunk(keys, name), name)]
