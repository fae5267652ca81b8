"""Read the states of the tables of a catalog, several tables at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from paimon_core.catalog.identifier import Identifier
from paimon_core.errors import NotFoundError, PaimonError, hide_secrets
from paimon_core.fileio.fileio import FileIO
from paimon_core.fileio.parallel import parallel_map
from paimon_core.fileio.paths import scheme_of
from paimon_core.lazy import deferred
from paimon_core.store.file_store import now_millis
from paimon_core.table import Table

if TYPE_CHECKING:
    from paimon_core.inspect.advice.advise import overview
    from paimon_core.inspect.html.render import notebook_html, warehouse_html
    from paimon_core.inspect.html.warehouse_page import TableState, WarehouseState
else:
    overview = deferred("paimon_core.inspect.advice.advise", "overview")
    notebook_html = deferred("paimon_core.inspect.html.render", "notebook_html")
    warehouse_html = deferred("paimon_core.inspect.html.render", "warehouse_html")
    TableState = deferred("paimon_core.inspect.html.warehouse_page", "TableState")
    WarehouseState = deferred("paimon_core.inspect.html.warehouse_page", "WarehouseState")

_LOCAL_THREADS, _REMOTE_THREADS = 2, 32  # tables at a time: a local disk needs the processor, a store its latency
_MOST_SHOWN = 100  # tables whose states a notebook shows


class CatalogState(ABC):
    """The states of the tables of a catalog, and its display in a notebook."""

    in_directory: ClassVar[bool] = True
    """True if the warehouse is a directory; False: the name of the catalog on a server."""
    warehouse: str
    storage_options: dict[str, object]

    @abstractmethod
    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted."""

    @abstractmethod
    def list_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database, sorted."""

    @abstractmethod
    def table(self, identifier: str | Identifier) -> Table:
        """Open a table and return it."""

    def state(self, database: str | None = None, most: int | None = None) -> WarehouseState:
        """Return the size, the last commit and the most urgent advice of each table, to print or to show in a notebook.

        Reads metadata only; a table that cannot be read has its error. Cost and memory: see `table_states`.

        Args:
            database: the only database to read; `None`: all.
            most: the most tables to read; `None`: all.

        Raises NotFoundError for a missing database or warehouse.
        """
        root = self.warehouse
        if database is None and self.in_directory and not FileIO.of(root, self.storage_options).exists(root):
            raise NotFoundError(f"there is no directory {hide_secrets(root)}")
        names: list[tuple[str, str | None]] = []
        for name in self.list_databases() if database is None else [database]:
            names += [(name, table) for table in self.list_tables(name)] or [(name, None)]
        local = self.in_directory and scheme_of(root) == "file"
        states = tuple(table_states(self.table, names[:most], local=local))
        title = root if database is None else f"{root}: {database}"
        left_out = 0 if most is None else max(0, len(names) - most)
        return WarehouseState(hide_secrets(title), states, left_out, now_millis())

    def _repr_html_(self) -> str | None:
        """Return the states of the first 100 tables for a notebook, or an error instead; `None` without jinja2."""
        return notebook_html(hide_secrets(self.warehouse), lambda: warehouse_html(self.state(most=_MOST_SHOWN)))


def table_states(
    opened: Callable[[Identifier], Table], names: Sequence[tuple[str, str | None]], *, local: bool
) -> Iterator[TableState]:
    """Yield the state of each table, in the order of the names. A table that cannot be read has an error instead.

    Reads the newest snapshot of each table, its manifests and the metadata that advice needs, and lists the directories
    of its buckets. Memory: about 200 bytes for each live file of the tables that are read at a time.

    Args:
        opened: opens a table.
        names: databases and tables; the table `None`: a database without tables.
        local: True for a local disk.
    """
    threads = _LOCAL_THREADS if local else _REMOTE_THREADS
    return parallel_map(lambda name: _state(opened, *name, local=local), names, threads=threads)


def _state(opened: Callable[[Identifier], Table], database: str, name: str | None, *, local: bool) -> TableState:
    if name is None:
        return TableState(database, None)
    try:
        return _measured(database, name, opened(Identifier(database, name)), local=local)
    except (PaimonError, OSError) as error:
        return TableState(database, name, error=hide_secrets(f"{type(error).__name__}: {error}"))


def _measured(database: str, name: str, table: Table, *, local: bool) -> TableState:
    """Return the numbers of the newest snapshot of a table, and its most urgent advice."""
    measured = overview(table.store, threads=1 if local else None)
    snapshot, worst = measured.snapshot, next(iter(measured.advice), None)
    return TableState(
        database,
        name,
        stored_rows=0 if snapshot is None else snapshot.total_record_count,
        bytes=measured.bytes,
        history_bytes=measured.history.bytes,
        history_complete=measured.history.complete,
        files=measured.files,
        committed_ms=None if snapshot is None else snapshot.time_millis,
        severity=None if worst is None else worst.severity,
        advice=None if worst is None else worst.kind,
    )
