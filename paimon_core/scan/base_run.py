"""Split a plan into the oldest run of each bucket, the base run, and the few rows written after it.

A base row is current unless a newer row has the same key.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.scan.split import DataSplit
from paimon_core.scan.table_scan import Plan
from paimon_core.store.file_store import FileStore
from paimon_core.store.traits import TableTraits

MOST_NEWER_ROWS = 100_000
MOST_NEWER_BYTES = 16 << 20
"""Limits of the newer rows, and of the bytes of their files: one process holds and merges them."""
LEAST_BASE = 4
"""The base run has at least this many times the newer rows; otherwise a merge of all rows costs little more."""


@dataclass(frozen=True, slots=True)
class BaseRun:
    """A plan of raw files with unique keys, and splits of the rows that were written after them."""

    plan: Plan
    newer: tuple[DataSplit, ...]


def base_run(store: FileStore, plan: Plan) -> BaseRun | None:
    """Divide a plan into base run and newer rows; `None`: the plan cannot be divided, or it would not pay.

    A row of the base run is a row of the table if no newer row, deletes included, has its primary key, and its
    deletion vector leaves it. Tables whose keys may contain NULL are not divided, because a join does not match NULL.

    Args:
        store: a table with a primary key.
        plan: a plan of all rows of the table.
    """
    traits = store.traits
    own_partition = set(store.schema.partition_keys) <= set(store.schema.primary_keys)  # else a key may move
    if not traits.merge_engine().newest_wins or traits.hides_level_0 or traits.nullable_keys or not own_partition:
        return None
    base: list[DataSplit] = []
    newer: list[DataSplit] = []
    for split in plan.splits:
        parts = (split.files, ()) if split.raw_convertible else _divided(split.files, traits)
        if parts is None or (split.vectors and not traits.disjoint_levels):
            return None
        base.append(split if split.raw_convertible else _part(split, parts[0], raw=True))
        if parts[1]:
            newer.append(_part(split, parts[1], raw=False))
    rows = sum(split.row_count for split in newer)
    small = rows <= MOST_NEWER_ROWS and sum(split.size for split in newer) <= MOST_NEWER_BYTES
    if not small or rows * LEAST_BASE > sum(split.row_count for split in base):
        return None
    return BaseRun(replace(plan, splits=base), tuple(newer))


def _part(split: DataSplit, files: tuple[DataFileMeta, ...], *, raw: bool) -> DataSplit:
    """Return the split of some files of a split. `raw`: True if they need no merge."""
    names = {file.file_name for file in files}
    vectors = tuple(vector for vector in split.vectors if vector.data_file in names)
    return replace(split, files=files, vectors=vectors, raw_convertible=raw)


def _divided(
    files: Sequence[DataFileMeta], traits: TableTraits
) -> tuple[tuple[DataFileMeta, ...], tuple[DataFileMeta, ...]] | None:
    """Return the files of the oldest run, and the newer files; `None`: no run is older than all other runs.

    If levels are disjoint, all files above level 0 are one run.
    """
    high = {file.level for file in files if file.level}
    if traits.reads_high_level and len(high) > 1 and not traits.disjoint_levels:
        return None  # the row at the smallest of these levels wins, regardless of sequence numbers
    oldest = min(files, key=lambda file: file.max_sequence_number)
    base_levels = high if traits.disjoint_levels else {max(high, default=0)}
    base = tuple(file for file in files if file.level in base_levels) if high else (oldest,)
    names = {file.file_name for file in base}
    newer = tuple(file for file in files if file.file_name not in names)
    last = max(file.max_sequence_number for file in base)
    if any(file.may_delete for file in base) or any(file.min_sequence_number <= last for file in newer):
        return None
    return base, newer
