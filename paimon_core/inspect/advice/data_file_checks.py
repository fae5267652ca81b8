"""Checks of data files: small files, deleted rows, missing indexes."""

from collections.abc import Iterator

import numpy as np

from paimon_core.inspect.advice.check import Found
from paimon_core.inspect.advice.report import HINT, WARNING, Measure, Scope
from paimon_core.inspect.advice.table_facts import Facts, count, percent, size
from paimon_core.options.scan import SOURCE_SPLIT_OPEN_FILE_COST


def small_files(facts: Facts) -> Iterator[Found]:
    """Find partitions of an append table in which a compaction would clearly reduce the number of files."""
    buckets, limits = facts.buckets, facts.limits
    saved, files, stored = (int(values.sum()) for values in (buckets.saved_files, buckets.files, buckets.size))
    cost = facts.store.options.value(SOURCE_SPLIT_OPEN_FILE_COST)
    if saved < limits.saved_files or saved * cost < limits.share * (stored + files * cost):
        return
    for group in facts.groups(buckets.saved_files > 0):
        small, total, fewer = (
            int(values[group.buckets].sum()) for values in (buckets.small_files, buckets.files, buckets.saved_files)
        )
        text = (
            f"{small:,} of {count(total, 'file')} are smaller than {size(facts.kind.policy.small_size)}. A compaction "
            f"leaves {fewer:,} fewer to open."
        )
        measure = Measure("files of the table that compaction saves", saved, "files", limits.saved_files)
        severe = 2 * saved > files and saved >= 10 * limits.saved_files
        yield Found(WARNING if severe else HINT, group.scope, text, measure, facts.remedies.compact(group.partition))


def deletion_vectors(facts: Facts) -> Iterator[Found]:
    """Find partitions in which deletion vectors hide many rows, or affect files with many bytes.

    Tables with data evolution keep their vectors, because rewritten rows would get new row ids.
    """
    if facts.kind.by_row_range:
        return
    buckets, limits = facts.buckets, facts.limits
    numbers = facts.partition
    deleted, rows = facts.by_partition(buckets.deleted), facts.by_partition(buckets.rows)
    sparse = (deleted > limits.deleted * rows)[numbers]
    marked, stored = int(buckets.marked_size.sum()), int(buckets.size.sum())
    touched = marked >= limits.worth and marked >= limits.share * stored
    for group in facts.groups((buckets.deleted > 0) & (sparse | touched)):
        hidden, total = int(buckets.deleted[group.buckets].sum()), int(rows[np.unique(numbers[group.buckets])].sum())
        files, volume = (int(values[group.buckets].sum()) for values in (buckets.marked_files, buckets.marked_size))
        text = (
            f"Deletion vectors hide {count(hidden, 'row')} of {total:,}, in {count(files, 'file')} of {size(volume)}: "
            "reads decode these rows, then drop them, and Spark's own readers cannot read these files."
        )
        if sparse[group.buckets].any():
            measure = Measure("rows that deletion vectors hide", percent(hidden, total), "%", 100 * limits.deleted)
        else:
            measure = Measure("bytes with deletion vectors", percent(marked, stored), "%", 100 * limits.share)
        severity = WARNING if sparse[group.buckets].any() else HINT
        yield Found(severity, group.scope, text, measure, facts.remedies.materialize(group.partition))


def missing_indexes(facts: Facts) -> Iterator[Found]:
    """Find files without the file indexes that the options require, because they are older than the options."""
    lacking, files = int(facts.buckets.index_lacking.sum()), int(facts.buckets.files.sum())
    groups = list(facts.groups(facts.buckets.index_lacking > 0))
    if not groups:
        return
    text = (
        f"{lacking:,} of {count(files, 'file')} have none of the indexes of the options file-index.*.columns: "
        "filters cannot leave them out by an index."
    )
    scope = groups[0].scope if len(groups) == 1 else Scope()
    yield Found(
        HINT, scope, text, Measure("files without an index", lacking, "files", 1), facts.remedies.rewrite_indexes()
    )
