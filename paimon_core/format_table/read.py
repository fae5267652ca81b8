"""Reads of format tables: files are chosen by their partitions, and read one after another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_core.errors import CorruptedError, InvalidInputError, UnsupportedError
from paimon_core.fileio.fileio import FileIO
from paimon_core.format import FORMATS
from paimon_core.format.corruption import as_corrupted
from paimon_core.format.file_format import ReadRequest
from paimon_core.format.orc_tail import open_orc
from paimon_core.format_table.directories import FormatFile, list_files, partition_array
from paimon_core.format_table.partitions import TablePartitions
from paimon_core.format_table.registry import PartitionRegistry
from paimon_core.format_table.settings import FormatTableSettings
from paimon_core.memory import MemoryShares
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import columns, restrict
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.columns import ColumnNames
from paimon_core.types.datatype import DataField

_BATCH_ROWS: Final = 1 << 17
_TASK_BYTES: Final = 128 << 20


@dataclass(frozen=True, slots=True)
class FormatTableRead:
    """A read of a format table as a picklable value: `plan` lists the files, and `to_batches` reads one anywhere."""

    io: FileIO
    root: str
    schema: TableSchema
    settings: FormatTableSettings
    fields: tuple[DataField, ...]
    """The columns of the batches, in order."""
    predicate: Predicate | None = None
    """A predicate bound to the columns of the table, which all rows satisfy; `None`: all rows."""
    registry: PartitionRegistry | None = None
    """The entries of the catalog, which only `plan` needs; `None`: each directory is a partition."""
    name: str = ""
    """The name of the table, for messages."""

    @property
    def arrow(self) -> pa.Schema:
        """The schema of the batches."""
        return arrow_schema(self.fields)

    def plan(self) -> list[FormatFile]:
        """Return the files that may hold rows of the read. Raises as `TablePartitions.all`."""
        return list_files(self.io, self._partitions().all(self.predicate))

    def _partitions(self) -> TablePartitions:
        keys = self.schema.partition_fields
        return TablePartitions(self.io, self.root, keys, self.settings, self.registry, self.name)

    def to_batches(self, file: FormatFile) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file that satisfy the predicate, in bounded memory.

        Raises CorruptedError for a damaged file, and for a value that is not of its column's type; InvalidInputError
        for a file with several columns that may be meant; FileNotFoundError if the file was deleted.
        """
        keys = self.schema.partition_fields
        tested = set() if self.predicate is None else columns(self.predicate)
        names = {field.name for field in self.fields} | tested
        constants = {key.name: (key, value) for key, value in zip(keys, file.values, strict=True)}
        stored = tuple(f for f in self.schema.fields if f.name not in constants)
        wanted = tuple(f for f in stored if f.name in names)
        for batch in self._stored_batches(file, stored, wanted):
            arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
            for name in names & constants.keys():
                key, value = constants[name]
                arrays[name] = pa.repeat(partition_array([value], key)[0], batch.num_rows)
            if self.predicate is not None:
                rows = pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))
                mask = evaluate(self.predicate, rows)
                arrays = {field.name: arrays[field.name].filter(mask) for field in self.fields}
            for field in self.fields:
                if arrays[field.name].null_count and not field.type.nullable:
                    raise CorruptedError(f"{file.path} has NULL in column {field.name!r}, which is NOT NULL")
            yield pa.RecordBatch.from_arrays([arrays[field.name] for field in self.fields], schema=self.arrow)

    def _stored_batches(
        self, file: FormatFile, stored: Sequence[DataField], wanted: Sequence[DataField]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the columns ``wanted`` of a file; at least one column, so that a batch has a number of rows.

        ``stored``: the columns of the table that its files hold.
        """
        fields = tuple(wanted) or tuple(stored[:1])
        names = {field.name for field in fields}
        pushed = None if self.predicate is None else restrict(self.predicate, names)
        with self.io.open(file.path, file.size) as source:
            spelled = self._spelled(source, fields, file.path)
            if spelled != fields:
                pushed = None  # it names the columns as the table spells them
            shares = MemoryShares.of(self.settings.options)
            request = ReadRequest(spelled, _BATCH_ROWS, shares.batches, pushed, path=file.path, threads=shares.threads)
            for batch in self.settings.file_format(stored).read(source, request):
                yield batch if spelled == fields else batch.rename_columns([field.name for field in fields])

    def _spelled(self, source: Any, fields: tuple[DataField, ...], path: str) -> tuple[DataField, ...]:
        """Return the columns as a file spells them: other tools may spell a name in another case.

        Raises InvalidInputError for a name that several columns of the file may mean, UnsupportedError for a file
        whose columns have no names.
        """
        if self.settings.format not in FORMATS:
            return fields
        with as_corrupted(path):
            if self.settings.format == "orc":
                names = open_orc(source).schema.names
            else:
                names = pq.read_schema(source).names
        source.seek(0)
        index = ColumnNames(names)
        found = {field.name: index.positions(field.name) for field in fields}
        several = next((name for name, positions in found.items() if len(positions) > 1), None)
        if several is not None:
            raise InvalidInputError(f"{path} has several columns that column {several!r} may mean: {', '.join(names)}")
        if names and names == [f"_col{i}" for i in range(len(names))]:
            raise UnsupportedError(f"the columns of {path} have numbers instead of names: write the file again")
        return tuple(
            replace(field, name=names[found[field.name][0]]) if found[field.name] else field for field in fields
        )


def tasks_of(files: Sequence[FormatFile], least: int) -> list[tuple[FormatFile, ...]]:
    """Return the files in groups of about 128 MiB, the work of one task each.

    ``least``: the number of groups that a read has if there are enough files.
    """
    total = sum(file.size for file in files)
    most = max(1, min(_TASK_BYTES, total // max(1, least)))
    tasks: list[list[FormatFile]] = []
    filled = 0
    for file in files:
        if not tasks or filled + file.size > most:
            tasks.append([])
            filled = 0
        tasks[-1].append(file)
        filled += file.size
    return [tuple(task) for task in tasks]
