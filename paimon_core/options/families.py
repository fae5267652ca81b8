"""Families of options: names with a common prefix, which are listed here instead of declared one by one.

In a name, ``<...>`` stands for one or more characters, such as the name of a column.
"""

import re
from functools import lru_cache
from typing import Final

from paimon_core.options.file_index import KIND_OPTIONS
from paimon_core.options.per_field import FIELD_OPTIONS

EFFECTIVE: Final = (
    *(f"fields.<column>.{option}" for option in FIELD_OPTIONS),
    *(f"file-index.{kind}.columns" for kind in KIND_OPTIONS),
    *(f"file-index.{kind}.<column>.{name}" for kind, names in KIND_OPTIONS.items() for name in names),
    "parquet.compression", "parquet.enable.dictionary", "orc.compress", "avro.codec", "csv.escape-character",
    "csv.field-delimiter", "csv.include-header", "csv.line-delimiter", "csv.null-literal", "csv.quote-character",
    "json.line-delimiter",
)  # fmt: skip
"""Names that this engine uses, or refuses if it cannot use their value."""

REFUSED: Final = (
    "fields.<column>.map.storage-layout", "fields.<column>.map.shared-shredding.column-placement-policy",
    "fields.<column>.map.shared-shredding.max-columns", "chain-table.<setting>", "global-index.<setting>",
    "pk-<kind>.index.columns",
)  # fmt: skip
"""Names of features that ``paimon_core.schema.support`` refuses, whatever their value."""

