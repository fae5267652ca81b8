"""ALTER TABLE ... CREATE | REPLACE | RENAME | DELETE TAG, and SHOW TAGS."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import SparkSession

from paimon_core import Table
from paimon_core.errors import NotFoundError
from paimon_spark.sql.bridge.catalogs import open_table
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.statements.tokens import Cursor

_UNITS = {"DAYS": timedelta(days=1), "HOURS": timedelta(hours=1), "MINUTES": timedelta(minutes=1)}


@dataclass(frozen=True)
class TagStatement:
    """A statement about tags. `act`: a function that runs it on the table and returns the rows."""

    title: str
    columns: str
    table: tuple[str, ...]
    command: str
    act: Callable[[Table], Sequence[Sequence[Any]]]

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Run the statement in a session and return its rows."""
        return self.act(open_table(jvm, spark, self.table, self.command))


def parse_show(text: str) -> TagStatement | None:
    """Parse ``SHOW TAGS t``; `None`: another statement."""
    cursor = Cursor(text)
    if not cursor.accept("SHOW", "TAGS"):
        return None
    table = cursor.parts()
    cursor.end()
    return TagStatement(f"Paimon SHOW TAGS {_dotted(table)}", "tag STRING", table, "SHOW TAGS", _show)


def parse_alter(text: str) -> TagStatement | None:
    """Parse ``ALTER TABLE t ... TAG ...``; `None`: another statement."""
    cursor = Cursor(text)
    if not cursor.accept("ALTER", "TABLE") or cursor.next.kind not in ("name", "quoted", "number"):
        return None
    table = cursor.parts()
    for keywords, parse in _VERBS.items():
        if cursor.accept(*keywords, "TAG"):
            act = parse(cursor)
            cursor.end()
            title = f"Paimon ALTER TABLE {_dotted(table)} {' '.join(keywords)} TAG"
            return TagStatement(title, "", table, "ALTER TABLE", act)
    return None


def _create(cursor: Cursor) -> Callable[[Table], Sequence[Any]]:
    ignore = cursor.accept("IF", "NOT", "EXISTS")
    name, version, retained = cursor.name(), _version(cursor), _retained(cursor)
    return lambda table: _nothing(table.tags.create(name, version, retained, ignore_if_exists=ignore))


def _replace(cursor: Cursor) -> Callable[[Table], Sequence[Any]]:
    name, version, retained = cursor.name(), _version(cursor), _retained(cursor)
    return lambda table: _nothing(table.tags.replace(name, version, retained))


def _create_or_replace(cursor: Cursor) -> Callable[[Table], Sequence[Any]]:
    name, version, retained = cursor.name(), _version(cursor), _retained(cursor)

    def act(table: Table) -> Sequence[Any]:
        try:
            return _nothing(table.tags.replace(name, version, retained))
        except NotFoundError:
            return _nothing(table.tags.create(name, version, retained))

    return act


def _rename(cursor: Cursor) -> Callable[[Table], Sequence[Any]]:
    name = cursor.name()
    cursor.expect("TO")
    target = cursor.name()
    return lambda table: _nothing(table.tags.rename(name, target))


def _delete(cursor: Cursor) -> Callable[[Table], Sequence[Any]]:
    ignore = cursor.accept("IF", "EXISTS")
    name = cursor.name()

    def act(table: Table) -> Sequence[Any]:
        try:
            table.tags.delete(name)
        except NotFoundError:
            if not ignore:
                raise
        return []

    return act


_VERBS: dict[tuple[str, ...], Callable[[Cursor], Callable[[Table], Sequence[Any]]]] = {
    ("CREATE", "OR", "REPLACE"): _create_or_replace,
    ("CREATE",): _create,
    ("REPLACE",): _replace,
    ("RENAME",): _rename,
    ("DELETE",): _delete,
}


def _version(cursor: Cursor) -> int | None:
    if not cursor.accept("AS"):
        return None
    cursor.expect("OF", "VERSION")
    return cursor.number()


def _retained(cursor: Cursor) -> timedelta | None:
    if not cursor.accept("RETAIN"):
        return None
    number = cursor.number()
    for unit, length in _UNITS.items():
        if cursor.accept(unit):
            return number * length
    raise cursor.mismatch()


def _show(table: Table) -> list[list[str]]:
    return [[tag.name] for tag in table.tags.list()]


def _nothing(_: object) -> Sequence[Any]:
    return []


def _dotted(parts: Sequence[str]) -> str:
    return ".".join(parts)
