"""Repair the hint EARLIEST after an interrupted or manual deletion left a gap between snapshots (behaviour 12.2)."""

from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_core.store.file_store import FileStore


def repair_earliest_snapshot(store: FileStore, snapshot_id: int) -> tuple[int, int]:
    """Make a snapshot after a gap the earliest one; return the previous and the new earliest snapshot id.

    Only the hint EARLIEST is written. Other engines need it; this engine finds the earliest snapshot without it. The
    snapshots before the gap stay until they expire. For the current earliest snapshot the hint is written again.

    Raises NotFoundError for a table without snapshots; InvalidInputError (nothing changed) for a snapshot that does not
    exist or that directly follows another snapshot.
    """
    store.io.check_can_commit()
    ids, snapshots = store.snapshots.ids(), store.snapshots
    before = snapshots.earliest_id()
    if before is None:
        raise NotFoundError(f"{store.branch_root} has no snapshots")
    if snapshot_id not in ids or snapshot_id < before:
        starts = [number for number in ids if number >= before and (number == before or number - 1 not in ids)]
        raise InvalidInputError(
            f"snapshot {snapshot_id} of {store.branch_root} does not exist: the history can begin at {starts}"
        )
    if snapshot_id != before and snapshot_id - 1 in ids:
        raise InvalidInputError(
            f"snapshot {snapshot_id} of {store.branch_root} follows snapshot {snapshot_id - 1} without a gap: to "
            "remove older snapshots, expire them"
        )
    if not snapshots.write_hint("EARLIEST", snapshot_id):
        raise OSError(f"the hint EARLIEST of {store.branch_root} cannot be written")
    return before, snapshot_id
