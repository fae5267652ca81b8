"""A process with the engine: ``python -m tests.processes.actors ROLE NAME CONFIG``; it works until it is killed.

It notes in a file what it begins and what is acknowledged. An error whose outcome is known, such as a conflict, is
noted, and the work goes on; any other error ends the process.
"""

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa

from paimon_core import Table, open_catalog
from paimon_core.commit.idempotent import IdempotentCommits
from paimon_core.errors import CommitConflictError, CommitUnknownError, NotFoundError, OutOfRangeError
from tests.processes.mutants import MUTANTS
from tests.processes.tables import WRITTEN, arrow_rows, counts_of
from tests.support.edits import applied

ORPHAN_SECONDS = 200
"""The age of the files that the orphan remover may delete. REQUIRES: no write takes longer."""


class Run:
    """The configuration of a run, and the notes of this process."""

    def __init__(self, name: str, config: Path) -> None:
        given = json.loads(config.read_text())
        self.name, self.home = name, config.parent
        self.options: dict[str, str] = given["catalog"]
        self.java: dict[str, Any] = given["java"]
        self.mutant: str = given["mutant"]
        self.port: int = given["port"]
        self.dice = random.Random(f"{given['seed']} {name}")
        self._notes = (self.home / "notes" / f"{name}.jsonl").open("a", buffering=1)
        self._catalog = open_catalog(options=self.options)

    def table(self, name: str) -> Table:
        """Return a table of the run, newly opened."""
        table = self._catalog.table(f"db.{name}")
        assert isinstance(table, Table)
        return table

    def note(self, do: str, **what: Any) -> None:
        """Write a line of notes with the moment; the operating system keeps it if this process is killed."""
        self._notes.write(json.dumps({"do": do, "at": time.monotonic(), **what}) + "\n")

    def write(self, table: str, writer: str, number: int, action: Callable[[], object]) -> None:
        """Note a write and carry it out, again and again while it is refused."""
        self.note("begin", table=table, writer=writer, number=number)
        self.tried(f"write to {table}", action, again=True)
        self.note("end", table=table, writer=writer, number=number)

    def tried(self, what: str, action: Callable[[], object], *, again: bool = False) -> bool:
        """Carry out an action; return False if it was refused. ``again``: repeat it until it is not refused."""
        while True:
            try:
                action()
            except Exception as error:
                if not self.refused(error):
                    raise
                self.note("refused", what=what, error=type(error).__name__)
                if again:
                    continue
                return False
            return True

    def read(self, table: str, rows: Callable[[], pa.Table]) -> None:
        """Note a read and what it saw. A read whose snapshot expired saw nothing, and says so."""
        begin = time.monotonic()
        try:
            found = rows()
        except Exception as error:
            if not self.expired(error):
                raise
            self.note("missed", what=f"read of {table}", error=type(error).__name__)
            return
        end = time.monotonic()
        self.note("read", table=table, reader=self.name, begin=begin, at=end, counts=counts_of(table, found))

    def refused(self, error: Exception) -> bool:
        """Return True if an error says that nothing was changed, because another commit was first."""
        return isinstance(error, CommitConflictError)

    def expired(self, error: Exception) -> bool:
        """Return True if an error says that the snapshot of a read has expired."""
        return isinstance(error, NotFoundError | OutOfRangeError) and "expired" in str(error)


def python(run: Run) -> None:
    """Write with `Table.write`."""
    numbers: Counter[str] = Counter()
    for name in cycle(WRITTEN):
        number = numbers[name]
        rows = arrow_rows(name, run.name, number)
        run.write(name, run.name, number, lambda name=name, rows=rows: run.table(name).write(rows))
        numbers[name] += 1


def numbered(run: Run) -> None:
    """Write numbered commits, whose position is in a file: what a killed process had begun is committed once more."""
    position = run.home / "numbered.json"
    life, step = json.loads(position.read_text()) if position.exists() else (0, 0)
    while True:
        hidden = position.with_suffix(".new")
        hidden.write_text(json.dumps([life, step]))
        hidden.rename(position)
        name, number, writer = WRITTEN[step % len(WRITTEN)], step // len(WRITTEN), f"numbered-{life}"
        rows = arrow_rows(name, writer, number)
        commit = partial(_committed, run, name, rows, writer, number)
        try:
            run.write(name, writer, number, commit)
        except (CommitUnknownError, OutOfRangeError) as error:
            if isinstance(error, OutOfRangeError) and "it is unknown whether" not in str(error):
                raise
            # the history since the first attempt, by this process or a killed one, has expired
            run.note("unknown", what=f"write to {name}", error=str(error))
            life, step = life + 1, 0
            continue
        step += 1


def _committed(run: Run, name: str, rows: pa.Table, user: str, number: int) -> None:
    table = run.table(name)
    with table.writer() as writer:
        writer.write(rows)
        messages = writer.prepare_commit()
    IdempotentCommits(table.store, user).commit(messages, number, started_from=writer.started_from)


def reader(run: Run) -> None:
    """Read all tables, whole."""
    for name in cycle([*WRITTEN, "copy"]):
        run.read(name, lambda name=name: run.table(name).to_arrow())
        time.sleep(run.dice.uniform(0, 0.2))


def compactor(run: Run) -> None:
    """Compact the tables."""
    for name in _shuffled(run, [*WRITTEN, "copy"]):
        full = run.dice.random() < 0.3
        if run.tried(f"compaction of {name}", lambda name=name, full=full: run.table(name).compact(full=full)):
            run.note("compacted")
        time.sleep(run.dice.uniform(0, 1))


def expirer(run: Run) -> None:
    """Expire snapshots; of `log` when the stream has registered as its consumer, and so holds what it needs."""
    for name in _shuffled(run, [*WRITTEN, "copy"]):
        table, kept = run.table(name), run.dice.randint(60, 90)
        if name != "log" or table.consumers.list():
            expired = table.maintenance.expire_snapshots(retain_max=kept, retain_min=60, older_than=_ago(0))
            run.note("expired", count=len(expired.snapshots))
        time.sleep(run.dice.uniform(0.5, 3))


def orphans(run: Run) -> None:
    """Remove orphan files that are older than any running write."""
    for name in _shuffled(run, [*WRITTEN, "copy"]):
        removed = run.table(name).maintenance.remove_orphan_files(older_than=_ago(ORPHAN_SECONDS))
        run.note("removed", count=removed.count)
        time.sleep(run.dice.uniform(1, 4))


def _ago(seconds: float) -> int:
    return int((time.time() - seconds) * 1000)


def _shuffled(run: Run, names: list[str]) -> Iterator[str]:
    while True:
        yield from run.dice.sample(names, len(names))


ROLES: dict[str, Callable[[Run], None]] = {
    role.__name__: role for role in (python, numbered, reader, compactor, expirer, orphans)
}

if __name__ == "__main__":
    mine = Run(sys.argv[2], Path(sys.argv[3]))
    with applied(MUTANTS[mine.mutant] if mine.mutant else ()):
        ROLES[sys.argv[1]](mine)
