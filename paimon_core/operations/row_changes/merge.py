"""MERGE: change the rows of a table by the rows of a source that have the same values of some columns, in one commit.

The source is held in memory and indexed once. The rows of the table are read in batches.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.commit.retry import retry_on_conflict
from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.errors import InvalidInputError
from paimon_core.operations.row_changes.change_writer import ChangeWriter, Committed, change_writer
from paimon_core.operations.row_changes.delete import RETRIES, check_deletes
from paimon_core.operations.row_changes.key_index import KeyIndex
from paimon_core.operations.row_changes.new_values import Condition, condition_mask, evaluated, stored
from paimon_core.operations.row_changes.statement import SEVERAL, check_updates
from paimon_core.operations.row_changes.update import newest, split_batches
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import bind
from paimon_core.schema.support import check_writable
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Operation
from paimon_core.store.file_store import FileStore
from paimon_core.types.combine import combined
from paimon_core.types.datatype import DataField
from paimon_core.types.selection import filter_rows, take_rows
from paimon_core.types.system_fields import ROW_ID

MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE = "matched", "not matched", "not matched by source"
SOURCE, TARGET = "source", "target"
"""The columns of structs over which conditions and values are evaluated: ``pc.field("source", "price")``."""
_INSERT_ROWS = 1 << 17  # source rows that are inserted at a time


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of the source as the new value of a column."""

    name: str


@dataclass(frozen=True)
class Clause:
    """A WHEN clause of MERGE. For each row, the first clause whose condition is true applies.

    Args:
        rows: `MATCHED`, `NOT_MATCHED` or `NOT_MATCHED_BY_SOURCE`.
        action: "update", "delete" or "insert".
        condition: an expression or a predicate over the structs `SOURCE` and `TARGET`; `None`: always true.
        values: the new value of each column: a scalar, an expression, or a `SourceColumn`.
        keys: the source columns that must equal the table's columns, by the name of the table's column.
    """

    rows: str
    action: str
    condition: Condition | None
    values: dict[str, Any]
    keys: dict[str, str]


@dataclass(frozen=True)
class Merge:
    """A MERGE: its source, the columns of ON, and its clauses.

    Args:
        source: the source rows.
        on: the name of a source column for each column of the table that must be equal.
        clauses: the clauses, in the order in which they are tried.
        operation: the keyword of the statement, for errors.
    """

    source: pa.Table
    on: dict[str, str]
    clauses: Sequence[Clause]
    operation: str = "MERGE INTO"

    def of_rows(self, rows: str) -> list[Clause]:
        """Return the clauses for one kind of rows."""
        return [clause for clause in self.clauses if clause.rows == rows]

    @property
    def may_repeat(self) -> bool:
        """True if several source rows may match one target row: the only action is then an unconditional delete."""
        matched = self.of_rows(MATCHED)
        return not matched or (len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None)

    @property
    def changed(self) -> frozenset[str]:
        """The names of the columns that change in existing rows."""
        return frozenset(name for clause in self.clauses if clause.action == "update" for name in clause.values)

    def check(self, schema: TableSchema) -> None:
        """Raise UnsupportedError for a clause whose effect a merge of the table would discard."""
        for clause in self.clauses:
            if clause.action == "delete":
                check_deletes(schema)
            if clause.action == "update":
                check_updates(schema, clause.values, self.operation)

    def fields(self, writer: ChangeWriter) -> tuple[DataField, ...]:
        """Return the columns of the table that this MERGE reads."""
        changing = [clause for clause in self.clauses if clause.rows != NOT_MATCHED]
        expressions = [v for c in changing for v in c.values.values() if isinstance(v, pc.Expression)]
        names = set(self.on).union(*(clause.keys for clause in changing))
        if expressions or any(c.condition is not None for c in changing):
            return writer.fields
        if any(clause.action == "update" for clause in changing):
            if not writer.store.traits.data_evolution:
                return writer.fields
            names |= writer.columns
        elif changing and writer.store.traits.keyed:
            return writer.fields
        positions = writer.positions if changing else tuple(f for f in writer.positions if f.name in names)
        return (*(f for f in writer.store.schema.fields if f.name in names), *positions)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows to which clauses apply, with a side of the table, a side of the source, or both. `None`: no such side."""

    target: pa.RecordBatch | None
    source: pa.RecordBatch | None

    @property
    def number(self) -> int:
        side = self.source if self.target is None else self.target
        return 0 if side is None else int(side.num_rows)

    def filtered(self, mask: pa.BooleanArray) -> "_Rows":
        return _Rows(*(None if side is None else filter_rows(side, mask) for side in (self.target, self.source)))

    def sides(self, columns: Sequence[str]) -> pa.RecordBatch:
        """Return the rows as structs ``target``, with ``columns`` of the table, and ``source``."""
        structs = {}
        if self.target is not None:
            read = set(self.target.schema.names)
            structs[TARGET] = _struct(self.target.select([n for n in columns if n in read]))
        if self.source is not None:
            structs[SOURCE] = _struct(self.source)
        return pa.RecordBatch.from_arrays(list(structs.values()), names=list(structs))


def _struct(rows: pa.RecordBatch) -> pa.StructArray:
    return pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))


def matchable_fields(schema: TableSchema) -> tuple[DataField, ...]:
    """Return the columns that ON and conditions may name: the table's columns, and ``_ROW_ID`` if its rows have ids."""
    return (*schema.fields, *(field for field in tracking_fields(schema) if field == ROW_ID))


