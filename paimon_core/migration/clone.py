"""Copy a table at one snapshot to another directory or store, and update the copy later.

Files are copied byte by byte under the same names, and schemas are copied unchanged. The metadata of the files is
written again as a snapshot of the copy. This snapshot records the source table and snapshot, so a repeated call copies
only missing files and publishes the difference. After a crash the copy is unchanged, apart from files that the next
call uses.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from paimon_core.commit.changes import Changes
from paimon_core.commit.publisher import Publisher
from paimon_core.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptedError,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
    hide_secrets,
)
from paimon_core.fileio.copying import THREADS, copy_file
from paimon_core.fileio.fileio import FileIO
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.operations.history.expire import expire_after_commit
from paimon_core.operations.history.read_guard import protected_read
from paimon_core.options.file import PLACES_OF_NEW_FILES
from paimon_core.options.option import Options
from paimon_core.options.scan import SCAN_FALLBACK_BRANCH
from paimon_core.scan.entries import live_entries
from paimon_core.scan.read_rules import committed_with, why_other_rows
from paimon_core.schema.blob_columns import check_movable
from paimon_core.schema.continuity import is_replaced, replaced_version, replacing, unmarked
from paimon_core.schema.read_rules import changed_rule
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.create import check_unused
from paimon_core.store.environment import NO_CATALOG, CatalogEnvironment
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.external_paths import is_inside
from paimon_core.store.file_store import FileStore

SOURCE = "paimon.clone.source"
"""The property of a snapshot that names the source table."""
SOURCE_SNAPSHOT = "paimon.clone.snapshot"
"""The property of a snapshot that names the source snapshot."""
_FINGERPRINT = "paimon.clone.fingerprint"


@dataclass(frozen=True, slots=True)
class Cloned:
    """The result of a clone: the newest snapshot of the copy (`None` without rows) and the numbers of copied files."""

    snapshot: Snapshot | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Copy:
    """A file to copy; ``size`` `None`: unknown."""

    source: str
    target: str
    size: int | None


def clone(
    source: FileStore,
    snapshot: Snapshot | None,
    target_io: FileIO,
    root: str,
    *,
    newest: bool,
    environment: CatalogEnvironment = NO_CATALOG,
) -> Cloned:
    """Copy a table to ``root``, or bring an older copy at ``root`` up to date.

    The copy has one branch, no tags and no ANALYZE statistics.

    Args:
        source: the table, or a branch of it.
        snapshot: the snapshot to copy; `None` if the table has no snapshot.
        target_io: the file IO of the copy's store.
        root: the directory of the copy.
        newest: True to copy all versions of the schema, False to stop at the snapshot's version. Versions that replaced
            the table after the snapshot are left out.
        environment: the part of the copy's catalog.

    Raises AlreadyExistsError if the table at ``root`` is not a copy of this table or has changed since;
    InvalidInputError if it is a copy of a newer snapshot, or if an option of `schema.read_rules` was changed after the
    snapshot and its rows would be others in the copy; OutOfRangeError if the snapshot expires during the copy;
    UnsupportedError for a table whose reads need another branch.
    """
    if is_inside(root, (source.root,), itself=True):
        raise InvalidInputError(f"{source.root} cannot be cloned to {root}, which is the table itself or inside it")
    if source.options.has(SCAN_FALLBACK_BRANCH):
        branch = source.options.value(SCAN_FALLBACK_BRANCH)
        raise UnsupportedError(
            f"{source.root} reads missing partitions from branch {branch!r} ({SCAN_FALLBACK_BRANCH.key}), but clone "
            "copies one branch: clone each branch, or remove the option"
        )
    check_movable(source.schema, f"a clone of {_name(source)}")
    schemas = _schemas(source, None if newest or snapshot is None else snapshot.schema_id)
    if snapshot is not None:
        schemas = _without_replacement(schemas, snapshot.schema_id)
    if not schemas:
        raise NotFoundError(f"{_name(source)} is not cloned: the table was dropped or renamed at the same time")
    _check_rules(source, snapshot, schemas[-1])
    target = FileStore(target_io, root, schemas[-1], environment=environment)
    stored = Schemas(target_io, root)
    if stored.ids():
        target_io, stored = target.io, target.schemas  # they do not bring a dropped copy back
    else:
        check_unused(target_io, root)
    _check_schemas(source, schemas, stored)
    base = target.snapshots.latest()
    if base is not None:
        _check_copy(source, snapshot, target, base)
    elif snapshot is not None:
        schemas = [_awaiting_rows(schema) for schema in schemas]
    if snapshot is None or (base is not None and _is_copy_of(base, snapshot)):
        _publish_schemas(source, schemas, stored, base, environment)
        return Cloned(base, 0, 0)
    with protected_read(source, snapshot), raise_if_expired(source, snapshot), _missing_is_corrupted():
        entries, indexes = _contents(source, snapshot)
        copies = _missing_files(source, snapshot, target, base, entries)
        for _ in parallel_map(partial(_copy, source.io, target_io), copies, THREADS):
            pass
    _publish_schemas(source, schemas, stored, base, environment)
    published = _publish(source, snapshot, target, base, entries, indexes)
    expire_after_commit(target)
    return Cloned(published, len(copies), sum(copy.size or 0 for copy in copies))


def _schemas(source: FileStore, last: int | None) -> list[TableSchema]:
    """Return the schema versions for the copy: the source's versions up to ``last`` (`None`: all)."""
    versions = [source.schemas.get(number) for number in source.schemas.ids() if last is None or number <= last]
    without = {option.key: None for option in PLACES_OF_NEW_FILES}
    return [replace(schema, options=Options(dict(schema.options)).merged(without)) for schema in versions]


