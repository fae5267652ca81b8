"""All subcommands, in the groups of ``paimon-spark --help``. To add one, add a line here.

The module of a subcommand is imported when the subcommand is used, so that ``--help`` does not import the engine.
"""

from dataclasses import dataclass
from importlib import import_module
from keyword import iskeyword

import click

_PACKAGE = "paimon_command.commands"


@dataclass(frozen=True, slots=True)
class Registered:
    """A registered subcommand: the function ``name`` of a module of `paimon_command.commands`, ``import_`` for import.

    Args:
        name: the name of the subcommand and of its function.
        module: the name of the module.
        summary: the line of ``--help``, at most 64 characters.
    """

    name: str
    module: str
    summary: str

    def load(self) -> click.Command:
        """Import the module and return the subcommand."""
        function = f"{self.name}_" if iskeyword(self.name) else self.name
        command: click.Command = getattr(import_module(f"{_PACKAGE}.{self.module}"), function)
        return command


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """A group of subcommands in the help.

    Args:
        title: the heading of the group.
        example: a call of one of the subcommands, without the name of the program.
        commands: the subcommands, in the order of the help.
    """

    title: str
    example: str
    commands: tuple[Registered, ...]


GROUPS: tuple[CommandGroup, ...] = (
    CommandGroup(
        "Look",
        "show shop.orders",
        (
            Registered("ls", "listing", "List the databases and tables of a warehouse."),
            Registered("show", "listing", "Show a table's keys, options, files, tags and branches."),
            Registered("schema", "listing", "Show the columns of a table."),
            Registered("files", "metadata", "List the data files of the newest snapshot."),
            Registered("partitions", "metadata", "List the partitions."),
        ),
    ),
    CommandGroup(
        "Read",
        'read shop.orders --filter "amount > 3.5"',
        (
            Registered("read", "reading", "Read rows of a table, a branch or a system table."),
            Registered("get", "reading", "Look up the row of a primary key."),
            Registered("tail", "reading", "Print changes as they are committed."),
            Registered("explain", "reading", "Explain which files a read opens, and why."),
        ),
    ),
    CommandGroup(
        "History",
        "tag shop.orders before-cleaning",
        (
            Registered("snapshots", "metadata", "List the snapshots that have not expired."),
            Registered("tags", "metadata", "List the tags."),
            Registered("tag", "history", "Create, replace, rename or delete a tag."),
            Registered("branches", "metadata", "List the branches."),
            Registered("branch", "history", "Create, rename, delete, merge or fast-forward a branch."),
            Registered("rollback", "history", "Make an older snapshot or a tag the newest state."),
            Registered("consumers", "history", "List, change or delete the positions of named streams."),
        ),
    ),
    CommandGroup(
        "Change",
        "delete shop.orders --where \"dt < '2026-01-01'\" --dry-run",
        (
            Registered("create", "changing", "Create a database or a table."),
            Registered("alter", "changing", "Change the options and the columns of a table."),
            Registered("rename", "changing", "Rename a table."),
            Registered("drop", "changing", "Drop a database or a table."),
            Registered("import", "changing", "Write rows of CSV, JSON, Parquet, Avro or ORC files."),
            Registered("delete", "rows", "Delete the rows that match a filter."),
        ),
    ),
    CommandGroup(
        "Maintain",
        "compact shop.orders --full",
        (
            Registered("compact", "maintenance", "Compact files; the rows do not change."),
            Registered("rescale", "maintenance", "Change the number of buckets."),
            Registered("expire", "maintenance", "Remove old snapshots and the files that only they need."),
            Registered("orphans", "maintenance", "Find or delete files that nothing refers to."),
        ),
    ),
    CommandGroup(
        "Check",
        "advice shop.orders",
        (
            Registered("verify", "checks", "Check a table for contradictions to the format."),
            Registered("repair", "checks", "Repair the faults that verify finds."),
            Registered("advice", "checks", "Say what would make a table faster or smaller."),
            Registered("doctor", "checks", "Test whether a storage supports what commits need."),
        ),
    ),
    CommandGroup(
        "SQL",
        'sql --warehouse /tmp/warehouse -e "SHOW TABLES IN shop"',
        (Registered("sql", "querying", "Run SQL: a prompt, statements or files."),),
    ),
    CommandGroup(
        "Serve",
        "serve --warehouse /tmp/warehouse --connect --thrift",
        (Registered("serve", "serving", "Serve a warehouse to SQL clients: Spark Connect and JDBC."),),
    ),
    CommandGroup(
        "More",
        "options compact",
        (
            Registered("options", "options", "Explain the options of tables."),
            Registered("call", "calling", "Run a procedure of SQL's CALL, or list them."),
            Registered("completion", "completion", "Print the completion script of a shell."),
            Registered("help", "helping", "Describe all subcommands and their options, also as JSON."),
        ),
    ),
)
"""All groups, in the order of the help."""

COMMANDS = {command.name: command for group in GROUPS for command in group.commands}
"""All subcommands by name."""
