"""The names of the options in ``.option(...)``, their aliases, and the parsers of their values."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from paimon_core import options as core_options
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.options.families import USER_PREFIX
from paimon_core.options.file_index import renamed_setting
from paimon_core.options.parse import MAX_LONG, memory_size, number
from paimon_core.options.per_field import field_option, split_field_option

T = TypeVar("T")
D = TypeVar("D")

READ_OPTIONS = {
    "columns": "the columns to read, separated by commas",
    "filter": "a predicate in SQL; only matching rows are read",
    "limit": "a number of rows: the read may stop once it is certain to return this many",
    "read.arrow-batch-rows": "the most rows of a batch for Spark",
    "read.rows-of-snapshot": "a snapshot id: read its rows with the table's current columns",
    "timezone": "the time zone for times without a zone, such as Europe/Berlin or +01:00",
    "read.min-tasks": "the least number of tasks of a large enough read; default 8",
}
STREAM_OPTIONS = {
    "read.changelog": "true returns rows of every kind, with a first column 'rowkind': +I, -U, +U or -D",
    "read.ignore-deletes": "true skips deletes; for reads without 'rowkind'",
    "read.stream.maxfilespertrigger": "files after which a micro-batch ends",
    "read.stream.maxbytespertrigger": "bytes of files, such as 1g, after which a micro-batch ends",
    "read.stream.maxrowspertrigger": "rows after which a micro-batch ends",
    "read.stream.minrowspertrigger": "the least rows for which a micro-batch waits; with maxTriggerDelayMs",
    "read.stream.maxtriggerdelayms": "the longest wait for these rows, in milliseconds since the last micro-batch",
    "incremental-between": "two snapshots or tags, 'a,b': the changes after the first through the second",
    "incremental-between-timestamp": "two times, 'a,b': the changes between their snapshots; in batches",
    "incremental-to-auto-tag": "an automatic tag: the changes since the previous automatic tag; in batches",
    "startingversion": "as 'scan.snapshot-id', or 'latest'; with 'readChangeFeed' in a batch: the first, inclusive",
    "endingversion": "with 'startingVersion' in a batch: the last snapshot, inclusive",
    "start-snapshot-id": "a snapshot: the changes after it; in batches",
    "end-snapshot-id": "with 'start-snapshot-id': the last snapshot, inclusive",
}
ENDS = ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag")
"""The options that set both ends of a batch read of changes."""
OTHER_ENDS = ("start-snapshot-id", "end-snapshot-id", "endingversion")
"""The options for one end, under the names of other formats."""
WRITE_OPTIONS = {
    "row-kind-column": "a column of the DataFrame with +I, -U, +U, -D; not stored",
    "partitionoverwritemode": "what mode('overwrite') replaces: static (the table) or dynamic (partitions in the data)",
    "overwrite-partition": "the partition mode('overwrite') replaces, 'dt=2026-01-31,hh=8'; other rows are refused",
    "commit.user": "the commit user of this job",
    "write.unchanged-since": "the snapshot from which the rows were read; fails if their buckets have changed since",
    "txnappid": "the name of a writer that numbers its writes; a repeated write is skipped; with 'txnVersion'",
    "txnversion": "the number of this write, greater than all earlier numbers",
    "write.merge-schema": "true appends to the table the columns of the rows that it lacks",
    "write.merge-schema.type-widening": "true also widens a column to a type that holds old and new values",
    "write.merge-schema.explicit-cast": "true also gives a column the type of the rows, even if old values lose a part",
    "write.missing-columns": "an upsert whose rows lack columns: warn (the default), null (no warning) or fail",
    "write.stream.on-doubt": "for a repeated batch that may have been committed already: fail, commit or skip",
}
PROPERTY = "snapshot-property."
"""The prefix of options that become properties of the snapshot."""
LOCATION_OPTIONS = {
    "path": "the directory of the table",
    "warehouse": "the directory of the databases; with 'table'",
    "table": "database.table in the warehouse",
    "branch": "the branch to read or write",
}
_ALIASES = {
    "identifier": "table",
    "snapshot-id": "scan.snapshot-id",
    "tag": "scan.tag-name",
    "as-of-timestamp": "scan.timestamp-millis",
    "timestampasof": "scan.timestamp",
    "versionasof": "scan.version",
    "split-size": "source.split.target-size",
    "file-open-cost": "source.split.open-file-cost",
    "batch-size": "read.batch-size",
    "minpartitions": "read.min-tasks",
    "partition-overwrite-mode": "partitionoverwritemode",
    "primary-keys": "primary-key",
    "partition-keys": "partition",
    "mergeschema": "write.merge-schema",
    "merge-schema": "write.merge-schema",
    "readchangefeed": "read.changelog",
    "readchangedata": "read.changelog",
    "ignoredeletes": "read.ignore-deletes",
    "maxfilespertrigger": "read.stream.maxfilespertrigger",
    "maxbytespertrigger": "read.stream.maxbytespertrigger",
    "maxrowspertrigger": "read.stream.maxrowspertrigger",
    "minrowspertrigger": "read.stream.minrowspertrigger",
    "maxtriggerdelayms": "read.stream.maxtriggerdelayms",
    "streaming-max-files-per-micro-batch": "read.stream.maxfilespertrigger",
    "streaming-max-rows-per-micro-batch": "read.stream.maxrowspertrigger",
    "startingtimestamp": "scan.timestamp",
    "stream-from-timestamp": "scan.timestamp-millis",
}
_OURS = {*READ_OPTIONS, *STREAM_OPTIONS, *WRITE_OPTIONS, *LOCATION_OPTIONS}
STREAMS_ONLY = {*STREAM_OPTIONS, "consumer-id", "consumer.ignore-progress"}
STREAM_STARTS = {"startingtimestamp": "startingTimestamp", "stream-from-timestamp": "stream-from-timestamp"}
"""Aliases of time-travel options that only set the start of a stream of changes."""
_NOT_YET = {
    re.compile(r"endingtimestamp"): "an end of changes by time, other than by 'incremental-between-timestamp',",
    re.compile(r"overwriteschema"): "replacing the schema while writing",
    re.compile(r"replacewhere|replaceusing|replaceon|overwrite-mode"): (
        "overwriting by condition, other than by mode('overwrite') in a classic session,"
    ),
    re.compile(r"usermetadata"): "one text about a snapshot, other than by 'snapshot-property.<name>',",
    re.compile(r"system-table"): "system tables",
}


SPARK_CATALOG = (
    "Spark's own catalog cannot hold a Paimon table: for names in SQL and saveAsTable call paimon_spark.catalog(spark, "
    "'paimon', warehouse='/warehouse'), and name the table paimon.<database>.<table>"
)
"""The advice for a table that a statement puts into Spark's own catalog."""
_PROPERTIES = {"owner", "location", "provider", "external", "is_managed_location"}
"""Properties that Spark gives to tables of its own catalog, and passes as options."""


