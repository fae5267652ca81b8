"""Row changes."""

import time

import click

from paimon_command.invocation import Invocation, command
from paimon_command.output import Answer
from paimon_core.types.human_text import count, duration


@command(
    "delete",
    click.Option(
        ["--where"], required=True, metavar="FILTER", help="The rows to delete, such as \"dt < '2026-01-01'\"."
    ),
    dry_run=True,
    spark=True,
)
def delete(call: Invocation) -> Answer:
    """Delete the rows that match a filter, in one commit. Older snapshots keep them until they expire."""
    table, where = call.table(), call["where"]
    first = table.schema.fields[0].name
    if call["dry_run"]:
        table.maintenance  # noqa: B018  refuses a view that cannot be written
        rows = sum(batch.num_rows for batch in table.to_batches([first], where))
        return Answer({"dry_run": True, "rows": rows}, f"{count(rows, 'row')} of {table.path} would be deleted")
    with call.runner(table.path) as runner, call.progress() as progress:
        started = time.monotonic()
        deleted = table.delete_counted(where, runner=runner, progress=progress)
    seconds = time.monotonic() - started
    facts = {"snapshot": None, "rows": deleted.rows, "milliseconds": round(seconds * 1000)}
    if deleted.snapshot is None:
        return Answer(facts, f"no row of {table.path} matches")
    rows = "the rows" if deleted.rows is None else count(deleted.rows, "row")
    text = f"deleted {rows} in snapshot {deleted.snapshot.id}, in {duration(seconds)}"
    return Answer({**facts, "snapshot": deleted.snapshot.id}, text)
