"""What the rest knows of a merge engine."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from paimon_core.merge.fold import MergeFunction


def nothing_more(asked: Collection[str]) -> frozenset[str]:
    """For engines that treat every column alike: the columns asked for."""
    return frozenset(asked)


@dataclass(frozen=True, slots=True)
class MergeEngine:
    """A merge engine made for one table.

    ``fold`` works on any window that holds, besides key and kind, columns that ``needs`` adds nothing to.
    ``needs(asked)``: the columns asked for and those that must be read for them to come out right.
    ``keeps_rows``: a result is one of the rows it is made of, value for value; else it may be a row that none of the
    input rows resembles, and no statistics of values may drop what it is made of.
    ``refuses``: kinds of rows (1 for -U, 3 for -D) that can never be merged, with the reason and the way out.
    ``skips_level_0``: batch reads show only what has been compacted.
    ``newest_wins``: the result is the row that was written last, whatever was there before.
    """

    fold: MergeFunction
    needs: Callable[[Collection[str]], frozenset[str]] = nothing_more
    keeps_rows: bool = True
    refuses: Mapping[int, str] = field(default_factory=dict)
    skips_level_0: bool = False
    newest_wins: bool = False
