"""Procedures that verify and repair a table, and the entries of tables in a metastore."""

from paimon_core.options.parse import comma_list
from paimon_core.procedures.procedure import DONE, Call, Rows, procedure


@procedure("verify_table(table STRING, [deep BOOLEAN])", "kind STRING, path STRING, message STRING")
def verify_table(call: Call) -> Rows:
    """Find everything that contradicts the format, with deep also in the rows; each result row is a fault."""
    report = call.table().verify(bool(call["deep"]))
    return [(fault.kind, fault.path, fault.message) for fault in report.faults]


@procedure(
    "repair_table(table STRING, [deep BOOLEAN], [missing_files BOOLEAN], [dry_run BOOLEAN])",
    "kind STRING, path STRING, message STRING, repaired BOOLEAN, advice STRING",
)
def repair_table(call: Call) -> Rows:
    """Repair the faults of verify_table that need no guess; missing_files removes data files that do not exist.

    Each result row is a fault; remaining faults have advice.
    """
    table = call.table()
    report = table.repair(
        deep=bool(call["deep"]), missing_files=bool(call["missing_files"]), dry_run=bool(call["dry_run"])
    )
    call.refresh()
    repaired = [(fault.kind, fault.path, fault.message, True, None) for fault in report.repaired]
    remaining = [(left.fault.kind, left.fault.path, left.fault.message, False, left.advice) for left in report.left]
    return [*repaired, *remaining]


@procedure(
    "repair_earliest_snapshot(table STRING, snapshot_id BIGINT)",
    "previous_earliest_snapshot_id BIGINT, current_earliest_snapshot_id BIGINT",
)
def repair_earliest_snapshot(call: Call) -> Rows:
    """Make a snapshot after a gap the earliest one; only the hint EARLIEST is written."""
    return [call.table().maintenance.repair_earliest_snapshot(call["snapshot_id"])]


@procedure("repair([database_or_table STRING])")
def repair(call: Call) -> Rows:
    """List the tables of a Hive catalog's warehouse, of databases or 'db.t', separated by commas, in its metastore."""
    call.catalog.repair(comma_list(call.text("database_or_table") or ""))
    return DONE
