"""Two engines take random turns on one table; after each, both read all, and both must equal a plain model."""

import random
from typing import Any

import pytest

from paimon_core.schema.change import AddColumn, DropColumn, RenameColumn, UpdateType
from paimon_core.write.table_write import WriterRole
from tests.conformance.compare import same
from tests.conformance.domain import value
from tests.conformance.shared_table import SharedTable
from tests.support.draws import rounds

pytestmark = pytest.mark.java
FIELDS = [["p", "STRING NOT NULL"], ["k", "INT NOT NULL"], ["s", "INT"], ["v", "INT"], ["t", "STRING"]]
TurnsKind = tuple[dict[str, str], list[str], list[str]]
"""Options, primary key and partition columns of a table."""
KINDS: dict[str, TurnsKind] = {
    "keys": ({"bucket": "1"}, ["k"], []),
    "keys-buckets": ({"bucket": "3", "num-sorted-run.compaction-trigger": "3"}, ["k"], []),
    "keys-partitions": ({"bucket": "2"}, ["p", "k"], ["p"]),
    "keys-sequence": ({"bucket": "2", "sequence.field": "s"}, ["k"], []),
    "keys-descending": ({"bucket": "1", "sequence.field": "s", "sequence.field.sort-order": "descending"}, ["k"], []),
    "append": ({}, [], []),
    "append-buckets": ({"bucket": "2", "bucket-key": "k"}, [], []),
    "append-partitions": ({"compaction.min.file-num": "3"}, [], ["p"]),
}
PARTITIONS = ("a", "b/c", "ü=1")


