"""Statements of SQL, run by Spark, and their results as tables, JSON or CSV."""

import csv
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
import pyarrow as pa

from paimon_command.output import Output, rows_of, shown
from paimon_core.errors import InvalidInputError, hide_secrets
from paimon_core.types.human_text import count, duration

_TEXTUAL = ("VariantType", "YearMonthIntervalType", "CalendarIntervalType", "GeographyType", "GeometryType")
"""Types of Spark that Arrow lacks: clients get them as texts."""
_MOST_LINES = 12
_END_OF_MESSAGE = ("\n\nJVM stacktrace", "\n\tat ", "\n== SQL")


@dataclass(frozen=True, slots=True)
class SqlRunner:
    """Runs statements in a session, and prints their results.

    Attributes:
        spark: the session, classic or of Spark Connect.
        form: ``table``, ``json`` or ``csv``.
        limit: the most rows of a table that are printed; `None`: all rows.
        timing: True to print the rows and the time of each statement to standard error.
    """

    spark: Any
    form: str = "table"
    limit: int | None = None
    timing: bool = False

    def run(self, text: str) -> None:
        """Run a statement and print its result. Raises InvalidInputError with Spark's message if it fails."""
        started = time.monotonic()
        try:
            names, table, more = self._result(text)
        except KeyboardInterrupt:
            self._cancel()
            raise
        except Exception as error:  # of py4j, of Java, of Spark and of gRPC
            raise InvalidInputError(message_of(error)) from error
        if names:
            self._print(names, table)
        if more:
            click.echo(f"... and more rows: only {self.limit} are shown (--limit 0 shows all)", err=True)
        if self.timing:
            rows = f"{count(table.num_rows, 'row')} in " if names else ""
            click.echo(f"{rows}{duration(time.monotonic() - started)}", err=True)

    def _result(self, text: str) -> tuple[list[str], pa.Table, bool]:
        """Return the names of the columns, the rows with unique names, and whether there are more rows."""
        frame = self.spark.sql(text)
        fields = frame.schema.fields
        names = [field.name for field in fields]
        if not names:
            return [], pa.table({}), False
        frame = frame.toDF(*_unique(names))
        texts = {name: f"CAST({_quoted(name)} AS STRING)" for name in _textual_columns(frame)}
        if texts:
            columns = [texts.get(name, _quoted(name)) + f" AS {_quoted(name)}" for name in frame.columns]
            frame = frame.selectExpr(*columns)
        if self.limit is not None:
            frame = frame.limit(self.limit + 1)
        table = frame.toArrow()
        more = self.limit is not None and table.num_rows > self.limit
        return names, table.slice(0, self.limit) if more else table, more

    def _print(self, names: list[str], table: pa.Table) -> None:
        output = Output(as_json=self.form == "json")
        batches = table.to_batches()
        if output.as_json:
            output.stream_json(batches)
        elif self.form == "csv":
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(names)
            writer.writerows([_cell(value) for value in row.values()] for row in rows_of(batches))
        else:
            rows: list[Mapping[str, object]] = list(rows_of(batches))
            text = next(iter(rows[0].values())) if len(rows) == len(names) == 1 else None
            if isinstance(text, str) and "\n" in text:  # a plan, or the statement that creates a table
                click.echo("\n".join(map(shown, text.rstrip("\n").split("\n"))))
            else:
                output.grid(rows)

    def _cancel(self) -> None:
        """Cancel the statement of a Connect session; in a classic session, the connector has cancelled its jobs."""
        if hasattr(self.spark, "client"):
            self.spark.interruptAll()


def message_of(error: Exception) -> str:
    """Return the message of an error of Spark, without stack traces, plans and secrets."""
    text = str(error).strip() or type(error).__name__
    for end in _END_OF_MESSAGE:
        text = text.partition(end)[0]
    lines = [line for line in text.split("\n") if line.strip()]
    plan = next((i for i, line in enumerate(lines) if line.startswith(("'", "+- ", ":- "))), len(lines))
    return hide_secrets("\n".join(lines[: max(1, min(plan, _MOST_LINES))]))


def _unique(names: list[str]) -> list[str]:
    """Return the names, each with a number behind it if it occurs before."""
    unique: list[str] = []
    used: set[str] = set()
    for name in names:
        number, candidate = 1, name
        while candidate.lower() in used:
            number += 1
            candidate = f"{name}_{number}"
        used.add(candidate.lower())
        unique.append(candidate)
    return unique


def _textual_columns(frame: Any) -> list[str]:
    return [field.name for field in frame.schema.fields if type(field.dataType).__name__ in _TEXTUAL]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _cell(value: object) -> object:
    """Return a value for a CSV file: NULL is an empty field, binary data hexadecimal."""
    if value is None or isinstance(value, str):
        return value
    return value.hex() if isinstance(value, bytes) else shown(value)
