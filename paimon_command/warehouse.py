"""The argument that names a table, a database or a whole warehouse, and the states of its tables as an answer."""

from collections.abc import Mapping
from dataclasses import dataclass

from paimon_command.grid import readable_size
from paimon_command.location import catalog_of, directory_catalog, is_path, named_warehouse, storage_options
from paimon_command.output import Answer, Output
from paimon_core import Catalog
from paimon_core.engine import FileIO, WarehouseState, absolute, join, split_parts
from paimon_core.errors import NotFoundError, hide_secrets

_NO_TABLES = "(no tables)"
_SUFFIX = ".db"
_SCHEMA = "schema"


@dataclass(frozen=True, slots=True)
class TableGroup:
    """The tables of a database, or of all databases of a warehouse if ``database`` is `None`."""

    catalog: Catalog
    database: str | None

    def state(self) -> WarehouseState:
        """Return the states of the tables. Raises NotFoundError for a missing database or warehouse."""
        return self.catalog.state(self.database)


def table_group(text: str | None, warehouse: str | None, options: Mapping[str, str]) -> TableGroup | None:
    """Return the group of tables that an argument names; `None` if it names one table.

    Args:
        text: the argument: a directory, or the name of a database; `None`: the whole warehouse.
        warehouse: the directory of the databases; `None` if it is not set.
        options: options of the storage.

    Raises UsageError for `None` without a warehouse.
    """
    if text is None:
        return TableGroup(catalog_of(warehouse, options), None)
    if not is_path(text):
        is_name = named_warehouse(warehouse) is not None and "$" not in text and len(split_parts(text)) == 1
        return TableGroup(catalog_of(warehouse, options), split_parts(text)[0]) if is_name else None
    root = absolute(text).rstrip("/")
    io = FileIO.of(root, storage_options(options, root))
    if any(not entry.is_directory for entry in io.list(join(root, _SCHEMA))):
        return None
    names = [entry.name for entry in io.list(root) if entry.is_directory]
    parent, _, name = root.rpartition("/")
    if name.endswith(_SUFFIX) and name != _SUFFIX:
        return TableGroup(directory_catalog(parent, options), name.removesuffix(_SUFFIX))
    is_warehouse = any(entry.endswith(_SUFFIX) and entry != _SUFFIX for entry in names)
    return TableGroup(directory_catalog(text, options), None) if is_warehouse else None


def states_answer(state: WarehouseState, output: Output) -> Answer:
    """Return the states of tables: exact numbers as JSON, sizes and ages in words for people.

    The answer is a problem if a table has severe advice or cannot be read.
    """
    problem = bool(state.problems)
    if output.as_json:
        return Answer([one.to_dict() for one in state.tables], problem=problem)
    empty = {"table": _NO_TABLES, **dict.fromkeys(("stored_rows", "size", "history", "files"), "")}
    rows: list[dict[str, object]] = [
        {
            "database": one.database,
            "table": one.table,
            "stored_rows": one.stored_rows,
            "size": one.bytes,
            "history": one.history_text if one.history_complete is False else one.history_bytes,
            "files": one.files,
            "last_commit": one.committed_text(state.time_millis),
            "advice": one.advice_text,
        }
        for one in state.tables
    ]
    formats = {"size": readable_size, "history": readable_size}
    return Answer(rows, nulls=empty, formats=formats, problem=problem)


def check_has_database(catalog: Catalog, options: Mapping[str, str]) -> Answer | None:
    """Return the answer for a warehouse without databases; `None` if it has databases.

    The answer is a problem, unless the directory is empty. Raises NotFoundError for a missing directory.
    """
    if catalog.list_databases():
        return None
    root = catalog.warehouse
    if not catalog.in_directory:
        return Answer([], f"no database in {root}")
    io = FileIO.of(root, storage_options(options, root))
    if not io.exists(root):
        raise NotFoundError(f"there is no directory {root}")
    if io.list(root):
        return Answer([], "no database here; a warehouse holds directories such as shop.db", problem=True)
    return Answer([], f"no database in {hide_secrets(root)}")
