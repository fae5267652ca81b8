"""Lookups of rows by primary key.

Files that may hold a key are searched by their key columns, and other columns are decoded only for matching rows. The
result equals a read of the snapshot: matching rows pass through the merge engine like all rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_core.datafile.deletion_vectors import stored_vectors, vector_entries
from paimon_core.datafile.indexes import indexed_rows
from paimon_core.datafile.reader import ReadOptions, read_file
from paimon_core.deletion.vector import DeletionVector
from paimon_core.deletion.vector_files import load_vectors
from paimon_core.errors import InvalidInputError, UnsupportedError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.lsm.intervals import ranks, sections
from paimon_core.lsm.sorted_run import SortedRun, files_by_age
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.memory import MemoryShares
from paimon_core.merge.row_kinds import drop_retracts
from paimon_core.options.file import PRIMARY_KEY_NULLABLE
from paimon_core.predicate.expr import And, Leaf, Predicate
from paimon_core.predicate.rewrite import to_file
from paimon_core.read.key_cache import KeyCache, Positions, group_codes, match_keys, search_keys
from paimon_core.read.lookup_buckets import LookupBucket, LookupBuckets
from paimon_core.read.sections import ReadFile, by_age
from paimon_core.read.table_read import TableRead
from paimon_core.row.binary_row import decode_rows
from paimon_core.row.bucket import buckets
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.arrow import arrow_schema, to_arrow
from paimon_core.types.coerce import coerce_array
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import VALUE_KIND

_SMALL_FILE = 1 << 18  # bytes
_FEW = 4  # up to this many rows are sliced from a table one by one
_MOST_INDEX_KEYS = 1_000  # for more keys than this, file indexes are not searched


class Lookup:
    """Lookups in one snapshot, whose metadata are read once; other lookups may share ``cache``."""

    def __init__(self, scan: TableScan, cache: KeyCache) -> None:
        self.scan, self._cache = scan, cache
        self._store, schema = scan.store, scan.store.schema
        self._store.check_readable()
        self._key = tuple(schema.trimmed_primary_keys)
        self._needs_lookup = self._store.traits.needs_lookup
        self._engine = self._store.traits.merge_engine()
        self._threads = MemoryShares.of(self._store.options).threads
        self._buckets = LookupBuckets(scan)
        self._vectors = stored_vectors(self._store, vector_entries(self._store, scan.snapshot))

    def rows(self, keys: pa.Table, fields: Sequence[DataField]) -> pa.Table:
        """Return the rows of these primary keys, in the order of the keys; keys without a row are left out.

        Opens only files whose key range includes a key, in parallel; if older rows have no effect, newest files first.

        Args:
            keys: the primary key columns in their Arrow types, without nulls.
            fields: columns to return.
        """
        schema = self._store.schema
        numbers, first = group_codes(keys, schema.primary_keys)
        distinct = keys.take(pa.array(first))
        with_keys = (*fields, *(schema.field(k) for k in schema.primary_keys if all(f.name != k for f in fields)))
        read = TableRead(self._store, with_keys)
        by_bucket = [(bucket, chosen) for bucket, chosen in self._by_bucket(distinct) if chosen.num_rows]
        work = [section for part in parallel_map(lambda item: self._sections(*item), by_bucket) for section in part]
        results = parallel_map(lambda section: list(self._section_rows(section, read)), work, self._threads)
        arrow = read.schema
        tables = [pa.Table.from_arrays(t.select(arrow.names).columns, schema=arrow) for part in results for t in part]
        table = pa.concat_tables([arrow.empty_table(), *tables])
        positions, which = match_keys(table.select(schema.primary_keys), distinct)
        row = np.full(len(first), -1)
        row[which] = positions
        row = row[numbers]
        rows: pa.Table = table.select([f.name for f in fields]).take(pa.array(row[row >= 0]))
        return read.with_blobs(rows)

    def _by_bucket(self, keys: pa.Table) -> Iterator[tuple[LookupBucket, pa.Table]]:
        """Yield every bucket with the keys that it can hold according to partition and hash."""
        buckets_of_keys = self._buckets.of_keys(keys)
        by_partition = self._by_partition(keys, [bucket.partition for bucket in buckets_of_keys])
        numbers: dict[tuple[bytes, int], npt.NDArray[np.int32]] = {}
        hashed = self._store.schema.bucket > 0
        for bucket in buckets_of_keys:
            chosen = by_partition.get(bucket.partition, keys.slice(0, 0))
            if hashed and bucket.total_buckets > 0 and chosen.num_rows:
                group = (bucket.partition, bucket.total_buckets)
                if group not in numbers:
                    columns = chosen.select(self._store.schema.bucket_keys).combine_chunks().to_batches()[0]
                    numbers[group] = buckets(columns, bucket.total_buckets, self._store.bucket_function)
                chosen = chosen.filter(pa.array(numbers[group] == bucket.bucket))
            yield bucket, chosen.select(self._key)

    def _by_partition(self, keys: pa.Table, partitions: Iterable[bytes]) -> dict[bytes, pa.Table]:
        """Return the keys that each partition can hold: keys that match it in their partition columns."""
        schema = self._store.schema
        partitions = list(dict.fromkeys(partitions))
        shared = [k for k in schema.partition_keys if k in schema.primary_keys]
        if not shared:
            return dict.fromkeys(partitions, keys)
        numbers, first = group_codes(keys, shared)
        number_of = {_hashable(row): n for n, row in enumerate(keys.select(shared).take(pa.array(first)).to_pylist())}
        values = decode_rows(partitions, schema.partition_arrow).select(shared).to_pylist() if partitions else []
        number_by_partition = ((p, number_of.get(_hashable(row))) for p, row in zip(partitions, values, strict=True))
        return {p: keys.filter(pa.array(numbers == n)) for p, n in number_by_partition if n is not None}

    def _sections(self, bucket: LookupBucket, keys: pa.Table) -> list["_Section"]:
        """Return the files of a bucket whose key range includes a key, as sections of overlapping files."""
        requested = _RequestedKeys.of(bucket, keys)
        files = [f for f in bucket.files if requested.open_keys(f).num_rows]
        if not files:
            return []
        vectors = load_vectors(
            self._store.io, [self._vectors[f.file_name] for f in files if f.file_name in self._vectors]
        )
        return [_Section(bucket, runs, requested, vectors) for runs in sections(files, bucket.key_schema)]

    def _section_rows(self, section: "_Section", read: TableRead) -> Iterator[pa.Table]:
        """Yield the merged rows of the keys. Sections share no key, so they can be read in parallel."""
        runs = section.runs

        def reading(fields: Sequence[DataField], _: Predicate | None) -> ReadFile:
            return lambda file, parallel_files: self._matches(section, file, fields)

        newest_wins = self._engine.newest_wins and not self._mixes_high_levels(runs)
        aged = by_age(runs) if newest_wins else None
        if aged is None:
            yield from read.merged(files_by_age(runs), reading)
        else:
            yield from self._newest_first(section, aged, (*read.fields, VALUE_KIND))

    def _mixes_high_levels(self, runs: Sequence[SortedRun]) -> bool:
        """Return True if a file is newer than a file of a smaller level above 0, after concurrent compactions.

        In tables with lookups the newest row is then not the result: above level 0 the smallest level wins.
        """
        above = sorted((f.max_sequence_number, -f.level) for run in runs for f in run.files if f.level)
        return self._needs_lookup and any(a[1] > b[1] for a, b in pairwise(above))

    def _newest_first(
        self, section: "_Section", aged: Sequence[SortedRun], fields: Sequence[DataField]
    ) -> Iterator[pa.Table]:
        """Yield the newest row of each key; a key found in a run is not searched in older runs.

        REQUIRES: `aged` are the runs of the section, the oldest first; `fields` ends with ``_VALUE_KIND``.
        """

        def matches(file: DataFileMeta) -> list[pa.RecordBatch]:
            columns = fields if file.may_delete else fields[:-1]
            return list(self._matches(section, file, columns, newest_only=True))

        for run in reversed(aged):
            for batches in parallel_map(matches, run.files, self._threads):
                if batches:
                    rows = pa.Table.from_batches(batches)
                    yield drop_retracts(rows) if VALUE_KIND.name in rows.column_names else rows

    def _matches(
        self, section: "_Section", file: DataFileMeta, fields: Sequence[DataField], *, newest_only: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one file that have an open key; ``newest_only`` closes the keys that are found."""
        bucket, requested = section.bucket, section.requested
        open_keys = requested.open_keys(file)
        if not open_keys.num_rows:
            return
        rows = self._cache.get((file.file_name, tuple(fields)))
        keys = self._cache.get(file.file_name) if rows is None else rows.select(self._key)
        if keys is None:
            if not self._may_hold(bucket, file, open_keys):
                return
            keys, rows = self._decode_keys(bucket, file, fields)
        positions, which = search_keys(keys, open_keys)
        deleted = section.vectors.get(file.file_name)
        if deleted is not None:
            live = ~deleted.among(positions)
            positions, which = positions[live], which[live]
        if not len(positions):
            return
        if newest_only:
            requested.close(file, which)
        if rows is not None:
            yield from _take(rows, np.sort(positions))
            return
        mask = np.zeros(file.row_count, bool)
        mask[positions] = True
        yield from read_file(self._store, bucket.bucket_ref, file, fields, ReadOptions(row_mask=mask))

    def _decode_keys(
        self, bucket: LookupBucket, file: DataFileMeta, fields: Sequence[DataField]
    ) -> tuple[pa.Table, pa.Table | None]:
        """Return the keys of a file, and its rows (`None`: the file is not small). Cache what was decoded.

        Opening a small file twice would cost more than decoding its rows.
        """
        key = tuple(self._store.schema.field(k) for k in self._key)
        small = file.file_size <= _SMALL_FILE
        columns = fields if small else key
        batches = list(read_file(self._store, bucket.bucket_ref, file, columns, ReadOptions(unbounded=small)))
        rows = pa.Table.from_batches(batches, None if batches else arrow_schema(columns))
        rows = rows if len(batches) == 1 else rows.combine_chunks()
        self._cache.put((file.file_name, tuple(fields)) if small else file.file_name, rows)
        return rows.select(self._key), rows if small else None

    def _may_hold(self, bucket: LookupBucket, file: DataFileMeta, keys: pa.Table) -> bool:
        """Return False if the indexes of the file exclude all keys."""
        if keys.num_rows > _MOST_INDEX_KEYS or (file.embedded_index is None and not file.extra_files):
            return True
        store = self._store
        values = {name: tuple(_internal(keys.column(name))) for name in self._key}
        if any(value != value for listed in values.values() for value in listed):
            return True  # NaN equals nothing in a filter
        tests = [Leaf("in", name, listed) for name, listed in values.items()]
        moved = to_file(And(tuple(tests)), store.schema.fields, store.schemas.get(file.schema_id).fields)
        path = store.file_path(bucket.bucket_ref, file)
        return moved is None or indexed_rows(store, path, file, moved) is not False


