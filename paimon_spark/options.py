"""What stands in ``.option(...)``, sorted into what the engine takes as arguments.

Spark hands over lower-case names, so names match without case; values stay as they are. Besides the names in
`option_names`, any table option of Paimon is taken as a dynamic option of this job, and the storage's own options
(``s3.access-key``, ``fs.s3a.endpoint`` ...) go to the storage. Nothing is ignored: an unknown name is an error that
names the nearest one.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paimon_core.catalog.identifier import Identifier
from paimon_core.commit.idempotent import OnUnknown
from paimon_core.errors import InvalidInputError, UnsupportedError, hide_secrets
from paimon_core.scan.stream_scan import NO_LIMITS, Limits
from paimon_core.snapshot.time_travel import OPTIONS as TIME_TRAVEL_OPTIONS
from paimon_core.store.location import TableLocation
from paimon_core.table import Table, with_store
from paimon_spark.option_names import (
    PLACE_OPTIONS,
    READ_OPTIONS,
    STREAM_OPTIONS,
    STREAM_STARTS,
    STREAMS_ONLY,
    WRITE_OPTIONS,
    canonical,
    check_known,
    names,
    partition_spec,
    pop_flag,
    pop_int,
    pop_size,
    positive,
    with_case,
)

_OF_CHANGES = {"incremental-between", "read.changelog", "read.ignore-deletes"}
_BATCH_MODES = ("default", "full", "latest", "latest-full", "from-snapshot", "from-snapshot-full", "from-timestamp")
_WHOLE_NUMBERS = {"scan.snapshot-id", "scan.timestamp-millis", "scan.watermark"}
_PROPERTY = "snapshot-property."
_STORAGE = re.compile(r"(spark\.hadoop\.|hadoop\.|fs\.|dfs\.|s3[an]?\.|oss\.|gs\.|gcs\.|abfss?\.|azure\.|storage\.)")

DEFAULT_MIN_TASKS = 8  # the processes that plan do not see how many tasks the cluster can run at a time
DEFAULT_BATCH_ROWS = 32_768  # through the pipe to the JVM, 4 k and 32 k rows measured faster than 131 k


@dataclass(frozen=True, slots=True)
class Place:
    """Where a table is. The repr hides the storage options: they may hold secrets."""

    path: str
    branch: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    read_optimized: bool = False
    warehouse: str | None = None

    def __repr__(self) -> str:
        branch = "" if self.branch is None else f", branch {self.branch!r}"
        return f"Place({hide_secrets(self.path)!r}{branch})"

    def open(self, options: Mapping[str, str] | None = None) -> Table:
        """The table there, under dynamic `options`; roots of files that it declares in the warehouse are believed."""
        table = Table.open(self.path, self.storage_options, options, self.branch)
        if self.warehouse is not None:
            table = with_store(table, table.store.within(self.warehouse))
        return table.read_optimized() if self.read_optimized else table


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A batch read, as asked for in options. `when` holds at most one argument of `Table.scan`'s time travel."""

    place: Place
    options: Mapping[str, str]
    when: Mapping[str, Any]
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    limit: int | None = None
    batch_rows: int = DEFAULT_BATCH_ROWS
    min_tasks: int = DEFAULT_MIN_TASKS


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """A stream of changes, as asked for in options; where it starts is for the engine to read in `options`.

    A micro-batch ends at `limits`. Where `min_rows` is given it waits for so many rows, but not longer than
    `max_delay_millis` after the last one.
    """

    place: Place
    options: Mapping[str, str]
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    batch_rows: int = DEFAULT_BATCH_ROWS
    min_tasks: int = DEFAULT_MIN_TASKS
    changelog: bool = False
    ignore_deletes: bool = False
    limits: Limits = NO_LIMITS
    min_rows: int | None = None
    max_delay_millis: int = 0


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A write, as asked for in options. `dynamic` is about mode overwrite; None keys mean "not said".

    With a `version` the commit is number so much of `commit_user`, and done once. `read_at`: the snapshot that the rows
    were read from. `partition`: columns and values, as texts, of what mode overwrite replaces. `properties` go into the
    snapshot.
    """

    place: Place
    options: Mapping[str, str]
    primary_keys: tuple[str, ...] | None = None
    partition_keys: tuple[str, ...] | None = None
    row_kind_column: str | None = None
    dynamic: bool = False
    commit_user: str | None = None
    version: int | None = None
    on_doubt: OnUnknown = "fail"
    read_at: int | None = None
    partition: tuple[tuple[str, str], ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


def read_request(given: Mapping[str, str]) -> ReadRequest:
    """Sort the options of a reader; InvalidInputError or UnsupportedError names the one at fault."""
    named = canonical(given)
    streaming = next((key for key in named if key in STREAMS_ONLY), None)
    if streaming is not None:
        batch = ", or to a batch read of changes, with 'incremental-between'" if streaming in _OF_CHANGES else ""
        raise UnsupportedError(f"option {streaming!r} is about changes: give it to spark.readStream{batch}")
    storage = _take_storage(named)
    place = _take_place(named, storage)
    when = _take_time_travel(named)
    limit = named.pop("limit", None)
    columns, text, rows = _pop_projection(named)
    tasks = pop_int(named, "read.min-tasks")
    check_known(named, {**PLACE_OPTIONS, **READ_OPTIONS}, "the options of this read")
    return ReadRequest(
        place,
        named,
        when,
        columns=columns,
        filter=text,
        limit=None if limit is None else positive("limit", limit, zero=True),
        batch_rows=rows,
        min_tasks=DEFAULT_MIN_TASKS if tasks is None else tasks,
    )


def batch_request(given: Mapping[str, str]) -> ReadRequest:
    """Sort the options of a reader that is known to be one of a batch, as `read_request` does.

    InvalidInputError for a word that only says where a stream of changes starts: Spark asks for the columns of both
    alike, and a batch would take it for the moment to read.
    """
    start = next((STREAM_STARTS[key.lower()] for key in given if key.lower() in STREAM_STARTS), None)
    if start is not None:
        raise InvalidInputError(
            f"option {start!r} says where changes start, and this batch reads rows: give it to spark.readStream; for "
            "the rows of a moment say 'timestampAsOf', for changes in a batch 'incremental-between'"
        )
    return read_request(given)


def stream_request(given: Mapping[str, str]) -> StreamRequest:
    """Sort the options of a stream that is read; InvalidInputError or UnsupportedError names the one at fault."""
    named = canonical(given)
    storage = _take_storage(named)
    place = _take_place(named, storage)
    if place.read_optimized:
        raise UnsupportedError(f"{place.path}$ro cannot be read as a stream: read one of {place.path} itself")
    if "scan.watermark" in named:
        raise UnsupportedError("option 'scan.watermark' is for batch reads: give a stream a snapshot to start from")
    if "limit" in named:
        raise InvalidInputError("option 'limit' is for batch reads of rows: changes are read whole")
    columns, text, batch_rows = _pop_projection(named)
    tasks = pop_int(named, "read.min-tasks")
    files, rows = (pop_int(named, f"read.stream.max{what}pertrigger") for what in ("files", "rows"))
    limits = Limits(files, pop_size(named, "read.stream.maxbytespertrigger"), rows)
    least = pop_int(named, "read.stream.minrowspertrigger")
    delay = pop_int(named, "read.stream.maxtriggerdelayms")
    if (least is None) != (delay is None):
        raise InvalidInputError(
            "options 'read.stream.minRowsPerTrigger' and 'read.stream.maxTriggerDelayMs' go together: give both"
        )
    if least is not None and rows is not None and least > rows:
        raise InvalidInputError(f"a micro-batch is to have at least {least} rows and at most {rows}: give other limits")
    changelog, ignore = (pop_flag(named, key) for key in ("read.changelog", "read.ignore-deletes"))
    if changelog and ignore:
        raise InvalidInputError(
            "options 'read.changelog' and 'read.ignore-deletes' contradict each other: the first tells deletes by the "
            "column 'rowkind'; give one of them"
        )
    _take_starting_version(named)
    check_known(named, {**PLACE_OPTIONS, **READ_OPTIONS, **STREAM_OPTIONS}, "the options of this stream")
    return StreamRequest(
        place,
        named,
        columns,
        text,
        batch_rows,
        DEFAULT_MIN_TASKS if tasks is None else tasks,
        changelog,
        ignore,
        limits,
        least,
        delay or 0,
    )


def changes_request(given: Mapping[str, str]) -> StreamRequest | None:
    """Sort the options of a batch read of the changes between two snapshots; None where they ask for no such thing."""
    named = canonical(given)
    if "incremental-between" not in named:
        return None
    unfit = next((k for k in named if k in STREAMS_ONLY and k not in _OF_CHANGES), None)
    if unfit is not None:
        raise InvalidInputError(f"option {unfit!r} is for spark.readStream: a batch reads all that it asks for at once")
    return stream_request(given)


def only_changes_take(given: Mapping[str, str]) -> bool:
    """Whether these options make sense only where changes are read.

    Spark asks for the columns before it says whether a batch or a stream is to be read.
    """
    named = canonical(given)
    mode = named.get("scan.mode", "default").lower()
    return mode not in _BATCH_MODES or not STREAMS_ONLY.isdisjoint(named)


def write_request(given: Mapping[str, str], column_names: Iterable[str]) -> WriteRequest:
    """Sort the options of a writer; `column_names` give ``fields.<column>.*`` options their case back."""
    named = canonical(given)
    storage = _take_storage(named)
    place = _take_place(named, storage)
    if place.read_optimized:
        raise UnsupportedError(f"{place.path}$ro can only be read: write to {place.path} itself")
    primary_key, partition = named.pop("primary-key", None), named.pop("partition", None)
    row_kind = named.pop("row-kind-column", None)
    user, version = _take_transaction(named)
    doubt, dynamic = _take_doubt(named), _take_overwrite_mode(named)
    read_at = pop_int(named, "write.unchanged-since")
    if read_at is not None and version is not None:
        raise InvalidInputError(
            "options 'write.unchanged-since' and 'txnVersion' exclude each other: what was read once cannot be done "
            "again; leave one out"
        )
    place_in, properties = named.pop("overwrite-partition", None), _take_properties(named)
    if place_in is not None and dynamic:
        raise InvalidInputError(
            "options 'overwrite-partition' and 'partitionOverwriteMode' = 'dynamic' both say what is replaced: give one"
        )
    if properties and version is not None:
        raise UnsupportedError("options 'snapshot-property.<name>' do not go with 'txnVersion' yet: leave one out")
    reading = [key for key in named if key in TIME_TRAVEL_OPTIONS or key in STREAMS_ONLY]
    if reading:
        raise InvalidInputError(f"option {reading[0]!r} is about reading: a write follows the newest snapshot")
    check_known(named, {**PLACE_OPTIONS, **WRITE_OPTIONS}, "the options of this write")
    return WriteRequest(
        place,
        with_case(named, column_names),
        primary_keys=names("primary-key", primary_key),
        partition_keys=names("partition", partition),
        row_kind_column=row_kind,
        dynamic=dynamic,
        commit_user=user,
        version=version,
        on_doubt=doubt,
        read_at=read_at,
        partition=None if place_in is None else partition_spec(place_in),
        properties=properties,
    )


def stream_write_request(given: Mapping[str, str], column_names: Iterable[str]) -> WriteRequest:
    """Sort the options of a stream that is written, among which Spark puts two of its own."""
    request = write_request(
        {key: value for key, value in given.items() if key.lower() not in ("checkpointlocation", "queryname")},
        column_names,
    )
    if request.commit_user is not None:
        raise InvalidInputError(
            "options 'commit.user' and 'txnAppId' are for batch writes: a stream commits by the id that its checkpoint "
            "gives it, and is recognised by that; leave them out"
        )
    if request.read_at is not None:
        raise InvalidInputError("option 'write.unchanged-since' is for batch writes: leave it out")
    if request.partition is not None or request.properties:
        key = "snapshot-property.<name>" if request.partition is None else "overwrite-partition"
        raise InvalidInputError(f"option {key!r} is for batch writes: leave it out")
    if request.dynamic:
        raise InvalidInputError(
            "option 'partitionOverwriteMode' = 'dynamic' is for batch writes: output mode complete replaces the table"
        )
    return request


def _take_storage(named: dict[str, str]) -> dict[str, str]:
    return {key: named.pop(key) for key in list(named) if _STORAGE.match(key)}


def _take_place(named: dict[str, str], storage: Mapping[str, str]) -> Place:
    path, warehouse, table = (named.pop(key, None) for key in ("path", "warehouse", "table"))
    branch = named.pop("branch", None)
    if "paths" in named:
        raise InvalidInputError(f"one table at a time can be read, got the paths {json.loads(named['paths'])}")
    if path is not None and (warehouse is not None or table is not None):
        raise InvalidInputError("options 'path' and 'warehouse' with 'table' both say where the table is: give one")
    if path is None:
        if warehouse is None or table is None:
            raise InvalidInputError(
                "where is the table? Give its path, load('/warehouse/db.db/t') or save('/warehouse/db.db/t'), or the "
                "options 'warehouse' and 'table'. A table made by CREATE TABLE ... USING paimon OPTIONS loses its "
                "options in Spark: use CREATE TEMPORARY VIEW instead"
            )
        name = Identifier.parse(table)
        directory = f"{warehouse.rstrip('/')}/{name.database}.db/{name.table}"
        location = TableLocation.of(directory, name.branch, name.system_table)
    else:
        location = TableLocation.parse(path)
    if branch is not None and location.branch not in (None, branch):
        raise InvalidInputError(f"option 'branch' is {branch!r}, the table's name says {location.branch!r}: give one")
    return Place(location.path, branch or location.branch, dict(storage), location.read_optimized, warehouse)


def _pop_projection(named: dict[str, str]) -> tuple[tuple[str, ...] | None, str | None, int]:
    """The columns, the filter and the rows of a batch for Spark."""
    columns, rows = named.pop("columns", None), pop_int(named, "read.arrow-batch-rows")
    return names("columns", columns), named.pop("filter", None), DEFAULT_BATCH_ROWS if rows is None else rows


def _take_starting_version(named: dict[str, str]) -> None:
    """Delta's name of a start: a number, whose changes come first, or ``latest``."""
    version = named.pop("startingversion", None)
    if version is None:
        return
    key, value = ("scan.mode", "latest") if version.lower() == "latest" else ("scan.snapshot-id", version)
    if named.setdefault(key, value) != value:
        raise InvalidInputError(
            f"options 'startingVersion' = {version!r} and {key!r} = {named[key]!r} disagree: keep one"
        )


