"""Procedures that look for faults of a table, and mend them."""

from paimon_core.procedures.procedure import Call, Rows, procedure


@procedure("verify_table(table STRING, [deep BOOLEAN])", "kind STRING, path STRING, message STRING")
def verify_table(call: Call) -> Rows:
    """Look for everything that contradicts the format, with deep in the rows, too; the rows are the faults."""
    report = call.table().verify(bool(call["deep"]))
    return [(fault.kind, fault.path, fault.message) for fault in report.faults]


@procedure(
    "repair_table(table STRING, [deep BOOLEAN], [missing_files BOOLEAN], [dry_run BOOLEAN])",
    "kind STRING, path STRING, message STRING, mended BOOLEAN, advice STRING",
)
def repair_table(call: Call) -> Rows:
    """Mend what verify_table finds, as far as nothing is guessed; missing_files lets data files go that do not exist.

    The rows are the faults, with advice for those that stay.
    """
    table = call.table()
    report = table.repair(
        deep=bool(call["deep"]), missing_files=bool(call["missing_files"]), dry_run=bool(call["dry_run"])
    )
    call.refresh()
    mended = [(fault.kind, fault.path, fault.message, True, None) for fault in report.mended]
    left = [(one.fault.kind, one.fault.path, one.fault.message, False, one.advice) for one in report.left]
    return [*mended, *left]


@procedure(
    "repair_earliest_snapshot(table STRING, snapshot_id BIGINT)",
    "previous_earliest_snapshot_id BIGINT, current_earliest_snapshot_id BIGINT",
)
def repair_earliest_snapshot(call: Call) -> Rows:
    """Let the history begin at a snapshot that follows a gap; only the hint EARLIEST is written."""
    return [call.table().maintenance.repair_earliest_snapshot(call["snapshot_id"])]
