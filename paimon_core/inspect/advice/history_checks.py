"""Checks of the timeline: snapshots, consumers, tags, manifests, statistics."""

from collections.abc import Iterator, Sequence

from paimon_core.fileio.parallel import parallel_map
from paimon_core.inspect.advice.check import Found
from paimon_core.inspect.advice.report import HINT, WARNING, Measure, Scope
from paimon_core.inspect.advice.table_facts import DAY, Facts, count, percent, size
from paimon_core.operations.analyze import read_statistics
from paimon_core.options.scan import CONSUMER_CHANGELOG_ONLY
from paimon_core.options.snapshot import MANIFEST_TARGET_FILE_SIZE
from paimon_core.scan.entries import live_in_parts
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.retention import first_retained, snapshot_retention
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.tags import Tag

_GROWTH = 2  # times the rows of the statistics
_MEASURED_TAGS = 3


def due_snapshots(facts: Facts) -> Iterator[Found]:
    """Find snapshots that the options allow to expire, if they are more than one expiry removes."""
    unread = _unread(facts)
    due = _due(facts, min(unread.values(), default=None))
    limit = snapshot_retention(facts.store.options, facts.now).limit
    if due < limit:
        return
    text = (
        f"At least {count(due, 'snapshot')} should have expired by the options of the table, and keep files that "
        "nothing else needs. A write-only table needs a job that expires them."
    )
    yield Found(WARNING, Scope(), text, Measure("snapshots due", due, "snapshots", limit), facts.remedies.expire())


def waiting_consumers(facts: Facts) -> Iterator[Found]:
    """Find consumers that have not moved for days and keep snapshots from expiring."""
    unread, limits = _unread(facts), facts.limits
    if not unread or facts.snapshot is None:
        return
    limit = snapshot_retention(facts.store.options, facts.now).limit
    moved = Consumers(facts.store.io, facts.store.branch_root).modified()
    idle = {name: (facts.now - moved[name]) / DAY for name in unread if name in moved}
    idle = {name: days for name, days in idle.items() if days >= limits.idle_days}
    next_of_active = min((number for name, number in unread.items() if name not in idle), default=None)
    if not idle or _due(facts, next_of_active) < limit or _due(facts, min(unread.values())) >= limit:
        return  # nothing is due, or something other than the consumers keeps it
    for name, days in sorted(idle.items(), key=lambda item: unread[item[0]]):
        held = facts.snapshot.id - unread[name] + 1
        if held < limit:
            continue
        text = (
            f"The consumer {name!r} has not moved for {days:,.1f} days, and {count(held, 'snapshot')} from "
            f"{unread[name]} on cannot expire. If its stream has ended, delete it; the option consumer.expiration-time "
            "deletes consumers by age."
        )
        measure = Measure("snapshots that a consumer holds", held, "snapshots", limit)
        yield Found(WARNING, Scope(), text, measure, facts.remedies.delete_consumer(name))


def ageless_tags(facts: Facts) -> Iterator[Found]:
    """Find old tags without a retention time that keep many bytes of removed files."""
    limits, newest = facts.limits, facts.snapshot
    earliest = facts.store.snapshots.earliest_id()
    if newest is None or earliest is None:
        return
    old = [
        tag
        for tag in facts.store.tags.list()
        if tag.time_retained is None
        and tag.snapshot.id < earliest
        and facts.now - tag.snapshot.time_millis >= limits.tag_days * DAY
    ]
    if not old:
        return
    oldest = sorted(old, key=lambda tag: tag.snapshot.id)[:_MEASURED_TAGS]
    stored = int(facts.buckets.size.sum())
    for tag, held in _held(facts, newest, oldest):
        if held < limits.worth or held < limits.share * stored:
            continue
        days = (facts.now - tag.snapshot.time_millis) / DAY
        text = (
            f"The tag {tag.name!r} is {days:,.0f} days old, has no retention time, and keeps {size(held)} "
            "that the table no longer needs. Delete it, or replace it by a tag with a retention time."
        )
        measure = Measure("bytes that a tag keeps", percent(held, stored), "%", 100 * limits.share)
        yield Found(HINT, Scope(), text, measure, facts.remedies.delete_tag(tag.name))


