"""The compaction of one bucket of a table with a primary key (behaviour 3.4, 5).

A file that shares no key range with another file of the unit is upgraded, unless it is small. The other files are
merged and rewritten. Depending on the table's options, changes are written to changelog files, and superseded rows of
higher levels are marked as deleted. Reading and merging run one part ahead of encoding. Memory: one or two batches of
each overlapping run, and two parts of the result.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from paimon_core.datafile.deletion_vectors import read_entries
from paimon_core.datafile.spec import DataFileSpec, target_rows, target_size
from paimon_core.datafile.writer import DataFileWriter
from paimon_core.deletion.vector import DeletionVector
from paimon_core.fileio.parallel import ahead
from paimon_core.lsm.intervals import key_ranks, sections
from paimon_core.lsm.levels import Levels
from paimon_core.lsm.sorted_run import SortedRun, files_by_age
from paimon_core.lsm.universal import CompactUnit
from paimon_core.manifest.bucket import BucketLocation, InCountedBucket
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.manifest.stats import stats_schema
from paimon_core.memory import MemoryShares
from paimon_core.merge.changelog_diff import ChangelogDiff
from paimon_core.merge.high_level import LEVEL, read_high_level
from paimon_core.merge.record_expire import RecordLevelExpire
from paimon_core.merge.row_kinds import drop_retracts
from paimon_core.options.lsm import COMPACTION_FORCE_REWRITE_ALL_FILES, COMPACTION_SMALL_FILE_RATIO
from paimon_core.options.merge import (
    CHANGELOG_PRODUCER_ROW_DEDUPLICATE,
    CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS,
)
from paimon_core.read.sections import ReadFile, by_age, file_reader, merge_section, with_levels
from paimon_core.row.binary_row import deserialize
from paimon_core.store.file_store import FileStore
from paimon_core.types.system_fields import SEQUENCE_NUMBER, VALUE_KIND
from paimon_core.write.append_compactor import check_no_newer
from paimon_core.write.lookup_levels import LookupFiles, LookupInput, sections_with_higher_levels
from paimon_core.write.lookup_merge import FullCompactionChangelog, LookupChangelogMerge

Merged = Iterator[tuple[pa.Table | None, Sequence[pa.Table]]]
"""Pairs of rows to write and changes for the changelog."""


@dataclass(frozen=True, slots=True)
class CompactTask(InCountedBucket):
    """The compaction of one unit of a bucket, with all it needs of other levels. Another process can run it."""

    partition: bytes
    bucket: int
    total_buckets: int
    unit: CompactUnit
    to_top: bool
    """True if the output level is the highest one."""
    drop_deletes: bool
    """True if tombstones can be dropped, because no file above the output level has rows that they hide."""
    higher: tuple[DataFileMeta, ...] = ()
    """Files of levels above the output level, where keys that leave level 0 are looked up."""
    vectors: tuple[IndexManifestEntry, ...] = ()
    """The bucket's index files with deletion vectors."""
    writes_changelog: bool = True
    """True if changes are written to changelog files, as the table's changelog producer defines."""

    @staticmethod
    def of(
        store: FileStore,
        bucket: BucketLocation,
        levels: Levels,
        unit: CompactUnit,
        vectors: tuple[IndexManifestEntry, ...] = (),
        *,
        writes_changelog: bool = True,
    ) -> "CompactTask":
        """Return the task for ``unit``, which was picked from ``levels`` of the bucket."""
        level, traits = unit.output_level, store.traits
        higher = tuple(f for f in levels.all_files if f.level > level) if traits.needs_lookup and level else ()
        unit = replace(unit, files=levels.by_age(unit.files))
        drops = levels.drops_deletes(level) or (level > 0 and traits.deletion_vectors)
        return CompactTask(*bucket, unit, level == levels.max_level, drops, higher, vectors, writes_changelog)

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
    """The files removed and added by a compaction; a file in both was upgraded."""

    before: tuple[DataFileMeta, ...] = ()
    after: tuple[DataFileMeta, ...] = ()
    changelog: tuple[DataFileMeta, ...] = ()
    superseded: Mapping[str, DeletionVector] = field(default_factory=dict)
    """Rows of higher levels that the compaction superseded, by file name."""

    def vectors(self, before: Mapping[str, DeletionVector]) -> dict[str, DeletionVector]:
        """Return the bucket's deletion vectors after the compaction. ``before``: the old vectors, by file name."""
        removed = {f.file_name for f in self.before} - {f.file_name for f in self.after}
        live = {name: vector for name, vector in before.items() if name not in removed}
        return live | {name: live[name].union(v) if name in live else v for name, v in self.superseded.items()}


