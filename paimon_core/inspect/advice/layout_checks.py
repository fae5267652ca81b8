"""Checks of buckets and partitions: the distribution of rows."""

from collections.abc import Iterator

import numpy as np

from paimon_core.inspect.advice.check import Found
from paimon_core.inspect.advice.report import HINT, SEVERE, WARNING, Measure, Scope
from paimon_core.inspect.advice.table_facts import DAY, Facts, count, size
from paimon_core.options.bucket import DYNAMIC_BUCKET_MAX_BUCKETS, DYNAMIC_BUCKET_TARGET_ROW_NUM, POSTPONE_MERGE_ON_READ
from paimon_core.write.routing import BucketMode

_ROWS_OVER_TARGET = 2  # times


def unfinished_rescale(facts: Facts) -> Iterator[Found]:
    """Find partitions whose number of buckets differs from the table's; writers refuse new rows there."""
    if facts.mode is not BucketMode.HASH_FIXED:
        return
    bucket_option, buckets = facts.store.schema.bucket, facts.buckets
    outdated = (buckets.total > 0) & (buckets.total != bucket_option)
    if not outdated.any():
        return
    partitions = len(np.unique(facts.partition[outdated]))
    subject = count(partitions, "partition") if facts.store.schema.partition_keys else "the table"
    text = (
        f"Files of {subject} are in {int(buckets.total[outdated][0]):,} buckets, but the option bucket is "
        f"{bucket_option:,}: writers refuse new rows there until a rescale."
    )
    measure = Measure("partitions with another number of buckets", partitions, "partitions", 1)
    yield Found(SEVERE, Scope(), text, measure, facts.remedies.rescale())


def bucket_number(facts: Facts) -> Iterator[Found]:
    """Find a fixed number of buckets that makes buckets far too large or far too small."""
    if facts.mode is not BucketMode.HASH_FIXED or not len(facts.buckets):
        return
    limits, now = facts.limits, int(facts.buckets.total.max())
    typical = _typical(facts.by_partition(facts.buckets.size))
    fitting = max(1, round(typical / limits.bucket_size))
    each = typical // now
    where = "" if not facts.store.schema.partition_keys else " of the partition in which half of the bytes are reached"
    age = (facts.clock - int(facts.buckets.oldest.min())) / DAY
    if each > limits.large_bucket:
        text = (
            f"A bucket{where} has {size(each)} on average: one task writes and compacts it. "
            f"{count(fitting, 'bucket')} instead of {now:,} would have about {size(typical // fitting)} each."
        )
        measure = Measure("bytes of a bucket", each, "bytes", limits.large_bucket)
        yield Found(WARNING, Scope(), text, measure, facts.remedies.rescale(fitting))
    elif each < limits.small_bucket and now >= limits.many_buckets and age >= limits.old_days and fitting < now:
        text = (
            f"A bucket{where} has only {size(each)} on average, in a table that is {age:,.0f} days old: each "
            f"commit and each read opens files of {now:,} buckets. {count(fitting, 'bucket')} would be enough."
        )
        measure = Measure("bytes of a bucket", each, "bytes", limits.small_bucket)
        yield Found(HINT, Scope(), text, measure, facts.remedies.rescale(fitting))


def skewed_buckets(facts: Facts) -> Iterator[Found]:
    """Find fixed buckets that are many times as large as the other buckets of their partition."""
    if facts.mode is not BucketMode.HASH_FIXED or facts.store.schema.bucket < 2:
        return
    limits, sizes, number = facts.limits, facts.buckets.size, facts.store.schema.bucket
    mean_of_others = (facts.by_partition(sizes)[facts.partition] - sizes) / (number - 1)
    ratio = sizes / np.maximum(mean_of_others, 1)
    for group in facts.groups((ratio >= limits.skew) & (sizes >= limits.skewed_size)):
        largest = group.buckets[np.argmax(ratio[group.buckets])]
        columns = ", ".join(facts.store.schema.bucket_keys)
        text = (
            f"A bucket of {size(int(sizes[largest]))} is {min(float(ratio[largest]), 1e6):,.1f} times as large as the "
            f"others: few values of {columns} have most of the rows. Copy the rows to a table with a bucket-key of "
            "more values; another number of buckets would not spread them."
        )
        measure = Measure("largest bucket to the mean of the others", _ratio(ratio[largest]), "x", limits.skew)
        yield Found(HINT, group.scope, text, measure)


