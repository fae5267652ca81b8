"""Options about commits, manifests, snapshot retention and tags."""

from paimon_core.options.option import Option, not_yet, refused, without_effect
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

_NO_VISIBILITY_CHECK = not_yet("a commit returns when its snapshot exists")

COMMIT_MAX_RETRIES = Option("commit.max-retries", number(0), 10, "maximum number of attempts after the first")
COMMIT_TIMEOUT = Option(
    "commit.timeout", duration, None, "time after which a commit starts no further attempt; by default unlimited"
)
COMMIT_MIN_RETRY_WAIT = Option("commit.min-retry-wait", duration, duration("10 ms"), "first wait between attempts")
COMMIT_MAX_RETRY_WAIT = Option("commit.max-retry-wait", duration, duration("10 s"), "longest wait between attempts")
COMMIT_USER_PREFIX = Option("commit.user-prefix", text, None, "prefix of generated commit users")
COMMIT_SYNC = Option(
    "commit.sync", boolean, True, "sync files to disk before publishing their snapshot; an option of this engine only"
)
COMMIT_FORCE_CREATE_SNAPSHOT = Option(
    "commit.force-create-snapshot", boolean, False, "commits without changes create snapshots"
)
SNAPSHOT_IGNORE_EMPTY_COMMIT = Option(
    "snapshot.ignore-empty-commit", boolean, None, "commits without changes create no snapshots"
)
COMMIT_DISCARD_DUPLICATE_FILES = Option(
    "commit.discard-duplicate-files",
    boolean,
    False,
    "skip files that the table already has",
    mark=not_yet("a commit of files that the table already has is a conflict"),
)
COMMIT_STRICT_MODE_LAST_SAFE_SNAPSHOT = Option(
    "commit.strict-mode.last-safe-snapshot",
    long,
    None,
    "refuse to commit over foreign snapshots after this one",
    mark=refused("commits of other users would not be checked"),
)
COMMIT_CALLBACKS = Option(
    "commit.callbacks",
    comma_list,
    NOTHING,
    "classes that other engines call after commits",
    mark=refused("callbacks are Java classes"),
)
DYNAMIC_PARTITION_OVERWRITE = Option(
    "dynamic-partition-overwrite", boolean, True, "an overwrite replaces only the partitions of its rows"
)
OVERWRITE_UPGRADE = Option(
    "overwrite-upgrade",
    boolean,
    True,
    "new files of an overwrite start at the highest level if they do not overlap",
    mark=not_yet("files of an overwrite start at level 0"),
)

MANIFEST_TARGET_FILE_SIZE = Option("manifest.target-file-size", memory_size, 8 << 20, "target size of a manifest")
MANIFEST_MERGE_MIN_COUNT = Option(
    "manifest.merge-min-count", number(1), 30, "number of small manifests at which they are merged"
)
MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE = Option(
    "manifest.full-compaction-threshold-size",
    memory_size,
    16 << 20,
    "size of changes at which all manifests are merged",
)
MANIFEST_COMPRESSION = Option("manifest.compression", text, "zstd", "codec of manifests")
MANIFEST_DELETE_FILE_DROP_STATS = Option(
    "manifest.delete-file-drop-stats", boolean, False, "entries of deleted files carry no statistics"
)
MANIFEST_MERGE_OPTIMIZE_ENABLED = Option(
    "manifest.merge-optimize.enabled",
    boolean,
    True,
    "use a cheaper algorithm to merge manifests; the result is the same",
    mark=without_effect("manifests are merged in one way; the result is the same"),
)
MANIFEST_SORT_ENABLED = Option(
    "manifest-sort.enabled",
    boolean,
    False,
    "manifests are sorted by partition",
    mark=not_yet("manifests are in the order of commits"),
)

