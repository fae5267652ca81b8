"""Procedures that rewrite files without changing rows. The cluster runs their tasks."""

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import TypeVar

from paimon_core.catalog.identifier import Identifier
from paimon_core.errors import InvalidInputError, PaimonError
from paimon_core.operations.compaction.compact_manifests import manifests_to_compact
from paimon_core.operations.compaction.request import CompactionRequest, RescaleRequest
from paimon_core.operations.compaction.rewrite_result import RewriteResult, RewrittenFiles
from paimon_core.operations.partitions.idle_partitions import idle_partitions
from paimon_core.operations.table_maintenance import TableMaintenance
from paimon_core.options.parse import column_list, duration, number_list
from paimon_core.predicate.filter import Filter
from paimon_core.procedures.procedure import DONE, Call, Rows, procedure

REWRITE_RESULT = (
    "result BOOLEAN, snapshot_id BIGINT, files_before BIGINT, bytes_before BIGINT, rows_before BIGINT, "
    "files_after BIGINT, bytes_after BIGINT, rows_after BIGINT, milliseconds BIGINT"
)
"""The column of Paimon, and after it the fields of a `RewriteResult`."""
_STRATEGIES = ("full", "minor")
_ORDERS = ("none", "order", "zorder", "hilbert")
_log = logging.getLogger(__name__)

T = TypeVar("T")


@procedure(
    "compact(table STRING, [partitions STRING], [compact_strategy STRING], [order_strategy STRING], "
    "[order_by STRING], [where STRING], [options STRING], [partition_idle_time STRING], [buckets STRING])",
    REWRITE_RESULT,
)
def compact(call: Call) -> Rows:
    """Compact all files or, with compact_strategy 'minor', the files that are due; with order_by, sort the rows.

    partition_idle_time: only partitions whose newest file is at least this old. buckets: only these, for example
    '0-99,150'.
    """
    strategy, order = _choice(call, "compact_strategy", _STRATEGIES), _choice(call, "order_strategy", _ORDERS)
    columns = call.text("order_by")
    if columns is not None and order == "none":
        raise InvalidInputError("order_by needs an order_strategy: 'order', 'zorder' or 'hilbert'")
    table = call.table().with_options(call.options())
    _at_most_one(call)
    partitions, where, idle = call.partitions(table), call.where(table), _parsed(call, "partition_idle_time", duration)
    condition: Filter = where
    if idle is not None:
        condition, partitions = idle_partitions(table.store, idle, partitions, where), None
        if condition is None:
            return _rewritten(RewriteResult(None, RewrittenFiles(), 0.0))
    request = CompactionRequest(
        full=strategy == "full",
        order_by=_parsed(call, "order_by", column_list),
        order_strategy=None if order == "none" else order,
        partitions=partitions,
        filter=condition,
        buckets=_parsed(call, "buckets", number_list),
    )
    return _rewritten(TableMaintenance(table.store, call.runner(table)).run(request))


@procedure("compact_manifest(table STRING, [options STRING], [dry_run BOOLEAN])")
def compact_manifest(call: Call) -> Rows:
    """Merge the manifests of the newest snapshot into a few large ones; a dry run returns whether any would change."""
    store = call.table().with_options(call.options()).store
    if call["dry_run"]:
        newest = store.snapshots.latest()
        return [(newest is not None and manifests_to_compact(store, newest),)]
    TableMaintenance(store).compact_manifests()
    return DONE


@procedure("materialize_deletion_vectors(table STRING, [partitions STRING], [options STRING], [where STRING])")
def materialize_deletion_vectors(call: Call) -> Rows:
    """Rewrite the files that have deletion vectors, so that no deletion vectors remain; not with data evolution."""
    _at_most_one(call)
    table = call.table().with_options(call.options())
    verbs = TableMaintenance(table.store, call.runner(table))
    verbs.materialize_deletion_vectors(partitions=call.partitions(table), filter=call.where(table))
    return DONE


@procedure("rewrite_file_index(table STRING, [where STRING])", "written_partitions INT, written_indexes INT")
def rewrite_file_index(call: Call) -> Rows:
    """Write the missing file indexes that the table's options require, without rewriting rows."""
    table = call.table()
    result = TableMaintenance(table.store, call.runner(table)).index_files(filter=call.where(table))
    return [(result.partitions, result.files)]


