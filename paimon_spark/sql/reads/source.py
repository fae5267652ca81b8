"""The source of a scan's rows and its kind; ``PaimonScan.java`` creates Spark's scan from them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import StructType

from paimon_spark.char_columns import unmarked
from paimon_spark.datasource import PaimonDataSource
from paimon_spark.internals import analyzed, planned_read
from paimon_spark.reader import PaimonReader
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.reads.bucketed import Bucketing
from paimon_spark.sql.reads.scan_request import ScanRequest

Kind = Literal["native", "rows", "tasks", "source"]
"""Spark's own scan of files, rows of the driver, planned tasks, and the scan of the Python data source."""


@dataclass(frozen=True)
class Source:
    """The source of a scan's rows."""

    kind: Kind
    data: Any
    """By kind: "native": a text, see `scan_text`; "rows": bytes, a stream of Arrow; "tasks": bytes, see
    ``PlannedTasks.java``; "source": a Java Scan."""
    keep_alive: object = None
    """An object that must live as long as Spark keeps the scan."""
    keys: str | None = None
    """The keys of the files or tasks of a bucketed scan as JSON, see `Bucketing`; `None`: it is not bucketed."""

    def to_java(self, jvm: Jvm) -> Any:
        """Return the source as ``Tagged.java``."""
        return jvm.call("Tagged", "withKeys", self.kind, self.data, self.keys)


def tagged(jvm: Jvm, kind: str, value: Any) -> Any:
    """Return a value with its kind, as ``Tagged.java``."""
    return jvm.call("Tagged", "of", kind, value)


def tagged_scan(jvm: Jvm, handler: object, description: str, source: Source | None = None) -> Any:
    """Return a scan as ``Tagged.java``, in a single call of Java.

    Args:
        jvm: the JVM of the session.
        handler: an object that serves `ScanEndpoint`.
        description: the properties of the scan that Spark needs for planning, as JSON.
        source: the source of the scan without runtime filters of a join; `None`: Java asks for it.
    """
    kind, data, keys = (None, None, None) if source is None else (source.kind, source.data, source.keys)
    return jvm.call("Tagged", "scan", handler_of(jvm, handler), description, kind, data, keys)


def source_of_reader(
    jvm: Jvm,
    reader: DataSourceReader,
    request: ScanRequest,
    options: Mapping[str, str],
    bucketing: Bucketing | None = None,
) -> Source:
    """Plan the tasks of a reader in this process, because Spark would start two Python processes to plan them.

    Args:
        jvm: the JVM of the session.
        reader: the reader of the rows.
        request: the request of the query.
        options: the options of the Python data source, for versions of Spark whose tasks cannot be planned here.
        bucketing: the bucketing of the scan; `None`: tasks may read several buckets.
    """
    planned = planned_source(request.columns, reader)
    if planned is not None:
        if bucketing is not None and isinstance(reader, PaimonReader):
            return replace(planned, keys=bucketing.keys_of_tasks(reader.tasks()))
        return planned
    return Source("source", data_source_scan(jvm, request, options))


def planned_source(columns: StructType, reader: DataSourceReader) -> Source | None:
    """Plan the tasks of a reader of these columns in this process; `None`: this version of Spark plans elsewhere."""
    planned = planned_read(PaimonDataSource({}), columns, reader)
    return None if planned is None else Source("tasks", planned)


def data_source_scan(jvm: Jvm, request: ScanRequest, options: Mapping[str, str]) -> Any:
    """Return the Python data source's scan of a request as a Java Scan, which supports streams."""
    spark = jvm.active_session()
    all_options = request.with_filter_texts(options)
    columns = unmarked(request.columns)  # for marked columns, Spark would add a padding projection to the relation
    relation = analyzed(spark.read.format("paimon").options(**all_options).schema(columns).load())
    return jvm.call("FormatTable", "ofPython", relation.table(), relation.options()).build()
