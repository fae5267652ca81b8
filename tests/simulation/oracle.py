"""The oracle: what the store must show after every step, and what every operation must have done at its end.

It sees each file that appears or vanishes, and the operation that did it. From the snapshot and schema files of a
table or branch (a *line*), it knows the newest state at each moment, and reads its rows without a step. The rules:

1. A snapshot that an operation publishes has the rows of the newest state before, changed by the effect of the
   operation, once; or the same rows (compaction). So no acknowledged row is lost or doubled, and none that was rolled
   back, overwritten or dropped returns.
2. It is published in the table that the operation had opened, which still exists, and under the next id.
3. Only rollback, fast-forward, drop and rename remove the newest snapshot.
4. An operation that was acknowledged has made its change between its beginning and its end. One that was refused has
   made none. One with an unknown outcome (CommitUnknownError, killed) has made it or not, never in part.
5. A read returns the rows of a state that was the newest during the read, or of its tag or snapshot.

An expiry may delete the snapshot that a rollback makes the newest one at that moment, and puts it back.
A publisher may withdraw its own snapshot before it answers: what breaks a rule counts only if it is still there when
the operation ends. If the publisher died, the snapshot stays; then nothing may be built on it, and the next commit
takes it away.
"""

import contextlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from paimon_core.errors import CommitUnknownError
from paimon_core.read.table_read import TableRead
from paimon_core.scan.table_scan import TableScan
from paimon_core.schema.continuity import replaced_version
from paimon_core.schema.schemas import DROPPING
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.drop import STAGED, TRASH, UNBORN
from paimon_core.store.file_store import FileStore
from tests.simulation.effects import KEEP, Effect, Overwrite, Row, Upsert, by_key, has_nulls, normal, shown
from tests.simulation.plan import Op
from tests.simulation.store import Change, Disk, File, GodStorage, SimulatedIO

_METADATA = re.compile(
    r"(?P<root>.+)/(?P<kind>snapshot|schema|tag)/(?:snapshot-|schema-|tag-|(?=\.dropping))(?P<name>[^/]+)"
)
_BRANCH = re.compile(r"(?P<table>.+)/branch/branch-(?P<branch>[^/]+)")
STRUCTURAL = frozenset({"drop", "rename", "fast_forward", "delete_branch", "branch", "clone", "setup"})
"""Operations that change many files of a line, which are looked at when the operation has ended."""
_REMOVES_SNAPSHOTS = STRUCTURAL | {"rollback"}
_REMOVES_TAGS = _REMOVES_SNAPSHOTS | {"delete_tag"}
_CREATES = STRUCTURAL | {"create", "replace"}


SHOWS_ALL = {"deletion-vectors.merge-on-read": "true"}
"""The option by which rows of level 0 show before they are compacted, in tables with a primary key."""


class Violation(AssertionError):
    """A rule was broken."""


@dataclass
class Record:
    """An operation with its times and its result."""

    op: Op
    begun: int
    ended: int | None = None
    outcome: str = "running"
    """``ok``, ``refused``, ``unknown`` or ``running``."""
    error: BaseException | None = None
    effect: Effect = KEEP
    repeats: bool = False
    """True if the effect may be made again after it was undone: the commits of a sink."""
    tables: dict[str, int] = field(default_factory=dict)
    """By root: which of the tables that had this place was opened."""
    applied: list[int] = field(default_factory=list)
    """Numbers of the snapshot files that made the effect."""
    faults: int = 0
    broken: list[tuple["Line", File, str]] = field(default_factory=list)
    taken: list[tuple["Line", File, int]] = field(default_factory=list)
    """Newest snapshots that an expiry has deleted while a rollback made them the newest ones, and when."""
    lines: set[str] = field(default_factory=set)
    """Roots of the lines that a structural operation changes."""
    note: str = ""

    def __str__(self) -> str:
        error = f": {type(self.error).__name__}: {str(self.error)[:160]}" if self.error is not None else ""
        return f"{self.op} [{self.begun}-{self.ended}] {self.outcome}{error}{self.note and f' ({self.note})'}"


@dataclass(frozen=True)
class Moment:
    """A state of a line from a time on."""

    time: int
    alive: bool
    table: int
    newest: tuple[File | None, ...]
    """The newest snapshot, also if it breaks a rule, and the newest one that breaks none, which a read may show."""


