"""Parsing of the options of ``.option(...)`` into requests: one value per read, stream or write.

Spark passes option names in lower case, so names are case-insensitive; values keep their case. Besides the names in
`option_names`, any table option of Paimon is a dynamic option of this job. Storage options (``s3.access-key``,
``fs.s3a.endpoint`` ...) go to the store. No option is ignored: an unknown name is an error that suggests the closest
name.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from paimon_core import SystemTable, Table, TableLocation
from paimon_core.engine import (
    NO_LIMITS,
    READ_OPTIMIZED,
    TIME_TRAVEL_OPTIONS,
    Filter,
    Guard,
    Identifier,
    Limits,
    StartedFrom,
    Trust,
    in_blob_files,
    is_storage_option,
    read_by_reference,
    read_only,
    stored_as_views,
)
from paimon_core.errors import InvalidInputError, UnsupportedError, hide_secrets
from paimon_core.lazy import deferred
from paimon_core.options.families import USER_PREFIX
from paimon_core.options.parse import boolean, column_list, enum
from paimon_core.types.system_fields import ROW_KIND
from paimon_spark.option_names import (
    ENDS,
    LOCATION_OPTIONS,
    OTHER_ENDS,
    PROPERTY,
    READ_OPTIONS,
    SPARK_CATALOG,
    STREAM_OPTIONS,
    STREAM_STARTS,
    STREAMS_ONLY,
    WRITE_OPTIONS,
    canonical,
    check_known,
    integer_from,
    pop,
    positive_size,
    with_case,
)
from paimon_spark.times import zoned_times

if TYPE_CHECKING:
    from paimon_core.engine import (
        AnyTable,
        MergeRules,
        OnUnknown,
        Spec,
        in_directories,
        open_at,
        partition_spec,
        viewed,
    )
else:
    MergeRules = deferred("paimon_core.engine", "MergeRules")
    in_directories = deferred("paimon_core.engine", "in_directories")
    open_at = deferred("paimon_core.engine", "open_at")
    partition_spec = deferred("paimon_core.engine", "partition_spec")
    viewed = deferred("paimon_core.engine", "viewed")

MissingColumns: TypeAlias = Literal["warn", "null", "fail"]
_OF_CHANGES = {*ENDS, *OTHER_ENDS, "read.changelog", "read.ignore-deletes"}
_AUDIT_LOG, _BINLOG = "audit_log", "binlog"
_WITH_CHANGES = {_AUDIT_LOG, _BINLOG}
_BATCH_MODES = {
    **dict.fromkeys(("default", "full", "latest", "latest-full")),
    **dict.fromkeys(("from-snapshot", "from-snapshot-full"), "scan.snapshot-id"),
    "from-timestamp": "scan.timestamp-millis",
}
"""The scan modes of a batch read, each with a time-travel option that it requires; `None`: it requires none."""
_PARSERS: dict[str, Callable[[str], Any]] = {
    "scan.snapshot-id": integer_from(1),
    "scan.timestamp-millis": integer_from(0),
    "scan.watermark": integer_from(0),
}
"""The parsers of time-travel options; options without a parser are texts."""

_ADDED_BY_SPARK = ("checkpointlocation", "queryname")
DEFAULT_MIN_TASKS = 8  # planning processes do not know how many tasks the cluster can run at a time
DEFAULT_BATCH_ROWS = 32_768  # through the pipe to the JVM, 4 k and 32 k rows measured faster than 131 k


CATALOG_OPTION = "catalog-with-secrets"
"""The option in which a job gets the catalog of its table. Spark redacts options whose name contains "secret"."""


TRUST_OPTION = "catalog-trust"
"""The option in which a job gets the paths outside of its table that the caller allows."""


def catalog_option(table: "AnyTable") -> dict[str, str]:
    """Return the options with the catalog of a table; empty for a table that its path is enough to open.

    They include the paths that the caller allows if rows of the table may describe blobs there.
    """
    address = table.store.environment.address()
    options = {CATALOG_OPTION: json.dumps(address)} if address else {}
    if read_by_reference(table.store.schema) or in_blob_files(table.store.schema):
        options[TRUST_OPTION] = table.store.trust.to_text()
    return options


@dataclass(frozen=True, slots=True)
class TableAddress:
    """The path of a table with its branch, system table, warehouse and storage options.

    The repr hides the storage options, which may contain secrets.
    """

    path: str
    branch: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    system_table: str | None = None
    warehouse: str | None = None
    catalog: str | None = field(default=None, repr=False)
    """The value of `CATALOG_OPTION`; `None`: the table is opened by its path alone."""
    trust: str | None = field(default=None, repr=False)
    """The value of `TRUST_OPTION`; `None`: only what the other options allow."""

    @property
    def others(self) -> dict[str, str]:
        """The options, other than the path and the branch, with which a job opens the table."""
        named = {CATALOG_OPTION: self.catalog, TRUST_OPTION: self.trust}
        return {**self.storage_options, **{key: value for key, value in named.items() if value is not None}}

    def __repr__(self) -> str:
        branch = "" if self.branch is None else f", branch {self.branch!r}"
        return f"TableAddress({hide_secrets(self.path)!r}{branch})"

    def open(self, options: Mapping[str, str] | None = None) -> Table:
        """Return the table with dynamic `options`; its files may be anywhere in the warehouse.

        Raises UnsupportedError for a system table: use `open_any`.
        """
        table = self.open_any(options)
        if isinstance(table, SystemTable):
            raise read_only(hide_secrets(str(table.location)))
        return table

    def open_any(self, options: Mapping[str, str] | None = None) -> "AnyTable":
        """Return the table or the system table with dynamic `options`."""
        if self.catalog is None:
            table = Table.open(self.path, self.storage_options, options, self.branch)
        else:
            table = open_at(json.loads(self.catalog), self.path, self.storage_options, options, self.branch)
        if self.warehouse is not None:
            table = table.with_store(table.store.within(self.warehouse))
        if self.trust is not None:
            table = table.with_store(table.store.trusting(Trust.of_text(self.trust)))
        if self.catalog is None and stored_as_views(table.store.schema):
            table = in_directories(table, self.storage_options)
        return viewed(table, self.system_table)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """A job on a table, with its dynamic table options."""

    address: TableAddress
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyReadRequest(_Request):
    """A read of a batch or a stream. `columns`: `None`: all columns; `filter`: SQL text or predicate, `None`: all."""

    columns: tuple[str, ...] | None = None
    filter: Filter = None
    batch_rows: int = DEFAULT_BATCH_ROWS
    min_tasks: int = DEFAULT_MIN_TASKS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest(AnyReadRequest):
    """A batch read. `when` has at most one of the time travel arguments of `Table.scan`.

    `rows_of`: the id of the snapshot to read with the table's current columns; `None`: no such snapshot is chosen.
    """

    when: Mapping[str, Any]
    rows_of: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest(AnyReadRequest):
    """A stream of changes; the engine reads its starting point from `options`.

    A micro-batch ends at `limits`. With `min_rows` it waits for this number of rows, but at most `max_delay_millis`
    after the last micro-batch. `packed`: rows as in ``$binlog``: an update is one row, and every value is in an array.
    """

    changelog: bool = False
    packed: bool = False
    ignore_deletes: bool = False
    limits: Limits = NO_LIMITS
    min_rows: int | None = None
    max_delay_millis: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest(_Request):
    """A write. `primary_keys` and `partition_keys`: `None` if the options do not set them.

    `dynamic`: True: mode overwrite replaces the partitions in the data; False: it replaces the whole table, or
    `partition`, whose values are texts. With `version` the write is idempotent: version N of `commit_user` is committed
    at most once. `started_from`: the snapshot from which the rows were read. `properties`: properties of the snapshot.
    `changes_column`: the column with the kind of each row that a statement changes; only new rows get defaults.
    `missing_columns`: the result of an upsert whose rows lack columns: a warning, NULL without a warning, or an error.
    `merge_rules`: the schema changes that the write may make; `None`: the rows must have the columns of the table.
    """

    primary_keys: tuple[str, ...] | None = None
    partition_keys: tuple[str, ...] | None = None
    row_kind_column: str | None = None
    dynamic: bool = False
    commit_user: str | None = None
    version: int | None = None
    on_unknown: "OnUnknown" = "fail"
    started_from: StartedFrom | None = None
    partition: "Spec | None" = None
    properties: Mapping[str, str] = field(default_factory=dict)
    merge_rules: "MergeRules | None" = None
    missing_columns: MissingColumns = "warn"
    changes_column: str | None = None


def read_request(options: Mapping[str, str]) -> ReadRequest:
    """Return the request of a batch read.

    Raises InvalidInputError or UnsupportedError with the name of a wrong option.
    """
    named = canonical(options)
    streaming = next((key for key in named if key in STREAMS_ONLY), None)
    if streaming is not None:
        batch = ", or to a batch read of changes, with 'incremental-between'" if streaming in _OF_CHANGES else ""
        raise UnsupportedError(f"option {streaming!r} is for reads of changes: pass it to spark.readStream{batch}")
    zoned_times(named)
    shared = _pop_read(named)
    when, limit = pop_time_travel(named), pop(named, "limit", integer_from(0), None)
    rows_of = pop(named, "read.rows-of-snapshot", integer_from(1), None)
    if rows_of is not None and when:
        raise InvalidInputError(
            "options for time travel and 'read.rows-of-snapshot' both choose a snapshot: set only one"
        )
    check_known(named, {**LOCATION_OPTIONS, **READ_OPTIONS}, "the options of this read")
    return ReadRequest(**shared, options=named, when=when, rows_of=rows_of, limit=limit)


def system_request(options: Mapping[str, str]) -> ReadRequest | None:
    """Return the request of a batch read of a system table; `None`: the options do not name a system table.

    The view ``$ro`` counts as a table. Raises InvalidInputError for options that a read of a system table lacks.
    """
    named = canonical(options)
    name = _pop_address(dict(named)).system_table
    if name in (None, READ_OPTIMIZED):
        return None
    between = {}
    if name in _WITH_CHANGES:
        _name_ends(named)
        zoned_times(named)
        between = {key: named.pop(key) for key in ENDS if key in named}
    request = read_request(named)
    if request.rows_of is not None:
        raise InvalidInputError("option 'read.rows-of-snapshot' is for tables: for a system table use 'versionAsOf'")
    return replace(request, options={**request.options, **between})


def batch_request(options: Mapping[str, str]) -> ReadRequest:
    """Return the request of a batch read that cannot be a stream.

    Spark requests the columns of a batch and of a stream with the same call, which uses `read_request`. That function
    treats an option for the start of a stream as time travel; this function raises InvalidInputError for it.
    """
    start = next((STREAM_STARTS[key.lower()] for key in options if key.lower() in STREAM_STARTS), None)
    if start is not None:
        raise InvalidInputError(
            f"option {start!r} sets the start of a stream, and this is a batch read of rows: pass it to "
            "spark.readStream; for time travel use 'timestampAsOf', for changes in a batch 'incremental-between'"
        )
    return read_request(options)


def stream_request(options: Mapping[str, str]) -> StreamRequest:
    """Return the request of a streaming read.

    Raises InvalidInputError or UnsupportedError with the name of a wrong option.
    """
    named = canonical(options)
    zoned_times(named)
    shared = _pop_read(named)
    path = shared["address"].path
    name = shared["address"].system_table
    if name in _WITH_CHANGES:  # the same rows as a stream with row kinds
        columns = shared["columns"]
        shared["columns"] = None if columns is None else tuple(c for c in columns if c.lower() != ROW_KIND.name)
        shared["address"] = replace(shared["address"], system_table=None)
        if not pop(named, "read.changelog", boolean, True):
            raise InvalidInputError(f"{path}${name} has row kinds: leave out 'read.changelog', or stream {path} itself")
        named["read.changelog"] = "true"
    elif name is not None:
        raise UnsupportedError(f"{path}${name} cannot be read as a stream: stream {path} itself")
    if (end := next((key for key in OTHER_ENDS if key in named), None)) is not None:
        raise UnsupportedError(
            f"option {end!r} is for batch reads: a stream has no end; set its start with 'scan.snapshot-id'"
        )
    if "scan.watermark" in named:
        raise UnsupportedError("option 'scan.watermark' is for batch reads: start a stream with 'scan.snapshot-id'")
    if "limit" in named:
        raise InvalidInputError("option 'limit' is for batch reads of rows, not for reads of changes: leave it out")
    files, rows, least, delay = (
        pop(named, f"read.stream.{name}", integer_from(1), None)
        for name in ("maxFilesPerTrigger", "maxRowsPerTrigger", "minRowsPerTrigger", "maxTriggerDelayMs")
    )
    limits = Limits(files, pop(named, "read.stream.maxBytesPerTrigger", positive_size, None), rows)
    if (least is None) != (delay is None):
        raise InvalidInputError(
            "options 'read.stream.minRowsPerTrigger' and 'read.stream.maxTriggerDelayMs' go together: set both"
        )
    if least is not None and rows is not None and least > rows:
        raise InvalidInputError(f"'minRowsPerTrigger' is {least}, above 'maxRowsPerTrigger' = {rows}: lower it")
    changelog, ignore = (pop(named, key, boolean, False) for key in ("read.changelog", "read.ignore-deletes"))
    if changelog and ignore:
        raise InvalidInputError(
            "options 'read.changelog' and 'read.ignore-deletes' contradict each other: the first returns deletes, with "
            "their kind in column 'rowkind'; set only one"
        )
    _pop_starting_version(named)
    check_known(named, {**LOCATION_OPTIONS, **READ_OPTIONS, **STREAM_OPTIONS}, "the options of this stream")
    return StreamRequest(
        **shared,
        options=named,
        changelog=changelog,
        packed=name == _BINLOG,
        ignore_deletes=ignore,
        limits=limits,
        min_rows=least,
        max_delay_millis=delay or 0,
    )


def changes_request(options: Mapping[str, str]) -> StreamRequest | None:
    """Return the request of a batch read of the changes between two snapshots; `None`: the options request rows.

    Raises InvalidInputError or UnsupportedError with the name of a wrong option.
    """
    named = canonical(options)
    _name_ends(named)
    if named.keys().isdisjoint(ENDS):
        return None
    unfit = next((k for k in named if k in STREAMS_ONLY and k not in _OF_CHANGES), None)
    if unfit is not None:
        raise InvalidInputError(
            f"option {unfit!r} is for spark.readStream, not for a batch read of changes: leave it out"
        )
    return stream_request(named)


def columns_request(options: Mapping[str, str]) -> StreamRequest:
    """Return the request from which Spark gets the columns of a batch read of changes or of a stream."""
    return stream_request({key: value for key, value in canonical(options).items() if key not in OTHER_ENDS})


def is_about_changes(options: Mapping[str, str]) -> bool:
    """Return True if these options are valid only for a read of changes.

    Spark requests the columns before the source knows whether the read is a batch or a stream.
    """
    named = canonical(options)
    return named.get("scan.mode", "default").lower() not in _BATCH_MODES or not STREAMS_ONLY.isdisjoint(named)


def write_request(options: Mapping[str, str], column_names: Iterable[str]) -> WriteRequest:
    """Return the request of a batch write.

    `column_names` restore the case of columns in options such as ``fields.<column>.*``. Raises InvalidInputError or
    UnsupportedError with the name of a wrong option.
    """
    named = canonical(options)
    address = _pop_address(named)
    if address.system_table is not None:
        raise UnsupportedError(
            f"{address.path}${address.system_table} can only be read: write to {address.path} itself"
        )
    primary_keys, partition_keys = (pop(named, key, column_list, None) for key in ("primary-key", "partition"))
    row_kind_column = named.pop("row-kind-column", None)
    user, version = _pop_transaction(named)
    on_unknown = cast("OnUnknown", pop(named, "write.stream.on-doubt", enum("fail", "commit", "skip"), "fail"))
    dynamic, read_at = _pop_overwrite_mode(named), pop(named, "write.unchanged-since", integer_from(1), None)
    if read_at is not None and version is not None:
        raise InvalidInputError(
            "options 'write.unchanged-since' and 'txnVersion' are mutually exclusive: a repeated write would start "
            "from another snapshot; leave one out"
        )
    partition, properties = pop(named, "overwrite-partition", partition_spec, None), _pop_properties(named)
    if partition is not None and dynamic:
        raise InvalidInputError(
            "options 'overwrite-partition' and 'partitionOverwriteMode' = 'dynamic' are mutually "
            "exclusive: set only one"
        )
    merge_rules = pop_merge_rules(named)
    missing_columns = cast(MissingColumns, pop(named, "write.missing-columns", enum("warn", "null", "fail"), "warn"))
    reading = next((key for key in named if key in TIME_TRAVEL_OPTIONS or key in STREAMS_ONLY), None)
    if reading is not None:
        raise InvalidInputError(f"option {reading!r} is for reads: a write follows the newest snapshot; leave it out")
    properties_of_table = {key: value for key, value in named.items() if key.startswith(USER_PREFIX)}
    check_known(named, {**LOCATION_OPTIONS, **WRITE_OPTIONS, **properties_of_table}, "the options of this write")
    return WriteRequest(
        address=address,
        options=with_case(named, column_names),
        primary_keys=primary_keys,
        partition_keys=partition_keys,
        row_kind_column=row_kind_column,
        dynamic=dynamic,
        commit_user=user,
        version=version,
        on_unknown=on_unknown,
        started_from=None if read_at is None else StartedFrom(read_at, guards=Guard.ROWS),
        partition=partition,
        properties=properties,
        merge_rules=merge_rules,
        missing_columns=missing_columns,
    )


def pop_merge_rules(named: dict[str, str], *, demanded: bool = False) -> "MergeRules | None":
    """Remove the options ``write.merge-schema*`` and return the rules; `None`: the schema does not change.

    `demanded`: True if the statement itself requests schema evolution, which also widens types by default.
    """
    merges = pop(named, "write.merge-schema", boolean, False) or demanded
    widening = pop(named, "write.merge-schema.type-widening", boolean, demanded)
    explicit = pop(named, "write.merge-schema.explicit-cast", boolean, False)
    return MergeRules(widening, explicit) if merges else None


def with_changed_options(table: Table, options: Mapping[str, str]) -> Table:
    """Return the table with the options whose values differ from its stored options."""
    stored = table.schema.options
    return table.with_options({key: value for key, value in options.items() if stored.get(key) != value})


def stream_write_request(options: Mapping[str, str], column_names: Iterable[str]) -> WriteRequest:
    """Return the request of a streaming write, without the two options that Spark itself adds."""
    user_options = {key: value for key, value in options.items() if key.lower() not in _ADDED_BY_SPARK}
    request = write_request(user_options, column_names)
    if request.commit_user is not None:
        raise InvalidInputError(
            "options 'commit.user' and 'txnAppId' are for batch writes: a stream commits under the query id in its "
            "checkpoint; leave them out"
        )
    if request.dynamic:
        raise InvalidInputError(
            "option 'partitionOverwriteMode' = 'dynamic' is for batch writes: output mode complete replaces the table"
        )
    batch_only = {
        "write.unchanged-since": request.started_from,
        "overwrite-partition": request.partition,
        "snapshot-property.<name>": request.properties or None,
    }
    for key, value in batch_only.items():
        if value is not None:
            raise InvalidInputError(f"option {key!r} is for batch writes: leave it out")
    return request


def _pop_read(named: dict[str, str]) -> dict[str, Any]:
    """Remove the options that batches and streams share; return them as arguments of a request."""
    return {
        "address": _pop_address(named),
        "columns": pop(named, "columns", column_list, None),
        "filter": named.pop("filter", None),
        "batch_rows": pop(named, "read.arrow-batch-rows", integer_from(1), DEFAULT_BATCH_ROWS),
        "min_tasks": pop(named, "read.min-tasks", integer_from(1), DEFAULT_MIN_TASKS),
    }


def _pop_address(named: dict[str, str]) -> TableAddress:
    storage = {key: named.pop(key) for key in list(named) if is_storage_option(key)}
    path, warehouse, table, branch = (named.pop(key, None) for key in ("path", "warehouse", "table", "branch"))
    catalog, trust = named.pop(CATALOG_OPTION, None), named.pop(TRUST_OPTION, None)
    if "paths" in named:
        raise InvalidInputError(
            f"a read takes one path, got {json.loads(named['paths'])}: read each table and union the DataFrames"
        )
    if path is not None and (warehouse is not None or table is not None):
        raise InvalidInputError(
            "options 'path' and 'warehouse' with 'table' both locate the table: set only one of the two"
        )
    if path is not None:
        location = TableLocation.parse(path)
    elif warehouse is not None and table is not None:
        name = Identifier.parse(table)
        directory = f"{warehouse.rstrip('/')}/{name.database}.db/{name.table}"
        location = TableLocation(directory, name.branch, name.system_table)
    else:
        raise InvalidInputError(f"no table is named: pass its path to load() or save(). {SPARK_CATALOG}")
    if branch is not None and location.branch not in (None, branch):
        raise InvalidInputError(
            f"option 'branch' is {branch!r}, but the table's name has branch {location.branch!r}: keep one"
        )
    chosen = branch or location.branch
    return TableAddress(location.path, chosen, storage, location.system_table, warehouse, catalog, trust)


def _name_ends(named: dict[str, str]) -> None:
    """Replace other formats' options for the ends of a batch of changes with ``incremental-between``.

    ``start-snapshot-id`` is exclusive, as in Iceberg; ``startingVersion`` with ``readChangeFeed`` is inclusive, as in
    Delta. Without an end, the changes go through the newest snapshot.
    """
    first, last = (pop(named, key, integer_from(0), None) for key in ("start-snapshot-id", "end-snapshot-id"))
    start, end = None, pop(named, "endingVersion", integer_from(1), None)
    if (named.get("startingversion") or "").isdigit() and named.get("read.changelog", "").lower() == "true":
        start = pop(named, "startingVersion", integer_from(1), None)
    if (first is None and last is not None) or (start is None and end is not None):
        raise InvalidInputError(
            "the start of changes is missing: 'end-snapshot-id' needs 'start-snapshot-id', and 'endingVersion' needs "
            "'readChangeFeed' = 'true' with 'startingVersion'"
        )
    for after, through in ((first, last), (None if start is None else start - 1, end)):
        if after is None:
            continue
        if not named.keys().isdisjoint(ENDS):
            raise InvalidInputError("several options set the ends of the changes: keep one pair")
        named[ENDS[0]] = f"{after},{'latest' if through is None else through}"


def _pop_starting_version(named: dict[str, str]) -> None:
    """Replace Delta's ``startingVersion``: ``latest``, or the first snapshot whose changes are read."""
    version = named.pop("startingversion", None)
    if version is None:
        return
    key, value = ("scan.mode", "latest") if version.lower() == "latest" else ("scan.snapshot-id", version)
    if named.setdefault(key, value) != value:
        raise InvalidInputError(
            f"options 'startingVersion' = {version!r} and {key!r} = {named[key]!r} disagree: keep one"
        )


