"""`paimon-spark sql`: statements of a text, messages of errors, and the prompt."""

import shlex
import socket
import subprocess
import sys
from threading import Thread

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import paimon_spark
from paimon_command import sql_prompt
from paimon_command.commands import querying
from paimon_command.sql_prompt import Names, history_file, prompt_session, run_prompt
from paimon_command.sql_results import SqlRunner, message_of
from paimon_command.sql_text import split_statements
from paimon_core.errors import InvalidInputError, MissingDependencyError
from tests.command import test_tour
from tests.spark.conftest import spark
from tests.support.command import ROOT, run

__all__ = ["spark"]  # a fixture
SCRIPT = "BEGIN DECLARE x INT; IF x = 2 THEN SELECT CASE WHEN 1 THEN 2 END; END IF; BEGIN SELECT 2; END; END"


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1"], "SELECT 2"),
        ("""SELECT ';', ";", `;`; x""", ["""SELECT ';', ";", `;`"""], "x"),
        (r"SELECT '\';'; SELECT r'\'; x", [r"SELECT '\';'", r"SELECT r'\'"], "x"),
        ("SELECT 'it''s;'; x", ["SELECT 'it''s;'"], "x"),
        ("SELECT 1 -- a; b\n; x", ["SELECT 1 -- a; b"], "x"),
        ("SELECT /*+ h */ 1 /* a; /* b; */ c; */; x", ["SELECT /*+ h */ 1 /* a; /* b; */ c; */"], "x"),
        (f"{SCRIPT}; SELECT 3;", [SCRIPT, "SELECT 3"], ""),
        (f"a: {SCRIPT}; SELECT 3;", [f"a: {SCRIPT}", "SELECT 3"], ""),
        ("SELECT CASE WHEN a THEN b END; x", ["SELECT CASE WHEN a THEN b END"], "x"),
        ("-- only; a comment\n;; /* ; */ ;", [], ""),
        ("SELECT 'open; x", [], "SELECT 'open; x"),
        ("SELECT 1 /* open; x", [], "SELECT 1 /* open; x"),
    ],
)
def test_semicolons_divide_text(text, statements, rest):
    assert split_statements(text) == (statements, rest)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            "[A_B] No. SQLSTATE: 42; line 1 pos 4;\n'Project [*]\n+- 'Relation\n",
            "[A_B] No. SQLSTATE: 42; line 1 pos 4;",
        ),
        ("Bad\n\nJVM stacktrace:\norg.x.Y\n\tat a.b", "Bad"),
        ("[P] Syntax.\n\n== SQL (line 1) ==\nSELCT 1\n^^^", "[P] Syntax."),
        ("cannot open s3://key:secret@b/t", "cannot open s3://***@b/t"),
        ("", "ValueError"),
    ],
)
def test_messages_have_no_traces(error, message):
    assert message_of(ValueError(error)) == message


class Catalog:
    """A session with a catalog, which counts the statements."""

    def __init__(self):
        self.statements = []

    @property
    def catalog(self):
        return self

    def currentDatabase(self):
        return "shop"

    def sql(self, text):
        self.statements.append(text)
        rows = [("shop",)] if text == "SHOW DATABASES" else [("shop", "orders"), ("shop", "other")]
        return type("Frame", (), {"collect": lambda self: rows})()

    def table(self, name):
        if name not in ("orders", "shop.orders"):
            raise LookupError(name)
        return type("Frame", (), {"columns": ["id", "item"]})()


@pytest.mark.parametrize(
    ("text", "completions"),
    [
        ("sel", ["select"]),
        ("SELECT * FROM or", ["or", "order", "orders"]),
        ("SELECT * FROM shop.o", ["shop.orders", "shop.other"]),
        ("SELECT * FROM orders WHERE it", ["item"]),
        ("SELECT * FROM shop.orders o WHERE o.it", ["o.item"]),
        ("SELECT ", []),
    ],
)
def test_names_complete_last_word(text, completions):
    assert sorted(Names(Catalog()).matching(text)) == completions


def test_names_are_read_once_after_each_statement():
    spark = Catalog()
    names = Names(spark)
    for _ in range(2):
        assert list(names.matching("shop.or")) == ["shop.orders"]
    assert len(spark.statements) == 2
    names.forget()
    assert list(names.matching("shop.or")) == ["shop.orders"]
    assert len(spark.statements) == 4


