"""A corpus of SQL: files of statements with their results, which read like a session at a prompt.

Empty lines separate the blocks of a file. A block is an explanation, whose lines begin with `#`, or a statement:

    SELECT id, v FROM t ORDER BY id
    ----
    id bigint, v string
    1 | a
    2 | NULL

Below `----` is the result: the columns with their types, then a line for each row. Rows of a query without ORDER BY are
in the order of their lines. `ok` stands for a result without columns. An error is `error CONDITION`, Spark's name of
its kind, or `error: ` and a part of the message. Lines of the statement that begin with `--:` are about where it runs:

    --: since 4.2                  Sparks before this one leave the statement out
    --: not java, <reason>         the Java connector 0.9 has no such statement
    --: java <reason>              it answers another result
    --: columns 1                  only the first column is compared: after it, this engine has columns that Java lacks

A line `#: versions` anywhere in the file has all of it run on other Sparks as well, `#: more` keeps it out of
`make test`, `#: not java, <reason>` keeps it from the Java connector.
The database of a file is `c`, the catalog `paimon`; `{warehouse}` is its directory.
"""

import datetime
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

SEPARATOR = "\n----\n"
QUERY = re.compile(r"(--:.*\n)*\s*(SELECT|WITH|TABLE|FROM)\b", re.IGNORECASE)
_DIGITS = Context(prec=38)
MARK = re.compile(r"^(?:--|#): (not java|java|since|versions|more|columns)(?:,? (.*))?$", re.MULTILINE)


@dataclass(frozen=True)
class Statement:
    """A statement of a corpus file: its line there, its text, its marks, and the result that is expected."""

    line: int
    text: str
    marks: Mapping[str, str]
    expected: str

    @property
    def columns(self) -> int | None:
        """The number of columns that are compared; `None`: all columns."""
        number = self.marks.get("columns")
        return None if number is None else int(number)


@dataclass(frozen=True)
class Corpus:
    """A file of statements."""

    path: Path
    marks: Mapping[str, str]
    statements: list[Statement]

    @property
    def name(self) -> str:
        """The name of the file without its ending."""
        return self.path.name.removesuffix(".sql.txt")

    def statements_of(self, version: tuple[int, ...]) -> list[Statement]:
        """Return the statements that a version of Spark has."""
        return [one for one in self.statements if _version(one.marks.get("since", "0")) <= version]


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def marks_in(text: str) -> dict[str, str]:
    """Return the marks of a text with what they say."""
    return dict(MARK.findall(text))


def read_corpus(path: Path) -> Corpus:
    """Return the statements of a file. Raises ValueError for a block that is no statement with its result."""
    marks: dict[str, str] = {}
    statements = []
    line = 1
    for block in re.split(r"\n{2,}", path.read_text().strip("\n")):
        if block.startswith("#"):
            marks |= marks_in(block)
        else:
            text, separator, expected = block.partition(SEPARATOR)
            if not separator:
                raise ValueError(f"{path}:{line}: the statement needs ---- and a result below it")
            statements.append(Statement(line, text, marks_in(text), expected))
        line += block.count("\n") + 2
    return Corpus(path, marks, statements)


def rewrite(corpus: Corpus, results: Mapping[int, str]) -> None:
    """Put results, by the lines of their statements, into the file."""
    blocks, line = [], 1
    for block in re.split(r"\n{2,}", corpus.path.read_text().strip("\n")):
        blocks.append(block.partition(SEPARATOR)[0] + SEPARATOR + results[line] if line in results else block)
        line += block.count("\n") + 2
    corpus.path.write_text("\n\n".join(blocks) + "\n")


def matches(found: str, expected: str) -> bool:
    """Return True if a result is the expected one; of an error's message a part is enough."""
    if expected.startswith("error: ") and found.startswith("error"):
        return expected.removeprefix("error: ").lower() in found.lower()
    return found == expected or (expected.startswith("error ") and found.startswith(f"{expected}: "))


def answer(session: Any, text: str, warehouse: str, columns: int | None = None) -> str:
    """Run a statement, and return the first ``columns`` of its result as the corpus writes it; `None`: all columns."""
    try:
        frame = session.sql(text.replace("{warehouse}", warehouse))
        rows = frame.collect()
        fields = frame.schema.fields[:columns]
        lines = [" | ".join(shown(row[i], f.dataType) for i, f in enumerate(fields)) for row in rows]
    except Exception as error:
        return error_line(error).replace(warehouse, "{warehouse}")
    if not fields:
        return "ok"
    if QUERY.match(text) and "ORDER BY" not in text.upper():
        lines.sort()
    names = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in fields)
    return "\n".join([names, *lines]).replace(warehouse, "{warehouse}").rstrip()


def error_line(error: Exception) -> str:
    """Return the kind of an error of Spark, and the first line of its message if Spark has no name for the kind."""
    ask: Callable[[], str | None] = getattr(error, "getCondition", None) or getattr(
        error, "getErrorClass", lambda: None
    )
    condition = ask()
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    if condition and not condition.startswith(("_LEGACY", "INTERNAL")):
        return f"error {condition}"
    return f"error: {type(error).__name__} {lines[0]}"


def shown(value: Any, kind: Any) -> str:
    """Return a value as the corpus writes it."""
    name = type(kind).__name__
    if value is None:
        return "NULL"
    if name == "BooleanType":
        return str(value).lower()
    if name == "TimestampType":  # PySpark gives the local time of this process
        return value.astimezone(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f").removesuffix(".000000") + "Z"
    if name == "TimestampNTZType":
        return str(value)
    if name == "DecimalType":  # clients of Connect get a number with other zeros
        return f"{value.quantize(Decimal(1).scaleb(-kind.scale), context=_DIGITS):f}"
    if name == "BinaryType":
        return f"X'{bytes(value).hex()}'"
    if name == "ArrayType":
        return f"[{', '.join(shown(item, kind.elementType) for item in value)}]"
    if name == "MapType":
        items = sorted((shown(k, kind.keyType), shown(v, kind.valueType)) for k, v in value.items())
        return f"{{{', '.join(f'{k}: {v}' for k, v in items)}}}"
    if name == "StructType":
        return f"({', '.join(shown(item, f.dataType) for item, f in zip(value, kind.fields, strict=True))})"
    text = str(value)
    if isinstance(value, str) and (text in ("", "NULL") or text != text.strip() or "\n" in text or "|" in text):
        return json.dumps(text, ensure_ascii=False)
    return text