def _take_time_travel(named: dict[str, str]) -> dict[str, Any]:
    said = [key for key in TIME_TRAVEL_OPTIONS if key in named]
    if len(said) > 1:
        raise InvalidInputError(f"options {', '.join(map(repr, said))} each choose a moment: give one of them")
    mode = named.pop("scan.mode", "default")
    if mode.lower() not in _BATCH_MODES:
        raise UnsupportedError(f"option 'scan.mode' = {mode!r} is not supported for batch reads")
    moments = {"from-snapshot": "scan.snapshot-id", "from-snapshot-full": "scan.snapshot-id"}
    needed = {**moments, "from-timestamp": "scan.timestamp-millis"}.get(mode.lower())
    if not said and needed is not None:
        raise InvalidInputError(f"option 'scan.mode' = {mode!r} needs a moment, such as {needed!r}")
    if not said:
        return {}
    key = said[0]
    value = named.pop(key)
    number = positive(key, value, zero=key != "scan.snapshot-id") if key in _WHOLE_NUMBERS else None
    return {TIME_TRAVEL_OPTIONS[key]: value if number is None else number}


def _take_transaction(named: dict[str, str]) -> tuple[str | None, int | None]:
    """Who commits, and the number of the commit where it has one."""
    user, application, version = (named.pop(key, None) for key in ("commit.user", "txnappid", "txnversion"))
    if (application is None) != (version is None):
        raise InvalidInputError("options 'txnAppId' and 'txnVersion' go together: give both, or neither")
    if application is not None and user not in (None, application):
        raise InvalidInputError(
            f"options 'commit.user' = {user!r} and 'txnAppId' = {application!r} both say who commits: give the latter"
        )
    if application == "":
        raise InvalidInputError("option 'txnAppId' is empty: give a name that no other writer of the table has")
    return application or user, None if version is None else positive("txnVersion", version, zero=True)