def compact(store: FileStore, task: CompactTask, vectors: Mapping[str, DeletionVector] | None = None) -> Compacted:
    """Run the compaction and return its result. On an error the new files are deleted.

    ``vectors``: the deletion vectors of the bucket's files, by file name. `None`: they are read from ``task.vectors``.
    Raises TableChangedError if a compacted file or a file for lookups was written under a newer schema than ``store``
    has: the result would lose columns.
    """
    check_no_newer(store, (*task.unit.files, *task.higher))
    return _Compaction(store, task, read_entries(store, task.vectors) if vectors is None else vectors).run()


def expiring(store: FileStore, expiry: RecordLevelExpire | None = None) -> Callable[[DataFileMeta], bool]:
    """Return a predicate that is True for files that may hold expired rows, judged by their statistics.

    ``expiry``: the record expiry to apply. `None`: the table's record expiry at the current time.
    """
    schema = store.schema
    record_expiry = expiry or RecordLevelExpire.of(store.options, schema.fields, store.now())

    def may_expire(file: DataFileMeta) -> bool:
        if record_expiry is None:
            return False
        stats = file.value_stats
        names = schema.names if file.value_stats_cols is None else file.value_stats_cols
        if file.schema_id != schema.id or record_expiry.column not in names or len(stats.null_counts) != len(names):
            return True
        at = list(names).index(record_expiry.column)
        kinds = stats_schema([schema.field(name) for name in names])
        minimum, nulls = deserialize(stats.min_values, kinds)[at], stats.null_counts[at]
        return nulls != file.row_count if minimum is None else record_expiry.reaches(minimum, kinds.field(at).type)

    return may_expire


def overlapping_names(
    store: FileStore, compacted: Sequence[DataFileMeta], other_files: Iterable[DataFileMeta]
) -> tuple[str, ...]:
    """Return the names of the other files above level 0 that overlap the key range of the compacted files.

    The result is empty for a table without lookups, which does not need the names.
    """
    if not compacted or not store.traits.needs_lookup:
        return ()
    above = [f for f in other_files if f.level]
    low, high = key_ranks([*compacted, *above], store.schema.key_arrow)
    count = len(compacted)
    lowest, highest = low[:count].min(), high[:count].max()
    return tuple(f.file_name for n, f in enumerate(above, count) if low[n] <= highest and lowest <= high[n])


