"""Options about buckets and partitions."""

from paimon_core.options.option import Option, not_yet, refused, without_effect
from paimon_core.options.parse import (
    NOTHING,
    boolean,
    comma_list,
    duration,
    enum,
    integer,
    long,
    memory_size,
    number,
    text,
)

_FIXED_NUMBER = not_yet("postpone.default-bucket-num is the number of buckets")

BUCKET = Option("bucket", integer, -1, "buckets of a partition; -1: dynamic or none, -2: postponed")
POSTPONED = -2
"""The value of ``bucket`` for tables that route rows later; also the bucket in which rows wait."""
BUCKET_KEY = Option("bucket-key", comma_list, NOTHING, "columns hashed to a bucket; the primary key by default")
BUCKET_FUNCTION_TYPE = Option(
    "bucket-function.type", enum("default", "mod", "hive"), "default", "how the bucket key becomes a bucket"
)
BUCKET_APPEND_ORDERED = Option(
    "bucket-append-ordered",
    boolean,
    True,
    "buckets of an append table preserve the order of writes",
    mark=without_effect("the rows of a bucket are always in the order of writes"),
)

DYNAMIC_BUCKET_TARGET_ROW_NUM = Option("dynamic-bucket.target-row-num", long, 2_000_000, "rows of a dynamic bucket")
DYNAMIC_BUCKET_INITIAL_BUCKETS = Option(
    "dynamic-bucket.initial-buckets", number(1), None, "number of assigners among which keys are divided"
)
DYNAMIC_BUCKET_MAX_BUCKETS = Option("dynamic-bucket.max-buckets", integer, -1, "most dynamic buckets of a partition")
DYNAMIC_BUCKET_ASSIGNER_PARALLELISM = Option(
    "dynamic-bucket.assigner-parallelism",
    number(1),
    None,
    "tasks that assign dynamic buckets",
    mark=without_effect("there are no tasks that only assign buckets: each writer assigns the buckets of its own rows"),
)
CROSS_PARTITION_UPSERT_INDEX_TTL = Option(
    "cross-partition-upsert.index-ttl", duration, None, "older files are not searched for keys"
)
CROSS_PARTITION_UPSERT_BOOTSTRAP_PARALLELISM = Option(
    "cross-partition-upsert.bootstrap-parallelism",
    number(1),
    10,
    "threads that load the key index",
    mark=without_effect("the index of keys is loaded by the threads that read files"),
)

POSTPONE_BATCH_WRITE_FIXED_BUCKET = Option(
    "postpone.batch-write-fixed-bucket", boolean, True, "a batch write of a postponed table routes rows at once"
)
POSTPONE_BATCH_WRITE_FIXED_BUCKET_MAX_PARALLELISM = Option(
    "postpone.batch-write-fixed-bucket.max-parallelism",
    number(1),
    2048,
    "largest number of buckets of such a write",
    mark=_FIXED_NUMBER,
)
POSTPONE_BATCH_WRITE_FIXED_BUCKET_RESCALE_LOAD_FACTOR = Option(
    "postpone.batch-write-fixed-bucket.rescale-load-factor",
    number(1),
    32,
    "growth at which the number of buckets is computed again",
    mark=_FIXED_NUMBER,
)
POSTPONE_DEFAULT_BUCKET_NUM = Option("postpone.default-bucket-num", number(1), None, "buckets of a new partition")
POSTPONE_TARGET_SIZE_PER_BUCKET = Option(
    "postpone.target-size-per-bucket", memory_size, 1 << 30, "bytes of a bucket", mark=_FIXED_NUMBER
)
POSTPONE_TARGET_ROW_NUM_PER_BUCKET = Option(
    "postpone.target-row-num-per-bucket", long, None, "rows of a bucket", mark=_FIXED_NUMBER
)
POSTPONE_MERGE_ON_READ = Option(
    "postpone.merge-on-read",
    boolean,
    False,
    "postponed rows are visible to reads",
    mark=refused("only rows already in their bucket can be shown"),
)

PARTITION_SINK_STRATEGY = Option(
    "partition.sink-strategy",
    enum("none", "hash", "partition_dynamic"),
    "none",
    "how rows are distributed to tasks if buckets do not decide",
    mark=without_effect("Spark distributes rows to tasks; PaimonTable.clustered configures it"),
)
PARTITION_DEFAULT_NAME = Option(
    "partition.default-name", text, "__DEFAULT_PARTITION__", "directory name of a null or blank partition value"
)
PARTITION_LEGACY_NAME = Option(
    "partition.legacy-name", boolean, True, "partition directories contain plain values (a DATE as its day number)"
)
PARTITION_EXPIRATION_TIME = Option("partition.expiration-time", duration, None, "age at which partitions are dropped")
PARTITION_EXPIRATION_CHECK_INTERVAL = Option(
    "partition.expiration-check-interval",
    duration,
    duration("1 h"),
    "pause between checks for old partitions",
)
PARTITION_EXPIRATION_STRATEGY = Option(
    "partition.expiration-strategy",
    text,
    "values-time",
    "age of a partition: values-time, update-time or a class name",
)
PARTITION_EXPIRATION_MAX_NUM = Option("partition.expiration-max-num", number(1), 100, "partitions dropped in one check")
PARTITION_EXPIRATION_BATCH_SIZE = Option(
    "partition.expiration-batch-size",
    number(1),
    None,
    "partitions dropped in one commit; all by default",
)
PARTITION_TIMESTAMP_PATTERN = Option(
    "partition.timestamp-pattern",
    text,
    None,
    "text of partition columns that gives a time, such as '$dt $hour:00'",
)
PARTITION_TIMESTAMP_FORMATTER = Option("partition.timestamp-formatter", text, None, "format of that text")
PARTITION_TIMESTAMP_FORMAT_STRICT = Option(
    "partition.timestamp-format.strict",
    boolean,
    False,
    "refuse to write partition values that give no time",
    mark=refused("partition values would not be checked"),
)
PARTITION_MARK_DONE_ACTION = Option(
    "partition.mark-done-action",
    comma_list,
    comma_list("success-file"),
    "what happens when a partition is done: success-file, done-partition, mark-event, http-report, custom",
)
PARTITION_END_INPUT_TO_DONE = Option(
    "partition.end-input-to-done", boolean, False, "the partitions that a batch wrote are marked as done"
)
END_INPUT_CHECK_PARTITION_EXPIRE = Option(
    "end-input.check-partition-expire", boolean, False, "check for old partitions when the input ends"
)
