"""Options about the kind of a table, and the location and encoding of its files."""

from paimon_core.options.option import Option, not_yet, refused, without_effect
from paimon_core.options.parse import (
    MAX_LONG,
    NO_LEVELS,
    NO_WEIGHTS,
    NOTHING,
    boolean,
    comma_list,
    enum,
    fraction,
    level_map,
    long,
    lower_text,
    memory_size,
    name_part,
    number,
    path_within,
    text,
)
from paimon_core.options.parse import weights as weight_list

_INSIDE_ONLY = not_yet("files are written below the table only")
_NO_LONGER_IN_JAVA = refused("tables with it are only read: newer releases of the Java engine no longer have it")
_NO_METASTORE = without_effect("tags are not registered as partitions of a metastore")

PATH = Option("path", text, None, "directory of the table; set by the catalog, never altered")
BRANCH = Option("branch", text, "main", "branch on which the table is opened")
TYPE = Option(
    "type",
    enum("table", "format-table", "materialized-table", "object-table", "lance-table", "iceberg-table"),
    "table",
    "kind of the table; this engine supports only 'table'",
)
AUTO_CREATE = Option(
    "auto-create",
    boolean,
    False,
    "create the storage on first access; not with a catalog",
    mark=refused("a table is created before it is used"),
)
PRIMARY_KEY = Option(
    "primary-key", comma_list, NOTHING, "primary key columns, if not declared in another way when the table is created"
)
PARTITION = Option(
    "partition", comma_list, NOTHING, "partition columns, if not declared in another way when the table is created"
)
PRIMARY_KEY_NULLABLE = Option(
    "primary-key.nullable",
    boolean,
    False,
    "key columns may be null, and null equals null",
    mark=refused("tables with it are only read: new keys must be NOT NULL"),
)

DATA_FILE_PATH_DIRECTORY = Option(
    "data-file.path-directory", path_within, None, "sub-directory of the table for data files"
)
DATA_FILE_PREFIX = Option("data-file.prefix", name_part, "data-", "prefix of data file names")
CHANGELOG_FILE_PREFIX = Option("changelog-file.prefix", name_part, "changelog-", "prefix of changelog file names")
DATA_FILE_THIN_MODE = Option("data-file.thin-mode", boolean, False, "do not store key columns a second time")
DATA_FILE_EXTERNAL_PATHS = Option(
    "data-file.external-paths",
    comma_list,
    NOTHING,
    "directories outside the table for new data files",
    mark=refused("files are written below the table only"),
)
DATA_FILE_EXTERNAL_PATHS_ALLOWED = Option(
    "data-file.external-paths.allowed",
    comma_list,
    NOTHING,
    "directories outside the table whose files may be read and deleted; never stored with a table",
)
BLOB_EXTERNAL_PATHS_ALLOWED = Option(
    "blob.external-paths.allowed",
    comma_list,
    NOTHING,
    "directories outside the table and the warehouse in which blobs that descriptors describe may be read; never "
    "stored with a table",
)
OF_OPENING = (DATA_FILE_EXTERNAL_PATHS_ALLOWED, BLOB_EXTERNAL_PATHS_ALLOWED)
"""The options of a call or a catalog that allow paths: a table never stores them."""
DATA_FILE_EXTERNAL_PATHS_STRATEGY = Option(
    "data-file.external-paths.strategy",
    enum("none", "specific-fs", "round-robin", "entropy-inject", "weight-robin"),
    "none",
    "strategy for choosing an external root",
    mark=_INSIDE_ONLY,
)
DATA_FILE_EXTERNAL_PATHS_SPECIFIC_FS = Option(
    "data-file.external-paths.specific-fs",
    text,
    None,
    "scheme of the external root for strategy specific-fs",
    mark=_INSIDE_ONLY,
)
DATA_FILE_EXTERNAL_PATHS_WEIGHTS = Option(
    "data-file.external-paths.weights",
    weight_list,
    NO_WEIGHTS,
    "weights of the external roots, for weight-robin",
    mark=_INSIDE_ONLY,
)
PLACES_OF_NEW_FILES = (
    DATA_FILE_EXTERNAL_PATHS,
    DATA_FILE_EXTERNAL_PATHS_STRATEGY,
    DATA_FILE_EXTERNAL_PATHS_SPECIFIC_FS,
    DATA_FILE_EXTERNAL_PATHS_WEIGHTS,
)
"""Options that send new files to directories of one table, so a copy of the table does not take them over."""
INDEX_FILE_IN_DATA_FILE_DIR = Option(
    "index-file-in-data-file-dir", boolean, False, "index files are stored next to the data files"
)