def many_manifests(facts: Facts) -> Iterator[Found]:
    """Find far more manifests than their total size needs, or far more manifest entries than live files."""
    metas, limits = facts.manifests, facts.limits
    target = facts.store.options.value(MANIFEST_TARGET_FILE_SIZE)
    total = sum(meta.file_size for meta in metas)
    spare = len(metas) - -(-total // max(target, 1))
    added, deleted = sum(meta.num_added_files for meta in metas), sum(meta.num_deleted_files for meta in metas)
    if spare >= limits.manifests:
        text = (
            f"A plan reads {count(len(metas), 'manifest')} of {size(total)}, which would fit into "
            f"{len(metas) - spare:,}."
        )
        measure = Measure("manifests to spare", spare, "manifests", limits.manifests)
        yield Found(HINT, Scope(), text, measure, facts.remedies.compact_manifests())
    elif 2 * deleted >= limits.dead_entries and 4 * (added - deleted) < added + deleted:
        text = (
            f"Manifests hold {count(added + deleted, 'entry', 'entries')} for {count(added - deleted, 'live file')}: "
            "planning reads the others for nothing."
        )
        measure = Measure("entries of deleted files", 2 * deleted, "entries", limits.dead_entries)
        yield Found(HINT, Scope(), text, measure, facts.remedies.compact_manifests())


def old_statistics(facts: Facts) -> Iterator[Found]:
    """Find a large table without statistics, or with statistics of far fewer rows than it has."""
    if facts.snapshot is None:
        return
    rows = int(facts.buckets.largest_run.sum() - facts.buckets.deleted.sum())
    statistics = read_statistics(facts.store, facts.snapshot)
    if statistics is None or statistics.record_count is None:
        if rows < facts.limits.statistics_rows:
            return
        text = f"About {count(rows, 'row')} and no statistics: Spark plans joins by file sizes only."
        measure = Measure("rows without statistics", rows, "rows", facts.limits.statistics_rows)
        yield Found(HINT, Scope(), text, measure, facts.remedies.analyze())
    elif rows > _GROWTH * statistics.record_count:
        text = (
            f"The statistics cover {count(statistics.record_count, 'row')} of snapshot {statistics.snapshot_id}. The "
            f"table now has about {rows:,}, and Spark plans with the old number."
        )
        measure = Measure("rows now to rows then", round(rows / max(statistics.record_count, 1), 1), "x", _GROWTH)
        yield Found(HINT, Scope(), text, measure, facts.remedies.analyze())


def _unread(facts: Facts) -> dict[str, int]:
    """Return the next snapshot id of each consumer that keeps snapshots."""
    if facts.store.options.value(CONSUMER_CHANGELOG_ONLY):
        return {}
    return Consumers(facts.store.io, facts.store.branch_root).list()


def _due(facts: Facts, bound: int | None) -> int:
    """Return how many snapshots the next expiry would remove if all ids from ``bound`` on had to stay."""
    snapshots, earliest = facts.store.snapshots, facts.store.snapshots.earliest_id()
    if facts.snapshot is None or earliest is None:
        return 0

    def times(ids: range) -> Iterator[int | None]:
        for snapshot in parallel_map(snapshots.find, ids):
            yield None if snapshot is None else snapshot.time_millis

    retention = snapshot_retention(facts.store.options, facts.now)
    return first_retained(retention, earliest, facts.snapshot.id, bound, times) - earliest


def _held(facts: Facts, newest: Snapshot, tags: Sequence[Tag]) -> Iterator[tuple[Tag, int]]:
    """Yield each tag with the total size of its files that are not in the newest snapshot."""
    live = {e.file.file_name for part in live_in_parts(facts.store, newest, with_stats=False) for e in part}
    for tag in tags:
        entries = (e for part in live_in_parts(facts.store, tag.snapshot, with_stats=False) for e in part)
        yield tag, sum(e.file.file_size for e in entries if e.file.file_name not in live)
