"""The snapshots in Iceberg metadata. Expired snapshots are removed, with the files that only they need."""

import logging
from collections.abc import Sequence
from typing import Any

from paimon_core.errors import CorruptedError, hide_secrets
from paimon_core.fileio.fileio import FileStatus
from paimon_core.fileio.paths import local_path, scheme_of
from paimon_core.fileio.stores import canonical_scheme
from paimon_core.iceberg.manifest_files import ManifestFiles, Record
from paimon_core.iceberg.metadata import MetadataFiles
from paimon_core.schema.iceberg import is_enabled
from paimon_core.store.file_store import FileStore
from paimon_core.store.iceberg_location import iceberg_directory
from paimon_core.store.layout import MAIN_BRANCH

_log = logging.getLogger(__name__)


def writes_iceberg(store: FileStore) -> bool:
    """Return True if commits to this branch write Iceberg metadata: only commits to ``main`` do."""
    return store.branch == MAIN_BRANCH and is_enabled(store.options)


def one_spelling(path: str) -> str:
    """Return the canonical spelling of a directory: ``s3a://`` is ``s3://``, ``file:///a`` is ``/a``."""
    if scheme_of(path) == "file":
        return local_path(path).rstrip("/")
    rest = path.partition(":")[2].rstrip("/")
    return f"{canonical_scheme(path)}:{rest}"


def tag_refs(store: FileStore, records: Sequence[Record]) -> dict[str, Any]:
    """Return the tags of the listed snapshots as Iceberg's references."""
    ids = {int(record["snapshot-id"]) for record in records}
    tags = [tag for tag in store.tags.list() if tag.snapshot.id in ids and tag.name != MAIN_BRANCH]
    return {tag.name: {"snapshot-id": tag.snapshot.id, "type": "tag"} for tag in tags}


def delete_unlisted(manifests: ManifestFiles, dropped: Sequence[Record], listed: Sequence[Record]) -> None:
    """Delete the manifest lists of snapshots that are no longer listed, and the manifests that only they need.

    A manifest belongs to an interval of snapshots. So if a listed snapshot needs a manifest of a removed snapshot, one
    of the adjacent listed snapshots needs it too.
    """
    manifests_of: dict[str, set[str]] = {}
    named = {one["manifest-list"] for one in listed}

    def needed(record: Record) -> set[str]:
        path = record["manifest-list"]
        if path not in manifests_of:
            manifests_of[path] = {manifests.local(meta["manifest_path"]) for meta in manifests.read_list(path)}
        return manifests_of[path]

    for record in dropped:
        if record.get("manifest-list") in named or "manifest-list" not in record:
            continue
        number = int(record["snapshot-id"])
        before = [one for one in listed if int(one["snapshot-id"]) < number][-1:]
        after = [one for one in listed if int(one["snapshot-id"]) >= number][:1]
        try:
            metas = manifests.read_list(record["manifest-list"])
            still = {path for one in (*before, *after) for path in needed(one)}
        except CorruptedError:  # another call has deleted it
            continue
        for meta in metas:
            path = manifests.local(meta["manifest_path"])
            if path not in still:
                manifests.io.delete(path)
        manifests.io.delete(manifests.local(record["manifest-list"]))


def forget_expired(store: FileStore) -> None:
    """Remove expired snapshots and deleted tags from the Iceberg metadata, if there are any.

    REQUIRES: the files of the snapshots still exist, or no reader may need them. Never fails: an error is logged.
    """
    try:
        if writes_iceberg(store):
            _forget_expired(store)
    except Exception as error:
        _log.warning(
            "expired snapshots of %s are still in its Iceberg metadata, until the next commit: %s: %s",
            hide_secrets(store.root),
            type(error).__name__,
            hide_secrets(str(error)),
        )


def _forget_expired(store: FileStore) -> None:
    directory = iceberg_directory(store.root, store.options)
    files = MetadataFiles(store.io, directory)
    latest = store.snapshots.latest_id()
    metadata = None if latest is None else files.read(latest)
    if latest is None or metadata is None or one_spelling(metadata.location) != one_spelling(store.root):
        return
    existing = set(store.snapshots.ids())
    listed = [record for record in metadata.snapshots if int(record["snapshot-id"]) in existing]
    refs = tag_refs(store, listed)
    if not listed or (len(listed) == len(metadata.snapshots) and refs == metadata.refs):
        return
    store.io.write(files.path(latest), metadata.with_snapshots(listed, refs))
    manifests = ManifestFiles(store.io, directory, store.schema, store.new_name)
    delete_unlisted(manifests, [record for record in metadata.snapshots if record not in listed], listed)


def leftover_files(store: FileStore, older_than: int) -> list[FileStatus]:
    """Return the old files in the Iceberg directory that no version names: interrupted commits leave them.

    Args:
        store: the table to check.
        older_than: a time in epoch milliseconds; newer files are not returned.

    Cost: the metadata of all versions and the manifest lists of all listed snapshots are read. Raises CorruptedError if
    a version cannot be read: it may name any file.
    """
    if not writes_iceberg(store):
        return []
    directory = iceberg_directory(store.root, store.options)
    old = [file for file in store.io.list(directory) if file.name.endswith(".avro") and file.modified_ms < older_than]
    files, manifests = MetadataFiles(store.io, directory), ManifestFiles(store.io, directory, store.schema, str)
    named: set[str] = set()
    for version in files.versions() if old else ():
        metadata = files.read(version)
        for record in () if metadata is None else metadata.snapshots:
            path = manifests.local(str(record.get("manifest-list")))
            if path in named:
                continue
            named.add(path)
            if store.io.exists(path):  # older versions list snapshots that have expired since
                named |= {manifests.local(meta["manifest_path"]) for meta in manifests.read_list(path)}
    return [file for file in old if manifests.local(file.name) not in named and not file.is_directory]
