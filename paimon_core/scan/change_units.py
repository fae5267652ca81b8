"""The changes of a snapshot, or all its rows, in the smallest units and in a stable order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from types import MappingProxyType

from paimon_core.datafile.deletion_vectors import stored_vectors, vector_entries
from paimon_core.deletion.vector_files import StoredVector
from paimon_core.errors import OutOfRangeError, UnsupportedError
from paimon_core.lsm.universal import num_levels
from paimon_core.manifest.bucket import group_by_bucket
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.options.scan import STREAMING_READ_APPEND_OVERWRITE, STREAMING_READ_OVERWRITE
from paimon_core.scan.changelog_rules import check_has_changelog
from paimon_core.scan.entries import live_entries
from paimon_core.scan.read_rules import check_not_replaced, check_same_rules
from paimon_core.scan.split import DataSplit
from paimon_core.scan.split_plan import Packing, plan_splits
from paimon_core.scan.table_scan import snapshot_splits
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.file_store import FileStore

_ONE_BY_ONE = Packing(target_size=0, open_cost=1)


class RowSource(Enum):
    """The rule that turns the rows of a change unit into changes."""

    STORED_KINDS = "stored kinds"
    """Rows with their stored kinds; rows of one key in overlapping files are merged first."""
    INSERTED = "inserted"
    """Each row that a read of the files returns, as +I."""
    DELETED = "deleted"
    """Each row that a read of the files returns, as -D."""


@dataclass(frozen=True, slots=True)
class ChangeUnit:
    """Files of one bucket at one snapshot, and the rule that turns their rows into changes."""

    source: RowSource
    split: DataSplit


def all_units(store: FileStore, snapshot: Snapshot, created_since: int | None = None) -> list[ChangeUnit]:
    """Return all rows of a snapshot that later changes do not emit, by partition and bucket.

    Rows that the changelog will emit after a compaction are left out. Without a changelog, rows of postponed buckets
    come last in their partition, as they were written. ``created_since`` (epoch ms) leaves out files created before.
    """
    check_same_rules(store, snapshot)
    live, postponed = _by_postponement(live_entries(store, snapshot, with_stats=False).live)
    producer = store.traits.changelog_producer
    if producer == "full-compaction":
        top = num_levels(store.options) - 1
        live = [e for e in live if e.file.level == top]
    elif producer == "lookup":
        live = [e for e in live if e.file.level > 0]
    if created_since is not None:
        live = [e for e in live if _created(e) >= created_since]
    units = [ChangeUnit(RowSource.INSERTED, split) for split in snapshot_splits(store, snapshot, live, _ONE_BY_ONE)]
    return _in_order(store, [*units, *(_as_stored(snapshot, postponed) if producer == "none" else ())])


def changed_units(
    store: FileStore, snapshot: Snapshot, before: Callable[[], Snapshot | None] = lambda: None
) -> list[ChangeUnit]:
    """Return the changes of a snapshot by partition and bucket, within a bucket in the order of their commits.

    The changes are the rows of the changelog, or without a changelog the rows that a commit added, once per key. An
    overwrite emits no changes unless the table's options ask for them. ``before`` returns the previous snapshot. Raises
    InvalidInputError as `check_not_replaced` and `check_has_changelog`.
    """
    check_not_replaced(store, snapshot)
    if snapshot.commit_kind == CommitKind.OVERWRITE:
        return _in_order(store, _overwritten(store, snapshot, before))
    has_changelog = store.traits.changelog_producer != "none"
    if has_changelog:
        check_has_changelog(store, snapshot)
    if not has_changelog and snapshot.commit_kind != CommitKind.APPEND:
        return []
    entries = snapshot_entries(store, snapshot, changelog=has_changelog)
    if any(e.kind != ADD for e in entries):
        raise UnsupportedError(
            f"snapshot {snapshot.id} of {store.root} has kind APPEND but deletes files: its changes cannot be read"
        )
    if has_changelog:
        return _in_order(store, _as_stored(snapshot, [e for e in entries if e.bucket >= 0]))
    if store.traits.data_evolution:
        _check_new_rows(store, snapshot, entries, before)
    return _in_order(store, _added(store, snapshot, entries))


def _added(store: FileStore, snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> list[ChangeUnit]:
    """Return rows of new files as they are stored; overlapping files of a bucket are merged.

    Rows of postponed buckets are emitted now: without a changelog no later snapshot emits them.
    """
    key_schema, sliced = store.schema.key_arrow if store.traits.keyed else None, store.traits.data_evolution
    in_buckets, postponed = _by_postponement(entries)
    splits = plan_splits(snapshot.id, in_buckets, _ONE_BY_ONE, key_schema, sliced=sliced)
    return [*(ChangeUnit(RowSource.STORED_KINDS, split) for split in splits), *_as_stored(snapshot, postponed)]


def _by_postponement(entries: Sequence[ManifestEntry]) -> tuple[list[ManifestEntry], list[ManifestEntry]]:
    """Return the entries in buckets, and the entries in postponed buckets, whose rows have no bucket yet."""
    return [e for e in entries if e.bucket >= 0], [e for e in entries if e.bucket < 0]


def _as_stored(snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> list[ChangeUnit]:
    """Return one unit for each file, with the stored kinds of its rows."""
    return [ChangeUnit(RowSource.STORED_KINDS, _split(snapshot.id, [e], raw=True)) for e in entries]


def _overwritten(store: FileStore, snapshot: Snapshot, before: Callable[[], Snapshot | None]) -> list[ChangeUnit]:
    """Return the changes of an overwrite: deletes of the old rows (with a primary key), then the new rows."""
    options, keyed = store.options, store.traits.keyed
    if not options.value(STREAMING_READ_OVERWRITE if keyed else STREAMING_READ_APPEND_OVERWRITE):
        return []
    entries = snapshot_entries(store, snapshot, changelog=False)
    if store.traits.data_evolution:
        _check_new_rows(store, snapshot, [e for e in entries if e.kind == ADD], before)
    units = _added(store, snapshot, [e for e in entries if e.kind == ADD])
    removed = group_by_bucket(e for e in entries if keyed and e.kind == DELETE)
    if not removed:
        return units
    previous = None
    if store.traits.deletion_vectors:
        previous = _needed(store, snapshot, before, "records which of the overwritten rows were deleted")
    vectors = stored_vectors(store, vector_entries(store, previous))
    deleted = [_split(snapshot.id, files, raw=False, vectors=vectors) for files in removed.values()]
    return [*(ChangeUnit(RowSource.DELETED, split) for split in deleted), *units]


def _check_new_rows(
    store: FileStore, snapshot: Snapshot, entries: Sequence[ManifestEntry], before: Callable[[], Snapshot | None]
) -> None:
    """Raise UnsupportedError if files of some columns belong to rows of older snapshots, which are not new rows."""
    partial = [e.file for e in entries if e.file.write_cols is not None and e.file.first_row_id is not None]
    if not partial or snapshot.id == 1:
        return
    next_new_row = _needed(store, snapshot, before, "records which rows are new").next_row_id or 0
    if any((file.first_row_id or 0) < next_new_row for file in partial):
        raise UnsupportedError(
            f"snapshot {snapshot.id} of {store.root} updates some columns of existing rows, and streams "
            f"cannot emit updates of columns: start one after it, with 'scan.snapshot-id' = '{snapshot.id + 1}'"
        )


def _needed(store: FileStore, snapshot: Snapshot, before: Callable[[], Snapshot | None], what: str) -> Snapshot:
    """Return the previous snapshot. OutOfRangeError if it has expired; ``what``: its content that is needed."""
    previous = before()
    if previous is None:
        raise OutOfRangeError(
            f"the changes of snapshot {snapshot.id} of {store.root} are unknown: snapshot {snapshot.id - 1}, which "
            f"{what}, has expired; start a stream after it, with 'scan.snapshot-id' = '{snapshot.id + 1}'"
        )
    return previous


def snapshot_entries(store: FileStore, snapshot: Snapshot, *, changelog: bool) -> list[ManifestEntry]:
    """Return the entries of the snapshot's changelog, or of its delta."""
    name, size = (
        (snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size)
        if changelog
        else (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
    )
    metas = [] if name is None else store.manifests.read_list(name, size)
    return [e for m in metas for e in store.manifests.read(m.file_name, m.file_size, with_stats=False)]


def _split(
    snapshot_id: int,
    entries: Sequence[ManifestEntry],
    *,
    raw: bool,
    vectors: Mapping[str, StoredVector] = MappingProxyType({}),
) -> DataSplit:
    """Return one split of all files of `entries`. REQUIRES: they are in one bucket."""
    first, files = entries[0], tuple(e.file for e in entries)
    stored = tuple(vectors[f.file_name] for f in files if f.file_name in vectors)
    return DataSplit(snapshot_id, *first.location, files, raw, stored)


def _in_order(store: FileStore, units: Sequence[ChangeUnit]) -> list[ChangeUnit]:
    """Sort units by partition path and bucket, postponed buckets last, and keep the order within a bucket."""
    paths = {partition: store.partition_path(partition) for partition in {u.split.partition for u in units}}
    return sorted(units, key=lambda u: (paths[u.split.partition], u.split.bucket < 0, u.split.bucket))


def _created(entry: ManifestEntry) -> int:
    """Return the creation time of the file (epoch ms), which its metadata store as local time."""
    wall = datetime.fromtimestamp((entry.file.creation_time or 0) / 1000, timezone.utc).replace(tzinfo=None)
    return int(wall.astimezone().timestamp() * 1000)
