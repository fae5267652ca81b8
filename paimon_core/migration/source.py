"""Find the data files below another tool's directory, with the partitions that their paths name.

Partitions are directories ``column=value``, as Hive, Spark, pandas, Polars and DuckDB write them. Names that begin with
``.`` or ``_`` are hidden, such as ``_SUCCESS``, ``.part-0.crc`` and ``_temporary``, except ``_column=value``.
"""

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.fileio.fileio import FileIO, FileStatus, absolute, join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.fileio.paths import local_path, scheme_of
from paimon_core.fileio.stores import canonical_scheme

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The value in a path that stands for NULL."""
_IDENTITIES = uuid.UUID("5b0ac53c-0d3b-4c5e-9a6e-0b1f5f3a7c11")
_TABLES = {"_delta_log": "Delta", ".hoodie": "Hudi"}
"""Metadata directories of table formats, whose data files may hold deleted rows."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A data file of another tool; ``partition``: the texts in its path by column (`None`: NULL)."""

    path: str
    size: int
    modified_ms: int
    partition: Mapping[str, str | None] = field(default_factory=dict, hash=False)

    @property
    def identity(self) -> str:
        """A text that depends on path, size and modification time, so that a file is added only once."""
        location = local_path(self.path) if scheme_of(self.path) == "file" else self.path.partition(":")[2]
        return str(
            uuid.uuid5(_IDENTITIES, f"{canonical_scheme(self.path)}:{location}\n{self.size}\n{self.modified_ms}")
        )


def source_files(io: FileIO, path: str, partition_columns: Collection[str] | None = None) -> list[SourceFile]:
    """Return the data files at a path, which is a file or a directory, sorted by path.

    Files of zero bytes are left out, because they have no rows.

    Args:
        io: the file IO of the store.
        path: a file, or a directory with files and partitions below it.
        partition_columns: names of partition columns, which directories above ``path`` may also name; `None`: each
            directory ``column=value`` below ``path`` is a partition, but none above.

    Raises NotFoundError for a missing path, InvalidInputError for a directory below it that is not a partition and for
    files with different partition columns, UnsupportedError for a table of another format.
    """
    root = join(absolute(path))
    above = _partition(root.split("/"), partition_columns) if partition_columns is not None else {}
    entries = io.list(root)
    if not entries:
        status = _as_file(io, root)
        if status is None:
            if io.exists(root):
                return []
            raise NotFoundError(f"there is no file or directory {root}")
        above = _partition(root.split("/")[:-1], partition_columns) if partition_columns is not None else {}
        return [SourceFile(status.path, status.size, status.modified_ms, above)] if status.size else []
    files = sorted(_walk(io, root, entries, above), key=lambda file: file.path)
    for file in files:
        if list(file.partition) != list(files[0].partition):
            raise InvalidInputError(
                f"{file.path} is in partition {_shown(file)}, {files[0].path} in {_shown(files[0])}: all files must "
                "have the same partition columns in the same order"
            )
    return files


def _as_file(io: FileIO, path: str) -> FileStatus | None:
    directory, _, name = path.rpartition("/")
    return next(
        (status for status in io.list(directory or "/") if status.name == name and not status.is_directory), None
    )


def _walk(
    io: FileIO, directory: str, listed: Iterable[FileStatus], partition: Mapping[str, str | None]
) -> Iterator[SourceFile]:
    """Yield the files below a directory, listing the directories of one level in parallel."""
    level = [(directory, list(listed), dict(partition))]
    while level:
        deeper: list[tuple[str, dict[str, str | None]]] = []
        for parent, entries, values in level:
            _refuse_tables(parent, entries)
            for entry in entries:
                if _is_hidden(entry.name):
                    continue
                if not entry.is_directory:
                    if entry.size:
                        yield SourceFile(join(parent, entry.name), entry.size, entry.modified_ms, values)
                    continue
                deeper.append((join(parent, entry.name), {**values, **_value(entry.name, parent, values)}))
        lists = parallel_map(io.list, [path for path, _ in deeper])
        level = [(path, entries, values) for (path, values), entries in zip(deeper, lists, strict=True)]


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _refuse_tables(directory: str, entries: Iterable[FileStatus]) -> None:
    """Raise UnsupportedError for the directory of a table whose metadata lists its files."""
    names = {entry.name for entry in entries if entry.is_directory}
    kind = next((kind for name, kind in _TABLES.items() if name in names), None)
    kind = kind or ("Iceberg" if {"metadata", "data"} <= names else None)
    if kind is not None:
        raise UnsupportedError(
            f"{directory} is a {kind} table, whose directory may hold files of deleted rows: read it with its own "
            "Spark reader (paimon_spark.import_table)"
        )
    if {"schema", "snapshot"} <= names or {"schema", "manifest"} <= names:
        raise UnsupportedError(f"{directory} is a Paimon table already: copy it with clone")


def _value(name: str, parent: str, partition: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the partition column and value of a directory name."""
    column, equals, text = name.partition("=")
    if not equals or not column:
        raise InvalidInputError(
            f"directory {join(parent, name)} is not a partition 'column=value': pass the directory of the data files, "
            "or hide other directories with a name that begins with '_' or '.'"
        )
    column = unquote(column)
    if column in partition:
        raise InvalidInputError(f"directory {join(parent, name)} is a partition of column {column!r} a second time")
    return {column: None if text == HIVE_NULL else unquote(text)}


def _partition(parts: Iterable[str], columns: Collection[str]) -> dict[str, str | None]:
    """Return the values of the partition columns that the directory names contain."""
    values: dict[str, str | None] = {}
    for part in parts:
        column, equals, text = part.partition("=")
        if equals and unquote(column) in columns:
            values[unquote(column)] = None if text == HIVE_NULL else unquote(text)
    return values


def _shown(file: SourceFile) -> str:
    return "/".join(file.partition) or "no partition"
