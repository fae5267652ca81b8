"""The scans and writes of one table of a catalog."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import UnsupportedError
from paimon_core.schema.table_schema import TableSchema
from paimon_core.table import Table
from paimon_spark.clustered import clustered
from paimon_spark.sql.jvm import Jvm
from paimon_spark.types import spark_schema

_WHEN = {"version": "scan.version", "timestamp": "scan.timestamp-millis"}


@dataclass
class TableFunction:
    """The answers to what Spark asks a table: a method for each question of ``Bridge.java``."""

    jvm: Jvm
    table: Table
    schema: TableSchema
    when: Mapping[str, object]
    catalog: FileSystemCatalog

    def scan(self, columns: Any, filters: Any, limit: int, options: Any) -> Any:
        """Return Spark's scan of the Python data source, narrowed to the columns and filters of the query."""
        spark = self.jvm.active_session()
        whole = spark_schema(self.schema.fields)
        read = StructType.fromJson(json.loads(columns.json())) if columns is not None else whole
        if not read.fields:  # a count: Spark's Python source cannot read rows without columns
            read = StructType(whole.fields[:1])
        given = {**self._options(), **{_WHEN[key]: str(value) for key, value in self.when.items()}}
        given |= dict(options.asCaseSensitiveMap())
        if limit >= 0:
            given["limit"] = str(limit)
        frame = spark.read.format("paimon").options(**given).schema(read).load()
        relation = frame._jdf.queryExecution().analyzed()
        builder = relation.table().newScanBuilder(relation.options())
        if len(filters) and self.jvm.pushes_filters(spark):
            builder.pushFilters(filters)
        return builder.build()

    def check_write(self, mode: str, filters: Any, options: Any) -> None:
        """Raise UnsupportedError for rows to replace that are no partition."""
        self._replaced(mode, filters)

    def insert(self, rows: Any, mode: str, filters: Any, options: Any) -> None:
        """Write the rows of a DataFrame in one commit."""
        frame = self.jvm.frame(rows)
        given = {**self._options(), **dict(options.asCaseSensitiveMap()), **self._replaced(mode, filters)}
        shuffled: DataFrame = frame.transform(clustered(**given))
        shuffled.write.format("paimon").mode("append" if mode == "append" else "overwrite").options(**given).save()

    def _options(self) -> dict[str, str]:
        storage = {str(key): str(value) for key, value in self.catalog.storage_options.items()}
        return {**storage, "path": self.table.path}

    def _replaced(self, mode: str, filters: Any) -> dict[str, str]:
        """Return the options of an overwrite: of the whole table, a partition, or the partitions in the data."""
        if mode == "dynamic":
            return {"partitionOverwriteMode": "dynamic"}
        spec = {}
        for condition in filters:
            kind = condition.getClass().getSimpleName()
            if kind == "AlwaysTrue":
                continue
            if kind not in ("EqualTo", "EqualNullSafe") or condition.attribute() not in self.schema.partition_keys:
                raise UnsupportedError(f"an overwrite of the rows where {condition} is not possible: name a partition")
            spec[condition.attribute()] = condition.value()
        return {"overwrite-partition": ",".join(f"{key}={value}" for key, value in spec.items())} if spec else {}
