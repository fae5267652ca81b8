"""The `repr` of a table: one line of metadata, within a time limit even if the store does not answer."""

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

    Reads the snapshot and its manifest lists. Gives up if the store does not answer within two seconds. Never raises.

    Args:
        travel: returns the table and its snapshot (`None` if the table has no snapshot).
    """
    sections: list[Section[str]] = []
    worker = Thread(target=lambda: sections.append(attempt(lambda: _facts(*travel()))), daemon=True)
    try:
        worker.start()
        worker.join(_SECONDS)
    except RuntimeError:  # no thread starts while the interpreter ends
        return "not read"
    if not sections:
        return f"the store has not answered in {_SECONDS:g} seconds"
    return sections[0].value or short(printable(sections[0].error or ""), _ERROR)


def _facts(store: FileStore, snapshot: Snapshot | None) -> str:
    schema = f"schema {store.schema.id}"
    if snapshot is not None:
        rows = "unknown rows" if snapshot.total_record_count is None else count(snapshot.total_record_count, "row")
        files = count(number_of_files(store, snapshot), "file")
        return f"snapshot {snapshot.id}, {rows} stored in {files}, {schema}"
    return f"no snapshot, {schema}"