def full_dynamic_buckets(facts: Facts) -> Iterator[Found]:
    """Find dynamic buckets with far more rows than their target because the number of buckets is limited."""
    options, buckets = facts.store.options, facts.buckets
    most, target = options.value(DYNAMIC_BUCKET_MAX_BUCKETS), options.value(DYNAMIC_BUCKET_TARGET_ROW_NUM)
    if facts.mode not in (BucketMode.HASH_DYNAMIC, BucketMode.KEY_DYNAMIC) or most < 1 or not len(buckets):
        return
    per_partition = facts.by_partition(np.ones(len(buckets), np.int64))[facts.partition]
    over = (buckets.largest_run > _ROWS_OVER_TARGET * target) & (per_partition >= most)
    groups = list(facts.groups(over))
    if not groups:
        return
    rows = int(facts.by_partition(buckets.largest_run).max())
    fitting = max(most + 1, -(-rows // target))
    scope = groups[0].scope if len(groups) == 1 else Scope()
    text = (
        f"Buckets have up to {count(int(buckets.largest_run[over].max()), 'row')}, more than {target:,}, because the "
        f"option {DYNAMIC_BUCKET_MAX_BUCKETS.key} allows no more than {most:,}. With {fitting:,} new keys get "
        "buckets of their own; old rows stay where they are."
    )
    measure = Measure("rows of a bucket", int(buckets.largest_run[over].max()), "rows", _ROWS_OVER_TARGET * target + 1)
    yield Found(HINT, scope, text, measure, facts.remedies.set_options({DYNAMIC_BUCKET_MAX_BUCKETS.key: str(fitting)}))


def postponed_rows(facts: Facts) -> Iterator[Found]:
    """Find rows that wait for a compaction to give them a bucket."""
    files, rows = facts.files.postponed_files, facts.files.postponed_rows
    if not files:
        return
    visible = facts.store.options.value(POSTPONE_MERGE_ON_READ)
    text = f"{count(rows, 'row')} in {count(files, 'file')} wait for a bucket" + (
        ", and every read merges them again." if visible else ": reads do not show them before a compaction."
    )
    measure = Measure("files without a bucket", files, "files", 1)
    yield Found(HINT if visible else SEVERE, Scope(), text, measure, facts.remedies.compact())


def tiny_partitions(facts: Facts) -> Iterator[Found]:
    """Find a large number of tiny partitions."""
    if not facts.store.schema.partition_keys:
        return
    sizes, limits = facts.by_partition(facts.buckets.size), facts.limits
    if len(sizes) < limits.many_partitions or np.median(sizes) >= limits.tiny_partition:
        return
    columns = ", ".join(facts.store.schema.partition_keys)
    text = (
        f"Half of the {len(sizes):,} partitions have less than {size(float(np.median(sizes)) + 1)}: planning and "
        f"opening files cost more than reading them. Copy the rows to a table with coarser partitions than by "
        f"{columns}, or let old partitions expire (partition.expiration-time)."
    )
    yield Found(HINT, Scope(), text, Measure("partitions", len(sizes), "partitions", limits.many_partitions))


def _typical(sizes: np.ndarray) -> int:
    """Return the weighted median of the partition sizes: half of all bytes are in partitions up to this size."""
    ordered = np.sort(sizes)
    reached = np.cumsum(ordered)
    return int(ordered[np.searchsorted(reached, reached[-1] / 2)])


def _ratio(value: float) -> float:
    return round(min(float(value), 1e6), 1)
