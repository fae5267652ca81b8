"""The prompt of ``paimon-spark sql``: history, completion, and statements of several lines."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from paimon_command.sql_results import SqlRunner
from paimon_command.sql_text import split_statements
from paimon_core.errors import MissingDependencyError, PaimonError

_PROMPT, _NEXT_LINE = "sql> ", "  -> "
_LEAVE = frozenset({"exit", "quit"})
_WORD = re.compile(r"[\w.`]+$")
_NAMES = re.compile(r"[\w.]+")
_KEYWORDS = (
    *("ALTER", "ANALYZE", "AND", "AS", "ASC", "BETWEEN", "BY", "CALL", "CASE", "COLUMN", "COLUMNS", "COUNT", "CREATE"),
    *("DATABASE", "DELETE", "DESC", "DESCRIBE", "DISTINCT", "DROP", "ELSE", "END", "EXISTS", "EXPLAIN", "EXTENDED"),
    *("FROM", "FULL", "GROUP", "HAVING", "IN", "INNER", "INSERT", "INTO", "IS", "JOIN", "LEFT", "LIKE", "LIMIT"),
    *("MATCHED", "MERGE", "NOT", "NULL", "ON", "OR", "ORDER", "OUTER", "OVERWRITE", "PARTITION", "PARTITIONED"),
    *("REFRESH", "RENAME", "REPLACE", "RIGHT", "SELECT", "SET", "SHOW", "TABLE", "TABLES", "TAG", "TBLPROPERTIES"),
    *("THEN", "TIMESTAMP", "TRUNCATE", "UNION", "UPDATE", "USE", "USING", "VALUES", "VERSION", "VIEW", "WHEN", "WHERE"),
    "WITH",
)


class Names:
    """The names that completion offers, read from the session once after each statement."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._tables: list[str] | None = None
        self._columns: dict[str, list[str]] = {}

    def forget(self) -> None:
        """Read the names again when they are needed next."""
        self._tables, self._columns = None, {}

    def matching(self, before: str) -> Iterator[str]:
        """Yield the names that complete the last word of a text."""
        match = _WORD.search(before)
        word = match.group() if match else ""
        if not word:
            return
        last = word.rpartition(".")[2]
        for keyword in _KEYWORDS:
            if keyword.startswith(word.upper()):
                yield keyword if word.isupper() else keyword.lower()
        for table in self._all_tables():
            if table.lower().startswith(word.lower()):
                yield table
        for column in self._columns_of(before):
            if last and column.lower().startswith(last.lower()):
                yield word[: len(word) - len(last)] + column

    def _all_tables(self) -> list[str]:
        """Return databases, tables of the current database, and tables of all databases with their databases."""
        if self._tables is None:
            self._tables = []
            with suppress(Exception):  # a name that cannot be read is not offered
                current = self._spark.catalog.currentDatabase()
                for row in self._spark.sql("SHOW DATABASES").collect():
                    tables = [one[1] for one in self._spark.sql(f"SHOW TABLES IN `{row[0]}`").collect()]
                    self._tables += [row[0], *(f"{row[0]}.{table}" for table in tables)]
                    self._tables += tables if row[0] == current else []
        return self._tables

    def _columns_of(self, text: str) -> Iterator[str]:
        """Yield the columns of the tables that a text names."""
        for name in set(_NAMES.findall(text)) & set(self._all_tables()):
            if name not in self._columns:
                self._columns[name] = []
                with suppress(Exception):  # the name of a database
                    self._columns[name] = self._spark.table(name).columns
            yield from self._columns[name]


def history_file() -> Path:
    """Return the file of the history, readable by its owner only. ``XDG_STATE_HOME`` names its directory."""
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    file = home / "paimon-spark" / "sql-history"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    return file


def prompt_session(names: Names, **how: Any) -> Any:
    """Return a prompt with history and completion. Raises MissingDependencyError without prompt_toolkit."""
    try:
        toolkit, completion = import_module("prompt_toolkit"), import_module("prompt_toolkit.completion")
        history = import_module("prompt_toolkit.history")
    except ImportError as error:
        raise MissingDependencyError(
            "the prompt needs prompt_toolkit: pip install 'pyspark-paimon[sql]'; -e, -f and standard input run "
            f"without it ({error})"
        ) from error

    class Completer(completion.Completer):  # type: ignore[misc, name-defined]
        def get_completions(self, document: Any, event: Any) -> Iterable[Any]:
            before = document.text_before_cursor
            match = _WORD.search(before)
            for text in dict.fromkeys(names.matching(before)):
                yield completion.Completion(text, start_position=-len(match.group()) if match else 0)

    return toolkit.PromptSession(
        history=history.FileHistory(str(history_file())),
        completer=completion.ThreadedCompleter(Completer()),
        complete_while_typing=False,
        **how,
    )


def run_prompt(runner: SqlRunner, names: Names, session: Any) -> None:
    """Read statements and run them, until ``exit`` or the end of input. Ctrl-C cancels the statement or the line."""
    lines: list[str] = []
    while True:
        try:
            lines.append(session.prompt(_NEXT_LINE if lines else _PROMPT))
        except KeyboardInterrupt:
            lines = []
            continue
        except EOFError:
            return
        if lines[0].strip().rstrip(";").lower() in _LEAVE:
            return
        statements, rest = split_statements("\n".join(lines))
        lines = [rest] if rest else []
        try:
            for statement in statements:
                runner.run(statement)
        except PaimonError as error:
            click.echo(f"Error: {error}", err=True)
        except KeyboardInterrupt:
            click.echo("Cancelled.", err=True)
        names.forget()