def canonical(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options under their canonical names. Raise InvalidInputError for an option with two values."""
    named: dict[str, str] = {}
    for key, value in options.items():
        name = _ALIASES.get(key.lower(), key.lower())
        name = name if name in _OURS else core_options.spelled(name)
        if name in named and named[name] != value:
            raise InvalidInputError(f"option {name!r} is given twice, as {named[name]!r} and as {value!r}: keep one")
        named[name] = value
    return named


def check_known(named: Mapping[str, str], ours: Mapping[str, str], where: str) -> None:
    """Raise InvalidInputError for a name that is neither in `ours` nor a table option; suggest the closest name.

    Raises UnsupportedError for an option of another connector that is not supported yet, InvalidInputError for a
    property of a table in Spark's own catalog.
    """
    for key in (key for key in named if key not in ours):
        if key in _PROPERTIES:
            raise InvalidInputError(SPARK_CATALOG)
        for pattern, feature in _NOT_YET.items():
            if pattern.fullmatch(key):
                raise UnsupportedError(f"option {key!r}: {feature} is not supported yet by the format 'paimon' here")
        if not core_options.is_known(key):
            core_options.check_not_newer(key, where)
            close = core_options.nearest(key)
            near = [close] if close else difflib.get_close_matches(key, [*ours, *_ALIASES], n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidInputError(f"unknown option {key!r} in {where}{hint}")


def check_property(key: str) -> None:
    """Raise InvalidInputError for a property of a table whose name is an option of reads and writes."""
    name = _ALIASES.get(key.lower(), key.lower())
    if name in _OURS and not core_options.is_known(key):
        raise InvalidInputError(
            f"property {key!r} has no effect: it is an option of reads and writes. A property of your own may be named "
            f"'{USER_PREFIX}{key}'"
        )


def names_columns(key: str) -> bool:
    """Return True if the name of the option contains the name of a column."""
    return key.startswith(("fields.", "file-index."))


def with_case(named: Mapping[str, str], column_names: Iterable[str]) -> dict[str, str]:
    """Return the options with column names in the case of the table: Spark passes option names in lower case.

    Column names occur in ``fields.<column>.<suffix>`` and ``file-index.<kind>.<column>.<suffix>``.
    """
    spelled = {name.lower(): name for name in column_names}
    return {_with_columns(key, spelled): value for key, value in named.items()}


def _with_columns(key: str, spelled: Mapping[str, str]) -> str:
    parts = split_field_option(key)
    if parts is None:
        return renamed_setting(key, lambda column: spelled.get(column, column))
    columns, option = parts
    return field_option(",".join(spelled.get(column, column) for column in columns), option)


def pop(named: dict[str, str], key: str, parse: Callable[[str], T], default: D) -> T | D:
    """Remove the option `key` and return its value. InvalidInputError names the accepted values.

    Args:
        named: options under their canonical names.
        key: the name of the option as error messages spell it; it is looked up in lower case.
        parse: a parser as in `paimon_core.options.parse`.
        default: the result if the option is not set.
    """
    text = named.pop(key.lower(), None)
    if text is None:
        return default
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidInputError(f"option {key!r} is {text!r}: it {error}") from error


def integer_from(least: int) -> Callable[[str], int]:
    """Return a parser of 64-bit integers that are at least `least`."""
    return number(least, MAX_LONG)


def positive_size(text: str) -> int:
    """Return the bytes of a size such as 10g. Raise ValueError for less than 1 byte."""
    if (size := memory_size(text)) < 1:
        raise ValueError("must be at least 1 byte")
    return size
