"""Tables that are filled before they become visible: ``CREATE`` and ``REPLACE TABLE ... AS SELECT``.

The rows are written to a branch with a unique name. Its files are in the directories of the table, so `publish` moves
no file: it publishes the schema, then the files of the branch in one snapshot. The mark `continuity.replacing` of the
schema keeps readers at the old schema until this snapshot exists.
"""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby

from paimon_core.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    InvalidInputError,
    NotFoundError,
    PaimonError,
    TableChangedError,
)
from paimon_core.fileio.fileio import FileIO
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.scan.entries import live_entries
from paimon_core.schema.continuity import replacing
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.support import check_writable
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import create
from paimon_core.store.create import check_unused
from paimon_core.store.current_schema import current_schema, publish_current_schema
from paimon_core.store.drop import STAGED, drop_directory
from paimon_core.store.file_store import FileStore, now_millis
from paimon_core.table import Table
from paimon_core.types.arrow import assign_ids
from paimon_core.types.datatype import with_nullable


@dataclass(frozen=True)
class StagedTable:
    """A table that appears, or replaces another, with `publish`. Until then readers see the previous state.

    Args:
        store: the branch to write to.
        replaced: the schema of the table to replace; `None`: the table is new.
        newest: the newest stored schema of that table, which differs from ``replaced`` after an interrupted
            replacement; `None`: the table is new.
    """

    store: FileStore
    replaced: TableSchema | None
    newest: TableSchema | None = None

    @staticmethod
    def prepare(io: FileIO, main: FileStore, schema: Schema) -> "StagedTable":
        """Return a staged table.

        Args:
            io: the store, which may create the directory of a new table.
            main: the table to create or replace, with any schema.
            schema: the new columns, keys and options.

        Raises InvalidInputError for a schema that breaks a rule, and for other partition columns than before, because
        older snapshots stay readable. Raises UnsupportedError for a schema that this engine cannot write.
        """
        table_schema = create(schema, now_millis())
        check_writable(table_schema)
        newest, replaced = main.schemas.latest(), None
        if newest is None:
            check_unused(io, main.root)
        else:
            replaced = current_schema(main.schemas)
            table_schema = _next_version(table_schema, newest, main.root)
        store = replace(main.with_schema(table_schema), branch=f"{STAGED}{uuid.uuid4().hex}")
        Schemas(io, store.branch_root).commit(table_schema)
        return StagedTable(store, replaced, newest)

    @property
    def table(self) -> Table:
        """The branch as a table."""
        return Table(self.store)

    def publish(self, operation: str | None = None) -> Table:
        """Give the table the new rows and schema in one snapshot, and return the table.

        ``operation``: the operation to store in the snapshot; `None`: the usual one of the commit.

        After a crash before this snapshot, the table has its previous state: see `current_schema`. Raises
        AlreadyExistsError or CommitConflictError if another process has created or changed the table.
        """
        main, schema = self._main(), self.store.schema
        if self.newest is None:
            check_unused(main.io, main.root)
        messages = self._messages()
        self._check_table()
        has_rows = bool(messages) or main.snapshots.latest_id() is not None
        published = replacing(schema, schema.id - 1) if has_rows else schema
        if not main.publish_schema(published):
            name = f"the table at {main.root}"
            if schema.id == 0:
                raise AlreadyExistsError(f"{name} was created by another process: this table was not created")
            raise CommitConflictError(f"{name} was altered by another process: it was not replaced, try again")
        try:
            self._check_table()
        except TableChangedError:
            main.io.delete(main.schemas.path(schema.id))  # it is in another table with this name
            raise
        if has_rows:
            try:
                self._publish_rows(main, messages, operation)
            except CommitUnknownError:
                self._delete_branch()  # `discard` then finds no files: a snapshot may name them
                raise
            except (OSError, PaimonError):
                publish_current_schema(main.schemas, main.environment)
                raise
        self._delete_branch()
        return Table(main)

    def discard(self) -> None:
        """Delete the written files. The table to replace does not change."""
        io, written = self._main().io, set[str]()
        with suppress(OSError, PaimonError):
            written = self._written()
        self._delete_branch()
        with suppress(OSError):
            for path in () if io.exists(self.store.branch_root) else written:  # else the branch still names them
                io.delete(path)
        if self.replaced is None:
            with suppress(OSError):
                _delete_empty(io, self.store.root)

    def _check_table(self) -> None:
        """Raise TableChangedError if the new rows, or the table to replace, no longer exist."""
        main, there = self._main(), bool(self.store.schemas.ids())
        if self.newest is not None:
            try:
                there = there and main.schemas.read(self.newest.id) == self.newest
            except NotFoundError:
                there = False
        if not there:
            raise TableChangedError(
                f"the table at {main.root} was dropped, renamed or created again while its rows were written: it was "
                "not changed, run the statement again"
            )

    def _main(self) -> FileStore:
        return replace(self.store, branch="main")

    def _delete_branch(self) -> None:
        with suppress(OSError):
            drop_directory(self._main().io, self.store.branch_root)

    def _messages(self) -> list[CommitMessage]:
        """Return messages that add the rows of the branch."""
        snapshot = self.store.snapshots.latest()
        if snapshot is None:
            return []
        name = snapshot.index_manifest
        indexes = [] if name is None else self.store.manifests.read_index(name)
        return _messages(live_entries(self.store, snapshot).live, indexes)

    def _publish_rows(self, main: FileStore, messages: list[CommitMessage], operation: str | None) -> None:
        committer = Table(main).committer()
        committer.publisher.operation = operation
        if main.snapshots.latest_id() is None:
            committer.commit(messages)
        else:
            committer.overwrite(messages)

    def _written(self) -> set[str]:
        """Return the paths of the files that the snapshots of the branch name."""
        store, manifests = self.store, self.store.manifests
        paths: set[str] = set()
        for snapshot in store.snapshots.all():
            for entry in live_entries(store, snapshot, with_stats=False).live:
                paths.update(store.deletable_paths(entry.bucket_ref, entry.file))
            for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
                paths.add(manifests.path(name))
                paths.update(manifests.path(meta.file_name) for meta in manifests.read_list(name))
            if snapshot.index_manifest is not None:
                paths.add(manifests.path(snapshot.index_manifest))
                paths.update(map(store.index_path, manifests.read_index(snapshot.index_manifest)))
        return paths


