"""Dynamic buckets: both engines take turns on a table, and every key stays where either of them put it."""

import random
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from paimon_core.datafile.hash_index import read_hashes
from paimon_core.manifest.index_entry import HASH
from paimon_core.row.encode import encode
from paimon_core.row.murmur import hashes as hash_rows
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.write.routing import KeyShard
from paimon_core.write.routing.bucket_assigner import slots_of
from paimon_core.write.table_write import WriterRole
from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable
from tests.support.draws import rounds

pytestmark = pytest.mark.java
FIELDS = [["p", "STRING NOT NULL"], ["k", "STRING NOT NULL"], ["n", "INT NOT NULL"], ["v", "INT"]]
LAYOUTS = {
    "plain": (["k", "n"], [], {}),
    "partitioned": (["p", "k", "n"], ["p"], {}),
    "bounded": (["k", "n"], [], {"dynamic-bucket.max-buckets": "3"}),
    "beside": (["k", "n"], [], {"index-file-in-data-file-dir": "true", "num-sorted-run.compaction-trigger": "3"}),
}


def indexed(table: SharedTable) -> list[list[Any]]:
    """Every hash index of the newest snapshot: partition, bucket, what its entry says, and the hashes."""
    ours = table.ours()
    snapshot, store = ours.snapshot(), ours.store
    entries = store.manifests.read_index(snapshot.index_manifest) if snapshot.index_manifest else []
    return [
        [e.partition.hex(), e.bucket, e.row_count, e.file_size, sorted(read_hashes(store, e).tolist())]
        for e in entries
        if e.index_type == HASH
    ]


