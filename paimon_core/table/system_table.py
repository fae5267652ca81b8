"""SystemTable: rows about a table or a catalog, such as its files and snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon_core.errors import InvalidInputError, UnsupportedError, hide_secrets
from paimon_core.lazy import deferred
from paimon_core.predicate.filter import Filter, bound_filter
from paimon_core.read.frames import RepeatableRead
from paimon_core.scan.projection import project
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.time_travel import TimeTravel, TimeTravelArguments
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import MAIN_BRANCH
from paimon_core.store.location import SEPARATOR, TableLocation
from paimon_core.table.readable import ReadableTable
from paimon_core.table.reading import TableReading
from paimon_core.table.selection import Selection

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from paimon_core.inspect.html.render import notebook_html, rows_html
    from paimon_core.inspect.html.table_summary import name_of
    from paimon_core.inspect.system_tables.kind import SystemTableKind
    from paimon_core.inspect.system_tables.system_read import SystemRead
    from paimon_core.inspect.system_tables.table_registry import system_table_kind
else:
    notebook_html = deferred("paimon_core.inspect.html.render", "notebook_html")
    rows_html = deferred("paimon_core.inspect.html.render", "rows_html")
    name_of = deferred("paimon_core.inspect.html.table_summary", "name_of")
    SystemRead = deferred("paimon_core.inspect.system_tables.system_read", "SystemRead")
    system_table_kind = deferred("paimon_core.inspect.system_tables.table_registry", "system_table_kind")


_NOTEBOOK_ROWS = 20
_WITHOUT_VALUES = {"aggregation_fields", "branches", "consumers", "options", "schemas", "snapshots", "tags"}
"""The system tables that show no value of a row, nor a partition."""


class SystemTable(ReadableTable):
    """Rows about a table or a catalog. They can only be read.

    A filter on some columns skips reading: docs/reference/system-tables.md names them. The snapshot can be chosen
    where the rows are the rows of a snapshot.
    """

    def __init__(self, store: FileStore, kind: SystemTableKind) -> None:
        super().__init__(store)
        self.kind = kind
        """The columns, and the functions that read them."""

    def __reduce__(self) -> tuple[Callable[..., SystemTable], tuple[FileStore, SystemTableKind]]:
        """Pickle the store and the kind."""
        return SystemTable, (self._store, self.kind)

    @staticmethod
    def open(
        path: str,
        storage_options: Mapping[str, object] | None = None,
        options: Mapping[str, str] | None = None,
        branch: str | None = None,
    ) -> SystemTable:
        """Open a system table by its path, such as ``path$files``, or ``path$branch_b$files`` for a branch.

        Args:
            path: the directory of the table, a ``$`` and the name of the system table.
            storage_options: as for `Table.open`.
            options: dynamic options of the table, for this object only.
            branch: the branch of the table; `None`: the branch that the path names, else the main branch.

        Raises NotFoundError if ``path`` holds no table, InvalidInputError for a path without a system table, and for an
        unknown system table, with the nearest name.
        """
        location = TableLocation.parse(path)
        if location.system_table is None:
            raise InvalidInputError(f"{path!r} names no system table: append one, such as {path + '$files'!r}")
        store = FileStore.open(location.path, storage_options or {}, options or {}, location.chosen_branch(branch))
        return system_table_of(store, location.system_table)

    @property
    def location(self) -> TableLocation:
        """The directory, the branch and the name; its text opens the same system table again."""
        branch = self._store.branch
        return TableLocation(self.path, None if branch == MAIN_BRANCH else branch, self.kind.name)

    @property
    def schema(self) -> TableSchema:
        """The columns; a system table has no keys, partitions or options."""
        fields = self.kind.fields(self._store)
        return TableSchema(0, fields, highest_field_id=len(fields))

    def with_store(self, store: FileStore) -> Self:
        """Return the same system table over another form of the table's store, for engines."""
        return type(self)(store, self.kind)

    def read(
        self, columns: Sequence[str] | None = None, filter: Filter = None, **at: Unpack[TimeTravelArguments]
    ) -> SystemRead:
        """Return the read as a value, for engines: ``plan()`` returns parts, ``to_batches(part)`` reads one anywhere.

        Arguments as for `to_arrow`. Raises InvalidInputError for an argument that chooses a snapshot if the system
        table has no past.
        """
        return self._system_read(Selection.of(columns, filter, None, at))

    def schema_at(self, **at: Unpack[TimeTravelArguments]) -> TableSchema:
        """Return the columns at a snapshot. Raises as `read`."""
        return self.with_store(self._resolve(TimeTravel.of(at))[0]).schema

    def in_microseconds(self) -> SystemTable:
        """Return the table with the timestamps of its rows cut to microseconds, for engines without nanoseconds."""
        return self.with_store(self._store.in_microseconds()) if self.kind.of_rows else self

    # ---- inside

    def _read(self, selection: Selection) -> RepeatableRead:
        read = self._system_read(selection)
        return RepeatableRead(read.schema, lambda: selection.limited(_batches(read)))

    def _system_read(self, selection: Selection) -> SystemRead:
        if self.kind.name not in _WITHOUT_VALUES:
            self._store.check_unrestricted()
        store, snapshot = self._resolve(selection.at)
        schema = self.with_store(store).schema
        fields = project(schema, selection.columns)
        return SystemRead(self.kind, store, snapshot, fields, bound_filter(selection.filter, schema.fields))

    def _resolve(self, at: TimeTravel) -> tuple[FileStore, Snapshot | None]:
        if self.kind.travels:
            return TableReading(self._store).resolve(at)
        if at.argument is not None:
            raise InvalidInputError(f"{self.location} has no history: leave out {at.argument!r}")
        return self._store, None

    def _repr_html_(self) -> str | None:
        """Return the first rows for a notebook; `None` for the rows of data files, and without jinja2."""
        return None if self.kind.of_rows else notebook_html(name_of(self.location), self._first_rows)

    def _first_rows(self) -> str:
        table = self.to_arrow(limit=_NOTEBOOK_ROWS + 1)
        rows = [[str(value) for value in row.values()] for row in table.slice(0, _NOTEBOOK_ROWS).to_pylist()]
        return rows_html(name_of(self.location), table.column_names, rows, table.num_rows > _NOTEBOOK_ROWS)

    def __repr__(self) -> str:
        return f"SystemTable({hide_secrets(str(self.location))!r})"


def system_table_of(store: FileStore, name: str) -> SystemTable:
    """Return the system table of a table. Raises InvalidInputError, with the nearest name, for an unknown one."""
    branch = store.branch
    location = TableLocation(store.root, None if branch == MAIN_BRANCH else branch)
    return SystemTable(store, system_table_kind(name, f"{location}{SEPARATOR}{name}"))


def read_only(location: object) -> UnsupportedError:
    """Return the error for work on a system table that only a table can do."""
    return UnsupportedError(
        f"{location}: a system table can only be read; open it as a SystemTable, or change the table itself"
    )


def _batches(read: SystemRead) -> Iterator[pa.RecordBatch]:
    for part in read.plan():
        yield from read.to_batches(part)