@procedure("reassign_row_id(table STRING, [partitions STRING])", "result STRING")
def reassign_row_id(call: Call) -> Rows:
    """Give each partition of a table with data evolution a separate range of row ids; only metadata is written."""
    table = call.table()
    if not table.schema.partition_keys:
        snapshot, why = None, "table is not partitioned"
    else:
        snapshot, why = table.maintenance.reassign_row_ids(partitions=call.partitions(table)), "no row ids overlap"
    call.refresh()
    return [(f"Skipped. {why}." if snapshot is None else f"Success. Snapshot {snapshot.id} has the new row ids.",)]


@procedure(
    "compact_database([including_databases STRING], [including_tables STRING], [excluding_tables STRING], "
    "[options STRING])",
    "result STRING",
)
def compact_database(call: Call) -> Rows:
    """Compact each table whose database and whose full name 'database.table' match regular expressions."""
    databases, tables = _pattern(call, "including_databases", ".*"), _pattern(call, "including_tables", ".*")
    excluded, options, failed, compacted = _pattern(call, "excluding_tables", ""), call.options(), [], 0
    for database in call.catalog.list_databases():
        for name in call.catalog.list_tables(database) if databases.fullmatch(database) else ():
            full = f"{database}.{name}"
            if not tables.fullmatch(full) or excluded.fullmatch(full):
                continue
            identifier = Identifier.parse(f"`{database}`.`{name}`")
            try:
                if call.catalog.is_format_table(identifier):
                    continue
                table = call.opened(identifier).with_options(options)
                table.compact(full=True, runner=call.runner(table))
                compacted += 1
            except (PaimonError, OSError) as error:
                failed.append(full)
                _log.warning("%s was not compacted: %s", full, error)
    which = f" ({', '.join(failed)})" if failed else ""
    return [(f"Compact database finished. Success: {compacted}, Failed: {len(failed)}{which}",)]


@procedure(
    "rescale(table STRING, [bucket_num INT], [partitions STRING], [where STRING], [scan_parallelism INT], "
    "[sink_parallelism INT])",
    REWRITE_RESULT,
)
def rescale(call: Call) -> Rows:
    """Change the number of buckets and rewrite the partitions; without bucket_num, use the table's number."""
    for name in ("scan_parallelism", "sink_parallelism"):
        call.refuse(name, "remove it")
    _at_most_one(call)
    table, buckets = call.table(), call["bucket_num"]
    if buckets is not None and buckets < 1:
        raise InvalidInputError(f"bucket_num must be 1 or more, not {buckets}")
    maintenance = TableMaintenance(table.store, call.runner(table))
    request = RescaleRequest(buckets=buckets, partitions=call.partitions(table), filter=call.where(table))
    return _rewritten(maintenance.run(request))


def _rewritten(result: RewriteResult) -> Rows:
    """Return the row of a compaction or a rescale; NULL for numbers that are unknown."""
    files = result.rewritten
    numbers = (None,) * 6 if files is None else astuple(files)
    snapshot = None if result.snapshot is None else result.snapshot.id
    return [(True, snapshot, *numbers, round(result.seconds * 1000))]


def _choice(call: Call, name: str, choices: Sequence[str]) -> str:
    """Return an argument that must be one of the choices, in any case; the first choice is the default."""
    value = (call.text(name) or choices[0]).lower()
    if value not in choices:
        raise InvalidInputError(
            f"argument {name!r} of {call.procedure.name} must be one of {list(choices)}, not {value!r}"
        )
    return value


def _parsed(call: Call, name: str, parse: Callable[[str], T]) -> T | None:
    """Return the value of a text argument; `None` without the argument.

    Raises InvalidInputError if ``parse`` raises ValueError, whose message continues the text.
    """
    text = call.text(name)
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise InvalidInputError(f"argument {name!r} of {call.procedure.name}: {text!r} {error}") from None


def _at_most_one(call: Call) -> None:
    if call.text("partitions") is not None and call.text("where") is not None:
        raise InvalidInputError("partitions and where both select partitions: use one of them")


def _pattern(call: Call, name: str, default: str) -> re.Pattern[str]:
    text = call.text(name) or default
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidInputError(f"argument {name!r}: {text!r} is not a regular expression: {error}") from error
