"""Both engines keep one table up in random turns: tags, branches, rollbacks, expiry, evolution, writes, compactions.

After each turn both engines read the changed branch, and show the same system tables. The rows equal a model, which
remembers the rows of every snapshot and tag by field id. Sometimes all snapshots and tags of all branches are read.
"""

import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.types.datatype import DataField
from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable
from tests.conformance.test_system_tables import agree
from tests.conformance.test_turns import FIELDS, Game, TurnsKind, created
from tests.support.draws import rounds

pytestmark = pytest.mark.java
SHOWN = ("snapshots", "tags", "branches", "schemas", "files", "partitions")
KINDS: dict[str, TurnsKind] = {
    "keys": ({"bucket": "2", "num-sorted-run.compaction-trigger": "3"}, ["k"], []),
    "append-partitions": ({"compaction.min.file-num": "3"}, [], ["p"]),
    "keys-partitions": ({"bucket": "1"}, ["p", "k"], ["p"]),
    "append-buckets": ({"bucket": "2", "bucket-key": "k"}, [], []),
    "changes": ({"bucket": "1", "changelog-producer": "lookup"}, ["k"], []),
}
OWN = "branch-"
"""Begins the name of the tag that keeps the snapshot of a branch."""


@dataclass(frozen=True)
class Moment:
    """A snapshot, and its rows by field id."""

    snapshot: Snapshot
    rows: list[dict[int, Any]]

    def shown(self, fields: tuple[DataField, ...]) -> list[list[Any]]:
        """The rows with some columns."""
        return [[row.get(f.id) for f in fields] for row in self.rows]

    def named(self, fields: tuple[DataField, ...]) -> list[dict[str, Any]]:
        """The rows by the names of columns."""
        return [{f.name: row.get(f.id) for f in fields} for row in self.rows]


class Line(Game):
    """The main line of a table, or a branch."""

    def __init__(self, table: SharedTable, kind: TurnsKind, rng: random.Random, begin: Moment | None = None) -> None:
        super().__init__(table, kind, rng)
        self.begin = begin
        self.moments: dict[int, Moment] = {}
        self.tags: dict[str, Moment] = {}
        self.ever: set[object] = set()
        """What every snapshot was known by that the line has had."""
        if begin is not None:
            self.moments[begin.snapshot.id] = begin
            self.back_to(begin)

    @property
    def fields(self) -> tuple[DataField, ...]:
        return self.table.ours().schema.fields

    def back_to(self, moment: Moment) -> None:
        """Go back to the rows of a snapshot, with the current columns."""
        fields, base = self.fields, {name for name, _ in FIELDS}
        self.rows = moment.named(fields)
        self.extra = {f.name: str(f.type) for f in fields if f.name not in base}
        self.added = max([self.added, *(int(name[1:]) for name in self.extra)])

    def remember(self) -> None:
        """Record the new snapshots; forget snapshots that no longer exist."""
        fields = self.fields
        rows = [{f.id: row[f.name] for f in fields} for row in self.rows]
        actual = self.table.ours().snapshots()
        for one in actual:
            known = self.moments.get(one.id)
            if known is None or known.snapshot.fingerprint != one.fingerprint:
                assert known is None, f"snapshot {one.id} is another one"
                self.moments[one.id] = Moment(one, rows)
        assert [one.id for one in actual] == sorted(self.moments)
        assert {tag.name: tag.snapshot.id for tag in self.table.ours().tags.list()} == {
            name: moment.snapshot.id for name, moment in self.tags.items()
        }
        self.ever |= self.alive()

    def alive(self) -> set[object]:
        """Return the fingerprints of the current snapshots and tags of the branch."""
        return {moment.snapshot.fingerprint for moment in (*self.moments.values(), *self.tags.values())}

    def agree(self, after: str) -> None:
        """Both engines read the rows of the model, and see the same system tables."""
        names = [f.name for f in self.fields]
        expected = [[row[n] for n in names] for row in self.rows]
        same(self.table.agree(), expected, f"{self.table.java_name} against the model, after {after}")
        for one in SHOWN:
            if one != "branches" or self.table.branch is None:
                agree(self.table, one)

    def agree_everywhere(self, main: "Line") -> None:
        """Both engines read every snapshot and tag as when it was made; Java looks tags up on the main line."""
        table = self.table
        for number, moment in self.moments.items():
            found = table.agree(snapshot=number)
            same(found, moment.shown(table.fields_at(snapshot_id=number)), f"{table.java_name}: snapshot {number}")
        for name, moment in self.tags.items():
            fields = table.fields_at(tag=name)
            java = main is self or (name in main.tags and main.tags[name].snapshot == moment.snapshot)
            found = table.agree(tag=name) if java else table.our_rows(fields, tag=name)
            same(found, moment.shown(fields), f"{table.java_name}: tag {name}")


