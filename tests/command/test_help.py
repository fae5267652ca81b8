"""The help in groups, what it imports, and completion in shells."""

import os

import click
import pyarrow as pa
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from paimon_command.command_registry import COMMANDS, GROUPS
from paimon_command.main import command
from paimon_core import FileSystemCatalog, Schema
from tests.support.command import answer, process, run


def help_at_80(*arguments: str) -> list[str]:
    """Return the lines of a help text on a terminal of 80 columns."""
    result = CliRunner().invoke(command, [*arguments, "--help"], prog_name="paimon-spark", terminal_width=80)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_help_groups_all_commands_with_example():
    lines = help_at_80()
    for group in GROUPS:
        start = lines.index(f"{group.title}:")
        section = lines[start + 1 : start + 2 + len(group.commands)]
        assert [line.split()[0] for line in section] == [*(one.name for one in group.commands), "$"]
        assert section[-1] == f"  $ paimon-spark {group.example}"
        assert group.example.split()[0] in {one.name for one in group.commands}
    assert [group.title for group in GROUPS] == [
        "Look",
        "Read",
        "History",
        "Change",
        "Maintain",
        "Check",
        "SQL",
        "Serve",
        "More",
    ]


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_80_columns_and_is_not_cut(name):
    lines = help_at_80(*([name] if name else []))
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line.endswith("...") and not line.startswith("Usage: ")]


def test_summaries_of_registry_name_functions():
    for name, registered in COMMANDS.items():
        assert registered.load().name == name
        assert len(registered.summary) <= 64
        assert registered.summary.endswith(".")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["shw"]], ids=" ".join)
def test_help_does_not_import_engine(arguments):
    code = (
        "import sys; from paimon_command.main import command\n"
        "try: command(sys.argv[1:])\n"
        "finally: print(sorted({'paimon_core', 'pyarrow', 'rich', 'numpy'} & sys.modules.keys()), file=sys.stderr)"
    )
    assert process(*arguments, code=code).stderr.splitlines()[-1] == "[]"


def completed(words: str) -> list[str]:
    """Return the completions of the last word of a command line."""
    _, *arguments, incomplete = words.split(" ")
    completion = ShellComplete(command, {}, "paimon-spark", "_PAIMON_SPARK_COMPLETE")
    return [item.value for item in completion.get_completions(arguments, incomplete)]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    catalog = FileSystemCatalog(str(tmp_path_factory.mktemp("shop")))
    columns = pa.schema([pa.field("dt", pa.string(), False), pa.field("id", pa.int64(), False), ("amount", pa.int64())])
    for database in ("shop", "store"):
        catalog.create_database(database)
    schema = Schema(columns, primary_keys=["dt", "id"], partition_keys=["dt"], options={"bucket": "1"})
    for name in ("shop.orders", "shop.items", "store.t"):
        catalog.create_table(name, schema)
    return catalog.warehouse


@pytest.mark.parametrize(
    ("words", "proposals"),
    [
        ("paimon-spark sh", ["show"]),
        ("paimon-spark show s", ["shop.items", "shop.orders", "store.t"]),
        ("paimon-spark show shop.o", ["shop.orders"]),
        ("paimon-spark show nope.", []),
        ("paimon-spark ls st", ["store"]),
        ("paimon-spark read shop.orders --columns ", ["dt", "id", "amount"]),
        ("paimon-spark read shop.orders --columns id,a", ["id,amount"]),
        ("paimon-spark read shop.nope --columns i", []),
        ("paimon-spark get shop.orders ", ["dt=", "id="]),
        ("paimon-spark get shop.orders dt=d1 i", ["id="]),
        ("paimon-spark call expire_t", ["expire_tags"]),
        ("paimon-spark call expire_tags t", ["table="]),
        ("paimon-spark options bucket-", ["bucket-append-ordered", "bucket-function.type", "bucket-key"]),
    ],
)
def test_names_are_completed(shop, monkeypatch, words, proposals):
    monkeypatch.setenv("PAIMON_WAREHOUSE", shop)
    assert completed(words) == proposals


@pytest.mark.parametrize("warehouse", ["", "/no/such/directory"])
def test_nothing_is_proposed_without_warehouse(monkeypatch, warehouse):
    monkeypatch.setenv("PAIMON_WAREHOUSE", warehouse)
    assert completed("paimon-spark show s") == []
    assert completed("paimon-spark read shop.orders --columns ") == []


def test_warehouse_of_command_line_is_used(shop):
    assert completed(f"paimon-spark show -w {shop} store") == ["store.t"]


def test_bash_receives_completions(shop):
    environment = {"_PAIMON_SPARK_COMPLETE": "bash_complete", "COMP_WORDS": "paimon-spark show shop.o"}
    code = "from paimon_command.main import main; main()"
    variables = {**os.environ, **environment, "COMP_CWORD": "2", "PAIMON_WAREHOUSE": shop}
    assert process(code=code, env=variables).stdout == "plain,shop.orders\n"


def test_description_agrees_with_commands():
    described = answer("help")
    assert [one["name"] for one in described] == list(COMMANDS)
    for one in described:
        loaded = COMMANDS[one["name"]].load()
        assert [part["name"] for part in one["arguments"] + one["options"]] == [
            *(p.name for p in loaded.params if isinstance(p, click.Argument)),
            *(p.name for p in loaded.params if isinstance(p, click.Option)),
        ]
        assert one["help"] == loaded.help
        assert "--json" in {flag for option in one["options"] for flag in option["flags"]}
    assert len(described) == len(COMMANDS) > 25


def test_description_of_options_has_types_choices_and_defaults():
    (serve,) = answer("help", "serve")
    options = {one["name"]: one for one in serve["options"]}
    assert (options["grace"]["type"], options["grace"]["default"]) == ("float range", 30.0)
    assert (options["connect"]["value_optional"], options["name"]["value_optional"]) == (True, False)
    assert (options["conf"]["repeatable"], options["insecure"]["flag"]) == (True, True)
    assert options["warehouse"]["variable"] == "PAIMON_WAREHOUSE"
    (completion,) = answer("help", "completion")
    (shell,) = completion["arguments"]
    assert (shell["required"], shell["choices"]) == (True, ["bash", "zsh", "fish"])


def test_help_of_names_is_help_of_commands():
    lines = run("help", "ls", "show").stdout.splitlines()
    assert [line.split()[2] for line in lines if line.startswith("Usage:")] == ["ls", "show"]
    assert run("help", "nope").exit_code == 2
