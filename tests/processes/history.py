"""The notes of the processes of a run, and the check that they are a linearisable history.

A table of a run only gains rows: write ``number`` of a writer adds the same rows each time, and the numbers of a
writer are 0, 1, 2 and so on. So a state of a table is the number of writes of each writer that are in it, its `Counts`.
"""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Counts = Mapping[str, int]
"""The number of writes of each writer that a table has; 0: the writer is missing."""


@dataclass(slots=True)
class Write:
    """One write of a table. Moments are seconds of the clock `time.monotonic`, which all processes share."""

    writer: str
    number: int
    begin: float
    end: float | None = None
    """When it was acknowledged; `None`: never, because its process was killed, or the outcome is unknown."""


@dataclass(frozen=True, slots=True)
class Read:
    """One read of a table by a reader, and what it saw."""

    reader: str
    begin: float
    end: float
    counts: Counts

    @property
    def size(self) -> int:
        """The number of writes that it saw."""
        return sum(self.counts.values())


@dataclass
class History:
    """The writes and reads of one table."""

    writes: dict[tuple[str, int], Write] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)

    def begin(self, writer: str, number: int, at: float) -> None:
        """Note that a write begins; a write that begins again, because its process was killed, began the first time."""
        self.writes.setdefault((writer, number), Write(writer, number, at))

    def end(self, writer: str, number: int, at: float) -> None:
        """Note that a write is acknowledged."""
        write = self.writes[writer, number]
        write.end = at if write.end is None else write.end

    @property
    def acknowledged(self) -> list[Write]:
        """The writes whose process knows that they are in the table."""
        return [write for write in self.writes.values() if write.end is not None]


def read_notes(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the notes of all processes. The last line of a process that was killed may be cut, and is left out."""
    notes = []
    for file in files:
        lines = file.read_text().split("\n")
        notes += [json.loads(line) for line in lines[:-1]]
    return notes


def histories(notes: Iterable[Mapping[str, Any]]) -> dict[str, History]:
    """Return the history of each table."""
    found: dict[str, History] = {}
    for note in sorted(notes, key=lambda note: note["at"]):
        table = found.setdefault(note["table"], History()) if "table" in note else None
        match note["do"]:
            case "begin" if table:
                table.begin(note["writer"], note["number"], note["at"])
            case "end" if table:
                table.end(note["writer"], note["number"], note["at"])
            case "read" if table:
                table.reads.append(Read(note["reader"], note["begin"], note["at"], note["counts"]))
    return found


def violations(history: History) -> list[str]:
    """Return the reasons why no order of the writes and reads explains a history; none: it is linearisable.

    Let the state of a read be the set of writes that it saw. The conditions are necessary and sufficient, because a
    table only gains rows: order the writes by the smallest state that has them, and each read behind its state.

    - The states form a chain: of two, one has all writes of the other.
    - A read sees each write that was acknowledged before the read began, and none that begins after its end.
    - A read sees what was seen by a read that ended before it began.
    - A state with a write has each write that was acknowledged before this one began.
    """
    reads = sorted(history.reads, key=lambda read: (read.size, read.begin))
    found = [
        f"{_named(one)} and {_named(other)} saw states, and neither has all of the other"
        for one, other in itertools.pairwise(reads)
        if not _within(one.counts, other.counts)
    ]
    found += [reason for read in reads for reason in _against_writes(read, history)]
    return found + _out_of_order(history.reads)


def _against_writes(read: Read, history: History) -> list[str]:
    """Return what the acknowledged writes say against a read."""
    found, newest = [], read.begin
    for writer, count in ((writer, count) for writer, count in read.counts.items() if count):
        last = history.writes.get((writer, count - 1))
        if last is None:
            found.append(f"{_named(read)} saw write {count - 1} of {writer}, which nobody began")
            continue
        newest = max(newest, last.begin)
        if last.begin >= read.end:
            found.append(f"{_named(read)} saw write {count - 1} of {writer}, which began after its end")
    for write in history.acknowledged:
        if write.end < newest and write.number >= read.counts.get(write.writer, 0):
            why = "it began" if write.end < read.begin else "a write began that it saw"
            found.append(
                f"{_named(read)} missed write {write.number} of {write.writer}, acknowledged at {write.end:.3f}, "
                f"before {why}"
            )
    return found


def _out_of_order(reads: Sequence[Read]) -> list[str]:
    """Return the reads that saw less than a read that ended before."""
    found, largest = [], None
    ended = sorted(reads, key=lambda read: read.end)
    done = 0
    for read in sorted(reads, key=lambda read: read.begin):
        while ended[done].end < read.begin:
            if largest is None or ended[done].size > largest.size:
                largest = ended[done]
            done += 1
        if largest is not None and not _within(largest.counts, read.counts):
            found.append(f"{_named(read)} saw less than {_named(largest)}, which had ended before")
    return found


def _within(one: Counts, other: Counts) -> bool:
    return all(count <= other.get(writer, 0) for writer, count in one.items())


def _named(read: Read) -> str:
    return f"the read of {read.reader} from {read.begin:.3f} to {read.end:.3f}"
