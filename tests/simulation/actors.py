"""The operations of clients: what each calls, and which effect it declares before it calls.

An operation opens its table through the catalog, as a process of its own would. It asks the oracle which snapshots
exist, to choose one without a step.
"""

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from paimon_core.commit.commit_messages import commit_messages
from paimon_core.commit.idempotent import IdempotentCommits
from paimon_core.commit.retry import retry_on_conflict
from paimon_core.commit.schema_check import check_knows_columns
from paimon_core.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    InvalidInputError,
    NotFoundError,
    OutOfRangeError,
    PaimonError,
    UnsupportedError,
)
from paimon_core.schema.change import AddColumn, DropColumn, RenameColumn, SetOption
from paimon_core.snapshot.branches import branch_root
from paimon_core.snapshot.started_from import Guard, StartedFrom
from tests.simulation.effects import (
    Insert,
    Overwrite,
    OverwritePartition,
    Remove,
    Restore,
    Update,
    Upsert,
    column_id,
    shown,
)
from tests.simulation.oracle import STRUCTURAL, Record, Violation
from tests.simulation.plan import Op
from tests.simulation.readers import read, stream, travel
from tests.simulation.scheduler import START, Client, Killed, Stopped
from tests.simulation.tables import World, arrow, by_id

_REFUSALS = (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    NotFoundError,
    OutOfRangeError,
    UnsupportedError,
)
Run = Callable[["World", Op, Record], None]


# ---- rows


def write(world: World, op: Op, record: Record) -> None:
    """Append or upsert."""
    table = world.open(op, record)
    rows = world.rows(op, table.schema)
    record.effect = (Upsert if world.keyed else Insert)(by_id(rows, table.schema))
    table.write(arrow(rows, table))


def write_late(world: World, op: Op, record: Record) -> None:
    """A writer that commits its files some time later."""
    table = world.open(op, record)
    rows = world.rows(op, table.schema)
    record.effect = (Upsert if world.keyed else Insert)(by_id(rows, table.schema))
    with table.writer() as writer:
        writer.write(arrow(rows, table))
        messages = writer.prepare_commit()
    world.scheduler.wait(1 + int(op.pick * 60))
    table.committer().publisher.publish_or_delete(commit_messages, messages, started_from=writer.started_from)


def write_stale(world: World, op: Op, record: Record) -> None:
    """A write by a process that has opened the table some time before."""
    table = world.open(op, record)
    rows = world.rows(op, table.schema)
    record.effect = (Upsert if world.keyed else Insert)(by_id(rows, table.schema))
    world.scheduler.wait(1 + int(op.other * 100))
    table.write(arrow(rows, table))


def sink(world: World, op: Op, record: Record) -> None:
    """The next batch of a streaming sink, which repeats a batch until it is acknowledged."""
    client = world.scheduler.current
    number = world.numbers.get(client, 0)
    batch = world.sinks.get(client)
    table = world.open(op, record)
    if batch is None:
        batch = world.sinks[client] = record
        record.repeats = True
    added, names = getattr(batch.effect, "added", ()), {f.id: f.name for f in table.schema.fields}
    if all(key not in names for row in added for key, _ in row):  # a new batch, or a table that was replaced
        rows = world.rows(batch.op, table.schema)
        batch.effect = (Upsert if world.keyed else Insert)(by_id(rows, table.schema))
    else:
        rows = [{names[key]: value for key, value in row if key in names} for row in added]
    if batch is not record:
        batch.tables.update(record.tables)
        record.effect, record.repeats, record.applied = batch.effect, True, batch.applied
    user = f"sink-{client}"
    with table.writer(commit_user=user) as writer:
        writer.write(arrow(rows, table))
        messages = writer.prepare_commit()
    IdempotentCommits(table.store, user).commit(messages, number, started_from=writer.started_from)
    world.numbers[client] = number + 1
    del world.sinks[client]


def overwrite(world: World, op: Op, record: Record) -> None:
    """Replace all rows."""
    table = world.open(op, record)
    rows = world.rows(op, table.schema)
    record.effect = Overwrite(by_id(rows, table.schema))
    table.overwrite(arrow(rows, table))


def delete(world: World, op: Op, record: Record) -> None:
    """Delete rows by a filter."""
    table = world.open(op, record)
    ids = world.ids(world.oracle.line(table.path), op)
    record.effect = Remove(frozenset(ids))
    table.delete(f"id IN ({', '.join(map(str, ids))})")