class Recorder(SqlRunner):
    def run(self, text):
        self.spark.append(text)
        if text == "bad":
            raise InvalidInputError("[NO] it failed")
        if text == "slow":
            raise KeyboardInterrupt


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """A function that types a text at the prompt, and returns the statements that ran."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run_typed(text):
        names, statements = Names(Catalog()), []
        with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
            keys.send_text(text)
            run_prompt(Recorder(statements), names, prompt_session(names))
        return statements

    return run_typed


def test_prompt_runs_statements_of_several_lines(typed, capsys):
    assert typed("SELECT 1;\rSELECT\r2; SELECT 3;\rbad;\rslow;\r4;\rexit\r5;\r") == [
        "SELECT 1",
        "SELECT\n2",
        "SELECT 3",
        "bad",
        "slow",
        "4",
    ]
    assert capsys.readouterr().err == "Error: [NO] it failed\nCancelled.\n"


def test_control_keys_clear_line_and_leave(typed):
    assert typed("SELECT 1\r\x03SELECT 2;\r\x04") == ["SELECT 2"]


def test_history_is_kept_for_its_owner(typed):
    typed("SELECT 42;\rexit;\r")
    assert "SELECT 42;" in history_file().read_text()
    assert history_file().stat().st_mode & 0o777 == 0o600


def test_completion_replaces_word(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        completer = prompt_session(Names(Catalog())).completer
        (one,) = completer.get_completions(Document("SELECT * FROM shop.ord"), CompleteEvent())
    assert (one.text, one.start_position) == ("shop.orders", -len("shop.ord"))


def test_prompt_names_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyspark-paimon\[sql\]'"):
        sql_prompt.prompt_session(Names(Catalog()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json", "--csv"], "choose either --json or --csv"),
        (["--remote", "sc://h:1/;token=SECRET"], "--remote would show the token in the list of processes"),
        (["-w", "/tmp", "--conf", "spark.hadoop.fs.s3a.secret.key=SECRET"], "would show a secret"),
        (["--remote", "localhost:15002"], "is not a URL such as sc://localhost:15002"),
        (["--remote", "sc://localhost:x"], "is not a URL such as sc://localhost:15002"),
        ([], "the warehouse is not set"),
        (["-f", "/no/such/file"], "does not exist"),
    ],
)
def test_wrong_options_are_refused_before_spark_starts(arguments, message, monkeypatch):
    monkeypatch.setattr("paimon_spark.session_start.session", None)
    result = run("sql", "-e", "SELECT 1", *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert "SECRET" not in result.output


def test_server_that_does_not_listen_is_named():
    with socket.socket() as taken:  # bound, but it does not listen
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        result = run("sql", "--remote", f"sc://127.0.0.1:{port}", "-e", "SELECT 1")
    assert (result.exit_code, result.output) == (1, f"Error: nothing listens on 127.0.0.1:{port}: Connection refused\n")


def test_token_needs_tls():
    with socket.create_server(("127.0.0.2", 0)) as plain:
        port = plain.getsockname()[1]
        Thread(target=lambda: plain.accept()[0].sendall(b"no TLS here"), daemon=True).start()
        url = f"sc://127.0.0.2:{port}"
        result = run("sql", "--remote", url, "-e", "SELECT 1", SPARK_CONNECT_AUTHENTICATE_TOKEN="t")
    assert result.exit_code == 1
    assert f"127.0.0.2:{port} does not speak TLS" in result.output


@pytest.mark.more
@pytest.mark.spark
def test_commands_of_page_print_its_output(spark, tmp_path, monkeypatch):
    """In the session of the run, because each command would start another one."""

    def start(call, catalogs, storage):
        session = spark.newSession()
        for name, warehouse in catalogs.items():
            paimon_spark.catalog(session, name, warehouse=warehouse)
            session.conf.set("spark.sql.defaultCatalog", name)
        return session

    monkeypatch.setattr(querying, "start_session", start)
    monkeypatch.setattr("paimon_spark.spark_servers.end", lambda session: None)
    monkeypatch.setattr(test_tour, "PAGE", ROOT / "docs" / "guides" / "sql-command.md")
    for line, printed in test_tour.steps():
        program, *arguments = shlex.split(line.replace(test_tour.WAREHOUSE, str(tmp_path)))
        assert program == "paimon-spark"
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (0, printed), result.exception or result.output


@pytest.mark.more
@pytest.mark.spark
def test_standard_input_runs_until_statement_that_fails(tmp_path):
    command = [sys.executable, "-m", "paimon_command", "sql", "-w", str(tmp_path)]
    text = "SELECT 1;\nSELECT * FROM no.such; SELECT 2"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "1\n1\n")
    assert "Error: [TABLE_OR_VIEW_NOT_FOUND]" in done.stderr