class _Compaction:
    def __init__(self, store: FileStore, task: CompactTask, vectors: Mapping[str, DeletionVector]) -> None:
        self._store, self._task, self._vectors = store, task, vectors
        self._small, self._full_rows = _small_size(store), target_rows(store)
        self._always = task.unit.rewrite or store.options.value(COMPACTION_FORCE_REWRITE_ALL_FILES)
        schema, traits, level = store.schema, store.traits, task.unit.output_level
        expiry = RecordLevelExpire.of(store.options, schema.fields, store.now())
        self._may_expire = expiring(store, expiry)
        self._fields = (*schema.fields, SEQUENCE_NUMBER, VALUE_KIND)
        read = file_reader(store, task.bucket_ref, self._fields, vectors=vectors)
        self._read = read if expiry is None else lambda *file: expiry.without_expired(read(*file))
        self._order, self._engine = traits.merge_order(), traits.merge_engine()
        self._needs_lookup, self._has_vectors = traits.needs_lookup, traits.deletion_vectors
        producer = traits.changelog_producer
        self._full_changelog = producer == "full-compaction"
        writes_changelog = task.writes_changelog and (producer == "lookup" or (self._full_changelog and task.to_top))
        self._difference = _difference(store) if writes_changelog else None
        self._superseded: dict[str, DeletionVector] = {}
        self._writer = DataFileWriter(store, task.bucket_ref, DataFileSpec.of(store, level, FileSource.COMPACT))
        self._changelog = DataFileWriter(store, task.bucket_ref, DataFileSpec.changelog(store, level))
        self._before: list[DataFileMeta] = []
        self._after: list[DataFileMeta] = []

    def run(self) -> Compacted:
        try:
            pending: list[list[SortedRun]] = []  # sections to be rewritten together, in key order
            for section in sections(self._task.unit.files, self._store.schema.key_arrow):
                if len(section) > 1:
                    pending.append(section)
                    continue
                for file in section[0].files:
                    if file.file_size < self._small and file.row_count < self._full_rows:
                        pending.append([_run_of(file)])
                    else:
                        self._rewrite_pending(pending)
                        pending = []
                        self._upgrade(file)
            self._rewrite_pending(pending)
            changelog = self._changelog.close()
        except BaseException:
            self._writer.abort()
            self._changelog.abort()
            raise
        return Compacted(tuple(self._before), tuple(self._after), tuple(changelog), self._superseded)

    def _rewrite_pending(self, pending: Sequence[list[SortedRun]]) -> None:
        """Rewrite the sections; a single file is upgraded instead."""
        if len(pending) == 1 and len(pending[0]) == 1:
            for file in pending[0][0].files:
                self._upgrade(file)
        elif pending:
            self._rewrite(pending)

    def _upgrade(self, file: DataFileMeta) -> None:
        """Move the file to the output level, or rewrite it if it may hold rows that do not belong there."""
        section = [[_run_of(file)]]
        if self._always or (self._task.to_top and file.delete_row_count != 0) or self._may_expire(file):
            self._rewrite(section)
        elif file.level != self._task.unit.output_level:
            if self._upgrade_changes_rows(file):
                self._rewrite(section)
                return
            if self._difference is not None and (self._full_changelog or not file.level):
                for _, changes in self._merge(section):
                    self._write_changelog(changes)
            elif self._has_vectors and self._task.higher and not file.level:
                self._find_superseded(file)
            self._before.append(file)
            self._after.append(replace(file, level=self._task.unit.output_level))

    def _upgrade_changes_rows(self, file: DataFileMeta) -> bool:
        """Return True if merging with higher levels may change rows of a file that leaves level 0."""
        if not self._needs_lookup or file.level or not self._task.unit.output_level:
            return False
        if not file.file_name.endswith(f".{self._writer.format}") or (self._has_vectors and file.delete_row_count != 0):
            return True
        if any(f.max_sequence_number >= file.min_sequence_number for f in self._task.higher):
            return True  # concurrent writers: a row of a higher level may be newer
        return not (self._task.to_top or self._engine.newest_wins)

    def _rewrite(self, parts: Sequence[list[SortedRun]]) -> None:
        for rows, changes in ahead(_parts(self._merge(parts), MemoryShares.of(self._store.options).part)):
            if rows is not None:
                self._writer.write(rows)
            self._write_changelog(changes)
        self._before += [file for section in parts for run in section for file in run.files]
        self._after += self._writer.close()

    def _write_changelog(self, changes: Sequence[pa.Table]) -> None:
        for rows in changes:
            self._changelog.write(rows)

    def _merge(self, parts: Sequence[list[SortedRun]]) -> Merged:
        files = files_by_age(run for section in parts for run in section)
        if self._needs_lookup and self._task.unit.output_level and any(not f.level for f in files):
            merged = self._merge_with_lookups(LookupInput(files, self._fields), self._read)
        elif self._full_changelog and self._difference is not None:
            merged = self._merge_with_changes(parts, self._difference)
        else:
            merged = self._merge_sections(parts)
        for rows, changes in merged:
            yield drop_retracts(rows) if self._task.drop_deletes and rows is not None else rows, changes

    def _merge_sections(self, parts: Sequence[list[SortedRun]]) -> Merged:
        engine, read, width = self._engine, self._read, len(self._fields)
        if self._store.traits.reads_high_level:
            engine, read = replace(engine, fold=read_high_level(engine.fold)), with_levels(read)
        for section in parts:
            for rows in merge_section(section, read, self._order, engine, self._store.options, columns=width):
                yield rows.drop_columns([LEVEL]) if read is not self._read else rows, ()

    def _merge_with_changes(self, parts: Sequence[list[SortedRun]], difference: ChangelogDiff) -> Merged:
        fold = FullCompactionChangelog(self._engine, difference, self._task.unit.output_level)
        engine, read = replace(self._engine, fold=fold, keeps_rows=False), with_levels(self._read)
        width = len(self._fields)
        for section in parts:
            for rows in merge_section(section, read, self._order, engine, self._store.options, columns=width):
                yield rows, fold.taken()
        yield None, fold.taken()

    def _find_superseded(self, file: DataFileMeta) -> None:
        """Find the rows of higher levels that an upgraded file supersedes, by their keys."""
        task, fields = self._task, LookupFiles.ordering(self._store)
        read = file_reader(self._store, task.bucket_ref, fields, vectors=self._vectors)
        for _ in self._merge_with_lookups(LookupInput([file], fields), read):
            pass

    def _merge_with_lookups(self, compacted: LookupInput, read: ReadFile) -> Merged:
        """Merge the rows of the compacted files with rows of higher levels; ``read`` reads the compacted files."""
        store, task = self._store, self._task
        level = task.unit.output_level
        lookups = LookupFiles(store, task.bucket_ref, task.higher, compacted, self._vectors)
        for section in sections_with_higher_levels(compacted.files, task.higher, store.schema.key_arrow):
            used = lookups if any(run.level > level for run in section) else None
            aged = by_age(section)
            read_all = with_levels(read) if used is None else used.reader(read, numbered=aged is None)
            fold = LookupChangelogMerge(self._engine, self._difference, level, used)
            engine = replace(self._engine, fold=fold, keeps_rows=False)
            order = replace(self._order, by_run=aged is not None)
            for rows in merge_section(
                aged or section, read_all, order, engine, store.options, columns=len(compacted.fields)
            ):
                yield rows, fold.taken()
            yield None, fold.taken()
            if self._has_vectors:
                self._supersede(lookups.by_file(fold.superseded))

    def _supersede(self, rows: Mapping[str, DeletionVector]) -> None:
        for name, vector in rows.items():
            previous = self._superseded.get(name)
            self._superseded[name] = vector if previous is None else previous.union(vector)