class _RequestedKeys:
    """Keys requested from one bucket, sorted. A key is open until its newest row is found."""

    def __init__(self, keys: pa.Table, ranges: Mapping[str, slice]) -> None:
        self._keys, self._ranges = keys, ranges
        self._open = np.ones(keys.num_rows, bool)

    @staticmethod
    def of(bucket: LookupBucket, keys: pa.Table) -> "_RequestedKeys":
        """Sort the keys, and find the keys within each file's key range. REQUIRES: the keys are distinct."""
        count = len(bucket.files)
        together = pa.concat_tables([bucket.bounds, keys.cast(bucket.bounds.schema)]).combine_chunks()
        rank = ranks(together.to_batches()[0])
        low, high, key_rank = rank[:count], rank[count : 2 * count], rank[2 * count :]
        order = np.argsort(key_rank)
        first, last = np.searchsorted(key_rank[order], low, "left"), np.searchsorted(key_rank[order], high, "right")
        bounds = zip(bucket.files, first.tolist(), last.tolist(), strict=True)
        return _RequestedKeys(keys.take(pa.array(order)), {f.file_name: slice(*bound) for f, *bound in bounds})

    def open_keys(self, file: DataFileMeta) -> pa.Table:
        """Return the open keys within the key range of a file."""
        inside = self._ranges[file.file_name]
        if inside.start == inside.stop or self._open[inside].all():
            return self._keys.slice(inside.start, inside.stop - inside.start)
        return self._keys.take(pa.array(self._open_positions(file)))

    def close(self, file: DataFileMeta, which: Positions) -> None:
        """Close keys; ``which``: their positions in `open_keys(file)`."""
        self._open[self._open_positions(file)[which]] = False

    def _open_positions(self, file: DataFileMeta) -> Positions:
        inside = self._ranges[file.file_name]
        positions: Positions = inside.start + np.flatnonzero(self._open[inside])
        return positions


