"""All actions of maintenance on one table in any order, against a model that remembers the rows of snapshots and tags.

The main line and its branches are written, compacted, tagged, rolled back, restored, merged, expired and cleaned. After
every step the newest rows of each branch equal the model's; after an action that deletes files, so do all snapshots
and tags. At the end `verify` finds nothing, and after orphan removal only referenced files are left.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError
from paimon_core.operations.history.automatic_tags import trigger
from paimon_core.operations.partitions.partitions_done import record_done
from paimon_core.schema.change import AddColumn
from paimon_core.schema.schema import Schema
from paimon_core.schema.schemas import Schemas
from paimon_core.snapshot.branches import branch_root
from paimon_core.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon_core.store.create import create_table
from paimon_core.store.file_store import FileStore
from paimon_core.table import Table
from tests.support.draws import draws
from tests.support.faulty_io import MemoryIO
from tests.support.model import same
from tests.support.timeline import all_files, needed_files

ROOT = "memory://w/t"
DAYS = ("2020-01-01", "2020-01-02", "2999-01-01")
KINDS: dict[str, dict[str, str]] = {
    "append": {"bucket": "-1"},
    "append, vectors": {"bucket": "-1", "deletion-vectors.enabled": "true"},
    "append, compacting": {"bucket": "1", "bucket-key": "id", "compaction.min.file-num": "3"},
    "keys": {"bucket": "1", "num-sorted-run.compaction-trigger": "3"},
    "keys, lookup": {"bucket": "2", "changelog-producer": "lookup", "changelog.num-retained.min": "101"},
    "keys, input": {"bucket": "1", "changelog-producer": "input"},
    "keys, vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
    "keys, dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "4"},
    "keys, written only": {"bucket": "1", "write-only": "true", "changelog.num-retained.min": "101"},
}
Row = dict[str, Any]


@dataclass(frozen=True)
class Moment:
    """A snapshot and the rows that it shows: before a compaction, deletion vectors hide the rows of level 0.

    ``whole``: False if rows are hidden. ``known``: False if the model does not say which rows a rewrite leaves visible.
    """

    snapshot: Snapshot
    rows: list[Row]
    whole: bool = True
    known: bool = True


@dataclass
class Line:
    """The expected contents of the main branch or another branch."""

    columns: list[str]
    rows: list[Row] = field(default_factory=list)
    moments: dict[int, Moment] = field(default_factory=dict)
    tags: dict[str, Moment] = field(default_factory=dict)
    consumers: dict[str, int] = field(default_factory=dict)

    def back_to(self, moment: Moment) -> None:
        self.rows = [{**dict.fromkeys(self.columns), **row} for row in moment.rows]

    def whole_moments(self) -> dict[int, Moment]:
        """Return the snapshots to which the model can go back."""
        return {number: moment for number, moment in self.moments.items() if moment.whole}


class Maintenance(RuleBasedStateMachine):
    """See the module."""

    @initialize(kind=st.sampled_from(sorted(KINDS)), partitioned=st.booleans())
    def create(self, kind, partitioned):
        self.keyed, self.partitioned = kind.startswith("keys"), partitioned
        self.key = (*(["dt"] if partitioned else []), "id") if self.keyed else ()
        fields = [pa.field("dt", pa.string(), "dt" not in self.key), pa.field("id", pa.int32(), not self.keyed),
                  ("n", pa.int32())]  # fmt: skip
        options = {"file.format": "avro", "snapshot.num-retained.min": "1000", "commit.max-retry-wait": "0 ms",
                   "manifest.merge-min-count": "4", **KINDS[kind]}  # fmt: skip
        self.io = MemoryIO()
        parts = ["dt"] if partitioned else []
        create_table(self.io, ROOT, Schema(pa.schema(fields), list(self.key), parts, options))
        self.lines = {"main": Line(["dt", "id", "n"])}
        self.written, self.named = 0, 0

    # ---- lines

    def table(self, name: str = "main") -> Table:
        schema = Schemas(self.io, branch_root(ROOT, name)).latest()
        assert schema is not None
        return Table(FileStore(self.io, ROOT, schema, name))

    @property
    def main(self) -> Line:
        return self.lines["main"]

    def any_line(self, data) -> tuple[str, Line, Table]:
        name = data.draw(st.sampled_from(["main", *sorted(self.lines)]), label="line")
        return name, self.lines[name], self.table(name)

    def a_branch(self, data) -> str | None:
        names = sorted(self.lines.keys() - {"main"})
        return data.draw(st.sampled_from(names), label="branch") if names else None

    def some(self, data, of: dict[Any, Any]) -> Any:
        return data.draw(st.sampled_from(sorted(of)), label="one of") if of else None

    def new(self, prefix: str) -> str:
        self.named += 1
        return f"{prefix}{self.named}"

    def remember(self, name: str) -> None:
        """Note the new snapshots, which have the rows of now; no other may be gone or come."""
        line, table = self.lines[name], self.table(name)
        before = line.moments[max(line.moments)].rows if line.moments else []
        waits = self.keyed and "deletion-vectors.enabled" in table.schema.options
        all_found = table.snapshots()
        for actual in all_found:
            if actual.id not in line.moments:
                if waits and actual is not all_found[-1] and actual.commit_kind != CommitKind.COMPACT:
                    known = actual.commit_kind != CommitKind.OVERWRITE
                    line.moments[actual.id] = Moment(actual, before, whole=False, known=known)
                else:
                    line.moments[actual.id] = Moment(actual, line.rows)
            assert line.moments[actual.id].snapshot.fingerprint == actual.fingerprint
        ids = [actual.id for actual in self.table(name).snapshots()]
        assert ids == sorted(line.moments)

    # ---- rows

    def draw_rows(self, data, line: Line) -> list[Row]:
        places = data.draw(st.lists(st.tuples(st.sampled_from(DAYS), st.integers(0, 5)), min_size=1, max_size=4))
        rows = []
        for day, number in places:
            self.written += 1
            rows.append({**dict.fromkeys(line.columns, self.written), "dt": day, "id": number})
        return rows

    def arrow(self, rows: list[Row], line: Line) -> pa.Table:
        kinds = [pa.string() if c == "dt" else pa.int32() for c in line.columns]
        arrays = [pa.array([row[c] for row in rows], kind) for c, kind in zip(line.columns, kinds, strict=True)]
        return pa.table(arrays, names=line.columns)

    def merged(self, line: Line, rows: list[Row]) -> list[Row]:
        if not self.key:
            return [*line.rows, *rows]
        found = {tuple(row[k] for k in self.key): row for row in [*line.rows, *rows]}
        return list(found.values())

    @rule(data=st.data())
    def write(self, data):
        name, line, table = self.any_line(data)
        rows = self.draw_rows(data, line)
        table.write(self.arrow(rows, line))
        line.rows = self.merged(line, rows)
        self.remember(name)

    @rule(data=st.data())
    def delete(self, data):
        name, line, table = self.any_line(data)
        number = data.draw(st.integers(0, 5))
        table.delete(f"id = {number}")
        line.rows = [row for row in line.rows if row["id"] != number]
        self.remember(name)

    @rule(data=st.data())
    def overwrite(self, data):
        name, line, table = self.any_line(data)
        rows = self.draw_rows(data, line)
        table.overwrite(self.arrow(rows, line))
        line.rows = []
        line.rows = self.merged(line, rows)
        self.remember(name)

    @rule(data=st.data(), day=st.sampled_from(DAYS))
    def drop_partition(self, data, day):
        name, line, table = self.any_line(data)
        if self.partitioned:
            table.drop_partitions([{"dt": day}])
            line.rows = [row for row in line.rows if row["dt"] != day]
            self.remember(name)

    @rule(data=st.data(), full=st.booleans())
    def compact(self, data, full):
        name, _, table = self.any_line(data)
        table.compact(full=full)
        self.remember(name)

    @rule(data=st.data())
    def materialize(self, data):
        name, _, table = self.any_line(data)
        if "deletion-vectors.enabled" in table.schema.options:
            table.maintenance.materialize_deletion_vectors()
            self.remember(name)

    @rule(data=st.data())
    def compact_manifests(self, data):
        name, _, table = self.any_line(data)
        table.maintenance.compact_manifests()
        self.remember(name)

    @rule(data=st.data())
    def add_column(self, data):
        _, line, table = self.any_line(data)
        column = self.new("c")
        table.alter([AddColumn(column, "INT")])
        line.columns = [*line.columns, column]
        line.rows = [{**row, column: None} for row in line.rows]

    # ---- tags

    @rule(data=st.data())
    def create_tag(self, data):
        _, line, table = self.any_line(data)
        number, tag = self.some(data, line.whole_moments()), self.new("t")
        if number is not None:
            table.tags.create(tag, number)
            line.tags[tag] = line.moments[number]

    @rule(data=st.data())
    def replace_tag(self, data):
        _, line, table = self.any_line(data)
        number, tag = self.some(data, line.whole_moments()), self.some(data, line.tags)
        if number is not None and tag is not None:
            table.tags.replace(tag, number)
            line.tags[tag] = line.moments[number]
            self.check_all()

    @rule(data=st.data())
    def rename_tag(self, data):
        _, line, table = self.any_line(data)
        tag, target = self.some(data, line.tags), self.new("t")
        if tag is not None:
            table.tags.rename(tag, target)
            line.tags[target] = line.tags.pop(tag)

    @rule(data=st.data())
    def delete_tags(self, data):
        _, line, table = self.any_line(data)
        if line.tags:
            names = st.lists(st.sampled_from(sorted(line.tags)), min_size=1, max_size=3, unique=True)
            for tag in table.tags.delete_several(data.draw(names, label="tags")):
                del line.tags[tag.name]
            self.check_all()

    @rule(data=st.data())
    def expire_tags(self, data):
        """A tag gets an age that it has reached, and goes."""
        _, line, table = self.any_line(data)
        number = self.some(data, line.whole_moments())
        if number is not None:
            table.tags.create("aged", number, "1 ms")
            aged = table.tags.get("aged")
            assert aged.expires is not None
            later = int(aged.expires.timestamp() * 1000) + 2000
            assert Table(replace(table.store, now=lambda: later)).tags.expire() == ["aged"]
            self.check_all()

    @rule(data=st.data())
    def tag_automatically(self, data):
        _, line, table = self.any_line(data)
        options = {"tag.automatic-creation": "batch", "tag.batch.customized-name": "auto"}
        trigger(table.with_options(options).store)
        newest = line.moments[max(line.moments)] if line.moments else None
        if newest is not None and newest.snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER:
            line.tags["auto"] = newest
        self.check_all()

    # ---- rollbacks

    @rule(data=st.data())
    def roll_back(self, data):
        _, line, table = self.any_line(data)
        number = self.some(data, line.whole_moments())
        if number is not None:
            table.rollback_to(number)
            self.rolled_back(line, line.moments[number])

    @rule(data=st.data())
    def roll_back_to_tag(self, data):
        _, line, table = self.any_line(data)
        tag = self.some(data, line.tags)
        if tag is not None and line.moments:
            table.rollback_to(tag)
            self.rolled_back(line, line.tags[tag])

    def rolled_back(self, line: Line, moment: Moment) -> None:
        last = moment.snapshot.id
        line.moments = {number: m for number, m in line.moments.items() if number < last} | {last: moment}
        this = moment.snapshot.fingerprint  # a fast-forward may have brought the tag of another snapshot with this id
        line.tags = {n: m for n, m in line.tags.items() if m.snapshot.id < last or m.snapshot.fingerprint == this}
        line.back_to(moment)
        self.check_all()

    @rule(data=st.data())
    def restore(self, data):
        name, line, table = self.any_line(data)
        number = self.some(data, line.whole_moments())
        if number is not None:
            table.restore(number)
            line.back_to(line.moments[number])
            self.remember(name)

    # ---- branches

    @rule(data=st.data(), how=st.sampled_from(["tag", "snapshot", "empty"]))
    def create_branch(self, data, how):
        if len(self.lines) > 3:
            return
        name, main, begin, tags = self.new("b"), self.main, None, {}
        tag, number = self.some(data, main.tags), self.some(data, main.whole_moments())
        if how == "tag" and tag is not None:
            self.table().branches.create(name, tag=tag)
            begin, tags = main.tags[tag], {tag: main.tags[tag]}
        elif how == "snapshot" and number is not None:
            self.table().branches.create(name, snapshot_id=number)
            begin = main.moments[number]
            tags = {f"branch-{name}": begin}
            main.tags |= tags
        else:
            self.table().branches.create(name)
        columns = [f.name for f in self.table(name).schema.fields]
        self.lines[name] = line = Line(columns, tags=tags)
        if begin is not None:
            line.moments = {begin.snapshot.id: begin}
            line.back_to(begin)

    def own_tag(self, name: str) -> str | None:
        tag = f"branch-{name}"
        found = [line.tags.get(tag) for line in (self.main, self.lines[name])]
        same_one = None not in found and found[0].snapshot.fingerprint == found[1].snapshot.fingerprint
        return tag if same_one else None

    @rule(data=st.data())
    def delete_branch(self, data):
        name = self.a_branch(data)
        if name is not None:
            own = self.own_tag(name)
            self.table().branches.delete(name)
            self.main.tags.pop(own, None)
            del self.lines[name]
            self.check_all()

    @rule(data=st.data())
    def rename_branch(self, data):
        name, target = self.a_branch(data), self.new("b")
        if name is not None:
            own = self.own_tag(name)
            self.table().branches.rename(name, target)
            for line in (self.main, self.lines[name]) if own else ():
                line.tags[f"branch-{target}"] = line.tags.pop(own)
            self.lines[target] = self.lines.pop(name)

    def shared_schemas(self, branch: str) -> set[int]:
        """The schemas that the main line and a branch have in common."""
        below = f"{ROOT}/branch/branch-{branch}/schema/schema-"
        theirs = {path[len(below) :]: data for path, data in self.io.files.items() if path.startswith(below)}
        return {int(n) for n, data in theirs.items() if self.io.files.get(f"{ROOT}/schema/schema-{n}") == data}

    @rule(data=st.data())
    def fast_forward(self, data):
        name = self.a_branch(data)
        if name is None or not self.lines[name].moments:
            return
        branch, main = self.lines[name], self.main
        first, schemas = min(branch.moments), self.shared_schemas(name)
        self.table().branches.fast_forward(name)
        older = {number: m for number, m in main.moments.items() if number < first}
        follows = first - 1 in older and all(m.snapshot.schema_id in schemas for m in older.values())
        main.moments = (older if follows else {}) | branch.moments
        tags = {tag: m for tag, m in main.tags.items() if m.snapshot.id < first and m.snapshot.schema_id in schemas}
        main.tags = tags | branch.tags
        main.columns, main.rows = list(branch.columns), list(branch.rows)
        self.check_all()

    @rule(data=st.data(), back=st.booleans())
    def merge_branch(self, data, back):
        name = self.a_branch(data)
        if name is None or self.keyed:
            return
        source, target = ("main", name) if back else (name, "main")
        with suppress(UnsupportedError, InvalidInputError):
            self.table().branches.merge(source, target)
            there = {row["n"] for row in self.lines[target].rows}  # n is another one in each row
            added = [row for row in self.lines[source].rows if row["n"] not in there]
            self.lines[target].rows = [*self.lines[target].rows, *added]
            self.remember(target)

    # ---- consumers

    @rule(data=st.data(), name=st.sampled_from("xy"), next_snapshot=st.integers(1, 12))
    def set_consumer(self, data, name, next_snapshot):
        _, line, table = self.any_line(data)
        table.consumers.reset(name, next_snapshot)
        line.consumers[name] = next_snapshot

    @rule(data=st.data())
    def clear_consumers(self, data):
        _, line, table = self.any_line(data)
        assert table.consumers.clear() == sorted(line.consumers)
        line.consumers = {}

    # ---- what deletes

    @rule(data=st.data(), few=st.integers(1, 3), deletes=st.none() | st.integers(1, 2))
    def expire(self, data, few, deletes):
        _, line, table = self.any_line(data)
        if not line.moments:
            return
        table.maintenance.expire_snapshots(retain_max=few, retain_min=few, max_deletes=deletes)
        ids = sorted(line.moments)
        least = min([ids[-1] - few + 1, *line.consumers.values()])
        gone = [number for number in ids if number < least][:deletes]
        line.moments = {number: m for number, m in line.moments.items() if number not in gone}
        self.check_all()

    @rule(data=st.data())
    def expire_changelogs(self, data):
        _, _, table = self.any_line(data)
        few = {"changelog.num-retained.min": "1", "changelog.num-retained.max": "1001"}
        table.with_options(few).maintenance.expire_snapshots(retain_max=1000, retain_min=1000)
        self.check_all()

    @rule(data=st.data())
    def expire_partitions(self, data):
        name, line, table = self.any_line(data)
        if not self.partitioned:
            return
        dropped = table.maintenance.expire_partitions("30 d")
        old = {row["dt"] for row in line.rows if row["dt"] < "2100"}
        assert {one["dt"] for one in dropped} >= old
        line.rows = [row for row in line.rows if row["dt"] not in old]
        self.remember(name)

    @rule(data=st.data(), day=st.sampled_from(DAYS))
    def record_done(self, data, day):
        _, _, table = self.any_line(data)
        if self.partitioned:
            with suppress(NotFoundError):
                record_done(table.store, [{"dt": day}])

    @rule()
    def remove_missing_files(self):
        assert self.table().maintenance.remove_missing_files() == []

    @rule(data=st.data())
    def remove_orphans(self, data):
        _, _, table = self.any_line(data)
        table.maintenance.remove_orphan_files(older_than=table.store.now())
        self.check_all()
        self.check_files()

    @rule(data=st.data(), really=st.integers(0, 3))
    def purge(self, data, really):
        if really or not self.main.moments:
            return
        self.table().maintenance.purge()
        newest = max(self.main.moments) + 1
        self.lines = {"main": Line(self.main.columns)}
        self.remember("main")
        assert [*self.main.moments] == [newest]
        self.check_files()

    # ---- what holds

    @invariant()
    def the_newest_rows_are_those_of_the_model(self):
        for name, line in self.lines.items():
            assert same(self.table(name).to_arrow().to_pylist(), line.rows)

    def check_all(self) -> None:
        assert self.table().branches.list() == sorted(self.lines.keys() - {"main"})
        for name, line in self.lines.items():
            self.remember(name)
            table = self.table(name)
            assert [tag.name for tag in sorted(table.tags.list(), key=lambda t: t.name)] == sorted(line.tags)
            assert table.consumers.list() == line.consumers
            for number, moment in line.moments.items():
                self.check(table, moment, snapshot_id=number)
            for tag, moment in line.tags.items():
                self.check(table, moment, tag=tag)
        assert needed_files(self.table().store) <= set(self.io.files)

    def check(self, table: Table, moment: Moment, **when: Any) -> None:
        found = table.to_arrow(**when)
        assert not moment.known or same(
            found.to_pylist(), [{c: row.get(c) for c in found.schema.names} for row in moment.rows]
        )

    def check_files(self) -> None:
        """Nothing is left but what is named."""
        own = tuple(f"{ROOT}/{name}/" for name in ("snapshot", "tag", "schema", "changelog", "branch", "consumer"))
        stored = {p for p in all_files(self.io, ROOT) if not p.startswith(own) and not p.endswith("/_SUCCESS")}
        left = stored - needed_files(self.table().store)
        assert {path for path in left if "/manifest/" not in path or not self.outlived()} == set()

    def outlived(self) -> bool:
        """The metadata of changelogs that are the written files themselves go with the changelog."""
        return any("/changelog/changelog-" in path for path in self.io.files)

    def teardown(self):
        if not hasattr(self, "lines"):
            return
        self.check_all()
        assert self.table().verify(deep=True).faults == ()
        self.table().maintenance.remove_orphan_files(older_than=self.table().store.now())
        self.check_all()
        self.check_files()


TestMaintenance: Callable[..., Any] = Maintenance.TestCase
TestMaintenance.settings = settings(draws(200), stateful_step_count=20)


@pytest.mark.slow
class TestMaintenanceAtLength(Maintenance.TestCase):
    """The same, for longer."""

    settings = settings(draws(1500), stateful_step_count=50)
