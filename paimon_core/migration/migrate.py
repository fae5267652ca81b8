"""Directories of other tools as new tables: schema from the footers, partitions from the paths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paimon_core.errors import AlreadyExistsError, InvalidInputError
from paimon_core.fileio.fileio import FileIO
from paimon_core.fileio.parallel import parallel_map
from paimon_core.format import DESCRIBED_FORMATS
from paimon_core.format.file_description import FileDescription
from paimon_core.migration.add_files import AddedFiles, add_described, check_target, live_identities
from paimon_core.migration.describe_file import describe
from paimon_core.migration.partitions import type_of_texts
from paimon_core.migration.source import SourceFile, source_files
from paimon_core.migration.type_check import common_fields
from paimon_core.options.file import FILE_FORMAT
from paimon_core.schema.schema import Schema
from paimon_core.schema.table_schema import TableSchema
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import NO_ID, DataField, DataType, with_nullable
from paimon_core.types.parse import parse_type

PartitionKeys = Sequence[str] | Mapping[str, str | DataType]


@dataclass(frozen=True)
class SourceTable:
    """A table of another catalog, as that catalog describes it."""

    name: str
    fields: tuple[DataField, ...]
    partition_keys: tuple[str, ...]
    files: tuple[SourceFile, ...]
    comment: str | None = None


@dataclass(frozen=True)
class Migration:
    """Files with their footers, and the schema of the table that they become."""

    source: str
    schema: Schema
    files: tuple[SourceFile, ...]
    described: tuple[FileDescription, ...]

    def add(self, store: FileStore, *, move: bool) -> AddedFiles:
        """Add the files to the table that has this schema; raises as `add_files`."""
        check_target(store)
        return add_described(store, self.files, self.described, move=move)

    def check_existing(self, store: FileStore, made: TableSchema) -> None:
        """Raise AlreadyExistsError unless an earlier call, which was interrupted, has made this table.

        Args:
            store: of the table.
            made: the schema that this call would create.
        """
        schema, snapshot = store.schema, store.snapshots.latest()
        same = (schema.fields, schema.partition_keys) == (made.fields, made.partition_keys)
        begun = snapshot is None or not live_identities(store, snapshot).isdisjoint(f.identity for f in self.files)
        if not (same and begun):
            why = "has other rows" if same else "has other columns or partitions"
            raise AlreadyExistsError(
                f"{self.source} is not migrated: the table {store.root} exists already and {why}; choose another name, "
                "or add the files to it with add_files"
            )


def migration_of(
    io: FileIO,
    source: str | SourceTable,
    format: str | None = None,
    partition_keys: PartitionKeys | None = None,
    options: Mapping[str, str] | None = None,
) -> Migration:
    """Return the migration of a directory, or of a table of another catalog.

    Args:
        io: of the store.
        source: the path of a directory, or a table.
        format: "parquet", "orc" or "avro", which all files must have; `None`: each its own.
        partition_keys: names of the directories' columns, in their order, or {name: type}; `None`: as the paths say.
            Without a type, a column is INT, BIGINT or DATE if all its values print as such a value, else STRING.
        options: of the new table.

    Raises NotFoundError, InvalidInputError and UnsupportedError as `add_files`; InvalidInputError also if files differ
    in a column, naming file and column.
    """
    if format is not None and format.lower() not in DESCRIBED_FORMATS:
        raise InvalidInputError(f"format is {format!r}: it must be one of {', '.join(DESCRIBED_FORMATS)}")
    name = source if isinstance(source, str) else source.name
    files = source_files(io, source) if isinstance(source, str) else list(source.files)
    if not files:
        raise InvalidInputError(f"{name} has no data files: there is nothing to migrate, and no columns are known")
    wanted = None if format is None else format.lower()
    described = list(parallel_map(lambda file: describe(io, file.path, file.size, wanted), files))
    fields: tuple[DataField, ...]
    if isinstance(source, str):
        fields = common_fields(described)
        keys = _partition_fields(files, partition_keys, name)
        inside = {field.name for field in fields}
        fields = (*fields, *(key for key in keys if key.name not in inside))
        names = tuple(key.name for key in keys)
        comment = None
    else:
        fields, names, comment = source.fields, source.partition_keys, source.comment
    given = {FILE_FORMAT.key: described[0].format, **(options or {})}
    return Migration(name, Schema(fields, (), names, given, comment), tuple(files), tuple(described))


def _partition_fields(files: Sequence[SourceFile], given: PartitionKeys | None, source: str) -> list[DataField]:
    """Return the partition columns. InvalidInputError if the paths name others than those given."""
    found = list(files[0].partition)
    if given is not None and list(given) != found:
        raise InvalidInputError(f"the paths below {source} name the partition columns {found}, not {list(given)}")
    types: Mapping[str, str | DataType] = given if isinstance(given, Mapping) else {}
    fields = []
    for name in found:
        kind = types.get(name)
        if isinstance(kind, str):
            kind = parse_type(kind)
        if kind is None:
            kind = type_of_texts([file.partition[name] for file in files])
        fields.append(DataField(NO_ID, name, with_nullable(kind, True)))
    return fields
