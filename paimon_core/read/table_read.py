"""Rows of one split: overlapping runs are merged, retracting rows dropped, the other rows filtered and projected."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.deletion.vector import DeletionVector
from paimon_core.deletion.vector_files import load_vectors
from paimon_core.errors import CorruptedError, UnsupportedError, hide_secrets
from paimon_core.fileio.parallel import timed
from paimon_core.format.conform import conform
from paimon_core.lsm.intervals import sections
from paimon_core.lsm.row_ranges import group_by_row_range, vector_of_range
from paimon_core.lsm.sorted_run import SortedRun
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.merge.high_level import read_high_level
from paimon_core.merge.row_kinds import drop_retracts
from paimon_core.metrics.listeners import listening
from paimon_core.metrics.values import ReadMetrics
from paimon_core.options import warn_once
from paimon_core.options.file import BLOB_AS_DESCRIPTOR
from paimon_core.options.scan import SCAN_IGNORE_CORRUPT_FILES, SCAN_IGNORE_LOST_FILES
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import FieldPath, Predicate
from paimon_core.predicate.rewrite import columns, restrict, split_by, tested, tests_fields
from paimon_core.read.blob_views import ViewedBlobs
from paimon_core.read.blobs import Owner, with_blobs
from paimon_core.read.data_evolution import read_row_range
from paimon_core.read.metadata_columns import BucketColumns, check_files_known, stored_fields, with_file_path
from paimon_core.read.metrics import ReadRecorder, reported
from paimon_core.read.sections import ReadFile, by_age, file_reader, merge_section, with_levels
from paimon_core.scan.projection import StructField, columns_to_read, field_at
from paimon_core.scan.split import DataSplit
from paimon_core.schema.blob_columns import read_as_views, stored_as_descriptors
from paimon_core.store.expired import is_missing, raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.selection import filter_rows
from paimon_core.types.system_fields import FILE_PATH, ROW_INDEX, SEQUENCE_NUMBER, VALUE_KIND


@dataclass(frozen=True, slots=True)
class TableRead:
    """A reader of splits: the columns ``fields`` of the rows that match ``predicate``.

    The predicate is bound to the columns of the store's schema, and of row tracking if the table has it.
    """

    store: FileStore
    fields: tuple[DataField, ...]
    predicate: Predicate | None = None
    skip_bad_files: bool = False
    """True if ``scan.ignore-lost-files`` and ``scan.ignore-corrupt-files`` apply: only for reads by users."""
    recorder: ReadRecorder | None = field(default=None, compare=False, repr=False)
    """Measures the reads, one split at a time. `None`: the metrics of each split go to the listeners, if any."""
    keeps_descriptors: bool = False
    """True to return columns whose files hold descriptors of blobs as they are stored: for rows that are moved."""

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of every batch."""
        return arrow_schema(self.fields)

    def to_batches(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split; batches are never empty. Memory: two batches per overlapping run.

        Raises OutOfRangeError if the split's snapshot has expired and its files are deleted.
        """
        self.store.check_readable(enforcing=True)
        if self.store.is_restricted:
            return self._permitted(split)
        return self._tested(TableRead._rows_of_snapshot, split)

    def _tested(
        self, read: Callable[["TableRead", DataSplit], Iterator[pa.RecordBatch]], split: DataSplit
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a read; test views for NULL after they are replaced by blobs."""
        views, schema = self._views(), self.store.schema
        if self.predicate is None or views.isdisjoint(columns(self.predicate)):
            yield from self._measured(read, split)
            return
        names = {f.name for f in (*schema.fields, *tracking_fields(schema))}
        stored, late = split_by(self.predicate, names - views)
        assert late is not None
        added = tuple(f for f in schema.fields if f.name in columns(late) - {field.name for field in self.fields})
        plain = replace(self, fields=(*self.fields, *added), predicate=stored)
        for batch in plain._measured(read, split):
            rows = filter_rows(batch, evaluate(late, batch))
            if rows.num_rows:
                yield rows.drop_columns([f.name for f in added])

    def _permitted(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split that the user may see, with masked values."""
        rules, schema = self.store.permissions, self.store.schema
        assert rules is not None
        stored, late = rules.split(self.predicate)
        tested = set() if late is None else columns(late)
        named = {f.name: f for f in (*schema.fields, *tracking_fields(schema))}
        needed = rules.needed({f.name for f in self.fields} | tested) | tested
        for column in self.fields:
            whole = named.get(column.name) == column
            if not whole and (isinstance(column, StructField) or column.name not in named or column.name in needed):
                raise UnsupportedError(
                    f"column {column.name!r} of {hide_secrets(self.store.root)} cannot be read: the catalog's server "
                    "filters the rows or masks the columns of the table, so only whole columns of it can be read"
                )
        added = (named[name] for name in sorted(needed - {f.name for f in self.fields}))
        plain = replace(self, store=self.store.without_rules(), fields=(*self.fields, *added), predicate=stored)
        for batch in plain.to_batches(split):
            shown = rules.shown(batch)
            shown = shown if late is None else filter_rows(shown, evaluate(late, shown))
            if shown.num_rows:
                yield shown.select(self.schema.names)

    def _measured(
        self, read: Callable[["TableRead", DataSplit], Iterator[pa.RecordBatch]], split: DataSplit
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a read, and measure it if there is a recorder or a listener."""
        if self.recorder is not None:
            with self.recorder.split(self.store, split):
                yield from read(self, split)
        elif listening(ReadMetrics):
            yield from reported(lambda recorder: replace(self, recorder=recorder)._measured(read, split))
        else:
            yield from read(self, split)

    def _rows_of_snapshot(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        with raise_if_expired(self.store, split.snapshot_id):
            yield from self._to_batches(split)

    def _to_batches(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        read = self._merged if self.store.schema.primary_keys else self._joined
        check_files_known(self.store, self.fields, split)
        rows = self._raw(split, self._needed()) if split.raw_convertible else read(split)
        of_bucket = BucketColumns(self.store, self.fields, split)
        return self._with_blobs(self._matching(rows, self.schema, of_bucket))

    def batches_with_kinds(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split of a table with a primary key, with deletes that no compaction has dropped.

        The first column is ``_VALUE_KIND`` (int8): the kind of the merged row. Raises the errors of `to_batches`.
        """
        self.store.check_readable()
        return self._tested(TableRead._with_kinds_of_snapshot, split)

    def _with_kinds_of_snapshot(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        with raise_if_expired(self.store, split.snapshot_id):
            yield from self._changelog_batches(split)

    def changelog_batches(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split of a table with a primary key, with their kinds, retracting rows included.

        The first column is ``_VALUE_KIND`` (int8). Overlapping files are merged, as if one write had written all rows.
        """
        self.store.check_readable()
        return self._tested(TableRead._changelog_batches, split)

    def _changelog_batches(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        if split.raw_convertible:
            rows: Iterator[pa.RecordBatch | pa.Table] = self._raw(split, (*self._needed(), VALUE_KIND))
        else:
            rows = self._merged(split, kinds=True)
        schema, of_bucket = arrow_schema((VALUE_KIND, *self.fields)), BucketColumns(self.store, self.fields, split)
        return self._with_blobs(self._matching(rows, schema, of_bucket))

    def _with_blobs(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows with blobs in place of descriptors. A predicate tests a blob for NULL only."""
        viewed, names = self._views(), self._descriptors()
        owners: dict[str, Owner | None] = dict.fromkeys(names)
        if viewed:
            reading = lambda store, fields, rows: TableRead(store, tuple(fields), rows).descriptors_of  # noqa: E731
            blobs = ViewedBlobs(self.store, reading)
            batches = blobs.with_descriptors(batches, viewed)
            owners.update(dict.fromkeys(viewed, blobs.owner))
        return with_blobs(self.store, batches, owners) if owners else batches

    def descriptors_of(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split with descriptors in place of blobs, however they are stored."""
        store = self.store.with_schema(self.store.schema.copy({BLOB_AS_DESCRIPTOR.key: "true"}))
        return replace(self, store=store).to_batches(split)

    def _views(self) -> frozenset[str]:
        """Return the columns whose views are replaced by blobs."""
        return frozenset() if self.keeps_descriptors else read_as_views(self.store.schema)

    def with_blobs(self, rows: pa.Table) -> pa.Table:
        """Return rows that `merged` has yielded with blobs in place of descriptors."""
        return pa.Table.from_batches(self._with_blobs(iter(rows.to_batches())), rows.schema)

    def _descriptors(self) -> frozenset[str]:
        """Return the columns whose descriptors are replaced by blobs."""
        as_stored = self.keeps_descriptors or self.store.options.value(BLOB_AS_DESCRIPTOR)
        return frozenset() if as_stored else stored_as_descriptors(self.store.schema)

    def _matching(
        self,
        read: Iterator[pa.RecordBatch] | Iterator[pa.RecordBatch | pa.Table],
        schema: pa.Schema,
        of_bucket: BucketColumns,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows that match the predicate, with the columns of ``schema``; ``of_bucket`` adds some of them."""
        names = schema.names
        nested = {f.name: f for f in self.fields if isinstance(f, StructField)}
        as_read = self.predicate is None or not tests_fields(self.predicate)
        recorder = self.recorder
        for part in read:
            if recorder is None:
                rows = self._filtered(part)
            else:
                recorder.compared(part.num_rows)
                with recorder.during("filter"):
                    rows = self._filtered(part)
            if not rows.num_rows:
                continue
            batches: Iterator[pa.RecordBatch] = map(of_bucket.add, _batches(rows))
            if recorder is not None:
                batches = timed(batches, recorder.spender("hand_over"))
            for batch in batches:
                if recorder is not None:
                    recorder.handed_over(batch.num_rows)
                yield batch if as_read and batch.schema.names == names else _project(batch, names, schema, nested)

    def _filtered(self, rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
        return rows if self.predicate is None else filter_rows(rows, evaluate(self.predicate, rows))

    def _needed(self) -> tuple[DataField, ...]:
        """Return the requested columns without metadata columns, then additional columns of the predicate."""
        schema, fields = self.store.schema, stored_fields(self.fields)
        names = tested(self.predicate) if self.predicate is not None else set()
        paths = tuple(field_at(schema.fields, name) for name in sorted(names) if isinstance(name, FieldPath))
        if paths or any(isinstance(f, StructField) for f in fields):
            # a caller may want only some fields of a struct, and the predicate others
            tests = {f.column.name for f in paths if isinstance(f, StructField) and f.column is not None}
            tests &= set(schema.names)
            fields = tuple(schema.field(f.name) if f.name in tests else f for f in fields)
            plain = tuple(f for f in schema.fields if f.name in names)
            # a merge function may need a whole struct
            fields = columns_to_read((*fields, *plain, *paths), whole=not self.store.traits.keeps_rows)
        extra = {name for name in names if not isinstance(name, FieldPath)} - {f.name for f in fields}
        return (*fields, *(f for f in (*schema.fields, *tracking_fields(schema)) if f.name in extra))

    def on_values(self) -> Predicate | None:
        """Return the part of the predicate on stored columns, for which files can be read in part; `None`: none."""
        if self.predicate is None:
            return None
        names = {f.name for f in self.store.schema.fields}
        return self.predicate if columns(self.predicate) <= names else restrict(self.predicate, names)

    def _raw(self, split: DataSplit, fields: Sequence[DataField]) -> Iterator[pa.RecordBatch]:
        vectors = self._vectors(split)
        fields = (*fields, ROW_INDEX) if ROW_INDEX in self.fields else fields
        on_values = self.on_values()
        read = file_reader(self.store, split.bucket_ref, fields, on_values, vectors, split.part, self.recorder)
        read = with_file_path(self.store, split, read) if FILE_PATH in self.fields else read
        read = self._skipping_bad_files(split, read)
        return itertools.chain.from_iterable(read(file, 1) for file in split.files)

    def _joined(self, split: DataSplit) -> Iterator[pa.RecordBatch]:
        """Yield rows whose columns are stored in several files."""
        vectors = self._vectors(split)
        for group in group_by_row_range(split.files):
            deletions = vector_of_range(group, vectors)
            yield from read_row_range(self.store, split.bucket_ref, group, self._needed(), self.recorder, deletions)

    def _merged(self, split: DataSplit, *, kinds: bool = False) -> Iterator[pa.Table]:
        vectors = self._vectors(split)
        return self.merged(
            split.files,
            lambda fields, predicate: self._skipping_bad_files(
                split, file_reader(self.store, split.bucket_ref, fields, predicate, vectors, recorder=self.recorder)
            ),
            kinds=kinds,
        )

    def _vectors(self, split: DataSplit) -> dict[str, DeletionVector]:
        if self.recorder is None:
            return load_vectors(self.store.io, split.vectors)
        with self.recorder.during("decode"):
            return load_vectors(self.store.io, split.vectors)

    def _skipping_bad_files(self, split: DataSplit, read: ReadFile) -> ReadFile:
        """Return ``read``, made to warn about missing or corrupt files instead of raising, if the options allow it.

        Rows before the corruption are read. A file that is missing because its snapshot has expired is still an error.
        """
        store, options = self.store, self.store.options
        lost, corrupt = options.value(SCAN_IGNORE_LOST_FILES), options.value(SCAN_IGNORE_CORRUPT_FILES)
        if not self.skip_bad_files or not (lost or corrupt):
            return read

        def skipping(file: DataFileMeta, parallel_files: int) -> Iterator[pa.RecordBatch]:
            path = store.file_path(split.bucket_ref, file)
            if lost and not store.io.exists(path):  # checked first, because a read of no columns opens no file
                if split.snapshot_id and not store.snapshots.exists(split.snapshot_id):
                    raise CorruptedError(f"data file {path} is missing") from FileNotFoundError(path)
                warn_once(f"data file {path} is missing; {SCAN_IGNORE_LOST_FILES.key!r} leaves its rows out")
                return
            try:
                yield from read(file, parallel_files)
            except CorruptedError as error:
                if not corrupt or is_missing(error):
                    raise
                warn_once(f"{SCAN_IGNORE_CORRUPT_FILES.key!r} leaves out rows of a corrupt file: {error}")

        return skipping

    def merged(
        self,
        files: Sequence[DataFileMeta],
        reading: Callable[[Sequence[DataField], Predicate | None], ReadFile],
        *,
        kinds: bool = False,
    ) -> Iterator[pa.Table]:
        """Yield the merged rows of files of one bucket, without deleted rows, unfiltered, with additional columns.

        Args:
            files: files of one bucket.
            reading: a function from columns and a predicate to a reader of files; rows for which the predicate is not
                true may be left out.
            kinds: keep deleted rows, and yield ``_VALUE_KIND`` as one of the columns.
        """
        store, schema = self.store, self.store.schema
        needed = self._needed()
        order = store.traits.merge_order()
        names = {f.name for f in needed}
        engine = store.traits.merge_engine()
        merging = {*order.key, *order.sequence_fields, *engine.needs(names)}
        hidden = [f for f in schema.fields if f.name in merging - names]
        by_run = (*needed, *hidden, VALUE_KIND)
        by_number = by_run if SEQUENCE_NUMBER in needed else (*by_run, SEQUENCE_NUMBER)
        on_keys = restrict(self.predicate, set(order.key)) if self.predicate is not None else None
        for runs in sections(files, schema.key_arrow):
            if len(runs) > 1:
                aged = by_age(runs)
                read, section_engine = reading(by_run if aged else by_number, on_keys), engine
                if _has_several_high_levels(runs) and store.traits.reads_high_level:
                    read, section_engine = with_levels(read), replace(engine, fold=read_high_level(engine.fold))
                merged: Iterator[pa.Table | pa.RecordBatch] = merge_section(
                    aged or runs,
                    read,
                    replace(order, by_run=aged is not None),
                    section_engine,
                    store.options,
                    self.recorder,
                    columns=len(by_number),
                )
                deletes = True
            else:
                deletes = kinds or any(f.may_delete for f in runs[0].files)
                read = reading((*needed, VALUE_KIND) if deletes else needed, self.predicate)
                merged = itertools.chain.from_iterable(read(file, 1) for file in runs[0].files)
            for rows in merged:
                table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
                remaining = drop_retracts(table) if deletes and not kinds else table
                if self.recorder is not None:
                    self.recorder.retracted(table.num_rows - remaining.num_rows)
                yield remaining


def _has_several_high_levels(runs: Sequence[SortedRun]) -> bool:
    """Return True if the files have more than one level above 0."""
    return len({file.level for run in runs for file in run.files if file.level}) > 1


def _batches(rows: pa.RecordBatch | pa.Table) -> list[pa.RecordBatch]:
    return [rows] if isinstance(rows, pa.RecordBatch) else [b for b in rows.to_batches() if b.num_rows]


def _project(
    batch: pa.RecordBatch, names: list[str], schema: pa.Schema, nested: Mapping[str, StructField]
) -> pa.RecordBatch:
    if not names:
        return batch.select([])
    columns = [nested[n].of(batch) if n in nested else batch.column(n) for n in names]
    columns = [conform(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
