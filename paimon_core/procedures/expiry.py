"""Procedures that delete old snapshots and unneeded files, and that mark partitions as complete."""

import time

from paimon_core.errors import InvalidInputError
from paimon_core.operations.jobs.runner import LOCAL
from paimon_core.operations.partitions.partitions_done import record_done
from paimon_core.operations.table_maintenance import TableMaintenance
from paimon_core.options.snapshot import SNAPSHOT_NUM_RETAINED_MIN
from paimon_core.procedures.procedure import DONE, Call, Rows, procedure

_MODES = ("distributed", "local")


@procedure(
    "expire_snapshots(table STRING, [retain_max INT], [retain_min INT], [older_than STRING], [max_deletes INT], "
    "[options STRING])",
    "deleted_snapshots_count INT, deleted_changelogs_count INT, deleted_files_count BIGINT, deleted_bytes BIGINT, "
    "milliseconds BIGINT",
)
def expire_snapshots(call: Call) -> Rows:
    """Delete old snapshots and the files that only they need; older_than is a time."""
    table = call.table().with_options(call.options())
    most, least = call["retain_max"], call["retain_min"]
    if least is None:
        least = table.store.options.value(SNAPSHOT_NUM_RETAINED_MIN)
        if most is not None and most < least:
            raise InvalidInputError(
                f"retain_max is {most}, but {table.path} keeps at least {least} snapshots: set retain_min as well, or "
                f"lower '{SNAPSHOT_NUM_RETAINED_MIN.key}'"
            )
    verbs, started = table.maintenance, time.monotonic()
    expired = verbs.expire_snapshots(call.millis("older_than"), most, least, max_deletes=call["max_deletes"])
    counts = (len(expired.snapshots), len(expired.changelogs), expired.files, expired.bytes)
    return [(*counts, _millis_since(started))]


@procedure(
    "expire_partitions(table STRING, [expiration_time STRING], [timestamp_formatter STRING], "
    "[timestamp_pattern STRING], [expire_strategy STRING], [max_expires INT], [options STRING])",
    "expired_partitions STRING",
)
def expire_partitions(call: Call) -> Rows:
    """Drop partitions older than a time such as '30 d', by their values or with 'update-time' by their newest file."""
    store = call.table().with_options(call.options()).store
    expired = TableMaintenance(store).expire_partitions(
        call.text("expiration_time"),
        timestamp_formatter=call.text("timestamp_formatter"),
        timestamp_pattern=call.text("timestamp_pattern"),
        strategy=call.text("expire_strategy"),
        max_num=call["max_expires"],
    )
    call.refresh()
    names = [", ".join(f"{column}={text}" for column, text in partition.items()) for partition in expired]
    return [(name,) for name in names or ["No expired partitions."]]


@procedure(
    "remove_orphan_files(table STRING, [older_than STRING], [dry_run BOOLEAN], [parallelism INT], [mode STRING])",
    "deletedFileCount BIGINT, deletedFileTotalLenInBytes BIGINT, milliseconds BIGINT",
)
def remove_orphan_files(call: Call) -> Rows:
    """Delete unreferenced files older than a time, by default a day; 'db.*' stands for all tables of a database.

    The row has the number and the bytes of the files, and the time.
    """
    call.refuse("parallelism", "remove it: the tasks use the whole cluster")
    mode = (call.text("mode") or _MODES[0]).lower()
    if mode not in _MODES:
        raise InvalidInputError(f"argument 'mode' of remove_orphan_files must be one of {list(_MODES)}, not {mode!r}")
    before, dry_run, count, total = call.millis("older_than"), bool(call["dry_run"]), 0, 0
    started = time.monotonic()
    for table in call.tables():
        runner = call.runner(table) if mode == _MODES[0] else LOCAL
        files = TableMaintenance(table.store, runner).remove_orphan_files(before, dry_run=dry_run)
        count, total = count + files.count, total + files.bytes
    return [(count, total, _millis_since(started))]


@procedure("mark_partition_done(table STRING, partitions STRING)")
def record_partitions_done(call: Call) -> Rows:
    """Write files _SUCCESS for complete partitions such as 'p=1,q=a;p=2', or report them to the server."""
    table = call.table()
    partitions = call.partitions(table)
    if not partitions:
        raise InvalidInputError("mark_partition_done needs partitions, such as 'dt=2026-01-31'")
    record_done(table.store, partitions)
    return DONE


@procedure("remove_unexisting_files(table STRING, [dry_run BOOLEAN], [parallelism INT])", "fileName STRING")
def remove_unexisting_files(call: Call) -> Rows:
    """Remove missing data files, and so their rows, from the table; the result lists their names."""
    call.refuse("parallelism", "remove it: directories are listed in parallel")
    table = call.table()
    names = table.maintenance.remove_missing_files(dry_run=bool(call["dry_run"]))
    call.refresh()
    return [(name,) for name in names]


@procedure("purge_files(table STRING)", "result STRING")
def purge_files(call: Call) -> Rows:
    """Remove all rows, branches, tags, consumers and old snapshots, and all files that are then unreferenced."""
    table = call.table()
    TableMaintenance(table.store, call.runner(table)).purge()
    call.refresh()
    return [("Success",)]


def _millis_since(started: float) -> int:
    """Return the milliseconds since a time of `time.monotonic`."""
    return round((time.monotonic() - started) * 1000)
