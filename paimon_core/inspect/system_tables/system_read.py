"""A read of a system table: the requested columns of the rows that match a filter."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from paimon_core.inspect.system_tables.kind import Part, Request, SystemTableKind
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import columns as columns_of
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.selection import filter_rows


@dataclass(frozen=True, slots=True)
class SystemRead:
    """A read of a system table: the columns ``fields`` of the rows that match ``predicate`` (bound to its columns).

    The value is picklable, so that several tasks can read the parts of its plan.
    """

    kind: SystemTableKind
    store: FileStore
    snapshot: Snapshot | None
    fields: tuple[DataField, ...]
    predicate: Predicate | None = None

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of every batch."""
        return arrow_schema(self.fields)

    def plan(self) -> list[Part]:
        """Return the parts of the table that can hold matching rows."""
        return self.kind.plan(self._request)

    def to_batches(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one part; batches are never empty."""
        request, names, schema = self._request, [f.name for f in self.fields], self.schema
        for batch in self.kind.read(request, part):
            rows = batch if self.predicate is None else filter_rows(batch, evaluate(self.predicate, batch))
            if not rows.num_rows:
                continue
            yield (
                pa.RecordBatch.from_arrays([rows.column(n) for n in names], schema=schema) if names else rows.select([])
            )

    @property
    def _request(self) -> Request:
        names = {f.name for f in self.fields} | (columns_of(self.predicate) if self.predicate is not None else set())
        columns = names or {self.kind.fields(self.store)[0].name}
        return Request(self.store, self.snapshot, frozenset(columns), self.predicate)
