"""Open the table or the system table that a path names, for the catalog and for engines."""

from collections.abc import Mapping
from typing import TypeAlias

from paimon_core.store.location import READ_OPTIMIZED, TableLocation
from paimon_core.table.system_table import SystemTable, system_table_of
from paimon_core.table.table import Table

AnyTable: TypeAlias = Table | SystemTable
"""The kinds of tables that a path or a catalog name can open."""


def open_any(
    path: str,
    storage_options: Mapping[str, object] | None = None,
    options: Mapping[str, str] | None = None,
    branch: str | None = None,
) -> AnyTable:
    """Open the table, the view or the system table that a path names. Arguments and errors as for `Table.open`."""
    if TableLocation.parse(path).system_table in (None, READ_OPTIMIZED):
        return Table.open(path, storage_options, options, branch)
    return SystemTable.open(path, storage_options, options, branch)


def viewed(table: Table, view: str | None) -> AnyTable:
    """Return a view or a system table of a table; `None`: the table itself.

    Raises InvalidInputError, naming the nearest system table, for an unknown one.
    """
    if view is None:
        return table
    return table.read_optimized() if view == READ_OPTIMIZED else system_table_of(table.store, view)