@dataclass(frozen=True, slots=True)
class _Section:
    """Overlapping files of one bucket as runs, the keys requested from the bucket, and deletion vectors by file."""

    bucket: LookupBucket
    runs: Sequence[SortedRun]
    requested: _RequestedKeys
    vectors: Mapping[str, DeletionVector]


def _take(rows: pa.Table, positions: Positions) -> Iterator[pa.RecordBatch]:
    """Yield the rows at these ascending positions. A few rows are sliced, which is many times faster than a take."""
    if len(positions) > _FEW:
        yield from rows.take(pa.array(positions)).to_batches()
        return
    for position in positions.tolist():
        yield from rows.slice(position, 1).to_batches()


def _hashable(row: Mapping[str, object]) -> tuple[object, ...]:
    """Return the values of a partition, floats as texts, which distinguish 0.0 from -0.0 and are equal for NaN."""
    return tuple(repr(value) if isinstance(value, float) else value for value in row.values())


def _internal(column: pa.ChunkedArray) -> list[object]:
    """Return internal values: dates and times as integers."""
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    return list(column.to_pylist())


def key_table(schema: TableSchema, keys: Mapping[str, object] | Sequence[Mapping[str, object]] | pa.Table) -> pa.Table:
    """Convert a user's keys to a table with the columns of the primary key in their Arrow types.

    Raises InvalidInputError for a missing or unknown column, a value that does not fit its column, and null, and
    UnsupportedError for a table whose keys may be null.
    """
    names = schema.primary_keys
    if not names:
        raise InvalidInputError(
            "lookups need a primary key, but the table has no primary key: read with a filter instead"
        )
    if schema.options.value(PRIMARY_KEY_NULLABLE):
        raise UnsupportedError(
            f"lookups in a table whose keys may be NULL ({PRIMARY_KEY_NULLABLE.key!r}) are not supported yet: read "
            "with a filter instead"
        )
    rows = [keys] if isinstance(keys, Mapping) else keys
    columns = []
    for present in [rows.column_names] if isinstance(rows, pa.Table) else rows:
        if set(present) != set(names):
            raise InvalidInputError(
                f"a key consists of {', '.join(names)}, but the input has {', '.join(map(str, present))}"
            )
    for name in names:
        field = schema.field(name)
        try:
            if isinstance(rows, pa.Table):
                values = rows.column(name)
            else:
                values = pa.array([row[name] for row in rows], to_arrow(field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(f"key column {name!r} is {field.type}: {error}") from error
        column = coerce_array(values, field.type, name)
        if column.null_count:
            raise InvalidInputError(f"key column {name!r} holds NULL, which no key has")
        columns.append(column)
    return pa.Table.from_arrays(columns, names=names)
