"""Options about the write buffer and compaction."""

from paimon_core.options.option import Option, not_yet, refused, without_effect
from paimon_core.options.parse import (
    MAX_LONG,
    NOTHING,
    boolean,
    comma_list,
    duration,
    enum,
    fraction,
    memory_size,
    number,
    size_from,
    text,
)

_LIMITED_BY_BYTES = without_effect("the decoded size of rows limits a batch")

WRITE_ONLY = Option(
    "write-only", boolean, False, "writers do not compact, expire snapshots or create tags", ("write.compaction-skip",)
)
MEMORY_LIMIT = Option(
    "memory-limit",
    size_from(64 << 20),
    None,
    "memory of one read, one writer or one task, from which all buffers, batches and caches take their shares",
)
WRITE_BUFFER_SIZE = Option(
    "write-buffer-size",
    memory_size,
    256 << 20,
    "maximum size of all buffers of a writer; with memory-limit, an eighth of it",
)
WRITE_BUFFER_SPILLABLE = Option("write-buffer-spillable", boolean, True, "spill full buffers to local disk")
WRITE_BUFFER_SPILL_MAX_DISK_SIZE = Option(
    "write-buffer-spill.max-disk-size", memory_size, MAX_LONG, "maximum size of spilled buffers on local disk"
)
WRITE_BUFFER_FOR_APPEND = Option(
    "write-buffer-for-append",
    boolean,
    False,
    "buffer rows of append tables too",
    mark=without_effect("append tables always gather rows before they encode them"),
)
WRITE_MAX_WRITERS_TO_SPILL = Option(
    "write-max-writers-to-spill",
    number(),
    10,
    "number of files that an append writer keeps open while it flushes; rows of more buckets are spilled",
)
WRITE_BATCH_SIZE = Option(
    "write.batch-size",
    number(1),
    1024,
    "number of rows of a written batch",
    ("orc.write.batch-size",),
    mark=_LIMITED_BY_BYTES,
)
WRITE_BATCH_MEMORY = Option(
    "write.batch-memory", memory_size, 128 << 20, "size of a written batch", mark=_LIMITED_BY_BYTES
)
WRITE_SEQUENCE_NUMBER_INIT_MODE = Option(
    "write.sequence-number-init-mode",
    enum("scan", "snapshot"),
    "scan",
    "source of the next sequence number",
    mark=refused("every commit would have to store the highest sequence number in the snapshot"),
)
PAGE_SIZE = Option(
    "page-size",
    memory_size,
    64 << 10,
    "size of a page of a buffer",
    mark=without_effect("buffers hold Arrow batches, not pages"),
)
CACHE_PAGE_SIZE = Option(
    "cache-page-size",
    memory_size,
    64 << 10,
    "size of a page in the lookup cache",
    mark=without_effect("lookups cache blocks of keys, not pages; lookup.cache-max-memory-size bounds them"),
)
SPILL_COMPRESSION = Option(
    "spill-compression", enum("lz4", "zstd", "none"), "lz4", "codec of spilled files: lz4, zstd or none"
)
SPILL_COMPRESSION_ZSTD_LEVEL = Option("spill-compression.zstd-level", number(), 1, "level of zstd in spilled files")
SORT_SPILL_THRESHOLD = Option(
    "sort-spill-threshold",
    number(2),
    None,
    "number of runs that are merged at once; by default num-sorted-run.stop-trigger + 1",
)
SORT_SPILL_BUFFER_SIZE = Option(
    "sort-spill-buffer-size",
    memory_size,
    64 << 20,
    "size of the rows that are sorted at once",
    mark=without_effect("write-buffer-size decides how many bytes are sorted at once"),
)
LOCAL_SORT_MAX_NUM_FILE_HANDLES = Option(
    "local-sort.max-num-file-handles", number(1), 128, "number of spilled runs that are merged at once"
)
SORT_ENGINE = Option(
    "sort-engine",
    enum("loser-tree", "min-heap"),
    "loser-tree",
    "algorithm that merges runs; the result is the same",
    mark=without_effect("runs are merged in one way; the result is the same"),
)
LOCAL_MERGE_BUFFER_SIZE = Option(
    "local-merge-buffer-size",
    memory_size,
    None,
    "size of a buffer that merges rows before the shuffle",
    mark=without_effect("the writer of a bucket merges the rows of a key after the shuffle"),
)

