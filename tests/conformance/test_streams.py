"""Streams of both engines over one table: the same rows and kinds at the same snapshots, from any start."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from paimon_core.errors import OutOfRangeError
from paimon_core.read.changed_rows import ChangeRead
from paimon_core.scan.batch_limits import Limits
from paimon_core.scan.position import Position
from paimon_core.scan.stream_scan import ChangeSplit, StreamScan
from paimon_core.snapshot.consumers import Consumers
from paimon_core.table import Table
from paimon_core.types.system_fields import ROW_KIND
from tests.conformance.compare import same
from tests.conformance.judge import Judge
from tests.conformance.shared_table import SharedTable
from tests.conformance.values import normal, ordered, rows
from tests.support.draws import rounds

pytestmark = pytest.mark.java
FIELDS = [["p", "STRING NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"], ["n", "INT"]]
KEEP = {"snapshot.num-retained.min": "1000"}
VECTORS = {"deletion-vectors.enabled": "true"}


@dataclass(frozen=True)
class Shape:
    """A kind of table, and what streams of it are asked for."""

    options: dict[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ("k",)
    partitions: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("+I", "+I", "+U", "-D")
    reading: tuple[dict[str, str], ...] = ({},)


OVERWRITES = ({}, {"streaming-read-overwrite": "true"})
APPEND = {"key": (), "kinds": ("+I",), "reading": ({}, {"streaming-read-append-overwrite": "true"})}
SHAPES = {
    "append": Shape(**APPEND),
    "append-buckets": Shape({"bucket": "2", "bucket-key": "k"}, partitions=("p",), **APPEND),
    "append-vectors": Shape(VECTORS, partitions=("p",), **APPEND),
    "rows": Shape({"row-tracking.enabled": "true"}, **APPEND),
    "none": Shape({"bucket": "2"}, reading=OVERWRITES),
    "none-partitions": Shape({"bucket": "1"}, ("p", "k"), ("p",), reading=OVERWRITES),
    "none-vectors": Shape({"bucket": "1", **VECTORS}),  # for overwrites, Java also returns rows deleted earlier
    "none-orc": Shape({"bucket": "1", "file.format": "orc"}),
    "input": Shape({"bucket": "2", "changelog-producer": "input"}, reading=OVERWRITES),
    "lookup": Shape({"bucket": "2", "changelog-producer": "lookup"}, ("p", "k"), ("p",)),
    "lookup-vectors": Shape({"bucket": "1", "changelog-producer": "lookup", **VECTORS}),
    "full-compaction": Shape({"bucket": "2", "changelog-producer": "full-compaction"}),
    "first-row": Shape({"bucket": "1", "merge-engine": "first-row"}, kinds=("+I",)),
    "first-row-lookup": Shape(
        {"bucket": "1", "merge-engine": "first-row", "changelog-producer": "lookup"}, kinds=("+I",)
    ),
    "partial-update": Shape({"bucket": "1", "merge-engine": "partial-update"}, kinds=("+I",)),
    "partial-update-lookup": Shape(
        {"bucket": "1", "merge-engine": "partial-update", "changelog-producer": "lookup"}, kinds=("+I",)
    ),
    "aggregation": Shape(
        {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}, kinds=("+I",)
    ),
    "dynamic": Shape({"bucket": "-1", "dynamic-bucket.target-row-num": "4"}),
    "moving": Shape({"bucket": "-1", "dynamic-bucket.target-row-num": "4"}, partitions=("p",)),
    "postponed": Shape({"bucket": "-2", "postpone.batch-write-fixed-bucket": "false"}),
    "postponed-lookup": Shape(
        {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false", "changelog-producer": "lookup"}
    ),
}

Streamed = dict[int, list[list[Any]]]


def streamed_by_java(table: SharedTable, options: dict[str, str]) -> Streamed:
    """Rows by snapshot, kinds first, as Java's stream gives them."""
    fields, found = table.fields_at(), {}
    for plan in table.java("stream_read", options=options)["plans"]:
        told = [[row[0], *(normal(v, f.type) for v, f in zip(row[1:], fields, strict=True))] for row in plan["rows"]]
        found.setdefault(plan["snapshot"], []).extend(told)
    return {snapshot: ordered(told) for snapshot, told in found.items() if told}


