"""The state of all tables of a warehouse: rows, size, last commit and worst advice."""

from collections.abc import Sequence
from typing import Any

from paimon_core import FileSystemCatalog, Table
from paimon_core.engine import SEVERE, Identifier, overview, parallel_map, scheme_of
from paimon_core.errors import PaimonError, hide_secrets
from paimon_core.types.human_text import age

_LOCAL_THREADS, _REMOTE_THREADS = 2, 32  # tables at a time: a local disk needs the processor, a store its latency


def table_states(catalog: FileSystemCatalog, names: Sequence[tuple[str, str | None]]) -> list[dict[str, Any]]:
    """Return a row for each table: stored rows, bytes, files, last commit, and the most urgent advice.

    Only metadata is read. A table that cannot be read has an ``error`` instead.

    Args:
        catalog: the warehouse.
        names: databases and tables; the table `None`: a database without tables.
    """
    threads = _LOCAL_THREADS if scheme_of(catalog.warehouse) == "file" else _REMOTE_THREADS
    return list(parallel_map(lambda name: _state(catalog, *name), names, threads=threads))


def has_problem(states: Sequence[dict[str, Any]]) -> bool:
    """Return True if a table has severe advice or cannot be read."""
    return any(state["severity"] == SEVERE or state["error"] is not None for state in states)


def for_people(state: dict[str, Any], now: int) -> dict[str, object]:
    """Return the row of a table with the age of its last commit in words.

    Args:
        state: a row of `table_states`.
        now: the present time (epoch ms).
    """
    committed, advice = state["committed_ms"], state["advice"]
    text = f"{state['severity']}: {advice}" if advice is not None else ""
    return {
        "database": state["database"],
        "table": state["table"],
        "stored_rows": state["stored_rows"],
        "size": state["bytes"],
        "files": state["files"],
        "last_commit": "" if committed is None else age(now - committed),
        "advice": text if state["error"] is None else f"cannot be read: {state['error']}",
    }


def _state(catalog: FileSystemCatalog, database: str, name: str | None) -> dict[str, Any]:
    state: dict[str, Any] = {"database": database, "table": name}
    state |= dict.fromkeys(("stored_rows", "bytes", "files", "committed_ms", "severity", "advice", "error"))
    if name is None:
        return state
    try:
        return state | _measured(catalog.table(Identifier(database, name)))
    except (PaimonError, OSError) as error:
        return {**state, "error": hide_secrets(f"{type(error).__name__}: {error}")}


def _measured(table: Table) -> dict[str, Any]:
    """Return the numbers of the newest snapshot of a table, and its most urgent advice."""
    measured = overview(table.store)
    snapshot, worst = measured.snapshot, next(iter(measured.advice), None)
    return {
        "stored_rows": 0 if snapshot is None else snapshot.total_record_count,
        "bytes": measured.bytes,
        "files": measured.files,
        "committed_ms": None if snapshot is None else snapshot.time_millis,
        "severity": None if worst is None else worst.severity,
        "advice": None if worst is None else worst.kind,
    }