NUM_SORTED_RUN_COMPACTION_TRIGGER = Option(
    "num-sorted-run.compaction-trigger", number(), 5, "number of sorted runs at which compaction starts"
)
NUM_SORTED_RUN_STOP_TRIGGER = Option(
    "num-sorted-run.stop-trigger",
    number(),
    None,
    "number of sorted runs at which writers wait for compaction; by default the compaction trigger + 3",
)
NUM_LEVELS = Option("num-levels", number(), None, "number of levels of a bucket; by default the compaction trigger + 1")
COMPACTION_MAX_SIZE_AMPLIFICATION_PERCENT = Option(
    "compaction.max-size-amplification-percent",
    number(),
    50,
    "maximum size of the newer runs, in percent of the oldest run (Java: 200)",
)
COMPACTION_SIZE_RATIO = Option("compaction.size-ratio", number(), 1, "percentage that the next run may be larger")
COMPACTION_OPTIMIZATION_INTERVAL = Option(
    "compaction.optimization-interval", duration, None, "interval between full compactions"
)
COMPACTION_TOTAL_SIZE_THRESHOLD = Option(
    "compaction.total-size-threshold", memory_size, None, "size below which a bucket is always compacted fully"
)
COMPACTION_INCREMENTAL_SIZE_THRESHOLD = Option(
    "compaction.incremental-size-threshold", memory_size, None, "size of new files at which a bucket is compacted fully"
)
COMPACTION_OFFPEAK_START_HOUR = Option(
    "compaction.offpeak.start.hour", number(-1, 23), -1, "first hour of off-peak time; -1: none"
)
COMPACTION_OFFPEAK_END_HOUR = Option(
    "compaction.offpeak.end.hour", number(-1, 23), -1, "hour at which off-peak time ends (exclusive); -1: none"
)
COMPACTION_OFFPEAK_RATIO = Option(
    "compaction.offpeak-ratio", number(), 0, "percentage added to compaction.size-ratio in off-peak time"
)
COMPACTION_FORCE_UP_LEVEL_0 = Option(
    "compaction.force-up-level-0", boolean, False, "every compaction includes all files of level 0"
)
COMPACTION_FORCE_REWRITE_ALL_FILES = Option(
    "compaction.force-rewrite-all-files", boolean, False, "a full compaction rewrites every file"
)
COMPACTION_SKIP_EXPIRED_PARTITIONS = Option(
    "compaction.skip-expired-partitions",
    boolean,
    False,
    "dedicated compactions skip partitions that are due to expire",
)
COMPACTION_MIN_FILE_NUM = Option(
    "compaction.min.file-num", number(), 5, "number of small files at which an append table compacts"
)
COMPACTION_SMALL_FILE_RATIO = Option(
    "compaction.small-file-ratio", fraction, 0.7, "share of the target size below which a file is small"
)
COMPACTION_DELETE_RATIO_THRESHOLD = Option(
    "compaction.delete-ratio-threshold", fraction, 0.2, "share of deleted rows at which a file is rewritten"
)
COMPACTION_FILE_NUM_LIMIT = Option(
    "compaction.file-num-limit",
    number(1),
    100_000,
    "maximum number of files in one compaction plan",
    mark=without_effect("a plan reads the metadata of all files of a bucket"),
)
FULL_COMPACTION_DELTA_COMMITS = Option(
    "full-compaction.delta-commits", number(1), None, "number of commits after which a stream compacts fully"
)
COMMIT_FORCE_COMPACT = Option(
    "commit.force-compact",
    boolean,
    False,
    "wait for compaction before committing",
    mark=not_yet("writers compact when the number of runs or files requires it"),
)
LOOKUP_COMPACT = Option("lookup-compact", enum("radical", "gentle"), "radical", "how often lookup compaction runs")
LOOKUP_COMPACT_MAX_INTERVAL = Option(
    "lookup-compact.max-interval",
    number(),
    None,
    "number of commits between gentle compactions; by default twice the compaction trigger",
)
LOOKUP_WAIT = Option(
    "lookup-wait",
    boolean,
    True,
    "commits wait for lookup compaction",
    ("changelog-producer.lookup-wait",),
    mark=without_effect("a commit always waits for lookup compaction"),
)
FORCE_LOOKUP = Option("force-lookup", boolean, False, "run lookup compaction even if no other option needs it")
LOOKUP_CACHE_MAX_MEMORY_SIZE = Option(
    "lookup.cache-max-memory-size",
    memory_size,
    256 << 20,
    "maximum size of rows and key indexes in memory; with memory-limit, a quarter of it",
)

CLUSTERING_COLUMNS = Option(
    "clustering.columns", comma_list, NOTHING, "clustering columns of the rows", ("sink.clustering.by-columns",)
)
CLUSTERING_STRATEGY = Option(
    "clustering.strategy",
    enum("auto", "order", "zorder", "hilbert"),
    "auto",
    "order or space-filling curve of clustered rows",
    ("sink.clustering.strategy",),
)
CLUSTERING_INCREMENTAL = Option(
    "clustering.incremental",
    boolean,
    False,
    "compaction clusters rows incrementally",
    mark=not_yet("compaction does not cluster; Table.compact(order_by=...) does"),
)
CLUSTERING_INCREMENTAL_MODE = Option(
    "clustering.incremental.mode",
    text,
    "global-sort",
    "range of rows that one step of incremental clustering sorts",
    mark=not_yet("compaction does not cluster"),
)
CLUSTERING_INCREMENTAL_OPTIMIZE_WRITE = Option(
    "clustering.incremental.optimize-write",
    boolean,
    False,
    "writers cluster rows too",
    mark=not_yet("writers do not cluster rows"),
)
PK_CLUSTERING_OVERRIDE = Option(
    "pk-clustering-override",
    boolean,
    False,
    "files are sorted by clustering columns instead of the key",
    mark=refused("files are not sorted by key"),
)
