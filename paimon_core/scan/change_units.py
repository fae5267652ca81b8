"""What a snapshot changed, or all that it holds, in the smallest parts, and in an order that is the same for ever."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from types import MappingProxyType

from paimon_core.datafile.deletion_vectors import stored_vectors, vector_entries
from paimon_core.deletion.files import StoredVector
from paimon_core.errors import OutOfRangeError, UnsupportedError
from paimon_core.lsm.universal import num_levels
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.options.file import DATA_EVOLUTION_ENABLED
from paimon_core.options.merge import CHANGELOG_PRODUCER, DELETION_VECTORS_ENABLED
from paimon_core.options.scan import STREAMING_READ_APPEND_OVERWRITE, STREAMING_READ_OVERWRITE
from paimon_core.scan.entries import live_entries
from paimon_core.scan.split import DataSplit
from paimon_core.scan.split_plan import Packing, plan_splits
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.file_store import FileStore

__all__ = ["ChangeUnit", "RowSource", "all_units", "changed_units"]

_ONE_BY_ONE = Packing(target_size=0, open_cost=1)


class RowSource(Enum):
    """How the rows of a piece count."""

    STORED_KINDS = "told"
    """With the kinds they are stored with; rows of one key in files that overlap are merged first."""
    INSERTED = "came"
    """What reading the files gives, each row as +I."""
    DELETED = "went"
    """What reading the files gives, each row as -D."""


@dataclass(frozen=True, slots=True)
class ChangeUnit:
    """Files of one bucket at one snapshot, and how their rows count."""

    way: RowSource
    split: DataSplit


def all_units(store: FileStore, snapshot: Snapshot, created_since: int | None = None) -> list[ChangeUnit]:
    """All rows of a snapshot that the changes after it do not tell, by partition and bucket.

    Rows that the table's changelog will tell, once they are compacted, are left out; without one those that wait to be
    dealt out to buckets come last in their partition, as they were written. ``created_since`` (epoch ms) leaves out
    files made before.
    """
    schema, options = store.schema, store.options
    found = live_entries(store, snapshot, with_stats=False).live
    live, waiting = [e for e in found if e.bucket >= 0], [e for e in found if e.bucket < 0]
    producer = options.value(CHANGELOG_PRODUCER)
    if producer == "full-compaction":
        top = num_levels(options) - 1
        live = [e for e in live if e.file.level == top]
    elif producer == "lookup":
        live = [e for e in live if e.file.level > 0]
    if created_since is not None:
        live = [e for e in live if _created(e) >= created_since]
    splits = plan_splits(
        snapshot.id,
        live,
        _ONE_BY_ONE,
        schema.key_arrow if schema.primary_keys else None,
        stored_vectors(store, vector_entries(store, snapshot)),
        disjoint=bool(schema.primary_keys) and options.value(DELETION_VECTORS_ENABLED),
        sliced=options.value(DATA_EVOLUTION_ENABLED),
    )
    pieces = [ChangeUnit(RowSource.INSERTED, split) for split in splits]
    return _in_place(store, [*pieces, *(_as_stored(snapshot, waiting) if producer == "none" else ())])


def changed_units(
    store: FileStore, snapshot: Snapshot, before: Callable[[], Snapshot | None] = lambda: None
) -> list[ChangeUnit]:
    """What a snapshot changed, by partition and bucket, within these in the order it happened.

    It is what the table's changelog tells, or without one the rows that a commit added, once per key. Overwriting tells
    nothing unless the table's options ask for it. ``before`` gives the snapshot before, where that is needed.
    """
    if snapshot.commit_kind == CommitKind.OVERWRITE:
        return _in_place(store, _overwritten(store, snapshot, before))
    told = store.options.value(CHANGELOG_PRODUCER) != "none"
    if not told and snapshot.commit_kind != CommitKind.APPEND:
        return []
    entries = _entries(store, snapshot, changelog=told)
    if any(e.kind != ADD for e in entries):
        raise UnsupportedError(
            f"snapshot {snapshot.id} of {store.root} deletes files, though it only appends: its rows are no changes"
        )
    if told:
        return _in_place(store, _as_stored(snapshot, [e for e in entries if e.bucket >= 0]))
    if store.options.value(DATA_EVOLUTION_ENABLED):
        _check_new_rows(store, snapshot, entries, before)
    return _in_place(store, _added(store, snapshot, entries))


def _added(store: FileStore, snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> list[ChangeUnit]:
    """Rows of new files as they are stored, where files of a bucket overlap as they are merged.

    Rows that wait to be dealt out to buckets are told now: without a changelog nothing tells them later.
    """
    schema = store.schema
    key_schema = schema.key_arrow if schema.primary_keys else None
    sliced = store.options.value(DATA_EVOLUTION_ENABLED)
    placed, waiting = [e for e in entries if e.bucket >= 0], [e for e in entries if e.bucket < 0]
    splits = plan_splits(snapshot.id, placed, _ONE_BY_ONE, key_schema, sliced=sliced)
    return [*(ChangeUnit(RowSource.STORED_KINDS, split) for split in splits), *_as_stored(snapshot, waiting)]


def _as_stored(snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> list[ChangeUnit]:
    return [ChangeUnit(RowSource.STORED_KINDS, _split(snapshot.id, [e], raw=True)) for e in entries]


def _overwritten(store: FileStore, snapshot: Snapshot, before: Callable[[], Snapshot | None]) -> list[ChangeUnit]:
    options, keyed = store.options, bool(store.schema.primary_keys)
    if not options.value(STREAMING_READ_OVERWRITE if keyed else STREAMING_READ_APPEND_OVERWRITE):
        return []
    entries = _entries(store, snapshot, changelog=False)
    pieces = _added(store, snapshot, [e for e in entries if e.kind == ADD])
    gone: dict[tuple[bytes, int], list[ManifestEntry]] = {}
    for entry in entries:
        if keyed and entry.kind == DELETE:
            gone.setdefault((entry.partition, entry.bucket), []).append(entry)
    if not gone:
        return pieces
    previous = None
    if options.value(DELETION_VECTORS_ENABLED):
        previous = _needed(store, snapshot, before, "tells which of the rows it overwrites were deleted")
    vectors = stored_vectors(store, vector_entries(store, previous))
    went = [_split(snapshot.id, files, raw=False, vectors=vectors) for files in gone.values()]
    return [*(ChangeUnit(RowSource.DELETED, split) for split in went), *pieces]


def _check_new_rows(
    store: FileStore, snapshot: Snapshot, entries: Sequence[ManifestEntry], before: Callable[[], Snapshot | None]
) -> None:
    """Files of some columns may belong to rows that were there before, which then are no new rows."""
    partial = [e.file for e in entries if e.file.write_cols is not None and e.file.first_row_id is not None]
    if not partial or snapshot.id == 1:
        return
    known = _needed(store, snapshot, before, "tells which rows are new").next_row_id or 0
    if any((file.first_row_id or 0) < known for file in partial):
        raise UnsupportedError(
            f"snapshot {snapshot.id} of {store.root} gives rows that were there new values of some columns, which no "
            f"stream can tell: start one after it, with 'scan.snapshot-id' = '{snapshot.id + 1}'"
        )


def _needed(store: FileStore, snapshot: Snapshot, before: Callable[[], Snapshot | None], what: str) -> Snapshot:
    found = before()
    if found is None:
        raise OutOfRangeError(
            f"cannot tell what snapshot {snapshot.id} of {store.root} changed: snapshot {snapshot.id - 1}, which "
            f"{what}, has expired; start a stream after it, with 'scan.snapshot-id' = '{snapshot.id + 1}'"
        )
    return found


def _entries(store: FileStore, snapshot: Snapshot, *, changelog: bool) -> list[ManifestEntry]:
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
    """All these files, of one bucket, as they are."""
    first, files = entries[0], tuple(e.file for e in entries)
    marked = tuple(vectors[f.file_name] for f in files if f.file_name in vectors)
    return DataSplit(snapshot_id, first.partition, first.bucket, first.total_buckets, files, raw, marked)


def _in_place(store: FileStore, pieces: Sequence[ChangeUnit]) -> list[ChangeUnit]:
    """By partition path and bucket, those of no bucket last; within a bucket as they come."""
    paths = {partition: store.partition_path(partition) for partition in {p.split.partition for p in pieces}}

    def place(piece: ChangeUnit) -> tuple[str, bool, int]:
        return paths[piece.split.partition], piece.split.bucket < 0, piece.split.bucket

    return sorted(pieces, key=place)


def _created(entry: ManifestEntry) -> int:
    """When the file was made (epoch ms): its metadata say it as the clock on the wall did."""
    wall = datetime.fromtimestamp((entry.file.creation_time or 0) / 1000, timezone.utc).replace(tzinfo=None)
    return int(wall.astimezone().timestamp() * 1000)