def batches_of(scan: StreamScan, limits: Limits, start: Position | None = None) -> Iterator[tuple[Position, Position]]:
    """The batches of a stream until there is nothing new."""
    after = scan.start() if start is None else start
    while (through := scan.advance(after, limits)) != after:
        yield after, through
        after = through


def read(table: Table, splits: list[ChangeSplit]) -> pa.Table:
    """All changes of these splits."""
    reader = ChangeRead(table.store, table.schema.fields, kinds=True)
    return pa.Table.from_batches([b for split in splits for b in reader.to_batches(split)], reader.schema)


def streamed_by_us(table: Table, limits: Limits, replays: list[tuple[dict, dict, pa.Table]]) -> Streamed:
    """The same of ours; adds the batches to ``replays``."""
    fields, found = (ROW_KIND, *table.schema.fields), {}
    scan = StreamScan(table.store)
    for after, through in batches_of(scan, limits):
        splits = scan.plan(after, through)
        replays.append((after.to_json(), through.to_json(), read(table, splits)))
        for piece in itertools.chain.from_iterable(split.units for split in splits):
            told = rows(read(table, [ChangeSplit((piece,))]), fields)
            found.setdefault(piece.split.snapshot_id, []).extend(told)
    return {snapshot: ordered(told) for snapshot, told in found.items() if told}


def _came(told: list[list[Any]]) -> list[list[Any]]:
    return [["+I" if kind == "+U" else kind, *row] for kind, *row in told]


class Game:
    """One table, written by both engines by turns."""

    def __init__(self, judge: Judge, name: str, shape: Shape, rng: Random) -> None:
        self.table, self.shape, self.rng = SharedTable(judge, name), shape, rng
        self.table.java(
            "create_table", fields=FIELDS, primary_keys=list(shape.key), partition_keys=list(shape.partitions),
            options={**KEEP, **shape.options},
        )  # fmt: skip
        self.replays: list[tuple[dict[str, str], dict, dict, pa.Table]] = []

    def changes(self) -> list[list[Any]]:
        return [
            [self.rng.choice(self.shape.kinds), self._row(self.rng.choice("ab"))]
            for _ in range(self.rng.choice((1, 5, 12)))
        ]

    def _row(self, p: str) -> dict[str, Any]:
        return {"p": p, "k": self.rng.randrange(9), "v": self.rng.choice(("x", "y", None)), "n": self.rng.randrange(9)}

    def we_write(self) -> None:
        self.table.we_write(self.changes())

    def java_writes(self) -> None:
        self.table.java("write", rows=self.changes())

    def we_compact(self) -> None:
        self.table.ours().compact(full=self.rng.random() < 0.5)

    def java_compacts(self) -> None:
        self.table.java("compact", kind=self.rng.choice(("minor", "full")))

    def we_overwrite(self) -> None:
        self.table.ours().overwrite(self.table.arrow([self._row("a") for _ in range(3)]))

    def java_overwrites(self) -> None:
        where = {"p": "a"} if self.shape.partitions else {}
        self.table.java("write", rows=[["+I", self._row("a")] for _ in range(3)], overwrite=where)

    def we_delete(self) -> None:
        if not self.shape.key:
            self.table.ours().delete(f"k = {self.rng.randrange(9)}")

    def java_expires(self) -> None:
        self.table.java("expire_snapshots", retain_max=4, retain_min=1)

    MOVES: tuple[tuple[Callable[["Game"], None], int], ...] = (
        (we_write, 4), (java_writes, 4), (we_compact, 2), (java_compacts, 2), (we_overwrite, 1), (java_overwrites, 1),
        (we_delete, 1),
    )  # fmt: skip

    def turn(self, *, expiring: bool) -> None:
        moves = (*self.MOVES, (Game.java_expires, 1)) if expiring else self.MOVES
        ((move, _),) = self.rng.choices(moves, [weight for _, weight in moves])
        print(move.__name__)
        move(self)

    def starts(self) -> list[dict[str, str]]:
        """Every way to start a stream that fits the table as it is."""
        known = self.table.ours().snapshots()
        if not known:
            return [{}, {"scan.mode": "latest"}]
        some = self.rng.choice(known)
        moment = str(some.time_millis + self.rng.choice((-1, 0, 1)))
        return [
            {},
            {"scan.mode": "latest"},
            {"scan.mode": "from-snapshot", "scan.snapshot-id": str(some.id)},
            {"scan.mode": "from-snapshot-full", "scan.snapshot-id": str(some.id)},
            {"scan.timestamp-millis": moment},
            {"scan.mode": "compacted-full"},
            {"scan.mode": "from-snapshot", "scan.snapshot-id": "1"},
        ]

    def check(self) -> None:
        """Streams of both engines agree."""
        for start in self.starts():
            options = {**start, **self.rng.choice(self.shape.reading)}
            limits = self.rng.choice((Limits(), Limits(files=1), Limits(rows=7), Limits(bytes=1500)))
            replays: list[tuple[dict, dict, pa.Table]] = []
            scanned = StreamScan(self.table.ours(**options).store).start()
            scanned = scanned.snapshot_id if scanned.scan_snapshot else None
            ours = streamed_by_us(self.table.ours(**options), limits, replays)
            theirs = streamed_by_java(self.table, options)
            about = f"{self.table.name}: {options} {limits}"
            same(sorted(ours), sorted(theirs), f"{about}: snapshots that tell something")
            for snapshot, told in theirs.items():
                if scanned == snapshot:  # Java gives rows the kind they were once written with
                    told, ours[snapshot] = (_came(side) for side in (told, ours[snapshot]))
                same(ours[snapshot], told, f"{about}: snapshot {snapshot}")
            self.replays += [(options, *replay) for replay in replays]

    def check_replays(self) -> None:
        """Replay the changes between two positions: they are unchanged, or the error says that they expired."""
        earliest = min((snapshot.id for snapshot in self.table.ours().snapshots()), default=1)
        for options, start, end, told in self.replays:
            table = self.table.ours(**options, **self.rng.choice(({}, {"source.split.target-size": "1 kb"})))
            scan, after, through = StreamScan(table.store), Position.from_json(start), Position.from_json(end)
            if (through.snapshot_id if through.scan_snapshot else after.next_snapshot) < earliest:
                with pytest.raises(OutOfRangeError, match="has expired"):
                    scan.plan(after, through)
                continue
            fields = (ROW_KIND, *table.schema.fields)
            found = rows(read(table, scan.plan(after, through)), fields)
            same(found, rows(told, fields), f"{self.table.name}: again {start} to {end}")


