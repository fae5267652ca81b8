"""Checks of the state after all operations of a history have ended."""

from itertools import pairwise

import pyarrow as pa

from paimon_core.errors import PaimonError, TableChangedError
from paimon_core.schema.schemas import Schemas
from paimon_core.store.current_schema import current_schema
from paimon_core.store.drop import STAGED
from paimon_core.table import Table
from tests.simulation.actors import perform
from tests.simulation.effects import Insert, Upsert, shown
from tests.simulation.oracle import Line, Record, Violation
from tests.simulation.plan import Op
from tests.simulation.scheduler import Client
from tests.simulation.store import File
from tests.simulation.tables import World, arrow, by_id
from tests.support.timeline import all_files, needed_files

_DAYS = 2 * 24 * 3_600_000
_BRANCHING = frozenset({"branch", "delete_branch", "replace"})
_OWN = ("/schema/", "/snapshot/", "/tag/", "/consumer/", "/intent/", "/changelog/")


def check_end(world: World) -> None:
    """Check every table, as a client that is alone."""
    world.scheduler.run([lambda client: _check(world, client)])


def _check(world: World, client: Client) -> None:
    world.scheduler.begin(0)
    tables = world.catalog.list_tables("db")
    for name in tables:
        world.scheduler.begin(0)
        _restore_taken(world)
        if current_schema(Schemas(world.catalog._io, world.catalog.location(f"db.{name}"))) is None:
            world.catalog.drop_table(f"db.{name}")  # a clone that was interrupted before it had rows
        else:
            _check_table(world, client, name)
    for line in list(world.oracle.lines.values()):
        if line.snapshots and not line.schemas and not line.unseen:
            raise Violation(f"{line.root} has the snapshots {sorted(line.snapshots)} and no schema")


def _check_table(world: World, client: Client, name: str) -> None:
    try:
        table = world.catalog.table(f"db.{name}")
        lines = list(world.oracle.lines.values())
        _finish_rollback(world, table)
        _delete_half_branches(world, table)
        for _ in range(2):
            _check_sound(table, broken=any(line.broken & _numbers(line) for line in lines))
            _check_readable(world, table)
            _check_written(world, client, name)
            world.scheduler.begin(0)
        world.scheduler.time += _DAYS
        table.maintenance.remove_orphan_files(older_than=world.scheduler.now)
        _check_files(table)
        _check_readable(world, table)
    except (PaimonError, OSError) as error:
        raise Violation(f"at the end: {type(error).__name__}: {error}") from error


def _restore_taken(world: World) -> None:
    """Restore the only snapshot of a table, as a person would, if an expiry was killed when it had to put it back."""
    for record in world.oracle.records.values():
        for line, file, _ in record.taken if record.outcome != "ok" else ():
            if line.alive and not line.snapshots:
                number = world.oracle.snapshot(file).id
                world.catalog._io.write(f"{line.root}/snapshot/snapshot-{number}", file.data)


def _finish_rollback(world: World, table: Table) -> None:
    """Roll back once more, as errors advise, if a rollback was killed between the deletions of two snapshots."""
    if any(one.op.kind == "rollback" and one.outcome == "unknown" for one in world.oracle.records.values()):
        for before, after in pairwise(table.store.snapshots.ids()):
            if after != before + 1:
                table.rollback_to(before)
                return


def _delete_half_branches(world: World, table: Table) -> None:
    """Delete what operations that failed have left of branches, and of tables that were being replaced."""
    hurt = any(one.faults or one.outcome != "ok" for one in world.oracle.records.values() if one.op.kind in _BRANCHING)
    for name in table.branches.list() if hurt else ():
        if name.startswith(STAGED) or not table.branches._is_whole(name):
            table.branches.delete(name)


def _numbers(line: Line) -> set[int]:
    return {file.number for file in line.snapshots.values()}


def _check_sound(table: Table, *, broken: bool) -> None:
    """Verify a table. A hint may name a snapshot that has expired: the process that was to replace it has died."""
    faults = [fault for fault in table.verify().faults if fault.kind != "wrong-hint" or not _is_late(table, fault.path)]
    if broken:  # left by a publisher that died: a later commit will take its id
        faults = [fault for fault in faults if fault.kind not in ("wrong-parent", "missing-snapshot")]
    if faults:
        raise Violation("at the end: " + "; ".join(map(str, faults)))


def _is_late(table: Table, path: str) -> bool:
    ids = [snapshot.id for snapshot in table.snapshots()]
    return bool(ids) and int(table.store.io.read(path)) <= ids[0]


def _check_readable(world: World, table: Table) -> None:
    """Read each snapshot and tag of each branch, and compare it with what it was when it was made."""
    for branch in ("main", *table.branches.list()):
        opened = table if branch == "main" else Table.open(f"{table.path}$branch_{branch}")
        opened = world.all_rows(opened)
        line = world.oracle.line(opened.store.branch_root)
        for number in sorted(line.snapshots):
            _compare(world, line, f"snapshot {number}", opened.to_arrow(snapshot_id=number), line.snapshots[number])
        for name in sorted(line.tags):
            _compare(world, line, f"tag {name}", opened.to_arrow(tag=name), line.tags[name])


def _compare(world: World, line: Line, what: str, rows: pa.Table, file: File) -> None:
    oracle = world.oracle
    schemas = oracle._origin[file.number][1]
    schema = oracle.schema(schemas[oracle.snapshot(file).schema_id])
    found, expected = list(by_id(rows.to_pylist(), schema)), oracle.own_rows(file)
    if found != expected:
        texts = shown(found, schema), shown(expected, schema)
        raise Violation(f"at the end: {what} of {line.root} shows {texts[0]}, not {texts[1]}")


def _check_written(world: World, client: Client, name: str) -> None:
    """Write; a replacement that was interrupted is repeated before."""
    interrupted = any(one.op.kind == "replace" and one.outcome != "ok" for one in world.oracle.records.values())
    try:
        _check_writable(world, client, name)
    except TableChangedError:
        if not interrupted:
            raise
        op = Op(80_000 + len(world.oracle.records), "replace", name)
        world.scheduler.begin(op.id)
        perform(world, client, op)
        _check_writable(world, client, name)


def _check_writable(world: World, client: Client, name: str) -> None:
    """Write once more, and look."""
    op = Op(90_000 + len(world.oracle.records), "write", name)
    world.scheduler.begin(op.id)
    record = Record(op, world.scheduler.time)
    world.oracle.begin(record)
    table = world.open(op, record)
    rows = world.rows(op, table.schema)
    record.effect = (Upsert if world.keyed else Insert)(by_id(rows, table.schema))
    table.write(arrow(rows, table))
    record.outcome = "ok"
    world.oracle.end(record)
    found = by_id(world.all_rows(table).to_arrow().to_pylist(), table.schema)
    if list(found) != world.oracle.rows(world.oracle.line(table.path).newest, table.schema):
        raise Violation(f"at the end: {shown(found, table.schema)} is read after a write")


def _check_files(table: Table) -> None:
    store = table.store
    found = {path for path in all_files(store.io, store.root) if not any(part in path for part in _OWN)}
    needed = needed_files(store)
    if found != needed:
        lost, left = sorted(needed - found), sorted(found - needed)
        raise Violation(f"at the end: after the removal of orphan files {lost} are missing, and {left} are left")
