"""The writer of a table: it routes rows to buckets, bounds memory, and returns commit messages."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.datafile.spec import DataFileSpec
from paimon_core.errors import InvalidInputError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.bucket import BucketLocation, BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.options.bucket import POSTPONED
from paimon_core.options.lsm import (
    FULL_COMPACTION_DELTA_COMMITS,
    WRITE_BUFFER_SIZE,
    WRITE_MAX_WRITERS_TO_SPILL,
    WRITE_ONLY,
)
from paimon_core.schema.support import check_writable
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore
from paimon_core.write.align import Positions, align, column_positions
from paimon_core.write.append_compactor import InlineAppend
from paimon_core.write.append_writer import PIECE_BYTES, AppendWriter, OpenFiles
from paimon_core.write.bucket_compaction import BucketCompaction
from paimon_core.write.bucket_writer import BucketWriter
from paimon_core.write.input_data import Data, Rows, arrow_data
from paimon_core.write.merge_tree_writer import MergeTreeWriter
from paimon_core.write.postpone_writer import PostponeWriter, postponing
from paimon_core.write.restore import Restore
from paimon_core.write.routing import ALL_KEYS, ROUTERS, Batch, BucketMode, Indexes, KeyShard, bucket_mode
from paimon_core.write.routing.partition import partition_codes
from paimon_core.write.row_kinds import check_kinds, kept_rows, kinds_of
from paimon_core.write.sequence import SequenceGenerator
from paimon_core.write.spill import SpillSpace

ROUTE_BYTES = 32 << 20  # batches are collected to about this size before routing
BUCKET_BYTES = 1 << 30  # a bucket is flushed at this size at the latest: Arrow text columns end at 2 GiB
_LEARNING = (BucketMode.HASH_DYNAMIC, BucketMode.KEY_DYNAMIC)  # modes in which commits of others affect routing
ENCODERS = 2  # buckets sorted and encoded at a time


@dataclass(frozen=True, slots=True)
class WriterRole:
    """The part of one writer in a write by several.

    ``number`` and ``of``: the writer numbers its rows ``number, number + of, ...`` above those of the table, so rows of
    two writers never share a sequence number. ``exclusive``: no other writer of the job writes to the same buckets
    (default: True if ``of`` is 1). ``shard``: the keys that this writer receives all rows of; `None`: any writer may
    receive any key, unless it is the only one.
    """

    number: int = 0
    of: int = 1
    exclusive: bool | None = None
    shard: KeyShard | None = None

    @property
    def only(self) -> bool:
        """True for the only writer of its write."""
        return self.of == 1

    @property
    def keys(self) -> KeyShard | None:
        """The keys that the writer receives all rows of; `None`: those of no key for certain."""
        return self.shard if self.shard is not None else ALL_KEYS if self.only else None


ONLY_WRITER = WriterRole()


class TableWrite:
    """A writer of rows to one table. Rows become visible when the messages are committed.

    Lifecycle: `write` any number of times, then `prepare_commit`, again and again; at the end `close` or `abort`.

    Args:
        overwrite: the rows replace those of the table, so sequence numbers start anew.
        role: of this writer among those of its job.
        base_id: the snapshot to go on from (0: an empty table; None: the newest one when the first rows come). On a
            table with dynamic buckets all writers of a job take the same one.
        commit_user: names files of postponed buckets, whose order of writing matters later.

    Memory: about ``write-buffer-size`` of rows, be they buffered or held by open files, plus one bucket being sorted
    and encoded per thread.

    A writer may stay open over many commits. The first rows after each are numbered on from what the table holds by
    then, so they outrank the rows that others committed in between.

    A writer that meets no other in its buckets, of a table with fixed ones that is not ``write-only``, also compacts
    them, and says so in its messages. With a primary key no bucket gets more runs than
    ``num-sorted-run.stop-trigger``; without one small files are put together.
    """

    def __init__(
        self,
        store: FileStore,
        *,
        overwrite: bool = False,
        role: WriterRole = ONLY_WRITER,
        base_id: int | None = None,
        commit_user: str | None = None,
    ) -> None:
        check_writable(store.schema)
        store.io.check_can_commit()
        self._store = store
        mode = bucket_mode(store.schema)
        self._rule = SequenceGenerator(role.number, role.of)
        self._router = ROUTERS[mode](store, role.keys)
        self._shape = DataFileSpec.of(store)
        engine = store.traits.merge_engine() if store.traits.keyed else None
        self._space = SpillSpace.of(store.options)
        self._keyed = None if engine is None else (store.traits.merge_order(), engine, self._space)
        self._open_files = OpenFiles(store.options.value(WRITE_MAX_WRITERS_TO_SPILL))
        self._refused = {} if engine is None else engine.refuses
        user = commit_user or store.new_name()
        self._postponing = postponing(store, user, role.number) if mode is BucketMode.POSTPONE else None
        in_buckets = mode is not BucketMode.BUCKET_UNAWARE
        exclusive = role.only if role.exclusive is None else role.exclusive
        self._compacts = in_buckets and exclusive and not store.options.value(WRITE_ONLY)
        self._full_every: int | None = store.options.value(FULL_COMPACTION_DELTA_COMMITS)
        self._restores = in_buckets and not overwrite
        self._replaces_keys = overwrite and mode is BucketMode.HASH_DYNAMIC
        self._tells = not overwrite  # what is replaced shows in no changelog
        self._input = store.traits.changelog_producer == "input"
        self._shares_base = role.keys is None and mode in _LEARNING
        self._restore = self._numbers = self._look(base_id)
        self._handed_out = False
        self._limit = store.options.value(WRITE_BUFFER_SIZE)
        self._one_place = not in_buckets and not store.schema.partition_keys
        self._gather_bytes = min(PIECE_BYTES if self._one_place else ROUTE_BYTES, max(1, self._limit // 4))
        self._writers: dict[BucketRef, BucketWriter] = {}
        self._current: set[BucketRef] = set()  # buckets whose writer goes on from what the table holds now
        self._gathered: list[tuple[pa.RecordBatch, pa.Array | None]] = []
        self._gathered_bytes = 0
        self._seen = 0
        self._positions: tuple[list[str], Positions] | None = None

    def write(self, data: Rows, row_kinds: pa.Array | pa.ChunkedArray | Iterable[str] | None = None) -> None:
        """Write rows. ``row_kinds``: texts "+I" "-U" "+U" "-D", one per row; `None`: all inserts.

        Raises InvalidInputError naming column and row for data the table cannot hold; rows given before stay written.
        OutOfRangeError where the snapshot this writer goes on from expires before all of it that matters was read.
        """
        with raise_if_expired(self._store, self.base_id):
            self._write(arrow_data(data), row_kinds)

    def _write(self, data: Data, row_kinds: pa.Array | pa.ChunkedArray | Iterable[str] | None) -> None:
        if isinstance(data, pa.RecordBatchReader):
            if row_kinds is not None:
                raise InvalidInputError("row kinds go with a table or a batch, not with a stream of unknown length")
            for batch in data:
                for piece in _cut(batch, self._gather_bytes):
                    self._take(piece, None)
            return
        kinds = _kind_array(row_kinds)
        if kinds is not None and len(kinds) != data.num_rows:
            raise InvalidInputError(f"{len(kinds)} row kinds were given for {data.num_rows} rows")
        at = 0
        for batch in [data] if isinstance(data, pa.RecordBatch) else data.to_batches():
            for piece in _cut(batch, self._gather_bytes):
                self._take(piece, None if kinds is None else kinds.slice(at, piece.num_rows))
                at += piece.num_rows

    def _take(self, batch: pa.RecordBatch, given: pa.Array | None) -> None:
        rows = align(batch, self._store.schema, self._positions_of(batch), self._seen)
        kinds = kinds_of(rows, given, self._store.options, keyed=self._keyed is not None)
        self._seen += rows.num_rows
        mask = kept_rows(kinds, self._store.options)
        if mask is not None and kinds is not None:
            rows, kinds = rows.filter(pa.array(mask)), kinds.filter(pa.array(mask))
        if kinds is not None:
            check_kinds(kinds, self._refused)
        if not rows.num_rows:
            return
        if rows.nbytes >= ROUTE_BYTES:
            self._route()  # a batch that large goes alone: together they might outgrow an Arrow column
        self._gathered.append((rows, kinds))
        self._gathered_bytes += rows.nbytes
        if self._gathered_bytes >= self._gather_bytes:
            self._route()
            self._keep_within_limit()

    @property
    def base_id(self) -> int | None:
        """The snapshot this writer goes on from, 0 for an empty table; None where an overwrite looks at none."""
        if not self._restores:
            return None
        base = self._restore.snapshot
        return 0 if base is None else base.id

    def _look(self, base_id: int | None = None) -> Restore:
        """Return what the table holds in the given snapshot (0: nothing; None: the newest at the first question)."""
        snapshots, with_stats = self._store.snapshots, self._compacts and self._keyed is not None
        if self._restores and base_id is None:
            return Restore(self._store, snapshots.latest, with_stats=with_stats)
        base = snapshots.get(base_id) if self._restores and base_id else None
        replaced = snapshots.get(base_id) if self._replaces_keys and base_id else None
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
        self._look_again()
        batch, buckets = self._router.route(batch, self._restore)
        if not len(buckets):
            return
        least = int(buckets.min())
        span = int(buckets.max()) - least + 1
        group = batch.codes * span + (buckets - least)
        if (group[0] == group).all():
            bucket = BucketRef(batch.partitions[batch.codes[0]], int(buckets[0]))
            self._numbers.load([bucket])
            self._writer(bucket).add(batch.rows, batch.kinds)
            return
        order = np.argsort(group, kind="stable")
        present, starts = np.unique(group[order], return_index=True)
        refs = [BucketRef(batch.partitions[which // span], which % span + least) for which in present.tolist()]
        self._numbers.load(refs)
        for bucket, at, end in zip(refs, starts, [*starts[1:], len(order)], strict=True):
            members = pa.array(order[at:end])
            kinds = None if batch.kinds is None else batch.kinds.take(members)
            self._writer(bucket).add(batch.rows.take(members), kinds)

    def _look_again(self) -> None:
        """Look at the table anew after a commit: others may have written rows, compacted, or given keys their bucket.

        Writers that must all route by one snapshot take only the numbers of their rows from the new one.
        """
        if self._handed_out and self._restores:
            self._numbers, self._current = self._look(), set()
            if not self._shares_base:
                self._restore = self._numbers
        self._handed_out = False

    def _writer(self, bucket: BucketRef) -> BucketWriter:
        writer = self._writers.get(bucket)
        if writer is None:
            writer = self._writers[bucket] = self._new_writer(bucket)
        elif bucket not in self._current and self._restores:
            writer.refresh(self._numbers.state(bucket))
        self._current.add(bucket)
        return writer

    def _new_writer(self, bucket: BucketRef) -> BucketWriter:
        state = self._numbers.state(bucket)
        place, first = self._location(bucket), state.max_sequence_number + 1
        if bucket.bucket == POSTPONED and self._postponing is not None:
            return PostponeWriter(self._postponing, place)
        if self._keyed is None:
            joins = InlineAppend(self._store, place, state.files) if self._compacts else None
            shared = self._open_files, self._space
            return AppendWriter(self._store, place, self._shape, first, joins, shared, exclusive=self._one_place)
        inline = BucketCompaction(self._store, place, state, writes_changelog=self._tells) if self._compacts else None
        told = DataFileSpec.changelog(self._store) if self._tells and self._input else None
        return MergeTreeWriter(self._store, place, self._shape, self._keyed, (self._rule, first), inline, told)

    def _location(self, bucket: BucketRef) -> BucketLocation:
        return BucketLocation(*bucket, self._router.total_buckets(bucket.partition))

    def _keep_within_limit(self) -> None:
        """Flush the largest buckets until the buffered rows take at most half the limit."""
        by_size = sorted(self._writers.values(), key=lambda w: -w.buffered)
        left = sum(w.buffered for w in by_size)
        target = self._limit if left <= self._limit else self._limit // 2
        chosen = []
        for writer in by_size:
            if left <= target and writer.buffered < BUCKET_BYTES:
                break
            chosen.append(writer)
            left -= writer.buffered
        _each(lambda w: w.flush(), chosen)

    def prepare_commit(self, identifier: int | None = None) -> list[CommitMessage]:
        """Flush all rows and return the changes since the last call, one message per bucket.

        With the option ``full-compaction.delta-commits`` = n the buckets written to are compacted as a whole when the
        commit's ``identifier`` is a multiple of n; without an identifier, in a batch job, always.
        Raises OutOfRangeError as ``write``.
        """
        with raise_if_expired(self._store, self.base_id):
            return self._prepared(identifier)

    def _prepared(self, identifier: int | None) -> list[CommitMessage]:
        self._route()
        full = self._compacts and self._full_every is not None
        if full and identifier is not None:
            full = identifier % (self._full_every or 1) == 0
        if full:
            self._look_again()
            self._numbers.load(self._writers)
            for at in self._writers:
                self._writer(at)
        _each(lambda w: w.finish(full=full), list(self._writers.values()))
        indexes = self._router.write_indexes()
        messages = [self._message(at, writer, indexes.get(at)) for at, writer in self._writers.items()]
        self._handed_out = True
        return [m for m in messages if m is not None]

    def _message(self, at: BucketRef, writer: BucketWriter, indexes: Indexes | None) -> CommitMessage | None:
        message = writer.prepare_commit()
        if indexes is None or (message is None and not indexes.new):
            return message
        message = message or CommitMessage(*self._location(at))
        new, old = (*message.new_indexes, *indexes.new), (*message.deleted_indexes, *indexes.routed_by)
        return replace(message, new_indexes=new, deleted_indexes=old)

    def abort(self) -> None:
        """Delete every file that is in no returned message; the table is unchanged."""
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
    """Run ``do`` for several writers at a time; writers that need much memory run one after the other."""
    light, memory_heavy = [w for w in writers if not w.memory_heavy], [w for w in writers if w.memory_heavy]
    for _ in parallel_map(do, light, threads=ENCODERS):
        pass
    for writer in memory_heavy:
        do(writer)


def _cut(batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """Yield the batch in slices of at most about ``size`` bytes, so that the write buffer stays in its limit."""
    held = _bytes(batch)
    if held <= 2 * size:
        yield batch
        return
    step = max(1, batch.num_rows * size // held)
    for at in range(0, batch.num_rows, step):
        yield batch.slice(at, step)


def _bytes(batch: pa.RecordBatch) -> int:
    """Return the bytes that the rows of a caller's batch take, more where its columns of views are slices."""
    try:
        return int(batch.nbytes)
    except pa.ArrowTypeError:  # pyarrow 19 cannot tell for views
        return int(batch.get_total_buffer_size())


def _concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _kind_array(kinds: pa.Array | pa.ChunkedArray | Iterable[str] | None) -> pa.Array | None:
    if kinds is None or isinstance(kinds, pa.Array):
        return kinds
    if isinstance(kinds, pa.ChunkedArray):
        return kinds.combine_chunks()
    return pa.array(kinds, pa.string())
