"""Rows by primary key: of the files that can hold a key, keys are decoded first, and values only where one is met.

What is found is what a read of the snapshot shows: the rows met go the way of all rows, through the merge engine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.datafile.deletion_vectors import stored_vectors, vector_entries
from paimon_core.datafile.indexes import indexed_rows
from paimon_core.datafile.reader import ReadOptions, read_file
from paimon_core.deletion.files import load_vectors
from paimon_core.deletion.vector import DeletionVector
from paimon_core.errors import InvalidInputError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.lsm.intervals import ranks, sections
from paimon_core.lsm.sorted_run import SortedRun, files_by_age
from paimon_core.manifest.bucket import InCountedBucket
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import files_by_bucket
from paimon_core.merge.row_kinds import drop_retracts
from paimon_core.predicate.expr import And, Leaf, Predicate
from paimon_core.predicate.rewrite import to_file
from paimon_core.read.key_cache import KeyCache, Positions, group_codes, match_keys, search_keys
from paimon_core.read.sections import ReadFile, by_age
from paimon_core.read.table_read import TableRead
from paimon_core.row.binary_row import decode_rows
from paimon_core.row.bucket import buckets
from paimon_core.scan.entries import live_entries
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.support import check_readable
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.coerce import coerce_array
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import VALUE_KIND

_SMALL_FILE = 1 << 18  # bytes
_FEW = 4  # rows that are sliced out one by one
_MOST_LISTED = 1_000  # keys beyond which the indexes of a file are not asked for them


@dataclass(frozen=True)
class _Bucket(InCountedBucket):
    """The visible files of one bucket."""

    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFileMeta, ...]
    key_schema: pa.Schema

    @cached_property
    def bounds(self) -> pa.Table:
        """The least keys of the files, then the largest."""
        rows = [f.min_key for f in self.files] + [f.max_key for f in self.files]
        return pa.Table.from_batches([decode_rows(rows, self.key_schema)])


class Lookup:
    """Look-ups in one snapshot. Its metadata are read once, when it is made; ``blocks`` may outlive it."""

    def __init__(self, scan: TableScan, blocks: KeyCache) -> None:
        self.scan, self._blocks = scan, blocks
        self._store, schema = scan.store, scan.store.schema
        check_readable(schema)
        self._key = tuple(schema.trimmed_primary_keys)
        self._leveled = self._store.traits.needs_lookup
        self._engine = self._store.traits.merge_engine()
        found = live_entries(self._store, scan.snapshot, with_stats=False).live if scan.snapshot is not None else []
        files_of = files_by_bucket(scan.visible(found))
        self._buckets = [_Bucket(*bucket, tuple(files), schema.key_arrow) for bucket, files in files_of.items()]
        self._vectors = stored_vectors(self._store, vector_entries(self._store, scan.snapshot))

    def rows(self, keys: pa.Table, fields: Sequence[DataField]) -> pa.Table:
        """The rows of these primary keys, in their order, those that there are; columns ``fields``.

        ``keys`` has the columns of the primary key in their Arrow types, without nulls. Opens only files whose range of
        keys holds one of them, in parallel, and the newest first where an older row does not count.
        """
        schema = self._store.schema
        numbers, first = group_codes(keys, schema.primary_keys)
        distinct = keys.take(pa.array(first))
        whole = (*fields, *(schema.field(k) for k in schema.primary_keys if all(f.name != k for f in fields)))
        read = TableRead(self._store, whole)
        places = [(bucket, asked) for bucket, asked in self._places(distinct) if asked.num_rows]
        prepared = parallel_map(lambda place: self._sections(*place), places)
        work = [section for sections in prepared for section in sections]
        found = parallel_map(lambda section: list(self._of_section(section, read)), work)
        made = read.schema
        tables = [pa.Table.from_arrays(t.select(made.names).columns, schema=made) for f in found for t in f]
        table = pa.concat_tables([made.empty_table(), *tables])
        at, which = match_keys(table.select(schema.primary_keys), distinct)
        row = np.full(len(first), -1)
        row[which] = at
        wanted = row[numbers]
        rows: pa.Table = table.select([f.name for f in fields]).take(pa.array(wanted[wanted >= 0]))
        return rows

    def _places(self, keys: pa.Table) -> Iterator[tuple[_Bucket, pa.Table]]:
        """Every bucket, with the keys that belong to it as far as partition and bucket tell."""
        partitioned = self._by_partition(keys)
        spread: dict[tuple[bytes, int], npt.NDArray[np.int32]] = {}
        hashed = self._store.schema.bucket > 0
        for bucket in self._buckets:
            chosen = partitioned.get(bucket.partition, keys.slice(0, 0))
            if hashed and bucket.total_buckets > 0 and chosen.num_rows:
                at = (bucket.partition, bucket.total_buckets)
                if at not in spread:
                    columns = chosen.select(self._store.schema.bucket_keys).combine_chunks().to_batches()[0]
                    spread[at] = buckets(columns, bucket.total_buckets, self._store.bucket_function)
                chosen = chosen.filter(pa.array(spread[at] == bucket.bucket))
            yield bucket, chosen.select(self._key)

    def _by_partition(self, keys: pa.Table) -> dict[bytes, pa.Table]:
        """The keys that can be in each partition: all that agree in the partition columns the key has."""
        schema = self._store.schema
        partitions = list(dict.fromkeys(b.partition for b in self._buckets))
        shared = [k for k in schema.partition_keys if k in schema.primary_keys]
        if not shared:
            return dict.fromkeys(partitions, keys)
        numbers, first = group_codes(keys, shared)
        known = {_place(row): n for n, row in enumerate(keys.select(shared).take(pa.array(first)).to_pylist())}
        values = decode_rows(partitions, schema.partition_arrow).select(shared).to_pylist() if partitions else []
        found = ((p, known.get(_place(row))) for p, row in zip(partitions, values, strict=True))
        return {p: keys.filter(pa.array(numbers == n)) for p, n in found if n is not None}

    def _sections(self, bucket: _Bucket, keys: pa.Table) -> list["_Section"]:
        """Return the files of a bucket that can hold one of the keys, those that overlap together."""
        asked = _Asked.of(bucket, keys)
        files = [f for f in bucket.files if asked.left(f).num_rows]
        if not files:
            return []
        vectors = load_vectors(
            self._store.io, [self._vectors[f.file_name] for f in files if f.file_name in self._vectors]
        )
        return [_Section(bucket, runs, asked, vectors) for runs in sections(files, bucket.key_schema)]

    def _of_section(self, section: "_Section", read: TableRead) -> Iterator[pa.Table]:
        """Yield the rows of keys in files that overlap, merged. Sections share no key, so they may go side by side."""
        bucket, runs, asked, vectors = section.bucket, section.runs, section.asked, section.vectors

        def reading(fields: Sequence[DataField], _: Predicate | None) -> ReadFile:
            return lambda file, parallel_files: self._met(bucket, file, asked, _Wanted(fields, vectors))

        aged = by_age(runs) if self._engine.newest_wins and not self._upper_only(runs) else None
        if aged is None:
            yield from read.merged(files_by_age(runs), reading)
        else:
            yield from self._newest_first(bucket, aged, asked, _Wanted((*read.fields, VALUE_KIND), vectors, True))

    def _upper_only(self, runs: Sequence[SortedRun]) -> bool:
        """Return True if newer rows may not count: above level 0 only the row of the smallest level does.

        Compactions that met leave such files.
        """
        above = sorted((f.max_sequence_number, -f.level) for run in runs for f in run.files if f.level)
        return self._leveled and any(a[1] > b[1] for a, b in pairwise(above))

    def _newest_first(
        self, bucket: _Bucket, aged: Sequence[SortedRun], asked: "_Asked", wanted: "_Wanted"
    ) -> Iterator[pa.Table]:
        """The newest row of each key: what is found in a run is not looked for in older ones."""
        for run in reversed(aged):
            for batches in parallel_map(lambda file: list(self._met(bucket, file, asked, wanted)), run.files):
                if batches:
                    rows = pa.Table.from_batches(batches)
                    yield drop_retracts(rows) if VALUE_KIND.name in rows.column_names else rows

    def _met(self, bucket: _Bucket, file: DataFileMeta, asked: "_Asked", how: "_Wanted") -> Iterator[pa.RecordBatch]:
        """The rows of one file that have one of the keys asked for."""
        wanted = asked.left(file)
        if not wanted.num_rows:
            return
        fields = how.fields_of(file)
        rows = self._blocks.get((file.file_name, tuple(fields)))
        keys = self._blocks.get(file.file_name) if rows is None else rows.select(self._key)
        if keys is None:
            if not self._may_hold(bucket, file, wanted):
                return
            keys, rows = self._decoded(bucket, file, fields)
        at, which = search_keys(keys, wanted)
        deleted = how.vectors.get(file.file_name)
        if deleted is not None:
            left = ~deleted.among(at)
            at, which = at[left], which[left]
        if not len(at):
            return
        if how.once:
            asked.close(file, which)
        if rows is not None:
            yield from _taken(rows, np.sort(at))
            return
        mask = np.zeros(file.row_count, bool)
        mask[at] = True
        yield from read_file(self._store, bucket.bucket_ref, file, fields, ReadOptions(row_mask=mask))

    def _decoded(
        self, bucket: _Bucket, file: DataFileMeta, fields: Sequence[DataField]
    ) -> tuple[pa.Table, pa.Table | None]:
        """Return the keys of a file and keep them; its rows in their place where the file is so small that opening it
        a second time would cost more than they do."""
        key = tuple(self._store.schema.field(k) for k in self._key)
        whole = file.file_size <= _SMALL_FILE
        chosen = fields if whole else key
        batches = list(read_file(self._store, bucket.bucket_ref, file, chosen, ReadOptions(unbounded=whole)))
        rows = pa.Table.from_batches(batches, None if batches else arrow_schema(chosen))
        rows = rows if len(batches) == 1 else rows.combine_chunks()
        self._blocks.put((file.file_name, tuple(fields)) if whole else file.file_name, rows)
        return rows.select(self._key), rows if whole else None

    def _may_hold(self, bucket: _Bucket, file: DataFileMeta, keys: pa.Table) -> bool:
        """Whether the indexes of the file leave it possible that it has one of the keys."""
        if keys.num_rows > _MOST_LISTED or (file.embedded_index is None and not file.extra_files):
            return True
        store = self._store
        values = {name: tuple(_internal(keys.column(name))) for name in self._key}
        if any(value != value for listed in values.values() for value in listed):
            return True  # NaN equals nothing in a filter
        tests = [Leaf("in", name, listed) for name, listed in values.items()]
        moved = to_file(And(tuple(tests)), store.schema.fields, store.schemas.get(file.schema_id).fields)
        path = store.file_path(bucket.bucket_ref, file)
        return moved is None or indexed_rows(store, path, file, moved) is not False


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is read of the rows met, which of them are deleted, and whether the first one met is all there is to it."""

    fields: Sequence[DataField]
    vectors: Mapping[str, DeletionVector]
    once: bool = False

    def fields_of(self, file: DataFileMeta) -> Sequence[DataField]:
        """Return what is read of one file: not the kinds of rows that are taken as they are and delete nothing."""
        if not self.once or file.delete_row_count != 0:
            return self.fields
        return [f for f in self.fields if f.id != VALUE_KIND.id]


