"""Writes of format tables: files are complete before the first one becomes visible.

A writer writes hidden files in the directory ``_temporary`` of the table. `publish` gives them their names, and then
deletes the files that an overwrite replaces. There are no snapshots: during that time a reader may see a part of the
new files, and the old and the new files together. A publication that fails deletes the new files that it has named.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa

from paimon_core.commit.best_effort import best_effort
from paimon_core.errors import InvalidInputError, PaimonError, listed_names
from paimon_core.fileio.copying import copy_file
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.format.file_format import FormatWriter
from paimon_core.format_table.directories import (
    FormatFile,
    FormatPartition,
    Value,
    partition_array,
    partition_directory,
)
from paimon_core.format_table.settings import FormatTableSettings
from paimon_core.memory import MemoryShares
from paimon_core.predicate.expr import TRUE, Predicate, conjunction, is_value
from paimon_core.predicate.rewrite import bind
from paimon_core.schema.partition_spec import value_of_text
from paimon_core.schema.table_schema import TableSchema
from paimon_core.write.align import align, column_positions
from paimon_core.write.routing.partition import partition_codes

_STAGING: Final = "_temporary"
_OPEN_FILES: Final = 32
_LARGEST_EXPANSION: Final = 4  # of Arrow bytes by an encoding


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A complete file that is not visible yet, and the name that it gets. ``values``: of its partition."""

    hidden: str = field(repr=False)
    path: str = field(repr=False)
    size: int
    rows: int
    values: tuple[Value, ...] = ()


