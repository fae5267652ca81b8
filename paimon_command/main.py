"""The group of all subcommands, and the entry point of the console script."""

import logging
import warnings
from difflib import get_close_matches

import click

from paimon_command.command_registry import COMMANDS

PROGRAM = "paimon-spark"


class Commands(click.Group):
    """A command group that suggests the nearest subcommand for an unknown name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand that the arguments name. Raises UsageError, which exits with 2."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            near = get_close_matches(args[0], self.commands, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(self.commands))}"
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    PROGRAM,
    cls=Commands,
    commands={one.name: one for one in COMMANDS if one.name},
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
