"""Merged rows of a section of sorted runs: reads, compactions and lookups all merge here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import pyarrow as pa

from paimon_core.datafile.reader import ReadOptions, read_file
from paimon_core.deletion.vector import DeletionVector
from paimon_core.fileio.parallel import timed
from paimon_core.format.batch_size import probed
from paimon_core.lsm.sorted_run import SortedRun, files_by_age
from paimon_core.lsm.universal import stop_trigger
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.memory import MemoryShares
from paimon_core.merge.engine import MergeEngine, MergeFunction
from paimon_core.merge.high_level import LEVEL
from paimon_core.merge.kway import MergeOrder, merge_runs
from paimon_core.merge.order import ascending_order
from paimon_core.merge.row_kinds import FILE_AGE
from paimon_core.merge.window import Window
from paimon_core.options.lsm import SORT_SPILL_THRESHOLD
from paimon_core.options.option import Options
from paimon_core.predicate.expr import Predicate
from paimon_core.read.external_merge import Waited, merge_from_disk, multi_pass_merge
from paimon_core.read.metrics import ReadRecorder
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import DataField

_MAX_OPEN_RUNS = 24  # runs read at a time if sort-spill-threshold is not set, more if the stop trigger is larger
_DECODER_OF_COLUMN = 256 << 10  # bytes of a page, its encoded form, and the dictionary of a column
_ROWS_OF_PAGE = 1 << 10  # values after which encoders check the size of a page
_MOST_DECODER = 64 << 20  # of the columns of one file: twice the rows of a row group

ReadFile = Callable[[DataFileMeta, int], Iterator[pa.RecordBatch]]


def file_reader(
    store: FileStore,
    bucket: BucketRef,
    fields: Sequence[DataField],
    predicate: Predicate | None = None,
    vectors: Mapping[str, DeletionVector] = MappingProxyType({}),
    part: range | None = None,
    recorder: ReadRecorder | None = None,
) -> ReadFile:
    """Return a function that reads a file of one bucket: ``(file, files read in parallel) -> batches``.

    Args:
        store: the table.
        bucket: the bucket of the files.
        fields: columns to read.
        predicate: rows for which it is not true may be left out.
        vectors: deletion vectors by data file; their rows are left out.
        part: see :class:`ReadOptions`.
        recorder: measures the reads; `None`: they are not measured.
    """
    counts = None if recorder is None else recorder.counts

    def read(meta: DataFileMeta, parallel_files: int) -> Iterator[pa.RecordBatch]:
        options = ReadOptions(predicate, vectors.get(meta.file_name), parallel_files, part=part, counts=counts)
        batches = read_file(store, bucket, meta, fields, options)
        return batches if recorder is None else timed(batches, recorder.spender("decode"))

    return read


def with_levels(read: ReadFile) -> ReadFile:
    """Return ``read`` with an additional column ``_LEVEL`` (int8), the level of each row's file."""
    return _with_column(read, LEVEL, lambda file: pa.scalar(file.level, pa.int8()))


def _with_column(read: ReadFile, name: str, value_of: Callable[[DataFileMeta], pa.Scalar]) -> ReadFile:
    """Return ``read`` with an additional column that has one value for all rows of a file."""

    def extended(file: DataFileMeta, parallel_files: int) -> Iterator[pa.RecordBatch]:
        for batch in read(file, parallel_files):
            yield batch.append_column(name, pa.repeat(value_of(file), batch.num_rows))

    return extended


def by_age(runs: Sequence[SortedRun]) -> list[SortedRun] | None:
    """Return the runs from oldest to newest; `None` if their ranges of sequence numbers overlap.

    This needs metadata only, and saves reading sequence numbers. In key order they are random, which makes them the
    most expensive column of a file to decode.
    """
    order = ascending_order(
        [(min(f.min_sequence_number for f in run.files), max(f.max_sequence_number for f in run.files)) for run in runs]
    )
    return None if order is None else [runs[number] for number in order]


