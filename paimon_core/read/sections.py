"""A section of sorted runs as merged rows: the one way rows of a primary-key bucket are put together."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import pyarrow as pa

from paimon_core.datafile.reader import ReadOptions, read_file
from paimon_core.deletion.vector import DeletionVector
from paimon_core.lsm.sorted_run import SortedRun, files_by_age
from paimon_core.lsm.universal import stop_trigger
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.merge.engine import MergeEngine, MergeFunction
from paimon_core.merge.high_level import LEVEL
from paimon_core.merge.kway import MergeOrder, merge_runs
from paimon_core.merge.row_kinds import FILE_AGE
from paimon_core.merge.window import Window
from paimon_core.options.lsm import SORT_SPILL_THRESHOLD
from paimon_core.options.merge import SEQUENCE_FIELD, SEQUENCE_FIELD_SORT_ORDER
from paimon_core.options.option import Options
from paimon_core.predicate.expr import Predicate
from paimon_core.read.external_merge import merge_from_disk, multi_pass_merge
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import DataField

_SIDE_BY_SIDE = 24  # runs read at a time, if the option sort-spill-threshold does not say otherwise

ReadFile = Callable[[DataFileMeta, int], Iterator[pa.RecordBatch]]


def merge_order(store: FileStore) -> MergeOrder:
    """The order rows of one key are merged in, as the table's options have it."""
    return MergeOrder(
        tuple(store.schema.trimmed_primary_keys),
        store.options.value(SEQUENCE_FIELD),
        store.options.value(SEQUENCE_FIELD_SORT_ORDER) == "descending",
    )


def file_reader(
    store: FileStore,
    partition: bytes,
    bucket: int,
    fields: Sequence[DataField],
    predicate: Predicate | None = None,
    vectors: Mapping[str, DeletionVector] = MappingProxyType({}),
    part: range | None = None,
) -> ReadFile:
    """How the files of one bucket are opened, with the same columns for all; so many of them together.

    ``vectors``: deletion vectors, by data file, whose rows are left out. ``part``: see :class:`ReadOptions`.
    """
    return lambda meta, parallel_files: read_file(
        store,
        partition,
        bucket,
        meta,
        fields,
        ReadOptions(predicate, vectors.get(meta.file_name), parallel_files, part=part),
    )


def with_levels(read: ReadFile) -> ReadFile:
    """Tells by a column ``_LEVEL`` (int8) which level each row comes from."""

    def marked(file: DataFileMeta, parallel_files: int) -> Iterator[pa.RecordBatch]:
        for batch in read(file, parallel_files):
            yield batch.append_column(LEVEL, pa.repeat(pa.scalar(file.level, pa.int8()), batch.num_rows))

    return marked


def by_age(runs: Sequence[SortedRun]) -> list[SortedRun] | None:
    """The runs from oldest to newest, where each has only larger sequence numbers than the one before; else None.

    Known from metadata alone, this saves reading the sequence numbers: random numbers in key order, the costliest
    column of a file to decode.
    """
    spans = [
        (min(f.min_sequence_number for f in run.files), max(f.max_sequence_number for f in run.files), run)
        for run in runs
    ]
    spans.sort(key=lambda span: span[:2])
    if any(later[0] <= earlier[1] for earlier, later in itertools.pairwise(spans)):
        return None
    return [run for _, _, run in spans]


def merge_section(
    runs: Sequence[SortedRun], read: ReadFile, order: MergeOrder, engine: MergeEngine, options: Options
) -> Iterator[pa.Table]:
    """Rows of the section in key order, one per key, deletes included.

    Rows of one key with equal sequence numbers are ordered by the files they lie in, the oldest file first (decision
    13). With ``order.by_run`` only the run tells rows apart, and REQUIRES runs as :func:`by_age` gives them.
    Memory: two batches per run, 64 MiB in all, and what the decoder of each holds. Beyond ``sort-spill-threshold`` runs
    these go over local disk: by groups, each merged to one, where the engine gives the same that way.
    """
    read, fold = (read, engine.fold) if order.by_run else (_with_ages(read, runs), _without_ages(engine.fold))
    opened = [partial(run_batches, run, read) for run in runs]
    most = options.value(SORT_SPILL_THRESHOLD) or max(stop_trigger(options) + 1, _SIDE_BY_SIDE)
    if len(runs) <= most:
        return merge_runs([run(len(runs)) for run in opened], order, fold)
    if not engine.keeps_rows:
        return merge_from_disk(opened, order, fold, options)
    merged = multi_pass_merge(opened, order, engine.fold, most, options)
    return merged if order.by_run else (rows.drop_columns([FILE_AGE]) for rows in merged)


def _with_ages(read: ReadFile, runs: Sequence[SortedRun]) -> ReadFile:
    """Add the column ``FILE_AGE`` to the rows of each file: its place among the files of the runs, the oldest first."""
    place = {file.file_name: n for n, file in enumerate(files_by_age(runs))}

    def aged(file: DataFileMeta, parallel_files: int) -> Iterator[pa.RecordBatch]:
        age = pa.scalar(place[file.file_name], pa.int32())
        for batch in read(file, parallel_files):
            yield batch.append_column(FILE_AGE, pa.repeat(age, batch.num_rows))

    return aged


def _without_ages(fold: MergeFunction) -> MergeFunction:
    """Return the fold of rows whose order is settled: it gets them without ``FILE_AGE``."""

    def folded(window: Window) -> pa.Table:
        return fold(Window(window.rows.drop_columns([FILE_AGE]), window.order, window.starts, window.merged))

    return folded


def run_batches(run: SortedRun, read: ReadFile, parallel_files: int) -> Iterator[pa.RecordBatch]:
    """The rows of one run, of which so many are read side by side."""
    for file in run.files:
        yield from read(file, parallel_files)
