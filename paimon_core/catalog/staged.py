"""Tables that are filled before they appear: ``CREATE`` and ``REPLACE TABLE ... AS SELECT``.

The rows are written to a branch whose name nobody else knows. Its files lie where those of the table lie, so `publish`
moves none: it publishes the schema, then the files of the branch in one snapshot.
"""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby

from paimon_core.errors import AlreadyExistsError, CommitConflictError, InvalidInputError, PaimonError
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.scan.entries import live_entries
from paimon_core.schema.schema import Schema
from paimon_core.schema.support import check_writable
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import create
from paimon_core.store.file_store import FileStore, now_millis
from paimon_core.table import Table
from paimon_core.types.arrow import assign_ids
from paimon_core.types.datatype import with_nullable


@dataclass(frozen=True)
class StagedTable:
    """A table that appears, or replaces one, with `publish`; until then readers see what was there before.

    ``store`` is the branch to write to; ``replaced``: the newest schema of the table that is replaced, `None` for a new
    table.
    """

    store: FileStore
    replaced: TableSchema | None

    @staticmethod
    def prepare(main: FileStore, schema: Schema, replaced: TableSchema | None) -> "StagedTable":
        """Return a staged table.

        Args:
            main: the table's place, in any schema.
            schema: the columns, keys and options to be.
            replaced: the schema that it replaces; `None`: there is no table.

        Raises InvalidInputError for a schema that breaks a rule, and for other partition columns than before: the
        older snapshots of a table stay readable. UnsupportedError for a schema that this engine cannot write.
        """
        made = create(schema, now_millis())
        check_writable(made)
        if replaced is not None:
            made = _next_version(made, replaced, main.root)
        store = replace(main.with_schema(made), branch=f"staged-{uuid.uuid4().hex}")
        store.schemas.commit(made)
        return StagedTable(store, replaced)

    @property
    def table(self) -> Table:
        """The branch as a table."""
        return Table(self.store)

    def publish(self) -> Table:
        """Make the rows and the schema those of the table, in one snapshot, and return the table.

        Raises AlreadyExistsError or CommitConflictError if another process has created or changed the table.
        """
        main = self._main()
        if not main.schemas.commit(self.store.schema):
            name = f"the table at {main.root}"
            if self.replaced is None:
                raise AlreadyExistsError(f"{name} was created meanwhile: this one is not made")
            raise CommitConflictError(f"{name} was altered meanwhile: it is not replaced, try again")
        try:
            self._publish_rows(main)
        except PaimonError:
            self._publish_old_schema(main)
            raise
        self._delete_branch()
        return Table(main)

    def discard(self) -> None:
        """Delete what was written; the table that was to be replaced is as before."""
        snapshot = self.store.snapshots.latest()
        if snapshot is not None:
            for entry in live_entries(self.store, snapshot, with_stats=False).live:
                for path in self.store.deletable_paths(entry.bucket_ref, entry.file):
                    with suppress(OSError):
                        self.store.io.delete(path)
        self._delete_branch()
        main = self._main()
        if self.replaced is None and not main.schemas.ids():
            with suppress(OSError):
                main.io.delete_directory(main.root)

    def _main(self) -> FileStore:
        return replace(self.store, branch="main")

    def _delete_branch(self) -> None:
        with suppress(OSError):
            self.store.io.delete_directory(self.store.branch_root)

    def _publish_rows(self, main: FileStore) -> None:
        snapshot = self.store.snapshots.latest()
        if snapshot is None and main.snapshots.latest_id() is None:
            return
        messages: list[CommitMessage] = []
        if snapshot is not None:
            name = snapshot.index_manifest
            indexes = [] if name is None else self.store.manifests.read_index(name)
            messages = _messages(live_entries(self.store, snapshot).live, indexes)
        committer = Table(main).committer()
        if self.replaced is None:
            committer.commit(messages)
        else:
            committer.overwrite(messages)

    def _publish_old_schema(self, main: FileStore) -> None:
        """Publish the replaced schema once more: its columns keep their ids, so rows stay as they were."""
        if self.replaced is not None:
            main.schemas.commit(replace(self.replaced, id=self.store.schema.id + 1))


def _next_version(made: TableSchema, replaced: TableSchema, root: str) -> TableSchema:
    """Return the schema as the version after the replaced one, with columns of new ids."""
    old, new = ([(f.name, with_nullable(f.type, True)) for f in schema.partition_fields] for schema in (replaced, made))
    if old != new:
        raise InvalidInputError(
            f"the table at {root} is partitioned by {_shown(old)} and cannot be replaced by one partitioned by "
            f"{_shown(new)}, because its older snapshots stay readable: drop the table and create it"
        )
    fields, highest = assign_ids(made.fields, replaced.highest_field_id + 1)
    return replace(made, id=replaced.id + 1, fields=fields, highest_field_id=highest)


def _shown(columns: Sequence[tuple[str, object]]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns) or "no column"


def _messages(entries: Sequence[ManifestEntry], indexes: Sequence[IndexManifestEntry]) -> list[CommitMessage]:
    """Return messages that add live files and their index files. Row ids are given anew."""
    found = []
    ordered = sorted(entries, key=lambda entry: entry.location)
    for location, group in groupby(ordered, key=lambda entry: entry.location):
        files = tuple(replace(entry.file, first_row_id=None) for entry in group)
        own = tuple(index for index in indexes if index.bucket_ref == location.ref)
        found.append(
            CommitMessage(location.partition, location.bucket, location.total_buckets, new_files=files, new_indexes=own)
        )
    return found