def play(judge, name, shape, turns, every, seed):
    print(f"--seed {seed}")
    game = Game(judge, name, SHAPES[shape], Random(f"{seed} {shape}"))
    for turn in range(turns):
        game.turn(expiring=turns > every)
        if turn % every == every - 1:
            game.check()
    game.check_replays()


@pytest.mark.cases(10)
@pytest.mark.drawn
@pytest.mark.parametrize("shape", SHAPES)
def test_streams_of_both_engines_return_same_changes(judge, name, shape, seed):
    play(judge, name, shape, rounds(5), rounds(5), seed)


@pytest.mark.slow
def test_consumers_are_shared(judge, name):
    table = Game(judge, name, SHAPES["none"], Random(1)).table
    consumers = Consumers(table.ours().store.io, table.path)
    for n in range(4):
        table.java("write", rows=[["+I", {"p": "a", "k": n, "v": "x", "n": n}]])
    mine = {"consumer-id": "mine", "consumer.expiration-time": "1 d"}
    table.java("stream_read", options=mine, notify=True)
    assert consumers.list() == {"mine": 5}
    consumers.record("mine", 3)
    for options in (mine, {**mine, "consumer.ignore-progress": "true"}):
        ours = streamed_by_us(table.ours(**options), Limits(), [])
        theirs = streamed_by_java(table, options)
        same(sorted(ours.items()), sorted(theirs.items()), f"{table.name}: {options}")
    table.java("expire_snapshots", retain_max=1, retain_min=1)
    assert [snapshot.id for snapshot in table.ours().snapshots()] == [3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_streams_for_long(judge, name, shape, seed):
    play(judge, name, shape, 60, 6, seed)
