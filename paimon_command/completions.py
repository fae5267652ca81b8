"""Completion of tables, columns, procedures and options in a shell.

A completion prints nothing: if a table or a warehouse cannot be read, nothing is proposed.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

from paimon_command.location import catalog_of, is_path, open_any_table
from paimon_core.engine import PROCEDURES, AnyTable
from paimon_core.errors import PaimonError
from paimon_core.options import ALL_OPTIONS

Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _proposals(function: Callable[[click.Context, str], Iterable[str]]) -> Complete:
    """Turn a function that returns texts into a completion, which proposes nothing after an error."""

    @wraps(function)
    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            texts = list(function(ctx, incomplete))
        except (PaimonError, OSError, ValueError, click.ClickException):
            return []
        return [CompletionItem(text) for text in texts if text.startswith(incomplete)]

    return complete


def _or_directory(names: Complete) -> Complete:
    """Complete a directory where the text is a path, else a name."""

    @wraps(names)
    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if is_path(incomplete):
            return [CompletionItem(incomplete, type="dir")]
        return names(ctx, parameter, incomplete)

    return complete


@_or_directory
@_proposals
def tables(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Complete the name of a table in the warehouse, or a directory."""
    catalog = catalog_of(ctx.params.get("warehouse"), ctx.params.get("option") or {})
    database, dot, _ = incomplete.partition(".")
    for name in catalog.list_databases():
        if name == database or (not dot and name.startswith(database)):
            yield from (f"{name}.{table}" for table in catalog.list_tables(name))


@_or_directory
@_proposals
def databases(ctx: click.Context, incomplete: str) -> list[str]:
    """Complete the name of a database in the warehouse, or a directory."""
    return catalog_of(ctx.params.get("warehouse"), ctx.params.get("option") or {}).list_databases()


@_proposals
def columns(ctx: click.Context, incomplete: str) -> list[str]:
    """Complete the last name of a list of columns, such as ``id,am``."""
    chosen, comma, _ = incomplete.rpartition(",")
    names = [field.name for field in _table(ctx).schema.fields]
    return [f"{chosen}{comma}{name}" for name in names if name not in chosen.split(",")]


@_proposals
def key_columns(ctx: click.Context, incomplete: str) -> list[str]:
    """Complete the next part of a primary key, such as ``id=``."""
    named = {text.partition("=")[0] for text in ctx.params.get("key") or ()}
    return [f"{name}=" for name in _table(ctx).schema.primary_keys if name not in named]


@_proposals
def procedures(ctx: click.Context, incomplete: str) -> list[str]:
    """Complete the name of a procedure."""
    return sorted(PROCEDURES)


@_proposals
def procedure_arguments(ctx: click.Context, incomplete: str) -> list[str]:
    """Complete the name of an argument of the chosen procedure, such as ``table=``."""
    procedure = PROCEDURES.get(ctx.params.get("procedure") or "")
    named = {text.partition("=")[0] for text in ctx.params.get("arguments") or ()}
    parameters = () if procedure is None else procedure.parameters
    return [f"{parameter.name}=" for parameter in parameters if parameter.name not in named]


@_proposals
def option_names(ctx: click.Context, incomplete: str) -> list[str]:
    """Complete the name of a table option."""
    return sorted(ALL_OPTIONS)


def _table(ctx: click.Context) -> AnyTable:
    """Return the table of the arguments that precede the incomplete one."""
    name = ctx.params.get("table") or next(iter(ctx.args), "")  # click leaves it in `args` if an option lacks its value
    return open_any_table(name, ctx.params.get("warehouse"), ctx.params.get("option") or {})
