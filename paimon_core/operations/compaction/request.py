"""Requests of a compaction and of a rescale, for every interface."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict

from paimon_core.errors import InvalidInputError, nearest_name
from paimon_core.predicate.filter import Filter

_UNSORTED = "none"


class CompactionArguments(TypedDict, total=False):
    """The keyword arguments of `compact`: the fields of `CompactionRequest`."""

    full: bool
    order_by: Sequence[str] | None
    order_strategy: str | None
    partitions: Sequence[Mapping[str, object]] | None
    filter: Filter
    buckets: Sequence[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaleRequest:
    """The partitions to rewrite with another number of buckets."""

    buckets: int | None = None
    """The new number of buckets; `None`: the number of the option ``bucket``."""
    partitions: Sequence[Mapping[str, object]] | None = None
    """The partitions to rewrite, each {column: value}; `None`: all partitions."""
    filter: Filter = None
    """A filter on partition columns; `None`: all partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRequest:
    """The files that a compaction rewrites, and the order of their rows.

    Raises InvalidInputError for buckets and an order together: only a table without buckets can be sorted.
    """

    full: bool = False
    """True: compact as far as possible; False: as far as the options of the table call for it."""
    order_by: Sequence[str] | None = None
    """Columns to sort by, in a table without keys and buckets, so that filters on these columns read few files.
    `None` with an ``order_strategy``: the columns of the option ``clustering.columns``."""
    order_strategy: str | None = None
    """"order" (the first column counts most), "zorder" or "hilbert" (all columns count alike), "auto", which chooses
    one of these, or "none"; `None`: "none", or with ``order_by`` a strategy that fits the columns."""
    partitions: Sequence[Mapping[str, object]] | None = None
    """The partitions to compact, each {column: value}; `None`: all partitions."""
    filter: Filter = None
    """A filter on partition columns; `None`: all partitions."""
    buckets: Sequence[int] | None = None
    """The buckets to compact, such as ``range(100)``, in a table with a fixed number of buckets; `None`: all."""

    def __post_init__(self) -> None:
        if self.sorts and self.buckets is not None:
            raise InvalidInputError("a table cannot be sorted by buckets: only a table without buckets can be sorted")

    @staticmethod
    def from_arguments(arguments: Mapping[str, Any]) -> "CompactionRequest":
        """Return the request of keyword ``arguments``.

        Raises InvalidInputError, with the nearest name, for an unknown argument.
        """
        names = [field.name for field in fields(CompactionRequest)]
        for name in arguments:
            if name not in names:
                near = nearest_name(name, names)
                hint = "" if near is None else f"; did you mean {near!r}?"
                raise InvalidInputError(f"unknown argument {name!r}: a compaction takes {', '.join(names)}{hint}")
        return CompactionRequest(**arguments)

    @property
    def sorts(self) -> bool:
        """True if the rows are sorted."""
        return self.order_by is not None or self.order_strategy not in (None, _UNSORTED)
