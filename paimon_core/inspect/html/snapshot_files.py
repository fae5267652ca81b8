"""The files and bytes that the last snapshots added and removed, from their delta manifests."""

from collections.abc import Sequence
from dataclasses import dataclass

from paimon_core.errors import PaimonError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.entry import ADD
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.human_text import count

MOST_ENTRIES = 20_000
"""The most manifest entries that `changed_bytes` reads."""


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The numbers of files that a snapshot added and removed, and the manifests that list these files."""

    added: int
    removed: int
    manifests: tuple[ManifestFileMeta, ...]

    def __str__(self) -> str:
        return f"+{count(self.added, 'file')}, -{count(self.removed, 'file')}"


def file_changes(store: FileStore, snapshot: Snapshot) -> FileChanges | None:
    """Return the changes of a snapshot from its delta manifest list; `None` if the list cannot be read."""
    try:
        metas = store.manifests.read_list(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
    except (PaimonError, OSError):  # expiry may have deleted the list of an old snapshot
        return None
    return FileChanges(sum(m.num_added_files for m in metas), sum(m.num_deleted_files for m in metas), tuple(metas))


def changed_bytes(store: FileStore, changes: Sequence[FileChanges | None]) -> list[int | None]:
    """Return the change of the live bytes of each snapshot; `None`: not read.

    Reads the manifests of the newest snapshots first, up to `MOST_ENTRIES` entries.

    Args:
        store: the table.
        changes: the changes of consecutive snapshots, oldest first; `None`: unknown.
    """
    chosen: list[FileChanges] = []
    entries = 0
    for change in reversed(changes):
        if change is None or (entries := entries + change.added + change.removed) > MOST_ENTRIES:
            break
        chosen.append(change)
    net = list(parallel_map(lambda change: _net_bytes(store, change), chosen))
    return [None] * (len(changes) - len(net)) + net[::-1]


def _net_bytes(store: FileStore, changes: FileChanges) -> int | None:
    try:
        return sum(
            entry.file.file_size if entry.kind == ADD else -entry.file.file_size
            for meta in changes.manifests
            for entry in store.manifests.read(meta.file_name, meta.file_size, with_stats=False)
        )
    except (PaimonError, OSError):  # expiry may have deleted a manifest of an old snapshot
        return None
