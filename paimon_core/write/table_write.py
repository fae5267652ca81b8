"""The writer of a table: it routes rows to buckets, bounds memory, and returns commit messages."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.datafile.spec import DataFileSpec
from paimon_core.errors import InvalidInputError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.bucket import BucketLocation, BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.memory import MemoryShares
from paimon_core.options.bucket import POSTPONED
from paimon_core.options.lsm import WRITE_MAX_WRITERS_TO_SPILL
from paimon_core.read.blobs import with_copies
from paimon_core.schema.blob_columns import in_blob_files
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.types.combine import combined
from paimon_core.types.sorted_values import run_starts
from paimon_core.types.system_fields import ROW_ID, ROW_SEQUENCE
from paimon_core.write.align import FillsDefaults, Positions, align, column_positions
from paimon_core.write.append_compactor import InlineAppend
from paimon_core.write.append_writer import AppendWriter, OpenFiles, SharedResources
from paimon_core.write.bucket_compaction import BucketCompaction
from paimon_core.write.bucket_state import Restore
from paimon_core.write.bucket_writer import BucketWriter
from paimon_core.write.input_data import Data, Rows, arrow_data
from paimon_core.write.merge_tree_writer import MergeSettings, MergeTreeWriter
from paimon_core.write.postpone_writer import PostponeWriter, postponing
from paimon_core.write.routing import ROUTERS, Batch, BucketMode, Indexes
from paimon_core.write.routing.partition import partition_codes
from paimon_core.write.row_kinds import check_kinds, kinds_of, rows_to_write
from paimon_core.write.sequence import RowSequence
from paimon_core.write.spill import SpillSpace
from paimon_core.write.writer_plan import ONLY_WRITER, ROUTE_BYTES, WriterPlan, WriterRole, runs_full_compaction

__all__ = ["ONLY_WRITER", "TableWrite", "WriterRole"]

_BUCKET_BYTES = 1 << 30  # a bucket of this size is always flushed: Arrow text columns are limited to 2 GiB
ENCODERS = 2  # buckets sorted and encoded at a time


class TableWrite:
    """A writer of rows to one table. Rows become visible when the messages are committed.

    Lifecycle:

    - open: no row since the last commit. `write` leads to written.
    - written: rows are buffered, or in files that no message names. `prepare_commit` leads to prepared.
    - prepared: the files belong to the returned messages. The next `write` continues from the newest snapshot, so its
      rows win over rows that other writers committed in between.
    - closed: after `close` or `abort`, which are allowed in every state; `abort` deletes the files that no message
      names.

    A writer that shares its buckets with no other writer also compacts them, unless the table is ``write-only`` or has
    no buckets. With a primary key, no bucket gets more runs than ``num-sorted-run.stop-trigger``. Without one, small
    files are compacted. The messages include the compactions.

    Args:
        store: the table to write.
        overwrite: True if the rows replace the table's rows, so that sequence numbers start again at 0.
        role: the role of this writer in its job; `None`: the only writer.
        started_from: the snapshot to continue from. `None`: the newest snapshot when the first rows arrive.
            With dynamic buckets, all writers of a job must have the same snapshot.
        commit_user: a part of the file names in postponed buckets, which later define the row order. `None`: a new
            name.
        keeps_row_ids: True if the rows have the additional column ``_ROW_ID``; NULL: a new row, which gets an id.

    Memory: about ``write-buffer-size`` of rows, buffered or held by open files, plus one bucket being sorted and
    encoded per thread.

    Examples:
        >>> import pyarrow as pa
        >>> from paimon_core import Table
        >>> table = Table.open("/tmp/warehouse/shop.db/items")
        >>> with table.writer() as writer:
        ...     writer.write(pa.table({"id": [3], "name": ["cup"]}))
        ...     snapshot = table.committer().commit(writer.prepare_commit())
        >>> table.get({"id": 3})
        {'id': 3, 'name': 'cup'}
    """

    def __init__(
        self,
        store: FileStore,
        *,
        overwrite: bool = False,
        role: WriterRole | None = None,
        started_from: StartedFrom | None = None,
        commit_user: str | None = None,
        keeps_row_ids: bool = False,
    ) -> None:
        check_writable(store.schema)
        store.check_can_commit()
        self._store, traits = store, store.traits
        role = ONLY_WRITER if role is None else role
        self.plan = WriterPlan.of(store, role, overwrite=overwrite)
        self._router = ROUTERS[self.plan.mode](store, role.keys)
        self._spec = DataFileSpec.of(store, keeps_row_ids=keeps_row_ids)
        self._keeps_row_ids = keeps_row_ids
        self._blobs = in_blob_files(store.schema)
        self._space = SpillSpace.of(store.options)
        footer_bytes = MemoryShares.of(store.options).footer
        open_files = OpenFiles(store.options.value(WRITE_MAX_WRITERS_TO_SPILL), footer_bytes)
        self._shared = SharedResources(open_files, self._space)
        self._merge: MergeSettings | None = None
        if traits.keyed:
            self._merge = MergeSettings(traits.merge_order(), traits.merge_engine(), self._space)
        user = commit_user or store.new_name()
        postpones = self.plan.mode is BucketMode.POSTPONE
        self._postponing = postponing(store, user, role.number) if postpones else None
        self._routing = self._restore = self._restored(started_from)  # for the router, and for the states of buckets
        self._prepared = False
        self._writers: dict[BucketRef, BucketWriter] = {}
        self._current: set[BucketRef] = set()  # buckets whose writers continue from `_restore`
        self._gathered: list[tuple[pa.RecordBatch, pa.Array | None]] = []
        self._gathered_bytes = 0
        self._row_count = 0
        self._received: Counter[BucketRef] = Counter()  # rows since the last commit
        self._seconds = 0.0  # in this object, since the last commit
        self._positions: tuple[list[str], Positions] | None = None

    def write(
        self,
        data: Rows,
        row_kinds: pa.Array | pa.ChunkedArray | Iterable[str] | None = None,
        *,
        fills_defaults: FillsDefaults = True,
    ) -> None:
        """Write rows.

        Args:
            data: the rows.
            row_kinds: texts "+I" "-U" "+U" "-D", one per row; `None`: all inserts.
            fills_defaults: in which rows NULL becomes the default of its column: True: in all; False: in none, because
                the rows were written before; a mask, for a table or a batch: where it is true.

        Raises InvalidInputError naming column and row for data that the table cannot hold; earlier rows stay written.
        Raises OutOfRangeError if the snapshot to continue from expired before it was read.
        """
        with raise_if_expired(self._store, self._base_id):
            self._write(arrow_data(data), row_kinds, fills_defaults)

    def _write(
        self, data: Data, row_kinds: pa.Array | pa.ChunkedArray | Iterable[str] | None, fills_defaults: FillsDefaults
    ) -> None:
        is_stream = isinstance(data, pa.RecordBatchReader)
        if is_stream and row_kinds is not None:
            raise InvalidInputError("row kinds need a table or a batch: the length of a stream is unknown")
        kinds = _kind_array(row_kinds)
        if kinds is not None and len(kinds) != data.num_rows:
            raise InvalidInputError(f"got {len(kinds)} row kinds for {data.num_rows} rows")
        start = 0
        for batch in data if is_stream else [data] if isinstance(data, pa.RecordBatch) else data.to_batches():
            with self._timed():
                for part in _cut(batch, self.plan.gather_bytes):
                    of_part = None if kinds is None else kinds.slice(start, part.num_rows)
                    fills = fills_defaults
                    if not isinstance(fills, bool):
                        fills = fills.slice(start, part.num_rows)
                    self._gather(part, of_part, fills)
                    start += part.num_rows

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Add the duration of the block to the seconds that the next messages report."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds += time.monotonic() - started

    def _gather(self, batch: pa.RecordBatch, kind_names: pa.Array | None, fills_defaults: FillsDefaults) -> None:
        """Check and collect rows; route the collected rows if there are enough."""
        ids = batch.column(ROW_ID.name) if self._keeps_row_ids else None
        batch = batch if ids is None else batch.drop_columns([ROW_ID.name])
        rows = align(batch, self._store.schema, self._positions_of(batch), self._row_count, fills_defaults)
        if not self._blobs:
            self._gather_aligned(rows, ids, kind_names)
            return
        at = 0
        for part in with_copies(self._store, rows, self._blobs):
            of_part = (None if one is None else one.slice(at, part.num_rows) for one in (ids, kind_names))
            self._gather_aligned(part, *of_part)
            at += part.num_rows

    def _gather_aligned(self, rows: pa.RecordBatch, ids: pa.Array | None, kind_names: pa.Array | None) -> None:
        if ids is not None:
            rows = rows.append_column(ROW_ID.name, ids.cast(pa.int64()))
            rows = rows.append_column(ROW_SEQUENCE.name, pa.nulls(rows.num_rows, pa.int64()))
        kinds = kinds_of(rows, kind_names, self._store.options, keyed=self._merge is not None)
        self._row_count += rows.num_rows
        mask = rows_to_write(kinds, self._store.options)
        if mask is not None and kinds is not None:
            rows, kinds = rows.filter(pa.array(mask)), kinds.filter(pa.array(mask))
        if kinds is not None and self._merge is not None:
            check_kinds(kinds, self._merge.engine.refuses)
        if not rows.num_rows:
            return
        if rows.nbytes >= ROUTE_BYTES:
            self._route()  # a large batch is routed alone: combined with others it could overflow an Arrow column
        self._gathered.append((rows, kinds))
        self._gathered_bytes += rows.nbytes
        if self._gathered_bytes >= self.plan.gather_bytes:
            self._route()
            self._flush_largest()

    @property
    def started_from(self) -> StartedFrom | None:
        """The snapshot that this writer continues from. `None`: an overwrite, or a table without buckets."""
        return StartedFrom.of(self._routing.snapshot) if self.plan.restores else None

    @property
    def _base_id(self) -> int | None:
        started_from = self.started_from
        return None if started_from is None else started_from.snapshot_id

    def _restored(self, started_from: StartedFrom | None = None) -> Restore:
        """Return the states of buckets in a snapshot. ``started_from``: `None`: the newest one at the first read."""
        snapshots, plan = self._store.snapshots, self.plan
        with_stats = plan.compacts and self._merge is not None
        if plan.restores and started_from is None:
            return Restore(self._store, snapshots.latest, with_stats=with_stats)
        snapshot = None
        if started_from is not None and started_from.snapshot_id and (plan.restores or plan.reads_replaced):
            snapshot = snapshots.get(started_from.snapshot_id)
            started_from.check(snapshot, self._store.root)
        base, replaced = snapshot if plan.restores else None, snapshot if plan.reads_replaced else None
        return Restore(self._store, lambda: base, with_stats=with_stats, replaced=replaced)

    def _positions_of(self, batch: pa.RecordBatch) -> Positions:
        names = batch.schema.names
        if self._positions is None or self._positions[0] != names:
            self._positions = (names, column_positions(names, self._store.schema))
        return self._positions[1]

    def _route(self) -> None:
        """Route the collected rows to their buckets, in order of arrival."""
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        if not gathered:
            return
        rows = _concat([r for r, _ in gathered])
        kinds = None
        if any(k is not None for _, k in gathered):
            kinds = pa.concat_arrays([pa.nulls(r.num_rows, pa.int8()) if k is None else k for r, k in gathered])
            kinds = pc.fill_null(kinds, 0)
        del gathered
        batch = Batch(rows, kinds, *partition_codes(rows, self._store.schema.partition_keys))
        self._refresh()
        batch, buckets = self._router.route(batch, self._routing)
        if not len(buckets):
            return
        lowest = int(buckets.min())
        span = int(buckets.max()) - lowest + 1
        group = batch.codes * span + (buckets - lowest)
        if (group[0] == group).all():
            order, present, starts = None, group[:1], np.zeros(1, np.int64)
        else:
            narrow = group.astype(np.uint16) if group.max() < 1 << 16 else group  # numpy sorts these in linear time
            order = np.argsort(narrow, kind="stable")
            in_order = group[order]
            starts = np.flatnonzero(run_starts(in_order))
            present = in_order[starts]
        targets = [BucketRef(batch.partitions[code // span], code % span + lowest) for code in present.tolist()]
        self._restore.load(targets)
        for target, start, end in zip(targets, starts, [*starts[1:], len(group)], strict=True):
            rows, kinds = batch.rows, batch.kinds
            if order is not None:
                members = pa.array(order[start:end])
                rows, kinds = rows.take(members), None if kinds is None else kinds.take(members)
            self._received[target] += rows.num_rows
            self._writer(target).add(rows, kinds)

    def _refresh(self) -> None:
        """Continue from the newest snapshot after a commit: other writers may have added files, compactions and keys.

        Writers that must all route by one snapshot take only the states of buckets from the new snapshot.
        """
        if self._prepared and self.plan.restores:
            self._restore, self._current = self._restored(), set()
            if not self.plan.shares_base:
                self._routing = self._restore
        self._prepared = False

    def _writer(self, bucket: BucketRef) -> BucketWriter:
        writer = self._writers.get(bucket)
        if writer is None:
            writer = self._writers[bucket] = self._new_writer(bucket)
        elif bucket not in self._current and self.plan.restores:
            writer.refresh(self._restore.state(bucket))
        self._current.add(bucket)
        return writer

    def _new_writer(self, ref: BucketRef) -> BucketWriter:
        store, plan, spec = self._store, self.plan, self._spec
        state, bucket = self._restore.state(ref), self._location(ref)
        first = state.max_sequence_number + 1
        if bucket.bucket == POSTPONED and self._postponing is not None:
            return PostponeWriter(self._postponing, bucket)
        if self._merge is None:
            concatenation = InlineAppend(store, bucket, state.files) if plan.compacts else None
            return AppendWriter(store, bucket, spec, first, concatenation, self._shared, exclusive=plan.one_bucket)
        compaction = None
        if plan.compacts:
            compaction = BucketCompaction(store, bucket, state, writes_changelog=plan.compaction_changelog)
        sequence = RowSequence(first, plan.role.number, plan.role.of, store.bucket_path(ref))
        changelog = DataFileSpec.changelog(store) if plan.input_changelog else None
        return MergeTreeWriter(store, bucket, spec, self._merge, sequence, compaction, changelog)

    def _location(self, bucket: BucketRef) -> BucketLocation:
        return BucketLocation(*bucket, self._router.total_buckets(bucket.partition))

    def _flush_largest(self) -> None:
        """If the buffered rows exceed the limit, flush the largest buckets until they take at most half of it."""
        by_size = sorted(self._writers.values(), key=lambda w: -w.buffered)
        buffered = sum(w.buffered for w in by_size)
        target = self.plan.buffer_bytes if buffered <= self.plan.buffer_bytes else self.plan.buffer_bytes // 2
        chosen = []
        for writer in by_size:
            if buffered <= target and writer.buffered < _BUCKET_BYTES:
                break
            chosen.append(writer)
            buffered -= writer.buffered
        _each(lambda w: w.flush(), chosen)

    def prepare_commit(self, identifier: int | None = None) -> list[CommitMessage]:
        """Flush all rows and return the changes since the last call, one message per bucket.

        With the option ``full-compaction.delta-commits`` = n, written buckets get a full compaction if ``identifier``
        is a multiple of n. ``identifier``: the commit identifier. `None`: a batch job, which always compacts them.
        Raises OutOfRangeError as `write` does.
        """
        with raise_if_expired(self._store, self._base_id), self._timed():
            self._route()
            full = self.plan.compacts and runs_full_compaction(self._store.options, identifier)
            if full:
                self._refresh()
                self._restore.load(self._writers)
                for bucket in self._writers:
                    self._writer(bucket)
            _each(lambda w: w.finish(full=full), list(self._writers.values()))
            indexes = self._router.write_indexes()
            messages = [self._message(bucket, writer, indexes.get(bucket)) for bucket, writer in self._writers.items()]
            self._prepared = True
        return self._measured([m for m in messages if m is not None])

    def _measured(self, messages: list[CommitMessage]) -> list[CommitMessage]:
        """Return the messages with the row counts of their buckets. The first has this writer's seconds."""
        received, seconds = self._received, self._seconds
        self._received, self._seconds = Counter(), 0.0
        return [
            replace(m, rows_received=received[m.bucket_ref], write_seconds=0.0 if number else seconds)
            for number, m in enumerate(messages)
        ]

    def _message(self, bucket: BucketRef, writer: BucketWriter, indexes: Indexes | None) -> CommitMessage | None:
        message = writer.prepare_commit()
        if indexes is None or (message is None and not indexes.new):
            return message
        message = message or CommitMessage(*self._location(bucket))
        new, old = (*message.new_indexes, *indexes.new), (*message.deleted_indexes, *indexes.routed_by)
        return replace(message, new_indexes=new, deleted_indexes=old)

    def abort(self) -> None:
        """Delete every file that no returned message names. The table does not change."""
        self._gathered, self._gathered_bytes = [], 0
        for writer in self._writers.values():
            writer.abort()
        self.close()

    def close(self) -> None:
        """Release all buffers. Files of returned messages stay."""
        self._gathered, self._writers = [], {}
        self._router.close()
        if self._space is not None:
            self._space.close()

    def __enter__(self) -> "TableWrite":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.abort()
        self.close()