class Line:
    """The snapshots, schemas and tags of a table or branch."""

    def __init__(self, root: str) -> None:
        self.root = root
        found = _BRANCH.fullmatch(root)
        self.main, self.branch = (found["table"], found["branch"]) if found else (root, "main")
        self.snapshots: dict[int, File] = {}
        self.schemas: dict[int, File] = {}
        self.tags: dict[str, File] = {}
        self.broken: set[int] = set()
        self.dropping = False
        """True if a file says that the table is gone, on a store that cannot rename it away."""
        self.table = 0
        self.moments: list[Moment] = []

    @property
    def unseen(self) -> bool:
        """True for the branch of a staged table, for a branch in the making, and for what was dropped."""
        return self.branch.startswith(STAGED) or f"/{TRASH}/" in self.root or f"/{UNBORN}" in self.root

    @property
    def alive(self) -> bool:
        """True if the table exists."""
        return bool(self.schemas) and not self.dropping

    @property
    def newest(self) -> File | None:
        """The newest snapshot; `None`: no snapshot."""
        return self.snapshots[max(self.snapshots)] if self.snapshots else None

    @property
    def sound(self) -> File | None:
        """The newest snapshot that breaks no rule."""
        ids = [number for number, file in self.snapshots.items() if file.number not in self.broken]
        return self.snapshots[max(ids)] if ids else None

    def during(self, begun: int, ended: int) -> list[Moment]:
        """Return the states that were the newest in a span of time."""
        last = [moment for moment in self.moments if moment.time < begun][-1:]
        return [*last, *(moment for moment in self.moments if begun <= moment.time <= ended)]


