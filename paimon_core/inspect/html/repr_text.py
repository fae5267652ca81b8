"""What the repr of a table says: one line of a few metadata, in a short time and whatever the store does."""

from collections.abc import Callable
from threading import Thread

from paimon_core.inspect.html.file_sums import number_of_files
from paimon_core.inspect.html.section import Section, attempt
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.human_text import count, printable, short

_SECONDS = 2.0
_ERROR = 200  # characters


def summary(travel: Callable[[], tuple[FileStore, Snapshot | None]]) -> str:
    """Return a table as text: ``snapshot 3, 5 rows stored in 2 files, schema 0``, or why it cannot be read.

    Reads the snapshot and its lists of manifests. A store that does not answer in two seconds is left alone. Never
    raises.

    Args:
        travel: returns the table and its snapshot; `None`: it has none.
    """
    found: list[Section[str]] = []
    worker = Thread(target=lambda: found.append(attempt(lambda: _facts(*travel()))), daemon=True)
    try:
        worker.start()
        worker.join(_SECONDS)
    except RuntimeError:  # no thread starts while the interpreter ends
        return "not read"
    if not found:
        return f"the store has not answered in {_SECONDS:g} seconds"
    return found[0].value or short(printable(found[0].error or ""), _ERROR)


def _facts(store: FileStore, snapshot: Snapshot | None) -> str:
    schema = f"schema {store.schema.id}"
    if snapshot is not None:
        rows = "unknown rows" if snapshot.total_record_count is None else count(snapshot.total_record_count, "row")
        files = count(number_of_files(store, snapshot), "file")
        return f"snapshot {snapshot.id}, {rows} stored in {files}, {schema}"
    return f"no snapshot, {schema}"
