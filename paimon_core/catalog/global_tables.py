"""The system tables of a catalog, in the database ``sys``: its tables, partitions and options."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from paimon_core.catalog.identifier import Identifier
from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_core.fileio.fileio import FileIO
from paimon_core.fileio.parallel import parallel_map
from paimon_core.inspect.system_tables.groups import partition_sums
from paimon_core.inspect.system_tables.kind import SOME_TEXT, Fixed, Part, Request, SystemTableKind, batch_of, columns
from paimon_core.inspect.system_tables.table_registry import unknown_table
from paimon_core.inspect.system_tables.value_text import named_all, shown_options
from paimon_core.options.bucket import PARTITION_LEGACY_NAME
from paimon_core.schema.table_schema import TableSchema
from paimon_core.store.file_store import FileStore
from paimon_core.table import SystemTable, Table
from paimon_core.types.datatype import BIGINT, BOOLEAN, STRING

if TYPE_CHECKING:
    from paimon_core.table import AnyTable
    from paimon_core.table.format_table import FormatTable

_TABLES = columns(
    ("database_name", STRING),
    ("table_name", STRING),
    ("table_type", STRING),
    ("partitioned", BOOLEAN),
    ("primary_key", BOOLEAN),
    ("owner", STRING),
    ("created_at", BIGINT),
    ("created_by", STRING),
    ("updated_at", BIGINT),
    ("updated_by", STRING),
    ("record_count", BIGINT),
    ("file_size_in_bytes", BIGINT),
    ("file_count", BIGINT),
    ("last_file_creation_time", BIGINT),
)
_PARTITIONS = columns(
    ("database_name", STRING),
    ("table_name", STRING),
    ("partition_name", STRING),
    ("record_count", BIGINT),
    ("file_size_in_bytes", BIGINT),
    ("file_count", BIGINT),
    ("last_file_creation_time", BIGINT),
    ("done", BOOLEAN),
)
_TABLE_OPTIONS = columns(("database_name", STRING), ("table_name", STRING), ("key", STRING), ("value", STRING))
_CATALOG_OPTIONS = columns(("key", SOME_TEXT), ("value", SOME_TEXT))


class Catalog(Protocol):
    """The methods of a catalog that the global system tables call."""

    warehouse: str
    options: dict[str, str]

    def list_databases(self) -> list[str]:
        """Return the names of all databases."""

    def list_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database."""

    def named_table(self, identifier: str | Identifier) -> "AnyTable | FormatTable":
        """Open a table of any kind."""


def _tables(catalog: Catalog, request: Request) -> Iterator[tuple[Identifier, "AnyTable | FormatTable"]]:
    """Yield the tables that match a filter on database and table. Tables dropped during the call are left out.

    The names come from the catalog: the directory of an external table, or of one in a REST catalog, has any name.
    """
    databases, names = request.pinned("database_name"), request.pinned("table_name")
    for database in catalog.list_databases():
        if databases is not None and database not in databases:
            continue
        listed = [name for name in catalog.list_tables(database) if names is None or name in names]
        identifiers = [Identifier(database, name) for name in listed]
        opened = parallel_map(partial(_opened, catalog), identifiers)
        pairs = zip(identifiers, opened, strict=True)
        yield from ((identifier, table) for identifier, table in pairs if table is not None)


def _opened(catalog: Catalog, identifier: Identifier) -> "AnyTable | FormatTable | None":
    try:
        return catalog.named_table(identifier)
    except NotFoundError:
        return None


def _names(identifiers: Sequence[Identifier]) -> dict[str, list[str]]:
    """Return the columns of database names and table names."""
    return {
        "database_name": [identifier.database for identifier in identifiers],
        "table_name": [identifier.table for identifier in identifiers],
    }


