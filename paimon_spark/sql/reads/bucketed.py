"""The bucketing of a scan: with it, Spark joins tables that are bucketed alike without a shuffle.

Spark asks for it if ``spark.sql.sources.v2.bucketing.enabled`` is true. A bucketed scan has the partitioning
(partition columns, ``bucket(n, key)``), and each task of it has the rows of one bucket, see ``BucketedTasks.java``.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from paimon_core import DataSplit, TableSchema
from paimon_core.engine import FileStore
from paimon_core.options.bucket import BUCKET_FUNCTION_TYPE
from paimon_core.types.datatype import AtomicType, DataField
from paimon_spark.sql.reads.native import is_same_field, uri_of

SETTING = "spark.sql.sources.v2.bucketing.enabled"
"""Spark's setting that turns joins without a shuffle on."""
_INTEGERS = {"TINYINT", "SMALLINT", "INT", "BIGINT"}
_KEYS = {*_INTEGERS, "DATE", "VARCHAR", "DECIMAL"}
"""The types whose values have the same hash if they are equal in Spark. Others do not: 0.0 and -0.0, and times that
differ by less than a microsecond."""
_PARTITIONS = {*_INTEGERS, "DATE", "VARCHAR", "BOOLEAN"}


@dataclass(frozen=True)
class Bucketing:
    """The partitioning of a scan by partition columns and buckets."""

    store: FileStore
    column: str
    """The bucket key."""
    buckets: int
    """The number of buckets of each partition."""

    def description(self, splits: Sequence[DataSplit]) -> dict[str, Any]:
        """Return the partitioning and the number of its keys, for ``BucketedTasks.java``."""
        return {
            "partitions": list(self.store.schema.partition_keys),
            "column": self.column,
            "buckets": self.buckets,
            "keys": len({split.bucket_ref for split in splits}),
        }

    def keys_of_files(self, splits: Sequence[DataSplit]) -> str:
        """Return the key of each file by the URI of the file, as JSON."""
        files = ((uri_of(self.store.file_path(s.bucket_ref, file)), s) for s in splits for file in s.files)
        return json.dumps({uri: self._key(split) for uri, split in files})

    def keys_of_tasks(self, tasks: Sequence[Sequence[DataSplit]]) -> str:
        """Return the key of each task as JSON; the splits of a task are of one bucket."""
        return json.dumps([self._key(splits[0]) for splits in tasks])

    def _key(self, split: DataSplit) -> list[str | None]:
        """Return the values of the partition and the bucket of a split, as ``PaimonLocalScan.java`` parses them."""
        values = self.store.partition_values(split.partition)
        return [*(None if value is None else str(value) for value in values), str(split.bucket)]


def bucketing_of(store: FileStore, splits: Sequence[DataSplit], columns: Collection[str]) -> Bucketing | None:
    """Return the bucketing of a scan; `None`: equal keys may be in different buckets, or the query lacks a key column.

    The number of buckets of a partition differs from the table's if the table was rescaled since.

    Args:
        store: the table.
        splits: the splits of the scan.
        columns: the columns of the query.
    """
    schema = store.schema
    if schema.bucket <= 0 or len(schema.bucket_keys) != 1 or not _is_default(schema):
        return None
    (key,) = schema.bucket_fields
    if not {key.name, *schema.partition_keys}.issubset(columns) or not _is_one_of(key, _KEYS):
        return None
    if not all(_is_one_of(field, _PARTITIONS) for field in schema.partition_fields):
        return None
    if any(split.total_buckets != schema.bucket or split.bucket < 0 for split in splits):
        return None
    ids = {file.schema_id for split in splits for file in split.files}
    if not all(_is_bucketed_alike(store.schemas.get(number), key) for number in ids - {schema.id}):
        return None
    return Bucketing(store, key.name, schema.bucket)


def _is_bucketed_alike(schema: TableSchema, key: DataField) -> bool:
    """Return True if the files of an older schema are bucketed by the same key."""
    keys = schema.bucket_fields
    return len(keys) == 1 and is_same_field(keys[0], key) and _is_default(schema)


def _is_default(schema: TableSchema) -> bool:
    return schema.options.value(BUCKET_FUNCTION_TYPE) == "default"


def _is_one_of(field: DataField, roots: Collection[str]) -> bool:
    return isinstance(field.type, AtomicType) and field.type.root in roots
