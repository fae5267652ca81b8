"""What changed between two snapshots, as the rows that tell it (behaviour 9.3)."""

from collections.abc import Iterator

import pyarrow as pa

from paimon_core.datafile.reader import Reading, read_file
from paimon_core.errors import OutOfRangeError, UnsupportedError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.options.merge import CHANGELOG_PRODUCER
from paimon_core.schema.support import check_readable
from paimon_core.snapshot.changelogs import Changelogs
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.row_kind import INSERT, kind_names
from paimon_core.types.system_fields import ROW_KIND, VALUE_KIND

__all__ = ["changes", "changes_schema"]


def changes_schema(store: FileStore) -> pa.Schema:
    """The columns of changes: ``rowkind`` (text such as "+I"), then those of the table."""
    return arrow_schema((ROW_KIND, *store.schema.fields))


def changes(store: FileStore, after: int, through: int | None = None) -> Iterator[pa.RecordBatch]:
    """The changes of every snapshot from ``after``, which does not count, ``through`` one that does (None: the newest).

    Where the table has a changelog producer they are what it told; else the rows that were written, as they are stored.
    Snapshot by snapshot; of one key in the order they happened. Overwriting tells nothing. What has expired is read as
    long as its changelog is kept. Memory: a batch. OutOfRangeError for snapshots that are not there.
    """
    check_readable(store.schema)
    told = store.options.value(CHANGELOG_PRODUCER) != "none"
    for snapshot in _snapshots(store, after, through):
        for entry in _entries(store, snapshot, told=told):
            yield from _rows(store, entry)


def _snapshots(store: FileStore, after: int, through: int | None) -> Iterator[Snapshot]:
    kept = Changelogs(store.io, store.branch_root)
    latest = store.snapshots.latest_id() or 0
    known = [i for i in (kept.earliest_id(), store.snapshots.earliest_id()) if i is not None]
    first, last = min(known, default=1), latest if through is None else through
    if not first - 1 <= after <= last <= latest:
        raise OutOfRangeError(
            f"{store.root} has no changes after snapshot {after} through {last}: it has snapshots {first} to {latest}, "
            f"so the first number must be at least {first - 1}, and the second one neither below it nor above {latest}"
        )

    def find(snapshot_id: int) -> Snapshot:
        return store.snapshots.find(snapshot_id) or kept.find(snapshot_id) or store.snapshots.get(snapshot_id)

    return parallel_map(find, range(after + 1, last + 1))


def _entries(store: FileStore, snapshot: Snapshot, *, told: bool) -> list[ManifestEntry]:
    if snapshot.commit_kind == CommitKind.OVERWRITE or (not told and snapshot.commit_kind != CommitKind.APPEND):
        return []
    name = snapshot.changelog_manifest_list if told else snapshot.delta_manifest_list
    size = snapshot.changelog_manifest_list_size if told else snapshot.delta_manifest_list_size
    metas = [] if name is None else store.manifests.read_list(name, size)
    entries = [e for m in metas for e in store.manifests.read(m.file_name, m.file_size, with_stats=False)]
    if any(e.kind != ADD for e in entries):
        raise UnsupportedError(
            f"snapshot {snapshot.id} of {store.root} deletes files, though it only appends: its rows are no changes"
        )
    return [e for e in entries if e.bucket >= 0]  # bucket -2 holds rows no reader sees before compaction


def _rows(store: FileStore, entry: ManifestEntry) -> Iterator[pa.RecordBatch]:
    keyed, schema = bool(store.schema.primary_keys), changes_schema(store)
    fields = (*store.schema.fields, *((VALUE_KIND,) if keyed else ()))
    for batch in read_file(store, entry.partition, entry.bucket, entry.file, fields, Reading()):
        kinds = batch.column(VALUE_KIND.name) if keyed else pa.repeat(pa.scalar(INSERT, pa.int8()), batch.num_rows)
        columns = [kind_names(kinds), *batch.columns[: len(store.schema.fields)]]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
