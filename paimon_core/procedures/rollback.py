"""Procedures that make an older snapshot the newest one."""

from paimon_core.errors import InvalidInputError
from paimon_core.operations.compaction.restore import restore
from paimon_core.operations.history.rollback import newest_at, newest_with_watermark, rollback_target
from paimon_core.operations.history.rollback import rollback as run_rollback
from paimon_core.procedures.procedure import Call, Rows, procedure
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.table import Table

_IDS = "previous_snapshot_id BIGINT, current_snapshot_id BIGINT"


@procedure("rollback(table STRING, [version STRING], [snapshot BIGINT], [tag STRING])", _IDS)
def rollback(call: Call) -> Rows:
    """Roll back to a snapshot or a tag; version can be either. Newer snapshots and their tags are lost."""
    targets = [name for name in ("version", "snapshot", "tag") if call[name] is not None]
    if len(targets) != 1:
        raise InvalidInputError(f"rollback needs one of version, snapshot and tag, found {targets or 'none of them'}")
    table = call.table()
    if targets == ["tag"]:
        return _done(call, table, table.tags.get(call["tag"]).snapshot)
    version = call[targets[0]]
    return _done(call, table, rollback_target(table.store, version))


@procedure("rollback_to_timestamp(table STRING, timestamp BIGINT)", _IDS)
def rollback_to_timestamp(call: Call) -> Rows:
    """Roll back to the newest snapshot at or before a time (epoch milliseconds)."""
    table = call.table()
    return _done(call, table, newest_at(table.store, call["timestamp"]))


@procedure("rollback_to_watermark(table STRING, watermark BIGINT)", _IDS)
def rollback_to_watermark(call: Call) -> Rows:
    """Roll back to the newest snapshot whose watermark is at most a number."""
    table = call.table()
    return _done(call, table, newest_with_watermark(table.store, call["watermark"]))


@procedure(
    "rollback_to_as_latest(table STRING, [tag STRING], [snapshot_id BIGINT])",
    "previous_snapshot_id BIGINT, rolled_back_snapshot_id BIGINT, current_snapshot_id BIGINT",
)
def rollback_to_as_latest(call: Call) -> Rows:
    """Publish the rows of a snapshot or a tag as a new snapshot, keeping all snapshots and tags."""
    targets = [name for name in ("tag", "snapshot_id") if call[name] is not None]
    if len(targets) != 1:
        raise InvalidInputError(f"rollback_to_as_latest needs one of tag and snapshot_id, found {targets or 'none'}")
    store = call.table().store
    target = store.snapshots.get(call["snapshot_id"]) if call["tag"] is None else store.tags.get(call["tag"]).snapshot
    before, now = restore(store, target)
    call.refresh()
    return [(before.id, target.id, now.id)]


def _done(call: Call, table: Table, target: Snapshot) -> Rows:
    before, now = run_rollback(table.store, target)
    call.refresh()
    return [(before.id, now.id)]