def _small_size(store: FileStore) -> int:
    """Return the size in bytes below which files are rewritten, not upgraded. Java 1.4.2 has the same default."""
    is_set = store.options.has(COMPACTION_SMALL_FILE_RATIO)
    target = target_size(store)
    return int(target * store.options.value(COMPACTION_SMALL_FILE_RATIO)) if is_set else target // 10 * 7


def _difference(store: FileStore) -> ChangelogDiff:
    options = store.options
    if not options.value(CHANGELOG_PRODUCER_ROW_DEDUPLICATE):
        return ChangelogDiff()
    ignored = options.value(CHANGELOG_PRODUCER_ROW_DEDUPLICATE_IGNORE_FIELDS)
    return ChangelogDiff(tuple(name for name in store.schema.names if name not in ignored))


def _run_of(file: DataFileMeta) -> SortedRun:
    return SortedRun(file.level, (file,))


def _parts(merged: Merged, part_bytes: int) -> Merged:
    """Yield the same rows in parts of about ``part_bytes``: one is encoded while the next is merged."""
    rows: list[pa.Table] = []
    changes: list[pa.Table] = []
    size = 0
    for new_rows, new_changes in merged:
        if new_rows is not None and new_rows.num_rows:
            rows.append(new_rows)
        changes += new_changes
        size += sum(table.nbytes for table in new_changes) + (0 if new_rows is None else new_rows.nbytes)
        if size >= part_bytes:
            yield _concat(rows), changes
            rows, changes, size = [], [], 0
    if rows or changes:
        yield _concat(rows), changes


def _concat(tables: Sequence[pa.Table]) -> pa.Table | None:
    return pa.concat_tables(tables) if tables else None
