"""Subcommands for some system tables; ``read 'TABLE$name'`` reads the others."""

from collections.abc import Sequence

import click

from paimon_command.grid import Format, readable_size, short_path, without_fraction
from paimon_command.invocation import COLUMNS, FILTER, Invocation, command
from paimon_command.output import Answer, rows_of
from paimon_core.engine import SEPARATOR
from paimon_core.errors import hide_secrets

_LIMIT = click.Option(["--limit"], type=click.IntRange(min=0), help="At most this number of rows.")
_WIDE = click.Option(["--wide"], is_flag=True, help="Show all columns, exact sizes and times, and whole paths.")


def _system_table(name: str, columns: tuple[str, ...], help_text: str) -> click.Command:
    """Return the subcommand that shows a system table.

    Args:
        name: the name of the system table and of the subcommand.
        columns: the columns shown to people without ``--columns`` and ``--wide``. JSON output has all columns.
        help_text: the help text.
    """

    def run(call: Invocation) -> Answer:
        exact = call.output.as_json or call["wide"]
        shown = call["columns"] or (None if exact else list(columns))
        table = call.table().system_table(name)
        rows = list(rows_of(table.to_batches(shown, call["filter"], call["limit"])))
        text = None if rows else f"no rows in {table.location}"
        if exact or not rows:
            return Answer(rows, text)
        root = hide_secrets(str(call.table().path))
        return Answer(rows, formats=_formats(list(rows[0]), root), cut={"file_path": short_path})

    run.__doc__ = f"{help_text} The columns are those of the system table {SEPARATOR}{name}."
    return command(name, COLUMNS, FILTER, _LIMIT, _WIDE)(run)


def _formats(names: Sequence[str], root: str) -> dict[str, Format]:
    """Return the formats of columns: sizes and times for people, and paths relative to the table in ``root``."""
    formats: dict[str, Format] = {}
    for name in names:
        if name.endswith("_in_bytes"):
            formats[name] = readable_size
        elif name.endswith("_time"):
            formats[name] = without_fraction
        elif name == "file_path":
            formats[name] = lambda path: str(path).removeprefix(f"{root}/")
    return formats


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
tags = _system_table(
    "tags", ("tag_name", "snapshot_id", "commit_time", "record_count", "time_retained"), "List the tags."
)
branches = _system_table("branches", ("branch_name", "create_time"), "List the branches.")
partitions = _system_table(
    "partitions",
    ("partition", "record_count", "file_count", "file_size_in_bytes", "last_update_time"),
    "List the partitions.",
)
