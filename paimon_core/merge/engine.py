"""The interface of merge engines: the facts of an engine, and an engine made for one table."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from paimon_core.merge.window import Window
from paimon_core.options.option import Option, Options
from paimon_core.types.datatype import DataField
from paimon_core.types.selection import Positions

MergeFunction: TypeAlias = Callable[[Window], pa.Table]
"""A function from a window to one row for each group, in key order, with the columns of the window.

A group may have no result. A group of one row passes unchanged, its kind and sequence number included. A removed row
stays in the result as a retracting row (-U, -D): readers and compactions drop it if no older row of its key can exist.
"""


def no_further_columns(names: Collection[str]) -> frozenset[str]:
    """Return the same columns, for an engine that merges each column independently of the others."""
    return frozenset(names)


@dataclass(frozen=True, slots=True)
class MergeEngine:
    """A merge engine made for one table.

    ``fold`` works on any window that holds key, kind and a set of columns to which ``needs`` adds nothing.
    ``needs(names)``: these columns and the columns that their merged values depend on.
    ``keeps_rows``, ``skips_level_0``: as in :class:`EngineType`.
    ``refuses``: kinds of rows (1: -U, 3: -D) that can never be merged, with the reason and the remedy.
    ``newest_wins``: the result is the row that was written last; older rows have no effect.
    ``removals(window)``: for each group, the position of the row that removes the record if rows that add follow it;
    -1: no such row. Folding the group would hide this removal from older rows of other runs. `None`: no row removes a
    record.
    """

    fold: MergeFunction
    needs: Callable[[Collection[str]], frozenset[str]] = no_further_columns
    keeps_rows: bool = True
    refuses: Mapping[int, str] = field(default_factory=dict)
    skips_level_0: bool = False
    newest_wins: bool = False
    removals: Callable[[Window], Positions] | None = None


class EngineMaker(Protocol):
    """A function that makes an engine from a table's options, columns and primary key (partition columns included).

    It raises InvalidInputError for options that contradict each other, naming them.
    """

    def __call__(self, options: Options, fields: Sequence[DataField], key: Collection[str], /) -> MergeEngine:
        """Return the engine of one table."""


class KeyMove(Enum):
    """The effect of a row whose key is already stored in another partition."""

    DELETE_OLD = "the row goes to its own partition, and a row of kind -D to the old one"
    MERGE_INTO_OLD = "the row goes to the old partition"
    DROP_ROW = "the row is dropped"


@dataclass(frozen=True, slots=True)
class EngineType:
    """The facts of a merge engine that hold for every table, and the function that makes it for one table.

    ``keeps_rows``: a result is one of its input rows, value for value. Otherwise a result may differ from all of them,
    so a filter by statistics must not drop input rows.
    ``late_filter``: the reason why a filter on non-key columns waits for the merge, as text after the column names.
    ``skips_level_0``: batch reads show only compacted rows, so every compaction is a lookup compaction.
    ``key_move``: the effect of a row whose key is stored in another partition.
    ``delete_options``: a row of kind -D deletes its key if one of these options is set; `()`: always; `None`: never.
    ``removal_option``: the option that makes a row of kind -D remove the record, so that later rows begin a new one;
    `None`: the engine has no such option.
    ``refused_producers``: values of 'changelog-producer' that the engine refuses.
    ``refuses_sequence_field``: the reason why option 'sequence.field' is refused; `None`: it is accepted.
    ``deletion_vectors``: the engine supports option 'deletion-vectors.enabled'.
    """

    name: str
    make: EngineMaker
    late_filter: str
    keeps_rows: bool = True
    skips_level_0: bool = False
    key_move: KeyMove = KeyMove.MERGE_INTO_OLD
    delete_options: Sequence[Option[Any]] | None = ()
    removal_option: Option[bool] | None = None
    refused_producers: Collection[str] = ()
    refuses_sequence_field: str | None = None
    deletion_vectors: bool = True

    def removes_records(self, options: Options) -> bool:
        """Return True if a row of kind -D removes the record, and later rows begin a new one."""
        return self.removal_option is not None and options.value(self.removal_option)

    def deletes_rows(self, options: Options) -> bool:
        """Return True if a row of kind -D deletes its key in a table with these options."""
        enabling = self.delete_options
        return enabling is not None and (not enabling or any(options.value(option) for option in enabling))
