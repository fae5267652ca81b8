"""One invocation of a subcommand, and the decorator that turns a function into a subcommand."""

import errno
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import getdoc
from typing import Any

import click

from paimon_command import completions
from paimon_command.location import catalog_of, open_any_table, open_table
from paimon_command.output import Answer, Output
from paimon_command.progress import progress_bar
from paimon_command.spark import spark_runner
from paimon_core import Catalog, Table
from paimon_core.engine import LOCAL, AnyTable, Progress, Runner
from paimon_core.errors import PaimonError, hide_secrets

_WHEN = ("snapshot_id", "tag", "timestamp", "version", "watermark")


@dataclass(frozen=True)
class Invocation:
    """The values of all parameters by name, and the output."""

    name: str
    values: Mapping[str, Any]
    output: Output

    def __getitem__(self, name: str) -> Any:
        """Return the value of a parameter; `None` if it is not set."""
        return self.values[name]

    def table(self) -> Table:
        """Return the table that the argument TABLE names.

        Raises NotFoundError if it does not exist, UnsupportedError for a system table.
        """
        return open_table(self["table"], self["warehouse"], self["option"])

    def any_table(self) -> AnyTable:
        """Return the table or the system table that the argument TABLE names. Raises NotFoundError as `table`."""
        return open_any_table(self["table"], self["warehouse"], self["option"])

    def catalog(self) -> Catalog:
        """Return the catalog of the option ``--warehouse``. Raises UsageError without it."""
        return catalog_of(self["warehouse"], self["option"])

    def when(self) -> dict[str, Any]:
        """Return the time travel that the options choose, as keyword arguments of a read."""
        return {name: self[name] for name in _WHEN if self[name] is not None}

    def changed(self, subject: str, done: str, facts: Mapping[str, object]) -> Answer:
        """Return the result of an action, such as ``tag 'x'`` that is ``deleted``, or of its dry run."""
        if self["dry_run"]:
            return Answer({"dry_run": True, **facts}, f"{subject} would be {done}")
        return Answer(facts, f"{subject} is {done}")

    @contextmanager
    def runner(self, what: str) -> Iterator[Runner]:
        """Yield the task runner: with ``--spark`` on a session whose name contains ``what``, else in this process."""
        if self["spark"] is None:
            yield LOCAL
        else:
            with spark_runner(self["spark"], f"{self.name} {hide_secrets(what)}") as runner:
                yield runner

    @contextmanager
    def progress(self) -> Iterator[Progress | None]:
        """Yield the function that receives progress reports for a bar on a terminal, else `None`."""
        with progress_bar(self.name) as report:
            yield report


def command(
    name: str,
    *parameters: click.Parameter,
    table: bool = True,
    storage: bool = True,
    dry_run: bool = False,
    spark: bool = False,
) -> Callable[[Callable[[Invocation], Answer | None]], click.Command]:
    """Return a decorator that turns a function into a subcommand; the docstring is the help.

    Args:
        name: the name of the subcommand.
        parameters: its own arguments and options.
        table: True if the first argument is TABLE.
        storage: True to add the options ``--warehouse`` and ``--option``.
        dry_run: True to add an option ``--dry-run``.
        spark: True to add an option ``--spark``.
    """
    given = [click.Argument(["table"], shell_complete=completions.tables)] if table else []
    shared = [_JSON, *(_STORAGE if storage else []), *([_DRY_RUN] if dry_run else []), *([_SPARK] if spark else [])]

    def made(run: Callable[[Invocation], Answer | None]) -> click.Command:
        def callback(**values: Any) -> None:
            output = Output(as_json=values["as_json"])
            with _failures():
                answer = run(Invocation(name, values, output))
                if answer is not None:
                    output.show(answer)
            if answer is not None and answer.problem:
                raise SystemExit(1)

        return click.Command(name, callback=callback, params=[*given, *parameters, *shared], help=getdoc(run))

    return made


@contextmanager
def _failures() -> Iterator[None]:
    """Turn errors of the engine and of the storage into a message and exit code 1."""
    try:
        yield
    except PaimonError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        raise click.ClickException(hide_secrets(f"{type(error).__name__}: {error}")) from error


def pairs(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return texts ``key=value`` as a dict. Raises BadParameter (exit code 2) for an invalid text."""
    pairs = dict(value.partition("=")[::2] for value in values)
    for value in values:
        if "=" not in value or value.startswith("="):
            raise click.BadParameter(f"{value!r} is not 'key=value'", ctx, parameter)
    if len(pairs) < len(values):
        raise click.BadParameter("a key is given twice", ctx, parameter)
    return pairs


_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")
_STORAGE = (
    click.Option(
        ["--warehouse", "-w"],
        envvar="PAIMON_WAREHOUSE",
        metavar="DIRECTORY",
        help="The directory of the databases, if TABLE is a name. Default: the variable PAIMON_WAREHOUSE.",
    ),
    click.Option(
        ["--option", "-o"],
        multiple=True,
        callback=pairs,
        metavar="KEY=VALUE",
        help="An option of the storage, such as s3.endpoint, or of the table, for this call only. Repeatable.",
    ),
)
_DRY_RUN = click.Option(["--dry-run"], is_flag=True, help="Change nothing; say what would change.")
_SPARK = click.Option(
    ["--spark"], metavar="MASTER", help="Spread the work over Spark: 'local[4]', 'spark://host:7077' or 'yarn'."
)

WHEN = (
    click.Option(["--snapshot-id"], type=int, help="Read this snapshot."),
    click.Option(["--tag"], help="Read the snapshot of this tag."),
    click.Option(
        ["--timestamp"], help="Read the newest snapshot at or before this time: text in local time, or epoch ms."
    ),
    click.Option(["--version"], help="Read this tag, or else this snapshot id."),
    click.Option(["--watermark"], type=int, help="Read the oldest snapshot with at least this watermark."),
)
"""Options for time travel; see `Invocation.when`."""

FILTER = click.Option(["--filter"], metavar="TEXT", help="Only rows that match, such as \"a > 1 AND b IN ('x')\".")
COLUMNS = click.Option(
    ["--columns"],
    metavar="A,B",
    callback=lambda c, p, v: split(v),
    shell_complete=completions.columns,
    help="Only these columns.",
)


def split(text: str | None) -> list[str] | None:
    """Return the names of a comma-separated list; `None` if the option is not set."""
    return None if text is None else [name.strip() for name in text.split(",")]
