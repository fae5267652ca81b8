"""The effects of operations on rows, as functions. A row is the pairs of field id and value that are not NULL."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from paimon_core.schema.table_schema import TableSchema

Row: TypeAlias = tuple[tuple[int, Any], ...]


class Effect(Protocol):
    """A change of the rows of a table."""

    def apply(self, rows: Sequence[Row], schema: TableSchema, oracle: Any) -> list[Row]:
        """Return the rows after it, under the newest schema."""


def normal(rows: Iterable[Mapping[int, Any]]) -> list[Row]:
    """Return rows in one order, without NULLs."""
    return sorted((tuple(sorted((k, v) for k, v in row.items() if v is not None)) for row in rows), key=repr)


def visible(rows: Iterable[Row], schema: TableSchema) -> list[Row]:
    """Return the rows with the columns of a schema alone."""
    known = {f.id for f in schema.fields}
    return normal({k: v for k, v in row if k in known} for row in rows)


def shown(rows: Iterable[Row], schema: TableSchema) -> str:
    """Return rows as a short text."""
    names = {f.id: f.name for f in schema.fields}
    return "{" + ", ".join("/".join(str(v) for k, v in row if names.get(k)) or "NULL" for row in rows) + "}"


def column_id(schema: TableSchema, name: str) -> int:
    """Return the field id of a column."""
    return next(f.id for f in schema.fields if f.name == name)


def key_of(schema: TableSchema) -> int:
    """Return the field id of the column ``id``."""
    return column_id(schema, "id")


def has_nulls(rows: Iterable[Row], schema: TableSchema) -> bool:
    """Return True if a row has no ``id``, which no row is written without."""
    key = key_of(schema)
    return any(key not in dict(row) for row in rows)


def by_key(rows: Iterable[Row], schema: TableSchema) -> dict[Any, Row]:
    """Return rows by the value of the column ``id``."""
    key = key_of(schema)
    return {dict(row).get(key): row for row in rows}


@dataclass(frozen=True)
class Keep:
    """No change."""

    def apply(self, rows: Sequence[Row], schema: TableSchema, oracle: Any) -> list[Row]:
        return list(rows)


KEEP = Keep()


@dataclass(frozen=True)
class Insert:
    """Further rows."""

    added: tuple[Row, ...]

    def apply(self, rows: Sequence[Row], schema: TableSchema, oracle: Any) -> list[Row]:
        return sorted([*rows, *visible(self.added, schema)], key=repr)


@dataclass(frozen=True)
class Upsert:
    """Rows that replace the rows of the same key."""

    added: tuple[Row, ...]

    def apply(self, rows: Sequence[Row], schema: TableSchema, oracle: Any) -> list[Row]:
        key = key_of(schema)
        keys = {dict(row).get(key) for row in self.added}
        stay = [row for row in rows if dict(row).get(key) not in keys]
        return sorted([*stay, *visible(self.added, schema)], key=repr)

    def accepts(self, then: Sequence[Row], now: Sequence[Row], schema: TableSchema) -> bool:
        """Return True if each key has its new or its previous row: either of two concurrent rows may win.

        The rows of a key are ordered by their sequence numbers, which a writer takes from the snapshot it has read.
        """
        before, after, new = (by_key(rows, schema) for rows in (then, now, visible(self.added, schema)))
        keys = before.keys() | after.keys() | new.keys()
        ours = all(after.get(one) in (before.get(one), new.get(one, before.get(one))) for one in keys)
        return ours and len(after) == len(now)


@dataclass(frozen=True)
class Overwrite:
    """Rows in place of all rows."""

    added: tuple[Row, ...]

    def apply(self, rows: Sequence[Row], schema: TableSchema, oracle: Any) -> list[Row]:
        return visible(self.added, schema)


@dataclass(frozen=True)
class OverwritePartition:
    """Rows in place of the rows of one partition. ``column``: the field id of the partition column."""

    added: tuple[Row, ...]
    column: int
    value: int

    def apply(self, rows: Sequence[Row], schema: TableSchema, oracle: Any) -> list[Row]:
        stay = [row for row in rows if dict(row).get(self.column) != self.value]
        return sorted([*stay, *visible(self.added, schema)], key=repr)


@dataclass(frozen=True)
class Remove:
    """The rows of some ids go."""

    ids: frozenset[int]

    def apply(self, rows: Sequence[Row], schema: TableSchema, oracle: Any) -> list[Row]:
        key = key_of(schema)
        return [row for row in rows if dict(row).get(key) not in self.ids]


@dataclass(frozen=True)
class Update:
    """One column of the rows of some ids changes, and no other column."""

    values: Mapping[int, Any]
    column: int

    def apply(self, rows: Sequence[Row], schema: TableSchema, oracle: Any) -> list[Row]:
        key = key_of(schema)
        changed = []
        for row in map(dict, rows):
            if row.get(key) in self.values:
                row[self.column] = self.values[row[key]]
            changed.append(row)
        return normal(changed)


@dataclass(frozen=True)
class Restore:
    """The rows of a snapshot file take the place of all rows."""

    files: tuple[Any, ...]

    def apply(self, rows: Sequence[Row], schema: TableSchema, oracle: Any) -> list[Row]:
        for file in self.files:
            return list(oracle.rows(file, schema))
        return list(rows)
