"""One merging table, written by both engines: each repeats the other's operation on a copy.

Both must leave the same rows and the same levels. The test continues with one of the two copies, drawn at random.
"""

import itertools
import shutil
from collections.abc import Callable
from random import Random
from typing import Any

from paimon_core.operations.compaction.compact import plan_compaction
from paimon_core.row.binary_row import deserialize
from tests.conformance.compare import same
from tests.conformance.judge import Judge
from tests.conformance.merging import MergedTable, Merging, pools_of
from tests.conformance.test_java_writes import check_questions
from tests.support.compaction import check_levels, levels_of

_NAMES = itertools.count()
WRITE_ONLY = {"write-only": "true"}


class Duel:
    """A table, and the moves."""

    def __init__(self, judge: Judge, name: str, merging: Merging, rng: Random) -> None:
        self.rng, self.merging, self.name = rng, merging, name
        self.table = MergedTable(judge, f"{name}_{next(_NAMES)}", merging)
        self.table.java("create_table", **merging.definition)
        self.pools = pools_of(judge, rng, merging)
        self.steps = 0

    # ---- moves of both, on copies

    def both_write(self) -> None:
        """The same rows, flushed by one engine and by the other."""
        changes = self._changes()
        self._both(
            lambda twin: twin.java("write", rows=changes, options=WRITE_ONLY),
            lambda: self._we_write(changes, WRITE_ONLY),
        )

    def both_compact(self) -> None:
        """As the shape of the levels asks for it.

        Java 1.4.2 may leave level 1 in cases where later versions compact it. It reads the levels twice before it
        commits, and the second result may depend on the few bytes that differ between files of the two engines.
        """
        in_level_1 = any(len(levels.files) > 1 and levels.files[1] for levels in levels_of(self.table.ours()).values())
        self._both(
            lambda twin: twin.java("compact", kind="minor"),
            lambda: self.table.ours().compact(),
            same_levels=lambda twin: not in_level_1 and not _nearly_due(self.table) and not _nearly_due(twin),
        )

    def both_compact_fully(self) -> None:
        """All files to the highest level."""
        self._both(lambda twin: twin.java("compact", kind="full"), lambda: self.table.ours().compact(full=True))

    def _both(
        self,
        java: Callable[[MergedTable], Any],
        ours: Callable[[], Any],
        *,
        same_levels: Callable[[MergedTable], bool] = lambda twin: True,
    ) -> None:
        twin = MergedTable(self.table.judge, f"{self.name}_{next(_NAMES)}", self.merging)
        shutil.copytree(self.table.path, twin.path)
        java(twin)
        ours()
        same(self.table.agree(), twin.agree(), f"{self.table.name}: what we did, and what Java did")
        self.compare(twin)
        if same_levels(twin):
            self.compare_files(twin)
        gone, self.table = (self.table, twin) if self.rng.random() < 0.5 else (twin, self.table)
        gone.java("drop_table")

    def compare(self, twin: MergedTable) -> None:
        """Compare the state, except rows, of a table that we changed and of its twin that Java changed."""

    def compare_files(self, twin: MergedTable) -> None:
        """Compare the files of both tables."""
        same(described(self.table), described(twin), f"{self.table.name}: levels left by us, and by Java")

    # ---- moves of one

    def we_write(self) -> None:
        """And compact what we write to."""
        self._we_write(self._changes(), {})

    def java_writes(self) -> None:
        """And compacts what it writes to."""
        self.table.java("write", rows=self._changes())

    def we_compact(self) -> None:
        """Alone."""
        self.table.ours().compact()

    def java_compacts(self) -> None:
        """Alone."""
        self.table.java("compact", kind="minor")

    def we_write_for_long(self) -> None:
        """One writer, kept open over commits."""
        table = self.table.ours()
        with table.writer() as writer:
            for identifier in range(3):
                changes = self._changes()
                writer.write(self.table.arrow([row for _, row in changes]), [kind for kind, _ in changes])
                table.committer().commit(writer.prepare_commit(identifier))

    def java_writes_for_long(self) -> None:
        """One writer, kept open over commits."""
        self.table.java("open_writer")
        for identifier in range(3):
            self.table.java("writer_write", rows=self._changes())
            self.table.java("writer_commit", identifier=identifier)
        self.table.java("close_writer")

    MOVES = (
        (both_write, 10), (both_compact, 4), (both_compact_fully, 2), (we_write, 4), (java_writes, 4), (we_compact, 1),
        (java_compacts, 1), (we_write_for_long, 1), (java_writes_for_long, 1),
    )  # fmt: skip

    def turn(self) -> None:
        """A random move, and what must hold after it."""
        ((move, _),) = self.rng.choices(self.MOVES, [weight for _, weight in self.MOVES])
        self.do(move)

    def do(self, move: Callable[["Duel"], None]) -> None:
        """A move, and what must hold after it."""
        print(move.__name__)
        move(self)
        self.steps += 1
        self.check()

    def check(self) -> None:
        """Both read the same, all of it and parts."""
        rows = self.table.agree()
        check_levels(self.table.ours())
        asking = not any(column.free in ("hll", "bitmap") for column in self.merging.columns.values())
        if asking and self.steps % 4 == 0:
            check_questions(self.table, rows, self.rng, filters=2, projections=1)
        self._projected(rows)

    def _projected(self, rows: list[list[Any]]) -> None:
        """Some columns read alone are those columns of all. Java forgets what removes records, if not asked for it."""
        fields = self.table.fields_at()
        at = sorted(self.rng.sample(range(len(fields)), self.rng.randint(1, min(3, len(fields)))))
        some = [fields[i] for i in at]
        names = [f.name for f in some]
        expected = [[row[i] for i in at] for row in rows]
        same(self.table.our_rows(some, columns=names), expected, f"{self.table.name}: columns {names}")
        if "partial-update.remove-record-on-sequence-group" not in self.merging.options:
            found = self.table.java_rows(some, projection=names)
            same(found, expected, f"{self.table.name}: columns {names} to Java")

    def _changes(self) -> list[list[Any]]:
        return self.merging.changes(self.rng, self.rng.choice((1, 6, 25)), self.pools)

    def _we_write(self, changes: list[list[Any]], options: dict[str, str]) -> None:
        table = self.table.ours(**options)
        table.write(self.table.arrow([row for _, row in changes]), [kind for kind, _ in changes])


def _nearly_due(table: MergedTable) -> bool:
    """Return True if a few percent more or fewer bytes per file would make a compaction due."""
    hasty = {"compaction.size-ratio": "6", "compaction.max-size-amplification-percent": "190"}
    return any(plan_compaction(table.ours().with_options(options).store) for options in ({}, hasty))


def described(table: MergedTable) -> list[list[Any]]:
    """Return the metadata of every file, as far as later operations depend on it."""
    ours = table.ours()
    schema = ours.schema
    return [
        [
            partition.hex(), bucket, f.level, f.row_count, f.delete_row_count,
            repr(deserialize(f.min_key, schema.key_arrow)), repr(deserialize(f.max_key, schema.key_arrow)),
            f.min_sequence_number, f.max_sequence_number, f.file_name.rsplit(".", 1)[1],
        ]
        for (partition, bucket), levels in levels_of(ours).items()
        for f in levels.all_files
    ]  # fmt: skip