def _without_replacement(schemas: list[TableSchema], version: int) -> list[TableSchema]:
    """Return the versions before a replacement after ``version``, because later ones do not fit its rows."""
    current = next((schema for schema in schemas if schema.id == version), None)
    if current is None:
        return schemas
    last = max(schema.id for schema in schemas if schema.id <= version or not is_replaced(current, schema))
    return [schema for schema in schemas if schema.id <= last]


def _check_rules(source: FileStore, snapshot: Snapshot | None, newest: TableSchema) -> None:
    """Raise InvalidInputError if the copied rows would be others: the copy is committed under its newest schema."""
    if snapshot is None:
        return
    then = committed_with(source, snapshot, newest)
    reason = why_other_rows(source, snapshot, then, newest)
    if reason is not None:
        raise InvalidInputError(
            f"{_name(source)} is not cloned: option {changed_rule(then, newest)!r} was changed after snapshot "
            f"{snapshot.id}, but {reason}. Set the option back and compact the table, or clone the snapshot by its id"
        )


def _check_schemas(source: FileStore, schemas: list[TableSchema], stored: Schemas) -> None:
    """Raise AlreadyExistsError if the copy has a schema version that the source does not have."""
    expected = {schema.id: schema for schema in schemas}
    for number in stored.ids():
        if number not in expected:
            stored_ids = source.schemas.ids()
            if number in stored_ids and _same_schema(stored.get(number), _schemas(source, number)[-1]):
                continue
            raise _diverged(source, stored.table_root, f"it has a schema {number} that the source lacks")
        if not _same_schema(stored.get(number), expected[number]):
            raise _diverged(source, stored.table_root, f"its schema {number} differs")


def _same_schema(a: TableSchema, b: TableSchema) -> bool:
    return unmarked(a).to_json() == unmarked(b).to_json()


def _awaiting_rows(schema: TableSchema) -> TableSchema:
    """Return the schema of a copy that is not a table until it has the rows: see `continuity.replacing`."""
    return replacing(schema, -1) if replaced_version(schema) is None else schema


def _publish_schemas(
    source: FileStore,
    schemas: list[TableSchema],
    stored: Schemas,
    base: Snapshot | None,
    environment: CatalogEnvironment,
) -> None:
    """Create the schema versions that the copy lacks, oldest first. ``base``: the copy's snapshot, or `None`."""
    stored_ids = set(stored.ids())
    if base is not None and not stored_ids:
        raise _diverged(source, stored.table_root, "it was dropped at the same time")
    for schema in schemas:
        if (
            schema.id not in stored_ids
            and not environment.publish_schema(stored, schema)
            and not _same_schema(stored.get(schema.id), schema)
        ):
            raise _diverged(source, stored.table_root, f"its schema {schema.id} differs")


def _check_copy(source: FileStore, snapshot: Snapshot | None, target: FileStore, base: Snapshot) -> None:
    """Raise an error unless the copy's newest snapshot was copied from an older snapshot of the source."""
    properties = base.properties or {}
    if properties.get(SOURCE) != _name(source):
        raise _diverged(source, target.root, f"its snapshot {base.id} ({base.commit_kind}) was not copied from there")
    copied = int(properties[SOURCE_SNAPSHOT])
    if snapshot is None or snapshot.id < copied:
        reason = "has no snapshot any more" if snapshot is None else f"is asked for at snapshot {snapshot.id}"
        raise InvalidInputError(
            f"{hide_secrets(target.root)} is a copy of snapshot {copied} of {_name(source)}, which {reason}: a copy "
            "cannot go back. Clone to another name"
        )


def _is_copy_of(base: Snapshot, snapshot: Snapshot) -> bool:
    properties = base.properties or {}
    return (properties[SOURCE_SNAPSHOT], properties[_FINGERPRINT]) == (str(snapshot.id), snapshot.fingerprint)