def update_columns(world: World, op: Op, record: Record) -> None:
    """Change a column of some rows of a table with data evolution."""
    table = world.open(op, record)
    ids = world.ids(world.oracle.line(table.path), op)
    found = table.to_arrow(columns=["_ROW_ID", "id"], filter=f"id IN ({', '.join(map(str, ids))})")
    values = {one: f"{op.id}.u{one}" for one in found.column("id").to_pylist()}
    column = column_id(table.schema, "v")
    record.effect = Update(values, column)
    if values:
        new = pa.array([values[one] for one in found.column("id").to_pylist()])
        table.update_columns(pa.table({"_ROW_ID": found.column("_ROW_ID"), "v": new}))


def statement(world: World, op: Op, record: Record) -> None:
    """UPDATE of rows of a table with a primary key, as the connector does it: with the columns at its beginning."""
    if not world.keyed:
        return
    table, ids = world.open(op, record), world.ids(world.line(op.table), op)
    column = column_id(table.schema, "v")
    world.scheduler.wait(1 + int(op.other * 100))

    def run() -> None:
        snapshot = table.snapshot()
        check_knows_columns(table.store, snapshot)
        changed = [{**row, "v": f"{op.id}.s{row['id']}"} for row in world.rows_of(table, snapshot) if row["id"] in ids]
        record.effect = Update({row["id"]: row["v"] for row in changed}, column)
        if not changed:
            return
        with table.writer() as writer:
            writer.write(arrow(changed, table), ["+U"] * len(changed))
            messages = writer.prepare_commit()
        started_from = StartedFrom.of(snapshot, Guard.ROWS | Guard.KEYS).joined(writer.started_from)
        table.committer().publisher.publish_or_delete(commit_messages, messages, started_from=started_from)

    retry_on_conflict(run, 3)


def overwrite_partition(world: World, op: Op, record: Record) -> None:
    """Replace the rows of one partition."""
    table = world.open(op, record)
    rows = [row for row in world.rows(op, table.schema) if "p" in row]
    if rows:
        rows = [row for row in rows if row["p"] == rows[0]["p"]]
        record.effect = OverwritePartition(by_id(rows, table.schema), column_id(table.schema, "p"), rows[0]["p"])
        table.overwrite(arrow(rows, table), {"p": rows[0]["p"]})


def drop_partition(world: World, op: Op, record: Record) -> None:
    """Remove one partition."""
    table = world.open(op, record)
    if table.schema.partition_keys:
        number = int(op.pick * 2)
        record.effect = OverwritePartition((), column_id(table.schema, "p"), number)
        table.drop_partitions([{"p": number}])


# ---- files and snapshots


def compact(world: World, op: Op, record: Record) -> None:
    """Compact what is due."""
    world.open(op, record).compact()


def compact_fully(world: World, op: Op, record: Record) -> None:
    """Compact everything."""
    world.open(op, record).compact(full=True)


def expire(world: World, op: Op, record: Record) -> None:
    """Expire all snapshots but a few."""
    table = world.open(op, record)
    table.maintenance.expire_snapshots(older_than=world.scheduler.now, retain_max=1 + round(op.pick * 2), retain_min=1)


def orphans(world: World, op: Op, record: Record) -> None:
    """Remove orphan files that are older than every running operation."""
    table = world.open(op, record)
    oldest = min(one.begun for one in world.running.values())
    table.maintenance.remove_orphan_files(older_than=START + oldest - 1)


def rollback(world: World, op: Op, record: Record) -> None:
    """Make an older snapshot the newest one."""
    table = world.open(op, record)
    line = world.oracle.line(table.path)
    chosen = world.choose(line, op.pick)
    if chosen is None:
        return
    target = table.rollback_to(chosen)
    found = [
        moment
        for moment in line.during(record.begun, world.scheduler.time)
        for file in moment.newest
        if file is not None and world.oracle.snapshot(file).fingerprint == target.fingerprint
    ]
    if not found and not world.oracle.meets(record, STRUCTURAL):
        raise Violation(f"{record}: snapshot {target.id} was never the newest after a rollback to it")


def restore(world: World, op: Op, record: Record) -> None:
    """Make the rows of an older snapshot the newest ones."""
    _restore(world, op, record, wait=100)


def restore_late(world: World, op: Op, record: Record) -> None:
    """Restore with a table that was opened long before."""
    _restore(world, op, record, wait=600)


