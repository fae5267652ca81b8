"""Tables in a given state, and their rows in a form that compares."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from paimon_core.schema.schema import Schema
from paimon_core.table import Table

ORDERS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32())])


def keyed_table(path: Path | str, schema: pa.Schema = ORDERS, keys: Sequence[str] = ("id",), **options: str) -> Table:
    """A primary-key table with two buckets, unless options (with _ for -) say otherwise."""
    settings = {"bucket": "2", **{k.replace("_", "-"): v for k, v in options.items()}}
    return Table.create(str(path), Schema(schema, primary_keys=list(keys), options=settings))


def append_table(path: Path | str, schema: pa.Schema = ORDERS, **options: str) -> Table:
    """A table without a primary key."""
    settings = {k.replace("_", "-"): v for k, v in options.items()}
    return Table.create(str(path), Schema(schema, options=settings))


def orders(*rows: tuple) -> pa.Table:
    """Rows (id, v, n) of the schema ORDERS."""
    columns = list(zip(*rows, strict=True)) if rows else [[], [], []]
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, ORDERS, strict=True)], schema=ORDERS)


def rows_of(table: pa.Table, order: Sequence[str] = ("id",)) -> list[dict]:
    """Rows as dictionaries, ordered by the given columns."""
    return sorted(table.to_pylist(), key=lambda row: tuple(row[c] for c in order))


def files_below(root: Path | str) -> set[str]:
    """Every file below a directory, relative to it."""
    root = Path(root)
    return {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}
