"""docs/guides/command.md does what it says: its commands run from top to bottom, and print what the page shows."""

import re
import shlex

import pytest
from click.testing import CliRunner

from paimon_command.command_registry import COMMANDS
from paimon_command.main import command
from tests.support.command import SERVERS
from tests.support.markdown import ROOT, compiled, python_blocks

PAGE = ROOT / "docs" / "guides" / "command.md"
WAREHOUSE = "/tmp/warehouse"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps():
    """The commands of the page with what they print, in their order."""
    for block in BLOCK.findall(PAGE.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, printed = part.partition("\n")
            yield line, printed


def pattern(printed):
    """A regular expression of what is shown, in which `...` is any text."""
    return ".*?".join(map(re.escape, printed.split("...")))


def test_commands_of_page_print_its_output(tmp_path):
    here = str(tmp_path / "warehouse")
    (block,) = python_blocks(PAGE)
    exec(compiled(PAGE, block, block.code.replace(WAREHOUSE, here)), {})
    environment = {}
    for line, printed in steps():
        program, *arguments = shlex.split(line.replace(WAREHOUSE, here))
        if program == "export":
            environment.update([arguments[0].split("=")])
            continue
        assert program == "paimon-spark"
        result = CliRunner().invoke(command, arguments, env=environment)
        assert result.exit_code == 0, (line, result.output)
        shown = result.stdout.replace(here, WAREHOUSE)
        assert re.fullmatch(pattern(printed.strip()), shown.strip(), re.DOTALL), (line, shown)


def test_page_uses_each_command():
    used = {line.split()[1] for line, _ in steps() if line.startswith("paimon-spark")}
    assert used == COMMANDS.keys() - SERVERS


@pytest.mark.parametrize(("printed", "same"), [("a ... c", True), ("a b", False), ("... d", False)])
def test_page_with_other_output_is_found(printed, same):
    assert bool(re.fullmatch(pattern(printed), "a b c", re.DOTALL)) == same
