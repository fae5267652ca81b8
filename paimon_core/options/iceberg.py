"""Options for the Iceberg metadata that commits write together with their snapshots."""

from typing import Final

from paimon_core.options.option import Option, without_effect
from paimon_core.options.parse import boolean, enum, lower_text, number, text

_OTHER_CATALOGS: Final = without_effect("only metadata of 'hive-catalog' and 'rest-catalog' use it")

DISABLED: Final = "disabled"
TABLE_LOCATION: Final = "table-location"
HADOOP_CATALOG: Final = "hadoop-catalog"
CATALOG_LOCATION: Final = "catalog-location"

METADATA_ICEBERG_STORAGE = Option(
    "metadata.iceberg.storage",
    enum(DISABLED, TABLE_LOCATION, HADOOP_CATALOG, "hive-catalog", "rest-catalog"),
    DISABLED,
    "write Iceberg metadata with each commit: 'table-location' or 'hadoop-catalog'; others are refused",
)
METADATA_ICEBERG_STORAGE_LOCATION = Option(
    "metadata.iceberg.storage-location",
    enum(TABLE_LOCATION, CATALOG_LOCATION),
    None,
    "directory of the Iceberg metadata, if it differs from the storage: 'table-location' or 'catalog-location'",
)
METADATA_ICEBERG_FORMAT_VERSION = Option(
    "metadata.iceberg.format-version", number(), 2, "version of the Iceberg format; 3 is refused"
)
METADATA_ICEBERG_COMPACTION_MIN_FILE_NUM = Option(
    "metadata.iceberg.compaction.min.file-num", number(1), 10, "fewest small Iceberg manifests that are merged"
)
METADATA_ICEBERG_COMPACTION_MAX_FILE_NUM = Option(
    "metadata.iceberg.compaction.max.file-num", number(1), 50, "number of small Iceberg manifests that triggers a merge"
)
METADATA_ICEBERG_DELETE_AFTER_COMMIT_ENABLED = Option(
    "metadata.iceberg.delete-after-commit.enabled", boolean, True, "delete older versions of the Iceberg metadata"
)
METADATA_ICEBERG_PREVIOUS_VERSIONS_MAX = Option(
    "metadata.iceberg.previous-versions-max", number(0), 0, "older versions of the Iceberg metadata to keep"
)
METADATA_ICEBERG_MANIFEST_COMPRESSION = Option(
    "metadata.iceberg.manifest-compression", lower_text, "snappy", "compression of Iceberg manifests"
)
METADATA_ICEBERG_MANIFEST_LEGACY_VERSION = Option(
    "metadata.iceberg.manifest-legacy-version",
    boolean,
    False,
    "name the fields of Iceberg manifest lists as Iceberg 1.4 does",
)

METADATA_ICEBERG_URI = Option("metadata.iceberg.uri", text, None, "address of a Hive metastore", mark=_OTHER_CATALOGS)
METADATA_ICEBERG_HIVE_CONF_DIR = Option(
    "metadata.iceberg.hive-conf-dir", text, None, "directory of Hive's configuration", mark=_OTHER_CATALOGS
)
METADATA_ICEBERG_HADOOP_CONF_DIR = Option(
    "metadata.iceberg.hadoop-conf-dir", text, None, "directory of Hadoop's configuration", mark=_OTHER_CATALOGS
)
METADATA_ICEBERG_HIVE_CLIENT_CLASS = Option(
    "metadata.iceberg.hive-client-class", text, None, "client class of a Hive metastore", mark=_OTHER_CATALOGS
)
METADATA_ICEBERG_HIVE_SKIP_UPDATE_STATS = Option(
    "metadata.iceberg.hive-skip-update-stats",
    boolean,
    False,
    "do not update statistics in a Hive metastore",
    mark=_OTHER_CATALOGS,
)
METADATA_ICEBERG_GLUE_SKIP_ARCHIVE = Option(
    "metadata.iceberg.glue.skip-archive", boolean, False, "keep no older versions in AWS Glue", mark=_OTHER_CATALOGS
)
METADATA_ICEBERG_DATABASE = Option(
    "metadata.iceberg.database", text, None, "name of the database in the other catalog", mark=_OTHER_CATALOGS
)
METADATA_ICEBERG_TABLE = Option(
    "metadata.iceberg.table", text, None, "name of the table in the other catalog", mark=_OTHER_CATALOGS
)
