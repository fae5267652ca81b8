"""The change feed of a table in SQL, and of ``spark.read.changes`` and ``spark.readStream.changes``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pyspark.sql.types import StructType

from paimon_core import Table
from paimon_core.engine import CHANGE_FIELDS, FeedRange, FeedSplit, FileStore, check_changes
from paimon_core.errors import UnsupportedError, hide_secrets
from paimon_spark.change_feed import ChangeFeedReader, commits_of
from paimon_spark.feed_request import NET, REQUEST_OPTION, FeedRequest, check_stream
from paimon_spark.sql.bridge.endpoints import ReadEndpoint, ScanEndpoint
from paimon_spark.sql.bridge.handler import handler_of
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.ddl.schema import description
from paimon_spark.sql.reads.pushdown import predicate_of
from paimon_spark.sql.reads.scan_request import ScanRequest
from paimon_spark.sql.reads.source import data_source_scan, source_of_reader, tagged_scan
from paimon_spark.types import spark_schema

_OF_SPARK = {
    *("startingversion", "endingversion", "startingtimestamp", "endingtimestamp"),
    *("startingboundinclusive", "endingboundinclusive", "deduplicationmode", "computeupdates"),
}
"""The options of the change feed, which Spark parses."""


def changelog(jvm: Jvm, name: str, table: Table, request: FeedRequest, address: Mapping[str, str]) -> Any:
    """Return the changes of a table as a ``PaimonChangelog``.

    Args:
        jvm: the JVM of the session.
        name: the full name of the table, for messages.
        table: the table, with the options of the session.
        request: the request for changes.
        address: the options of the file system and of the session, for the Python data source.

    Raises UnsupportedError for a table without a change feed, and for a request that needs a primary key that the
    table lacks.
    """
    check_changes(table.store)
    if not table.schema.primary_keys:
        _check_without_key(name, request)
    schema = replace(table.schema, fields=(*table.schema.fields, *CHANGE_FIELDS))
    keys = json.dumps(table.schema.primary_keys)
    text = description(name, schema, table.path, ("BATCH_READ", "MICRO_BATCH_READ"), computed=False)
    handler = ChangelogHandler(jvm, table, request, address)
    return jvm.connector_class("PaimonChangelog")(text, keys, handler_of(jvm, handler))


def _check_without_key(name: str, request: FeedRequest) -> None:
    """Raise UnsupportedError for a request that needs a primary key."""
    if request.mode == NET:
        raise UnsupportedError(
            f"the net changes of {name} need a primary key, which says which changes are of one row: use "
            "deduplicationMode = 'dropCarryovers'"
        )
    if request.updates:
        raise UnsupportedError(
            f"the changes of {name} do not show which deletes and inserts are updates, because it has no primary "
            "key: leave out computeUpdates"
        )


@dataclass(frozen=True)
class ChangelogHandler(ReadEndpoint):
    """The reads of the changes of a table, for ``PaimonScanBuilder.java``."""

    jvm: Jvm
    table: Table
    request: FeedRequest
    address: Mapping[str, str]

    @cached_property
    def store(self) -> FileStore:
        """The table with timestamps in microseconds, as in Spark."""
        return self.table.store.in_microseconds()

    @cached_property
    def commits(self) -> FeedRange:
        """The commits of a batch. Every scan of one query has the same commits."""
        return commits_of(self.request, self.store)

    @cached_property
    def whole(self) -> StructType:
        """All columns that Spark sees."""
        return spark_schema((*self.store.schema.fields, *CHANGE_FIELDS))

    def decided_filters(self, trees: str) -> str:
        """Return '0' for each filter, so that Spark evaluates all filters again."""
        return "0" * len(json.loads(trees))

    def aggregate(self, trees: str, aggregation: str, options: str, settings: str) -> str | None:
        """Return `None`: Spark computes every aggregation."""
        return None

    def scan(self, required: str | None, trees: str, limit: int, order: str | None, options: str, settings: str) -> Any:
        """Return the handler of a scan with the columns of the query, as ``Tagged.java``; structs are read whole."""
        other = next((key for key in json.loads(options) if key.lower() not in _OF_SPARK), None)
        if other is not None:
            raise UnsupportedError(
                f"option {other!r} is not possible for a read of changes: leave it out, or read the changes with "
                "paimon_incremental_query or from $audit_log"
            )
        names = self.whole.names if required is None else StructType.fromJson(json.loads(required)).names
        columns = StructType([self.whole[name] for name in names or [CHANGE_FIELDS[0].name]])
        predicate = predicate_of(json.loads(trees), self.store.schema)  # without filters on columns of the feed
        handler = ChangelogScanHandler(self.jvm, self, ScanRequest(columns, predicate))
        return tagged_scan(self.jvm, handler, handler.description())

    def source_options(self) -> dict[str, str]:
        """Return the options with which the Python data source reads the changes."""
        location = replace(self.table.location, branch=None)
        table = {"path": str(location), "branch": self.store.branch}
        return {**self.address, **table, REQUEST_OPTION: self.request.to_text()}


@dataclass(frozen=True)
class ChangelogScanHandler(ScanEndpoint):
    """The handler of a scan of changes, for ``PaimonScan.java``."""

    jvm: Jvm
    changes: ChangelogHandler
    request: ScanRequest

    @cached_property
    def _reader(self) -> ChangeFeedReader:
        changes, request = self.changes, self.request
        return ChangeFeedReader(changes.store, changes.request, request.columns, request.predicate, changes.commits)

    @cached_property
    def _splits(self) -> list[FeedSplit]:
        return self._reader.splits()

    def description(self) -> str:
        """Return the properties of the scan that Spark needs for planning, as JSON."""
        changes, columns = self.changes, self.request.columns
        request = changes.request
        bounds = ", ".join(
            f"{key}: {value}" for key, value in json.loads(request.to_text()).items() if value is not None
        )
        filter = "" if self.request.predicate is None else f", filter: {self.request.predicate}"
        shown = hide_secrets(str(changes.table.location))
        text = f"paimon {shown}, changes ({bounds}), columns: {', '.join(columns.names)}{filter}, read by Python"
        return json.dumps({"columns": columns.json(), "whole": changes.whole.json(), "partitions": [], "text": text})

    def parts(self) -> None:
        """Return `None`: the scan is not divided."""

    def explain(self) -> None:
        """Return `None`: the scan has no plan of one snapshot to explain."""

    def source(self, trees: str) -> Any:
        """Return the tasks that read the changes, as ``Tagged.java``."""
        options = self.changes.source_options()
        return source_of_reader(self.jvm, self._reader, self.request, options).to_java(self.jvm)

    def stream_source(self) -> Any:
        """Return the scan of the Python data source, which supports streams."""
        check_stream(self.changes.request, str(self.changes.table.location))
        request = ScanRequest(self.request.columns)
        return data_source_scan(self.jvm, request, self.changes.source_options())

    def statistics(self) -> str:
        """Return the size of the changed files as JSON."""
        size = sum(split.size for split in self._splits)
        return json.dumps({"rows": None, "bytes": size, "columns": {}})
