"""Replace columns and compact files of tables whose columns may be in several files (``data-evolution.enabled``).

New values of some columns are written to a new file, for all rows of the files that hold the changed rows. Thus two
files hold either the same rows or no common row. Row ids, which never change, identify the rows.

Blobs are stored in separate files with fewer rows. New blobs are written for all rows of a blob file. Compaction does
not rewrite blob files.

Deleted rows keep their places in all files, and their row ids: the deletion vector of the oldest data file of a range
marks them. Compaction keeps them, too, and marks them in the new file.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.commit.clean_up import delete_written_files
from paimon_core.commit.commit_messages import commit_messages
from paimon_core.commit.publisher import Publisher
from paimon_core.datafile.deletion_vectors import (
    read_entries,
    restrict_to_files,
    stored_vectors,
    vector_entries,
    vectors_by_bucket,
    write_vectors,
)
from paimon_core.datafile.spec import DataFileSpec
from paimon_core.deletion.vector import DeletionVector
from paimon_core.deletion.vector_files import load_vectors
from paimon_core.errors import InvalidInputError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.lsm.append_compaction import Group
from paimon_core.lsm.row_ranges import RowRangeFiles, anchor, group_by_row_range, is_blob, vector_of_range
from paimon_core.manifest.bucket import BucketLocation
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.manifest.entry import files_by_bucket
from paimon_core.memory import MemoryShares
from paimon_core.operations.jobs.task import ALL_DUE, BucketFiles, PlanRequest, live_files
from paimon_core.read.data_evolution import files_with_columns, read_row_range
from paimon_core.scan.entries import live_entries
from paimon_core.schema.blob_columns import in_blob_files
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import Operation, Snapshot
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.coerce import coerce_array
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import ROW_ID
from paimon_core.write.align import check_references
from paimon_core.write.append_compactor import append_compaction_policy, check_no_newer, write_rows

_WRITERS = 2  # files written in parallel
_ONE_FILE = 1 << 62  # bytes and rows; more than any file has, so that all rows of a range go to one file


@dataclass(frozen=True, slots=True)
class NewValues:
    """New values of some columns: one row for each row id (int64, ascending)."""

    row_ids: np.ndarray
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class _Work:
    """One file to write: columns ``fields`` for all rows of ``files``.

    ``rows[low:high]`` of the changed rows, sorted by row id, belong to the file.
    """

    location: BucketLocation
    files: RowRangeFiles
    fields: tuple[DataField, ...]
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class RowRanges:
    """The row ranges of one snapshot, sorted by row id. Picklable: each task replaces columns of one range."""

    ranges: tuple[tuple[BucketLocation, RowRangeFiles], ...]

    @staticmethod
    def of(store: FileStore, snapshot: Snapshot) -> "RowRanges":
        """Return the row ranges of a snapshot. Raises OutOfRangeError if the snapshot has expired."""
        with raise_if_expired(store, snapshot):
            ranges = [(at, group) for at, groups in _groups(store, snapshot).items() for group in groups]
        return RowRanges(tuple(sorted(ranges, key=lambda ranges: ranges[1][0].first_row_id or 0)))

    def numbers(self, row_ids: np.ndarray) -> np.ndarray:
        """Return the range number of each row id (``int64``). REQUIRES: rows with these ids exist."""
        firsts = np.array([group[0].first_row_id or 0 for _, group in self.ranges], np.int64)
        return np.searchsorted(firsts, row_ids, side="right") - 1

    def deletion_places(self, store: FileStore, row_ids: np.ndarray) -> tuple[pa.Array, pa.Array]:
        """Return where a deletion vector marks the rows with these ids: the paths of the data files, and the positions.

        REQUIRES: rows with these ids exist.
        """
        numbers, places = np.unique(self.numbers(row_ids), return_inverse=True)
        ranges = [self.ranges[number] for number in numbers.tolist()]
        paths = pa.array([store.file_path(at.ref, anchor(group)) for at, group in ranges], pa.string())
        firsts = np.array([group[0].first_row_id or 0 for _, group in ranges], np.int64)
        return paths.take(pa.array(places)), pa.array(row_ids - firsts[places])

    def replace_columns(
        self, store: FileStore, number: int, fields: Sequence[DataField], new: NewValues
    ) -> CommitMessage:
        """Write new values of some columns of one range; return the message. After an error no new file remains.

        Args:
            store: the table to change.
            number: the number of the range.
            fields: the columns to replace.
            new: the new values of the changed rows, with these columns and types.
        """
        location, group = self.ranges[number]
        for batch in new.rows.to_batches():
            check_references(store.schema, batch)
        message = CommitMessage(*location)
        try:
            for columns, files in _parts(store, group, fields):
                low, high = _among(new.row_ids, files)
                if low < high:
                    rows = new.rows.select([f.name for f in columns]).slice(low, high - low)
                    work = _Work(location, files, columns, low, high)
                    file = _write_row_range(store, work, NewValues(new.row_ids[low:high], rows))
                    message = replace(message, new_files=(*message.new_files, file))
        except BaseException:
            delete_written_files(store, [message])
            raise
        return message


# ---- replacing columns


def update_columns(store: FileStore, data: pa.Table) -> Snapshot | None:
    """Replace the values of some columns of some rows in one commit; return ``None`` if ``data`` has no rows.

    ``data`` holds ``_ROW_ID`` and the columns to change, by name. Values of other rows of the same files are copied to
    the new files. Raises InvalidInputError for ids that the table does not have, or whose rows are deleted, and for
    values that its columns cannot hold; CommitConflictError if another commit changed the same columns of the same
    files, or deleted rows of these files, at the same time; OutOfRangeError if the snapshot expires during the call.
    """
    check_writable(store.schema)
    fields, new = _changes(store, data)
    snapshot = store.snapshots.latest()
    if not len(new.row_ids):
        return None
    messages: list[CommitMessage] = []

    def write(work: _Work) -> None:
        rows = new.rows.select([f.name for f in work.fields]).slice(work.low, work.high - work.low)
        file = _write_row_range(store, work, NewValues(new.row_ids[work.low : work.high], rows))
        messages.append(CommitMessage(*work.location, new_files=(file,)))

    publisher = Publisher(store, operation=Operation.UPDATE)
    with publisher.deleting_unless_published(messages):
        with raise_if_expired(store, snapshot):
            for _ in parallel_map(
                write,
                _touched(store, snapshot, fields, new.row_ids),
                threads=MemoryShares.of(store.options).at_most(_WRITERS),
            ):
                pass
        return commit_messages(publisher, messages, started_from=StartedFrom.of(snapshot)).snapshot


def _touched(store: FileStore, snapshot: Snapshot | None, fields: Sequence[DataField], ids: np.ndarray) -> list[_Work]:
    """Return the files to write for rows with these ascending ids. Raises InvalidInputError for an unknown id."""
    by_location = {} if snapshot is None else _groups(store, snapshot)
    touched = [(at, group) for at, groups in by_location.items() for group in groups if np.ptp(_among(ids, group))]
    stored = stored_vectors(store, vector_entries(store, snapshot))
    vectors = load_vectors(store.io, filter(None, (vector_of_range(group, stored) for _, group in touched)))
    exists, works = np.zeros(len(ids), bool), list[_Work]()
    for location, group in touched:
        low, high = _among(ids, group)
        deleted = vector_of_range(group, vectors)
        exists[low:high] = deleted is None or ~deleted.among(ids[low:high] - (group[0].first_row_id or 0))
        parts = ((columns, files, _among(ids, files)) for columns, files in _parts(store, group, fields))
        works += [_Work(location, files, columns, *at) for columns, files, at in parts if at[0] < at[1]]
    if not exists.all():
        raise InvalidInputError(f"{store.root} has no row with {ROW_ID.name} {ids[~exists][0]}")
    return works


def _among(ids: np.ndarray, files: RowRangeFiles) -> tuple[int, int]:
    """Return ``low, high``, where ``ids[low:high]`` of the ascending ids are rows of the first file."""
    first = files[0].first_row_id
    low, high = (0, 0) if first is None else np.searchsorted(ids, [first, first + files[0].row_count]).tolist()
    return low, high


def _parts(
    store: FileStore, group: RowRangeFiles, fields: Sequence[DataField]
) -> Iterator[tuple[tuple[DataField, ...], RowRangeFiles]]:
    """Yield the columns of each new file, and the files whose rows it will hold.

    New blobs replace a single blob file; the other blob files of the range are not rewritten. However, Java reads
    consecutive blob files only if they were written under one schema.
    """
    in_files = in_blob_files(store.schema)
    if other_fields := tuple(f for f in fields if f.name not in in_files):
        yield other_fields, group
    blobs = [f for f in fields if f.name in in_files]
    for field, holders in zip(blobs, files_with_columns(store, group, blobs), strict=True):
        one_by_one = is_blob(holders[0]) and (len(holders) == 1 or {f.schema_id for f in holders} == {store.schema.id})
        for files in [(file,) for file in holders] if one_by_one else [group]:
            yield (field,), files


def _changes(store: FileStore, data: pa.Table) -> tuple[tuple[DataField, ...], NewValues]:
    """Return the fields to change, and their new values.

    Raises InvalidInputError for a value that cannot be stored exactly.
    """
    schema = store.schema
    if not store.traits.data_evolution:
        raise InvalidInputError(f"columns of {store.root} cannot be replaced without 'data-evolution.enabled' = 'true'")
    names = [name for name in data.schema.names if name != ROW_ID.name]
    fields_by_name = {f.name: f for f in schema.fields if f.name not in schema.partition_keys}
    wrong = [name for name in names if name not in fields_by_name]
    if wrong or not names or len(set(data.schema.names)) != len(names) + 1:
        raise InvalidInputError(
            f"replacing columns takes {ROW_ID.name} and non-partition columns of the table, each once; "
            f"found {data.schema.names}, the table has {list(fields_by_name)}"
        )
    ids = data.column(ROW_ID.name)
    if not pa.types.is_integer(ids.type) or ids.null_count or pc.count_distinct(ids).as_py() != len(ids):
        raise InvalidInputError(f"{ROW_ID.name} must be whole numbers without NULL and without repetition")
    fields = tuple(f for f in schema.fields if f.name in names)
    columns = []
    for field in fields:
        column = coerce_array(data.column(field.name).combine_chunks(), field.type, field.name)
        if column.null_count and not field.type.nullable:
            raise InvalidInputError(f"cannot write NULL to column {field.name!r}, which is NOT NULL")
        columns.append(column)
    check_references(schema, pa.RecordBatch.from_arrays(columns, schema=arrow_schema(fields)))
    row_ids = ids.to_numpy().astype(np.int64)
    order = np.argsort(row_ids, kind="stable")
    rows = pa.Table.from_arrays(columns, schema=arrow_schema(fields))
    return fields, NewValues(row_ids[order], rows.take(pa.array(order)))


def _groups(store: FileStore, snapshot: Snapshot) -> Mapping[BucketLocation, list[RowRangeFiles]]:
    by_bucket = files_by_bucket(live_entries(store, snapshot, with_stats=False).live)
    return {bucket: group_by_row_range(files) for bucket, files in by_bucket.items()}


def _write_row_range(store: FileStore, work: _Work, new: NewValues) -> DataFileMeta:
    """Write a file of columns for all rows of a range: new values for changed rows, old values for the others.

    ``new``: the new values of the changed rows.
    """
    bucket, group, fields = work.location.ref, work.files, work.fields
    spec = replace(DataFileSpec.of(store).of_columns(fields, _ONE_FILE), target_rows=_ONE_FILE, footer_bytes=None)
    rows: Iterable[pa.Table] = [new.rows]
    if len(new.row_ids) < group[0].row_count:
        check_no_newer(store, group)
        rows = _overlaid(read_row_range(store, bucket, group, fields), group[0].first_row_id or 0, new)
    (file,) = write_rows(store, bucket, spec, rows, group[0].row_count)
    return replace(file, first_row_id=group[0].first_row_id)


def _overlaid(old: Iterator[pa.RecordBatch], first: int, new: NewValues) -> Iterator[pa.Table]:
    """Yield the old rows, whose row ids are consecutive from ``first``, with the new values of changed rows."""
    for batch in old:
        low, high = np.searchsorted(new.row_ids, [first, first + batch.num_rows]).tolist()
        rows = pa.Table.from_batches([batch])
        if low < high:
            picked = np.arange(batch.num_rows)
            picked[new.row_ids[low:high] - first] = np.arange(batch.num_rows, batch.num_rows + high - low)
            both = pa.concat_tables([rows, new.rows.slice(low, high - low).cast(rows.schema)])
            rows = both.take(pa.array(picked))
        yield rows
        first += batch.num_rows


# ---- compaction


@dataclass(frozen=True, slots=True)
class RowRangeCompactTask(BucketFiles):
    """A task that compacts files of consecutive row ranges."""


def plan_row_ranges(store: FileStore, request: PlanRequest = ALL_DUE) -> list[RowRangeCompactTask]:
    """Return the due tasks: each compacts files of consecutive row ranges into one file up to the target size.

    Blob files are not compacted. A full request also compacts fewer than ``compaction.min.file-num`` files.
    """
    request, policy = request.at_snapshot(store), append_compaction_policy(store)
    least = 2 if request.full else max(2, policy.min_files)
    vectors = vectors_by_bucket(store, request.snapshot)
    return [
        RowRangeCompactTask(
            *bucket, group, restrict_to_files(vectors.get(bucket.ref, ()), {file.file_name for file in group})
        )
        for bucket, files in live_files(store, request).items()
        for group in _adjacent_files(group_by_row_range(files), policy.target_size, policy.target_rows)
        if len(group) >= least
    ]


def _adjacent_files(groups: Sequence[RowRangeFiles], target_size: int, target_rows: int) -> Iterator[Group]:
    """Yield groups of files of consecutive row ranges, each of about the target size (bytes) or number of rows.

    Ranges whose blob files have different columns or schemas are not compacted together, because Java could not read
    the result as one range.
    """
    current: list[DataFileMeta] = []
    end, size, rows = -1, 0, 0
    blobs_before: set[tuple[tuple[str, ...] | None, int]] = set()
    for group in groups:
        data, first = [f for f in group if not is_blob(f)], group[0].first_row_id
        weight, blobs = sum(f.file_size for f in data), {(f.write_cols, f.schema_id) for f in group if is_blob(f)}
        full = size + weight > target_size or rows + group[0].row_count > target_rows
        if current and (first != end or full or blobs != blobs_before):
            yield tuple(current)
            current, size, rows = [], 0, 0
        if first is not None:
            current += data
            end, size, rows = first + group[0].row_count, size + weight, rows + group[0].row_count
            blobs_before = blobs
    if current:
        yield tuple(current)


def run(store: FileStore, task: RowRangeCompactTask) -> CommitMessage:
    """Write the new files, which are invisible until the message is committed. After an error no file remains."""
    check_no_newer(store, task.files)
    spec = replace(DataFileSpec.of(store), source=FileSource.COMPACT, row_tracking=False, stores_tracking=False)
    if spec.blobs:  # a row range must not end within a blob file
        spec = replace(spec, blobs=(), target_size=_ONE_FILE, target_rows=_ONE_FILE, footer_bytes=None)
    groups = group_by_row_range(task.files)
    rows = (
        pa.Table.from_batches([batch])
        for group in groups
        for batch in read_row_range(store, task.bucket_ref, group, spec.value_fields)
    )
    written = write_rows(store, task.bucket_ref, spec, rows, sum(group[0].row_count for group in groups))
    firsts = itertools.accumulate((f.row_count for f in written[:-1]), initial=groups[0][0].first_row_id or 0)
    numbers = min(f.min_sequence_number for f in task.files), max(f.max_sequence_number for f in task.files)
    after = tuple(
        replace(f, first_row_id=first, min_sequence_number=numbers[0], max_sequence_number=numbers[1])
        for f, first in zip(written, firsts, strict=True)
    )
    message = task.message(after)
    try:
        marks = _deleted_in(after, groups, read_entries(store, task.vectors))
        return replace(message, compact_new_indexes=write_vectors(store, task.bucket_ref, marks))
    except BaseException:
        delete_written_files(store, [message])
        raise


def _deleted_in(
    files: Sequence[DataFileMeta], groups: Sequence[RowRangeFiles], vectors: Mapping[str, DeletionVector]
) -> dict[str, DeletionVector]:
    """Return the deletion vectors of files that hold the rows of some row ranges, by file name.

    ``vectors``: the deletion vectors of the files of the row ranges, by file name.
    """
    by_range = ((group[0].first_row_id or 0, vector_of_range(group, vectors)) for group in groups)
    row_ids = (first + deleted.positions() for first, deleted in by_range if deleted is not None)
    marked = DeletionVector.of(np.concatenate([np.zeros(0, np.int64), *row_ids]))
    return {f.file_name: marked.within(f.first_row_id or 0, f.row_count) for f in files}