class FormatTableWriter:
    """A writer of rows into hidden files, one for each partition. `finish` returns them, and `abort` deletes them.

    At most 32 files are open at a time: a further partition completes the file that was opened first. Memory: about
    128 MiB of rows.

    Args:
        io: the storage.
        root: the directory of the table.
        schema: its columns.
        settings: its settings.
    """

    def __init__(self, io: FileIO, root: str, schema: TableSchema, settings: FormatTableSettings) -> None:
        self._io, self._root, self._schema, self._settings = io, root, schema, settings
        self._stored = tuple(f for f in schema.fields if f.name not in schema.partition_keys)
        self._open: dict[str, _OpenFile] = {}
        self._done: list[StagedFile] = []
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows, whose columns are matched by name.

        Raises InvalidInputError for unknown columns, for a value that a column or its files cannot hold, and for a
        value that cannot name a partition.
        """
        rows = align(batch, self._schema, column_positions(batch.schema.names, self._schema), self._rows)
        self._rows += rows.num_rows
        keys = self._schema.partition_keys
        if not rows.num_rows:
            return
        codes, partitions = partition_codes(rows, keys)
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(partitions) + 1))
        sorted_rows = rows if len(partitions) == 1 else rows.take(pa.array(order))
        for low, high in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            part = sorted_rows.slice(low, high - low)
            values = tuple(part.column(key)[0].as_py() for key in keys)
            self._write_part(part.select([f.name for f in self._stored]), values)

    def finish(self) -> list[StagedFile]:
        """Complete the files and return them."""
        for name in list(self._open):
            self._complete(name)
        return self._done

    def abort(self) -> None:
        """Delete all files of this writer, best effort."""
        for open_file in self._open.values():
            with best_effort("closing a file of a failed write", (OSError, PaimonError)):
                open_file.sink.close()
        hidden = [file.hidden for file in self._open.values()] + [file.hidden for file in self._done]
        discard(self._io, hidden)

    def _write_part(self, rows: pa.RecordBatch, values: tuple[Value, ...]) -> None:
        directory = partition_directory(self._root, values, self._schema.partition_fields, self._settings)
        if directory not in self._open:
            if len(self._open) >= _OPEN_FILES:
                self._complete(next(iter(self._open)))
            self._open[directory] = self._new_file(directory, values)
        open_file = self._open[directory]
        open_file.writer.write(rows)
        open_file.rows += rows.num_rows
        open_file.arrow_bytes += rows.nbytes
        size = self._settings.target_size
        if open_file.arrow_bytes * _LARGEST_EXPANSION >= size and open_file.writer.tell() >= size:
            self._complete(directory)
        elif (
            sum(each.writer.held_bytes for each in self._open.values())
            > MemoryShares.of(self._settings.options).format_table
        ):
            for each in self._open.values():
                each.writer.flush()

    def _new_file(self, directory: str, values: tuple[Value, ...]) -> "_OpenFile":
        hidden = join(self._root, _STAGING, f".tmp.{uuid4()}")
        path = join(directory, f"{self._settings.prefix}{uuid4()}-0{self._settings.extension}")
        format, settings = self._settings.file_format(self._stored), self._settings
        sink = self._io.create(hidden)
        try:
            writer = format.open_writer(sink, self._stored, settings.options, settings.compression)
        except BaseException:
            sink.close()
            discard(self._io, [hidden])
            raise
        return _OpenFile(hidden, path, values, sink, writer)

    def _complete(self, directory: str) -> None:
        open_file = self._open[directory]
        open_file.writer.close()
        size = open_file.sink.tell()
        open_file.sink.close()
        del self._open[directory]
        self._done.append(StagedFile(open_file.hidden, open_file.path, size, open_file.rows, open_file.values))


@dataclass(slots=True)
class _OpenFile:
    hidden: str
    path: str
    values: tuple[Value, ...]
    sink: Any
    writer: FormatWriter
    rows: int = 0
    arrow_bytes: int = 0


def publish(
    io: FileIO,
    root: str,
    files: Sequence[StagedFile],
    replaced: Sequence[FormatFile] = (),
    announce: Callable[[], None] = lambda: None,
) -> None:
    """Give hidden files their names, sync them, and delete the files that they replace.

    After an error before the first deletion, the named files are deleted again. Raises OSError.

    Args:
        io: the storage.
        root: the directory of the table.
        files: the complete files.
        replaced: the files to delete.
        announce: a function that reports the named files to the catalog, before the deletions.
    """
    try:
        for _ in parallel_map(lambda file: _name(io, file), files):
            pass
        io.sync([file.path for file in files], root)
        announce()
    except BaseException:
        discard(io, [path for file in files for path in (file.path, file.hidden)])
        raise
    discard(io, [file.hidden for file in files])
    for _ in parallel_map(lambda file: io.delete(file.path), replaced):
        pass
    io.sync([file.path for file in replaced], root)


def _name(io: FileIO, file: StagedFile) -> None:
    copy_file(io, file.hidden, io, file.path, file.size, may_link=True)


def discard(io: FileIO, paths: Iterable[str]) -> None:
    """Delete files, best effort."""
    for path in paths:
        with best_effort("deleting a file of a write", (OSError, PaimonError)):
            io.delete(path)


def predicate_of(schema: TableSchema, values: Mapping[str, Value]) -> Predicate:
    """Return the predicate that a partition has these values; ``values``: as `partition_of` returns them."""
    found = conjunction([is_value(name, value) for name, value in values.items()])
    return TRUE if found is None else bind(found, schema.partition_fields)


def partition_of(schema: TableSchema, given: Mapping[str, Value] | str, table: str) -> dict[str, Value]:
    """Return values of partition columns as Arrow returns them. A text stands for a value of any type.

    Raises InvalidInputError for anything but a mapping, for a name that is no partition column, and for a value of
    another type.
    """
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"a partition of {table} must be a mapping of columns to values, not {given!r}")
    values = {}
    for name, value in given.items():
        if name not in schema.partition_keys:
            keys = listed_names(name, schema.partition_keys)
            raise InvalidInputError(f"{name!r} is not a partition column of {table}; they are {keys}")
        field = schema.field(name)
        if isinstance(value, str):
            value = value_of_text(name, value, field.type, f"partition {dict(given)}")
        try:
            values[name] = partition_array([value], field)[0].as_py()
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(f"{value!r} is not a value of column {name!r}, a {field.type}: {error}") from error
    return values


def partitions_of(partitions: Iterable[FormatPartition], files: Iterable[StagedFile]) -> list[FormatPartition]:
    """Return the partitions in which new files are."""
    written = {repr(file.values) for file in files}
    return [partition for partition in partitions if repr(partition.values) in written]
