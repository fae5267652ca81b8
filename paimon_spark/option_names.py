"""The names of the options in ``.option(...)``, their aliases, and the parsers of their values."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from paimon_core import options as core_options
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.options.file_index import renamed_setting
from paimon_core.options.parse import MAX_LONG, memory_size, number
from paimon_core.options.per_field import field_option, split_field_option

T = TypeVar("T")
D = TypeVar("D")

READ_OPTIONS = {
    "columns": "the columns to read, separated by commas",
    "filter": "a predicate in SQL; only matching rows are read",
    "limit": "a number of rows: the read may stop as soon as it is sure to return this many",
    "read.arrow-batch-rows": "rows of a batch for Spark",
    "read.rows-of-snapshot": "the id of a snapshot: its rows with the columns that the table has now",
    "timezone": "the time zone of times without one, such as Europe/Berlin or +01:00",
    "read.min-tasks": "the least number of tasks of a read that is large enough; default 8",
}
STREAM_OPTIONS = {
    "read.changelog": "rows of every kind, with a first column 'rowkind': +I, -U, +U or -D",
    "read.ignore-deletes": "true leaves deletes out; for reads without 'rowkind'",
    "read.stream.maxfilespertrigger": "files after which a micro-batch ends",
    "read.stream.maxbytespertrigger": "bytes of files, such as 1g, after which a micro-batch ends",
    "read.stream.maxrowspertrigger": "rows after which a micro-batch ends",
    "read.stream.minrowspertrigger": "rows for which a micro-batch waits; with maxTriggerDelayMs",
    "read.stream.maxtriggerdelayms": "milliseconds from the last micro-batch to the end of this wait",
    "incremental-between": "two snapshots or tags, 'a,b': the changes after the first one through the second",
    "incremental-between-timestamp": "two times, 'a,b': the changes between their snapshots; in batches",
    "incremental-to-auto-tag": "an automatic tag: the changes since the one before it; in batches",
    "startingversion": "as 'scan.snapshot-id', or 'latest'; in a batch with 'readChangeFeed' the first changes",
    "endingversion": "with 'startingVersion' in a batch: the snapshot whose changes are the last ones",
    "start-snapshot-id": "a snapshot: the changes after it; in batches",
    "end-snapshot-id": "with 'start-snapshot-id': the snapshot whose changes are the last ones",
}
ENDS = ("incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag")
"""The options that name both ends of a read of changes in a batch."""
OTHER_ENDS = ("start-snapshot-id", "end-snapshot-id", "endingversion")
"""The names that other formats have for one end."""
WRITE_OPTIONS = {
    "row-kind-column": "a column of the DataFrame with +I, -U, +U, -D; not stored",
    "partitionoverwritemode": "what mode('overwrite') replaces: static (the table) or dynamic (partitions in the data)",
    "overwrite-partition": "the partition mode('overwrite') replaces, 'dt=2026-01-31,hh=8'; other rows are refused",
    "commit.user": "the user of this job's commit",
    "write.unchanged-since": "the snapshot from which the rows were read; refused if their buckets have changed since",
    "txnappid": "the name of a writer that numbers its writes: a repeated one is skipped; with 'txnVersion'",
    "txnversion": "the number of this write, greater than those of the writes before it",
    "write.merge-schema": "true adds columns of the rows that the table lacks, as its last ones",
    "write.merge-schema.type-widening": "true also gives a column a wider type that holds old and new values",
    "write.merge-schema.explicit-cast": "true also gives a column the type of the rows, even if old values lose a part",
    "write.stream.on-doubt": "for a repeated batch if nobody can say whether it is in the table: fail, commit or skip",
}
PROPERTY = "snapshot-property."
"""The prefix of an option that becomes a property of the snapshot."""
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
"""Aliases of time-travel options that only say where a stream of changes starts."""
_NOT_YET = {
    re.compile(r"endingtimestamp"): "an end of changes by time, other than by 'incremental-between-timestamp',",
    re.compile(r"overwriteschema"): "replacing the schema while writing",
    re.compile(r"replacewhere|overwrite-mode"): "overwriting by condition",
    re.compile(r"usermetadata"): "one text about a snapshot, other than by 'snapshot-property.<name>',",
    re.compile(r"system-table"): "system tables",
}


def canonical(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options under their canonical names. InvalidInputError for an option with two values."""
    named: dict[str, str] = {}
    for key, value in given.items():
        name = _ALIASES.get(key.lower(), key.lower())
        name = name if name in _OURS else core_options.spelled(name)
        if name in named and named[name] != value:
            raise InvalidInputError(f"option {name!r} is given twice, as {named[name]!r} and as {value!r}: keep one")
        named[name] = value
    return named


def check_known(named: Mapping[str, str], ours: Mapping[str, str], where: str) -> None:
    """Raise InvalidInputError for a name that is neither in `ours` nor a table option; suggest the nearest one."""
    for key in (key for key in named if key not in ours):
        for pattern, feature in _NOT_YET.items():
            if pattern.fullmatch(key):
                raise UnsupportedError(f"option {key!r}: {feature} is not supported yet by the format 'paimon' here")
        if not core_options.is_known(key):
            close = core_options.nearest(key)
            near = [close] if close else difflib.get_close_matches(key, [*ours, *_ALIASES], n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidInputError(f"unknown option {key!r} in {where}{hint}")


def names_columns(key: str) -> bool:
    """Return True if the name of the option contains the name of a column."""
    return key.startswith(("fields.", "file-index."))


def with_case(named: Mapping[str, str], column_names: Iterable[str]) -> dict[str, str]:
    """Return the options with columns in the case of the table: Spark passes option names in lower case.

    These are ``fields.<column>.<what>`` and ``file-index.<kind>.<column>.<what>``.
    """
    spelled = {name.lower(): name for name in column_names}
    return {_with_columns(key, spelled): value for key, value in named.items()}


def _with_columns(key: str, spelled: Mapping[str, str]) -> str:
    found = split_field_option(key)
    if found is None:
        return renamed_setting(key, lambda column: spelled.get(column, column))
    columns, option = found
    return field_option(",".join(spelled.get(column, column) for column in columns), option)


def pop(named: dict[str, str], key: str, parse: Callable[[str], T], default: D) -> T | D:
    """Take the option `key` and return its value. InvalidInputError says what `parse` accepts.

    Args:
        named: options under their canonical names; `key` in lower case is removed.
        key: spelled for the message.
        parse: a parser as in `paimon_core.options.parse`.
        default: the result if the option is not given.
    """
    text = named.pop(key.lower(), None)
    if text is None:
        return default
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidInputError(f"option {key!r} is {text!r}: it {error}") from error


def integer_from(least: int) -> Callable[[str], int]:
    """Return a parser of integers of 64 bits that are at least `least`."""
    return number(least, MAX_LONG)


def positive_size(text: str) -> int:
    """Return the bytes of a size such as 10g, at least 1."""
    if (size := memory_size(text)) < 1:
        raise ValueError("must be at least 1 byte")
    return size
