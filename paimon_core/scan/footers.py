"""Pruning of planned files by the statistics in their footers, for filters on columns that metadata do not describe."""

from collections.abc import Iterator
from dataclasses import replace

from paimon_core.datafile.matches import file_may_match
from paimon_core.errors import CorruptedError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.predicate.expr import Predicate
from paimon_core.scan.file_filter import PruningStep
from paimon_core.scan.split import DataSplit
from paimon_core.scan.table_scan import Plan
from paimon_core.store.file_store import FileStore

MOST_FILES = 256
"""The most files whose footers are read. On a distant store this takes about as long as to plan the scan."""


def prune_by_footers(store: FileStore, plan: Plan, predicate: Predicate, most_files: int = MOST_FILES) -> Plan:
    """Return the plan without the files whose footers exclude all matching rows.

    Only files that are read without a merge are left out: an older version of a row must not reappear. Cost: one read
    per such file, in parallel.

    Args:
        store: the table.
        plan: a plan with the files of this table.
        predicate: the filter, bound to the table's schema.
        most_files: a plan with more such files is returned as it is.
    """
    if store.traits.data_evolution:  # several files have the columns of a row
        return plan
    candidates = [(split, file) for split in plan.splits if split.raw_convertible for file in split.files]
    if not 0 < len(candidates) <= most_files:
        return plan

    def may_match(candidate: tuple[DataSplit, DataFileMeta]) -> bool:
        split, file = candidate
        try:
            return file_may_match(store, split.bucket_ref, file, predicate, split.part)
        except (CorruptedError, FileNotFoundError):  # the reader will raise it, or skip the file
            return True

    found = parallel_map(may_match, candidates)
    splits = [split for whole in plan.splits if (split := _with_matches(whole, found)).files]
    before, after = (sum(len(split.files) for split in several) for several in (plan.splits, splits))
    return replace(plan, splits=splits, steps=(*plan.steps, PruningStep("footers", before, after)))


def _with_matches(split: DataSplit, found: Iterator[bool]) -> DataSplit:
    """Return the split with the files that may match. ``found``: the answers for the files of raw splits, in order."""
    if not split.raw_convertible:
        return split
    files = tuple(file for file in split.files if next(found))
    if len(files) == len(split.files):
        return split
    names = {file.file_name for file in files}
    return replace(split, files=files, vectors=tuple(v for v in split.vectors if v.range.data_file in names))
