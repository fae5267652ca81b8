"""One compaction of one primary-key bucket carried out (behaviour 3.4).

Files whose keys no other file of the unit shares are moved to their new level as they are, unless they are small;
the rest is merged, run by run, and written anew. Reading and merging go ahead of encoding by one piece: what is held is
a batch or two of each run that overlaps, and two pieces of what comes out.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from paimon_core.datafile.writer import DataFileWriter, FileShape, target_size
from paimon_core.errors import CommitConflictError
from paimon_core.fileio.parallel import ahead
from paimon_core.lsm.intervals import sections
from paimon_core.lsm.levels import Levels
from paimon_core.lsm.sorted_run import SortedRun
from paimon_core.lsm.universal import CompactUnit
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.manifest.stats import stats_schema
from paimon_core.merge import merge_engine
from paimon_core.merge.expire import Expiry
from paimon_core.merge.kinds import drop_retracts
from paimon_core.options.lsm import COMPACTION_FORCE_REWRITE_ALL_FILES
from paimon_core.read.sections import file_reader, merge_order, merge_section
from paimon_core.row.binary_row import deserialize
from paimon_core.store.file_store import FileStore
from paimon_core.types.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from paimon_core.write.deeper import Deeper

__all__ = ["CompactTask", "Compacted", "compact", "expiring"]

_PIECE_BYTES = 16 << 20  # what the writer encodes at a time, while the next piece is merged


@dataclass(frozen=True, slots=True)
class CompactTask:
    """A unit of one bucket, and all that must be known of the levels around it: a value that runs anywhere."""

    partition: bytes
    bucket: int
    total_buckets: int
    unit: CompactUnit
    to_top: bool
    """The output level is the deepest one."""
    drop_deletes: bool
    """No file lies below the output: a delete has nothing left to hide."""
    deeper: tuple[DataFileMeta, ...] = ()
    """Files below the output whose keys it must not repeat; only for engines whose readers do not merge levels."""

    @staticmethod
    def of(store: FileStore, place: tuple[bytes, int, int], levels: Levels, unit: CompactUnit) -> "CompactTask":
        """The task to carry out ``unit``, which was picked from ``levels`` of (partition, bucket, total buckets)."""
        level, schema = unit.output_level, store.schema
        apart = merge_engine(schema.options, schema.fields, schema.primary_keys).skips_level_0
        deeper = tuple(f for f in levels.all_files if f.level > level) if apart else ()
        return CompactTask(*place, unit, level == levels.max_level, levels.drops_deletes(level), deeper)

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(f.file_size for f in self.unit.files)

    @property
    def rows(self) -> int:
        """Rows stored in the files."""
        return sum(f.row_count for f in self.unit.files)


@dataclass(frozen=True, slots=True)
class Compacted:
    """Files that are no longer there, and those there instead; a file in both has only changed its level."""

    before: tuple[DataFileMeta, ...] = ()
    after: tuple[DataFileMeta, ...] = ()


def compact(store: FileStore, task: CompactTask) -> Compacted:
    """Write the new files; on an error none is left behind.

    Raises CommitConflictError where a file was written under a newer schema than ``store`` has: its columns would be
    lost.
    """
    newer = [f for f in task.unit.files if f.schema_id > store.schema.id]
    if newer:
        raise CommitConflictError(
            f"file {newer[0].file_name} of {store.root} was written under schema {newer[0].schema_id}: compacted under "
            f"schema {store.schema.id} it would lose what changed since; open the table again"
        )
    return _Compaction(store, task).run()


def expiring(store: FileStore, expiry: Expiry | None = None) -> Callable[[DataFileMeta], bool]:
    """Tells files that may hold rows past their time, for all their statistics tell; ``expiry`` None: as of now."""
    schema = store.schema
    past = expiry or Expiry.of(store.options, schema.fields, store.now())

    def may_expire(file: DataFileMeta) -> bool:
        if past is None:
            return False
        stats = file.value_stats
        names = schema.names if file.value_stats_cols is None else file.value_stats_cols
        if file.schema_id != schema.id or past.column not in names or len(stats.null_counts) != len(names):
            return True
        at = list(names).index(past.column)
        kinds = stats_schema([schema.field(name) for name in names])
        least, nulls = deserialize(stats.min_values, kinds)[at], stats.null_counts[at]
        return nulls != file.row_count if least is None else past.reaches(least, kinds.field(at).type)

    return may_expire


class _Compaction:
    def __init__(self, store: FileStore, task: CompactTask) -> None:
        self._store, self._task = store, task
        self._small = target_size(store) // 10 * 7
        self._always = task.unit.rewrite or store.options.value(COMPACTION_FORCE_REWRITE_ALL_FILES)
        schema = store.schema
        expiry = Expiry.of(store.options, schema.fields, store.now())
        self._may_expire = expiring(store, expiry)
        read = file_reader(store, task.partition, task.bucket, (*schema.fields, SEQUENCE_NUMBER, VALUE_KIND))
        self._read = read if expiry is None else lambda *file: expiry.kept(read(*file))
        self._deeper = Deeper(store, task.partition, task.bucket, task.deeper) if task.deeper else None
        if self._deeper is not None:
            self._read = self._deeper.beside(self._read)
        self._order = merge_order(store)
        self._engine = merge_engine(store.options, schema.fields, schema.primary_keys)
        shape = FileShape.of(store, task.unit.output_level, FileSource.COMPACT)
        self._writer = DataFileWriter(store, task.partition, task.bucket, shape)
        self._before: list[DataFileMeta] = []
        self._after: list[DataFileMeta] = []

    def run(self) -> Compacted:
        try:
            waiting: list[list[SortedRun]] = []  # sections to be rewritten together, in key order
            files = (*self._task.unit.files, *self._task.deeper)
            for section in sections(files, self._store.schema.key_arrow):
                if self._deeper is not None and self._deeper.only(section):
                    continue
                if len(section) > 1:
                    waiting.append(section)
                    continue
                for file in filter(self._ours, section[0].files):
                    if file.file_size < self._small:
                        waiting.append([_alone(file)])
                    else:
                        self._settle(waiting)
                        waiting = []
                        self._move(file)
            self._settle(waiting)
        except BaseException:
            self._writer.abort()
            raise
        return Compacted(tuple(self._before), tuple(self._after))

    def _ours(self, file: DataFileMeta) -> bool:
        return self._deeper is None or not self._deeper.holds(file)

    def _settle(self, waiting: Sequence[list[SortedRun]]) -> None:
        """Rewrite the sections; a single file among no others needs none."""
        if len(waiting) == 1 and len(waiting[0]) == 1:
            for file in waiting[0][0].files:
                self._move(file)
        elif waiting:
            self._rewrite(waiting)

    def _move(self, file: DataFileMeta) -> None:
        """Give the file its new level, or write it anew where it may hold what must not get there."""
        if self._always or (self._task.to_top and file.delete_row_count != 0) or self._may_expire(file):
            self._rewrite([[_alone(file)]])
        elif file.level != self._task.unit.output_level:
            self._before.append(file)
            self._after.append(replace(file, level=self._task.unit.output_level))

    def _rewrite(self, parts: Sequence[list[SortedRun]]) -> None:
        for piece in ahead(_pieces(self._merged(parts))):
            self._writer.write(piece)
        self._before += [file for section in parts for run in section for file in filter(self._ours, run.files)]
        self._after += self._writer.close()

    def _merged(self, parts: Sequence[list[SortedRun]]) -> Iterator[pa.Table]:
        for section in parts:
            merged = merge_section(section, self._read, self._order, self._engine, self._store.options)
            for rows in merged:
                kept = rows if self._deeper is None else self._deeper.taken_out(rows)
                yield drop_retracts(kept) if self._task.drop_deletes else kept


def _alone(file: DataFileMeta) -> SortedRun:
    return SortedRun(file.level, (file,))


def _pieces(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables large enough to be encoded at once."""
    held: list[pa.Table] = []
    size = 0
    for table in tables:
        if table.num_rows:
            held.append(table)
            size += table.nbytes
        if size >= _PIECE_BYTES:
            yield pa.concat_tables(held)
            held, size = [], 0
    if held:
        yield pa.concat_tables(held)
