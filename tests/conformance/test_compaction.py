"""Two engines compact one primary-key table: each goes on from the levels the other left, and they leave the same."""

import random
import shutil

import pytest

from paimon_core.lsm.levels import Levels
from paimon_core.row.binary_row import deserialize
from tests.conformance.compare import same
from tests.conformance.shared_table import SharedTable
from tests.support.compaction import check_levels, levels_of
from tests.support.draws import rounds

pytestmark = pytest.mark.java
FIELDS = [["p", "STRING NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"], ["n", "INT"]]
SHAPES = {
    "default": {},
    "small-files": {"target-file-size": "2 kb", "num-sorted-run.compaction-trigger": "2"},
    "formats": {"file.format.per.level": "0:avro,5:orc", "metadata.stats-mode.per.level": "0:none"},
    "three-levels": {"num-levels": "3", "num-sorted-run.compaction-trigger": "3", "compaction.size-ratio": "50"},
    "forced-up": {"compaction.force-up-level-0": "true"},
}


class Pair:
    """A table, what it must hold, and who may do what to it."""

    def __init__(self, judge, name: str, rng: random.Random, options: dict[str, str]) -> None:
        self.table, self.rng = SharedTable(judge, name), rng
        self.rows: dict[int, dict] = {}
        given = {"bucket": "1", "snapshot.num-retained.min": "100", "changelog-producer": "none", **options}
        self.table.java("create_table", fields=FIELDS, primary_keys=["k"], options=given)

    def changes(self) -> list:
        found = []
        low = self.rng.randrange(0, 300)
        for _ in range(self.rng.choice((1, 4, 60))):
            key = low + self.rng.randrange(80)
            row = {"p": "p", "k": key, "v": f"{self.rng.random()}" * 3, "n": self.rng.randrange(100)}
            kind = self.rng.choice(("+I", "+I", "+U", "-D"))
            found.append([kind, row])
            self.rows.pop(key, None)
            if kind != "-D":
                self.rows[key] = row
        return found

    def we_write(self) -> None:
        self.table.we_write(self.changes())

    def we_write_only(self) -> None:
        changes = self.changes()
        table = self.table.ours(**{"write-only": "true"})
        table.write(self.table.arrow([row for _, row in changes]), [kind for kind, _ in changes])

    def java_writes(self) -> None:
        self.table.java("write", rows=self.changes())

    def java_writes_only(self) -> None:
        self.table.java("write", rows=self.changes(), options={"write-only": "true"})

    def we_compact(self) -> None:
        self.table.ours().compact()

    def java_compacts(self) -> None:
        self.table.java("compact", kind="minor")

    def we_compact_fully(self) -> None:
        """And Java, on a copy, leaves the same files."""
        twin = self.twin()
        twin.java("compact", kind="full")
        self.table.ours().compact(full=True)
        same(described(self.table), described(twin), f"{self.table.name}: a full compaction by us, and by Java")
        twin.java("drop_table")

    def twin(self) -> SharedTable:
        twin = SharedTable(self.table.judge, f"{self.table.name}_twin")
        shutil.copytree(self.table.path, twin.path)
        return twin

    def java_compacts_fully(self) -> None:
        self.table.java("compact", kind="full")
        assert self.table.ours().compact(full=True) is None

    MOVES = (we_write, we_write_only, java_writes, java_writes_only, we_compact, java_compacts, we_compact_fully,
             java_compacts_fully)  # fmt: skip

    def turn(self) -> None:
        move = self.rng.choice(self.MOVES)
        print(move.__name__)
        move(self)
        seen = self.table.agree()
        names = [name for name, _ in FIELDS]
        same(seen, [[row[n] for n in names] for row in self.rows.values()], f"{self.table.name}, {move.__name__}")
        check_levels(self.table.ours())


def described(table: SharedTable) -> list[tuple]:
    """Return the metadata of every file, except its name, size and time."""
    ours = table.ours()
    schema = ours.schema
    levels: list[Levels] = list(levels_of(ours).values())
    return [
        (
            f.level,
            f.row_count,
            f.delete_row_count,
            deserialize(f.min_key, schema.key_arrow),
            deserialize(f.max_key, schema.key_arrow),
            f.min_sequence_number,
            f.max_sequence_number,
            f.file_source,
            f.key_stats.null_counts,
            f.value_stats.null_counts,
            f.value_stats_cols,
            f.schema_id,
            f.file_name.rsplit(".", 1)[1],
        )
        for found in levels
        for f in found.all_files
    ]


@pytest.mark.drawn
@pytest.mark.parametrize("shape", SHAPES)
def test_engines_compact_each_others_tables(judge, name, seed, shape):
    print(f"--seed {seed}")
    pair = Pair(judge, name, random.Random(seed), SHAPES[shape])
    for _ in range(rounds(22)):
        pair.turn()
    pair.we_compact_fully()
    pair.table.agree_everywhere()


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_long_random_compactions_agree_with_java(judge, name, seed, shape):
    print(f"--seed {seed}")
    pair = Pair(judge, name, random.Random(seed), SHAPES[shape])
    for _ in range(200):
        pair.turn()
    pair.table.agree_everywhere()


def test_deletes_are_kept_and_dropped_where_java_does(judge, name, rng):
    table = SharedTable(judge, name)
    options = {
        "bucket": "1",
        "write-only": "true",
        "num-sorted-run.compaction-trigger": "3",
        "compaction.max-size-amplification-percent": "200",
    }  # a file of one row is not much smaller than one of 400
    table.java("create_table", fields=FIELDS, primary_keys=["k"], options=options)
    row = lambda k: {"p": "p", "k": k, "v": f"{rng.random()}" * 3, "n": k}  # noqa: E731
    table.java("write", rows=[["+I", row(k)] for k in range(400)])
    table.java("compact", kind="full", options={"write-only": "false"})
    for k in range(3):
        table.we_write([["-D", row(k)]])
    table.ours().compact()
    deletes = [(d[0], d[1], d[2]) for d in described(table)]
    assert deletes == [(2, 3, 3), (3, 400, 0)]
    assert len(table.agree()) == 397
    table.java("compact", kind="full", options={"write-only": "false"})
    assert [(d[0], d[1], d[2]) for d in described(table)] == [(3, 397, 0)]
    assert len(table.agree()) == 397
