"""Merging: sorted runs to one, rows of one key to a row. Knows Arrow and names, no files.

The registry of merge engines: an engine is a module with its fold, a function that makes it from a table's options,
and a line here.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from paimon_core.merge.engine import MergeEngine
from paimon_core.merge.engines import make_aggregation, make_deduplicate, make_first_row, make_partial_update
from paimon_core.options.merge import MERGE_ENGINE
from paimon_core.options.option import Options
from paimon_core.types.datatype import DataField

__all__ = ["MERGE_ENGINES", "MergeEngine", "merge_engine"]


class Maker(Protocol):
    """Makes an engine from a table's options, columns and primary key. InvalidInputError names what contradicts."""

    def __call__(self, options: Options, fields: Sequence[DataField], key: Collection[str], /) -> MergeEngine:
        """The engine."""


MERGE_ENGINES: Mapping[str, Maker] = {
    "deduplicate": make_deduplicate,
    "partial-update": make_partial_update,
    "aggregation": make_aggregation,
    "first-row": make_first_row,
}


def merge_engine(options: Options, fields: Sequence[DataField], key: Collection[str]) -> MergeEngine:
    """The merge engine a table's options ask for; ``key`` is the whole primary key, partition columns included."""
    return MERGE_ENGINES[options.value(MERGE_ENGINE)](options, fields, key)
