"""A description of all subcommands for programs."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from paimon_command.command_registry import COMMANDS, GROUPS
from paimon_command.invocation import Invocation, command
from paimon_command.output import Answer


@command(
    "help",
    click.Argument(["names"], nargs=-1, metavar="[COMMAND]...", type=click.Choice(list(COMMANDS))),
    table=False,
    storage=False,
)
def help(call: Invocation) -> Answer:
    """Describe all subcommands, or some: their arguments and options, as --json for programs.

    For people, it prints what COMMAND --help prints.
    """
    names: Sequence[str] = call["names"] or list(COMMANDS)
    groups = {one.name: group.title for group in GROUPS for one in group.commands}
    loaded = {name: COMMANDS[name].load() for name in names}
    described = [_description(groups[name], COMMANDS[name].summary, one) for name, one in loaded.items()]
    parent = click.get_current_context().parent
    assert parent is not None
    if not call["names"]:
        return Answer(described, parent.get_help())
    return Answer(described, "\n\n".join(click.Context(c, parent, n).get_help() for n, c in loaded.items()))


def _description(group: str, summary: str, described: click.Command) -> Mapping[str, Any]:
    """Return the names, the texts and the parameters of a subcommand."""
    return {
        "name": described.name,
        "group": group,
        "summary": summary,
        "help": described.help,
        "arguments": [_parameter(one) for one in described.params if isinstance(one, click.Argument)],
        "options": [_option(one) for one in described.params if isinstance(one, click.Option)],
    }


def _option(option: click.Option) -> Mapping[str, Any]:
    return {
        "flags": [*option.opts, *option.secondary_opts],
        **_parameter(option),
        "help": option.help,
        "flag": option.is_flag,
        "value_optional": not option.is_flag and option.to_info_dict()["flag_value"] is not None,
        "variable": option.envvar,
        "default": None if callable(option.default) or option.is_flag else _plain(option.default),
    }


def _parameter(parameter: click.Parameter) -> Mapping[str, Any]:
    """Return what arguments and options have in common."""
    return {
        "name": parameter.name,
        "value": parameter.make_metavar(click.get_current_context()),
        "type": parameter.type.name,
        "choices": list(parameter.type.choices) if isinstance(parameter.type, click.Choice) else None,
        "required": parameter.required,
        "repeatable": parameter.nargs == -1 or bool(getattr(parameter, "multiple", False)),
    }


def _plain(value: object) -> object:
    """Return a default value for JSON; `None`: the option has no default."""
    return value if isinstance(value, str | int | float | bool) else None