def _restore(world: World, op: Op, record: Record, wait: int) -> None:
    table = world.open(op, record)
    world.scheduler.wait(1 + int(op.other * wait))
    line = world.oracle.line(table.path)
    chosen = world.choose(line, 1 - op.pick / 3)
    if chosen is None:
        return
    record.effect = Restore((line.snapshots[chosen],))
    world.all_rows(table).restore(chosen)


def tag(world: World, op: Op, record: Record) -> None:
    """Tag a snapshot."""
    table = world.open(op, record)
    chosen = world.choose(world.oracle.line(table.path), op.pick)
    if chosen is not None:
        table.tags.create(f"tag{op.id}", chosen)


def delete_tag(world: World, op: Op, record: Record) -> None:
    """Delete a tag."""
    table = world.open(op, record)
    names = sorted(world.oracle.line(table.path).tags)
    if names:
        table.tags.delete(names[min(int(op.pick * len(names)), len(names) - 1)])


# ---- branches


def branch(world: World, op: Op, record: Record) -> None:
    """Create the branch ``b`` from a snapshot."""
    table = world.open(op, record)
    chosen = world.choose(world.oracle.line(table.path), op.pick)
    if chosen is not None:
        table.branches.create("b", snapshot_id=chosen)


def write_branch(world: World, op: Op, record: Record) -> None:
    """Write to the branch ``b``."""
    table = world.open(op, record, "b")
    rows = world.rows(op, table.schema)
    record.effect = (Upsert if world.keyed else Insert)(by_id(rows, table.schema))
    table.write(arrow(rows, table))


def delete_branch(world: World, op: Op, record: Record) -> None:
    """Delete the branch ``b``."""
    world.open(op, record).branches.delete("b")


def fast_forward(world: World, op: Op, record: Record) -> None:
    """Fast-forward the main branch to the branch ``b``. REQUIRES: no writer runs."""
    table = world.open(op, record)
    line, source = world.oracle.line(table.path), world.oracle.line(branch_root(table.path, "b"))
    table.branches.fast_forward("b")
    schema = world.oracle.newest_schema(source)
    assert schema is not None
    now, expected = world.oracle.rows(line.newest, schema), world.oracle.rows(source.newest, schema)
    if now != expected:
        raise Violation(f"{record}: {shown(now, schema)} after a fast-forward to {shown(expected, schema)}")


# ---- tables


def alter(world: World, op: Op, record: Record) -> None:
    """Add, rename or drop a column, or set an option."""
    table = world.open(op, record)
    extra = sorted(f.name for f in table.schema.fields if f.name.startswith("x"))
    change: Any = AddColumn(f"x{op.id}", "INT")
    if op.pick > 0.5 and extra:
        change = RenameColumn(extra[0], f"x{op.id}") if op.other > 0.5 else DropColumn(extra[0])
    elif op.pick > 0.8:
        change = SetOption("manifest.merge-min-count", str(2 + int(op.other * 4)))
    table.alter([change])


def replace_table(world: World, op: Op, record: Record) -> None:
    """CREATE OR REPLACE TABLE AS SELECT."""
    staged = world.catalog.stage_table(f"db.{op.table}", world.schema(), replace_existing=True)
    if staged.replaced is not None:
        record.tables[world.root(op.table)] = world.line(op.table).table
    try:
        rows = world.rows(op, staged.table.schema)
        record.effect = Overwrite(by_id(rows, staged.table.schema))
        staged.table.write(arrow(rows, staged.table))
        staged.publish()
    except Exception:
        staged.discard()
        raise


def create(world: World, op: Op, record: Record) -> None:
    """Create the table."""
    world.catalog.create_table(f"db.{op.table}", world.schema())
    line = world.line(op.table)
    if not any(moment.alive for moment in line.during(record.begun, world.scheduler.time)):
        raise Violation(f"{record}: the table was created, and is not there")


def drop(world: World, op: Op, record: Record) -> None:
    """Drop the table."""
    line = world.line(op.table)
    table = line.table
    try:
        world.catalog.drop_table(f"db.{op.table}")
    finally:
        if table and line.table == table and line.root in record.lines and not isinstance(record.error, Stopped):
            record.note = "half dropped"
    if not world.oracle.was_dead(world.root(op.table), record.begun):
        raise Violation(f"{record}: the table was dropped, and is there")


