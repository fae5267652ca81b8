"""The options of tables, explained: the data of the page docs/reference/options.md."""

import click

from paimon_command import completions
from paimon_command.invocation import Invocation, command
from paimon_command.output import Answer
from paimon_core.errors import NotFoundError
from paimon_core.options import ALL_OPTIONS, nearest
from paimon_core.options.listing import KINDS, Listed, listed


@command(
    "options",
    click.Argument(["name"], required=False, metavar="[NAME|WORD]", shell_complete=completions.option_names),
    click.Option(["--kind"], type=click.Choice(KINDS), help="Only options that are treated so."),
    table=False,
)
def options(call: Invocation) -> Answer:
    """Explain all options of tables, the option NAME, or all options whose name contains WORD."""
    name = call["name"]
    option = next((one for one in ALL_OPTIONS.values() if name in (one.key, *one.old_keys)), None)
    if option is not None:
        return Answer(_row(Listed.of(option)))
    rows = [_row(one) for one in listed() if call["kind"] in (None, one.kind) and (name or "").lower() in one.key]
    if not rows and name is not None:
        near = nearest(name)
        hint = f"did you mean {near!r}?" if near else "paimon-spark options lists all"
        raise NotFoundError(f"there is no option {name!r}; {hint}")
    return Answer(rows)


def _row(one: Listed) -> dict[str, object]:
    """Return an option as a row."""
    return {"option": one.key, "default": one.default, "kind": one.kind, "effect": one.effect}