def merge_section(
    runs: Sequence[SortedRun],
    read: ReadFile,
    order: MergeOrder,
    engine: MergeEngine,
    options: Options,
    recorder: ReadRecorder | None = None,
    columns: int = 1,
) -> Iterator[pa.Table]:
    """Yield the rows of the section in key order, one row per key, deletes included.

    Rows of one key with equal sequence numbers are ordered by their files, the oldest file first (decision 13).
    REQUIRES: with ``order.by_run``, the runs are in the order of :func:`by_age`, which alone orders the rows of a key.
    Memory: two batches per run, 64 MiB in all, and the buffers of each decoder. More runs than ``sort-spill-threshold``
    are merged over local disk: group by group if the engine allows it, else in one merge of copies. With
    ``memory-limit``, batches have their share, and runs are also copied if their decoders would exceed their share.

    Args:
        runs: the runs, which overlap.
        read: reads a file of a run.
        order: the columns to merge by.
        engine: the merge engine.
        options: table options.
        recorder: measures the merge, and its waits for rows; `None`: not measured.
        columns: the number of columns that ``read`` decodes.
    """
    waited = None if recorder is None else recorder.spender("wait")
    merged = _merged(runs, read, order, engine, options, waited, columns)
    return merged if recorder is None else timed(merged, recorder.spender("merge"))


def _merged(
    runs: Sequence[SortedRun],
    read: ReadFile,
    order: MergeOrder,
    engine: MergeEngine,
    options: Options,
    waited: Waited,
    columns: int,
) -> Iterator[pa.Table]:
    read, fold = (read, engine.fold) if order.by_run else (_with_ages(read, runs), _without_ages(engine.fold))
    opened = [partial(run_batches, run, read) for run in runs]
    limit, shares = max_open_runs(options), MemoryShares.of(options)
    fits = shares.decoders is None or _decoder_bytes(runs, read, columns) <= shares.decoders
    if len(runs) <= limit and fits:
        batches = [run(len(runs)) for run in opened]
        return merge_runs(batches, order, fold, waited=waited, buffered=shares.batches)
    if not engine.keeps_rows or not fits:
        group_fold = engine.fold if engine.keeps_rows else None
        return merge_from_disk(opened, order, fold, options, waited, group_fold)
    merged = multi_pass_merge(opened, order, engine.fold, limit, options, waited)
    return merged if order.by_run else (rows.drop_columns([FILE_AGE]) for rows in merged)


def _decoder_bytes(runs: Sequence[SortedRun], read: ReadFile, columns: int) -> float:
    """Return an estimate of the bytes in the decoders of one open file of each run.

    A decoder holds pages of all columns, at most a row group. Cost: the first batch of a file, for the size of a row.
    """
    largest = max((file for run in runs for file in run.files), key=lambda file: file.file_size)
    row_bytes = probed(read(largest, len(runs)))
    counts = [max(file.row_count for file in run.files) for run in runs]
    pages = (columns * _DECODER_OF_COLUMN + min(_ROWS_OF_PAGE, count) * row_bytes for count in counts)
    return sum(min(size, _MOST_DECODER, 2 * count * row_bytes) for size, count in zip(pages, counts, strict=True))


def max_open_runs(options: Options) -> int:
    """Return the number of runs of a section that are merged at a time; more are merged over local disk."""
    return options.value(SORT_SPILL_THRESHOLD) or max(stop_trigger(options) + 1, _MAX_OPEN_RUNS)


def _with_ages(read: ReadFile, runs: Sequence[SortedRun]) -> ReadFile:
    """Return ``read`` with an additional column ``FILE_AGE``: the file's rank among all files of the runs, by age."""
    rank = {file.file_name: n for n, file in enumerate(files_by_age(runs))}
    return _with_column(read, FILE_AGE, lambda file: pa.scalar(rank[file.file_name], pa.int32()))


def _without_ages(fold: MergeFunction) -> MergeFunction:
    """Return ``fold`` applied to rows without the column ``FILE_AGE``."""
    return lambda w: fold(Window(w.rows.drop_columns([FILE_AGE]), w.order, w.starts, w.merged))


def run_batches(run: SortedRun, read: ReadFile, parallel_files: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one run; ``parallel_files``: files that are read at the same time."""
    for file in run.files:
        yield from read(file, parallel_files)
