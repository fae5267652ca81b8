"""Tasks that users set options for: the sections of the docs page with all options."""

TASKS: dict[str, tuple[str, ...]] = {
    "Keys, partitions and buckets": (
        "primary-key",
        "partition",
        "partition.default-name",
        "partition.legacy-name",
        "metastore.partitioned-table",
        "bucket",
        "bucket-*",
        "dynamic-bucket.*",
        "cross-partition-upsert.*",
        "postpone.*",
    ),
    "Columns and row ids": (
        "path",
        "type",
        "blob-field",
        "blob-descriptor-field",
        "blob-view-field",
        "blob-as-descriptor",
        "row-tracking.*",
        "data-evolution.enabled",
        "add-column-before-partition",
        "alter-column-null-to-not-null.disabled",
        "disable-explicit-type-casting",
    ),
    "Merging and deletes": (
        "merge-engine",
        "ignore-*",
        "sequence.*",
        "rowkind.field",
        "partial-update.*",
        "aggregation.*",
        "fields.default-aggregate-function",
        "deletion-vector*",
    ),
    "Changelogs": ("changelog-*", "delete.force-produce-changelog", "table-read.sequence-number.enabled"),
    "Writing": (
        "memory-limit",
        "write-*",
        "spill-*",
        "sort-spill-*",
        "local-sort.*",
        "clustering.*",
        "dynamic-partition-overwrite",
    ),
    "Files, formats and indexes": (
        "file.*",
        "data-file.*",
        "target-file-*",
        "blob.*",
        "file-index.*",
        "index-file-*",
        "metadata.stats-*",
        "variant.*",
    ),
    "Compaction": ("compaction.*", "num-*", "full-compaction.*", "lookup*", "force-lookup"),
    "Commits and manifests": ("commit.*", "snapshot.ignore-empty-commit", "manifest.*"),
    "Expiry": (
        "snapshot.*",
        "changelog.*",
        "partition.expiration-*",
        "partition.timestamp-*",
        "end-input.check-partition-expire",
        "record-level.*",
        "file-operation.*",
    ),
    "Tags and branches": ("tag.*", "branch", "scan.*-branch"),
    "Reading and time travel": (
        "scan.*",
        "incremental-*",
        "source.split.*",
        "read.batch-size",
        "file-index.read.enabled",
    ),
    "Streams": (
        "scan.mode",
        "scan.bounded.watermark",
        "scan.creation-time-millis",
        "consumer*",
        "streaming*",
        "snapshot.watermark-idle-timeout",
        "sink.watermark-time-zone",
        "partition.mark-done-action",
        "partition.end-input-to-done",
    ),
    "Iceberg metadata": ("metadata.iceberg.*",),
}
"""Option names by task. `*` stands for any text; the longest name that matches an option decides its task."""


def position(key: str) -> tuple[str, int]:
    """Return the task of an option, and the index of its name there. KeyError if no name matches."""
    matches = [
        (len(name), task, index)
        for task, names in TASKS.items()
        for index, name in enumerate(names)
        if _matches(name, key)
    ]
    if not matches:
        raise KeyError(key)
    _, task, index = max(matches)
    return task, index


def _matches(name: str, key: str) -> bool:
    """Return True if `name` is `key`, or has a `*` in the place of some text of `key`."""
    before, star, after = name.partition("*")
    if not star:
        return name == key
    return len(key) >= len(name) - 1 and key.startswith(before) and key.endswith(after)
