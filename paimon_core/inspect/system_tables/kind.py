"""A kind of system table: its columns, and how its rows are read."""

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
"""The work of one task: a value that pickles, which a kind's ``plan`` makes and its ``read`` takes."""
Column: TypeAlias = Sequence[Any] | pa.Array | Callable[[], Sequence[Any] | pa.Array]

LOCAL_TIME = AtomicType("TIMESTAMP", precision=3)
"""The type of times: wall clock of this machine, without a zone."""
SOME_TEXT, SOME_LONG, SOME_INT, SOME_TIME = (with_nullable(t, False) for t in (STRING, BIGINT, INT, LOCAL_TIME))


@dataclass(frozen=True, slots=True)
class Request:
    """What a read asks of a system table.

    ``store`` has the schema of the moment that is read, ``snapshot`` is that moment (`None`: no snapshot yet). The rows
    need ``columns`` only. ``predicate`` is bound to the columns of the system table; rows for which it is not true may
    be left out, and need not be.
    """

    store: FileStore
    snapshot: Snapshot | None
    columns: frozenset[str]
    predicate: Predicate | None = None

    def pinned(self, column: str) -> list[Any] | None:
        """Return the values that a column has in all rows that match; `None`: the predicate does not say."""
        if self.predicate is None:
            return None
        found = pinned_values(self.predicate, [column])
        return None if found is None else found[column]


def whole(request: Request) -> list[Part]:
    """Return one part: the table is read by one task."""
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
    """A system table: the value that the registry has under its name."""

    name: str
    fields: Callable[[FileStore], tuple[DataField, ...]]
    """Returns the columns."""
    read: Callable[[Request, Part], Iterator[pa.RecordBatch]]
    """Yields the rows of a part, in batches that have the requested columns at least. Empty batches are possible."""
    plan: Callable[[Request], list[Part]] = whole
    """Returns the parts, which several tasks may read."""
    travels: bool = False
    """True if the rows are those of a snapshot, which time travel chooses."""
    of_rows: bool = False
    """True if the rows are those of data files: there may be many."""
    of_catalog: bool = False
    """True if the rows are those of all tables: no path opens the table."""


def columns(*named: tuple[str, DataType]) -> tuple[DataField, ...]:
    """Return fields of these names and types, numbered from 0."""
    return tuple(DataField(i, name, kind) for i, (name, kind) in enumerate(named))


def batch_of(fields: Sequence[DataField], wanted: Collection[str], found: Mapping[str, Column]) -> pa.RecordBatch:
    """Return the wanted columns as a batch.

    Args:
        fields: of the system table.
        wanted: names of columns, at least one.
        found: the values of each column, or a function that returns them, called for wanted columns only.
    """
    chosen = [f for f in fields if f.name in wanted]
    schema = arrow_schema(tuple(chosen))
    arrays = []
    for field in schema:
        value = found[field.name]
        values = value() if callable(value) else value
        arrays.append(values if isinstance(values, pa.Array) else pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