def _take_properties(named: dict[str, str]) -> dict[str, str]:
    """Take what the snapshot is to say about itself. Spark lowers the names."""
    taken = {key: named.pop(key) for key in list(named) if key.startswith(_PROPERTY)}
    if _PROPERTY in taken:
        raise InvalidInputError(f"option {_PROPERTY!r} lacks a name: {_PROPERTY}<name>")
    return {key.removeprefix(_PROPERTY): value for key, value in taken.items()}


def _take_doubt(named: dict[str, str]) -> OnUnknown:
    match named.pop("write.stream.on-doubt", "fail").lower():
        case "fail" | "commit" | "skip" as doubt:
            return doubt
        case other:
            raise InvalidInputError(f"option 'write.stream.on-doubt' is {other!r}: fail, commit or skip")


def _take_overwrite_mode(named: dict[str, str]) -> bool:
    """Whether mode overwrite replaces the partitions in the data only; the whole table unless said otherwise."""
    mode, flag = named.pop("partitionoverwritemode", None), named.pop("dynamic-partition-overwrite", None)
    if mode is not None and mode.lower() not in ("static", "dynamic"):
        raise InvalidInputError(f"option 'partitionOverwriteMode' is {mode!r}: static or dynamic")
    if flag is not None and flag.lower() not in ("true", "false"):
        raise InvalidInputError(f"option 'dynamic-partition-overwrite' is {flag!r}: true or false")
    by_mode = None if mode is None else mode.lower() == "dynamic"
    by_flag = None if flag is None else flag.lower() == "true"
    if by_mode is not None and by_flag is not None and by_mode != by_flag:
        raise InvalidInputError(
            f"'partitionOverwriteMode' {mode!r} and 'dynamic-partition-overwrite' {flag!r} disagree"
        )
    return bool(by_mode or by_flag)