def pop_time_travel(named: dict[str, str]) -> dict[str, Any]:
    """Remove the time-travel option and return it as an argument of `Table.scan`; `{}`: no option is set."""
    chosen = [key for key in TIME_TRAVEL_OPTIONS if key in named]
    if len(chosen) > 1:
        raise InvalidInputError(f"options {', '.join(map(repr, chosen))} each choose a snapshot: set only one")
    mode = named.pop("scan.mode", "default")
    if mode.lower() not in _BATCH_MODES:
        raise UnsupportedError(f"option 'scan.mode' = {mode!r} is not supported for batch reads")
    needed = _BATCH_MODES[mode.lower()]
    if not chosen and needed is not None:
        raise InvalidInputError(f"option 'scan.mode' = {mode!r} needs a time-travel option, such as {needed!r}")
    return {TIME_TRAVEL_OPTIONS[key]: pop(named, key, _PARSERS.get(key, str), None) for key in chosen}


def _pop_transaction(named: dict[str, str]) -> tuple[str | None, int | None]:
    """Remove and return the commit user and the version of the write; `None`: not set."""
    user, application = named.pop("commit.user", None), named.pop("txnappid", None)
    version = pop(named, "txnVersion", integer_from(0), None)
    if (application is None) != (version is None):
        raise InvalidInputError("options 'txnAppId' and 'txnVersion' go together: set both or neither")
    if application is not None and user not in (None, application):
        raise InvalidInputError(
            f"options 'commit.user' = {user!r} and 'txnAppId' = {application!r} disagree: set only 'txnAppId'"
        )
    if application == "":
        raise InvalidInputError("option 'txnAppId' is empty: use a name that no other writer of the table has")
    return application or user, version


def _pop_properties(named: dict[str, str]) -> dict[str, str]:
    """Remove and return the properties of the snapshot; names are in lower case, as Spark passes them."""
    properties = {key.removeprefix(PROPERTY): named.pop(key) for key in list(named) if key.startswith(PROPERTY)}
    if "" in properties:
        raise InvalidInputError(f"option {PROPERTY!r} lacks a name: write {PROPERTY}<name>")
    return properties


def _pop_overwrite_mode(named: dict[str, str]) -> bool:
    """Return True if mode overwrite replaces only the partitions in the data; by default it replaces the table."""
    mode = pop(named, "partitionOverwriteMode", enum("static", "dynamic"), None)
    flag = pop(named, "dynamic-partition-overwrite", boolean, None)
    if mode is not None and flag is not None and (mode == "dynamic") != flag:
        raise InvalidInputError(
            f"options 'partitionOverwriteMode' = {mode!r} and 'dynamic-partition-overwrite' = {flag} disagree: keep one"
        )
    return mode == "dynamic" or bool(flag)
