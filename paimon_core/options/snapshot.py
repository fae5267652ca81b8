"""Options about commits, manifests, snapshot retention and tags."""

from paimon_core.options.option import Option
from paimon_core.options.parse import (
    MAX_INT,
    NOTHING,
    boolean,
    comma_list,
    duration,
    enum,
    long,
    memory_size,
    number,
    text,
)

COMMIT_MAX_RETRIES = Option("commit.max-retries", number(0), 10, "attempts after the first")
COMMIT_TIMEOUT = Option("commit.timeout", duration, None, "time after which no attempt follows; none by default")
COMMIT_MIN_RETRY_WAIT = Option("commit.min-retry-wait", duration, duration("10 ms"), "first pause between attempts")
COMMIT_MAX_RETRY_WAIT = Option("commit.max-retry-wait", duration, duration("10 s"), "longest pause between attempts")
COMMIT_USER_PREFIX = Option("commit.user-prefix", text, None, "start of generated commit users")
COMMIT_FORCE_CREATE_SNAPSHOT = Option(
    "commit.force-create-snapshot", boolean, False, "commits without changes create snapshots"
)
SNAPSHOT_IGNORE_EMPTY_COMMIT = Option(
    "snapshot.ignore-empty-commit", boolean, None, "whether commits without changes are left out"
)
COMMIT_DISCARD_DUPLICATE_FILES = Option(
    "commit.discard-duplicate-files", boolean, False, "leave out files that are there already"
)
COMMIT_STRICT_MODE_LAST_SAFE_SNAPSHOT = Option(
    "commit.strict-mode.last-safe-snapshot", long, None, "refuse to commit over foreign snapshots after this one"
)
COMMIT_CALLBACKS = Option("commit.callbacks", comma_list, NOTHING, "classes called after commits; other engines only")
DYNAMIC_PARTITION_OVERWRITE = Option(
    "dynamic-partition-overwrite", boolean, True, "an overwrite replaces only partitions that get rows"
)
OVERWRITE_UPGRADE = Option(
    "overwrite-upgrade", boolean, True, "overwriting files that do not overlap go to the highest level"
)

MANIFEST_TARGET_FILE_SIZE = Option("manifest.target-file-size", memory_size, 8 << 20, "bytes of a manifest")
MANIFEST_MERGE_MIN_COUNT = Option("manifest.merge-min-count", number(1), 30, "small manifests at which they merge")
MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE = Option(
    "manifest.full-compaction-threshold-size", memory_size, 16 << 20, "bytes of changes at which all manifests merge"
)
MANIFEST_COMPRESSION = Option("manifest.compression", text, "zstd", "codec of manifests")
MANIFEST_DELETE_FILE_DROP_STATS = Option(
    "manifest.delete-file-drop-stats", boolean, False, "entries of deleted files carry no statistics"
)
MANIFEST_MERGE_OPTIMIZE_ENABLED = Option(
    "manifest.merge-optimize.enabled", boolean, True, "merge manifests in a cheaper way; the same result"
)
MANIFEST_SORT_ENABLED = Option("manifest-sort.enabled", boolean, False, "manifests are sorted by partition")

SNAPSHOT_TIME_RETAINED = Option("snapshot.time-retained", duration, duration("1 h"), "snapshots younger are kept")
SNAPSHOT_NUM_RETAINED_MIN = Option("snapshot.num-retained.min", number(), 10, "fewest snapshots kept")
SNAPSHOT_NUM_RETAINED_MAX = Option("snapshot.num-retained.max", number(), MAX_INT, "most snapshots kept")
SNAPSHOT_EXPIRE_LIMIT = Option("snapshot.expire.limit", number(1), 50, "snapshots expired in one run")
SNAPSHOT_EXPIRE_EXECUTION_MODE = Option(
    "snapshot.expire.execution-mode", enum("sync", "async"), "sync", "whether commits wait for expiry"
)
SNAPSHOT_CLEAN_EMPTY_DIRECTORIES = Option(
    "snapshot.clean-empty-directories",
    boolean,
    False,
    "expiry removes directories it emptied",
    ("snapshot.expire.clean-empty-directories",),
)
CHANGELOG_TIME_RETAINED = Option("changelog.time-retained", duration, None, "as snapshot.time-retained by default")
CHANGELOG_NUM_RETAINED_MIN = Option(
    "changelog.num-retained.min", number(), None, "as snapshot.num-retained.min by default"
)
CHANGELOG_NUM_RETAINED_MAX = Option(
    "changelog.num-retained.max", number(), None, "as snapshot.num-retained.max by default"
)
SNAPSHOT_WATERMARK_IDLE_TIMEOUT = Option(
    "snapshot.watermark-idle-timeout", duration, None, "the watermark moves on by itself after this pause"
)

TAG_AUTOMATIC_CREATION = Option(
    "tag.automatic-creation", enum("none", "process-time", "watermark", "batch"), "none", "when tags come by themselves"
)
TAG_CREATION_PERIOD = Option(
    "tag.creation-period", enum("daily", "hourly", "two-hours"), "daily", "how often tags come by themselves"
)
TAG_CREATION_PERIOD_DURATION = Option(
    "tag.creation-period-duration", duration, None, "how often tags come, before tag.creation-period"
)
TAG_CREATION_DELAY = Option("tag.creation-delay", duration, duration("0"), "how late tags come; less than the period")
TAG_PERIOD_FORMATTER = Option(
    "tag.period-formatter",
    enum("with_dashes", "without_dashes", "without_dashes_and_spaces"),
    "with_dashes",
    "how the time is spelled in tag names",
)
TAG_NUM_RETAINED_MAX = Option("tag.num-retained-max", number(1), None, "most tags that came by themselves")
TAG_DEFAULT_TIME_RETAINED = Option("tag.default-time-retained", duration, None, "age at which tags are dropped")
TAG_AUTOMATIC_COMPLETION = Option("tag.automatic-completion", boolean, False, "create missed tags")
TAG_TIME_EXPIRE_ENABLED = Option("tag.time-expire-enabled", boolean, True, "tags are dropped by age")
TAG_BATCH_CUSTOMIZED_NAME = Option("tag.batch.customized-name", text, None, "name of the tag of a batch write")
TAG_CREATE_SUCCESS_FILE = Option("tag.create-success-file", boolean, False, "a file marks every tag")
TAG_CALLBACKS = Option("tag.callbacks", comma_list, NOTHING, "classes called after tags; other engines only")
SINK_WATERMARK_TIME_ZONE = Option("sink.watermark-time-zone", text, "UTC", "time zone of watermarks")

VISIBILITY_CALLBACK_ENABLED = Option(
    "visibility-callback.enabled", boolean, False, "a commit returns only when its data is visible"
)
VISIBILITY_CALLBACK_TIMEOUT = Option(
    "visibility-callback.timeout", duration, duration("30 min"), "longest wait for visibility"
)
VISIBILITY_CALLBACK_CHECK_INTERVAL = Option(
    "visibility-callback.check-interval", duration, duration("10 s"), "pause between looks for visibility"
)
