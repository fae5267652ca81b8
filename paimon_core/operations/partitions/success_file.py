"""Files ``_SUCCESS`` for schedulers of other systems: when something was complete first, and last."""

import json

from paimon_core.snapshot.snapshot import load_object
from paimon_core.store.file_store import FileStore

_CREATED, _MODIFIED = "creationTime", "modificationTime"


def write_success_file(store: FileStore, path: str) -> None:
    """Create a success file; one that exists keeps its time of creation."""
    now = store.now()
    try:
        created = load_object(store.io.read(path), path).get(_CREATED)
    except FileNotFoundError:
        created = now
    times = {_CREATED: created if isinstance(created, int) else now, _MODIFIED: now}
    store.io.write(path, json.dumps(times).encode())
