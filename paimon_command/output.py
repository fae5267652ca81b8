"""Results of commands, printed for people or as JSON."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from typing import Any, TypeAlias

import click
import pyarrow as pa

from paimon_command.grid import Cut, Format, render
from paimon_core.types.human_text import printable

Row: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command: rows, or facts by name.

    Args:
        data: the rows or facts, which JSON output prints unchanged.
        text: the text for people instead of the data; `None`: the data.
        problem: True for exit code 1.
        nulls: the text for people instead of NULL, by column.
        formats: the values for people, by column.
        cut: the functions that shorten texts on a terminal, by column.
    """

    data: Sequence[Row] | Row | None
    text: str | None = None
    problem: bool = False
    nulls: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, Format] = field(default_factory=dict)
    cut: Mapping[str, Cut] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Output:
    """Standard output, for people or as JSON."""

    as_json: bool

    def show(self, answer: Answer) -> None:
        """Print an answer: one JSON document, a text, a table of rows, or a line for each fact."""
        if self.as_json:
            click.echo(to_json(answer.data, indent=2))
        elif answer.text is not None:
            click.echo(answer.text)
        elif answer.data is None:
            click.echo("nothing")
        elif isinstance(answer.data, Mapping):
            click.echo(facts_text(answer.data))
        else:
            rows = [_without_nulls(row, answer.nulls) for row in answer.data] if answer.nulls else answer.data
            self.grid(rows, answer.formats, answer.cut)

    def grid(
        self, rows: Sequence[Row], formats: Mapping[str, Format] | None = None, cut: Mapping[str, Cut] | None = None
    ) -> None:
        """Print rows as a table that fits the terminal; elsewhere nothing is truncated.

        Args:
            rows: the rows, with the same names.
            formats: the values for people, by column; `None`: the values themselves.
            cut: the functions that shorten texts, by column; `None`: no text is shortened.
        """
        click.echo(render(rows, shown, formats or {}, cut) if rows else "no rows")

    def stream_json(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Print the rows of batches as one JSON array, one line for each row, batch by batch."""
        first = True
        click.echo("[", nl=False)
        for row in rows_of(batches):
            click.echo(("\n" if first else ",\n") + to_json(row), nl=False)
            first = False
        click.echo("\n]" if not first else "]")


def facts_text(facts: Row) -> str:
    """Return a line for each fact, with the values below each other."""
    width = max(map(len, facts), default=0)
    return "\n".join(f"{name:{width}}  {shown(value)}".rstrip() for name, value in facts.items())


def _without_nulls(row: Row, texts: Mapping[str, str]) -> Row:
    """Return a row with texts instead of NULL values."""
    return {name: texts.get(name) if value is None else value for name, value in row.items()}


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Yield rows as dicts; timestamps are texts, because Python has no nanoseconds."""
    for batch in batches:
        yield from _with_texts(batch).to_pylist()


def to_json(value: object, indent: int | None = None) -> str:
    """Return JSON text: times are ISO texts, decimals and intervals texts, binary data hexadecimal, NaN a text."""
    return json.dumps(_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def shown(value: object) -> str:
    """Return a value as text for a terminal; control characters are escaped."""
    match value:
        case None:
            return "NULL"
        case str():
            text = value
        case bytes() | Mapping() | list() | tuple():
            text = to_json(value)
        case bool():
            return str(value).lower()
        case float() if not math.isfinite(value):
            text = _java_text(value)
        case _:
            text = str(value)
    return printable(text)


def _plain(value: object) -> Any:
    """Return a value converted to JSON types."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _java_text(value)
        case Mapping():
            return {str(key): _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case bytes():
            return value.hex()
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
    return str(value)


def _java_text(value: float) -> str:
    """Return NaN, Infinity or -Infinity in the spelling of Paimon and Spark."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _with_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    schema = pa.schema([pa.field(f.name, _textual(f.type)) for f in batch.schema])
    return batch if schema.types == batch.schema.types else batch.cast(schema)


def _textual(kind: pa.DataType) -> pa.DataType:
    """Return the type with texts for timestamps, at any depth."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_textual(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_textual(kind.key_type), _textual(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _textual(f.type)) for f in kind])
    return kind
