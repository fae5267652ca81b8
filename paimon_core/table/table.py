"""Table: reads and changes of one table. Each method is one read or one change, and calls a lower package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon_core.errors import AlreadyExistsError, InvalidInputError, UnsupportedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.lazy import deferred
from paimon_core.operations.jobs.runner import LOCAL, Progress, Runner
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Changes
from paimon_core.snapshot.snapshot import Operation, Snapshot
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.store.current_schema import check_opened
from paimon_core.store.file_store import FileStore
from paimon_core.store.location import READ_OPTIMIZED, SEPARATOR, TableLocation
from paimon_core.store.storage_options import check_storage_options
from paimon_core.table.changeable_table import ChangeableTable
from paimon_core.table.system_table import SystemTable, read_only, system_table_of
from paimon_core.write.input_data import Data, Rows, arrow_data

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from paimon_core.commit.overwrite_partitions import drop_partitions, replace_files
    from paimon_core.commit.publisher import Publisher
    from paimon_core.commit.table_commit import TableCommit
    from paimon_core.inspect.system_tables.table_registry import system_table_kind
    from paimon_core.inspect.verify.repair import RepairReport, repair
    from paimon_core.migration.add_files import AddedFiles, add_files
    from paimon_core.operations.alter import alter
    from paimon_core.operations.compaction.request import CompactionArguments
    from paimon_core.operations.compaction.restore import restore
    from paimon_core.operations.history.rollback import rollback, target_of
    from paimon_core.operations.history.table_branches import TableBranches
    from paimon_core.operations.history.table_consumers import TableConsumers
    from paimon_core.operations.history.table_tags import TableTags
    from paimon_core.operations.table_maintenance import TableMaintenance
    from paimon_core.store.create import create_table
    from paimon_core.table.writing import expired_after, overwrite_rows, write_rows
    from paimon_core.write.merge_schema import with_columns_of
    from paimon_core.write.table_write import TableWrite, WriterRole
else:
    drop_partitions = deferred("paimon_core.commit.overwrite_partitions", "drop_partitions")
    replace_files = deferred("paimon_core.commit.overwrite_partitions", "replace_files")
    Publisher = deferred("paimon_core.commit.publisher", "Publisher")
    TableCommit = deferred("paimon_core.commit.table_commit", "TableCommit")
    system_table_kind = deferred("paimon_core.inspect.system_tables.table_registry", "system_table_kind")
    repair = deferred("paimon_core.inspect.verify.repair", "repair")
    add_files = deferred("paimon_core.migration.add_files", "add_files")
    alter = deferred("paimon_core.operations.alter", "alter")
    restore = deferred("paimon_core.operations.compaction.restore", "restore")
    rollback = deferred("paimon_core.operations.history.rollback", "rollback")
    target_of = deferred("paimon_core.operations.history.rollback", "target_of")
    TableBranches = deferred("paimon_core.operations.history.table_branches", "TableBranches")
    TableConsumers = deferred("paimon_core.operations.history.table_consumers", "TableConsumers")
    TableTags = deferred("paimon_core.operations.history.table_tags", "TableTags")
    TableMaintenance = deferred("paimon_core.operations.table_maintenance", "TableMaintenance")
    create_table = deferred("paimon_core.store.create", "create_table")
    expired_after = deferred("paimon_core.table.writing", "expired_after")
    overwrite_rows = deferred("paimon_core.table.writing", "overwrite_rows")
    write_rows = deferred("paimon_core.table.writing", "write_rows")
    with_columns_of = deferred("paimon_core.write.merge_schema", "with_columns_of")
    TableWrite = deferred("paimon_core.write.table_write", "TableWrite")


class Table(ChangeableTable):
    """A table in a directory. Cheap to open; caches the keys that `get` decodes; reads use the newest snapshot.

    The groups `maintenance`, `tags`, `branches` and `consumers` hold further methods.

    Examples:
        >>> import pyarrow as pa
        >>> from paimon_core import Table
        >>> table = Table.open("/tmp/warehouse/shop.db/items")
        >>> snapshot = table.write(pa.table({"id": [3], "name": ["cup"]}))
        >>> table.to_arrow(columns=["name"], filter="id > 1").column("name").to_pylist()
        ['blue ink', 'cup']
        >>> table.to_arrow(snapshot_id=1).num_rows
        2
    """

    def __reduce__(self) -> tuple[Callable[..., Table], tuple[FileStore, bool]]:
        """Pickle without the caches."""
        return _unpickled, (self._store, self._read_optimized)

    # ---- opening and creating

    @staticmethod
    def open(
        path: str,
        storage_options: Mapping[str, object] | None = None,
        options: Mapping[str, str] | None = None,
        branch: str | None = None,
    ) -> Table:
        """Open the table in the directory ``path``.

        ``path$branch_b`` is its branch ``b``, ``path$ro`` its :meth:`read_optimized` view. `SystemTable.open` opens
        ``path$files`` and the other system tables; :meth:`system_table` returns them from an open table.

        Args:
            path: a local path or a URL such as "s3://bucket/t".
            storage_options: options of fsspec, or Paimon's options such as "s3.endpoint"; `None`: options from the
                environment.
            options: dynamic options, for this object only.
            branch: the branch; `None`: the branch that the path names, else the main branch.

        Raises NotFoundError if ``path`` holds no table, InvalidInputError for an unknown or immutable option,
        UnsupportedError for the path of a system table.
        """
        location = TableLocation.parse(path)
        view = location.system_table
        if view not in (None, READ_OPTIMIZED):
            system_table_kind(view, path)  # raises for an unknown one
            raise read_only(path)
        store = FileStore.open(location.path, storage_options or {}, options or {}, location.chosen_branch(branch))
        return Table(store, read_optimized=view == READ_OPTIMIZED)

    @staticmethod
    def create(
        path: str,
        schema: Schema,
        storage_options: Mapping[str, object] | None = None,
        *,
        ignore_if_exists: bool = False,
    ) -> Table:
        """Create a table at ``path`` and open it.

        Args:
            path: the directory of the table.
            schema: columns, keys, partitions and options.
            storage_options: as for `open`.
            ignore_if_exists: True to open an existing table, regardless of its schema.

        Raises AlreadyExistsError for an existing table, InvalidInputError for a path of a branch or a view and for a
        schema that contradicts itself, UnsupportedError for a feature that the engine lacks.
        """
        Schema.require(schema)
        location = TableLocation.parse(path)
        if location.system_table is not None:
            view = SEPARATOR + location.system_table
            raise InvalidInputError(f"{path!r} names a view of a table, and cannot be created: leave {view!r} out")
        if location.branch is not None:
            raise InvalidInputError(
                f"{path!r} names branch {location.branch!r} of a table: make the table, then the branch"
            )
        check_storage_options(storage_options or {})
        try:
            create_table(FileIO.of(path, storage_options or {}), path, schema)
        except AlreadyExistsError:
            if not ignore_if_exists:
                raise
        return Table.open(path, storage_options)

    def read_optimized(self) -> Table:
        """Return the view ``$ro``, which is fast to read, possibly late, and cannot be written.

        With a primary key, the view has the rows that the last full compaction left, without merging. Without a
        primary key, the view has all rows.
        """
        return Table(self._store, read_optimized=True)

    def system_table(self, name: str) -> SystemTable:
        """Return a system table, such as "files" or "snapshots": docs/reference/system-tables.md lists them.

        Raises InvalidInputError, naming the nearest system table, for an unknown name.
        """
        return system_table_of(self._store, name.lower())

    # ---- writing

    def write(self, data: Rows, row_kinds: Sequence[str] | pa.Array | None = None) -> Snapshot | None:
        """Add rows (with a primary key: upsert rows) in one commit. Returns `None` if ``data`` has no row.

        Columns match by name; a missing column is filled with its default or NULL. Either all rows become visible or
        none. After an error no file is left, except after CommitUnknownError. With the dynamic option
        ``write.merge-schema`` the missing columns are first added to the table; they stay if the write then fails.

        Args:
            data: a pyarrow Table, RecordBatch or RecordBatchReader, a DataFrame of pandas or Polars, a relation of
                DuckDB, or another object with ``__arrow_c_stream__``. A stream is read once, in bounded memory.
            row_kinds: "+I" "-U" "+U" "-D", one for each row; not for streams. `None`: all inserts.

        Raises InvalidInputError naming column and row for data that the table cannot hold, CommitConflictError if
        others wrote the same new keys first: data in memory is tried five times, a stream once.
        """
        data = arrow_data(data)
        return write_rows(self._store_for(data), data, row_kinds)

    def overwrite(self, data: Rows, partition: Mapping[str, object] | str | None = None) -> Snapshot | None:
        """Replace rows in one commit: the whole table, one partition, or the partitions found in the data.

        Option ``write.merge-schema``: as in :meth:`write`.

        Args:
            data: as for :meth:`write`.
            partition: `None`: the whole table, or "dynamic" with the option ``dynamic-partition-overwrite`` = true;
                {column: value}: one partition, and other rows are refused; "dynamic": the partitions in the data.

        Returns the snapshot; `None`: there was nothing to replace. Raises InvalidInputError for data that the table or
        the partition cannot hold; the table is unchanged then.
        """
        data = arrow_data(data)
        return overwrite_rows(self._store_for(data), data, partition)

    def add_files(
        self, paths: str | Sequence[str], partition: Mapping[str, object] | None = None, *, move: bool = False
    ) -> AddedFiles:
        """Add Parquet, ORC or Avro files of other tools, or all files of directories, in one commit.

        Only for tables without a primary key, buckets and row ids. Each file is copied. A file that is already in the
        table is skipped, unless a compaction has replaced it.

        Args:
            paths: the paths of files and directories; directories ``column=value`` define the partition.
            partition: {column: value} for all files; `None`: the partition in the paths.
            move: True to delete the originals after the commit.

        Raises InvalidInputError naming file and column if a file does not fit, UnsupportedError for a column that not
        every engine would read correctly; nothing is changed then. See `paimon_core.migration.add_files`.
        """
        return add_files(self._writable(), paths, partition, move=move)

    def truncate(self) -> Snapshot | None:
        """Remove every row in one commit, and return its snapshot; older snapshots stay readable."""
        publisher = Publisher(self._writable(), operation=Operation.TRUNCATE)
        return expired_after(self._store, replace_files(publisher, ()).snapshot)

    def drop_partitions(self, partitions: Sequence[Mapping[str, object]]) -> Snapshot | None:
        """Remove whole partitions in one commit, each {column: value}; an omitted column stands for all its values.

        Returns the snapshot; `None`: none of the partitions has rows.
        """
        publisher = Publisher(self._writable(), operation=Operation.TRUNCATE)
        return expired_after(self._store, drop_partitions(publisher, partitions))

    def writer(
        self,
        commit_user: str | None = None,
        *,
        overwrite: bool = False,
        role: WriterRole | None = None,
        started_from: StartedFrom | None = None,
    ) -> TableWrite:
        """Return a writer for engines: ``write`` batches, then ``prepare_commit`` gives messages for a committer.

        See `paimon_core.operations.distributed_write` for all steps of a distributed write.

        Args:
            commit_user: the user of the committer; `None`: a new user.
            overwrite: True if the rows replace the rows of the table.
            role: the role of this writer in a distributed job, which differs for each writer; `None`: the only writer.
            started_from: the snapshot with the locations of keys. On a table with dynamic buckets, all writers and the
                commit use the same snapshot. `None`: the newest.

        Raises UnsupportedError for a view, and with the option ``write.merge-schema``.
        """
        store = self._writable()
        if store.merge_rules is not None:
            raise UnsupportedError(
                "'write.merge-schema' is not possible in a writer of batches: use Table.write, or alter the table first"
            )
        return TableWrite(store, overwrite=overwrite, role=role, started_from=started_from, commit_user=commit_user)

    def committer(self, commit_user: str | None = None) -> TableCommit:
        """Return a committer of the messages of writers, as ``commit_user`` or as a new user."""
        return TableCommit(self._writable(), commit_user)

    # ---- the timeline

    @property
    def tags(self) -> TableTags:
        """Methods for tags; UnsupportedError for a read-optimized view."""
        return TableTags(self._writable())

    @property
    def branches(self) -> TableBranches:
        """Methods for branches; UnsupportedError for a read-optimized view."""
        return TableBranches(self._writable())

    @property
    def consumers(self) -> TableConsumers:
        """Methods for the positions of named streams; UnsupportedError for a read-optimized view."""
        return TableConsumers(self._writable())

    def rollback_to(
        self,
        snapshot_id_or_tag: int | str | None = None,
        *,
        timestamp: datetime | str | int | None = None,
        watermark: int | None = None,
    ) -> Snapshot:
        """Make an older snapshot or a tag the newest one, and return it: `paimon_core.operations.history.rollback`.

        Newer snapshots and their tags are lost; the schema stays.

        Args:
            snapshot_id_or_tag: a text of digits is a snapshot id unless a tag has this name.
            timestamp: instead, the newest snapshot at or before this time.
            watermark: instead, the newest snapshot whose watermark is not above this number.
        """
        store = self._writable()
        return rollback(store, target_of(store, snapshot_id_or_tag, timestamp, watermark))[1]

    def restore(
        self,
        snapshot_id_or_tag: int | str | None = None,
        *,
        timestamp: datetime | str | int | None = None,
        watermark: int | None = None,
    ) -> Snapshot:
        """Restore the rows of an older snapshot in a new snapshot, and return the newest snapshot.

        The arguments are the same as for `rollback_to`, but no snapshot and no tag is lost. See
        `paimon_core.operations.compaction.restore.restore`.
        """
        store = self._writable()
        before, now = restore(store, target_of(store, snapshot_id_or_tag, timestamp, watermark))
        return now if now is before else (expired_after(store, now) or now)

    # ---- maintenance

    @property
    def maintenance(self) -> TableMaintenance:
        """Methods for files and snapshots that change no row; UnsupportedError for a read-optimized view."""
        return TableMaintenance(self._writable())

    def compact(
        self, *, progress: Progress | None = None, runner: Runner = LOCAL, **arguments: Unpack[CompactionArguments]
    ) -> Snapshot | None:
        """Rewrite files in one commit that changes no row; return `None` if no file needs it.

        ``runner`` runs the tasks. The other arguments are the same as for `TableMaintenance.compact`.
        """
        snapshot = TableMaintenance(self._writable(), runner).compact(progress=progress, **arguments)
        if snapshot is None:
            check_opened(self._store.schemas, self._store.schema, None)
        return snapshot

    def repair(
        self,
        *,
        deep: bool = False,
        missing_files: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> RepairReport:
        """Verify the table, and repair in all branches the faults that need no guess; no row is lost: `repair`.

        `deep` also reads the rows, and repairs the faults found in them. `missing_files` removes data files that do not
        exist from the newest snapshot. `dry_run` changes nothing. `progress` is called as by `verify`.
        """
        return repair(self._writable(), deep=deep, missing_files=missing_files, dry_run=dry_run, progress=progress)

    # ---- changing

    def alter(self, changes: Changes) -> Table:
        """Apply schema changes, all or none, and return the table with its new schema.

        `changes` may be a function of the newest schema: it is called again if another process changes the schema.
        """
        return Table(alter(self._writable(), changes))

    # ---- inside

    def _store_for(self, data: Data) -> FileStore:
        """Return the store to write to; with ``write.merge-schema``, first add missing columns to the table."""
        store = self._writable()
        if store.merge_rules is None:
            return store
        merged = with_columns_of(store, data)
        self._store = replace(merged, merge_rules=store.merge_rules)
        return merged


def _unpickled(store: FileStore, read_optimized: bool) -> Table:
    return Table(store, read_optimized=read_optimized)