def _name(source: FileStore) -> str:
    return hide_secrets(source.branch_root)


def _diverged(source: FileStore, root: str, why: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"{_name(source)} is not cloned: the table at {hide_secrets(root)} is not a copy of it, or has changed since: "
        f"{why}. Choose another name"
    )


def _contents(source: FileStore, snapshot: Snapshot) -> tuple[list[ManifestEntry], list[IndexManifestEntry]]:
    """Return the live files and the index files of a snapshot."""
    name = snapshot.index_manifest
    indexes = [] if name is None else source.manifests.read_index(name)
    return list(live_entries(source, snapshot).live), list(indexes)


def _inside(entry: ManifestEntry) -> ManifestEntry:
    """Return the entry for the copy, where all files are inside the table."""
    return replace(entry, kind=ADD, file=replace(entry.file, external_path=None))


def _missing_files(
    source: FileStore, snapshot: Snapshot, target: FileStore, base: Snapshot | None, entries: list[ManifestEntry]
) -> list[_Copy]:
    """Return the files that the copy lacks. An existing file of equal size counts: names are never reused."""
    live = [] if base is None else live_entries(target, base, with_stats=False).live
    present = {path for paths in target.paths_of_files((e.bucket_ref, e.file) for e in live) for path in paths}
    copies: list[_Copy] = []
    sources = source.paths_of_files((entry.bucket_ref, entry.file) for entry in entries)
    inside = target.paths_of_files((entry.bucket_ref, _inside(entry).file) for entry in entries)
    for entry, paths, targets in zip(entries, sources, inside, strict=True):
        sizes = [entry.file.file_size, *[None] * (len(paths) - 1)]
        copies += [_Copy(*item) for item in zip(paths, targets, sizes, strict=True) if item[1] not in present]
    name = snapshot.index_manifest
    for index in [] if name is None else source.manifests.read_index(name):
        to = target.index_path(replace(index, external_path=None))
        copies.append(_Copy(source.index_path(index), to, index.file_size))
    unique = {copy.target: copy for copy in copies}
    directories = sorted({path.rpartition("/")[0] for path in unique})
    statuses = (status for listing in parallel_map(target.io.list, directories) for status in listing)
    sizes_there = {status.path: status.size for status in statuses}
    return [copy for path, copy in unique.items() if copy.size is None or sizes_there.get(path) != copy.size]


def _copy(source_io: FileIO, target_io: FileIO, copy: _Copy) -> None:
    try:
        copy_file(source_io, copy.source, target_io, copy.target, copy.size)
    except CommitConflictError as error:
        raise CorruptedError(f"{copy.source} is damaged: {error}") from error


@contextmanager
def _missing_is_corrupted() -> Iterator[None]:
    """Raise CorruptedError for a missing file, as reads do."""
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptedError(f"a file of the table is missing: {error}") from error


def _publish(
    source: FileStore,
    snapshot: Snapshot,
    target: FileStore,
    base: Snapshot | None,
    source_entries: list[ManifestEntry],
    indexes: list[IndexManifestEntry],
) -> Snapshot | None:
    """Publish the difference between the source snapshot and the copy as the copy's next snapshot."""
    entries = [_inside(entry) for entry in source_entries]
    identities = {entry.identity for entry in entries}
    kind = CommitKind.APPEND if base is None else CommitKind.OVERWRITE
    properties = {SOURCE: _name(source), SOURCE_SNAPSHOT: str(snapshot.id), _FINGERPRINT: snapshot.fingerprint}
    next_row_id = snapshot.next_row_id or 0

    def decide(now: Snapshot | None) -> Changes | None:
        if now is not None and (now.properties or {}).get(SOURCE) == _name(source) and _is_copy_of(now, snapshot):
            return None  # another call has published the same copy
        if (now and now.id) != (base and base.id):
            raise _diverged(source, target.root, "another commit was made to it at the same time")
        live = [] if now is None else live_entries(target, now).live
        present = {entry.identity for entry in live}
        removed = [ManifestEntry(DELETE, *e.location, e.file) for e in live if e.identity not in identities]
        added = [entry for entry in entries if entry.identity not in present]
        old = [] if now is None or now.index_manifest is None else target.manifests.read_index(now.index_manifest)
        return Changes(
            kind,
            (*removed, *added),
            built_on_base=True,
            new_indexes=tuple(replace(index, external_path=None) for index in indexes),
            cleared_buckets=frozenset(index.bucket_ref for index in old),
            next_row_id=next_row_id,
        )

    publisher = Publisher(target)
    published = publisher.publish(publisher.identity(None, properties, snapshot.watermark), decide, kind)
    return published or target.snapshots.latest()
