"""Files ``_SUCCESS`` for external schedulers, with the first and the last time of completion."""

import json

from paimon_core.snapshot.snapshot import load_object
from paimon_core.store.file_store import FileStore

_CREATED, _MODIFIED = "creationTime", "modificationTime"


def write_success_file(store: FileStore, path: str) -> None:
    """Create or update a success file; an existing file keeps its creation time."""
    now = store.now()
    try:
        created = load_object(store.io.read(path), path).get(_CREATED)
    except FileNotFoundError:
        created = now
    times = {_CREATED: created if isinstance(created, int) else now, _MODIFIED: now}
    store.io.write(path, json.dumps(times).encode())
