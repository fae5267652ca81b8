"""Merge sorted runs into one run, and the rows of a key into one row. Works on Arrow data, without files.

``MERGE_ENGINES`` registers the merge engines: a new engine is a module with its :class:`EngineType`, and a line here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from paimon_core.merge.aggregation import AGGREGATION
from paimon_core.merge.deduplicate import DEDUPLICATE
from paimon_core.merge.engine import EngineType, KeyMove, MergeEngine
from paimon_core.merge.first_row import FIRST_ROW
from paimon_core.merge.partial_update import PARTIAL_UPDATE
from paimon_core.options.lsm import FORCE_LOOKUP
from paimon_core.options.merge import CHANGELOG_PRODUCER, DELETION_VECTORS_ENABLED, MERGE_ENGINE
from paimon_core.options.option import Options
from paimon_core.types.datatype import DataField

__all__ = ["MERGE_ENGINES", "EngineType", "KeyMove", "MergeEngine", "engine_type", "merge_engine", "needs_lookup"]

MERGE_ENGINES: Mapping[str, EngineType] = {
    engine.name: engine for engine in (DEDUPLICATE, PARTIAL_UPDATE, AGGREGATION, FIRST_ROW)
}


def engine_type(options: Options) -> EngineType:
    """Return the facts of the merge engine that a table's options name. InvalidInputError for an unknown name."""
    return MERGE_ENGINES[options.value(MERGE_ENGINE)]


def needs_lookup(options: Options) -> bool:
    """Return True for a table with lookups: compactions read the rows that higher levels hold of keys from level 0."""
    return bool(
        engine_type(options).skips_level_0
        or options.value(CHANGELOG_PRODUCER) == "lookup"
        or options.value(DELETION_VECTORS_ENABLED)
        or options.value(FORCE_LOOKUP)
    )


def merge_engine(options: Options, fields: Sequence[DataField], key: Collection[str]) -> MergeEngine:
    """Return the merge engine that a table's options name; ``key`` is the primary key with partition columns.

    Raises InvalidInputError for an unknown name and for options that contradict each other.
    """
    kind = engine_type(options)
    engine = kind.make(options, fields, key)
    return replace(engine, keeps_rows=kind.keeps_rows, skips_level_0=kind.skips_level_0)
