"""Checks of tables with a primary key: the merge work of reads and the backlog of compaction."""

from collections.abc import Iterator

import numpy as np

from paimon_core.inspect.advice.check import Found
from paimon_core.inspect.advice.report import HINT, SEVERE, WARNING, Measure, Remedy
from paimon_core.inspect.advice.table_facts import DAY, Facts, Group, count, percent, size
from paimon_core.lsm.universal import stop_trigger
from paimon_core.options.lsm import COMPACTION_OPTIMIZATION_INTERVAL, NUM_SORTED_RUN_COMPACTION_TRIGGER
from paimon_core.types.selection import Mask


def backlog(facts: Facts) -> Iterator[Found]:
    """Find buckets with more sorted runs than the option num-sorted-run.compaction-trigger allows."""
    trigger = facts.store.options.value(NUM_SORTED_RUN_COMPACTION_TRIGGER)
    stop, runs = stop_trigger(facts.store.options), facts.buckets.runs
    for group in facts.groups(_behind(facts)):
        most = int(runs[group.buckets].max())
        text = (
            f"{_buckets(group)} up to {count(most, 'sorted run')}, and a compaction is due above {trigger}: reads "
            "merge all of them, and compaction has fallen behind the writers."
        )
        measure = Measure("sorted runs of a bucket", most, "runs", trigger + 1)
        yield Found(SEVERE if most > stop else WARNING, group.scope, text, measure, _compact(facts, group))


def merging_reads(facts: Facts) -> Iterator[Found]:
    """Find buckets of a table that needs much merging although compaction is not behind."""
    buckets, limits = facts.buckets, facts.limits
    merged, stored = int(buckets.merged_size.sum()), int(buckets.size.sum())
    if not facts.kind.keyed or merged < limits.worth or merged < limits.share * stored:
        return
    candidates = (buckets.merged_size > 0) & ~_behind(facts)
    for group in facts.groups(candidates):
        part = int(buckets.merged_size[group.buckets].sum())
        runs = int(buckets.overlap[group.buckets].max())
        text = (
            f"Reads merge {size(part)} of {size(int(buckets.size[group.buckets].sum()))}, up to "
            f"{count(runs, 'sorted run')} at a key. After a full compaction they read the files as they are."
        )
        measure = Measure("bytes of the table that reads merge", percent(merged, stored), "%", 100 * limits.share)
        yield Found(HINT, group.scope, text, measure, _compact(facts, group))


def hidden_rows(facts: Facts) -> Iterator[Found]:
    """Find buckets with rows that stay invisible until a compaction, in tables whose reads skip level 0."""
    if not facts.kind.hidden:
        return
    buckets = facts.buckets
    for group in facts.groups(buckets.level_0_files > 0):
        rows, files = (int(values[group.buckets].sum()) for values in (buckets.level_0_rows, buckets.level_0_files))
        text = (
            f"{count(rows, 'row')} in {count(files, 'file')} of level 0 {'is' if rows == 1 else 'are'} not visible: "
            "reads of this table show only compacted rows."
        )
        yield Found(SEVERE, group.scope, text, Measure("files of level 0", files, "files", 1), _compact(facts, group))


def delete_rows(facts: Facts) -> Iterator[Found]:
    """Find buckets in which many stored rows are deletes, which only a full compaction drops."""
    if not facts.kind.keyed:
        return
    buckets, limits = facts.buckets, facts.limits
    share = buckets.newer_deletes > limits.deleted * buckets.rows
    for group in facts.groups(share & (buckets.size >= limits.worth) & (buckets.newer_deletes > 0)):
        deletes, rows = (int(values[group.buckets].sum()) for values in (buckets.newer_deletes, buckets.rows))
        text = f"{count(deletes, 'row')} of {rows:,} stored rows only delete other rows. A full compaction drops both."
        measure = Measure("rows that delete", percent(deletes, rows), "%", 100 * limits.deleted)
        yield Found(HINT, group.scope, text, measure, _compact(facts, group))


def overdue(facts: Facts) -> Iterator[Found]:
    """Find buckets with newer files whose last full compaction is too long ago."""
    if not facts.kind.keyed:
        return
    buckets, limits, producer = facts.buckets, facts.limits, facts.store.traits.changelog_producer
    interval = facts.store.options.value(COMPACTION_OPTIMIZATION_INTERVAL)
    days = limits.old_days if interval is None else 2 * interval.total_seconds() * 1000 / DAY
    since = np.where(buckets.last_full < 0, buckets.oldest, buckets.last_full)
    age = np.where(since < 0, 0.0, (facts.clock - since) / DAY)
    grown = (buckets.newer_size >= limits.share * buckets.size) & (buckets.size >= limits.worth)
    promised = interval is not None or producer == "full-compaction"
    late = (age >= days) & (buckets.newer_size > 0) & (promised | grown)
    why = (
        "readers of the changelog wait for it"
        if producer == "full-compaction"
        else f"the option {COMPACTION_OPTIMIZATION_INTERVAL.key} asks for shorter intervals"
        if interval is not None
        else "the view $ro shows the rows of that time"
    )
    for group in facts.groups(late):
        oldest = float(age[group.buckets].max())
        newer = size(int(buckets.newer_size[group.buckets].sum()))
        text = f"The last full compaction is {oldest:,.1f} days old, with {newer} of newer files: {why}."
        measure = Measure("days since the last full compaction", round(oldest, 1), "days", round(days, 4))
        yield Found(WARNING if promised else HINT, group.scope, text, measure, _compact(facts, group))


def _behind(facts: Facts) -> Mask:
    """Return the buckets with more sorted runs than the trigger."""
    behind: Mask = facts.buckets.runs > facts.store.options.value(NUM_SORTED_RUN_COMPACTION_TRIGGER)
    return behind if facts.kind.keyed else np.zeros(len(behind), np.bool_)


def _buckets(group: Group) -> str:
    return "A bucket has" if len(group.buckets) == 1 else f"{len(group.buckets):,} buckets have"


def _compact(facts: Facts, group: Group) -> Remedy:
    return facts.remedies.compact(group.partition)