def _delete_empty(io: FileIO, directory: str) -> None:
    """Delete the empty directories in a directory, and the directory if nothing else is in it."""
    for entry in io.list(directory):
        if entry.is_directory:
            _delete_empty(io, entry.path)
    io.delete_empty_directory(directory)


def _next_version(schema: TableSchema, replaced: TableSchema, root: str) -> TableSchema:
    """Return the schema as the version after the replaced one, with new column ids."""
    old, new = (
        [(f.name, with_nullable(f.type, True)) for f in schema.partition_fields] for schema in (replaced, schema)
    )
    if old != new:
        raise InvalidInputError(
            f"the table at {root} is partitioned by {_shown(old)} and cannot be replaced by one partitioned by "
            f"{_shown(new)}, because its older snapshots stay readable: drop the table and create it again"
        )
    fields, highest = assign_ids(schema.fields, replaced.highest_field_id + 1)
    return replace(schema, id=replaced.id + 1, fields=fields, highest_field_id=highest)


def _shown(columns: Sequence[tuple[str, object]]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns) or "no column"


def _messages(entries: Sequence[ManifestEntry], indexes: Sequence[IndexManifestEntry]) -> list[CommitMessage]:
    """Return messages that add live files and their index files. The rows get new row ids."""
    messages = []
    ordered = sorted(entries, key=lambda entry: entry.location)
    for location, group in groupby(ordered, key=lambda entry: entry.location):
        files = tuple(replace(entry.file, first_row_id=None) for entry in group)
        new_indexes = tuple(index for index in indexes if index.bucket_ref == location.ref)
        messages.append(
            CommitMessage(
                location.partition, location.bucket, location.total_buckets, new_files=files, new_indexes=new_indexes
            )
        )
    return messages