def _read_tables(catalog: Catalog, request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each table. A catalog of directories does not know owners and counts."""
    named = list(_tables(catalog, request))
    tables = [table for _, table in named]
    unknown = {f.name: [None] * len(tables) for f in _TABLES}
    yield batch_of(
        _TABLES,
        request.columns,
        {
            **unknown,
            **_names([identifier for identifier, _ in named]),
            "table_type": [table.schema.options.get("type", "table") for table in tables],
            "partitioned": [bool(table.schema.partition_keys) for table in tables],
            "primary_key": [bool(table.schema.primary_keys) for table in tables],
        },
    )


def _read_partitions(catalog: Catalog, request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each partition of each partitioned table."""
    for identifier, table in _tables(catalog, request):
        if not isinstance(table, Table):
            continue  # the partitions of a format table are not counted
        store, snapshot = table.store, table.snapshot()
        if not store.schema.partition_keys or store.is_restricted:
            continue  # the partitions of a table whose rows or values are hidden may be hidden, too
        legacy = store.options.value(PARTITION_LEGACY_NAME)
        sums = partition_sums(Request(store, snapshot, frozenset()))
        names = named_all(store, sums["partition"].to_pylist(), legacy=legacy)
        rows = sums.num_rows
        yield batch_of(
            _PARTITIONS,
            request.columns,
            {
                **{key: value * rows for key, value in _names([identifier]).items()},
                "partition_name": names,
                "record_count": sums["rows"].combine_chunks(),
                "file_size_in_bytes": sums["size"].combine_chunks(),
                "file_count": sums["files"].combine_chunks(),
                "last_file_creation_time": [_instant(wall) for wall in sums["created"].to_pylist()],
                "done": [False] * rows,
            },
        )


def _instant(wall: int | None) -> int | None:
    """Convert a local time of this machine, in milliseconds as if its zone were UTC, to an instant (epoch ms)."""
    if wall is None:
        return None
    local_time = datetime.fromtimestamp(wall // 1000, timezone.utc).replace(tzinfo=None)
    return int(local_time.astimezone().timestamp()) * 1000 + wall % 1000


def _read_table_options(catalog: Catalog, request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each option of each table, including its path."""
    for identifier, table in _tables(catalog, request):
        options = {**shown_options(table.schema.options), **shown_options({"path": table.path})}
        yield batch_of(
            _TABLE_OPTIONS,
            request.columns,
            {
                **{key: value * len(options) for key, value in _names([identifier]).items()},
                "key": list(options),
                "value": list(options.values()),
            },
        )


def _read_catalog_options(catalog: Catalog, request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each option of the catalog, without the options of its file system."""
    options = shown_options({**catalog.options, "warehouse": catalog.warehouse})
    yield batch_of(_CATALOG_OPTIONS, request.columns, {"key": list(options), "value": list(options.values())})


@dataclass(frozen=True, slots=True)
class _Global:
    fields: Fixed
    read: Callable[[Catalog, Request, Part], Iterator[pa.RecordBatch]]


GLOBAL_TABLES = {
    "tables": _Global(Fixed(_TABLES), _read_tables),
    "partitions": _Global(Fixed(_PARTITIONS), _read_partitions),
    "all_table_options": _Global(Fixed(_TABLE_OPTIONS), _read_table_options),
    "catalog_options": _Global(Fixed(_CATALOG_OPTIONS), _read_catalog_options),
}
"""The tables of the database ``sys``. A new table needs a function, and a line here."""


def global_table_names() -> list[str]:
    """Return the names of the tables of the database ``sys``, sorted."""
    return sorted(GLOBAL_TABLES)


def global_table(catalog: Catalog, io: FileIO, name: Identifier) -> SystemTable:
    """Return a table of the database ``sys``. Raises InvalidInputError with the nearest name for an unknown table."""
    definition = GLOBAL_TABLES.get(name.table.lower())
    if definition is None:
        raise unknown_table(str(name), list(GLOBAL_TABLES), f"{name.database}.")
    if name.branch is not None or name.system_table is not None:
        raise InvalidInputError(f"{str(name)!r}: a table of {name.database!r} has no branches and no system tables")
    kind = SystemTableKind(name.table.lower(), definition.fields, partial(definition.read, catalog), of_catalog=True)
    return SystemTable(FileStore(io, catalog.warehouse, TableSchema(0, (), 0)), kind)
