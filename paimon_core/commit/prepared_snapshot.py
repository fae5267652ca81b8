"""One attempt of a commit: write the metadata files of changes on a base, and prepare the snapshot to publish."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from paimon_core.commit.changes import Changes
from paimon_core.commit.index_changes import apply_indexes
from paimon_core.commit.read_rules import check_rules
from paimon_core.commit.row_tracking import with_row_ids
from paimon_core.commit.schema_check import current_schema_id
from paimon_core.datafile.deletion_vectors import read_entries, single_index_per_bucket, write_vectors
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.manifest.manifests import Manifests
from paimon_core.manifest.merge_manifests import merge_manifests
from paimon_core.scan.entries import manifest_metas
from paimon_core.snapshot.snapshot import CommitKind, Operation, Snapshot
from paimon_core.store.file_store import FileStore


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a commit: equal in all its attempts, so that a commit whose response was lost can be recognised.

    ``watermark``: epoch milliseconds. ``after``: the id of the newest snapshot that an earlier run of the commit, with
    other files, cannot have made; ``None``: no run can have had other files. ``after_fingerprint``: the fingerprint of
    that snapshot; ``None``: unknown, or the table had no snapshot. ``operation``: one of `Operation`; ``None``: the
    usual one of the commit kind.
    """

    user: str
    identifier: int
    properties: Mapping[str, str] = field(default_factory=dict)
    watermark: int | None = None
    after: int | None = None
    after_fingerprint: str | None = None
    operation: str | None = None


@dataclass(frozen=True, slots=True)
class PreparedSnapshot:
    """A snapshot that is not published yet, and the metadata files that only it refers to."""

    snapshot: Snapshot
    base_files: tuple[str, ...]  # names of lists and manifests that another base cannot use
    delta_files: tuple[str, ...]
    indexes: tuple[IndexManifestEntry, ...] = ()  # index files rewritten with their remaining deletion vectors
    added: frozenset[str] = frozenset()  # names of the data files that the snapshot adds
    manifests_written: int = 0  # for the changes
    manifests_merged: int = 0  # manifests of the base that merged manifests replaced

    def paths(self, store: FileStore) -> list[str]:
        """Return the paths of the metadata and index files that this attempt wrote."""
        written = [store.manifests.path(name) for name in (*self.base_files, *self.delta_files)]
        return [*written, *map(store.index_path, self.indexes)]

    def discard(self, store: FileStore) -> None:
        """Delete the files that this attempt wrote. REQUIRES: its snapshot provably does not exist."""
        store.manifests.delete([*self.base_files, *self.delta_files])
        _delete_indexes(store, self.indexes)