class MaintenanceGame:
    """A table, its lines by name, and the moves of maintenance."""

    MOVES = (
        ("rows", 12), ("create_tag", 5), ("replace_tag", 2), ("rename_tag", 2), ("delete_tag", 3), ("roll_back", 2),
        ("roll_back_to_tag", 1), ("roll_back_to_time", 1), ("restore", 1), ("expire", 3), ("create_branch", 3),
        ("delete_branch", 1), ("rename_branch", 1), ("fast_forward", 1), ("compact_manifests", 1), ("clean", 1),
    )  # fmt: skip

    def __init__(self, table: SharedTable, kind: TurnsKind, rng: random.Random) -> None:
        self.kind, self.rng = kind, rng
        self.main = Line(table, kind, rng)
        self.lines = {"main": self.main}
        self.made = 0
        self.who = ""

    # ---- who does it

    def by_java(self, *, possible: bool = True) -> bool:
        """Draw which engine makes the move."""
        java = self.rng.random() < 0.5 and possible
        self.who += "java " if java else "ours "
        return java

    def java_may_expire(self, line: Line) -> bool:
        """Java's expiry of a branch spares what the tags of the main line have, and nothing else."""
        tags = [{moment.snapshot.fingerprint for moment in one.tags.values()} for one in (line, self.main)]
        return self.java_may_delete(line) and tags[0] == tags[1]

    def java_may_delete(self, line: Line, *, but: str = "") -> bool:
        """Java spares what other lines need only if tags of the same line have it."""
        tagged = {moment.snapshot.fingerprint for name, moment in line.tags.items() if name != but}
        others = [other for other in self.lines.values() if other is not line]
        needed = {one for other in others for one in other.alive() & line.ever}
        if line.begin is not None:
            needed.add(line.begin.snapshot.fingerprint)
        return needed <= tagged

    def name(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    def snapshot_of(self, line: Line) -> int | None:
        return self.rng.choice(sorted(line.moments)) if line.moments else None

    def tag_of(self, line: Line) -> str | None:
        """A tag that no branch needs to be found."""
        free = sorted(name for name in line.tags if not name.startswith(OWN))
        return self.rng.choice(free) if free else None

    # ---- moves of a line

    def rows(self, line: Line) -> None:
        (move,) = self.rng.choices([m for m, _ in Game.MOVES], [w for _, w in Game.MOVES])
        self.who += move
        getattr(line, move)()

    def compact_manifests(self, line: Line) -> None:
        if not line.moments:
            return
        if self.by_java():
            line.table.java("compact_manifests")
        else:
            line.table.ours().maintenance.compact_manifests()

    def create_tag(self, line: Line) -> None:
        number, name = self.snapshot_of(line), self.name("t")
        if number is None:
            return
        if self.by_java():
            line.table.java("create_tag", name=name, snapshot=number)
        else:
            line.table.ours().tags.create(name, number)
        line.tags[name] = line.moments[number]

    def replace_tag(self, line: Line) -> None:
        number, name = self.snapshot_of(line), self.tag_of(line)
        if number is None or name is None:
            return
        if self.by_java():
            line.table.java("replace_tag", name=name, snapshot=number)
        else:
            line.table.ours().tags.replace(name, number)
        line.tags[name] = line.moments[number]

    def rename_tag(self, line: Line) -> None:
        old, new = self.tag_of(line), self.name("r")
        if old is None:
            return
        if self.by_java():
            line.table.java("rename_tag", name=old, to=new)
        else:
            line.table.ours().tags.rename(old, new)
        line.tags[new] = line.tags.pop(old)

    def delete_tag(self, line: Line) -> None:
        name = self.tag_of(line)
        if name is None:
            return
        if self.by_java(possible=self.java_may_delete(line, but=name)):
            line.table.java("delete_tag", name=name)
        else:
            line.table.ours().tags.delete(name)
        del line.tags[name]

    def roll_back(self, line: Line) -> None:
        number = self.snapshot_of(line)
        if number is None:
            return
        if self.by_java():
            line.table.java("rollback_to", snapshot=number)
        else:
            line.table.ours().rollback_to(number)
        self._rolled_back(line, line.moments[number])

    def roll_back_to_tag(self, line: Line) -> None:
        name = self.tag_of(line)
        if name is None or not line.moments:
            return
        if self.by_java():
            line.table.java("rollback_to", tag=name)
        else:
            line.table.ours().rollback_to(name)
        self._rolled_back(line, line.tags[name])

    def roll_back_to_time(self, line: Line) -> None:
        times = [moment.snapshot.time_millis for moment in line.moments.values()]
        alone = [m for m in line.moments.values() if times.count(m.snapshot.time_millis) == 1]
        if not alone:
            return
        moment = self.rng.choice(alone)
        if self.by_java():
            line.table.java("rollback_to", timestamp_ms=moment.snapshot.time_millis)
        else:
            line.table.ours().rollback_to(timestamp=moment.snapshot.time_millis)
        self._rolled_back(line, moment)

    def _rolled_back(self, line: Line, moment: Moment) -> None:
        last = moment.snapshot.id
        line.moments = {number: m for number, m in line.moments.items() if number < last} | {last: moment}
        line.tags = {name: m for name, m in line.tags.items() if m.snapshot.id <= last}
        if "ours" in self.who:  # Java keeps the tag of another snapshot with this id
            this = moment.snapshot.fingerprint
            line.tags = {n: m for n, m in line.tags.items() if m.snapshot.id < last or m.snapshot.fingerprint == this}
        line.back_to(moment)

    def restore(self, line: Line) -> None:
        number = self.snapshot_of(line)
        if number is None:
            return
        line.table.ours().restore(number)
        line.back_to(line.moments[number])

    def expire(self, line: Line) -> None:
        if not line.moments:
            return
        few = self.rng.choice((1, 2, 4))
        if self.by_java(possible=self.java_may_expire(line)):
            line.table.java("expire_snapshots", retain_max=few, retain_min=few)
        else:
            line.table.ours().maintenance.expire_snapshots(retain_max=few, retain_min=few)
        least = max(line.moments) - few + 1
        line.moments = {number: moment for number, moment in line.moments.items() if number >= least}

    # ---- moves of all lines

    def clean(self, line: Line) -> None:
        """Where we have removed the orphans, Java finds none; it keeps files that manifests add and delete again."""
        time.sleep(0.01)
        now, ours = int(time.time() * 1000) - 2, self.main.table.ours
        if self.by_java():
            self.main.table.java("remove_orphan_files", older_than_ms=now)
        ours().maintenance.remove_orphan_files(older_than=now)
        assert self.main.table.java("remove_orphan_files", older_than_ms=now)["deleted"] == 0
        assert ours().maintenance.remove_orphan_files(older_than=now).paths == []

    def branch_of(self, line: Line) -> str | None:
        names = sorted(self.lines.keys() - {"main"})
        return self.rng.choice(names) if names else None

    def create_branch(self, line: Line) -> None:
        main, name = self.main, self.name("b")
        if len(self.lines) > 3:
            return
        tag, number = self.tag_of(main), self.snapshot_of(main)
        how = self.rng.choice(("tag", "tag", "snapshot", "empty"))
        begin, tags = None, {}
        if how == "tag" and tag is not None:
            begin, tags = main.tags[tag], {tag: main.tags[tag]}
            there = main.moments.get(begin.snapshot.id) is begin  # Java copies the file of the snapshot
            if self.by_java(possible=there):
                main.table.java("create_branch", name=name, tag=tag)
            else:
                main.table.ours().branches.create(name, tag=tag)
        elif how == "snapshot" and number is not None:
            begin = main.moments[number]
            tags = {OWN + name: begin}
            main.table.ours().branches.create(name, snapshot_id=number)
            main.tags |= tags
        elif self.by_java():
            main.table.java("create_branch", name=name)
        else:
            main.table.ours().branches.create(name)
        line = Line(SharedTable(main.table.judge, main.table.name, branch=name), self.kind, self.rng, begin)
        line.tags = tags
        line.added, line.ever = main.added, set(main.ever)
        base = {column for column, _ in FIELDS}
        line.extra = {f.name: str(f.type) for f in line.fields if f.name not in base}
        self.lines[name] = line

    def delete_branch(self, line: Line) -> None:
        name = self.branch_of(line)
        if name is None:
            return
        if self.by_java():
            self.main.table.java("delete_branch", name=name)
        else:
            self.main.table.ours().branches.delete(name)
            if self._has_own_tag(name):
                del self.main.tags[OWN + name]
        del self.lines[name]

    def rename_branch(self, line: Line) -> None:
        name, target = self.branch_of(line), self.name("n")
        if name is None:
            return
        own = self._has_own_tag(name)
        if self.by_java():
            self.main.table.java("rename_branch", name=name, to=target)
        else:
            self.main.table.ours().branches.rename(name, target)
            for one in (self.main, self.lines[name]) if own else ():
                one.tags[OWN + target] = one.tags.pop(OWN + name)
        self.lines[target] = self.lines.pop(name)
        self.lines[target].table = SharedTable(self.main.table.judge, self.main.table.name, branch=target)

    def _has_own_tag(self, name: str) -> bool:
        tags = [one.tags.get(OWN + name) for one in (self.main, self.lines[name])]
        return None not in tags and tags[0].snapshot.fingerprint == tags[1].snapshot.fingerprint

    def fast_forward(self, line: Line) -> None:
        name = self.branch_of(line)
        if name is None or not self.lines[name].moments:
            return
        branch, main = self.lines[name], self.main
        first, schemas = min(branch.moments), self._shared_schemas(name)
        tags = {tag: m for tag, m in main.tags.items() if m.snapshot.id < first}
        older = {number: m for number, m in main.moments.items() if number < first}
        other = any(m.snapshot.schema_id not in schemas for m in (*tags.values(), *older.values()))
        if self.by_java(possible=first == min(main.moments, default=first) and not other):  # else Java loses some
            main.table.java("fast_forward", name=name)
        else:
            main.table.ours().branches.fast_forward(name)
        follows = first - 1 in older and all(m.snapshot.schema_id in schemas for m in older.values())
        main.moments = (older if follows else {}) | branch.moments
        main.tags = {tag: m for tag, m in tags.items() if m.snapshot.schema_id in schemas} | branch.tags
        main.ever |= branch.ever
        main.back_to(main.moments[max(main.moments)])
        main.rows = [dict(row) for row in branch.rows]

    def _shared_schemas(self, branch: str) -> set[int]:
        """The schemas that the main line and a branch have in common."""
        root = Path(self.main.table.path)
        files = {path.name: path.read_bytes() for path in (root / "schema").glob("schema-*")}
        there = (root / f"branch/branch-{branch}/schema").glob("schema-*")
        return {int(path.name[7:]) for path in there if files.get(path.name) == path.read_bytes()}

    # ---- the game

    def turn(self, number: int) -> str:
        """One move and the comparisons after it."""
        line = self.main if self.rng.random() < 0.6 else self.rng.choice(list(self.lines.values()))
        (move,) = self.rng.choices([m for m, _ in self.MOVES], [w for _, w in self.MOVES])
        self.who = ""
        print(line.table.branch or "main", move, end=" ")
        getattr(self, move)(line)
        said = f"{line.table.branch or 'main'}: {move} {self.who}"
        touched = {id(one): one for one in (line, self.main, *list(self.lines.values())[-1:])}
        for one in touched.values():
            if one in self.lines.values():
                one.remember()
        (line if line in self.lines.values() else self.main).agree(said)
        if number % 6 == 5 or move in ("fast_forward", "expire", "clean", "delete_tag"):
            for one in self.lines.values():
                one.remember()
                one.agree_everywhere(self.main)
        return said


def play(judge, name, kind, turns, seed, file_format="parquet"):
    """One game."""
    game = MaintenanceGame(created(judge, name, KINDS[kind], file_format, 5000), KINDS[kind], random.Random(seed))
    print(f"--seed {seed}")  # shown by pytest when the game goes wrong, and the moves up to there
    for number in range(turns):
        print(game.turn(number).rsplit(": ")[-1])
    for line in game.lines.values():
        line.agree("the end")


@pytest.mark.drawn
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.cases(2)
def test_maintenance_in_turns(judge, name, kind, seed):
    play(judge, name, kind, rounds(100), seed)


@pytest.mark.slow
@pytest.mark.parametrize("file_format", ["parquet", "orc"])
@pytest.mark.parametrize("kind", KINDS)
def test_much_maintenance_in_turns(judge, name, kind, file_format, seed):
    play(judge, name, kind, rounds(500), seed, file_format)
