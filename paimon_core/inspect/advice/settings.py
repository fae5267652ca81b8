"""Checks of options: contradictions between options, and options that do not fit the use of the table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from paimon_core.inspect.advice.check import Found
from paimon_core.inspect.advice.report import HINT, SEVERE, WARNING, Measure, Scope
from paimon_core.inspect.advice.table_facts import Facts, count
from paimon_core.lsm.universal import stop_trigger
from paimon_core.options.bucket import (
    DYNAMIC_BUCKET_MAX_BUCKETS,
    DYNAMIC_BUCKET_TARGET_ROW_NUM,
    PARTITION_EXPIRATION_TIME,
)
from paimon_core.options.file import METADATA_STATS_MODE
from paimon_core.options.file_index import indexed
from paimon_core.options.lsm import (
    CLUSTERING_COLUMNS,
    COMPACTION_FORCE_REWRITE_ALL_FILES,
    COMPACTION_OPTIMIZATION_INTERVAL,
    FULL_COMPACTION_DELTA_COMMITS,
    WRITE_ONLY,
)
from paimon_core.options.merge import (
    CHANGELOG_PRODUCER,
    DELETION_VECTORS_ENABLED,
    DELETION_VECTORS_MODIFIABLE,
)
from paimon_core.options.option import Option
from paimon_core.options.scan import FILE_INDEX_READ_ENABLED
from paimon_core.options.snapshot import (
    CHANGELOG_NUM_RETAINED_MAX,
    CHANGELOG_NUM_RETAINED_MIN,
    CHANGELOG_TIME_RETAINED,
    TAG_AUTOMATIC_CREATION,
    TAG_NUM_RETAINED_MAX,
)
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.snapshot import STATEMENT, CommitKind, Snapshot
from paimon_core.write.routing import BucketMode


@dataclass(frozen=True, slots=True)
class Rule:
    """An option that is useless or harmful under a condition. ``why``: the end of a sentence about the option."""

    option: Option[Any]
    applies: Callable[[Facts], bool]
    why: str


def _on(option: Option[Any], value: object) -> Callable[[Facts], bool]:
    return lambda facts: bool(facts.store.options.value(option) == value)


def _fixed(facts: Facts) -> bool:
    return facts.mode is not BucketMode.HASH_DYNAMIC and facts.mode is not BucketMode.KEY_DYNAMIC


RULES = (
    Rule(
        FILE_INDEX_READ_ENABLED,
        lambda facts: any(indexed(facts.store.options)) and not facts.store.options.value(FILE_INDEX_READ_ENABLED),
        "is false, so the indexes that the options file-index.*.columns make are never used",
    ),
    Rule(
        METADATA_STATS_MODE,
        lambda facts: (
            str(facts.store.options.value(METADATA_STATS_MODE)).lower() == "none"
            and bool(facts.store.options.value(CLUSTERING_COLUMNS))
        ),
        "is none, so filters on the columns in clustering.columns cannot skip files",
    ),
    Rule(
        COMPACTION_FORCE_REWRITE_ALL_FILES,
        _on(COMPACTION_FORCE_REWRITE_ALL_FILES, True),
        "makes each full compaction rewrite every file, even files that would not change",
    ),
    *(
        Rule(option, _on(CHANGELOG_PRODUCER, "none"), "has no effect, because changelog-producer makes no changelog")
        for option in (CHANGELOG_NUM_RETAINED_MIN, CHANGELOG_NUM_RETAINED_MAX, CHANGELOG_TIME_RETAINED)
    ),
    *(
        Rule(option, _fixed, "has no effect, because the buckets of this table are not dynamic")
        for option in (DYNAMIC_BUCKET_MAX_BUCKETS, DYNAMIC_BUCKET_TARGET_ROW_NUM)
    ),
    Rule(
        TAG_NUM_RETAINED_MAX,
        _on(TAG_AUTOMATIC_CREATION, "none"),
        "has no effect, because it counts automatic tags, and tag.automatic-creation makes none",
    ),
    *(
        Rule(option, lambda facts: not facts.store.traits.keyed, "has no effect on a table without a primary key")
        for option in (COMPACTION_OPTIMIZATION_INTERVAL, FULL_COMPACTION_DELTA_COMMITS)
    ),
    Rule(
        PARTITION_EXPIRATION_TIME,
        lambda facts: not facts.store.schema.partition_keys,
        "has no effect on a table without partitions",
    ),
)
"""The contradictions. A rule counts only if its option is set."""


def useless_options(facts: Facts) -> Iterator[Found]:
    """Find options that have no effect because of other options or the kind of the table."""
    options = facts.store.options
    rules = [rule for rule in RULES if options.has(rule.option) and rule.applies(facts)]
    for rule in rules:
        text = f"The option {rule.option.key} {rule.why}. Remove it."
        measure = Measure("contradicting options", len(rules), "options", 1)
        yield Found(HINT, Scope(), text, measure, facts.remedies.remove_option(rule.option.key))


def never_compacted(facts: Facts) -> Iterator[Found]:
    """Find a write-only table that was never compacted."""
    buckets, options = facts.buckets, facts.store.options
    if not len(buckets) or not options.value(WRITE_ONLY) or buckets.compacted_files.any():
        return
    if facts.store.traits.keyed:
        value, unit, threshold = int(buckets.runs.max()), "runs", stop_trigger(options) + 1
        name, state = "sorted runs of a bucket", f"buckets have up to {count(value, 'sorted run')}"
    else:
        value, unit, threshold = int(buckets.saved_files.sum()), "files", facts.limits.saved_files
        name, state = "files that compaction saves", f"{count(int(buckets.small_files.sum()), 'file')} are small"
    if value < threshold:
        return
    text = (
        f"The option write-only is set, so writers do not compact, and the table was never compacted: {state}. "
        "Run a compaction now and at regular intervals."
    )
    yield Found(SEVERE, Scope(), text, Measure(name, value, unit, threshold), facts.remedies.compact())


def no_changelog(facts: Facts) -> Iterator[Found]:
    """Find consumers of a table with a primary key that has no changelog producer."""
    if not facts.store.traits.keyed or facts.store.traits.changelog_producer != "none" or facts.snapshot is None:
        return
    names = Consumers(facts.store.io, facts.store.branch_root).list()
    if not names:
        return
    text = (
        f"{count(len(names), 'stream')} with a name {'reads' if len(names) == 1 else 'read'} the table, and "
        "changelog-producer is none: streams see the written rows, without the rows before an update. If they need "
        "those rows, let compaction produce a changelog, after a full compaction; every write then costs a lookup."
    )
    measure = Measure("consumers without a changelog", len(names), "consumers", 1)
    yield Found(HINT, Scope(), text, measure, facts.remedies.set_options({CHANGELOG_PRODUCER.key: "lookup"}))


def rewriting_deletes(facts: Facts) -> Iterator[Found]:
    """Find an append table in which DELETE, UPDATE and MERGE INTO often rewrite whole files."""
    if facts.store.traits.keyed or facts.store.traits.deletion_vectors or facts.store.traits.data_evolution:
        return
    divided = bool(facts.store.schema.partition_keys)
    statements = sum(_removes_rows(snapshot, divided) for snapshot in facts.recent)
    if statements < facts.limits.rewriting_commits:
        return
    text = (
        f"{statements:,} of the last {count(len(facts.recent), 'commit')} are DELETE, UPDATE or MERGE INTO, which "
        "rewrite each file that they touch. With deletion vectors they only mark rows."
    )
    measure = Measure("statements that rewrite files", statements, "commits", facts.limits.rewriting_commits)
    options = {DELETION_VECTORS_MODIFIABLE.key: "true", DELETION_VECTORS_ENABLED.key: "true"}
    yield Found(WARNING, Scope(), text, measure, facts.remedies.set_options(options))


def _removes_rows(snapshot: Snapshot, divided: bool) -> bool:
    """Return True for the snapshot of a DELETE, UPDATE or MERGE INTO.

    A snapshot without the statement property counts if it is an overwrite that leaves fewer rows, except in a table
    ``divided`` into partitions: there it may have dropped whole partitions.
    """
    if STATEMENT in (snapshot.properties or {}):
        return True
    fewer = (snapshot.delta_record_count or 0) < 0 < (snapshot.total_record_count or 0)
    return not divided and snapshot.commit_kind == CommitKind.OVERWRITE and fewer
