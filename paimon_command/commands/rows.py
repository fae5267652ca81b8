"""Row changes."""

import click

from paimon_command.invocation import Invocation, command
from paimon_command.output import Answer


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
        return Answer({"dry_run": True, "rows": rows}, f"{rows} rows of {table.path} match and would be deleted")
    with call.runner(table.path) as runner, call.progress() as progress:
        snapshot = table.delete(where, runner=runner, progress=progress)
    if snapshot is None:
        return Answer({"snapshot": None}, f"no row of {table.path} matches")
    return Answer({"snapshot": snapshot.id}, f"the rows are deleted in snapshot {snapshot.id}")
