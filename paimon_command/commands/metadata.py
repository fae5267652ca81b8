"""Subcommands for some system tables; ``read 'TABLE$name'`` reads the others."""

import click

from paimon_command.invocation import COLUMNS, FILTER, Invocation, command
from paimon_command.output import Answer, rows_of
from paimon_core.engine import SEPARATOR

_LIMIT = click.Option(["--limit"], type=click.IntRange(min=0), help="At most this number of rows.")


def _system_table(name: str, columns: tuple[str, ...], help_text: str) -> click.Command:
    """Return the subcommand that shows a system table.

    Args:
        name: the name of the system table and of the subcommand.
        columns: the columns shown to people without ``--columns``; empty: all. JSON output has all columns.
        help_text: the help text.
    """

    def run(call: Invocation) -> Answer:
        shown = call["columns"] or (None if call.output.as_json or not columns else list(columns))
        table = call.table().system_table(name)
        rows = list(rows_of(table.to_batches(shown, call["filter"], call["limit"])))
        return Answer(rows, None if rows else f"no rows in {table.location}")

    run.__doc__ = f"{help_text} The columns are the same as in the system table {SEPARATOR}{name}."
    return command(name, COLUMNS, FILTER, _LIMIT)(run)


files = _system_table(
    "files",
    ("partition", "bucket", "level", "record_count", "file_size_in_bytes", "file_path"),
    "List the data files of the newest snapshot.",
)
snapshots = _system_table(
    "snapshots",
    ("snapshot_id", "commit_time", "commit_kind", "schema_id", "total_record_count", "delta_record_count"),
    "List the snapshots that have not expired.",
)
tags = _system_table("tags", (), "List the tags.")
branches = _system_table("branches", (), "List the branches.")
partitions = _system_table(
    "partitions",
    ("partition", "record_count", "file_count", "file_size_in_bytes", "last_update_time"),
    "List the partitions.",
)