class _Asked:
    """Keys asked of one bucket, sorted, and which of them lie in the range of each file and are still looked for."""

    def __init__(self, keys: pa.Table, spans: Mapping[str, slice]) -> None:
        self._keys, self._spans = keys, spans
        self._open = np.ones(keys.num_rows, bool)

    @staticmethod
    def of(bucket: _Bucket, keys: pa.Table) -> "_Asked":
        """REQUIRES: a key occurs once."""
        count = len(bucket.files)
        order = ranks(
            pa.concat_tables([bucket.bounds, keys.cast(bucket.bounds.schema)]).combine_chunks().to_batches()[0]
        )
        low, high, own = order[:count], order[count : 2 * count], order[2 * count :]
        sorted_by_key = np.argsort(own)
        own = own[sorted_by_key]
        first, last = np.searchsorted(own, low, "left"), np.searchsorted(own, high, "right")
        spans = {
            f.file_name: slice(*span) for f, *span in zip(bucket.files, first.tolist(), last.tolist(), strict=True)
        }
        return _Asked(keys.take(pa.array(sorted_by_key)), spans)

    def left(self, file: DataFileMeta) -> pa.Table:
        """Keys that may be in a file and are looked for."""
        span = self._spans[file.file_name]
        if span.start == span.stop or self._open[span].all():
            return self._keys.slice(span.start, span.stop - span.start)
        return self._keys.take(pa.array(self._places(file)))

    def close(self, file: DataFileMeta, which: Positions) -> None:
        """Look no longer for these of the keys :meth:`left`, which the file has."""
        self._open[self._places(file)[which]] = False

    def _places(self, file: DataFileMeta) -> Positions:
        span = self._spans[file.file_name]
        places: Positions = span.start + np.flatnonzero(self._open[span])
        return places


