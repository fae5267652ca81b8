"""The names of options in ``.option(...)`` with their aliases, and values parsed from text."""

import difflib
import re
from collections.abc import Iterable, Mapping

from paimon_core import options as core_options
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.options.file_index import renamed_setting
from paimon_core.options.parse import memory_size
from paimon_core.options.per_field import field_option, split_field_option

READ_OPTIONS = {
    "columns": "the columns to read, separated by commas",
    "filter": "a predicate in SQL's words; only matching rows are read",
    "limit": "a hint: reading may stop once that many rows are certain",
    "read.arrow-batch-rows": "rows per batch handed to Spark",
    "read.min-tasks": "the least number of tasks of a read that is large enough; default 8",
}
STREAM_OPTIONS = {
    "read.changelog": "rows of every kind, with a first column 'rowkind': +I, -U, +U or -D",
    "read.ignore-deletes": "deletes are left out; for reads without 'rowkind'",
    "read.stream.maxfilespertrigger": "files after which a micro-batch takes no more",
    "read.stream.maxbytespertrigger": "bytes of files, such as 1g, after which a micro-batch takes no more",
    "read.stream.maxrowspertrigger": "rows after which a micro-batch takes no more",
    "read.stream.minrowspertrigger": "rows that a micro-batch waits for; with maxTriggerDelayMs",
    "read.stream.maxtriggerdelayms": "milliseconds after the last micro-batch that it waits at most",
    "incremental-between": "two snapshots, 'a,b': the changes after the first one through the second; in batches, too",
    "startingversion": "as 'scan.snapshot-id', or 'latest'",
}
WRITE_OPTIONS = {
    "row-kind-column": "a column of the DataFrame with +I, -U, +U, -D; not stored",
    "partitionoverwritemode": "what mode('overwrite') replaces: static (the table) or dynamic (partitions in the data)",
    "overwrite-partition": "the partition mode('overwrite') replaces, 'dt=2026-01-31,hh=8'; only its rows may come",
    "commit.user": "the user of this job's commit",
    "write.unchanged-since": "the snapshot the rows were read from; refused where others changed their buckets since",
    "txnappid": "the writer that numbers its writes, so that a repeated one is skipped; with 'txnVersion'",
    "txnversion": "the number of this write, greater than those of the writes before it",
    "write.stream.on-doubt": "for a repeated batch that may or may not be in the table: fail, commit or skip",
}
PLACE_OPTIONS = {
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
_OURS = {*READ_OPTIONS, *STREAM_OPTIONS, *WRITE_OPTIONS, *PLACE_OPTIONS}
STREAMS_ONLY = {*STREAM_OPTIONS, "consumer-id", "consumer.ignore-progress"}
STREAM_STARTS = {"startingtimestamp": "startingTimestamp", "stream-from-timestamp": "stream-from-timestamp"}
"""Names that mean a time-travel option, but only as the start of a stream of changes."""
_NOT_YET = {
    re.compile(r"incremental-.*|(start|end)-snapshot-id|(starting|ending)(version|timestamp)"): "incremental reads",
    re.compile(r"write\.merge-schema.*|merge-?schema|overwriteschema"): "changing the schema while writing",
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
    """Refuse a name that is neither in `ours` nor a table option, and suggest the nearest one."""
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
    """Return the options with column names as the table spells them: Spark lower-cases the names of options.

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


def names(key: str, text: str | None) -> tuple[str, ...] | None:
    """Return the column names of a comma list; `None`: the option is not given."""
    if text is None:
        return None
    listed = tuple(name.strip() for name in text.split(","))
    if not all(listed):
        raise InvalidInputError(f"option {key!r} is {text!r}: a list of column names separated by commas")
    if len(set(listed)) < len(listed):
        raise InvalidInputError(f"option {key!r} names a column twice: {text!r}")
    return listed


def partition_spec(text: str) -> tuple[tuple[str, str], ...]:
    """Return the columns and values, as texts, of ``column=value,column=value``."""
    pairs = [tuple(part.strip() for part in pair.partition("=")) for pair in text.split(",")]
    if not all(column and equals for column, equals, _ in pairs):
        raise InvalidInputError(f"option 'overwrite-partition' is {text!r}: column=value, or several after commas")
    if len({column.lower() for column, _, _ in pairs}) < len(pairs):
        raise InvalidInputError(f"option 'overwrite-partition' names a column twice: {text!r}")
    return tuple((column, value) for column, _, value in pairs)


def pop_int(named: dict[str, str], key: str) -> int | None:
    """Take a whole number of 1 or more; `None`: the option is not given."""
    return None if key not in named else positive(key, named.pop(key))


def pop_size(named: dict[str, str], key: str) -> int | None:
    """Take a number of bytes, such as 10g; `None`: the option is not given."""
    text = named.pop(key, None)
    if text is None:
        return None
    try:
        size = memory_size(text)
    except ValueError as error:
        raise InvalidInputError(f"option {key!r} is {text!r}: it {error}") from error
    return positive(key, str(size))


def pop_flag(named: dict[str, str], key: str) -> bool:
    """Take true or false; the default is false."""
    text = named.pop(key, "false")
    if text.lower() not in ("true", "false"):
        raise InvalidInputError(f"option {key!r} is {text!r}: true or false")
    return text.lower() == "true"


def positive(key: str, text: str, *, zero: bool = False) -> int:
    """Return a whole number of at least 1, with `zero` at least 0."""
    if not text.strip().isdecimal() or int(text) < (0 if zero else 1):
        raise InvalidInputError(f"option {key!r} is {text!r}: a whole number of {0 if zero else 1} or more")
    return int(text)