ELSEWHERE: Final = (
    "avro.row-name-mapping", "changelog-producer.compaction-interval", "changelog.precommit-compact.buffer-size",
    "changelog.precommit-compact.thread-num", "clustering.history-partition.idle-to-full-sort",
    "clustering.history-partition.limit", "commit.callback.<class>.param", "commit.custom-listeners",
    "compaction.bucket-distribution-strategy", "csv.mode", "end-input.watermark",
    "filesystem.job-level-settings.enabled", "format-table.commit-hive-sync-url", "format-table.enabled",
    "format-table.file.compression", "format-table.implementation",
    "format-table.partition-path-only-value", "json.ignore-parse-errors", "json.map-null-key-literal",
    "json.map-null-key-mode", "key-value.sequence_number.enabled", "lookup.async", "lookup.async-thread-number",
    "lookup.bootstrap-parallelism",
    "lookup.cache", "lookup.cache-file-retention", "lookup.cache-max-disk-size", "lookup.cache-rows",
    "lookup.cache-spill-compression", "lookup.cache.bloom.filter.enabled", "lookup.cache.bloom.filter.fpp",
    "lookup.cache.high-priority-pool-ratio", "lookup.continuous.discovery-interval", "lookup.dynamic-partition",
    "lookup.dynamic-partition.refresh-interval", "lookup.dynamic-partition.refresh.async", "lookup.hash-load-factor",
    "lookup.merge-buffer-size",
    "lookup.merge-records-threshold", "lookup.refresh.async", "lookup.refresh.async.pending-snapshot-count",
    "lookup.refresh.full-load-threshold", "lookup.refresh.time-periods-blacklist", "lookup.remote-file.enabled",
    "lookup.remote-file.level-threshold", "materialized-table.definition-query",
    "materialized-table.interval-freshness", "materialized-table.interval-freshness.time-unit",
    "materialized-table.logical-refresh-mode", "materialized-table.refresh-handler-bytes",
    "materialized-table.refresh-handler-description", "materialized-table.refresh-mode",
    "materialized-table.refresh-status", "metadata.iceberg.rest.<setting>", "metastore.client.class",
    *(
        f"orc.{name}"
        for name in (
            "base.delta.ratio", "block.padding", "block.padding.tolerance", "block.size", "bloom.filter.columns",
            "bloom.filter.fpp", "bloom.filter.ignore.non-utf8", "bloom.filter.write.version", "buffer.size.enforce",
            "column.encoding.direct", "compress.size", "compression.strategy", "compression.zstd.impl",
            "compression.zstd.level", "compression.zstd.strategy", "compression.zstd.windowlog", "create.index",
            "dictionary.early.check", "dictionary.implementation", "dictionary.key.threshold",
            "dictionary.max.size.bytes", "encoding.strategy", "filter.use.selected", "max.disk.range.chunk.limit",
            "max.file.length", "memory.pool", "min.disk.seek.size", "min.disk.seek.size.tolerance",
            "overwrite.output.file", "proleptic.gregorian", "proleptic.gregorian.default", "row.batch.size",
            "row.child.limit", "row.index.stride", "rows.between.memory.checks", "sarg.to.filter",
            "skip.corrupt.data", "stripe.row.count", "stripe.size", "stripe.size.check.ratio",
            "timestamp-ltz.legacy.type", "tolerate.missing.schema", "use.zerocopy", "write.format",
            "write.variable.length.blocks",
        )
    ),
    *(
        f"parquet.{name}"
        for name in (
            "block.row.count.limit", "block.size", "bloom.filter.adaptive.enabled",
            "bloom.filter.candidates.number", "bloom.filter.enabled", "bloom.filter.enabled#<column>",
            "bloom.filter.expected.ndv", "bloom.filter.expected.ndv#<column>", "bloom.filter.fpp",
            "bloom.filter.fpp#<column>", "bloom.filter.max.bytes", "column.statistics.enabled",
            "columnindex.truncate.length", "compression#<column>", "compression.codec.zstd.bufferPool.enabled",
            "compression.codec.zstd.level", "compression.codec.zstd.workers", "dictionary.page.size",
            "enable.bytestreamsplit", "enable.dictionary#<column>", "filter.bloom.enabled",
            "filter.columnindex.enabled", "filter.dictionary.enabled", "filter.record-level.enabled",
            "filter.stats.enabled", "memory.min.chunk.size", "memory.pool.ratio", "page.row.count.limit",
            "page.size", "page.size.check.estimate", "page.size.row.check.max", "page.size.row.check.min",
            "page.value.count.threshold", "page.verify-checksum.enabled", "page.write-checksum.enabled",
            "read.allocation.size", "read.bad.record.threshold", "size.statistics.enabled",
            "statistics.truncate.length", "strings.signed-min-max.enabled", "validation", "writer.max-padding",
            "writer.version",
        )
    ),
    "partition.idle-time-to-done", "partition.idle-time-to-report-statistic",
    "partition.mark-done-action.custom.class",
    "partition.mark-done-action.mode", "partition.mark-done.recover-from-state", "precommit-compact",
    "partition.mark-done-action.http.params", "partition.mark-done-action.http.url", "partition.time-interval",
    "read.allow.fullScan", "read.changelog", "read.native.enabled", "read.readChangeLog",
    "read.shuffle-bucket-with-partition", "read.stream.maxBytesPerTrigger", "read.stream.maxFilesPerTrigger",
    "read.stream.maxRowsPerTrigger", "read.stream.maxTriggerDelayMs", "read.stream.minRowsPerTrigger",
    "requiredSparkConfsCheck.enabled", "scan.bounded", "scan.max-snapshot.count",
    "scan.dedicated-split-generation", "scan.fallback-delta-branch", "scan.fallback-snapshot-branch",
    "scan.infer-parallelism", "scan.infer-parallelism.max", "scan.parallelism", "scan.partitions",
    "scan.remove-normalize", "scan.split-enumerator.batch-size", "scan.split-enumerator.mode",
    "scan.watermark.alignment.group", "scan.watermark.alignment.max-drift", "scan.watermark.alignment.update-interval",
    "scan.watermark.emit.strategy", "scan.watermark.idle-timeout", "sink.clustering.sample-factor",
    "sink.clustering.sort-in-cluster", "sink.committer-cpu", "sink.committer-memory",
    "sink.committer-operator-chaining", "sink.coordinator-commit.enabled", "sink.key-only-deletes.enabled",
    "sink.cross-partition.managed-memory", "sink.managed.writer-buffer-memory",
    "sink.operator-uid.suffix", "sink.parallelism", "sink.partition-shuffle", "sink.process-time-zone",
    "sink.savepoint.auto-tag", "sink.use-managed-memory-allocator",
    "sink.writer-coordinator.cache-expire-after-access",
    "sink.writer-coordinator.cache-memory", "sink.writer-coordinator.cache-soft-values",
    "sink.writer-coordinator.prefetch-manifests",
    "sink.writer-coordinator.enabled", "sink.writer-coordinator.page-size", "sink.writer-cpu", "sink.writer-memory",
    "sink.writer-refresh-detectors", "sort-compaction.local-sample.magnification", "sort-compaction.range-strategy",
    "source.checkpoint-align.enabled", "source.checkpoint-align.timeout", "source.operator-uid.suffix",
    "source.split.target-size-with-column-pruning", "tag.callback.<class>.param",
    "unaware-bucket.compaction.parallelism", "unaware-bucket.no-shuffle", "vector.file.format",
    "vector.target-file-size", "write.hive-style-dynamic-partition.enabled", "write.merge-schema",
    "write.merge-schema.explicit-cast", "write.merge-schema.type-widening", "write.native.enabled",
    "write.use-v2-write", "zorder.var-length-contribution",
)  # fmt: skip
"""Names that only other engines use, for the same tables or to encode the same file formats."""