@dataclass(frozen=True, slots=True)
class _Section:
    """Files of one bucket that overlap, as runs; the keys asked of the bucket, and the deleted rows of its files."""

    bucket: _Bucket
    runs: Sequence[SortedRun]
    asked: _Asked
    vectors: Mapping[str, DeletionVector]


def _taken(rows: pa.Table, at: Positions) -> Iterator[pa.RecordBatch]:
    """Yield the rows at these ascending positions. Taking a few rows from a table costs many times slicing it."""
    if len(at) > _FEW:
        yield from rows.take(pa.array(at)).to_batches()
        return
    for place in at.tolist():
        yield from rows.slice(place, 1).to_batches()


def _place(row: Mapping[str, object]) -> tuple[object, ...]:
    """Return the values of a partition, floating ones as texts: these tell zeros apart, and NaN is one."""
    return tuple(repr(value) if isinstance(value, float) else value for value in row.values())


def _internal(column: pa.ChunkedArray) -> list[object]:
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    return list(column.to_pylist())


def key_table(schema: TableSchema, keys: Mapping[str, object] | Sequence[Mapping[str, object]] | pa.Table) -> pa.Table:
    """Keys as users give them as a table of the columns of the primary key, in their Arrow types.

    Raises InvalidInputError for a column too many or missing, a value that is none of its column, or null.
    """
    names = schema.primary_keys
    if not names:
        raise InvalidInputError(
            "rows can be looked up by their primary key, and the table has none: read with a filter"
        )
    rows = [keys] if isinstance(keys, Mapping) else keys
    columns = []
    for found in [rows.column_names] if isinstance(rows, pa.Table) else rows:
        if set(found) != set(names):
            raise InvalidInputError(f"a key consists of {', '.join(names)}, but {', '.join(map(str, found))} are given")
    for name in names:
        field = schema.field(name)
        try:
            given = (
                rows.column(name)
                if isinstance(rows, pa.Table)
                else pa.array([r[name] for r in rows], to_arrow(field.type))
            )
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(f"key column {name!r} is {field.type}: {error}") from error
        column = coerce_array(given, field.type, name)
        if column.null_count:
            raise InvalidInputError(f"key column {name!r} holds NULL, which no key has")
        columns.append(column)
    return pa.Table.from_arrays(columns, names=names)