class Game:
    """One table, its model (rows by key, or a list), and the moves."""

    def __init__(self, table: SharedTable, kind: TurnsKind, rng: random.Random) -> None:
        options, self.keys, self.partitions = kind
        self.table, self.rng = table, rng
        self.sequence = options.get("sequence.field")
        self.descending = "sequence.field.sort-order" in options
        self.rows: list[dict[str, Any]] = []
        self.added = 0
        self.extra: dict[str, str] = {}

    # ---- the model

    def merge(self, changes: list[list[Any]]) -> None:
        """Apply an upsert (or an append) to the model."""
        if not self.keys:
            self.rows += [row for _, row in changes]
            return
        found = {tuple(row[k] for k in self.keys): row for row in self.rows}
        for kind, row in changes:
            key = tuple(row[k] for k in self.keys)
            if self.sequence and key in found and self._older(row[self.sequence], found[key][self.sequence]):
                continue
            found.pop(key, None)
            if kind in ("+I", "+U"):
                found[key] = row
        self.rows = list(found.values())

    def _older(self, new: int | None, old: int | None) -> bool:
        if new == old or new is None or old is None:
            return new is None and old is not None
        return new > old if self.descending else new < old

    # ---- rows

    def changes(self) -> list[list[Any]]:
        """Random changes; deletes only where their order is the order of writing, as compaction forgets them."""
        kinds = ("+I", "+I", "+U", "-D") if self.keys and not self.sequence else ("+I", "+U") if self.keys else ("+I",)
        drawn = [[self.rng.choice(kinds), self._row()] for _ in range(self.rng.choice((1, 5, 20)))]
        # Java 1.4.2 sorts its write buffer ascending, so a commit changes each key once.
        once = {tuple(row[k] for k in self.keys): [kind, row] for kind, row in drawn} if self.descending else None
        return drawn if once is None else list(once.values())

    def _row(self) -> dict[str, Any]:
        fields = self.table.ours().schema.fields
        row = {f.name: value(self.rng, f.type) for f in fields}
        return {**row, "p": self.rng.choice(PARTITIONS), "k": self.rng.randrange(30)}

    # ---- moves: ours and Java's

    def we_write(self) -> None:
        changes = self.changes()
        self.table.we_write(changes)
        self.merge(changes)

    def java_writes(self) -> None:
        changes = self.changes()
        self.table.java("write", rows=changes)
        self.merge(changes)

    def we_write_in_parts(self) -> None:
        """Two writers, one commit: the later writer's rows count as later."""
        first, second = self.changes(), self.changes()
        ours = self.table.ours()
        messages = []
        for number, changes in enumerate((first, second)):
            if self.keys:
                kept = {tuple(row[k] for k in self.keys): [kind, row] for kind, row in changes}
                changes = [c for key, c in kept.items() if number == 0 or key not in self._keys_of(first)]
            with ours.writer(role=WriterRole(number, 2)) as writer:
                if changes:
                    writer.write(self.table.arrow([row for _, row in changes]), self._kinds(changes))
                messages += writer.prepare_commit()
            self.merge(changes)
        ours.committer().commit(messages)

    def _keys_of(self, changes: list[list[Any]]) -> set[tuple]:
        return {tuple(row[k] for k in self.keys) for _, row in changes}

    def _kinds(self, changes: list[list[Any]]) -> list[str] | None:
        return [kind for kind, _ in changes] if self.keys else None

    def minor(self) -> None:
        self.table.java("compact", kind="minor")

    def full(self) -> None:
        self.table.java("compact", kind="full")

    def our_minor(self) -> None:
        self.table.ours().compact()

    def our_full(self) -> None:
        self.table.ours().compact(full=True)

    def we_overwrite(self) -> None:
        changes = [c for c in self.changes() if c[0] in ("+I", "+U")]
        partition = None
        if self.partitions:
            partition = {"p": self.rng.choice(PARTITIONS)}
            changes = [[kind, {**row, **partition}] for kind, row in changes]
        self.table.ours().overwrite(self.table.arrow([row for _, row in changes]), partition)
        self._overwritten(partition, changes)

    def java_overwrites(self) -> None:
        changes = [["+I", row] for kind, row in self.changes() if kind in ("+I", "+U")]
        if not changes:
            return
        partition = {"p": self.rng.choice(PARTITIONS)} if self.partitions else {}
        changes = [[kind, {**row, **partition}] for kind, row in changes]
        self.table.java("write", rows=changes, overwrite=partition, options={"dynamic-partition-overwrite": "false"})
        self._overwritten(partition, changes)

    def _overwritten(self, partition: dict[str, str] | None, changes: list[list[Any]]) -> None:
        self.rows = [row for row in self.rows if partition and row["p"] != partition["p"]]
        self.merge(changes)

    def drop_partition(self) -> None:
        if not self.partitions:
            return
        gone = {"p": self.rng.choice(PARTITIONS)}
        if self.rng.random() < 0.5:
            self.table.ours().drop_partitions([gone])
        else:
            self.table.java("drop_partition", partitions=[gone])
        self._overwritten(gone, [])

    def add_column(self) -> None:
        self.added += 1
        name, text = f"x{self.added}", self.rng.choice(("INT", "STRING", "ARRAY<INT>", "DATE"))
        if self.rng.random() < 0.5:
            self.table.ours().alter([AddColumn(name, text)])
        else:
            self.table.java("alter_table", changes=[{"op": "add_column", "name": name, "type": text}])
        self.extra[name] = text
        self.rows = [{**row, name: None} for row in self.rows]

    def drop_column(self) -> None:
        if not self.extra:
            return
        name = self.rng.choice(list(self.extra))
        if self.rng.random() < 0.5:
            self.table.ours().alter([DropColumn(name)])
        else:
            self.table.java("alter_table", changes=[{"op": "drop_column", "name": name}])
        del self.extra[name]
        self.rows = [{k: v for k, v in row.items() if k != name} for row in self.rows]

    def rename_column(self) -> None:
        if not self.extra:
            return
        self.added += 1
        old, new = self.rng.choice(list(self.extra)), f"y{self.added}"
        if self.rng.random() < 0.5:
            self.table.ours().alter([RenameColumn(old, new)])
        else:
            self.table.java("alter_table", changes=[{"op": "rename_column", "name": old, "to": new}])
        self.extra[new] = self.extra.pop(old)
        self.rows = [{new if k == old else k: v for k, v in row.items()} for row in self.rows]

    def widen_column(self) -> None:
        narrow = [name for name, text in self.extra.items() if text == "INT"]
        if not narrow:
            return
        name = self.rng.choice(narrow)
        if self.rng.random() < 0.5:
            self.table.ours().alter([UpdateType(name, "BIGINT")])
        else:
            self.table.java("alter_table", changes=[{"op": "update_type", "name": name, "type": "BIGINT"}])
        self.extra[name] = "BIGINT"

    MOVES = (
        ("we_write", 8), ("java_writes", 6), ("we_write_in_parts", 3), ("minor", 2), ("full", 1), ("our_minor", 2),
        ("our_full", 1), ("we_overwrite", 1),
        ("java_overwrites", 1), ("drop_partition", 1), ("add_column", 1), ("drop_column", 1), ("rename_column", 1),
        ("widen_column", 1),
    )  # fmt: skip

    def turn(self) -> str:
        """One move and the comparisons after it."""
        (move,) = self.rng.choices([m for m, _ in self.MOVES], [w for _, w in self.MOVES])
        getattr(self, move)()
        seen = self.table.agree()
        names = [f.name for f in self.table.ours().schema.fields]
        same(seen, [[row[n] for n in names] for row in self.rows], f"{self.table.name} against the model, after {move}")
        return move


def created(judge, name, kind, file_format, retained=50):
    """A new table of a kind, which has all its snapshots."""
    options, keys, partitions = kind
    table = SharedTable(judge, name)
    table.java(
        "create_table",
        fields=FIELDS,
        primary_keys=keys,
        partition_keys=partitions,
        options={**options, "file.format": file_format, "snapshot.num-retained.min": str(retained)},
    )
    return table


def play(judge, name, kind, file_format, turns, seed):
    """One game."""
    game = Game(created(judge, name, KINDS[kind], file_format), KINDS[kind], random.Random(seed))
    table = game.table
    print(f"--seed {seed}")  # shown by pytest when the game goes wrong, and the moves up to there
    for _ in range(turns):
        print(game.turn())
    table.agree_everywhere()


@pytest.mark.drawn
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.cases(6)
def test_random_turns_with_java_agree(judge, name, kind, file_format, seed):
    play(judge, name, kind, file_format, rounds(14), seed)


@pytest.mark.slow
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_turns(judge, name, kind, file_format, seed):
    play(judge, name, kind, file_format, 150, seed)
