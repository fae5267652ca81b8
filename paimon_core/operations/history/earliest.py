"""The hint EARLIEST behind a gap of snapshots, which an interrupted or manual deletion has left (behaviour 12.2)."""

from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_core.store.file_store import FileStore


def repair_earliest_snapshot(store: FileStore, snapshot_id: int) -> tuple[int, int]:
    """Let the history begin at a snapshot that follows a gap; return the oldest snapshot before, and the one now.

    Only the hint EARLIEST is written, which other engines need: this one also finds the oldest snapshot without it. The
    snapshots before the gap stay until they expire. The oldest snapshot itself may be given: its hint is written again.

    Raises NotFoundError for a table without snapshots, InvalidInputError (nothing changed) for a snapshot that does not
    exist, and for one that follows another.
    """
    store.io.check_can_commit()
    ids, snapshots = store.snapshots.ids(), store.snapshots
    before = snapshots.earliest_id()
    if before is None:
        raise NotFoundError(f"{store.branch_root} has no snapshots")
    if snapshot_id not in ids or snapshot_id < before:
        known = [one for one in ids if one >= before and (one == before or one - 1 not in ids)]
        raise InvalidInputError(
            f"snapshot {snapshot_id} of {store.branch_root} does not exist: the history can begin at {known}"
        )
    if snapshot_id != before and snapshot_id - 1 in ids:
        raise InvalidInputError(
            f"snapshot {snapshot_id} of {store.branch_root} follows snapshot {snapshot_id - 1}, so that no gap is "
            "before it: to remove older snapshots, expire them"
        )
    if not snapshots.write_hint("EARLIEST", snapshot_id):
        raise OSError(f"the hint EARLIEST of {store.branch_root} cannot be written")
    return before, snapshot_id
