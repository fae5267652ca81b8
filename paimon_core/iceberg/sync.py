"""Bring the Iceberg metadata of a table up to its newest snapshot (decision 28).

The same rule applies after commits, rollbacks, fast-forwards and crashes: the newest metadata is compared with the
existing snapshots. The base is the newest snapshot in it that this engine has described, and that is still unchanged.
The manifests of the base are reused, with the changes since then. Without a base, the manifests are written from the
live files.

Order of writes: manifests, their list, ``v<id>.metadata.json``, the hint. Then older versions and files that no
snapshot needs are deleted. So a reader that follows the hint finds complete metadata. A crash leaves older metadata, or
files that nothing names; the next call continues from there.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from paimon_core.errors import CorruptedError, UnsupportedError, hide_secrets
from paimon_core.iceberg.contents import ManifestBuild
from paimon_core.iceberg.data_files import check_no_vectors, top_level
from paimon_core.iceberg.listed import delete_unlisted, one_spelling, tag_refs, writes_iceberg
from paimon_core.iceberg.manifest_files import ManifestFiles, Record
from paimon_core.iceberg.metadata import Metadata, MetadataFiles, dump, is_of, snapshot_record, with_level
from paimon_core.options.iceberg import (
    METADATA_ICEBERG_DELETE_AFTER_COMMIT_ENABLED,
    METADATA_ICEBERG_PREVIOUS_VERSIONS_MAX,
)
from paimon_core.schema.iceberg import partition_fields, unreadable_change
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.retention import first_retained, snapshot_retention
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.store.iceberg_location import iceberg_directory

_log = logging.getLogger(__name__)
_TRIES = 5  # to name the newest version in the hint, while others commit


def check_iceberg(store: FileStore) -> None:
    """Raise UnsupportedError if the table writes Iceberg metadata with which no reader could read its files.

    `schema.support.check_writable` checks the current schema by itself. Cost: nothing for a table without Iceberg
    metadata, else reads of the schemas that are not cached.
    """
    if not writes_iceberg(store):
        return
    iceberg_directory(store.root, store.options)
    for number in store.schemas.ids():
        if number < store.schema.id:
            change = unreadable_change(store.schemas.get(number), store.schema)
            if change is not None:
                raise UnsupportedError(
                    f"cannot write to {store.root} with Iceberg metadata: Iceberg does not support the type change of "
                    f"{change}. Set option 'metadata.iceberg.storage' to 'disabled', or add a new column instead"
                )


def sync_after_change(store: FileStore) -> None:
    """Write the Iceberg metadata of the newest snapshot, after a change of the table that is already visible.

    Never fails: an error is logged, Iceberg readers see the older state, and the next change writes the metadata.
    """
    try:
        if writes_iceberg(store):
            sync(store)
    except Exception as error:
        _log.warning(
            "the newest snapshot of %s is complete, but its Iceberg metadata was not written: Iceberg readers see an "
            "older state, until the next commit writes it: %s: %s",
            hide_secrets(store.root),
            type(error).__name__,
            hide_secrets(str(error)),
        )


def sync(store: FileStore) -> bool:
    """Write the Iceberg metadata of the newest snapshot. Return False if there is nothing to write."""
    snapshot = store.snapshots.latest()
    if snapshot is None:
        return False
    return _Sync(store, snapshot).run()


class _Sync:
    """One call of `sync`."""

    def __init__(self, store: FileStore, snapshot: Snapshot) -> None:
        schema = store.schemas.get(snapshot.schema_id).copy(dict(store.options))
        self._store, self._snapshot, self._level = store.with_schema(schema), snapshot, top_level(store)
        directory = iceberg_directory(store.root, store.options)
        self._files = MetadataFiles(store.io, directory)
        self._manifests = ManifestFiles(store.io, directory, schema, store.new_name)

    def run(self) -> bool:
        """Write the missing metadata: see `sync`."""
        store, files, snapshot = self._store, self._files, self._snapshot
        versions = files.versions()
        former = self._newest_readable(versions)
        if former is not None and self._is_current(former, versions):
            changed = files.hint() != snapshot.id
            if changed:
                self._write_hint()
            return changed
        inherited = former or Metadata(store.new_name(), store.root, 0, ())
        if one_spelling(inherited.location) != one_spelling(store.root):  # the table was renamed: all paths differ
            inherited = replace(inherited, location=store.root, snapshots=())
        if not self._has_partitions_of(inherited):  # the table was replaced
            inherited = replace(inherited, snapshots=())
        staying, base = self._continued(inherited)
        if base is None and snapshot.id == 1:  # another table was here
            inherited = replace(inherited, uuid=store.new_name(), last_column_id=0)
        try:
            listed = [*staying, self._record(staying, base, inherited.location)]
            data = dump(inherited, self._schemas(listed), listed, tag_refs(store, listed), store.now())
            store.sync(self._manifests.written)
        except Exception:
            for path in self._manifests.written:
                store.io.delete(path)
            raise
        path = files.path(snapshot.id)
        store.io.write(path, data)
        store.sync([path])
        if self._write_hint():
            dropped = [] if former is None else [record for record in former.snapshots if record not in listed]
            delete_unlisted(self._manifests, dropped, listed)
            self._delete_versions(versions)
        return True

    # ---- the existing metadata

    def _newest_readable(self, versions: Sequence[int]) -> Metadata | None:
        for version in reversed(versions):
            try:
                metadata = self._files.read(version)
            except CorruptedError as error:
                _log.warning("Iceberg metadata is rewritten: %s", hide_secrets(str(error)))
                continue
            if metadata is not None:
                return metadata
        return None

    def _is_current(self, former: Metadata, versions: Sequence[int]) -> bool:
        """Return True if the newest version describes the newest snapshot of this table."""
        newest = former.snapshots[-1] if former.snapshots else {}
        return (
            versions[-1] == self._snapshot.id
            and one_spelling(former.location) == one_spelling(self._store.root)
            and is_of(newest, self._snapshot, self._level)
            and former.document.get("current-snapshot-id") == self._snapshot.id
        )

    def _has_partitions_of(self, former: Metadata) -> bool:
        """Return True if the manifests of the former metadata have the current partition columns."""
        specs = [spec.get("fields") for spec in former.document.get("partition-specs") or ()]
        return not former.snapshots or specs == [partition_fields(self._store.schema)]

    def _continued(self, former: Metadata) -> tuple[list[Record], Record | None]:
        """Return the former snapshots that stay listed, and the base whose manifests are reused. `None`: no base.

        Snapshots before an unchanged snapshot are also unchanged, because a rollback replaces the newest snapshots.
        """
        existing = set(self._store.snapshots.ids())
        for at in range(len(former.snapshots) - 1, -1, -1):
            record = former.snapshots[at]
            number = int(record["snapshot-id"])
            if number <= self._snapshot.id and is_of(record, self._store.snapshots.find(number), self._level):
                before = [earlier for earlier in former.snapshots[: at + 1] if int(earlier["snapshot-id"]) in existing]
                return self._not_due(
                    [earlier for earlier in before if int(earlier["snapshot-id"]) < self._snapshot.id]
                ), record
        return [], None

    def _not_due(self, records: list[Record]) -> list[Record]:
        """Return the snapshots that the table's retention options keep after this commit."""
        if not records:
            return records
        retention = snapshot_retention(self._store.options, self._store.now())
        times = {int(record["snapshot-id"]): int(record["timestamp-ms"]) for record in records}
        first = first_retained(
            retention, min(times), self._snapshot.id, None, lambda ids: (times.get(number) for number in ids)
        )
        return [record for record in records if int(record["snapshot-id"]) >= first]

    # ---- the new snapshot

    def _record(self, staying: Sequence[Record], base: Record | None, location: str) -> Record:
        """Write the manifests of the snapshot and their list, and return the snapshot as Iceberg's JSON."""
        snapshot = self._snapshot
        if base is not None and int(base["snapshot-id"]) == snapshot.id:
            return base  # after a rollback
        check_no_vectors(self._store, snapshot)
        build = ManifestBuild(self._store, snapshot, self._manifests, location)
        content = (None if base is None else build.following(base)) or build.from_live_files()
        path = self._manifests.write_list(content.metas, snapshot.id)
        parent = int(staying[-1]["snapshot-id"]) if staying else None
        record = snapshot_record(snapshot, parent, path, content.operation, content.counts)
        return with_level(record, self._level)

    # ---- the rest of the metadata

    def _schemas(self, records: Sequence[Record]) -> list[TableSchema]:
        """Return the versions of the schema that the snapshots need, the current one last."""
        latest = self._store.schemas.latest()
        assert latest is not None  # the table has a snapshot
        needed = {int(schema_id["schema-id"]) for schema_id in records} | {self._snapshot.schema_id}
        return [self._store.schemas.get(schema_id) for schema_id in sorted(needed - {latest.id})] + [latest]

    def _write_hint(self) -> bool:
        """Name this version, or an existing newer one, in the hint. Return False if this version is not the newest.

        Another commit may write the hint at the same time, so the newest snapshot is read again afterwards.
        """
        version = self._snapshot.id
        for _ in range(_TRIES):
            latest = self._store.snapshots.latest_id()
            if latest is not None and latest != version:
                if not self._store.io.exists(self._files.path(latest)):
                    return False
                version = latest
            elif self._files.hint() == version:
                return version == self._snapshot.id
            self._files.write_hint(version)
        return version == self._snapshot.id

    # ---- old versions

    def _delete_versions(self, versions: Sequence[int]) -> None:
        """Delete the versions of snapshots that a rollback has removed, and the oldest versions by the options."""
        options, number = self._store.options, self._snapshot.id
        latest = self._store.snapshots.latest_id() or number
        first = 0
        if options.value(METADATA_ICEBERG_DELETE_AFTER_COMMIT_ENABLED):
            first = number - options.value(METADATA_ICEBERG_PREVIOUS_VERSIONS_MAX)
        for version in versions:
            if version > latest or version < first:
                self._store.io.delete(self._files.path(version))