FILE_FORMAT = Option("file.format", lower_text, "parquet", "format of data files: parquet, orc, avro ...")
FILE_FORMAT_PER_LEVEL = Option(
    "file.format.per.level", level_map, NO_LEVELS, "file format by level, such as '0:avro,3:parquet'"
)
FILE_COMPRESSION = Option("file.compression", text, "zstd", "codec of data files")
FILE_COMPRESSION_ZSTD_LEVEL = Option(
    "file.compression.zstd-level", number(), 1, "level of zstd in data files and manifests"
)
FILE_COMPRESSION_PER_LEVEL = Option("file.compression.per.level", level_map, NO_LEVELS, "codec of data files by level")
FILE_SUFFIX_INCLUDE_COMPRESSION = Option(
    "file.suffix.include.compression", boolean, False, "include the codec in the names of data files"
)
FILE_BLOCK_SIZE = Option(
    "file.block-size", memory_size, None, "size of a Parquet row group (default: 128 mb) or an ORC stripe (64 mb)"
)
CHANGELOG_FILE_FORMAT = Option(
    "changelog-file.format", lower_text, None, "format of changelog files; by default file.format"
)
CHANGELOG_FILE_COMPRESSION = Option(
    "changelog-file.compression", text, None, "codec of changelog files; by default file.compression"
)
CHANGELOG_FILE_STATS_MODE = Option(
    "changelog-file.stats-mode", text, None, "statistics of changelog files; by default metadata.stats-mode"
)

TARGET_FILE_SIZE = Option(
    "target-file-size",
    memory_size,
    None,
    "size at which a new file begins; by default 128 mb with a primary key, else 256 mb",
)
BLOB_TARGET_FILE_SIZE = Option(
    "blob.target-file-size", memory_size, None, "size at which a new blob file begins; by default target-file-size"
)
BLOB_SPLIT_BY_FILE_SIZE = Option(
    "blob.split-by-file-size",
    boolean,
    None,
    "count the size of blob files when files are packed into splits",
    mark=not_yet("splits are packed without regard to blob files"),
)
TARGET_FILE_ROW_NUM = Option("target-file-row-num", long, MAX_LONG, "number of rows at which a new file begins")
ASYNC_FILE_WRITE = Option(
    "async-file-write",
    boolean,
    True,
    "write files in the background",
    mark=without_effect("other threads always encode the files"),
)
FILE_OPERATION_THREAD_NUM = Option(
    "file-operation.thread-num",
    number(1),
    None,
    "number of threads that list and delete files in expiry and orphan removal; by default 4 per processor",
    ("delete-file.thread-num",),
)

METADATA_STATS_MODE = Option(
    "metadata.stats-mode", text, "truncate(16)", "statistics of columns: none, counts, truncate(n) or full"
)
METADATA_STATS_MODE_PER_LEVEL = Option(
    "metadata.stats-mode.per.level", level_map, NO_LEVELS, "statistics of columns by level"
)
METADATA_STATS_KEEP_FIRST_N_COLUMNS = Option(
    "metadata.stats-keep-first-n-columns", number(-1), -1, "only the first n columns get statistics; -1: all"
)
METADATA_STATS_DENSE_STORE = Option(
    "metadata.stats-dense-store", boolean, True, "omit columns without statistics from the metadata"
)
FILE_INDEX_IN_MANIFEST_THRESHOLD = Option(
    "file-index.in-manifest-threshold",
    memory_size,
    500,
    "maximum size of a file index that is embedded in the manifest",
)

ROW_TRACKING_ENABLED = Option("row-tracking.enabled", boolean, False, "assign permanent ids to rows")
ROW_TRACKING_PARTITION_GROUP_ON_COMMIT = Option(
    "row-tracking.partition-group-on-commit", boolean, True, "assign contiguous row ids within a partition"
)
DATA_EVOLUTION_ENABLED = Option(
    "data-evolution.enabled", boolean, False, "store columns in several files, joined by row id"
)