def merge_rows(store: FileStore, merge: Merge) -> Committed:
    """Run a MERGE in one commit.

    If another commit changes the same rows at the same time, the statement starts again.

    Raises UnsupportedError for a clause whose effect a merge of the table would discard, InvalidInputError if several
    source rows match one row of the table, CommitConflictError if every attempt met a conflict. After an error the
    table is unchanged. Memory: the source, and the batches of one split.
    """
    check_writable(store.schema)
    merge.check(store.schema)
    index = _index(store, merge)
    by_source = bool(merge.of_rows(NOT_MATCHED_BY_SOURCE))
    found = None if by_source else index.predicate()
    predicate = None if found is None else bind(found, matchable_fields(store.schema))
    return retry_on_conflict(lambda: _Attempt(store, merge, index, predicate).run(), RETRIES)


def repeated_key(store: FileStore, merge: Merge) -> dict[str, Any] | None:
    """Return the key of several source rows, by the table's columns; `None`: every key is unique, or has a NULL."""
    index = _index(store, merge)
    several = np.flatnonzero(index.counts > 1)
    if not len(several):
        return None
    row = int(index.first_rows[several[0]])
    return {name: merge.source.column(column)[row].as_py() for name, column in merge.on.items()}


def _index(store: FileStore, merge: Merge) -> KeyIndex:
    found = {field.name: field for field in matchable_fields(store.schema)}
    fields = [found[name] for name in merge.on]
    return KeyIndex(fields, [merge.source.column(column) for column in merge.on.values()])


