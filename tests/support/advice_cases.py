"""Tables that need advice: one case for each kind."""

from dataclasses import replace

import pyarrow as pa

from paimon_core import FileSystemCatalog, Schema, SetOption, Table
from paimon_core.operations.analyze import TableStatistics, commit_statistics

DAY = 86_400_000
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("dt", pa.string())])
LEFT_ALONE = {"write-only": "true"}
STREAMED = {"num-sorted-run.compaction-trigger": "50", "snapshot.num-retained.min": "100"}


def made(path, keys=("id",), partitions=(), **options):
    """A table db.t with these options (with _ for -)."""
    catalog = FileSystemCatalog(str(path))
    catalog.create_database("db", ignore_if_exists=True)
    settings = {key.replace("_", "-"): value for key, value in options.items()}
    schema = Schema(COLUMNS, primary_keys=list(keys), partition_keys=list(partitions), options=settings)
    return catalog.create_table("db.t", schema)


def rows(first, count=20, dt="d1"):
    ids = range(first, first + count)
    return pa.table({"id": list(ids), "v": [f"v{i}" for i in ids], "dt": [dt] * count})


def later(table, days):
    """The table as it is seen some days from now."""
    moment = table.store.now() + int(days * DAY)
    return Table(replace(table.store, now=lambda: moment))


# ---- one case for each kind: a table, limits, and how many days later it is looked at


def backlog(path):
    table = made(path, bucket="2", **LEFT_ALONE)
    for number in range(9):
        table.write(rows(number))
    return table, {}, 0


def hidden(path):
    table = made(path, bucket="1", **{"deletion-vectors.enabled": "true"}, **LEFT_ALONE)
    table.write(rows(0))
    return table, {}, 0


def merging(path):
    table = made(path, bucket="1", partitions=["dt"], keys=["dt", "id"], **STREAMED)
    for dt in ("d1", "d2"):
        table.write(rows(0, 400, dt))
    table.compact(full=True)
    table.write(rows(100, 300, "d2"))
    return table, {"worth": 1}, 0


def deletes(path):
    table = made(path, bucket="1", **STREAMED)
    table.write(rows(0, 100))
    table.delete("id < 60")
    return table, {"worth": 1}, 0


def overdue(path):
    table = made(path, bucket="1", **STREAMED)
    table.write(rows(0))
    table.compact(full=True)
    table.write(rows(10))
    return table, {"worth": 1}, 8


def small(path):
    table = made(path, keys=(), **LEFT_ALONE)
    for number in range(12):
        table.write(rows(number))
    return table, {}, 0


def vectors(path):
    table = made(path, keys=(), **{"deletion-vectors.enabled": "true"}, **LEFT_ALONE)
    table.write(rows(0, 100))
    table.delete("id < 30")
    return table, {}, 0


def unindexed(path):
    table = made(path, keys=(), **LEFT_ALONE)
    table.write(rows(0))
    return table.alter([SetOption("file-index.bloom-filter.columns", "v")]), {}, 0


def postponed(path):
    table = made(path, bucket="-2", **{"postpone.batch-write-fixed-bucket": "false"})
    table.write(rows(0))
    return table, {}, 0


def rescaling(path):
    table = made(path, bucket="2", partitions=["dt"], keys=["dt", "id"])
    table.write(rows(0))
    return table.alter([SetOption("bucket", "3")]), {}, 0


def few_buckets(path):
    table = made(path, bucket="1")
    table.write(rows(0, 2000))
    return table, {"large_bucket": 4000, "bucket_size": 1000}, 0


def skewed(path):
    table = made(path, keys=(), bucket="4", **{"bucket-key": "dt"})
    table.write(rows(0, 1000))
    return table, {"skewed_size": 1000}, 0


def dynamic(path):
    options = {"dynamic-bucket.max-buckets": "2", "dynamic-bucket.target-row-num": "10"}
    table = made(path, bucket="-1", **options)
    table.write(rows(0, 200))
    return table, {}, 0


def partitions(path):
    table = made(path, keys=(), partitions=["dt"])
    table.write(pa.concat_tables([rows(i, 1, f"d{i}") for i in range(20)]))
    return table, {"many_partitions": 20}, 0


def snapshots(path):
    options = {"snapshot.num-retained.min": "2", "snapshot.expire.limit": "5", "snapshot.time-retained": "1 ms"}
    table = made(path, bucket="1", **options, **LEFT_ALONE)
    for number in range(9):
        table.write(rows(number))
    return table, {}, 0


def consumer(path):
    table, limits, days = snapshots(path)
    table.consumers.reset("gone", 2)
    return table, limits, days + 2


def tag(path):
    table = made(path, bucket="1", **{"snapshot.num-retained.min": "1", "snapshot.time-retained": "1 ms"})
    table.write(rows(0, 500))
    table.tags.create("old")
    table.overwrite(rows(500, 400))
    table.maintenance.expire_snapshots(retain_max=1)
    return table, {"worth": 1}, 31


def manifests(path):
    table = made(path, keys=(), **{"manifest.merge-min-count": "100"}, **LEFT_ALONE)
    for number in range(5):
        table.write(rows(number))
    return table, {"manifests": 3}, 0


def dead_entries(path):
    table = made(path, keys=(), **{"manifest.merge-min-count": "100"}, **LEFT_ALONE)
    for number in range(6):
        table.overwrite(rows(number))
    return table, {"dead_entries": 8}, 0


def statistics(path):
    table = made(path, bucket="1")
    table.write(rows(0, 10))
    commit_statistics(table.store, TableStatistics(1, 0, record_count=10))
    table.write(rows(10, 40))
    return table, {}, 0


def never(path):
    return backlog(path)


def streams(path):
    table = made(path, bucket="1")
    table.write(rows(0))
    table.compact(full=True)
    table.consumers.reset("reader", 1)
    return table, {}, 0


def rewriting(path):
    table = made(path, keys=())
    table.write(rows(0, 100))
    for number in range(5):
        table.delete(f"id = {number}")
    return table, {}, 0


def useless(path):
    table = made(path, bucket="1", **{"changelog.num-retained.max": "100"})
    table.write(rows(0))
    return table, {}, 0


CASES = {
    "compaction-backlog": backlog,
    "hidden-rows": hidden,
    "merging-reads": merging,
    "delete-rows": deletes,
    "full-compaction-overdue": overdue,
    "small-files": small,
    "deletion-vectors": vectors,
    "missing-file-index": unindexed,
    "postponed-rows": postponed,
    "unfinished-rescale": rescaling,
    "bucket-number": few_buckets,
    "skewed-buckets": skewed,
    "full-dynamic-buckets": dynamic,
    "tiny-partitions": partitions,
    "due-snapshots": snapshots,
    "waiting-consumer": consumer,
    "ageless-tag": tag,
    "many-manifests": manifests,
    "old-statistics": statistics,
    "never-compacted": never,
    "no-changelog": streams,
    "rewriting-deletes": rewriting,
    "useless-option": useless,
}
BY_COPYING = {"skewed-buckets", "tiny-partitions"}
"""Kinds that only another table repairs."""
