"""Tables with changelogs or deletion vectors, written by both engines in turns.

Besides the comparisons of `duel`: both engines write the same changelog for one operation, and read each other's
changelogs alike. Replaying the changes gives the rows, and the same rows of the same files are marked as deleted.
"""

import json
from dataclasses import replace
from random import Random

import pytest

from paimon_core.datafile.deletion_vectors import deleted_rows, vector_entries
from paimon_core.lsm.universal import num_levels
from paimon_core.types.datatype import AtomicType
from paimon_core.types.system_fields import ROW_KIND
from tests.conformance.compare import same
from tests.conformance.duel import Duel
from tests.conformance.merging import ENGINES, MergedTable, drawn, without_sign
from tests.conformance.values import normal, ordered, rows
from tests.support.compaction import levels_of
from tests.support.draws import rounds

pytestmark = pytest.mark.java
A_TABLE = 14

LOOKUP, VECTORS = {"changelog-producer": "lookup"}, {"deletion-vectors.enabled": "true"}
ONCE = {"changelog-producer.row-deduplicate": "true"}
FULL = {"changelog-producer": "full-compaction"}
WAYS = {
    "lookup": (LOOKUP, {**LOOKUP, **ONCE}),
    "full-compaction": (FULL, {**FULL, **ONCE}, {**FULL, "full-compaction.delta-commits": "1"}),
    "none": ({},),
    "input": ({"changelog-producer": "input"},),
    "vectors": (
        VECTORS, {**VECTORS, "deletion-vectors.bitmap64": "true"}, {**VECTORS, **LOOKUP}, {**VECTORS, **LOOKUP, **ONCE},
        {**VECTORS, "changelog-producer": "input"},
    ),
    "force-lookup": ({"force-lookup": "true"},),
}  # fmt: skip


