"""Operations that read: the newest rows, an older snapshot, a stream. A wrong row raises a Violation."""

from paimon_core.scan.position import ALL, Position
from paimon_core.schema.table_schema import TableSchema
from tests.simulation.effects import Row, has_nulls, shown
from tests.simulation.oracle import STRUCTURAL, Record, Violation
from tests.simulation.plan import Op
from tests.simulation.tables import World, by_id


def read(world: World, op: Op, record: Record) -> None:
    """Read the newest rows, twice."""
    table = world.all_rows(world.open(op, record))
    for _ in range(2):
        begun = world.scheduler.time
        rows = by_id(table.to_arrow().to_pylist(), table.schema)
        _check_read(record, table.schema, rows, world.oracle.states(table.path, begun, table.schema))


def travel(world: World, op: Op, record: Record) -> None:
    """Read an older snapshot, or a tag."""
    table = world.all_rows(world.open(op, record))
    line = world.oracle.line(table.path)
    names = sorted(line.tags)
    if names and op.other > 0.5:
        name = names[min(int(op.pick * len(names)), len(names) - 1)]
        file, rows = line.tags[name], table.to_arrow(tag=name)
    else:
        chosen = world.choose(line, op.pick)
        if chosen is None:
            return
        file, rows = line.snapshots[chosen], table.to_arrow(snapshot_id=chosen)
    schemas = world.oracle._origin[file.number][1]
    schema = world.oracle.schema(schemas[world.oracle.snapshot(file).schema_id])
    if world.oracle.meets(record, (*STRUCTURAL, "rollback", "replace")):
        return
    _check_read(record, schema, by_id(rows.to_pylist(), schema), [world.oracle.own_rows(file)])


def stream(world: World, op: Op, record: Record) -> None:
    """The next batch of a stream, from the position that the client has stored."""
    client = world.scheduler.current
    table = world.open(op, record)
    stored = world.positions.pop(client, None)  # after an error the stream begins again
    reader = table.stream(ignore_deletes=True)
    if stored is not None:
        reader.restore(stored)
    before = Position.from_json(reader.checkpoint())
    rows = by_id([row for batch in reader.to_batches() for row in batch.to_pylist()], table.schema)
    world.positions[client] = reader.checkpoint()
    after = Position.from_json(reader.checkpoint())
    if world.keyed or not after.fingerprint:
        return
    begins = before.scan_snapshot and before.index != ALL
    expected = world.oracle.added(after.fingerprint, "" if begins else before.fingerprint)
    if expected is not None and list(rows) != expected:
        texts = shown(rows, table.schema), shown(expected, table.schema)
        raise Violation(f"{record}: the stream had {texts[0]} up to snapshot {after.snapshot_id}, not {texts[1]}")


def _check_read(record: Record, schema: TableSchema, rows: tuple[Row, ...], states: list[list[Row]]) -> None:
    if has_nulls(rows, schema):
        raise Violation(f"{record}: read rows of NULLs: {shown(rows, schema)}")
    if list(rows) not in states:
        known = " or ".join(dict.fromkeys(shown(state, schema) for state in states)) or "nothing"
        raise Violation(f"{record}: read {shown(rows, schema)}, and the newest rows were {known}")
