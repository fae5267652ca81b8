"""Add files of other tools to a table without rewriting them.

Each file is copied into the directory of its partition under a new name; then one commit adds all files. With ``move``
the originals are deleted after this commit, never before it: after a crash every row is in the original, in the table,
or in both. The new name begins with the identity of the original, so a repeated call does not add a file twice while
the file is in the table. A compaction replaces the file and its name.

Readers find the columns of these files by name, because the files have no field ids (format 7.8). Decision 27 explains
why the files are copied first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from paimon_core.commit.add_existing import add_existing
from paimon_core.commit.best_effort import best_effort
from paimon_core.commit.clean_up import delete_written_files
from paimon_core.commit.publisher import Publisher
from paimon_core.datafile.row_summary import simple_stats
from paimon_core.datafile.spec import DataFileSpec
from paimon_core.datafile.writer import local_millis
from paimon_core.errors import CommitConflictError, InvalidInputError, NotFoundError, UnsupportedError, listed_names
from paimon_core.fileio.copying import THREADS, copy_file
from paimon_core.fileio.parallel import parallel_map
from paimon_core.format.file_description import FileDescription
from paimon_core.format.stats import ColumnBounds, in_mode
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta, FileSource
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.manifest.stats import EMPTY_STATS
from paimon_core.migration.describe_file import describe
from paimon_core.migration.partitions import Spec, check_names, check_partition_columns, serialized_partitions
from paimon_core.migration.source import SourceFile, source_files
from paimon_core.migration.type_check import check_fits
from paimon_core.operations.history.expire import expire_after_commit
from paimon_core.operations.partitions.partitions_done import record_done_after_commit
from paimon_core.options.file import DATA_FILE_PREFIX, ROW_TRACKING_ENABLED
from paimon_core.row.binary_row import EMPTY_ROW
from paimon_core.scan.entries import live_entries
from paimon_core.schema.iceberg import is_enabled
from paimon_core.schema.support import check_writable
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.external_paths import is_inside
from paimon_core.store.file_store import FileStore

_IDENTITY_LENGTH = 36
_NO_SPEC: Spec = {}
_UNNUMBERED = 1
"""The largest sequence number of an added file with one row.