def changes_to_java(table: MergedTable, through: int) -> list[list]:
    """Return all changes that Java reads.

    If batch reads skip level 0, Java 1.4.2 skips the changes there as well; its streams return them.
    """
    fields = table.fields_at()
    if table.ours().store.traits.hides_level_0:
        options = {"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}
        plans = table.java("stream_read", options=options)["plans"]
        streamed = [row for plan in plans for row in plan["rows"]]
        found = [[row[0], *(normal(v, f.type) for v, f in zip(row[1:], fields, strict=True))] for row in streamed]
        return ordered(table._formed(found, (ROW_KIND, *fields)))
    answer = table.judge.call("read", table=f"{table.name}$audit_log", options={"incremental-between": f"0,{through}"})
    found = [[row[1], *(normal(v, f.type) for v, f in zip(row[2:], fields, strict=True))] for row in answer["rows"]]
    return ordered(table._formed(found, (ROW_KIND, *fields)))


def changes_to_us(table: MergedTable, through: int, after: int = 0) -> list[list]:
    """Return the changes that we read."""
    fields = (ROW_KIND, *table.fields_at())
    return ordered(table._formed(rows(table.ours().changes(after, through), fields), fields))


def marks(table: MergedTable) -> list[tuple]:
    """Return the files with deleted rows, and their numbers."""
    ours = table.ours()
    entries = vector_entries(ours.store, ours.snapshot())
    found = []
    for at, levels in levels_of(ours).items():
        deleted = deleted_rows(entries, levels.all_files)
        found += [[*map(str, at), f.level, f.row_count, deleted.get(f.file_name, 0)] for f in levels.all_files]
    return ordered(found)


class Telling(Duel):
    """A duel on a table with a changelog producer or deletion vectors."""

    def compare(self, twin: MergedTable) -> None:
        """Check that the two engines emitted the same changes."""
        if self.table.ours().snapshot() is None:
            return
        found = [changes_to_us(table, table.ours().snapshot().id) for table in (self.table, twin)]
        same(found[0], found[1], f"{self.table.name}: what changed, told by us, and by Java")

    def compare_files(self, twin: MergedTable) -> None:
        """And marked the same rows."""
        super().compare_files(twin)
        same(marks(self.table), marks(twin), f"{self.table.name}: rows marked by us, and by Java")

    def check(self) -> None:
        """Check that both read the same changes, and that replaying them gives the rows."""
        super().check()
        snapshot = self.table.ours().snapshot()
        if snapshot is None:
            return
        told = changes_to_us(self.table, snapshot.id)
        same(told, changes_to_java(self.table, snapshot.id), f"{self.table.name}: what changed, to us, and to Java")
        if self.complete():
            same(
                self._told_of(self.replayed()),
                self._told_of(self.table.agree()),
                f"{self.table.name}: what changes lead to",
            )

    def _told_of(self, found: list[list]) -> list[list]:
        """Return the parts of rows that changes determine.

        Leave out signs of zeros and ignored columns: an equal row is not a change. Leave out trailing blanks of CHAR:
        changes and rows may be in files of different formats, and ORC drops the blanks. If a file moves to a higher
        level unchanged, changes have the merged form of its single rows, but the file keeps the written form. This
        concerns sequence groups without an ordering value, and collecting functions with distinct elements.
        """
        options, fields, columns = self.merging.options, self.table.fields_at(), self.merging.columns
        once = ONCE.items() <= options.items()
        ignored = options.get("changelog-producer.row-deduplicate-ignore-fields") if once else None
        place = {f.name: i for i, f in enumerate(fields)}
        char = [f.type.root == "CHAR" if isinstance(f.type, AtomicType) else False for f in fields]
        sets = [f.name in columns and columns[f.name].free == "list" for f in fields]
        groups = [
            ([place[name] for name in names.split(".")[1].split(",")], [place[name] for name in members.split(",")])
            for names, members in options.items()
            if names.endswith(".sequence-group")
        ]
        formed = []
        for row in found:
            gone = {i for by, members in groups for i in members if all(row[j] is None for j in by)}
            gone.add(place.get(ignored, -1))
            values = [v.rstrip() if c and v is not None else v for v, c in zip(row, char, strict=True)]
            values = [_elements(v) if s and v is not None else v for v, s in zip(values, sets, strict=True)]
            formed.append([v for i, v in enumerate(values) if i not in gone])
        return [without_sign(row) for row in formed] if once else formed

    def complete(self) -> bool:
        """Return True if all written rows have been emitted as changes."""
        producer = self.merging.options.get("changelog-producer")
        table = self.table.ours()
        levels = {f.level for levels in levels_of(table).values() for f in levels.all_files}
        top = num_levels(table.store.options) - 1
        return (producer == "lookup" and 0 not in levels) or (producer == "full-compaction" and levels <= {top})

    def replayed(self) -> list[list]:
        """The rows that all changes, one snapshot after the other, lead to."""
        held: dict[str, list] = {}
        fields = self.table.fields_at()
        at = [i for i, f in enumerate(fields) if f.name in self.table.ours().schema.primary_keys]
        for snapshot in self.table.ours().snapshots():
            changed = rows_in_order(self.table, snapshot.id)
            for kind, *row in changed:
                key = str([row[i] for i in at])
                if kind in ("-U", "-D"):
                    assert key in held, f"{kind} of a row that is not there: {row}"
                    del held[key]
                else:
                    assert key not in held, f"{kind} of a row that is there: {row}"
                    held[key] = row
        return ordered(held.values())


def rows_in_order(table: MergedTable, snapshot_id: int) -> list[list]:
    """Return the changes of one snapshot in our order."""
    fields = (ROW_KIND, *table.fields_at())
    found = table.ours().changes(snapshot_id - 1, snapshot_id)
    single = [rows(found.slice(i, 1), fields)[0] for i in range(found.num_rows)]
    return table._formed(single, fields)


def _elements(values: list) -> list:
    """Return the distinct elements, compared by their keys if they have keys."""
    return sorted({json.dumps(v["k"] if isinstance(v, dict) else v) for v in values})


def play(judge, name, way, steps, seed, *, engines=ENGINES):
    """Run `steps` steps, with a new table after a few of them; the engine is drawn at random."""
    played, tables = 0, 0
    while played < steps:
        rng = Random(f"{seed} {way} {tables}")
        engine = rng.choice([e for e in engines if e != "first-row" or way in ("lookup", "none")])
        merging = drawn(rng, engine)
        options = {**merging.options, **rng.choice(WAYS[way])}
        if rng.random() < 0.2:
            options["bucket"] = "-1"
        if rng.random() < 0.3:
            options["changelog-file.format"] = "parquet"  # ORC forgets blanks at the end of CHAR, Avro nanoseconds
        if way == "lookup" and rng.random() < 0.3:
            options["changelog-producer.row-deduplicate-ignore-fields"] = rng.choice(sorted(merging.columns))
        merging = replace(merging, options=options)
        print(f"--seed {seed}, table {tables}: {merging}")
        duel = Telling(judge, name, merging, rng)
        while duel.steps < A_TABLE and played < steps:
            duel.turn()
            played += 1
        duel.table.java("drop_table")
        tables += 1
    print(f"{way}: {played} steps on {tables} tables, seed {seed}")


@pytest.mark.cases(1)
@pytest.mark.drawn
@pytest.mark.parametrize("way", WAYS)
def test_changelogs_agree_in_turns_with_java(judge, name, way, seed):
    play(judge, name, way, rounds(9), seed)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_changelogs_agree_in_long_turns_with_java(judge, name, way, seed):
    play(judge, name, way, 560, seed)
