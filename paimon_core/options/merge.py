"""Options about merging the rows of one key: merge engines, sequence, changelog, deletion vectors."""

from paimon_core.options.option import Option, refused
from paimon_core.options.parse import NOTHING, boolean, comma_list, duration, enum, memory_size, text

MERGE_ENGINE = Option(
    "merge-engine",
    enum("deduplicate", "partial-update", "aggregation", "first-row"),
    "deduplicate",
    "how rows of one key are merged",
)
IGNORE_DELETE = Option(
    "ignore-delete",
    boolean,
    False,
    "drop -D and -U rows",
    ("first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete"),
)
IGNORE_UPDATE_BEFORE = Option("ignore-update-before", boolean, False, "drop -U rows when writing")

SEQUENCE_FIELD = Option("sequence.field", comma_list, NOTHING, "columns that say which row of a key is newest")
SEQUENCE_FIELD_SORT_ORDER = Option(
    "sequence.field.sort-order", enum("ascending", "descending"), "ascending", "descending: the smallest wins"
)
SEQUENCE_SNAPSHOT_ORDERING = Option(
    "sequence.snapshot-ordering",
    boolean,
    False,
    "rows of a later snapshot are newer, whatever the order of writes",
    mark=refused("rows are ordered by the snapshot that added them"),
)
ROWKIND_FIELD = Option("rowkind.field", text, None, "text column that holds the row kind: +I, -U, +U or -D")

PARTIAL_UPDATE_REMOVE_RECORD_ON_DELETE = Option(
    "partial-update.remove-record-on-delete", boolean, False, "a -D row removes the whole row"
)
PARTIAL_UPDATE_REMOVE_RECORD_ON_SEQUENCE_GROUP = Option(
    "partial-update.remove-record-on-sequence-group",
    comma_list,
    NOTHING,
    "a -D row removes the whole row if it is newest in the sequence group of one of these columns",
)
AGGREGATION_REMOVE_RECORD_ON_DELETE = Option(
    "aggregation.remove-record-on-delete", boolean, False, "a -D row removes the whole row"
)
FIELDS_DEFAULT_AGGREGATE_FUNCTION = Option(
    "fields.default-aggregate-function", text, None, "aggregate function of columns without their own"
)

CHANGELOG_PRODUCER = Option(
    "changelog-producer", enum("none", "input", "full-compaction", "lookup"), "none", "source of the changelog"
)
CHANGELOG_PRODUCER_ROW_DEDUPLICATE = Option(
    "changelog-producer.row-deduplicate", boolean, False, "omit updates without a change"
)
CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS = Option(
    "changelog-producer.row-deduplicate-ignore-fields", comma_list, NOTHING, "columns that do not count as a change"
)
DELETE_FORCE_PRODUCE_CHANGELOG = Option(
    "delete.force-produce-changelog", boolean, False, "DELETE writes -D rows instead of dropping partitions"
)
TABLE_READ_SEQUENCE_NUMBER_ENABLED = Option(
    "table-read.sequence-number.enabled",
    boolean,
    False,
    "$audit_log and $binlog show _SEQUENCE_NUMBER",
)

DELETION_VECTORS_ENABLED = Option("deletion-vectors.enabled", boolean, False, "deleted rows are marked, not rewritten")
DELETION_VECTORS_MODIFIABLE = Option(
    "deletion-vectors.modifiable", boolean, False, "deletion-vectors.enabled may change"
)
DELETION_VECTORS_BITMAP64 = Option("deletion-vectors.bitmap64", boolean, False, "deletion vectors of 64 bits")
DELETION_VECTORS_MERGE_ON_READ = Option(
    "deletion-vectors.merge-on-read", boolean, False, "batch reads show level 0 too, merged"
)
DELETION_VECTOR_INDEX_FILE_TARGET_SIZE = Option(
    "deletion-vector.index-file.target-size", memory_size, 2 << 20, "bytes of a file of deletion vectors"
)

RECORD_LEVEL_EXPIRE_TIME = Option("record-level.expire-time", duration, None, "age at which rows are dropped")
RECORD_LEVEL_TIME_FIELD = Option("record-level.time-field", text, None, "column that holds the time of a row")
