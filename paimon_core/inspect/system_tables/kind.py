"""A kind of system table: its columns and the function that reads its rows."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import pinned_values
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import BIGINT, INT, STRING, AtomicType, DataField, DataType, with_nullable

Part: TypeAlias = Any
"""The work of one task: a picklable value that a kind's ``plan`` returns and its ``read`` takes."""
Column: TypeAlias = Sequence[Any] | pa.Array | Callable[[], Sequence[Any] | pa.Array]

LOCAL_TIME = AtomicType("TIMESTAMP", precision=3)
"""The type of times: the wall clock of this machine, without a time zone."""
SOME_TEXT, SOME_LONG, SOME_INT, SOME_TIME = (with_nullable(t, False) for t in (STRING, BIGINT, INT, LOCAL_TIME))


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a read to a system table.

    ``snapshot``: the snapshot to read (`None` if the table has no snapshot); ``store`` has its schema. ``columns``: the
    columns that the rows must have. ``predicate``: bound to the columns of the system table; rows that do not match may
    be left out, but need not be.
    """

    store: FileStore
    snapshot: Snapshot | None
    columns: frozenset[str]
    predicate: Predicate | None = None

    def pinned(self, column: str) -> list[Any] | None:
        """Return the values that a column can have in matching rows; `None` if the predicate does not limit them."""
        if self.predicate is None:
            return None
        values = pinned_values(self.predicate, [column])
        return None if values is None else values[column]


def whole(request: Request) -> list[Part]:
    """Return a single part, so that one task reads the whole table."""
    return [None]


@dataclass(frozen=True, slots=True)
class Fixed:
    """The columns of a system table that are the same for every table."""

    fields: tuple[DataField, ...]

    def __call__(self, store: FileStore) -> tuple[DataField, ...]:
        """Return the columns."""
        return self.fields


@dataclass(frozen=True, slots=True)
class SystemTableKind:
    """A kind of system table, the entry of the registry."""

    name: str
    fields: Callable[[FileStore], tuple[DataField, ...]]
    """Returns the columns."""
    read: Callable[[Request, Part], Iterator[pa.RecordBatch]]
    """Yields the rows of a part in batches that have at least the requested columns. A batch may be empty."""
    plan: Callable[[Request], list[Part]] = whole
    """Returns the parts, which several tasks may read."""
    travels: bool = False
    """True if the rows depend on the snapshot, which time travel selects."""
    of_rows: bool = False
    """True if the rows come from data files, so that there may be many."""
    of_catalog: bool = False
    """True if the rows describe all tables: the system table belongs to no table path."""


def columns(*pairs: tuple[str, DataType]) -> tuple[DataField, ...]:
    """Return fields with these names and types, numbered from 0."""
    return tuple(DataField(i, name, kind) for i, (name, kind) in enumerate(pairs))


def batch_of(fields: Sequence[DataField], names: Collection[str], values_of: Mapping[str, Column]) -> pa.RecordBatch:
    """Return the requested columns as a batch.

    Args:
        fields: the columns of the system table.
        names: names of the requested columns, at least one.
        values_of: the values of each column, or a function that returns them, called for requested columns only.
    """
    requested = [f for f in fields if f.name in names]
    schema = arrow_schema(tuple(requested))
    arrays = []
    for field in schema:
        value = values_of[field.name]
        values = value() if callable(value) else value
        arrays.append(values if isinstance(values, pa.Array) else pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
