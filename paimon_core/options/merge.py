"""Options about merging the rows of one key: merge engines, sequence, changelog, deletion vectors."""

from paimon_core.options.option import Option, refused
from paimon_core.options.parse import NOTHING, boolean, comma_list, duration, enum, memory_size, text

MERGE_ENGINE = Option(
    "merge-engine",
    enum("deduplicate", "partial-update", "aggregation", "first-row"),
    "deduplicate",
    "rule that merges the rows of a key",
)
IGNORE_DELETE = Option(
    "ignore-delete",
    boolean,
    False,
    "drop -D and -U rows",
    ("first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete"),
)
IGNORE_UPDATE_BEFORE = Option("ignore-update-before", boolean, False, "drop -U rows when writing")

SEQUENCE_FIELD = Option("sequence.field", comma_list, NOTHING, "columns that define which row of a key is newest")
SEQUENCE_FIELD_SORT_ORDER = Option(
    "sequence.field.sort-order",
    enum("ascending", "descending"),
    "ascending",
    "order of sequence.field; descending: the row with the smallest value wins",
)
SEQUENCE_SNAPSHOT_ORDERING = Option(
    "sequence.snapshot-ordering",
    boolean,
    False,
    "rows of a later snapshot are newer, regardless of the order of writes",
    mark=refused("tables with it are only read: the order of a new row is unknown before its commit"),
)
ROWKIND_FIELD = Option("rowkind.field", text, None, "text column that holds the row kind: +I, -U, +U or -D")

PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE = Option(
    "partial-update.remove-record-on-delete", boolean, False, "a -D row removes the whole row"
)
PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP = Option(
    "partial-update.remove-record-on-sequence-group",
    comma_list,
    NOTHING,
    "sequence columns: a -D row that is newest in one of their groups removes the whole row",
)
AGGREGATION_REMOVE_RECORD_ON_DELETE = Option(
    "aggregation.remove-record-on-delete", boolean, False, "a -D row removes the whole row"
)
FIELDS_DEFAULT_AGGREGATE_FUNCTION = Option(
    "fields.default-aggregate-function", text, None, "aggregate function of columns that declare no function"
)

CHANGELOG_PRODUCER = Option(
    "changelog-producer", enum("none", "input", "full-compaction", "lookup"), "none", "source of the changelog"
)
CHANGELOG_PRODUCER_ROW_DEDUPLICATE = Option(
    "changelog-producer.row-deduplicate", boolean, False, "omit updates that change no value from the changelog"
)
CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS = Option(
    "changelog-producer.row-deduplicate-ignore-fields",
    comma_list,
    NOTHING,
    "columns whose changes changelog-producer.row-deduplicate ignores",
)
DELETE_FORCE_PRODUCE_CHANGELOG = Option(
    "delete.force-produce-changelog", boolean, False, "DELETE writes -D rows instead of dropping whole partitions"
)
TABLE_READ_SEQUENCE_NUMBER_ENABLED = Option(
    "table-read.sequence-number.enabled",
    boolean,
    False,
    "$audit_log and $binlog show _SEQUENCE_NUMBER",
)

DELETION_VECTORS_ENABLED = Option(
    "deletion-vectors.enabled", boolean, False, "mark deleted rows in deletion vectors instead of rewriting files"
)
DELETION_VECTORS_MODIFIABLE = Option(
    "deletion-vectors.modifiable", boolean, False, "deletion-vectors.enabled may change"
)
DELETION_VECTORS_BITMAP64 = Option("deletion-vectors.bitmap64", boolean, False, "use 64-bit deletion vectors")
DELETION_VECTORS_MERGE_ON_READ = Option(
    "deletion-vectors.merge-on-read", boolean, False, "batch reads also merge the rows of level 0"
)
DELETION_VECTOR_INDEX_FILE_TARGET_SIZE = Option(
    "deletion-vector.index-file.target-size", memory_size, 2 << 20, "target size of a file with deletion vectors"
)

RECORD_LEVEL_EXPIRE_TIME = Option("record-level.expire-time", duration, None, "age at which rows are dropped")
RECORD_LEVEL_TIME_FIELD = Option(
    "record-level.time-field", text, None, "column with the time of a row, for record-level.expire-time"
)
