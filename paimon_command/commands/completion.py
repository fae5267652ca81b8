"""The completion script for shells."""

import click
from click.shell_completion import get_completion_class

from paimon_command.invocation import Invocation, command
from paimon_command.output import Answer

_PROGRAM, _VARIABLE = "paimon-spark", "_PAIMON_SPARK_COMPLETE"


@command("completion", click.Argument(["shell"], type=click.Choice(["bash", "zsh", "fish"])), table=False)
def completion(call: Invocation) -> Answer:
    """Print the script that completes this command in a shell: eval "$(paimon-spark completion bash)"."""
    kind = get_completion_class(call["shell"])
    assert kind is not None
    script = kind(click.Command(_PROGRAM), {}, _PROGRAM, _VARIABLE).source()
    return Answer({"shell": call["shell"], "script": script}, script)
