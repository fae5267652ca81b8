"""Options about reading, time travel and streaming."""

from paimon_core.options.option import Option, not_yet, refused, without_effect
from paimon_core.options.parse import boolean, duration, enum, long, memory_size, number, text

_INTERNAL = without_effect("internal to jobs of other engines")

_SCAN_MODES = (
    "default", "latest-full", "full", "latest", "compacted-full", "latest-delta", "from-timestamp",
    "from-creation-timestamp", "from-file-creation-time", "from-snapshot", "from-snapshot-full", "incremental",
)  # fmt: skip

SCAN_MODE = Option(
    "scan.mode",
    enum(*_SCAN_MODES),
    "default",
    "position at which a read starts",
    ("log.scan",),
)
SCAN_SNAPSHOT_ID = Option("scan.snapshot-id", long, None, "snapshot to read or to start from")
SCAN_TAG_NAME = Option("scan.tag-name", text, None, "tag to read")
SCAN_WATERMARK = Option("scan.watermark", long, None, "read the first snapshot of at least this watermark")
SCAN_TIMESTAMP_MILLIS = Option(
    "scan.timestamp-millis",
    long,
    None,
    "instant to read as of, in milliseconds since 1970",
    ("log.scan.timestamp-millis",),
)
SCAN_TIMESTAMP = Option("scan.timestamp", text, None, "local time to read as of; in SQL, a time in the session's zone")
SCAN_VERSION = Option("scan.version", text, None, "tag or snapshot id to read; a tag takes precedence")
SCAN_FILE_CREATION_TIME_MILLIS = Option(
    "scan.file-creation-time-millis", long, None, "read only files created after this time"
)
SCAN_CREATION_TIME_MILLIS = Option("scan.creation-time-millis", long, None, "start at files created at this time")
SCAN_BOUNDED_WATERMARK = Option("scan.bounded.watermark", long, None, "watermark at which a stream ends")
INCREMENTAL_BETWEEN = Option(
    "incremental-between", text, None, "two snapshots or tags: read the changes after the first through the second"
)
INCREMENTAL_BETWEEN_TIMESTAMP = Option(
    "incremental-between-timestamp", text, None, "two times: read the changes after the first through the second"
)
INCREMENTAL_TO_AUTO_TAG = Option(
    "incremental-to-auto-tag", text, None, "automatic tag: read the changes since the previous automatic tag"
)
INCREMENTAL_BETWEEN_SCAN_MODE = Option(
    "incremental-between-scan-mode",
    enum("auto", "delta", "changelog", "diff"),
    "auto",
    "source of the changes: written rows, the changelog, or the difference of the rows",
)
INCREMENTAL_BETWEEN_TAG_TO_SNAPSHOT = Option(
    "incremental-between-tag-to-snapshot",
    boolean,
    False,
    "read the changes of the snapshots between two tags instead of comparing the rows of the tags",
)
SCAN_FALLBACK_BRANCH = Option(
    "scan.fallback-branch", text, None, "branch whose partitions batch reads add if this branch lacks them"
)
SCAN_PRIMARY_BRANCH = Option(
    "scan.primary-branch", text, None, "branch whose partitions batch reads prefer to the partitions of this branch"
)
SCAN_BUCKET = Option(
    "scan.bucket", number(0), None, "read only this bucket", mark=refused("only whole snapshots can be read")
)
SCAN_PLAN_SORT_PARTITION = Option(
    "scan.plan-sort-partition",
    boolean,
    False,
    "order splits by partition",
    mark=not_yet("splits are in the order of their packing"),
)
SCAN_MANIFEST_PARALLELISM = Option(
    "scan.manifest.parallelism",
    number(1),
    None,
    "number of threads of a scan that read manifests; by default 4 per processor",
)
SCAN_MAX_SPLITS_PER_TASK = Option(
    "scan.max-splits-per-task",
    number(1),
    10,
    "maximum number of splits that a task holds at once",
    mark=without_effect("the plan of a read assigns splits to tasks"),
)
SCAN_IGNORE_CORRUPT_FILES = Option("scan.ignore-corrupt-files", boolean, False, "reads skip damaged files")
SCAN_IGNORE_LOST_FILES = Option("scan.ignore-lost-files", boolean, False, "reads skip missing files")
SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED = Option(
    "scan.plan-auto-tag-for-read.time-retained",
    duration,
    None,
    "time for which a tag batch-read-* protects the files of a planned batch read",
)
BATCH_SCAN_MODE = Option("batch-scan-mode", text, "none", "internal to batch jobs", mark=_INTERNAL)
STREAM_SCAN_MODE = Option(
    "stream-scan-mode",
    enum("none", "compact-bucket-table", "file-monitor"),
    "none",
    "internal to streaming jobs",
    mark=_INTERNAL,
)
SOURCE_SPLIT_TARGET_SIZE = Option("source.split.target-size", memory_size, 128 << 20, "target size of a split")
SOURCE_SPLIT_OPEN_FILE_COST = Option(
    "source.split.open-file-cost",
    memory_size,
    4 << 20,
    "minimum size that a file counts as when files are packed into splits",
)
READ_BATCH_SIZE = Option("read.batch-size", number(1), 1024, "maximum number of rows of a batch in reads")
FILE_READER_ASYNC_THRESHOLD = Option(
    "file-reader-async-threshold",
    memory_size,
    10 << 20,
    "size above which files are read ahead",
    mark=without_effect("files of every size are read ahead"),
)
FILE_INDEX_READ_ENABLED = Option("file-index.read.enabled", boolean, True, "reads use file indexes")
STREAMING_READ_OVERWRITE = Option("streaming-read-overwrite", boolean, False, "streams emit the changes of overwrites")
STREAMING_READ_APPEND_OVERWRITE = Option(
    "streaming-read-append-overwrite", boolean, False, "streams of append tables emit the rows of overwrites"
)
STREAMING_READ_SNAPSHOT_DELAY = Option(
    "streaming.read.snapshot.delay", duration, None, "age that a snapshot must have before streams read it"
)
CONTINUOUS_DISCOVERY_INTERVAL = Option(
    "continuous.discovery-interval",
    duration,
    duration("10 s"),
    "interval between checks for new snapshots",
    mark=without_effect("the caller of a stream decides when to check: Spark's trigger"),
)
CONSUMER_ID = Option("consumer-id", text, None, "name under which a stream stores its progress")
CONSUMER_EXPIRATION_TIME = Option("consumer.expiration-time", duration, None, "age at which a consumer is dropped")
CONSUMER_IGNORE_PROGRESS = Option(
    "consumer.ignore-progress", boolean, False, "start as scan.mode says, even if the consumer has stored progress"
)
CONSUMER_MODE = Option(
    "consumer.mode",
    enum("exactly-once", "at-least-once"),
    "exactly-once",
    "precision of the stored progress",
    mark=without_effect("progress is always stored by snapshot, which is exactly-once"),
)
CONSUMER_CHANGELOG_ONLY = Option(
    "consumer.changelog-only", boolean, False, "a consumer protects changelogs only, not snapshots"
)
