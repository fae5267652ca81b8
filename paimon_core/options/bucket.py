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

BUCKET = Option(
    "bucket", integer, -1, "number of buckets per partition; -1: dynamic buckets or no buckets, -2: postponed buckets"
)
POSTPONED = -2
"""The value of ``bucket`` for tables that route rows later; also the bucket in which rows wait."""
BUCKET_KEY = Option(
    "bucket-key", comma_list, NOTHING, "columns whose hash selects the bucket; by default the primary key"
)
BUCKET_FUNCTION_TYPE = Option(
    "bucket-function.type", enum("default", "mod", "hive"), "default", "function from the bucket key to the bucket"
)
BUCKET_APPEND_ORDERED = Option(
    "bucket-append-ordered",
    boolean,
    True,
    "keep the rows of an append table's bucket in the order of writes",
    mark=without_effect("the rows of a bucket are always in the order of writes"),
)

DYNAMIC_BUCKET_TARGET_ROW_NUM = Option(
    "dynamic-bucket.target-row-num", long, 2_000_000, "target number of rows per dynamic bucket"
)
DYNAMIC_BUCKET_INITIAL_BUCKETS = Option(
    "dynamic-bucket.initial-buckets", number(1), None, "number of bucket assigners that share the keys"
)
DYNAMIC_BUCKET_MAX_BUCKETS = Option(
    "dynamic-bucket.max-buckets", integer, -1, "maximum number of dynamic buckets per partition; -1: unlimited"
)
DYNAMIC_BUCKET_ASSIGNER_PARALLELISM = Option(
    "dynamic-bucket.assigner-parallelism",
    number(1),
    None,
    "number of tasks that assign dynamic buckets",
    mark=without_effect("there are no tasks that only assign buckets: each writer assigns the buckets of its own rows"),
)
CROSS_PARTITION_UPSERT_INDEX_TTL = Option(
    "cross-partition-upsert.index-ttl", duration, None, "age above which files are not searched for keys"
)
CROSS_PARTITION_UPSERT_BOOTSTRAP_PARALLELISM = Option(
    "cross-partition-upsert.bootstrap-parallelism",
    number(1),
    10,
    "number of threads that load the key index",
    mark=without_effect("the index of keys is loaded by the threads that read files"),
)

POSTPONE_BATCH_WRITE_FIXED_BUCKET = Option(
    "postpone.batch-write-fixed-bucket",
    boolean,
    True,
    "batch writes to a postponed table route rows to their buckets immediately",
)
POSTPONE_BATCH_WRITE_FIXED_BUCKET_MAX_PARALLELISM = Option(
    "postpone.batch-write-fixed-bucket.max-parallelism",
    number(1),
    2048,
    "maximum number of buckets that a batch write to a postponed table creates",
    mark=_FIXED_NUMBER,
)
POSTPONE_BATCH_WRITE_FIXED_BUCKET_RESCALE_LOAD_FACTOR = Option(
    "postpone.batch-write-fixed-bucket.rescale-load-factor",
    number(1),
    32,
    "growth factor at which the number of buckets is computed again",
    mark=_FIXED_NUMBER,
)
POSTPONE_DEFAULT_BUCKET_NUM = Option(
    "postpone.default-bucket-num", number(1), None, "number of buckets of a new partition"
)
POSTPONE_TARGET_SIZE_PER_BUCKET = Option(
    "postpone.target-size-per-bucket", memory_size, 1 << 30, "target size of a bucket", mark=_FIXED_NUMBER
)
POSTPONE_TARGET_ROW_NUM_PER_BUCKET = Option(
    "postpone.target-row-num-per-bucket", long, None, "target number of rows of a bucket", mark=_FIXED_NUMBER
)
POSTPONE_MERGE_ON_READ = Option(
    "postpone.merge-on-read",
    boolean,
    False,
    "reads include postponed rows",
    mark=refused("only rows that are already in their bucket can be read"),
)

PARTITION_SINK_STRATEGY = Option(
    "partition.sink-strategy",
    enum("none", "hash", "partition_dynamic"),
    "none",
    "distribution of rows to tasks in tables without buckets",
    mark=without_effect("Spark distributes rows to tasks; PaimonTable.clustered configures it"),
)
PARTITION_DEFAULT_NAME = Option(
    "partition.default-name", text, "__DEFAULT_PARTITION__", "directory name of a null or blank partition value"
)
PARTITION_LEGACY_NAME = Option(
    "partition.legacy-name", boolean, True, "partition directories are named by plain values (a DATE by its day number)"
)
PARTITION_EXPIRATION_TIME = Option("partition.expiration-time", duration, None, "age at which partitions are dropped")
PARTITION_EXPIRATION_CHECK_INTERVAL = Option(
    "partition.expiration-check-interval",
    duration,
    duration("1 h"),
    "interval between checks for partitions to drop",
)
PARTITION_EXPIRATION_STRATEGY = Option(
    "partition.expiration-strategy",
    text,
    "values-time",
    "definition of a partition's age: values-time, update-time or a class name",
)
PARTITION_EXPIRATION_MAX_NUM = Option(
    "partition.expiration-max-num", number(1), 100, "maximum number of partitions dropped in one check"
)
PARTITION_EXPIRATION_BATCH_SIZE = Option(
    "partition.expiration-batch-size",
    number(1),
    None,
    "maximum number of partitions dropped in one commit; by default all",
)
PARTITION_TIMESTAMP_PATTERN = Option(
    "partition.timestamp-pattern",
    text,
    None,
    "pattern that turns partition columns into a time, such as '$dt $hour:00'",
)
PARTITION_TIMESTAMP_FORMATTER = Option(
    "partition.timestamp-formatter", text, None, "format of the time in partition.timestamp-pattern"
)
PARTITION_TIMESTAMP_FORMAT_STRICT = Option(
    "partition.timestamp-format.strict",
    boolean,
    False,
    "refuse to write partition values that are not a time",
    mark=refused("partition values would not be checked"),
)
PARTITION_MARK_DONE_ACTION = Option(
    "partition.mark-done-action",
    comma_list,
    comma_list("success-file"),
    "actions when a partition is done: success-file, done-partition, mark-event, http-report, custom",
)
PARTITION_END_INPUT_TO_DONE = Option(
    "partition.end-input-to-done", boolean, False, "mark the partitions of a batch write as done"
)
END_INPUT_CHECK_PARTITION_EXPIRE = Option(
    "end-input.check-partition-expire", boolean, False, "check for partitions to drop when the input ends"
)
