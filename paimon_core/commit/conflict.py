"""Decide if changes can follow a base snapshot, with pure functions on manifest entries (behaviour 7.5)."""

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from paimon_core.commit.changes import Changes
from paimon_core.errors import CorruptedError
from paimon_core.lsm.intervals import key_ranks
from paimon_core.lsm.row_ranges import group_by_row_range, overlap
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.options.bucket import POSTPONED
from paimon_core.snapshot.snapshot import STATEMENT, CommitKind, Snapshot


@dataclass(frozen=True, slots=True)
class Conflict:
    """The reason why changes cannot follow their base, as a text for the user."""

    reason: str


def bucket_conflict(changes: Changes, other_entries: Iterable[ManifestEntry]) -> Conflict | None:
    """Return a conflict if a partition would get files of two bucket counts. Overwrites replace whole partitions.

    ``other_entries``: entries added to the table that the writer of ``changes`` has not read.
    """
    if changes.kind == CommitKind.OVERWRITE:
        return None
    ours = {e.partition: e.total_buckets for e in changes.entries if e.bucket >= 0}
    for entry in other_entries:
        total = ours.get(entry.partition, entry.total_buckets)
        if entry.kind == ADD and entry.bucket >= 0 and entry.total_buckets != total:
            return Conflict(
                f"the partition was rewritten with {entry.total_buckets} buckets while files of {total} buckets were "
                "being written for it: write again"
            )
    return None


def row_conflict(changes: Changes, other: Snapshot, entries: Iterable[ManifestEntry]) -> Conflict | None:
    """Return a conflict if another commit changed rows that readers see in a bucket of ``changes``.

    ``entries``: the delta of ``other``. A compaction changes no row, unless it makes postponed rows visible. Postponed
    rows may be routed to any bucket of their partition.
    """
    ours = {e.bucket_ref for e in changes.entries}
    postponed = {partition for partition, bucket in ours if bucket == POSTPONED}
    partitions = {partition for partition, _ in ours}
    for entry in entries:
        shows = entry.bucket == POSTPONED and entry.partition in partitions
        meets = entry.bucket_ref in ours or entry.partition in postponed
        if shows or (meets and other.commit_kind != CommitKind.COMPACT):
            return Conflict(f"snapshot {other.id} has changed rows in a bucket that was read: read again")
    return None


def statement_conflict(other: Snapshot) -> Conflict | None:
    """Return a conflict if another commit is the result of a row-level statement, or has replaced rows.

    A commit that only adds rows can as well come after the statement. A row-level statement that only adds rows,
    because no row matched, is recorded in the properties of its snapshot.
    """
    if other.commit_kind == CommitKind.OVERWRITE or STATEMENT in (other.properties or {}):
        return Conflict(f"snapshot {other.id} is the result of another statement that changed rows: read again")
    return None


def replacement_conflict(
    changes: Changes, live: Sequence[ManifestEntry], key_schema: pa.Schema | None
) -> Conflict | None:
    """Return a conflict if the files of ``changes`` cannot replace files of ``live``.

    ``key_schema``: the Arrow schema of the keys; ``None``: a table without a primary key.
    """
    conflict = file_conflict(changes, live)
    if conflict is None and key_schema is not None and any(e.kind == ADD and e.file.level for e in changes.entries):
        conflict = level_conflict(changes, live, key_schema)
    if conflict is None and any(e.kind == ADD and e.file.first_row_id is not None for e in changes.entries):
        conflict = range_conflict(changes, live)
    return conflict


