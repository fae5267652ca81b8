"""Read rows, look up a row by key, explain a read, and follow changes as they are committed."""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from shlex import quote
from typing import Any

import click
import pyarrow as pa

from paimon_command import completions
from paimon_command.invocation import COLUMNS, FILTER, WHEN, Invocation, command
from paimon_command.output import Answer, rows_of, to_json
from paimon_command.spark import spark_explanation, spark_session
from paimon_core import Stream, Table
from paimon_core.engine import DEFAULT_LISTED, value_of_text
from paimon_core.errors import InvalidInputError, hide_secrets
from paimon_core.types.columns import find_column

_SHOWN = 20
_MOMENTS = {
    "snapshot_id": "scan.snapshot-id",
    "tag": "scan.tag-name",
    "timestamp": "scan.timestamp",
    "version": "scan.version",
    "watermark": "scan.watermark",
}
"""The read options that choose a snapshot, by the options of this command."""


@command(
    "read",
    COLUMNS,
    FILTER,
    click.Option(
        ["--limit"],
        type=click.IntRange(min=0),
        help=f"At most this number of rows. Default: {_SHOWN}, all with --json.",
    ),
    *WHEN,
)
def read(call: Invocation) -> Answer | None:
    """Read rows of a table, of a branch or of a system table."""
    table, limit = call.any_table(), call["limit"]
    if call.output.as_json:
        call.output.stream_json(table.to_batches(call["columns"], call["filter"], limit, **call.when()))
        return None
    most = _SHOWN if limit is None else limit
    batches = table.to_batches(call["columns"], call["filter"], most + 1, **call.when())
    rows = list(islice(rows_of(batches), most + 1))
    call.output.grid(rows[:most])
    if limit is None and len(rows) > most:
        click.echo(f"the first {most} rows; --limit shows more", err=True)
    return None


_KEY = click.Argument(
    ["key"], nargs=-1, required=True, metavar="COLUMN=VALUE...", shell_complete=completions.key_columns
)


@command("get", _KEY, COLUMNS)
def get(call: Invocation) -> Answer:
    """Look up the row of a primary key. Exit code 1: no row has this key."""
    table = call.table()
    fields, key = table.schema.fields, {}
    for name, value in _pairs(call["key"]):
        field = find_column(fields, name, table.path)
        key[field.name] = value_of_text(field.name, value, field.type, "the key")
    missing = [name for name in table.schema.primary_keys if name not in key]
    if missing:
        raise InvalidInputError(f"the key also needs {', '.join(missing)}: {_whole_key(call, table, key)}")
    rows = table.get(key, call["columns"])
    if rows is None:
        return Answer(None, f"no row of {table.path} has the key {' '.join(call['key'])}", problem=True)
    assert isinstance(rows, dict)
    return Answer(rows)


def _whole_key(call: Invocation, table: Table, key: Mapping[str, object]) -> str:
    """Return the command that looks up a whole key: `...` stands for each missing value."""
    texts = {find_column(table.schema.fields, name, table.path).name: value for name, value in _pairs(call["key"])}
    names = [*table.schema.primary_keys, *(name for name in key if name not in table.schema.primary_keys)]
    parts = [f"{name}={quote(texts[name]) if name in texts else '...'}" for name in names]
    return " ".join([call.name, quote(call["table"]), *parts])


def _pairs(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Split texts such as COLUMN=VALUE. Raises UsageError for another text."""
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"{text!r} is not COLUMN=VALUE")
        pairs.append((name, value))
    return pairs


@command(
    "explain",
    COLUMNS,
    FILTER,
    *WHEN,
    click.Option(["--analyze"], is_flag=True, help="Also read the rows, discard them, and print the measurements."),
    click.Option(
        ["--listed"],
        type=click.IntRange(min=0),
        default=DEFAULT_LISTED,
        show_default=True,
        help="List this number of splits, and of sections.",
    ),
    spark=True,
)
def explain(call: Invocation) -> Answer:
    """Explain a read: the files that it opens, the effect of each pruning step, the merged rows, and the filters.

    With --spark it also says whether Spark's own scan reads, and why not.
    """
    table = call.table()
    how: dict[str, Any] = {name: call[name] for name in ("columns", "filter", "analyze", "listed")}
    if call["spark"] is None:
        found = table.explain(**{**how, **call.when()})
    else:
        moment = {_MOMENTS[name]: str(value) for name, value in call.when().items()}
        with spark_session(call["spark"], f"explain {hide_secrets(table.path)}") as spark:
            found = spark_explanation(spark, str(table.location), {**call["option"], **moment}, **how)
    return Answer(found.to_dict(), str(found))


@command(
    "tail",
    COLUMNS,
    FILTER,
    click.Option(
        ["--from", "start"], metavar="SNAPSHOT|all", help="Begin with the changes of this snapshot, or with all rows."
    ),
    click.Option(["--once"], is_flag=True, help="End when there are no more changes, instead of waiting."),
    click.Option(["--limit"], type=click.IntRange(min=1), help="End after this number of rows."),
    click.Option(
        ["--interval"],
        type=click.FloatRange(min=0.01),
        default=1.0,
        show_default=True,
        help="Seconds between two looks for new snapshots.",
    ),
)
def tail(call: Invocation) -> None:
    """Follow a table: print each change as it is committed, with its row kind, until Ctrl-C.

    A line for each row: kind and values, or a JSON object. It begins with the changes after the newest snapshot.
    """
    table = call.table().with_options(_start(call["start"]))
    stream = table.stream(call["columns"], call["filter"], changelog=True)
    rows = rows_of(_followed(stream, call["once"], call["interval"]))
    try:
        for row in islice(rows, call["limit"]):
            kind = row.pop("rowkind")
            text = to_json({"rowkind": kind, **row}) if call.output.as_json else f"{kind} {to_json(row)}"
            click.echo(text)
    except KeyboardInterrupt:
        return


def _start(text: str | None) -> dict[str, str | None]:
    """Return the options for the start of a stream. Raises InvalidInputError for an invalid text."""
    if text is None:
        return {"scan.mode": "latest"}
    if text == "all":
        return {"scan.mode": "latest-full"}
    if not text.isdigit():
        raise InvalidInputError(f"--from must be the id of a snapshot, or 'all', not {text!r}")
    return {"scan.mode": "from-snapshot", "scan.snapshot-id": text}


def _followed(stream: Stream, once: bool, interval: float) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all changes. ``once``: True to stop when there are no more changes; else never stop."""
    while True:
        before = stream.checkpoint()
        yield from stream.to_batches()
        if stream.checkpoint() == before:
            if once:
                return
            time.sleep(interval)