The Java engine uses 0 for every file that it adds. Only files whose rows a writer numbered have one number for each
row, which a file with one row and the range 0 to 0 would imitate."""


@dataclass(frozen=True, slots=True)
class AddedFiles:
    """The result of adding files; ``snapshot`` is `None` if the table already had all files."""

    snapshot: Snapshot | None
    files: int
    rows: int
    bytes: int
    skipped: int
    """Files that were left out because the table already has them or they have no rows."""


def add_files(
    store: FileStore, paths: str | Sequence[str], partition: Mapping[str, object] | None = None, *, move: bool = False
) -> AddedFiles:
    """Add files, and the files of directories, to a table without a primary key in one commit.

    Args:
        store: the table to add to.
        paths: Parquet, ORC or Avro files, or directories with these files and partitions ``column=value``.
        partition: {column: value} for all files; `None`: the paths name the partitions.
        move: True to delete the originals after the commit; on a local disk no bytes are then copied.

    Raises NotFoundError for a missing path; InvalidInputError for a directory without data files and, naming file and
    column, for a file that does not fit; UnsupportedError for a column that some engines would misread and for a table
    to which files cannot be added. After an error nothing has changed.
    """
    check_target(store)
    spec = _NO_SPEC if partition is None else partition
    keys = store.schema.partition_keys
    unknown = [column for column in spec if column not in keys]
    if unknown:
        names = listed_names(unknown[0], keys)
        raise InvalidInputError(f"partition: {unknown[0]!r} is not a partition column of {store.root} ({names})")
    by_identity: dict[str, SourceFile] = {}
    path_list = [paths] if isinstance(paths, str) else list(paths)
    for path in path_list:
        if is_inside(path, (store.root,), itself=True):
            raise InvalidInputError(f"{path} is inside the table {store.root}, which cannot add its own files")
        by_identity.update((file.identity, file) for file in source_files(store.io, path, keys))
    if not by_identity:
        raise InvalidInputError(f"there are no data files in {', '.join(path_list) or 'the paths'}: nothing is added")
    files = list(by_identity.values())
    described = list(parallel_map(lambda file: describe(store.io, file.path, file.size), files))
    return add_described(store, files, described, spec, move=move)


def check_target(store: FileStore) -> None:
    """Raise UnsupportedError for a table to which files cannot be added without rewriting them."""
    check_writable(store.schema)
    schema = store.schema
    reason = None
    if schema.primary_keys:
        reason = "has a primary key: its files need sequence numbers and sorted keys"
    elif schema.bucket != -1:
        reason = f"has {schema.bucket} buckets: all rows of a file would have to belong to one of them"
    elif store.traits.data_evolution or store.options.value(ROW_TRACKING_ENABLED):
        reason = "tracks row ids"
    elif is_enabled(schema.options):
        reason = "writes Iceberg metadata, whose readers find columns by field ids, which files of other tools lack"
    if reason is not None:
        raise UnsupportedError(
            f"the table {store.root} {reason}; files can be added to a table without keys, buckets and row ids. "
            "Read the files and write their rows instead"
        )


def add_described(
    store: FileStore,
    files: Sequence[SourceFile],
    described: Sequence[FileDescription],
    spec: Spec = _NO_SPEC,
    *,
    move: bool = False,
) -> AddedFiles:
    """Add files whose footers have been read; raises the errors of `add_files`. REQUIRES: `check_target` passed."""
    schema = store.schema
    for file in files:
        check_names(file, schema.partition_keys, spec, store.root)
    partitions = serialized_partitions(schema, files, spec)
    for description, partition in zip(described, partitions, strict=True):
        check_fits(description, schema.fields, schema.partition_keys, store.root)
        check_partition_columns(schema, description, partition)
    base = store.snapshots.latest()
    present = live_identities(store, base)
    file_spec = DataFileSpec.of(store)
    messages: dict[SourceFile, CommitMessage] = {}
    for file, description, partition in zip(files, described, partitions, strict=True):
        if description.row_count and file.identity not in present:
            meta = _meta(store, file_spec, file, description)
            messages[file] = CommitMessage(partition, 0, -1, new_files=(meta,))
    snapshot = _publish(store, messages, move=move) if messages else None
    if move:
        with best_effort("deleting the originals of files that were moved into a table"):
            for _ in parallel_map(store.io.delete, [file.path for file in files], THREADS):
                pass
    added = [message.new_files[0] for message in messages.values()]
    if snapshot is None:
        return AddedFiles(None, 0, 0, 0, len(files))
    rows, size = sum(file.row_count for file in added), sum(file.file_size for file in added)
    return AddedFiles(snapshot, len(added), rows, size, len(files) - len(added))


def live_identities(store: FileStore, snapshot: Snapshot | None) -> set[str]:
    """Return the identities of the originals of a snapshot's live files.

    The name of a file that was not added yields a text that equals no identity.
    """
    if snapshot is None:
        return set()
    start = len(store.options.value(DATA_FILE_PREFIX))
    live = live_entries(store, snapshot, with_stats=False).live
    return {entry.file.file_name[start : start + _IDENTITY_LENGTH] for entry in live}


def _meta(store: FileStore, spec: DataFileSpec, file: SourceFile, description: FileDescription) -> DataFileMeta:
    """Return the metadata of an added file under its new name."""
    known_stats = [
        (field, in_mode(bounds, mode), mode)
        for field, mode in zip(spec.value_fields, spec.modes, strict=True)
        if (bounds := _bounds(description, field.name)) is not None
        and field.name not in store.schema.partition_keys
        and mode.kind != "none"
    ]
    fields, columns = tuple(field for field, _, _ in known_stats), [bounds for _, bounds, _ in known_stats]
    stats = simple_stats(columns, fields, (), dense=False)[0] if known_stats else EMPTY_STATS
    name = f"{spec.prefix}{file.identity}-{store.new_name()[:8]}.{description.format}"
    return DataFileMeta(
        file_name=name,
        file_size=file.size,
        row_count=description.row_count,
        min_key=EMPTY_ROW,
        max_key=EMPTY_ROW,
        key_stats=EMPTY_STATS,
        value_stats=stats,
        min_sequence_number=0,
        max_sequence_number=_UNNUMBERED if description.row_count == 1 else 0,
        schema_id=store.schema.id,
        level=0,
        creation_time=local_millis(store.now()),
        delete_row_count=0,
        file_source=FileSource.APPEND,
        value_stats_cols=tuple(field.name for field in fields),
    )


def _bounds(description: FileDescription, column: str) -> ColumnBounds | None:
    """Return the statistics of a column; a column that the file lacks is NULL in all rows."""
    if all(field.name != column for field in description.fields):
        return ColumnBounds(None, None, description.row_count)
    return description.bounds.get(column)


def _publish(store: FileStore, messages: Mapping[SourceFile, CommitMessage], *, move: bool) -> Snapshot | None:
    """Copy the files and commit them; delete the copies if the commit certainly failed."""
    publisher = Publisher(store)
    twice: list[CommitMessage] = []

    def missing(base: Snapshot | None) -> Sequence[ManifestEntry]:
        """Return the entries of files that no concurrent call has added."""
        present = live_identities(store, base)
        twice[:] = [message for file, message in messages.items() if file.identity in present]
        added = [message for file, message in messages.items() if file.identity not in present]
        return [ManifestEntry(ADD, *message.location, file) for message in added for file in message.new_files]

    every = list(messages.values())
    with publisher.deleting_unless_published(every):
        for _ in parallel_map(partial(_copy, store, move), messages.items(), THREADS):
            pass
        snapshot = add_existing(publisher, missing)
    if twice:
        with best_effort("deleting the copies of files that another call has added"):
            delete_written_files(store, twice)
    if snapshot is not None:
        record_done_after_commit(store, {message.bucket_ref for message in every})
        expire_after_commit(store)
    return snapshot


def _copy(store: FileStore, move: bool, item: tuple[SourceFile, CommitMessage]) -> None:
    file, message = item
    target = store.file_path(BucketRef(message.partition, message.bucket), message.new_files[0])
    try:
        copy_file(store.io, file.path, store.io, target, file.size, may_link=move)
    except FileNotFoundError as error:
        raise NotFoundError(f"{file.path} was deleted while it was being added: nothing has changed") from error
    except CommitConflictError as error:
        raise CommitConflictError(f"{error}; nothing has changed") from error