@dataclass(frozen=True)
class _Attempt:
    """One attempt of a MERGE. ``predicate``: a bound filter of the table's rows that may match."""

    store: FileStore
    merge: Merge
    index: KeyIndex
    predicate: Predicate | None

    @property
    def _of_target(self) -> list[str]:
        """The names of the columns of the table that conditions and values may use."""
        return [field.name for field in matchable_fields(self.store.schema)]

    def run(self) -> Committed:
        """Read the newest snapshot, write the changes, and publish them in one commit."""
        store, merge, snapshot = self.store, self.merge, newest(self.store)
        with change_writer(store, snapshot, Operation.MERGE, merge.changed) as writer:
            matched = np.zeros(len(self.index.counts), bool)
            for batches in split_batches(store, snapshot, self.predicate, merge.fields(writer)):
                for batch in batches:
                    self._change(writer, batch, matched)
                writer.end_split()
            self._insert(writer, matched)
            return writer.commit()

    def _change(self, writer: ChangeWriter, batch: pa.RecordBatch, matched: npt.NDArray[np.bool_]) -> None:
        """Apply the clauses to rows of the table; note in ``matched`` the keys that they have."""
        merge, index = self.merge, self.index
        codes = index.find([batch.column(name) for name in merge.on])
        found = codes >= 0
        keys = codes[found]
        if not merge.may_repeat and (index.counts[keys] > 1).any():
            raise InvalidInputError(SEVERAL)
        matched[keys] = True
        if len(keys) and merge.of_rows(MATCHED):
            source = _batch(take_rows(merge.source, index.first_rows[keys]))
            self._apply(writer, MATCHED, _Rows(filter_rows(batch, pa.array(found)), source))
        if len(keys) < len(codes) and merge.of_rows(NOT_MATCHED_BY_SOURCE):
            self._apply(writer, NOT_MATCHED_BY_SOURCE, _Rows(filter_rows(batch, pa.array(~found)), None))

    def _insert(self, writer: ChangeWriter, matched: npt.NDArray[np.bool_]) -> None:
        """Apply the clauses for source rows that match no row of the table."""
        if not self.merge.of_rows(NOT_MATCHED):
            return
        codes = self.index.codes
        unmatched = np.ones(len(codes), bool)
        unmatched[codes >= 0] = ~matched[codes[codes >= 0]]
        rows = np.flatnonzero(unmatched)
        for start in range(0, len(rows), _INSERT_ROWS):
            source = _batch(take_rows(self.merge.source, rows[start : start + _INSERT_ROWS]))
            self._apply(writer, NOT_MATCHED, _Rows(None, source))

    def _apply(self, writer: ChangeWriter, kind: str, rows: _Rows) -> None:
        """Apply to each row the first clause whose condition is true."""
        for clause in self.merge.of_rows(kind):
            chosen = rows
            if clause.condition is not None:
                mask = condition_mask(clause.condition, rows.sides(self._of_target))
                chosen, rows = rows.filtered(mask), rows.filtered(pc.invert(mask))
            if chosen.number:
                self._run_clause(writer, clause, chosen)
            if clause.condition is None or not rows.number:
                return

    def _run_clause(self, writer: ChangeWriter, clause: Clause, rows: _Rows) -> None:
        if clause.action == "delete":
            assert rows.target is not None  # a clause for rows of the table
            writer.delete(rows.target)
            return
        values = dict(self._values(clause, rows))
        if clause.action == "insert":
            writer.insert(pa.RecordBatch.from_pydict(values))
            return
        assert rows.target is not None  # a clause for rows of the table
        for name, column in clause.keys.items():
            assert rows.source is not None  # only clauses for matched rows have keys
            self._check_key(name, rows.target.column(name), rows.source.column(column))
        writer.update(rows.target, values)

    def _values(self, clause: Clause, rows: _Rows) -> Iterator[tuple[str, pa.Array]]:
        fields = {field.name: field for field in self.store.schema.fields}
        given = {name: value for name, value in clause.values.items() if not isinstance(value, SourceColumn)}
        expressions = any(isinstance(value, pc.Expression) for value in given.values())
        # without expressions only the number of rows counts
        over = rows.sides(self._of_target) if expressions else rows.target or rows.source
        yield from evaluated(given, over, self.store.schema.fields).items()
        for name, value in clause.values.items():
            if isinstance(value, SourceColumn):
                assert rows.source is not None  # only clauses for rows of the source have its columns
                yield name, stored(rows.source.column(value.name), fields[name])

    def _check_key(self, name: str, old: pa.Array, new: pa.Array) -> None:
        field = self.store.schema.field(name)
        index = KeyIndex([field], [pa.concat_arrays([old, stored(new, field)])])
        codes = index.codes
        if not np.array_equal(codes[: len(old)], codes[len(old) :]):
            raise InvalidInputError(f"{self.merge.operation} cannot change key {name}")


def _batch(rows: pa.Table) -> pa.RecordBatch:
    """Return the rows of a table as one batch."""
    batches = combined(rows).to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)