class Oracle:
    """Follows a disk."""

    def __init__(self, disk: Disk, time: Callable[[], int]) -> None:
        self.disk, self._time = disk, time
        self.records: dict[int, Record] = {}
        self.lines: dict[str, Line] = {}
        self.tables_of_schemas: dict[int, int] = {}
        """The table of each schema file, by the number of the file."""
        self._rows: dict[tuple[int, int], list[Row]] = {}
        self._snapshots: dict[int, Snapshot] = {}
        self._schemas: dict[int, TableSchema] = {}
        self._origin: dict[int, tuple[str, dict[int, File]]] = {}
        self._parents: dict[int, File | None] = {}
        self._fingerprints: dict[str, File] = {}
        self._former = SimulatedIO(GodStorage(disk, former=True))
        disk.on_change = self.see

    # ---- knowledge

    def line(self, root: str) -> Line:
        """Return the line of a root."""
        return self.lines.setdefault(root, Line(root))

    def snapshot(self, file: File) -> Snapshot:
        """Return the snapshot that a file holds."""
        if file.number not in self._snapshots:
            self._snapshots[file.number] = Snapshot.from_json(file.data, "snapshot")
        return self._snapshots[file.number]

    def schema(self, file: File) -> TableSchema:
        """Return the schema that a file holds."""
        if file.number not in self._schemas:
            self._schemas[file.number] = TableSchema.from_json(file.data, "schema")
        return self._schemas[file.number]

    def newest_schema(self, line: Line) -> TableSchema | None:
        """Return the schema of a line for readers; `None`: the table does not exist.

        A schema that replaces a table counts once rows follow it.
        """
        if not line.alive:
            return None
        schema = self.schema(line.schemas[max(line.schemas)])
        newest = -1 if line.sound is None else self.snapshot(line.sound).schema_id
        while (version := replaced_version(schema)) is not None and newest <= version:
            if version not in line.schemas:
                return None
            schema = self.schema(line.schemas[version])
        return schema

    def rows(self, file: File | None, schema: TableSchema) -> list[Row]:
        """Return the rows of a snapshot under a schema of its table, by field ids."""
        if file is None:
            return []
        key = file.number, schema.id
        if key not in self._rows:
            self._rows[key] = self._read(file, schema)
        return self._rows[key]

    def own_rows(self, file: File) -> list[Row]:
        """Return the rows of a snapshot under the schema that it names."""
        schemas = self._origin[file.number][1]
        return list(self.rows(file, self.schema(schemas[self.snapshot(file).schema_id])))

    def hidden(self, file: File, schema: TableSchema) -> list[Row]:
        """Return the rows of a snapshot that a read does not show before files of level 0 are compacted."""
        plain = self._read(file, schema, plain=True)
        return [row for row in self.rows(file, schema) if row not in plain]

    def added(self, fingerprint: str, after: str) -> list[Row] | None:
        """Return the rows that snapshots have added after one snapshot, up to another; `None`: some removed rows.

        ``after`` "": all rows of the last snapshot.
        """
        file: File | None = self._fingerprints[fingerprint]
        if not after:
            return self.own_rows(self._fingerprints[fingerprint])
        found: list[Row] = []
        while file is not None and self.snapshot(file).fingerprint != after:
            parent = self._parents.get(file.number)
            now, then = self.own_rows(file), [] if parent is None else self.own_rows(parent)
            for row in then:
                if row not in now:
                    return None
                now.remove(row)
            found += now
            file = parent
        return sorted(found, key=repr)

    def _read(self, file: File, schema: TableSchema, *, plain: bool = False) -> list[Row]:
        root, schemas = self._origin[file.number]
        line = Line(root)
        store = FileStore(self._former, line.main, schema, line.branch)
        store.schemas._known.update({number: self.schema(one) for number, one in schemas.items()})
        store = store.with_schema(schema.copy(SHOWS_ALL) if schema.primary_keys and not plain else schema)
        scan = TableScan(store, self.snapshot(file))
        reader = TableRead(store, schema.fields)
        batches = [batch for split in scan.plan().splits for batch in reader.to_batches(split)]
        names = {f.name: f.id for f in schema.fields}
        return normal({names[k]: v for k, v in row.items()} for batch in batches for row in batch.to_pylist())

    # ---- changes of files

    def see(self, changes: Sequence[Change]) -> None:
        """Take note of files that appeared or vanished in one step."""
        changed: dict[str, list[tuple[str, str, Change]]] = defaultdict(list)
        for change in changes:
            found = _METADATA.fullmatch(change.path)
            if found is not None and "/tag-success-file" not in change.path and "/.dropped/" not in change.path:
                if found["kind"] != "tag" and not found["name"].isdigit() and found["name"] != DROPPING:
                    continue
                changed[found["root"]].append((found["kind"], found["name"], change))
        for root, several in changed.items():
            self._see_line(self.line(root), several)

    def _see_line(self, line: Line, changes: Sequence[tuple[str, str, Change]]) -> None:
        by = changes[0][2].by
        record = self.records.get(by)
        before, schema_before, was_alive = line.sound, self.newest_schema(line), line.alive
        for kind, name, change in changes:
            if name == DROPPING:
                line.dropping = change.after is not None
                continue
            files: dict[Any, File] = {"snapshot": line.snapshots, "schema": line.schemas, "tag": line.tags}[kind]
            key: Any = name if kind == "tag" else int(name)
            if change.after is None:
                files.pop(key, None)
            else:
                files[key] = change.after
        self._note_tables(line, changes, was_alive, record)
        for kind, name, change in changes:
            if change.after is not None and kind in ("snapshot", "tag"):
                schemas = {**self.line(line.main).schemas, **line.schemas}  # a branch gets its schemas last
                self._origin[change.after.number] = (line.root, schemas)
            if record is None or record.op.kind in STRUCTURAL or line.unseen or name == DROPPING:
                continue
            if kind == "snapshot" and change.after is not None:
                self._published(line, int(name), change.after, before, record)
            elif kind == "snapshot":
                self._removed(line, change, before, record)
            elif kind == "schema":
                self._altered(line, change, before, schema_before if was_alive else None, record)
            elif kind == "tag" and change.after is None and record.op.kind not in _REMOVES_TAGS:
                if change.before is not None and change.before.by == by:  # its snapshot has expired
                    continue
                raise Violation(f"{record}: removed tag {name}")
        if record is not None and record.op.kind in STRUCTURAL:
            record.lines.add(line.root)
        line.moments.append(Moment(self._time(), line.alive, line.table, (line.newest, line.sound)))

    def _note_tables(
        self, line: Line, changes: Sequence[tuple[str, str, Change]], was_alive: bool, record: Record | None
    ) -> None:
        new = [c.after for kind, name, c in changes if kind == "schema" and c.after is not None and name != DROPPING]
        if not line.alive:
            line.table = 0
        elif not was_alive and new:
            moved = record is not None and record.op.kind == "rename" and record.tables
            line.table = next(iter(record.tables.values())) if moved and record else new[0].number
        for file in new:
            self.tables_of_schemas[file.number] = line.table

    def _published(self, line: Line, number: int, file: File, before: File | None, record: Record) -> None:
        self._parents[file.number] = before
        self._fingerprints[self.snapshot(file).fingerprint] = file
        reason = self._fault(line, number, file, before, record)
        if reason is not None:
            line.broken.add(file.number)
            record.broken.append((line, file, f"snapshot {number} of {line.root}: {reason}"))

    def _fault(self, line: Line, number: int, file: File, before: File | None, record: Record) -> str | None:
        """Return which rule a published snapshot breaks."""
        schema = self.newest_schema(line)
        if line.dropping and self.meets(record, ("drop", "delete_branch")):  # the commit is before the drop
            record.applied.append(file.number)
            return None
        if schema is None:
            return "it is published in a table that does not exist"
        opened = record.tables.get(line.main)
        if opened is not None and opened != self.line(line.main).table:
            return "it is published in another table than the one that was opened"
        if record.op.kind == "rollback" or any(taken.data == file.data for _, taken, _ in record.taken):
            return None
        expected_id = 1 if before is None else self.snapshot(before).id + 1
        if number != expected_id:
            return f"it should have been snapshot {expected_id}"
        try:
            now = self.rows(file, schema)
        except Exception as error:
            return f"its rows cannot be read: {type(error).__name__}: {error}"
        if has_nulls(now, schema):
            return f"it shows rows of NULLs: {shown(now, schema)}"
        then = now if isinstance(record.effect, Overwrite) and not record.applied else self.rows(before, schema)
        expected = record.effect.apply(then, schema, self)
        if record.applied and now != then and self._reordered(then, now, schema):
            return None
        if now == expected and (now != then or not record.applied):
            twice = any(self._is_there(number) for number in record.applied) and now != then
            record.applied.append(file.number)
            return "the effect came twice" if twice and not self._was_undone(record, then) else None
        if self._shadowed(record, then, now, schema) and self.snapshot(file).commit_kind != CommitKind.COMPACT:
            record.applied.append(file.number)
            return None
        if now == then or self._reordered(then, now, schema):
            return None
        if record.applied and not record.repeats:
            expected = then
        return f"{shown(expected, schema)} was expected on top of {shown(then, schema)}, found {shown(now, schema)}"

    def _shadowed(self, record: Record, then: list[Row], now: list[Row], schema: TableSchema) -> bool:
        """Return True if an upsert lost, for some keys, against rows that others have written since it began."""
        effect = record.effect
        if not isinstance(effect, Upsert) or (record.applied and not record.repeats):
            return False
        others = (other for other in self.records.values() if other is not record and other.effect is not KEEP)
        met = any(other.ended is None or other.ended >= record.begun for other in others)
        return met and effect.accepts(then, now, schema)

    def _reordered(self, then: list[Row], now: list[Row], schema: TableSchema) -> bool:
        """Return True if keys only show another one of several rows that were written at the same time.

        With deletion vectors, a compaction treats a row of level 0 as newer than a row of a higher level, regardless of
        their sequence numbers, as the Java engine does.
        """
        if not schema.primary_keys or "deletion-vectors.enabled" not in schema.options:
            return False
        before, after = by_key(then, schema), by_key(now, schema)
        differing = [one for one in before.keys() | after.keys() if before.get(one) != after.get(one)]
        return all(self._at_once(before.get(one), after.get(one), schema) for one in differing)

    def _at_once(self, one: Row | None, other: Row | None, schema: TableSchema) -> bool:
        """Return True if operations that ran at the same time wrote these rows; `None`: one of them deleted the row."""
        text = next(f.id for f in schema.fields if f.name == "v")
        writers = [self.records.get(int(str(dict(row)[text]).partition(".")[0])) for row in (one, other) if row]
        if len(writers) == 2:
            return all(writers) and _overlap(*writers)
        return any(
            writer is not None and other is not writer and other.effect is not KEEP and _overlap(writer, other)
            for writer in writers
            for other in self.records.values()
        )

    def _was_undone(self, record: Record, then: list[Row]) -> bool:
        """Return True if rows that a repeated operation adds are not there any more."""
        added = set(getattr(record.effect, "added", ()))
        return record.repeats and not added & set(then)

    def _removed(self, line: Line, change: Change, before: File | None, record: Record) -> None:
        assert change.before is not None
        if line.sound is before or record.op.kind in _REMOVES_SNAPSHOTS:
            return
        own = change.before.by == record.op.id
        if own and change.before.number in record.applied:  # withdrawn, to be tried again
            record.applied.remove(change.before.number)
            return
        if record.op.kind == "expire" and self.meets(record, ("rollback",)):
            record.taken.append((line, change.before, self._time()))
        elif not own:
            raise Violation(f"{record}: removed the newest snapshot {self.snapshot(change.before).id} of {line.root}")

    def _altered(
        self, line: Line, change: Change, before: File | None, schema_before: TableSchema | None, record: Record
    ) -> None:
        kind, path = record.op.kind, change.path
        if change.after is None:
            if kind == "replace" and change.before is not None and change.before.by == record.op.id:
                return
            raise Violation(f"{record}: removed {path}")
        if line.dropping and self.meets(record, ("drop",)):  # what is made goes with the table
            return
        if len(line.schemas) == 1:
            if kind == "replace" and schema_before is None and not path.endswith("/schema-0"):
                record.broken.append((line, change.after, f"made {path}, in a table that does not exist"))
                return
            if kind not in _CREATES or not path.endswith("/schema-0"):
                raise Violation(f"{record}: made {path}, in a table that does not exist")
            if line.snapshots:
                raise Violation(f"{record}: made {path} before snapshots {sorted(line.snapshots)} of another table")
            return
        opened = record.tables.get(line.main)
        if opened is not None and opened != self.line(line.main).table:
            raise Violation(f"{record}: made {path}, in another table than the one that was opened")
        schema = self.newest_schema(line)
        if schema is None or schema_before is None or before is None:
            return
        fields = {f.id for f in schema.fields}
        then, now = self.rows(before, schema_before), self.rows(before, schema)
        if now != normal({k: v for k, v in row if k in fields} for row in then):
            raise Violation(f"{record}: {path} shows {now} for {then}")

    # ---- ends of operations

    def begin(self, record: Record) -> None:
        """Take note of an operation that begins."""
        self.records[record.op.id] = record

    def end(self, record: Record) -> None:
        """Check an operation that has ended."""
        record.ended = self._time()
        for line, file, reason in record.broken:
            there = {one.number for one in (*line.snapshots.values(), *line.schemas.values())}
            if file.number in there and record.outcome != "unknown":
                raise Violation(f"{record}: {reason}")
        for line, file, time in record.taken:
            later = (one for moment in line.during(time, record.ended) for one in moment.newest if moment.time > time)
            if record.outcome != "unknown" and not any(one and one.data == file.data for one in later):
                raise Violation(f"{record}: removed the newest snapshot {self.snapshot(file).id} of {line.root}")
        if record.outcome == "refused":
            left = [number for number in record.applied if self._is_there(number)]
            if left and not isinstance(record.error, CommitUnknownError) and record.effect is not KEEP:
                raise Violation(f"{record}: it was refused, and is in the table")
        if record.outcome == "ok" and not record.applied and not self._may_be_nothing(record):
            raise Violation(f"{record}: it was acknowledged, and is not in the table")

    def _is_there(self, number: int) -> bool:
        return any(file.number == number for line in self.lines.values() for file in line.snapshots.values())

    def _may_be_nothing(self, record: Record) -> bool:
        """Return True if the effect of an operation changed nothing at some moment while it ran."""
        if record.effect is KEEP or record.broken:  # broken: removed by another operation, after it
            return True
        for root in record.tables:
            line = self.line(root)
            for moment in line.during(record.begun, record.ended or 0):
                schema = self.newest_schema(line)
                if schema is None:
                    return True
                with contextlib.suppress(Exception):  # rows of a table that was replaced since
                    then = self.rows(moment.newest[1], schema)
                    if record.effect.apply(then, schema, self) == then:
                        return True
        return False

    def states(self, root: str, begun: int, schema: TableSchema) -> list[list[Row]]:
        """Return the rows of the states of a line that were the newest since a time, under a schema."""
        line, found = self.line(root), []
        for moment in line.during(begun, self._time()):
            with contextlib.suppress(Exception):  # an unreadable state is not a state
                found.append(self.rows(moment.newest[1], schema))
        return found

    def was_dead(self, root: str, begun: int) -> bool:
        """Return True if the table did not exist, or was another one, at some moment since a time."""
        moments = self.line(root).during(begun, self._time())
        return not moments or any(not m.alive for m in moments) or len({m.table for m in moments}) > 1

    def meets(self, record: Record, kinds: Iterable[str]) -> bool:
        """Return True if an operation of one of these kinds ran at the same time."""
        expected = set(kinds)
        return any(
            other is not record and other.op.kind in expected and (other.ended is None or other.ended >= record.begun)
            for other in self.records.values()
        )


def _overlap(one: Record, other: Record) -> bool:
    """Return True if neither of two operations ended before the other one began."""
    return (one.ended is None or one.ended >= other.begun) and (other.ended is None or other.ended >= one.begun)