def write_attempt(store: FileStore, base: Snapshot | None, changes: Changes, identity: Identity) -> PreparedSnapshot:
    """Write manifests and lists for ``changes`` on ``base``. Return the snapshot, which is not published yet.

    Order of writes: manifests, then the lists that name them; on stores of high latency, at the same time. Cost: two
    list reads and a constant number of writes for any table size, plus the merging of manifests when it is due. Raises
    as `current_schema_id` and `check_rules` do. After an error the written files are deleted.
    """
    manifests = store.manifests
    base_files: list[str] = []
    delta_files: list[str] = []
    indexes: list[IndexManifestEntry] = []
    replaced = 0
    snapshot_id = 1 if base is None else base.id + 1
    changes, next_row_id = with_row_ids(store.options, changes, snapshot_id, base.next_row_id if base else 0)
    try:
        schema_id = current_schema_id(store)
        if not changes.copies_table:  # `migration.clone` has checked the other table
            check_rules(store, base, schema_id)
        with manifests.together():
            metas: list[ManifestFileMeta] = []
            corrections = changes.corrections
            if corrections is not None:
                metas = manifests.write(corrections.live)
                base_files += [meta.file_name for meta in metas]
                next_row_id = next_row_id if corrections.next_row_id is None else corrections.next_row_id
            elif base is not None:
                before = manifest_metas(store, base)
                metas, base_files = merge_manifests(manifests, before)
                replaced = len({m.file_name for m in before} - {m.file_name for m in metas})
            base_list, base_size = _write_list(manifests, metas, base_files)
            delta = manifests.write(changes.entries) if changes.entries else []
            delta_files += [m.file_name for m in delta]
            delta_list, delta_size = _write_list(manifests, delta, delta_files)
            changelog = manifests.write(changes.changelog) if changes.changelog else []
            delta_files += [m.file_name for m in changelog]
            changelog_list, changelog_size = None, None
            if changelog:
                changelog_list, changelog_size = _write_list(manifests, changelog, delta_files)
            index = _index(store, base, changes, indexes)
            if index is not None and (base is None or index != base.index_manifest):
                base_files.append(index)
        total = (base.total_record_count or 0) if base is not None else 0
        if corrections is not None:
            total = sum(entry.file.row_count for entry in corrections.live)
        inherited = base.statistics if base is not None and base.schema_id == schema_id else None
        snapshot = Snapshot(
            version=3,
            id=snapshot_id,
            schema_id=schema_id,
            base_manifest_list=base_list,
            base_manifest_list_size=base_size,
            delta_manifest_list=delta_list,
            delta_manifest_list_size=delta_size,
            changelog_manifest_list=changelog_list,
            changelog_manifest_list_size=changelog_size,
            changelog_record_count=sum(e.file.row_count for e in changes.changelog) or None,
            index_manifest=index,
            commit_user=identity.user,
            writer_version=_writer_version(),
            commit_identifier=identity.identifier,
            commit_kind=changes.kind,
            time_millis=store.now() if base is None else max(store.now(), base.time_millis),
            total_record_count=total + changes.record_delta,
            delta_record_count=changes.record_delta,
            watermark=_latest_known(None if base is None else base.watermark, identity.watermark),
            statistics=changes.statistics or inherited,
            properties=dict(identity.properties) or None,
            next_row_id=next_row_id,
            operation=_operation(changes.kind, identity),
            parent_delta_manifest_list=None if base is None else base.fingerprint,
        )
    except BaseException:
        manifests.delete([*base_files, *delta_files])
        _delete_indexes(store, indexes)
        raise
    counts = len(delta) + len(changelog), replaced
    return PreparedSnapshot(snapshot, tuple(base_files), tuple(delta_files), tuple(indexes), changes.added, *counts)


_USUAL: Final = {CommitKind.APPEND: Operation.WRITE, CommitKind.OVERWRITE: Operation.OVERWRITE}


def _operation(kind: str, identity: Identity) -> str | None:
    """Return the operation for the snapshot. ``None``: the commit kind says all."""
    return identity.operation or _USUAL[kind] if kind in _USUAL else None


@lru_cache(maxsize=1)
def _writer_version() -> str:
    """Return the name and the version of this package; ``unknown``: it runs without being installed."""
    try:
        return f"pyspark-paimon-{version('pyspark-paimon')}"
    except PackageNotFoundError:
        return "pyspark-paimon-unknown"


def _write_list(manifests: Manifests, metas: Sequence[ManifestFileMeta], written: list[str]) -> tuple[str, int]:
    name, size = manifests.write_list(metas)
    written.append(name)
    return name, size


def _index(store: FileStore, base: Snapshot | None, changes: Changes, written: list[IndexManifestEntry]) -> str | None:
    """Return the name of the new index manifest, or the base's if no index changes. ``None``: no index.

    If only some vectors of a file remain, they are written to a new file, which is appended to ``written``. Other
    engines read a vector file from end to end, not only the ranges that its entry lists.
    """
    name = None if base is None else base.index_manifest
    if changes.corrections is not None:
        corrected = changes.corrections.indexes
        return name if corrected is None else store.manifests.write_index(corrected) if corrected else None
    if not changes.changes_indexes or (name is None and not changes.new_indexes):
        return name
    existing = [] if name is None else store.manifests.read_index(name)
    entries = apply_indexes(
        existing,
        added=changes.new_indexes,
        deleted=changes.deleted_indexes,
        cleared_buckets=changes.cleared_buckets,
        removed_files=changes.removed_files,
        single_index=single_index_per_bucket(store),
    )
    if entries == existing:
        return name
    whole = {e.file_name: e for e in (*existing, *changes.new_indexes)}
    remaining: list[IndexManifestEntry] = []
    for entry in entries:
        if entry == whole[entry.file_name]:
            remaining.append(entry)
            continue
        rewritten = write_vectors(store, entry.bucket_ref, read_entries(store, [entry]))
        written += rewritten
        remaining += rewritten
    return store.manifests.write_index(remaining) if remaining else None


def _delete_indexes(store: FileStore, entries: Iterable[IndexManifestEntry]) -> None:
    for entry in entries:
        store.delete_index(entry)


def _latest_known(first: int | None, second: int | None) -> int | None:
    watermarks = [w for w in (first, second) if w is not None]
    return max(watermarks) if watermarks else None
