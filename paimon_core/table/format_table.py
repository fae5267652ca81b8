"""FormatTable: CSV, JSON, Parquet, ORC or text files in directories, which a catalog lists as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from posixpath import dirname
from typing import Any, TypeAlias

import pyarrow as pa

from paimon_core.commit.overwrite import DYNAMIC
from paimon_core.errors import InvalidInputError, UnsupportedError, hide_secrets
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.format_table.directories import (
    FormatFile,
    FormatPartition,
    Value,
    list_files,
    matching,
    not_matching,
    partition_array,
    partition_directory,
)
from paimon_core.format_table.partitions import TablePartitions
from paimon_core.format_table.read import FormatTableRead
from paimon_core.format_table.registry import PartitionRegistry, Spec
from paimon_core.format_table.settings import FormatTableSettings, check_registry
from paimon_core.format_table.write import (
    FormatTableWriter,
    StagedFile,
    discard,
    partition_of,
    partitions_of,
    predicate_of,
    publish,
)
from paimon_core.options.snapshot import DYNAMIC_PARTITION_OVERWRITE
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.filter import Filter, bound_filter
from paimon_core.read.frames import RepeatableRead
from paimon_core.scan.projection import project
from paimon_core.schema.table_schema import TableSchema
from paimon_core.table.readable import ReadableRows
from paimon_core.table.selection import Selection
from paimon_core.write.input_data import Rows, arrow_data

Replaced: TypeAlias = Mapping[str, Value] | Predicate | str
"""The partitions that an overwrite replaces, see `FormatTable.publish`."""


class FormatTable(ReadableRows):
    """Files of one format in directories, such as Hive uses them. The catalog stores the columns and the options.

    There are no snapshots: no time travel, no changes, and no atomic commits. While a write gives its files their names
    a reader may see some of them, and of an overwrite the old rows as well. A write that is interrupted then leaves
    both. The rows cannot be updated or deleted.

    Args:
        io: the storage of the files.
        path: the directory of the table.
        schema: the columns, partition columns and options.
        name: ``database.table``, for messages.
        registry: the entries of the partitions in the catalog, which alone make a directory a partition; `None`: each
            directory is one.
        is_external: True if the files outlive the table.
    """

    def __init__(
        self,
        io: FileIO,
        path: str,
        schema: TableSchema,
        name: str,
        registry: PartitionRegistry | None = None,
        *,
        is_external: bool = False,
    ) -> None:
        self._io, self._path, self._schema, self.name = io, path, schema, name
        self._settings = FormatTableSettings.of(schema, name)
        self._registry, self.is_external = registry, is_external

    def __reduce__(self) -> tuple[Callable[..., FormatTable], tuple[Any, ...]]:
        """Pickle the arguments of the constructor."""
        make = partial(FormatTable, is_external=self.is_external)
        return make, (self._io, self._path, self._schema, self.name, self._registry)

    def __repr__(self) -> str:
        return f"FormatTable({self.name!r}, {self.format}, {hide_secrets(self._path)!r})"

    @property
    def path(self) -> str:
        """The directory of the table."""
        return self._path

    @property
    def schema(self) -> TableSchema:
        """The columns of the rows."""
        return self._schema

    @property
    def format(self) -> str:
        """The format of the files: csv, json, orc, parquet or text."""
        return self._settings.format

    def read(self, columns: Sequence[str] | None = None, filter: Filter = None) -> FormatTableRead:
        """Return a read as a value, for engines: ``plan()`` returns files, ``to_batches(file)`` reads one anywhere.

        Arguments as for `to_arrow`.
        """
        fields, predicate = project(self._schema, columns), bound_filter(filter, self._schema.fields)
        return FormatTableRead(
            self._io, self._path, self._schema, self._settings, fields, predicate, self._registry, self.name
        )

    @property
    def has_catalog_partitions(self) -> bool:
        """True if the catalog lists the partitions, False if each directory is one."""
        return self._registry is not None

    def partitions(self) -> list[dict[str, Value]]:
        """Return the partitions, which the directories or the catalog name, as values by column.

        Raises InvalidInputError for a name that is not a value of its column.
        """
        return self.partitions_with({})

    def partitions_with(self, partition: Mapping[str, Value]) -> list[dict[str, Value]]:
        """Return the partitions with these values of partition columns, as `partitions` does.

        Raises InvalidInputError for an unknown partition column.
        """
        keys, fields = self._schema.partition_keys, self._schema.partition_fields
        found = matching(self._partitions.all(), fields, self._where(partition)) if keys else []
        return [dict(zip(keys, each.values, strict=True)) for each in found]

    def write(self, data: Rows) -> int:
        """Add rows in new files, and return their number.

        ``data``: as for `Table.write`. Raises InvalidInputError as `Table.write`, and for a value that the files or
        the names of directories cannot hold.
        """
        staged = self._staged(data, {})
        self.publish(staged)
        return sum(file.rows for file in staged)

    def overwrite(self, data: Rows, partition: Mapping[str, Value] | str | None = None) -> int:
        """Replace rows by others, and return the number of new rows.

        Args:
            data: as for `Table.write`; columns that it lacks get their values from ``partition``.
            partition: values of partition columns: the partitions that have them are replaced, and every row must have
                them. "dynamic": the partitions of the rows are replaced. `None`: all rows are replaced, or the
                partitions of the rows if the option ``dynamic-partition-overwrite`` is set.

        Raises InvalidInputError as `write`, for rows outside of the partition, and for an unknown partition column.
        """
        option, options = DYNAMIC_PARTITION_OVERWRITE, self._schema.options
        if partition is None and options.has(option) and options.value(option):
            partition = DYNAMIC
        values = {} if partition is None or partition == DYNAMIC else self._values_of(partition)
        staged = self._staged(data, values)
        self.publish(staged, DYNAMIC if partition == DYNAMIC else values)
        return sum(file.rows for file in staged)

    def truncate(self) -> None:
        """Delete all files; the partitions stay."""
        self.publish([], {})

    def truncate_partitions(self, partition: Mapping[str, Value]) -> None:
        """Delete the files of the partitions with these values of partition columns; the partitions stay.

        Raises InvalidInputError for an unknown partition column, and for no column.
        """
        if not partition:
            raise InvalidInputError(f"no partition of {self.name} is named: name its columns, or truncate the table")
        self.publish([], self._values_of(partition))

    def add_partition(self, partition: Mapping[str, Value]) -> bool:
        """Add a partition without rows; return False if the partition exists.

        The partition gets a directory, and an entry in the catalog if the catalog lists the partitions. Files that its
        directory already has are then rows of the table.

        ``partition``: a value for each partition column. Raises InvalidInputError for missing and unknown columns,
        UnsupportedError for an object store, which has no empty directories, if only directories are partitions.
        """
        values = self._complete(partition)
        if matching(self._partitions.all(), self._schema.partition_fields, predicate_of(self._schema, values)):
            return False
        directory = partition_directory(
            self._path, tuple(values.values()), self._schema.partition_fields, self._settings
        )
        if self._registry is not None:
            self._registry.register([self._partitions.spec_of(directory)])
        marker = join(directory, ".partition")  # a directory is created with its first file
        self._io.write(marker, b"")
        self._io.delete(marker)
        if self._registry is None and not self._io.exists(directory):
            raise UnsupportedError(
                f"a partition of {self.name} without files is not possible: its store has "
                "no empty directories; write rows"
            )
        return True

    def drop_partitions(self, partition: Mapping[str, Value]) -> int:
        """Delete the partitions with these values of partition columns, with their files; return their number.

        Raises InvalidInputError for an unknown partition column.
        """
        if not partition:
            raise InvalidInputError(f"no partition of {self.name} is named: name its columns, or truncate the table")
        dropped = matching(self._partitions.all(), self._schema.partition_fields, self._where(partition))
        if dropped and self._registry is not None:  # first: what a failed deletion leaves is no partition
            self._registry.unregister([self._partitions.spec_of(found.path) for found in dropped])
        for found in dropped:
            self._io.delete_directory(found.path)
        return len(dropped)

    def repair_partitions(self, *, add: bool = True, drop: bool = False) -> tuple[list[Spec], list[Spec]]:
        """Make the catalog list the partitions that have directories; return the added and the removed ones.

        Only entries of the catalog change, no files. The partitions are texts by column, as in `PartitionRegistry`.

        Args:
            add: True to add the partitions that only have a directory.
            drop: True to remove the partitions that have no directory.

        Raises UnsupportedError if the catalog does not list the partitions, InvalidInputError for a directory that
        names no value of its column.
        """
        if self._registry is None:
            raise UnsupportedError(
                f"the partitions of {self.name} are its directories, so there is nothing to repair; the option "
                f"'metastore.partitioned-table' = 'true' of a REST catalog makes the catalog list the partitions"
            )
        return self._partitions.repair(add=add, drop=drop)

    # ---- for engines

    def writer(self) -> FormatTableWriter:
        """Return a writer of hidden files, which `publish` makes visible."""
        return self.writers()()

    def writers(self) -> Callable[[], FormatTableWriter]:
        """Return a function that returns a writer as `writer` does. It pickles, without the catalog of the table."""
        return partial(FormatTableWriter, self._io, self._path, self._schema, self._settings)

    def publish(self, files: Sequence[StagedFile], replaced: Replaced | None = None) -> None:
        """Make hidden files visible, and then delete the files that an overwrite replaces.

        Args:
            files: the results of writers.
            replaced: values of partition columns, where no value means all rows; a bound predicate on partition
                columns; or "dynamic". `None`: nothing is replaced.

        Raises InvalidInputError, after deleting ``files``, for a file outside of the replaced partitions.
        """
        old: list[FormatFile] = []
        replaced_partitions: list[FormatPartition] = []
        try:
            if replaced is not None:
                replaced_partitions = self._replaced(files, replaced)
                old = list_files(self._io, replaced_partitions)
        except BaseException:
            self.discard(files)
            raise
        announce = partial(self._partitions.announce, files, replaced_partitions, total=replaced is not None)
        publish(self._io, self._path, files, old, announce)

    def discard(self, files: Sequence[StagedFile]) -> None:
        """Delete hidden files that will not be published."""
        discard(self._io, [file.hidden for file in files])

    # ---- inside

    def _read(self, selection: Selection) -> RepeatableRead:
        if selection.at.argument is not None:
            raise InvalidInputError(f"format table {self.name} has no snapshots: leave out {selection.at.argument!r}")
        read = self.read(selection.columns, selection.filter)
        return RepeatableRead(read.arrow, lambda: selection.limited(_batches(read)))

    @property
    def _partitions(self) -> TablePartitions:
        keys = self._schema.partition_fields
        return TablePartitions(self._io, self._path, keys, self._settings, self._registry, self.name)

    def _replaced(self, files: Sequence[StagedFile], replaced: Replaced) -> list[FormatPartition]:
        """Return the partitions that an overwrite replaces. Raises InvalidInputError for a file outside of them.

        If the catalog lists the partitions, these are also the directories without an entry that get an entry with the
        new rows: their old rows must not appear. Other directories without an entry stay as they are.
        """
        keys = self._schema.partition_fields
        if isinstance(replaced, str):
            return partitions_of(self._candidates(files), files) if keys else self._partitions.all()
        where = replaced if isinstance(replaced, Predicate) else self._where(replaced)
        outside = not_matching(files, keys, where)
        if outside:
            written = dict(zip(self._schema.partition_keys, outside[0].values, strict=True))
            raise InvalidInputError(
                f"a row is in the partition {written} of {self.name}, which the overwrite of {where} does not replace"
            )
        return matching(self._candidates(files), keys, where)

    def _candidates(self, files: Sequence[StagedFile]) -> list[FormatPartition]:
        """Return the partitions that an overwrite may replace: all partitions, and the new files' directories."""
        found = {partition.path: partition for partition in self._partitions.all()}
        if self._registry is not None:
            for file in files:
                directory = dirname(file.path)
                found.setdefault(directory, FormatPartition(directory, file.values))
        return list(found.values())

    def _values_of(self, partition: Mapping[str, Value] | str) -> dict[str, Value]:
        return partition_of(self._schema, partition, self.name)

    def _where(self, partition: Mapping[str, Value]) -> Predicate:
        return predicate_of(self._schema, self._values_of(partition))

    def _complete(self, partition: Mapping[str, Value]) -> dict[str, Value]:
        """Return the values of a whole partition, in the order of the columns."""
        keys, given = self._schema.partition_keys, partition
        partition = self._values_of(given)
        if not keys or set(partition) != set(keys):
            raise InvalidInputError(
                f"a partition of {self.name} has a value for each of the columns {list(keys)}, not for {list(given)}"
            )
        return {key: partition[key] for key in keys}

    def _staged(self, data: Rows, constants: Mapping[str, Value]) -> list[StagedFile]:
        rows = arrow_data(data)
        writer = self.writer()
        try:
            for batch in [rows] if isinstance(rows, pa.RecordBatch) else _all_batches(rows):
                for name in constants.keys() - set(batch.schema.names):
                    values = partition_array([constants[name]] * batch.num_rows, self._schema.field(name))
                    batch = batch.append_column(name, values)
                writer.write(batch)
            return writer.finish()
        except BaseException:
            writer.abort()
            raise


def open_format_table(
    io: FileIO, path: str, schema: TableSchema, name: str, registry: PartitionRegistry | None, is_external: bool
) -> FormatTable:
    """Return a format table of a catalog. Arguments and errors as for `FormatTable`.

    Raises UnsupportedError if the catalog should list the partitions, but has no entries for them.
    """
    check_registry(schema, name, has_registry=registry is not None, is_external=is_external)
    in_catalog = FormatTableSettings.of(schema, name).in_catalog
    return FormatTable(io, path, schema, name, registry if in_catalog else None, is_external=is_external)


def _all_batches(rows: pa.Table | pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    yield from rows.to_batches() if isinstance(rows, pa.Table) else rows


def _batches(read: FormatTableRead) -> Iterator[pa.RecordBatch]:
    for file in read.plan():
        yield from read.to_batches(file)
