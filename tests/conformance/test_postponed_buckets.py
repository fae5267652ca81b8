"""Postponed buckets: what one engine leaves in bucket -2 the other deals out, and both go on from there."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from paimon_core.scan.entries import live_entries
from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable
from tests.support.draws import rounds

pytestmark = pytest.mark.java
FIELDS = [["p", "STRING NOT NULL"], ["k", "STRING NOT NULL"], ["n", "INT NOT NULL"], ["v", "INT"]]
WAITING = {"postpone.batch-write-fixed-bucket": "false"}
LAYOUTS = {
    "plain": (["k", "n"], [], {}),
    "partitioned": (["p", "k", "n"], ["p"], {"postpone.default-bucket-num": "3"}),
    "sums": (["k", "n"], [], {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}),
    "orc": (["k", "n"], [], {"file.format": "orc", "postpone.default-bucket-num": "2", "bucket-key": "n"}),
}


class Game:
    """One table, what it should show, and what waits to be shown."""

    def __init__(self, judge: Any, name: str, layout: str, rng: random.Random) -> None:
        self.keys, partitions, options = LAYOUTS[layout]
        self.table, self.rng = SharedTable(judge, name), rng
        self.sums = "merge-engine" in options
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.waiting: list[list[Any]] = []
        options = {"bucket": "-2", **options}
        self.table.java(
            "create_table", fields=FIELDS, primary_keys=self.keys, partition_keys=partitions, options=options
        )

    def changes(self) -> list[list[Any]]:
        kinds = ("+I", "+U") if self.sums else ("+I", "+I", "+U", "-D")
        return [
            [
                self.rng.choice(kinds),
                {"p": self.rng.choice("ab"), "k": self.rng.choice(("x", "y")), "n": self.rng.randrange(9), "v": i},
            ]
            for i in range(self.rng.choice((1, 6, 15)))
        ]

    def show(self, changes: list[list[Any]]) -> None:
        for kind, row in changes:
            key = tuple(row[k] for k in self.keys)
            before = self.rows.pop(key, None)
            if self.sums and before is not None:
                row = {**row, "v": row["v"] + before["v"]}
            if kind != "-D":
                self.rows[key] = row

    def we_leave_rows(self) -> None:
        changes = self.changes()
        self.waiting += changes
        self.table.ours(**WAITING).write(self.table.arrow([row for _, row in changes]), [kind for kind, _ in changes])

    def java_leaves_rows(self) -> None:
        changes = self.changes()
        self.waiting += changes
        self.table.java("write", rows=changes)

    def we_write(self) -> None:
        if self.waiting:  # postponed rows come later, in any order of writes
            return
        changes = self.changes()
        self.show(changes)
        self.table.we_write(changes)

    def we_compact(self) -> None:
        self.table.ours().compact(full=self.rng.random() < 0.5)
        self.show(self.waiting)
        self.waiting = []

    def java_compacts(self) -> None:
        self.table.java("compact", kind="full")
        self.show(self.waiting)
        self.waiting = []

    MOVES: tuple[tuple[Callable[["Game"], None], int], ...] = (
        (we_leave_rows, 3), (java_leaves_rows, 3), (we_write, 2), (we_compact, 2), (java_compacts, 2),
    )  # fmt: skip

    def turn(self) -> None:
        ((move, _),) = self.rng.choices(self.MOVES, [weight for _, weight in self.MOVES])
        print(move.__name__)
        move(self)
        if self.table.ours().snapshot() is None:
            return
        names = [f[0] for f in FIELDS]
        same(self.table.agree(), [[row[n] for n in names] for row in self.rows.values()], f"{move.__name__}: the model")


def play(judge, name, layout, turns, seed):
    print(f"--seed {seed}")
    game = Game(judge, name, layout, random.Random(seed))
    for _ in range(turns):
        game.turn()
    game.table.agree_everywhere()


@pytest.mark.drawn
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_that_one_engine_postponed_are_routed_by_the_other(judge, name, layout, seed):
    play(judge, name, layout, rounds(14), seed)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_long_turns_with_java_agree(judge, name, layout, seed):
    play(judge, name, layout, 500, seed)


def test_java_routes_rows_that_avro_cannot_hold(judge, name):
    """We leave Parquet files in bucket -2 for a type that Avro lacks; the Java engine's own writer fails there."""
    table = SharedTable(judge, name)
    fields = [["k", "INT NOT NULL"], ["t", "TIMESTAMP(9)"]]
    table.java("create_table", fields=fields, primary_keys=["k"], options={"bucket": "-2"})
    rows = [{"k": k, "t": f"2024-01-02T03:04:05.00000000{k}"} for k in range(3)]
    table.ours(**WAITING).write(table.arrow(rows))
    (file,) = (entry.file for entry in live_entries(table.ours().store, table.ours().snapshot()).live)
    assert file.file_name.endswith(".parquet")
    table.java("compact", kind="full")
    same(table.agree(), [[row["k"], row["t"]] for row in rows], "routed by the Java engine")


def test_waiting_files_have_names_and_metadata_of_java(judge, name, rng):
    """Both engines write the same metadata for files in bucket -2."""
    table = SharedTable(judge, name)
    table.java("create_table", fields=FIELDS, primary_keys=["k", "n"], options={"bucket": "-2"})
    rows = [["+I", {"p": "a", "k": "x", "n": n, "v": n}] for n in (3, 1, 2)] + [
        ["-D", {"p": "a", "k": "x", "n": 1, "v": 1}]
    ]
    table.java("write", rows=rows, user="one")
    table.ours(**WAITING).write(table.arrow([row for _, row in rows]), [kind for kind, _ in rows])
    ours = table.ours()
    theirs, mine = (e for e in live_entries(ours.store, ours.snapshot()).live)
    if ".avro" not in theirs.file.file_name or "-u-one-s-" not in theirs.file.file_name:
        theirs, mine = mine, theirs

    def told(entry):
        f = entry.file
        return [
            entry.bucket, entry.total_buckets, f.row_count, f.delete_row_count, f.min_key.hex(), f.max_key.hex(),
            f.level, f.min_sequence_number, f.max_sequence_number, f.file_source, f.value_stats.null_counts,
            f.value_stats_cols,
            f.file_name.rsplit(".", 1)[1], f.extra_files,
        ]  # fmt: skip

    same([told(mine)], [told(theirs)], "files in bucket -2")
