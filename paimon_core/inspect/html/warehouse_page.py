"""The state of all tables of a warehouse as values, which a notebook and a document show as one table."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paimon_core.inspect.advice.report import SEVERE
from paimon_core.inspect.html.fact_lines import SEVERITY_SYMBOLS, Tile
from paimon_core.inspect.html.render import notebook_html, warehouse_document, warehouse_html
from paimon_core.types.display import table_text
from paimon_core.types.human_text import age, count, moment, size

_NAMES = ("database", "table", "stored rows", "live", "history", "last commit", "advice")


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of a table, from metadata. `None`: unknown, or not applicable.

    Args:
        database: the name of the database.
        table: the name of the table; `None`: the database has no table.
        stored_rows: the rows of the newest snapshot, before merging.
        bytes: the bytes of its live files.
        history_bytes: the bytes of data files that the newest snapshot does not need.
        history_complete: False if a table has too many directories to list, so that there may be more such bytes.
        files: the number of live files.
        committed_ms: the time of the newest snapshot (epoch ms).
        severity: the severity of the most urgent advice; `None`: no advice.
        advice: the kind of this advice.
        error: the reason why the table cannot be read.
    """

    database: str
    table: str | None
    stored_rows: int | None = None
    bytes: int | None = None
    history_bytes: int | None = None
    history_complete: bool | None = None
    files: int | None = None
    committed_ms: int | None = None
    severity: str | None = None
    advice: str | None = None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name, as JSON values."""
        return asdict(self)

    @property
    def is_problem(self) -> bool:
        """True if the table has severe advice or cannot be read."""
        return self.severity == SEVERE or self.error is not None

    @property
    def symbol(self) -> str:
        """The style class of the symbol on a page."""
        if self.error is not None:
            return SEVERITY_SYMBOLS[SEVERE]
        return "good" if self.severity is None else SEVERITY_SYMBOLS[self.severity]

    @property
    def live_text(self) -> str:
        """The live bytes as text; empty if they are unknown."""
        return "" if self.bytes is None else size(self.bytes)

    @property
    def history_text(self) -> str:
        """The bytes of history as text; empty if they are unknown."""
        if self.history_bytes is None:
            return ""
        return size(self.history_bytes) if self.history_complete is not False else f">= {size(self.history_bytes)}"

    @property
    def advice_text(self) -> str:
        """The error or the most urgent advice as text; empty without both."""
        if self.error is not None:
            return f"cannot be read: {self.error}"
        return "" if self.advice is None else f"{self.severity}: {self.advice}"

    def committed_text(self, now: int) -> str:
        """Return the age of the last commit in words; empty without a commit. ``now``: epoch ms."""
        return "" if self.committed_ms is None else age(now - self.committed_ms)


@dataclass(frozen=True, slots=True, repr=False)
class WarehouseState:
    """The states of the tables of a warehouse or of a database. ``print`` and a notebook show them as a table.

    Args:
        name: the warehouse or the database, without passwords.
        tables: the states, ordered by database and table; a database without tables has a state without a table.
        left_out: the number of further tables, which were not read.
        time_millis: the time at which the tables were read (epoch ms).
    """

    name: str
    tables: tuple[TableState, ...]
    left_out: int
    time_millis: int

    @property
    def problems(self) -> tuple[TableState, ...]:
        """The tables that have severe advice or cannot be read."""
        return tuple(state for state in self.tables if state.is_problem)

    @property
    def by_urgency(self) -> tuple[TableState, ...]:
        """All states, with the problems first."""
        return (*self.problems, *(state for state in self.tables if not state.is_problem))

    @property
    def tiles(self) -> Sequence[Tile]:
        """The totals in the header of the page."""
        states = [state for state in self.tables if state.table is not None]
        number = len(states) + self.left_out
        tiles = [
            Tile(f"{number:,}", "table" if number == 1 else "tables", count(len(self._databases), "database")),
            Tile(size(sum(state.bytes or 0 for state in states)), "live"),
            Tile(size(sum(state.history_bytes or 0 for state in states)), "of history", "old snapshots, tags, orphans"),
        ]
        return [*tiles, Tile(f"{len(self.problems):,}", "with severe advice or an error")]

    @property
    def _databases(self) -> set[str]:
        return {state.database for state in self.tables}

    @property
    def made(self) -> str:
        """The time at which the tables were read, as text."""
        return moment(self.time_millis)

    def html(self) -> str:
        """Return the states as an HTML document without scripts. Raises MissingDependencyError without jinja2."""
        return warehouse_document(self)

    def write(self, file: str | Path) -> None:
        """Write the document to a local file. Errors: see `html`."""
        Path(file).write_text(self.html(), encoding="utf-8")

    def _repr_html_(self) -> str | None:
        return notebook_html(self.name, lambda: warehouse_html(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the table in IPython."""
        printer.text(str(self))

    def __repr__(self) -> str:
        number = sum(state.table is not None for state in self.tables) + self.left_out
        return f"WarehouseState({self.name!r}, {count(number, 'table')}, {count(len(self.problems), 'problem')})"

    def __str__(self) -> str:
        now = self.time_millis
        rows = [
            (s.database, s.table or "(no tables)", s.stored_rows, s.live_text, s.history_text, s.committed_text(now),
             s.advice_text)
            for s in self.tables
        ]  # fmt: skip
        if not rows:
            return f"{self.name}: no tables"
        more = [f"and {count(self.left_out, 'more table')}"] if self.left_out else []
        return "\n".join([table_text(_NAMES, rows), *more])
