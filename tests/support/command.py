"""The command ``paimon-spark`` in tests: called in this process, or as a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from paimon_command.main import command

ROOT = Path(__file__).parents[2]
SERVERS = {"serve", "sql"}
"""Commands that start Spark: see tests/spark/test_server.py and tests/command/test_sql.py."""


def run(*arguments, input=None, **environment):
    return CliRunner().invoke(command, [str(one) for one in arguments], input=input, env=environment)


def answer(*arguments, code=0):
    """The JSON of a command."""
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def process(*arguments, code="from paimon_command.main import main; main()", **settings):
    """The command as a process of its own."""
    given = [str(one) for one in arguments]
    return subprocess.run(
        [sys.executable, "-c", code, *given], cwd=ROOT, capture_output=True, text=True, check=False, **settings
    )