def _each(do: Callable[[BucketWriter], None], writers: list[BucketWriter]) -> None:
    """Run ``do`` for several writers at a time. Writers that need much memory run one after the other."""
    light, memory_heavy = [w for w in writers if not w.memory_heavy], [w for w in writers if w.memory_heavy]
    for _ in parallel_map(do, light, threads=ENCODERS):
        pass
    for writer in memory_heavy:
        do(writer)


def _cut(batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """Yield the batch in slices of at most about ``size`` bytes, so that the write buffer stays in its limit."""
    nbytes = _bytes(batch)
    if nbytes <= 2 * size:
        yield batch
        return
    step = max(1, batch.num_rows * size // nbytes)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _bytes(batch: pa.RecordBatch) -> int:
    """Return the size of a caller's batch in bytes. If columns of views are slices, this is an upper bound."""
    try:
        return int(batch.nbytes)
    except pa.ArrowTypeError:  # pyarrow 19 does not count views
        return int(batch.get_total_buffer_size())


def _concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return combined(pa.Table.from_batches(batches)).to_batches()[0]


def _kind_array(kinds: pa.Array | pa.ChunkedArray | Iterable[str] | None) -> pa.Array | None:
    if kinds is None or isinstance(kinds, pa.Array):
        return kinds
    if isinstance(kinds, pa.ChunkedArray):
        return kinds.combine_chunks()
    return pa.array(kinds, pa.string())