def rename(world: World, op: Op, record: Record) -> None:
    """Give the table the name ``u``, or back."""
    names = ("t", "u") if world.line("t").schemas else ("u", "t")
    source, target = world.line(names[0]), world.line(names[1])
    record.tables[source.root] = source.table
    world.catalog.rename_table(f"db.{names[0]}", f"db.{names[1]}")
    schema = world.oracle.newest_schema(target)
    if schema is None:
        if not world.oracle.meets(record, ("rename", "drop")):
            raise Violation(f"{record}: the renamed table is not there")
        return
    before = world.oracle.states(source.root, record.begun, schema)
    if not any(now in before for now in world.oracle.states(target.root, record.begun, schema)):
        now = world.oracle.rows(target.newest, schema)
        raise Violation(f"{record}: the renamed table has the rows {shown(now, schema)}")


def clone(world: World, op: Op, record: Record) -> None:
    """Copy the table."""
    source = world.line(op.table)
    world.catalog.clone(f"db.{op.table}", world.catalog, f"db.c{op.id}")
    copy = world.line(f"c{op.id}")
    schema = world.oracle.newest_schema(copy)
    assert schema is not None
    now = world.oracle.rows(copy.newest, schema)
    if now not in world.oracle.states(source.root, record.begun, schema):
        raise Violation(f"{record}: the copy has the rows {shown(now, schema)}")


KINDS: Final[dict[str, Run]] = {
    "alter": alter,
    "branch": branch,
    "clone": clone,
    "compact": compact,
    "compact_fully": compact_fully,
    "create": create,
    "delete": delete,
    "delete_branch": delete_branch,
    "delete_tag": delete_tag,
    "drop": drop,
    "drop_partition": drop_partition,
    "expire": expire,
    "fast_forward": fast_forward,
    "orphans": orphans,
    "overwrite": overwrite,
    "overwrite_partition": overwrite_partition,
    "read": read,
    "rename": rename,
    "replace": replace_table,
    "restore": restore,
    "restore_late": restore_late,
    "rollback": rollback,
    "sink": sink,
    "statement": statement,
    "stream": stream,
    "tag": tag,
    "travel": travel,
    "update_columns": update_columns,
    "write": write,
    "write_branch": write_branch,
    "write_late": write_late,
    "write_stale": write_stale,
}
_CHANGING = frozenset(KINDS) - {"alter", "delete_tag", "read", "stream", "tag", "travel"}
_MOVES = frozenset({"drop", "rename", "fast_forward", "replace", "clone", "delete_branch", "branch"})


def perform(world: World, client: Client, op: Op) -> None:
    """Run one operation, and let the oracle check it."""
    record = Record(op, world.scheduler.time)
    world.oracle.begin(record)
    world.running[client.number] = record
    try:
        KINDS[op.kind](world, op, record)
        record.outcome = "ok"
    except (Violation, Stopped):
        raise
    except (CommitUnknownError, Killed) as error:
        record.outcome, record.error = "unknown", error
    except (PaimonError, OSError) as error:
        record.outcome, record.error = "refused", error
        _check_error(world, record, error, client.faults)
    finally:
        record.faults = client.faults
        del world.running[client.number]
    world.oracle.end(record)
    _check_visible(world, record)


def _check_visible(world: World, record: Record) -> None:
    """Check that the rows of a write show, if nothing else still runs that changes rows or files.

    With deletion vectors, rows of a table with a primary key show when they are compacted, which a write does.
    """
    writes = record.op.kind in ("write", "write_stale") and record.outcome == "ok" and not record.faults
    running = any(one.ended is None and one.op.kind in _CHANGING for one in world.oracle.records.values())
    if not (world.keyed and writes) or running:
        return
    line = world.line(record.op.table)
    schema, newest = world.oracle.newest_schema(line), line.sound
    if schema is None or newest is None:
        return
    text = next(f.id for f in schema.fields if f.name == "v")
    hidden = world.oracle.hidden(newest, schema)
    if any(str(dict(row)[text]).partition(".")[0] == str(record.op.id) for row in hidden):
        raise Violation(f"{record}: acknowledged, and hidden until somebody compacts")


def _check_error(world: World, record: Record, error: Exception, faults: int) -> None:
    """Raise a Violation for an error that nothing explains."""
    if isinstance(error, _REFUSALS) or (faults and isinstance(error, OSError)):
        return
    if world.oracle.meets(record, _MOVES) or record.op.kind in _MOVES:
        return
    raise Violation(f"{record}: {type(error).__name__}: {error}") from error
