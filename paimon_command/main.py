"""The group of all subcommands, and the entry point of the console script."""

import logging
import warnings
from difflib import get_close_matches

import click
from click.shell_completion import CompletionItem

from paimon_command.command_registry import COMMANDS, GROUPS

PROGRAM = "paimon-spark"


class Commands(click.Group):
    """The group of the registered subcommands, which imports only the subcommand that is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all subcommands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a subcommand; `None` if the name is unknown."""
        return COMMANDS[cmd_name].load() if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand that the arguments name, and suggest the nearest one for an unknown name.

        Raises UsageError, which exits with 2.
        """
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(COMMANDS))}"
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands in groups, each with an example."""
        width = max(map(len, COMMANDS))
        for group in GROUPS:
            with formatter.section(group.title):
                formatter.write_dl([(command.name.ljust(width), command.summary) for command in group.commands])
                formatter.write(f"{'':{formatter.current_indent}}$ {PROGRAM} {group.example}\n")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the subcommands that begin with a text, without importing them."""
        items = [
            CompletionItem(name, help=one.summary) for name, one in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group(
    PROGRAM,
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog="Exit codes: 0 fine; 1 a problem was found, or the action failed; 2 wrong usage.",
)
@click.version_option(package_name="pyspark-paimon", prog_name=PROGRAM)
def command() -> None:
    """Apache Paimon tables: list, read, inspect and maintain them.

    TABLE is a directory with a slash, such as /warehouse/shop.db/orders or ./orders, or a name such as shop.orders with
    --warehouse (or the variable PAIMON_WAREHOUSE). '$branch_b' behind it chooses a branch, '$files' a system table.
    """


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning without its source line."""
    click.echo(f"Warning: {message}", err=True)


def main() -> None:
    """Run the command with the arguments of the process, then exit."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    warnings.showwarning = _show_warning
    command(prog_name=PROGRAM)
