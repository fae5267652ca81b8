"""A copy of a table at one snapshot, in another directory or on another store, and its later updates.

Files are copied byte by byte under their names, schemas as they are, and the metadata of the files is written anew as a
snapshot of the copy. The snapshot says of which table and snapshot it is the copy, so a repeated call copies only files
that the copy lacks, and publishes the difference. A crash leaves the copy as it was, and files that the next call uses.
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
from paimon_core.schema.continuity import is_replaced, replaced_version, replacing, unmarked
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.create import check_unused
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.external_paths import is_inside
from paimon_core.store.file_store import FileStore

SOURCE = "paimon.clone.source"
"""The property of a snapshot that names the table of which it is the copy."""
SOURCE_SNAPSHOT = "paimon.clone.snapshot"
"""The property of a snapshot that names the copied snapshot."""
_FINGERPRINT = "paimon.clone.fingerprint"


@dataclass(frozen=True, slots=True)
class Cloned:
    """The result of a clone: the newest snapshot of the copy, `None` for a table without rows, and what was copied."""

    snapshot: Snapshot | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Copy:
    """A file to copy; ``size`` `None`: unknown."""

    source: str
    target: str
    size: int | None


def clone(source: FileStore, snapshot: Snapshot | None, target_io: FileIO, root: str, *, newest: bool) -> Cloned:
    """Make the table at ``root`` a copy of a table, or bring an older copy up to date.

    The copy has one branch, no tags and no statistics of ANALYZE.

    Args:
        source: the table, or a branch of it.
        snapshot: the one to copy; `None`: the table has none.
        target_io: of the store of the copy.
        root: the directory of the copy.
        newest: copy all versions of the schema, not only those up to the one of the snapshot. Versions that replaced
            the table after the snapshot are left out.

    Raises AlreadyExistsError if there is a table at ``root`` that is no copy of this one, or has been changed since;
    InvalidInputError if the copy is of a newer snapshot, OutOfRangeError if the snapshot expires meanwhile,
    UnsupportedError for a table whose reads need another branch.
    """
    if is_inside(root, (source.root,), itself=True):
        raise InvalidInputError(f"{source.root} cannot be cloned to {root}, which is the table itself or inside of it")
    if source.options.has(SCAN_FALLBACK_BRANCH):
        branch = source.options.value(SCAN_FALLBACK_BRANCH)
        raise UnsupportedError(
            f"{source.root} takes missing partitions from branch {branch!r} ({SCAN_FALLBACK_BRANCH.key}), and clone "
            "copies one branch: clone each branch, or remove the option"
        )
    schemas = _schemas(source, None if newest or snapshot is None else snapshot.schema_id)
    if snapshot is not None:
        schemas = _without_replacement(schemas, snapshot.schema_id)
    if not schemas:
        raise NotFoundError(f"{_name(source)} is not cloned: the table was dropped or renamed meanwhile")
    target = FileStore(target_io, root, schemas[-1])
    stored = Schemas(target_io, root)
    if stored.ids():
        target_io, stored = target.io, target.schemas  # which bring no dropped copy back
    else:
        check_unused(target_io, root)
    _check_schemas(source, schemas, stored)
    base = target.snapshots.latest()
    if base is not None:
        _check_copy(source, snapshot, target, base)
    elif snapshot is not None:
        schemas = [_awaiting_rows(schema) for schema in schemas]
    if snapshot is None or (base is not None and _is_copy_of(base, snapshot)):
        _publish_schemas(source, schemas, stored, base)
        return Cloned(base, 0, 0)
    with protected_read(source, snapshot), raise_if_expired(source, snapshot), _missing_is_corrupted():
        wanted, indexes = _contents(source, snapshot)
        copies = _missing_files(source, snapshot, target, base, wanted)
        for _ in parallel_map(partial(_copy, source.io, target_io), copies, THREADS):
            pass
    _publish_schemas(source, schemas, stored, base)
    made = _publish(source, snapshot, target, base, wanted, indexes)
    expire_after_commit(target)
    return Cloned(made, len(copies), sum(copy.size or 0 for copy in copies))


def _schemas(source: FileStore, last: int | None) -> list[TableSchema]:
    """Return the versions of the schema of the copy: those of the source, up to ``last``."""
    found = [source.schemas.get(number) for number in source.schemas.ids() if last is None or number <= last]
    without = {option.key: None for option in PLACES_OF_NEW_FILES}
    return [replace(schema, options=Options(dict(schema.options)).merged(without)) for schema in found]


def _without_replacement(schemas: list[TableSchema], version: int) -> list[TableSchema]:
    """Return the versions without those of a replacement after ``version``: rows of ``version`` do not fit them."""
    own = next((schema for schema in schemas if schema.id == version), None)
    if own is None:
        return schemas
    last = max(schema.id for schema in schemas if schema.id <= version or not is_replaced(own, schema))
    return [schema for schema in schemas if schema.id <= last]


def _check_schemas(source: FileStore, schemas: list[TableSchema], stored: Schemas) -> None:
    """Raise AlreadyExistsError if the copy has a version of the schema that the source does not have."""
    wanted = {schema.id: schema for schema in schemas}
    for number in stored.ids():
        if number not in wanted:
            known = source.schemas.ids()
            if number in known and _same_schema(stored.get(number), _schemas(source, number)[-1]):
                continue
            raise _diverged(source, stored.table_root, f"it has a schema {number} that the source lacks")
        if not _same_schema(stored.get(number), wanted[number]):
            raise _diverged(source, stored.table_root, f"its schema {number} is another one")


def _same_schema(one: TableSchema, other: TableSchema) -> bool:
    return unmarked(one).to_json() == unmarked(other).to_json()


def _awaiting_rows(schema: TableSchema) -> TableSchema:
    """Return the schema of a copy that is no table before it has the rows: see `continuity.replacing`."""
    return replacing(schema, -1) if replaced_version(schema) is None else schema


def _publish_schemas(source: FileStore, schemas: list[TableSchema], stored: Schemas, base: Snapshot | None) -> None:
    """Create the versions of the schema that the copy lacks, the oldest first. ``base``: the snapshot of the copy."""
    known = set(stored.ids())
    if base is not None and not known:
        raise _diverged(source, stored.table_root, "it was dropped meanwhile")
    for schema in schemas:
        if schema.id not in known and not stored.commit(schema) and not _same_schema(stored.get(schema.id), schema):
            raise _diverged(source, stored.table_root, f"its schema {schema.id} is another one")


def _check_copy(source: FileStore, snapshot: Snapshot | None, target: FileStore, base: Snapshot) -> None:
    """Raise an error unless the newest snapshot of the copy was copied from the source, and from an older snapshot."""
    properties = base.properties or {}
    if properties.get(SOURCE) != _name(source):
        raise _diverged(source, target.root, f"its snapshot {base.id} ({base.commit_kind}) was not copied from there")
    copied = int(properties[SOURCE_SNAPSHOT])
    if snapshot is None or snapshot.id < copied:
        asked = "has no snapshot any more" if snapshot is None else f"is asked for at snapshot {snapshot.id}"
        raise InvalidInputError(
            f"{hide_secrets(target.root)} is a copy of snapshot {copied} of {_name(source)}, which {asked}: copies "
            "only go forward. Clone to another name"
        )


def _is_copy_of(base: Snapshot, snapshot: Snapshot) -> bool:
    properties = base.properties or {}
    return (properties[SOURCE_SNAPSHOT], properties[_FINGERPRINT]) == (str(snapshot.id), snapshot.fingerprint)


def _name(source: FileStore) -> str:
    return hide_secrets(source.branch_root)


def _diverged(source: FileStore, root: str, why: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"{_name(source)} is not cloned: the table at {hide_secrets(root)} is no copy of it, or has changed since: "
        f"{why}. Choose another name"
    )


def _contents(source: FileStore, snapshot: Snapshot) -> tuple[list[ManifestEntry], list[IndexManifestEntry]]:
    """Return the live files and the index files of a snapshot."""
    name = snapshot.index_manifest
    indexes = [] if name is None else source.manifests.read_index(name)
    return list(live_entries(source, snapshot).live), list(indexes)


def _inside(entry: ManifestEntry) -> ManifestEntry:
    """Return the entry of the copy, in which no file is outside of the table."""
    return replace(entry, kind=ADD, file=replace(entry.file, external_path=None))


def _missing_files(
    source: FileStore, snapshot: Snapshot, target: FileStore, base: Snapshot | None, wanted: list[ManifestEntry]
) -> list[_Copy]:
    """Return the files that the copy lacks. A file of the right size is there already: names are never used twice."""
    live = [] if base is None else live_entries(target, base, with_stats=False).live
    present = {path for entry in live for path in target.file_paths(entry.bucket_ref, entry.file)}
    found: list[_Copy] = []
    for entry in wanted:
        paths = source.file_paths(entry.bucket_ref, entry.file)
        targets = target.file_paths(entry.bucket_ref, _inside(entry).file)
        sizes = [entry.file.file_size, *[None] * (len(paths) - 1)]
        found += [_Copy(*one) for one in zip(paths, targets, sizes, strict=True) if one[1] not in present]
    name = snapshot.index_manifest
    for index in [] if name is None else source.manifests.read_index(name):
        to = target.index_path(replace(index, external_path=None))
        found.append(_Copy(source.index_path(index), to, index.file_size))
    unique = {copy.target: copy for copy in found}
    directories = sorted({path.rpartition("/")[0] for path in unique})
    listed = (status for entries in parallel_map(target.io.list, directories) for status in entries)
    sizes_there = {status.path: status.size for status in listed}
    return [copy for path, copy in unique.items() if copy.size is None or sizes_there.get(path) != copy.size]


def _copy(source_io: FileIO, target_io: FileIO, copy: _Copy) -> None:
    try:
        copy_file(source_io, copy.source, target_io, copy.target, copy.size)
    except CommitConflictError as error:
        raise CorruptedError(f"{copy.source} is damaged: {error}") from error


@contextmanager
def _missing_is_corrupted() -> Iterator[None]:
    """Say of a missing file what reads say of it."""
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptedError(f"a file of the table is missing: {error}") from error


def _publish(
    source: FileStore,
    snapshot: Snapshot,
    target: FileStore,
    base: Snapshot | None,
    wanted: list[ManifestEntry],
    indexes: list[IndexManifestEntry],
) -> Snapshot | None:
    """Publish the difference between the copy and the snapshot as the next snapshot of the copy."""
    entries = [_inside(entry) for entry in wanted]
    identities = {entry.identity for entry in entries}
    kind = CommitKind.APPEND if base is None else CommitKind.OVERWRITE
    properties = {SOURCE: _name(source), SOURCE_SNAPSHOT: str(snapshot.id), _FINGERPRINT: snapshot.fingerprint}
    next_row_id = snapshot.next_row_id or 0

    def decide(now: Snapshot | None) -> Changes | None:
        if now is not None and (now.properties or {}).get(SOURCE) == _name(source) and _is_copy_of(now, snapshot):
            return None  # another call has made the same copy
        if (now and now.id) != (base and base.id):
            raise _diverged(source, target.root, "others have committed to it meanwhile")
        live = [] if now is None else live_entries(target, now).live
        there = {entry.identity for entry in live}
        removed = [ManifestEntry(DELETE, *e.location, e.file) for e in live if e.identity not in identities]
        added = [entry for entry in entries if entry.identity not in there]
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
    made = publisher.publish(publisher.identity(None, properties, snapshot.watermark), decide, kind)
    return made or target.snapshots.latest()
