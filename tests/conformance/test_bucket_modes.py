"""Bucket modes with changelog producers and deletion vectors: equal changes, which give the rows."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from paimon_core.lsm.universal import num_levels
from paimon_core.types.system_fields import ROW_KIND
from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable
from tests.conformance.values import normal, rows
from tests.support.compaction import levels_of
from tests.support.draws import rounds

pytestmark = pytest.mark.java
FIELDS = [["p", "STRING NOT NULL"], ["k", "STRING NOT NULL"], ["n", "INT NOT NULL"], ["v", "INT"]]
MODES: dict[str, tuple[list[str], dict[str, str]]] = {
    "dynamic": ([], {"bucket": "-1", "dynamic-bucket.target-row-num": "4"}),
    "moving": (["p"], {"bucket": "-1", "dynamic-bucket.target-row-num": "4"}),
    "postponed": (
        ["p"], {"bucket": "-2", "postpone.default-bucket-num": "2", "postpone.batch-write-fixed-bucket": "false"}
    ),
}  # fmt: skip
VECTORS = {"deletion-vectors.enabled": "true"}
TELLING: dict[str, dict[str, str]] = {
    "lookup": {"changelog-producer": "lookup"},
    "full-compaction": {"changelog-producer": "full-compaction"},
    "input": {"changelog-producer": "input"},
    "vectors": VECTORS,
    "none": {},
    "vectors-lookup": {**VECTORS, "changelog-producer": "lookup"},
}


ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
}
TOGETHER = [
    (telling, engine)
    for telling in TELLING
    for engine in ENGINES
    if engine != "first-row" or telling in ("lookup", "none")
]


class Game:
    """One table, and what it should hold once all is compacted."""

    def __init__(self, judge: Any, name: str, mode: str, telling: str, engine: str, rng: random.Random) -> None:
        partitions, options = MODES[mode]
        self.table, self.rng, self.mode, self.engine = SharedTable(judge, name), rng, mode, engine
        self.producer = TELLING[telling].get("changelog-producer")
        self.keys = ["p", "k", "n"] if mode == "postponed" else ["k", "n"]
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        options = {**options, **TELLING[telling], **ENGINES[engine]}
        self.table.java(
            "create_table", fields=FIELDS, primary_keys=self.keys, partition_keys=partitions, options=options
        )

    def changes(self) -> list[list[Any]]:
        drawn = []
        for _ in range(self.rng.choice((1, 5, 12))):
            row = {"p": self.rng.choice("ab"), "k": self.rng.choice("xy"), "n": self.rng.randrange(6)}
            kind = self.rng.choice(("+I", "+I", "-D")) if self.engine == "deduplicate" else "+I"
            drawn.append([kind, {**row, "v": self.rng.choice((None, *range(9)))}])
        for kind, row in drawn:
            key = tuple(row[k] for k in self.keys)
            if kind == "-D":
                self.rows.pop(key, None)
            else:
                self.rows[key] = self._merged(self.rows.get(key), row)
        return drawn

    def _merged(self, old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
        """Merge two rows. If `p` is the partition, the merged row stays in the partition of the old row."""
        if old is None or self.engine == "deduplicate":
            return new
        if self.engine == "first-row":
            return old
        p = old["p"] if self.mode == "moving" else new["p"]
        if new["v"] is None:
            return {**old, "p": p}
        return {**old, "p": p, "v": new["v"] + (old["v"] or 0) if self.engine == "aggregation" else new["v"]}

    def we_write(self) -> None:
        self.table.we_write(self.changes())

    def java_writes(self) -> None:
        self.table.java("write", rows=self.changes())

    def we_compact(self) -> None:
        self.table.ours().compact(full=True)

    def java_compacts(self) -> None:
        self.table.java("compact", kind="full")

    MOVES: tuple[tuple[Callable[["Game"], None], int], ...] = (
        (we_write, 3), (java_writes, 3), (we_compact, 2), (java_compacts, 2),
    )  # fmt: skip

    def turn(self, move: Callable[["Game"], None] | None = None) -> None:
        if move is None:
            ((move, _),) = self.rng.choices(self.MOVES, [weight for _, weight in self.MOVES])
        print(move.__name__)
        move(self)
        snapshot = self.table.ours().snapshot()
        if snapshot is None:
            return
        shown = self.table.agree()
        self._told(snapshot.id)
        if "compact" in move.__name__:
            expected = [[row[name] for name, _ in FIELDS] for row in self.rows.values()]
            same(shown, expected, f"{self.table.name} {move.__name__}: the model")
            if self.producer in ("lookup", "full-compaction") and self._at_the_top():
                same(self._replayed(), shown, f"{self.table.name}: what changes lead to")

    def _at_the_top(self) -> bool:
        table = self.table.ours()
        top = num_levels(table.store.options) - 1
        return {f.level for levels in levels_of(table).values() for f in levels.all_files} <= {top}

    def _told(self, through: int) -> None:
        fields = self.table.fields_at()
        ours = rows(self.table.ours().changes(0, through), (ROW_KIND, *fields))
        waiting = self.mode == "postponed" and self.producer is None
        if waiting or self.table.ours().store.traits.hides_level_0:  # only Java's streams return these
            plans = self.table.java("stream_read", options={"scan.mode": "from-snapshot", "scan.snapshot-id": "1"})
            theirs = [row for plan in plans["plans"] for row in plan["rows"]]
        else:
            options = {"incremental-between": f"0,{through}"}
            name = f"{self.table.name}$audit_log"
            theirs = [row[1:] for row in self.table.judge.call("read", table=name, options=options)["rows"]]
        normed = [[row[0], *(normal(v, f.type) for v, f in zip(row[1:], fields, strict=True))] for row in theirs]
        same(ours, normed, f"{self.table.name}: what changed, to us, and to Java")

    def _replayed(self) -> list[list[Any]]:
        held: dict[tuple[Any, ...], list[Any]] = {}
        fields = (ROW_KIND, *self.table.fields_at())
        at = [i for i, (name, _) in enumerate(FIELDS) if name in ("p", "k", "n")]
        for snapshot in self.table.ours().snapshots():
            told = self.table.ours().changes(snapshot.id - 1, snapshot.id)
            for i in range(told.num_rows):
                kind, *row = rows(told.slice(i, 1), fields)[0]
                key = tuple(row[j] for j in at)
                if kind in ("-U", "-D"):
                    del held[key]
                else:
                    assert key not in held
                    held[key] = row
        return list(held.values())


def play(judge, name, mode, telling, engine, turns, seed):
    print(f"--seed {seed} {mode} {telling} {engine}")
    game = Game(judge, name, mode, telling, engine, random.Random(seed))
    for _ in range(turns):
        game.turn()
    for move in (Game.we_write, Game.we_compact, Game.java_writes, Game.java_compacts):
        game.turn(move)


@pytest.mark.cases(1)
@pytest.mark.drawn
@pytest.mark.parametrize("telling", TELLING)
def test_both_engines_emit_the_same_changes(judge, name, telling, seed):
    rng = random.Random(f"{seed} {telling}")
    engine = rng.choice([e for t, e in TOGETHER if t == telling])
    play(judge, name, rng.choice(list(MODES)), telling, engine, rounds(3, 1), seed)


@pytest.mark.slow
@pytest.mark.parametrize(("telling", "engine"), TOGETHER)
@pytest.mark.parametrize("mode", MODES)
def test_long_turns_with_java_agree(judge, name, mode, telling, engine, seed):
    play(judge, name, mode, telling, engine, 30, seed)