NEWER: Final = (
    "bitmap-index.<setting>", "blob-compaction.enabled", "blob-descriptor.<setting>", "blob-view.resolve.enabled",
    "blob-write-null-on-fetch-failure", "blob-write-null-on-missing-file", "blob.copy-buffer-size",
    "btree-index.<setting>", "data-evolution.compaction.rewrite-row-ids", "data-evolution.merge-into.file-pruning",
    "data-evolution.merge-into.source-persist", "data-evolution.reassign.skip-contiguous-row-count",
    "data-evolution.row-id-conflict-rewrite.max-size", "data-evolution.row-sidecar.enabled",
    "data-evolution.row-sidecar.max-selected-rows", "data-evolution.row-sidecar.max-selection-ratio",
    "fields.<column>.pk-<kind>.<setting>", "format-table.repair.collect-statistics",
    "format-table.scan.list-parallelism", "format-table.statistics.parallelism", "full-text-index.search-mode",
    "legacy-timestamp-mapping.enabled", "local-kv-db.block-size", "lookup.blob-as-descriptor", "lumina.<setting>",
    "manifest-sort.max-rewrite-size", "manifest-sort.partition-field", "multivalue-index.<setting>",
    "scalar-index.search-mode", "scan.fallback-branch.read-fail-fast", "sorted-index.<setting>",
    "vector-index.search-mode", "vector-search.distribute.enabled", "vector-search.lateral-join.batch-size",
    "vector-search.lateral-join.parallelism",
    "write.data-evolution.update-conflict-retry.max-attempts", "write.data-evolution.update-conflict-retry.wait-ms",
)  # fmt: skip
"""Names of features that newer releases of the Java engine have and this engine lacks."""

DEFAULTS_PREFIX: Final = "table-default."
"""The prefix of a catalog option that sets an option of new tables."""

USER_PREFIX: Final = "user."
"""The prefix of properties of a table that users name freely: no option of Paimon begins with it."""

PREFIXES: Final = (
    "avro.", "chain-table.", "csv.", "fields.", "file-index.", "format-table.", "global-index.", "json.", "lookup.",
    "manifest-sort.", "metadata.iceberg.", "metastore.", "orc.", "parquet.", "read.", "scan.", "sink.",
    "sort-compaction.", "table-default.", "variant.", "write.",
)  # fmt: skip
"""The prefixes of families: an unknown key with one of these prefixes is misspelt or belongs to a newer release."""

_HOLE = re.compile(r"<[a-z-]+>")


def is_of_family(key: str) -> bool:
    """Return True if the key begins like a family, whether or not its name is known."""
    return key.startswith(PREFIXES)


def is_named(key: str) -> bool:
    """Return True if a family contains the name."""
    return _matches(EFFECTIVE, key) or _matches(REFUSED, key) or _matches(ELSEWHERE, key)


def is_newer(key: str) -> bool:
    """Return True for the name of a feature that this engine lacks and newer releases of the Java engine have."""
    return _matches(NEWER, key)


def is_elsewhere(key: str) -> bool:
    """Return True for a name that only other engines use."""
    return _matches(ELSEWHERE, key) and not _matches(EFFECTIVE, key) and not _matches(REFUSED, key)


def spelled(key: str) -> str:
    """Return the name in the case of its family; any other key unchanged."""
    return _cases().get(key.lower(), key)


def candidates(key: str) -> list[str]:
    """Return all names as suggestions for a misspelt key; each hole is filled with the text of the key there."""
    matches = []
    for name in (*EFFECTIVE, *REFUSED, *ELSEWHERE):
        before, *after = _HOLE.split(name)
        if not after:
            matches.append(name)
        elif key.startswith(before):
            rest = key[len(before) :]
            matches.append(before + (rest.rsplit(".", after[0].count("."))[0] if after[0] else rest) + after[0])
    return matches


def _matches(names: tuple[str, ...], key: str) -> bool:
    return _pattern(names).fullmatch(key) is not None


@lru_cache(maxsize=8)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(".+".join(map(re.escape, _HOLE.split(name))) for name in names))


@lru_cache(maxsize=1)
def _cases() -> dict[str, str]:
    return {name.lower(): name for name in (*EFFECTIVE, *REFUSED, *ELSEWHERE, *NEWER) if name != name.lower()}