def order_conflict(
    changes: Changes,
    live: Sequence[ManifestEntry],
    key_schema: pa.Schema,
    own_files: Collection[str] = (),
    *,
    lookup_files: Collection[str] | None = None,
    mixes: bool = False,
) -> Conflict | None:
    """Return a conflict if a compaction would change rows, because it has not read files of other commits.

    - Rows with equal sequence numbers are ordered by level and, in level 0, by commits (decision 13). So compacted rows
      must not sink below rows that were committed before them.
    - A compaction may have dropped deletes, so no older row of their keys may remain.
    - A lookup compaction must have read all files above level 0 that hold its keys. Above level 0, readers use only a
      key's row at the smallest level.
    - Rows that are merged into one must be consecutive versions of their key.

    Args:
        changes: the compaction of one bucket.
        live: the entries of the bucket, in the order of commits.
        key_schema: the Arrow schema of the keys.
        own_files: names of files that the compacting writer wrote itself, with sequence numbers above all it had read.
        lookup_files: names of the files above level 0 that the compaction read and did not replace. ``None``: not a
            lookup compaction.
        mixes: True if a merged row may differ from every row that was merged. A lookup compaction merges rows with the
            rows of higher levels anyway.
    """
    deleted = {e.identity for e in changes.entries if e.kind == DELETE}
    highest = max((e.file.level for e in changes.entries if e.kind == ADD), default=0)
    if not highest:
        return None
    if lookup_files is not None:
        conflict = _lookup_conflict(changes, [e for e in live if e.identity not in deleted], key_schema, lookup_files)
        if conflict is not None:
            return conflict
    ages = [((-e.file.level, position), e.file, e.identity in deleted) for position, e in enumerate(live)]
    inputs = [(age, file) for age, file, is_input in ages if is_input]
    oldest = min((file.min_sequence_number for _, file in inputs), default=0)
    first_own = min((file.min_sequence_number for _, file in inputs if file.file_name in own_files), default=None)
    for position, other in ((age, file) for age, file, is_input in ages if not is_input):
        unknown = first_own is not None and other.max_sequence_number >= first_own
        between = mixes and (other.level <= highest or (lookup_files is None and other.max_sequence_number > oldest))
        for age, file in inputs:
            overtakes = other.min_sequence_number <= file.max_sequence_number
            may_be_older = other.level <= highest and overtakes
            ties = may_be_older and other.level < highest and position < age
            ties = ties and file.min_sequence_number <= other.max_sequence_number
            unread = unknown and other.level > 0 and file.file_name in own_files
            uncovers = file.delete_row_count != 0 and (may_be_older or unread)
            if (ties or uncovers or (between and overtakes)) and _overlap(file, other, key_schema):
                return _unknown_file(other, file)
    return None


def position_conflict(changes: Changes, live: Sequence[ManifestEntry], key_schema: pa.Schema) -> Conflict | None:
    """Return a conflict if level-0 files that are added again would come after files with rows that may be as new.

    In level 0, rows with equal sequence numbers are ordered by commits, so the older rows would win. ``live``: as in
    `order_conflict`.
    """
    again = {e.identity for e in changes.entries if e.kind == DELETE and not e.file.level}
    level_0 = [e for e in live if not e.file.level]
    late = later_ties([e.file for e in level_0], key_schema, [e.identity in again for e in level_0])
    return None if not late else Conflict(f"file {late[0]} would come after rows that may be as new as its own")


def later_ties(files: Sequence[DataFileMeta], key_schema: pa.Schema, among: Sequence[bool] | None = None) -> list[str]:
    """Return the names of level-0 files that may tie with a later file: equal keys and sequence numbers.

    Args:
        files: the files of level 0 of one bucket, in the order of commits.
        key_schema: the Arrow schema of the keys.
        among: for each file, True to check it. ``None``: all files are checked.
    """
    names = []
    for at, file in enumerate(files):
        later = files[at + 1 :] if among is None or among[at] else ()
        meets = (
            other
            for other in later
            if other.min_sequence_number <= file.max_sequence_number
            and file.min_sequence_number <= other.max_sequence_number
        )
        if any(_overlap(file, other, key_schema) for other in meets):
            names.append(file.file_name)
    return names


def _lookup_conflict(
    changes: Changes, remaining: Iterable[ManifestEntry], key_schema: pa.Schema, lookup_files: Collection[str]
) -> Conflict | None:
    """Return a conflict if a remaining file above level 0 was not read, but may hold keys of the compaction."""
    read_files = frozenset(lookup_files)
    unread = [e.file for e in remaining if e.file.level and e.file.file_name not in read_files]
    if not unread:
        return None
    files = [e.file for e in changes.entries]
    low, high = key_ranks([*files, *unread], key_schema)
    for other, lowest, highest in zip(unread, low[len(files) :], high[len(files) :], strict=True):
        overlapping = (low[: len(files)] <= highest) & (lowest <= high[: len(files)])
        if overlapping.any():
            return _unknown_file(other, files[int(overlapping.argmax())])
    return None


def _unknown_file(other: DataFileMeta, file: DataFileMeta) -> Conflict:
    return Conflict(
        f"file {other.file_name}, which another commit added, may hold keys of {file.file_name}: the compaction has "
        "not read it, and would change rows"
    )


def _overlap(first: DataFileMeta, second: DataFileMeta, key_schema: pa.Schema) -> bool:
    """Return True if the key ranges of the files overlap."""
    low, high = key_ranks([first, second], key_schema)
    return bool(low.max() <= high.min())


