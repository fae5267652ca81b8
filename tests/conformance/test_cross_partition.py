"""Keys that move between partitions: both engines take turns, and a key lives where its merge engine has it live."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable
from tests.support.draws import rounds

pytestmark = pytest.mark.java
FIELDS = [["p", "STRING"], ["k", "STRING NOT NULL"], ["n", "INT NOT NULL"], ["v", "INT"]]
NAMES = [name for name, _ in FIELDS]
ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "first-row": {"merge-engine": "first-row"},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
}


class Game:
    """One table, and what it should hold."""

    def __init__(self, judge: Any, name: str, engine: str, rng: random.Random) -> None:
        self.table, self.engine, self.rng = SharedTable(judge, name), engine, rng
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        options = {"bucket": "-1", "dynamic-bucket.target-row-num": "5", **ENGINES[engine]}
        self.table.java("create_table", fields=FIELDS, primary_keys=["n", "k"], partition_keys=["p"], options=options)

    def changes(self) -> list[list[Any]]:
        kinds = ("+I", "+I", "+U", "-D") if self.engine == "deduplicate" else ("+I",)
        drawn = []
        for _ in range(self.rng.choice((1, 6, 15))):
            row = {
                "p": self.rng.choice(("a", "b", "ü=1")),
                "k": self.rng.choice(("x", "a longer text")),
                "n": self.rng.randrange(7),
                "v": self.rng.choice((None, 1, 2, 3)),
            }
            drawn.append([self.rng.choice(kinds), row])
        for kind, row in drawn:
            self._merge(kind, row)
        return drawn

    def _merge(self, kind: str, row: dict[str, Any]) -> None:
        key = (row["k"], row["n"])
        old = self.rows.get(key)
        if self.engine == "deduplicate":
            self.rows.pop(key, None)
            if kind != "-D":
                self.rows[key] = row
        elif old is None:
            self.rows[key] = row
        elif self.engine == "aggregation":
            self.rows[key] = {**old, "v": (old["v"] or 0) + row["v"] if row["v"] is not None else old["v"]}
        elif self.engine == "partial-update" and row["v"] is not None:
            self.rows[key] = {**old, "v": row["v"]}

    def we_write(self) -> None:
        self.table.we_write(self.changes())

    def java_writes(self) -> None:
        self.table.java("write", rows=self.changes())

    def we_compact(self) -> None:
        self.table.ours().compact(full=self.rng.random() < 0.5)

    def java_compacts(self) -> None:
        self.table.java("compact", kind="full")

    MOVES: tuple[tuple[Callable[["Game"], None], int], ...] = (
        (we_write, 5), (java_writes, 5), (we_compact, 1), (java_compacts, 1),
    )  # fmt: skip

    def turn(self) -> None:
        ((move, _),) = self.rng.choices(self.MOVES, [weight for _, weight in self.MOVES])
        print(move.__name__)
        move(self)
        if self.engine == "first-row":  # whose rows show when they are compacted
            self.java_compacts()
        if self.table.ours().snapshot() is not None:
            expected = [[row[name] for name in NAMES] for row in self.rows.values()]
            same(self.table.agree(), expected, f"{move.__name__}: the model")


def play(judge, name, engine, turns, seed):
    print(f"--seed {seed}")
    game = Game(judge, name, engine, random.Random(seed))
    for _ in range(turns):
        game.turn()
    game.table.agree_everywhere()


@pytest.mark.drawn
@pytest.mark.parametrize("engine", ENGINES)
def test_both_engines_move_keys_equally(judge, name, engine, seed):
    play(judge, name, engine, rounds(8), seed)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_long_turns_with_java_agree(judge, name, engine, seed):
    play(judge, name, engine, 500, seed)
