"""Check the rows of data files: their order, their bucket, and their agreement with the metadata."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.datafile.reader import read_file
from paimon_core.errors import PaimonError
from paimon_core.inspect.verify.index_content import IndexContent
from paimon_core.inspect.verify.verify_report import Fault
from paimon_core.lsm.intervals import ranks
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.row.binary_row import decode_rows
from paimon_core.row.bucket import buckets
from paimon_core.scan.file_filter import stats_of_files
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import DataField
from paimon_core.types.row_kind import is_retract
from paimon_core.types.system_fields import SEQUENCE_NUMBER, VALUE_KIND

_BLOB = "BLOB"


@dataclass(slots=True)
class _Bounds:
    """The smallest and largest value of a column so far, and its number of NULLs. NaN is ignored."""

    low: Any = None
    high: Any = None
    nulls: int = 0

    def add(self, column: pa.Array) -> None:
        self.nulls += column.null_count
        if pa.types.is_nested(column.type):
            return
        if pa.types.is_floating(column.type):
            column = column.filter(pc.invert(pc.is_nan(column)))
        bounds = pc.min_max(column)
        low, high = bounds["min"], bounds["max"]
        if low.is_valid:
            self.low = low if self.low is None or pc.less(low, self.low).as_py() else self.low
            self.high = high if self.high is None or pc.greater(high, self.high).as_py() else self.high


@dataclass(slots=True)
class FileContent:
    """The check of one data file: `check` yields its faults, and ``rows`` is the number of rows read."""

    store: FileStore
    entry: ManifestEntry
    rows: int = 0
    _bounds: dict[str, _Bounds] = field(default_factory=dict)
    _sequences: _Bounds = field(default_factory=_Bounds)
    _retracts: int = 0
    _first: pa.RecordBatch | None = None
    _last: pa.RecordBatch | None = None

    def check(self) -> Iterator[Fault]:
        """Read all rows of the file and yield contradictions to its metadata. Memory: one batch."""
        path = self.store.file_path(self.entry.bucket_ref, self.entry.file)
        try:
            indexes = IndexContent(self.store.at_schema(self._meta.schema_id), path, self._meta)
            for message, kind in self._faults(indexes):
                yield Fault(kind, path, message, self._meta.file_name)
            for message, kind in indexes.faults():
                yield Fault(kind, indexes.path_of_index, message, self._meta.file_name)
        except (PaimonError, OSError, pa.ArrowException, ValueError) as error:
            yield Fault("unreadable-data-file", path, str(error))

    @property
    def _meta(self) -> DataFileMeta:
        return self.entry.file

    def _faults(self, indexes: IndexContent) -> Iterator[tuple[str, str]]:
        store = self.store.at_schema(self._meta.schema_id)
        keyed = store.traits.keyed
        sorted_rows = keyed and self.entry.bucket >= 0
        fields = self._stored_fields(store)
        columns = (*fields, SEQUENCE_NUMBER, VALUE_KIND) if keyed else fields
        keys = list(store.schema.trimmed_primary_keys)
        in_order = in_bucket = True
        for batch in read_file(store, self.entry.bucket_ref, self._meta, columns):
            self.rows += batch.num_rows
            indexes.add(batch)
            for column in fields:
                self._bounds.setdefault(column.name, _Bounds()).add(batch.column(column.name))
            if keyed:
                self._sequences.add(batch.column(SEQUENCE_NUMBER.name))
                kinds = batch.column(VALUE_KIND.name).to_numpy(zero_copy_only=False)
                self._retracts += int(is_retract(kinds).sum())
                in_order = in_order and (not sorted_rows or self._follows(batch.select(keys)))
            in_bucket = in_bucket and self._in_bucket(store, batch)
        if not in_order:
            yield "the rows are not sorted by key, or a key occurs twice", "wrong-key-order"
        if not in_bucket:
            yield f"rows do not belong to bucket {self.entry.bucket} of {self.entry.total_buckets}", "wrong-bucket"
        if keyed:
            yield from self._wrong_numbers(store if sorted_rows and in_order else None)
        yield from self._wrong_statistics(store, fields)

    def _stored_fields(self, store: FileStore) -> tuple[DataField, ...]:
        names = self._meta.write_cols
        fields = store.schema.fields if names is None else tuple(f for f in store.schema.fields if f.name in names)
        return tuple(f for f in fields if _BLOB not in str(f.type)) if len(fields) > 1 else fields

    def _follows(self, keys: pa.RecordBatch) -> bool:
        """Return True if the keys ascend and follow the keys of the previous batch."""
        if not keys.num_rows:
            return True
        self._first = keys.slice(0, 1) if self._first is None else self._first
        joined = keys if self._last is None else _joined([self._last, keys])
        self._last = keys.slice(keys.num_rows - 1)
        return bool((np.diff(ranks(joined)) > 0).all())

    def _in_bucket(self, store: FileStore, batch: pa.RecordBatch) -> bool:
        """Return True unless a row's values prove that it belongs to another bucket."""
        names = [f.name for f in store.schema.bucket_fields]
        if self.entry.total_buckets < 1 or store.schema.bucket < 1 or not names or self._meta.write_cols is not None:
            return True
        row_buckets = buckets(batch.select(names), self.entry.total_buckets, store.bucket_function)
        return bool((row_buckets == self.entry.bucket).all())

    def _wrong_numbers(self, ordered: FileStore | None) -> Iterator[tuple[str, str]]:
        """Yield faults of sequence numbers, row kinds and key bounds. ``ordered``: `None` if rows are not sorted."""
        meta, low, high = self._meta, self._sequences.low, self._sequences.high
        if low is not None and (low.as_py(), high.as_py()) != (meta.min_sequence_number, meta.max_sequence_number):
            promised = f"{meta.min_sequence_number} to {meta.max_sequence_number}"
            yield f"its rows have sequence numbers {low} to {high}, its manifest says {promised}", "wrong-sequences"
        if meta.delete_row_count is not None and meta.delete_row_count != self._retracts:
            yield f"{self._retracts} rows delete, its manifest says {meta.delete_row_count}", "wrong-delete-count"
        if ordered is None or self._first is None or self._last is None:
            return
        stored = decode_rows([meta.min_key, meta.max_key], ordered.schema.key_arrow)
        key_ranks = ranks(_joined([stored, self._first.cast(stored.schema), self._last.cast(stored.schema)]))
        if key_ranks[2] < key_ranks[0] or key_ranks[3] > key_ranks[1]:  # Java's compactions count dropped deletes
            yield "its first or last key is outside of the range in its manifest", "wrong-key-range"

    def _wrong_statistics(self, store: FileStore, fields: Sequence[DataField]) -> Iterator[tuple[str, str]]:
        for column in fields:
            stored, bounds = stats_of_files(store, [self.entry], column), self._bounds.get(column.name)
            if stored is None or bounds is None:
                continue
            nulls = int(stored.null_count[0])
            if nulls not in (-1, bounds.nulls):
                yield f"column {column.name} has {bounds.nulls} NULLs, its manifest says {nulls}", "wrong-statistics"
            low, high = stored.min[0], stored.max[0]
            too_small = (
                low.is_valid and bounds.low is not None and pc.less(bounds.low, low.cast(bounds.low.type)).as_py()
            )
            too_large = (
                high.is_valid
                and bounds.high is not None
                and pc.greater(bounds.high, high.cast(bounds.high.type)).as_py()
            )
            if too_small or too_large:
                values = f"values from {bounds.low} to {bounds.high}"
                yield f"column {column.name} has {values}, its manifest says {low} to {high}", "wrong-statistics"


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches, batches[0].schema).combine_chunks().to_batches()[0]
