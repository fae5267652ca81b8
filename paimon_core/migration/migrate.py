"""Turn directories of other tools into new tables: schema from the footers, partitions from the paths."""

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
    """The description of a table by another catalog."""

    name: str
    fields: tuple[DataField, ...]
    partition_keys: tuple[str, ...]
    files: tuple[SourceFile, ...]
    comment: str | None = None


@dataclass(frozen=True)
class Migration:
    """Files with their footers, and the schema of the new table."""

    source: str
    schema: Schema
    files: tuple[SourceFile, ...]
    described: tuple[FileDescription, ...]

    def add(self, store: FileStore, *, move: bool) -> AddedFiles:
        """Add the files to the table with this schema; raises the errors of `add_files`."""
        check_target(store)
        return add_described(store, self.files, self.described, move=move)

    def check_existing(self, store: FileStore, created: TableSchema) -> None:
        """Raise AlreadyExistsError unless an earlier, interrupted call created this table.

        Args:
            store: the existing table.
            created: the schema that this call would create.
        """
        schema, snapshot = store.schema, store.snapshots.latest()
        same = (schema.fields, schema.partition_keys) == (created.fields, created.partition_keys)
        resumable = snapshot is None or not live_identities(store, snapshot).isdisjoint(f.identity for f in self.files)
        if not (same and resumable):
            why = "has other rows" if same else "has other columns or partitions"
            raise AlreadyExistsError(
                f"{self.source} is not migrated: the table {store.root} already exists and {why}; choose another name, "
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
        io: the file IO of the store.
        source: the path of a directory, or a table.
        format: "parquet", "orc" or "avro", the required format of all files; `None`: any of these for each file.
        partition_keys: names of the partition columns in path order, or {name: type}; `None`: taken from the paths.
            Without a type, a column is INT, BIGINT or DATE if all its texts are canonical values, else STRING.
        options: options of the new table; `None`: no options.

    Raises NotFoundError, InvalidInputError and UnsupportedError as `add_files`; InvalidInputError, naming file and
    column, also if the columns of files differ.
    """
    if format is not None and format.lower() not in DESCRIBED_FORMATS:
        raise InvalidInputError(f"format is {format!r}: it must be one of {', '.join(DESCRIBED_FORMATS)}")
    name = source if isinstance(source, str) else source.name
    files = source_files(io, source) if isinstance(source, str) else list(source.files)
    if not files:
        raise InvalidInputError(f"{name} has no data files: there is nothing to migrate")
    required_format = None if format is None else format.lower()
    described = list(parallel_map(lambda file: describe(io, file.path, file.size, required_format), files))
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
    table_options = {FILE_FORMAT.key: described[0].format, **(options or {})}
    return Migration(name, Schema(fields, (), names, table_options, comment), tuple(files), tuple(described))


def _partition_fields(files: Sequence[SourceFile], declared: PartitionKeys | None, source: str) -> list[DataField]:
    """Return the partition columns. Raises InvalidInputError if the paths do not name the declared columns."""
    names = list(files[0].partition)
    if declared is not None and list(declared) != names:
        raise InvalidInputError(f"the paths below {source} name the partition columns {names}, not {list(declared)}")
    types: Mapping[str, str | DataType] = declared if isinstance(declared, Mapping) else {}
    fields = []
    for name in names:
        kind = types.get(name)
        if isinstance(kind, str):
            kind = parse_type(kind)
        if kind is None:
            kind = type_of_texts([file.partition[name] for file in files])
        fields.append(DataField(NO_ID, name, with_nullable(kind, True)))
    return fields