DISABLE_EXPLICIT_TYPE_CASTING = Option(
    "disable-explicit-type-casting", boolean, False, "column types change by implicit casts only"
)
ALTER_COLUMN_NULL_TO_NOT_NULL_DISABLED = Option(
    "alter-column-null-to-not-null.disabled", boolean, True, "a nullable column cannot become NOT NULL"
)
ADD_COLUMN_BEFORE_PARTITION = Option(
    "add-column-before-partition", boolean, False, "new columns go before the first partition column"
)
BLOB_FIELD = Option(
    "blob-field", comma_list, NOTHING, "columns of bytes that become BLOB columns when the table is created"
)
BLOB_DESCRIPTOR_FIELD = Option(
    "blob-descriptor-field",
    comma_list,
    NOTHING,
    "columns of bytes that become BLOB columns when the table is created, and store descriptors: where blobs are",
    ("blob.stored-descriptor-fields",),
)
BLOB_AS_DESCRIPTOR = Option(
    "blob-as-descriptor",
    boolean,
    False,
    "reads return the descriptor of each blob (file, position, length) instead of its bytes; writes are refused",
)
BLOB_EXTERNAL_STORAGE_FIELD = Option(
    "blob-external-storage-field",
    comma_list,
    NOTHING,
    "blob columns whose values are stored outside of the table",
    mark=_NO_LONGER_IN_JAVA,
)
BLOB_EXTERNAL_STORAGE_PATH = Option(
    "blob-external-storage-path",
    text,
    None,
    "directory of the values of blob-external-storage-field",
    mark=_NO_LONGER_IN_JAVA,
)
BLOB_VIEW_FIELD = Option(
    "blob-view-field",
    comma_list,
    NOTHING,
    "columns of bytes that become BLOB columns when the table is created, and store views: the table, column and row "
    "of blobs",
)
VECTOR_FIELD = Option(
    "vector-field",
    comma_list,
    NOTHING,
    "columns stored as vectors",
    mark=refused("these columns are stored in separate files"),
)
VARIANT_SHREDDINGSCHEMA = Option(
    "variant.shreddingSchema",
    text,
    None,
    "columns of VARIANT to shred, and the types to shred them by: a ROW as JSON",
    ("parquet.variant.shreddingSchema",),
)
VARIANT_INFERSHREDDINGSCHEMA = Option(
    "variant.inferShreddingSchema", boolean, False, "shred variants by types that the first rows of each file have"
)
VARIANT_SHREDDING_INFERENCEMODE = Option(
    "variant.shredding.inferenceMode",
    enum("per-file", "adaptive"),
    "per-file",
    "`adaptive`: what the file before showed, if the same writer wrote it, counts for the types of a file, too",
)
VARIANT_SHREDDING_ADAPTIVE_MAXINFERBUFFERROW = Option(
    "variant.shredding.adaptive.maxInferBufferRow",
    number(1),
    256,
    "most rows of a file from which the types are inferred, with `adaptive`, after the first file",
)
VARIANT_SHREDDING_ADAPTIVE_RETENTIONRATIO = Option(
    "variant.shredding.adaptive.retentionRatio",
    fraction,
    0.05,
    "least share of the rows that have a field that was shredded in the file before, with `adaptive`",
)
VARIANT_SHREDDING_MAXINFERBUFFERROW = Option(
    "variant.shredding.maxInferBufferRow", number(1), 4096, "most rows of a file from which the types are inferred"
)
VARIANT_SHREDDING_MAXSCHEMADEPTH = Option(
    "variant.shredding.maxSchemaDepth", number(0), 50, "most levels of objects and arrays that are inferred"
)
VARIANT_SHREDDING_MAXSCHEMAWIDTH = Option(
    "variant.shredding.maxSchemaWidth", number(0), 300, "most stored columns that are inferred"
)
VARIANT_SHREDDING_MINFIELDCARDINALITYRATIO = Option(
    "variant.shredding.minFieldCardinalityRatio", fraction, 0.1, "least share of the rows that have an inferred field"
)
METASTORE_PARTITIONED_TABLE = Option(
    "metastore.partitioned-table",
    boolean,
    False,
    "a Hive catalog registers the partitions of the table in its metastore; "
    "a REST catalog lists the partitions of a format table",
)
METASTORE_TAG_TO_PARTITION = Option(
    "metastore.tag-to-partition",
    text,
    None,
    "partition column under which tags appear as partitions",
    mark=_NO_METASTORE,
)
METASTORE_TAG_TO_PARTITION_PREVIEW = Option(
    "metastore.tag-to-partition.preview",
    enum("none", "process-time", "watermark", "batch"),
    "none",
    "tags appear as partitions before they exist",
    mark=_NO_METASTORE,
)
QUERY_AUTH_ENABLED = Option(
    "query-auth.enabled",
    boolean,
    False,
    "the catalog decides which rows and columns a user may read",
    mark=refused("a server decides which rows and columns may be seen"),
)