SNAPSHOT_TIME_RETAINED = Option(
    "snapshot.time-retained", duration, duration("1 h"), "age below which snapshots do not expire"
)
SNAPSHOT_NUM_RETAINED_MIN = Option(
    "snapshot.num-retained.min", number(), 10, "minimum number of snapshots that expiry keeps"
)
SNAPSHOT_NUM_RETAINED_MAX = Option(
    "snapshot.num-retained.max", number(), MAX_INT, "maximum number of snapshots that expiry keeps"
)
SNAPSHOT_EXPIRE_LIMIT = Option(
    "snapshot.expire.limit", number(1), 50, "maximum number of snapshots that expire in one run"
)
SNAPSHOT_EXPIRE_EXECUTION_MODE = Option(
    "snapshot.expire.execution-mode", enum("sync", "async"), "sync", "sync: commits wait for expiry"
)
SNAPSHOT_CLEAN_EMPTY_DIRECTORIES = Option(
    "snapshot.clean-empty-directories",
    boolean,
    False,
    "expiry removes directories that become empty",
    ("snapshot.expire.clean-empty-directories",),
)
CHANGELOG_TIME_RETAINED = Option(
    "changelog.time-retained",
    duration,
    None,
    "age below which changelogs do not expire; by default snapshot.time-retained",
)
CHANGELOG_NUM_RETAINED_MIN = Option(
    "changelog.num-retained.min",
    number(),
    None,
    "minimum number of changelogs that expiry keeps; by default snapshot.num-retained.min",
)
CHANGELOG_NUM_RETAINED_MAX = Option(
    "changelog.num-retained.max",
    number(),
    None,
    "maximum number of changelogs that expiry keeps; by default snapshot.num-retained.max",
)
SNAPSHOT_WATERMARK_IDLE_TIMEOUT = Option(
    "snapshot.watermark-idle-timeout",
    duration,
    None,
    "age of the watermark at which a stream without rows creates a snapshot, for automatic tags",
)

TAG_AUTOMATIC_CREATION = Option(
    "tag.automatic-creation",
    enum("none", "process-time", "watermark", "batch"),
    "none",
    "event that creates automatic tags",
)
TAG_CREATION_PERIOD = Option(
    "tag.creation-period",
    enum("daily", "hourly", "two-hours"),
    "daily",
    "period of automatic tags",
)
TAG_CREATION_PERIOD_DURATION = Option(
    "tag.creation-period-duration",
    duration,
    None,
    "period of automatic tags; overrides tag.creation-period",
)
TAG_CREATION_DELAY = Option(
    "tag.creation-delay",
    duration,
    duration("0"),
    "delay of automatic tags; must be less than their period",
)
TAG_PERIOD_FORMATTER = Option(
    "tag.period-formatter",
    enum("with_dashes", "without_dashes", "without_dashes_and_spaces"),
    "with_dashes",
    "format of the time in names of automatic tags",
)
TAG_NUM_RETAINED_MAX = Option("tag.num-retained-max", number(1), None, "maximum number of automatic tags")
TAG_DEFAULT_TIME_RETAINED = Option("tag.default-time-retained", duration, None, "age at which tags are dropped")
TAG_AUTOMATIC_COMPLETION = Option("tag.automatic-completion", boolean, False, "create missed automatic tags")
TAG_TIME_EXPIRE_ENABLED = Option("tag.time-expire-enabled", boolean, True, "drop tags by age")
TAG_BATCH_CUSTOMIZED_NAME = Option("tag.batch.customized-name", text, None, "name of the tag of a batch write")
TAG_CREATE_SUCCESS_FILE = Option("tag.create-success-file", boolean, False, "create a success file for every tag")
TAG_CALLBACKS = Option(
    "tag.callbacks",
    comma_list,
    NOTHING,
    "classes that other engines call after they create tags",
    mark=without_effect("callbacks are Java classes"),
)
SINK_WATERMARK_TIME_ZONE = Option("sink.watermark-time-zone", text, "UTC", "time zone of watermarks")

VISIBILITY_CALLBACK_ENABLED = Option(
    "visibility-callback.enabled",
    boolean,
    False,
    "a commit returns when its data is visible",
    mark=_NO_VISIBILITY_CHECK,
)
VISIBILITY_CALLBACK_TIMEOUT = Option(
    "visibility-callback.timeout",
    duration,
    duration("30 min"),
    "maximum time that a commit waits for visibility",
    mark=_NO_VISIBILITY_CHECK,
)
VISIBILITY_CALLBACK_CHECK_INTERVAL = Option(
    "visibility-callback.check-interval",
    duration,
    duration("10 s"),
    "interval between checks for visibility",
    mark=_NO_VISIBILITY_CHECK,
)
