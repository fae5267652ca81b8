"""Lookups in the levels above a compaction's output level: keys are read first, then the values of matching rows.

Keys are merged like any run, with a number for the location of each row. Values are decoded for matching rows only,
and read in position order, so each file is read once from start to end.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.deletion.vector import DeletionVector
from paimon_core.lsm.intervals import sections
from paimon_core.lsm.sorted_run import SortedRun, files_by_age
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.merge.high_level import LEVEL
from paimon_core.options.merge import SEQUENCE_FIELD
from paimon_core.predicate.expr import And, Leaf, Predicate
from paimon_core.read.sections import ReadFile, file_reader
from paimon_core.row.binary_row import deserialize
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.columns import free_name
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import ROW_POSITION, SEQUENCE_NUMBER, VALUE_KIND

_FILE_AT = 40  # bits of a row position in a file
_POSITION_MASK = (1 << _FILE_AT) - 1
RowLocations = npt.NDArray[np.int64]
"""A number for each row of a higher level that encodes its file and position; -1: a row of the compacted files."""


def sections_with_higher_levels(
    files: Sequence[DataFileMeta], higher: Sequence[DataFileMeta], key_schema: pa.Schema
) -> list[list[SortedRun]]:
    """Return the sections of the compacted files, with the files of higher levels that overlap them.

    A section has the runs of level 0, then the runs of each level. Sections without a compacted file are left out.
    """
    compacted = {file.file_name for file in files}
    result = []
    for section in sections([*files, *higher], key_schema):
        members = files_by_age(section)
        if not any(file.file_name in compacted for file in members):
            continue
        levels: dict[int, list[DataFileMeta]] = {}
        for file in members:
            levels.setdefault(file.level, []).append(file)
        result.append([run for level in sorted(levels) for run in _runs(level, levels[level], key_schema)])
    return result


def _runs(level: int, files: Sequence[DataFileMeta], key_schema: pa.Schema) -> list[SortedRun]:
    """Pack the files of one level into the smallest number of runs."""
    columns = zip_longest(*(section for section in sections(files, key_schema)))
    rows = ([run for run in runs if run is not None] for runs in columns)
    return [
        SortedRun(level, tuple(f for run in runs for f in run.files), tuple(a for run in runs for a in run.ages))
        for runs in rows
    ]


@dataclass(frozen=True, slots=True)
class LookupInput:
    """The files whose keys are looked up in higher levels, and the columns of their rows."""

    files: Sequence[DataFileMeta]
    fields: tuple[DataField, ...]


class LookupFiles:
    """The files of levels above the output level of a compaction of one bucket.

    Args:
        store: the table to read.
        bucket: the bucket of the files.
        files: the files of the higher levels.
        compacted: the files whose keys are looked up; only their key range is read.
        vectors: deletion vectors by file name.
    """

    def __init__(
        self,
        store: FileStore,
        bucket: BucketRef,
        files: Sequence[DataFileMeta],
        compacted: LookupInput,
        vectors: Mapping[str, DeletionVector],
    ) -> None:
        self._store, self._bucket, self._files, self._vectors = store, bucket, list(files), vectors
        self._number = {file.file_name: number for number, file in enumerate(files)}
        self._range = _key_range(store, compacted.files)
        self._columns = compacted.fields
        self.location = free_name("_LOCATION", (field.name for field in compacted.fields))
        """The name of the column of row locations."""
        self._open: dict[int, _PositionReader] = {}

    @staticmethod
    def ordering(store: FileStore) -> tuple[DataField, ...]:
        """Return the columns that merging needs to order rows: keys, sequence fields, sequence number and row kind."""
        table = store.schema
        needed = {*table.trimmed_primary_keys, *store.options.value(SEQUENCE_FIELD)}
        return (*(f for f in table.fields if f.name in needed), SEQUENCE_NUMBER, VALUE_KIND)

    def reader(self, read: ReadFile, *, numbered: bool) -> ReadFile:
        """Return a reader that also reads files of higher levels, with the columns for merging and the row locations.

        ``read``: reads the other files. ``numbered``: True if sequence numbers are needed.
        """
        names = {f.name for f in self.ordering(self._store)} - (set() if numbered else {SEQUENCE_NUMBER.name})
        fields = (*(f for f in self._columns if f.name in names - {VALUE_KIND.name}), ROW_POSITION)
        keys = file_reader(self._store, self._bucket, fields, self._range, self._vectors)
        whole = arrow_schema(self._columns)
        schema = whole.append(pa.field(LEVEL, pa.int8())).append(pa.field(self.location, pa.int64()))

        def reading(file: DataFileMeta, parallel_files: int) -> Iterator[pa.RecordBatch]:
            number = self._number.get(file.file_name)
            for batch in (read if number is None else keys)(file, parallel_files):
                level = pa.repeat(pa.scalar(file.level, pa.int8()), batch.num_rows)
                if number is None:
                    locations = pa.repeat(pa.scalar(-1, pa.int64()), batch.num_rows)
                else:
                    locations = pa.array(batch.column(batch.num_columns - 1).to_numpy() + (number << _FILE_AT))
                yield pa.RecordBatch.from_arrays([*_with_columns(batch, whole), level, locations], schema=schema)

        return reading

    def rows(self, locations: RowLocations) -> pa.Table:
        """Return the complete rows at these locations, in this order.

        REQUIRES: the positions in each file ascend, over all calls.
        """
        numbers = locations >> _FILE_AT
        batches, order = [], []
        for number in np.flatnonzero(np.bincount(numbers)).tolist():
            of_file = np.flatnonzero(numbers == number)
            batches += self._opened(number).rows(locations[of_file] & _POSITION_MASK)
            order.append(of_file)
        rows: pa.Table = pa.Table.from_batches(batches).combine_chunks()
        if len(order) > 1:
            back = np.empty(len(locations), np.int64)
            back[np.concatenate(order)] = np.arange(len(locations))
            rows = rows.take(pa.array(back))
        return rows

    def _opened(self, number: int) -> "_PositionReader":
        """Return the reader of a file. Only one file of each level stays open: keys ascend, and so do its files."""
        if number not in self._open:
            level = self._files[number].level
            self._open = {n: reader for n, reader in self._open.items() if self._files[n].level != level}
            read = file_reader(self._store, self._bucket, (*self._columns, ROW_POSITION), self._range)
            self._open[number] = _PositionReader(read(self._files[number], len({file.level for file in self._files})))
        return self._open[number]

    def level(self, locations: RowLocations) -> npt.NDArray[np.int8]:
        """Return the level of the file of each location."""
        levels: npt.NDArray[np.int8] = np.array([file.level for file in self._files], np.int8)[locations >> _FILE_AT]
        return levels

    def by_file(self, parts: Sequence[RowLocations]) -> dict[str, DeletionVector]:
        """Return deletion vectors of the rows at these locations, by file name."""
        locations = np.concatenate([np.zeros(0, np.int64), *parts])
        numbers = locations >> _FILE_AT
        return {
            self._files[number].file_name: DeletionVector.of(locations[numbers == number] & _POSITION_MASK)
            for number in np.flatnonzero(np.bincount(numbers)).tolist()
        }


class _PositionReader:
    """A reader of rows of a file at ascending positions."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._rows = pa.record_batch([])
        self._positions: RowLocations = np.zeros(0, np.int64)

    def rows(self, positions: RowLocations) -> list[pa.RecordBatch]:
        """Return the rows at these positions. REQUIRES: the positions ascend, over all calls."""
        batches = []
        while len(positions):
            if not len(self._positions) or positions[0] > self._positions[-1]:
                self._next()
                continue
            count = int(np.searchsorted(positions, self._positions[-1], "right"))
            batches.append(self._rows.take(pa.array(np.searchsorted(self._positions, positions[:count]))))
            positions = positions[count:]
        return batches

    def _next(self) -> None:
        batch = next(self._batches)
        last = batch.num_columns - 1
        self._rows, self._positions = batch.remove_column(last), batch.column(last).to_numpy()


def _with_columns(batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.Array]:
    """Return the columns of the schema. Missing columns are null; a missing row kind is +I."""
    names, kinds = {*batch.schema.names}, pa.array(np.zeros(batch.num_rows, np.int8))

    def column(field: pa.Field) -> pa.Array:
        if field.name in names:
            return batch.column(field.name)
        return kinds if field.name == VALUE_KIND.name else pa.nulls(batch.num_rows, field.type)

    return [column(field) for field in schema]


def _key_range(store: FileStore, files: Sequence[DataFileMeta]) -> Predicate | None:
    """Return the range of the first key column of these files. `None`: a bound is NaN, which no filter matches."""
    schema = store.schema.key_arrow
    bounds = [deserialize(key, schema)[0] for f in files for key in (f.min_key, f.max_key)]
    if any(bound != bound for bound in bounds):
        return None
    smallest, largest = min(bounds), max(bounds)
    name = store.schema.trimmed_primary_keys[0]
    return And((Leaf(">=", name, (smallest,)), Leaf("<=", name, (largest,))))