def range_conflict(changes: Changes, live: Sequence[ManifestEntry]) -> Conflict | None:
    """Return a conflict unless any two files of a partition have equal or disjoint ranges of row ids."""
    deleted = {e.identity for e in changes.entries if e.kind == DELETE}
    after: dict[bytes, list[DataFileMeta]] = {}
    for entry in (*live, *changes.entries):
        if entry.kind == ADD and entry.identity not in deleted:
            after.setdefault(entry.partition, []).append(entry.file)
    try:
        for files in after.values():
            group_by_row_range(files)
    except CorruptedError as error:
        return Conflict(f"another commit compacted these files or replaced their columns: {error}")
    return None


def column_conflict(changes: Changes, live: Sequence[ManifestEntry], snapshot_id: int | None) -> Conflict | None:
    """Return a conflict if rows of the replaced columns moved to other files, or if another commit replaced them too.

    ``snapshot_id``: the id of the snapshot that was read. Old values are written again with the new ones, so a
    replacement by another commit since that snapshot would be undone.
    """
    existing = {(e.partition, e.file.first_row_id, e.file.row_count) for e in live}
    late = [e for e in live if snapshot_id is not None and e.file.max_sequence_number > snapshot_id]
    for entry in changes.entries:
        file = entry.file
        if entry.kind != ADD or file.first_row_id is None:
            continue
        if (entry.partition, file.first_row_id, file.row_count) not in existing:
            return Conflict(f"another commit replaced the files of the rows from id {file.first_row_id}: read again")
        other_files = (e.file for e in late if e.partition == entry.partition and overlap(e.file, file))
        if any(f.write_cols is None or set(f.write_cols) & set(file.write_cols or ()) for f in other_files):
            return Conflict(f"another commit replaced columns of the rows from id {file.first_row_id}: read again")
    return range_conflict(changes, live)


def marked_range_conflict(
    changes: Changes, live: Iterable[ManifestEntry], marked_files: Collection[str]
) -> Conflict | None:
    """Return a conflict if other commits have deleted rows of the row ranges whose columns are replaced.

    ``marked_files``: the names of the data files whose deletion vectors other commits have changed.
    """
    marked = [e for e in live if e.file.file_name in marked_files]
    for entry in changes.entries:
        if entry.kind == ADD and any(e.partition == entry.partition and overlap(e.file, entry.file) for e in marked):
            return Conflict(f"another commit deleted some of the rows from id {entry.file.first_row_id}: read again")
    return None


def deleted_row_conflict(
    marked_files: Collection[str], live: Sequence[ManifestEntry], snapshot_id: int
) -> Conflict | None:
    """Return a conflict if other commits have replaced columns of rows to delete: the rows may not match any more.

    Args:
        marked_files: the names of the data files that get more deleted rows.
        live: the live files of their partitions.
        snapshot_id: the id of the snapshot in which the rows were found.
    """
    late = [e for e in live if e.file.max_sequence_number > snapshot_id]
    for entry in live if late else ():
        if entry.file.file_name in marked_files:
            same = (e.file for e in late if e.partition == entry.partition and overlap(e.file, entry.file))
            if any(file.file_name != entry.file.file_name for file in same):
                return Conflict(
                    f"another commit replaced columns of the rows from id {entry.file.first_row_id}: read again"
                )
    return None


def file_conflict(changes: Changes, live: Sequence[ManifestEntry]) -> Conflict | None:
    """Return a conflict unless every deleted file is live and no added file is live already."""
    existing = {e.identity for e in live}
    added: set[object] = set()
    for entry in changes.entries:
        if entry.kind == DELETE and entry.identity not in existing:
            return Conflict(f"file {entry.file.file_name}, which is to be replaced, is no longer part of the table")
        if entry.kind == ADD and (entry.identity in existing or entry.identity in added):
            return Conflict(f"file {entry.file.file_name} is part of the table already")
        if entry.kind == ADD:
            added.add(entry.identity)
    return None


def level_conflict(changes: Changes, live: Sequence[ManifestEntry], key_schema: pa.Schema) -> Conflict | None:
    """Return a conflict if two files of one bucket and one level above 0 would overlap in keys."""
    deleted = {e.identity for e in changes.entries if e.kind == DELETE}
    after = [e for e in (*live, *changes.entries) if e.kind == ADD and e.identity not in deleted and e.file.level > 0]
    levels: dict[tuple[BucketRef, int], list[ManifestEntry]] = {}
    for entry in after:
        levels.setdefault((entry.bucket_ref, entry.file.level), []).append(entry)
    for entries in levels.values():
        low, high = key_ranks([e.file for e in entries], key_schema)
        ranges = sorted(zip(low.tolist(), high.tolist(), (e.file.file_name for e in entries), strict=True))
        for (_, end, first), (start, _, second) in itertools.pairwise(ranges):
            if start <= end:
                return Conflict(f"files {first} and {second} of one level would overlap: another compaction came first")
    return None