class Game:
    """One table, and what it should hold."""

    def __init__(self, judge: Any, name: str, layout: str, rng: random.Random) -> None:
        self.keys, self.partitions, options = LAYOUTS[layout]
        self.table, self.rng, self.rows = SharedTable(judge, name), rng, {}
        self.exact = "dynamic-bucket.max-buckets" not in options  # beyond it Java draws a bucket by chance
        options = {"bucket": "-1", "dynamic-bucket.target-row-num": "5", **options}
        self.table.java(
            "create_table", fields=FIELDS, primary_keys=self.keys, partition_keys=self.partitions, options=options
        )

    def changes(self, odd: bool | None = None) -> list[list[Any]]:
        """Changes, which the model takes in; ``odd``: of keys with such numbers only."""
        drawn = []
        for _ in range(self.rng.choice((1, 6, 15))):
            row = {
                "p": self.rng.choice("ab"),
                "k": self.rng.choice(("x", "yy", "a longer text")),
                "n": self.rng.randrange(9),
            }
            if odd is not None and row["n"] % 2 != odd:
                continue
            drawn.append([self.rng.choice(("+I", "+I", "+U", "-D")), {**row, "v": self.rng.randrange(100)}])
        for kind, row in drawn:
            key = tuple(row[k] for k in self.keys)
            self.rows.pop(key, None)
            if kind != "-D":
                self.rows[key] = row
        return drawn

    def we_write(self) -> None:
        self.table.we_write(self.changes())

    def java_writes(self) -> None:
        self.table.java("write", rows=self.changes())

    def both_write(self) -> None:
        """The same rows, dealt out by either engine: to the same buckets."""
        changes = self.changes()
        twin = SharedTable(self.table.judge, f"{self.table.name}_twin")
        shutil.copytree(self.table.path, twin.path)
        self.table.we_write(changes)
        twin.java("write", rows=changes)
        if self.exact:
            same(indexed(self.table), indexed(twin), f"{self.table.name}: buckets")
        twin.java("drop_table")

    def we_write_in_tasks(self) -> None:
        ours = self.table.ours()
        base, messages = StartedFrom.of(ours.snapshot()), []
        for task in range(2):
            changes = self.changes(odd=bool(task))  # whose row of one key is newer is left open between tasks
            with ours.writer(role=WriterRole(task, 4), started_from=base) as writer:
                if changes:
                    writer.write(self.table.arrow([row for _, row in changes]), [kind for kind, _ in changes])
                messages += writer.prepare_commit()
        ours.committer().commit(messages, started_from=base)

    def we_write_by_slot(self) -> None:
        """Write with two writers; each gets all rows of its slot and fills one bucket after the other."""
        ours, changes = self.table.ours(), self.changes()
        base, messages = StartedFrom.of(ours.snapshot()), []
        rows = self.table.arrow([row for _, row in changes]).combine_chunks().to_batches()[0]
        slots = slots_of(hash_rows(encode(rows.select(list(ours.schema.trimmed_primary_keys)))), 2)
        for task in range(2):
            mine = [change for change, slot in zip(changes, slots, strict=True) if slot == task]
            with ours.writer(role=WriterRole(task, 4, shard=KeyShard(task, 2, 2)), started_from=base) as writer:
                if mine:
                    writer.write(self.table.arrow([row for _, row in mine]), [kind for kind, _ in mine])
                messages += writer.prepare_commit()
        ours.committer().commit(messages, started_from=base)

    def we_compact(self) -> None:
        self.table.ours().compact(full=self.rng.random() < 0.5)

    def java_compacts(self) -> None:
        self.table.java("compact", kind="full")

    def we_overwrite(self) -> None:
        self.rows.clear()
        changes = [["+I", row] for kind, row in self.changes() if kind != "-D"]
        self.rows = {tuple(row[k] for k in self.keys): row for _, row in changes}
        self.table.ours().overwrite(self.table.arrow([row for _, row in changes]))

    def java_overwrites(self) -> None:
        """Overwrite the partitions that get rows (``dynamic-partition-overwrite`` is on by default)."""
        before = dict(self.rows)
        changes = [["+I", row] for kind, row in self.changes() if kind != "-D"]
        replaced = {tuple(row[p] for p in self.partitions) for _, row in changes}
        self.rows = {k: row for k, row in before.items() if tuple(row[p] for p in self.partitions) not in replaced}
        if not self.partitions:
            self.rows = {}
        self.rows |= {tuple(row[k] for k in self.keys): row for _, row in changes}
        self.table.java("write", rows=changes, overwrite={})

    MOVES: tuple[tuple[Callable[["Game"], None], int], ...] = (
        (both_write, 6), (we_write, 3), (java_writes, 3), (we_write_in_tasks, 2), (we_write_by_slot, 2),
        (we_compact, 1), (java_compacts, 1), (we_overwrite, 1), (java_overwrites, 1),
    )  # fmt: skip

    def turn(self) -> None:
        ((move, _),) = self.rng.choices(self.MOVES, [weight for _, weight in self.MOVES])
        print(move.__name__)
        move(self)
        if self.table.ours().snapshot() is None:
            return
        names = [f[0] for f in FIELDS]
        same(self.table.agree(), [[row[n] for n in names] for row in self.rows.values()], f"{move.__name__}: the model")
        self.every_key_is_in_one_bucket()

    def every_key_is_in_one_bucket(self) -> None:
        places = {}
        for partition, bucket, *_, found in indexed(self.table):
            for hash_ in found:
                assert places.setdefault((partition, hash_), bucket) == bucket


def play(judge, name, layout, turns, seed):
    print(f"--seed {seed}")
    game = Game(judge, name, layout, random.Random(seed))
    for _ in range(turns):
        game.turn()
    game.table.agree_everywhere()


@pytest.mark.drawn
@pytest.mark.parametrize("layout", LAYOUTS)
def test_both_engines_keep_keys_in_their_buckets(judge, name, layout, seed):
    play(judge, name, layout, rounds(14), seed)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_long_turns_with_java_agree(judge, name, layout, seed):
    play(judge, name, layout, 500, seed)


def test_partition_that_java_filled_can_be_written(judge, name, rng):
    """We update thousands of keys of one Java job, found by their hashes, without opening a new bucket."""
    table = SharedTable(judge, name)
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "700"}
    table.java("create_table", fields=FIELDS, primary_keys=["k", "n"], options=options)
    rows = [{"p": "a", "k": rng.choice("abc"), "n": n, "v": 0} for n in range(3000)]
    table.java("write", rows=[["+I", row] for row in rows])
    before = indexed(table)
    table.we_write([["+U", {**row, "v": 1}] for row in rows])
    same(indexed(table), before, "indexes after an update of all keys")
    assert {row[3] for row in table.agree()} == {1}
    assert len(table.agree()) == len(rows)
