"""Call procedures, as SQL's CALL does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from paimon_command import completions
from paimon_command.invocation import Invocation, command
from paimon_command.location import directory_catalog, is_path, named_warehouse, open_table
from paimon_command.output import Answer
from paimon_core import Table
from paimon_core.engine import PROCEDURES, Call, Parameter, Procedure, Runner, checked_values, find_procedure
from paimon_core.options.parse import boolean

_READ: Mapping[str, Callable[[str], Any]] = {"STRING": str, "INT": int, "BIGINT": int, "BOOLEAN": boolean}


@dataclass(frozen=True, kw_only=True)
class CommandCall(Call):
    """A call from a terminal, in which tables may be paths and take the options of ``--option``."""

    invocation: Invocation
    tasks: Runner

    def table(self, name: str = "table") -> Table:
        """Return the table that an argument names by name or path. Raises NotFoundError if it does not exist."""
        if is_path(self[name]):
            return open_table(self[name], None, self.invocation["option"])
        return super().table(name)

    def runner(self, table: Table) -> Runner:
        """Return the runner of the call."""
        return self.tasks


@command(
    "call",
    click.Argument(["procedure"], required=False, shell_complete=completions.procedures),
    click.Argument(["arguments"], nargs=-1, metavar="[NAME=VALUE]...", shell_complete=completions.procedure_arguments),
    table=False,
    spark=True,
)
def call(call: Invocation) -> Answer:
    """Run a procedure of SQL's CALL, with its arguments and its defaults; without a name, list all procedures.

    Such as: call expire_tags table=shop.orders 'older_than=2026-01-31 12:00'
    """
    if call["procedure"] is None:
        rows = [{"procedure": one.signature, "effect": one.effect} for _, one in sorted(PROCEDURES.items())]
        return Answer(rows)
    procedure = find_procedure(call["procedure"])
    values = checked_values(procedure, _values(procedure, call["arguments"]))
    table = values.get("table")
    if named_warehouse(call["warehouse"]) is None and table is not None and is_path(table):
        catalog = directory_catalog(table.rstrip("/").rpartition("/")[0] or "/", call["option"])  # looks up no name
    else:
        catalog = call.catalog()
    with call.runner(procedure.name) as runner:
        rows_found = procedure.run(CommandCall(catalog, "paimon", procedure, values, invocation=call, tasks=runner))
    names = [column.split()[0] for column in procedure.result.split(", ")]
    return Answer([dict(zip(names, row, strict=True)) for row in rows_found])


def _values(found: Procedure, texts: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments as values of their types. Raises UsageError for an invalid text."""
    parameters = {one.name: one for one in found.parameters}
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"{text!r} is not NAME=VALUE: {found.signature}")
        if name in values:
            raise click.UsageError(f"argument {name!r} is given twice")
        values[name] = _value(parameters[name], value) if name in parameters else value
    return values


def _value(parameter: Parameter, text: str) -> Any:
    try:
        return _READ[parameter.type](text)
    except ValueError:
        raise click.UsageError(f"argument {parameter.name!r}: {text!r} is no {parameter.type}") from None
