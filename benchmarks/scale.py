"""Costs by the size of a table: ``python -m benchmarks.scale`` measures, and ``--page`` writes docs/internals/scale.md.

Tables have generated metadata. Each operation runs in processes of its own, once for its time and its memory, and once
to count its calls to the storage. The exponent says how the CPU time grows from the last size but one to the largest:
0 does not grow, 1 grows as the size does.
"""

import argparse
import json
import math
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import report
from benchmarks.engine import Arena
from benchmarks.made_up import PARTITIONS, Maker, copied, table_of_manifests, table_of_snapshots
from benchmarks.workers import once
from paimon_core import FileSystemCatalog, Schema, Table

PAGE = Path(__file__).parent.parent / "docs" / "internals" / "scale.md"
_LEAST_SECONDS = 0.02
_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of an operation: CPU seconds, the peak memory of its process in MB, and calls to the storage."""

    seconds: float
    peak_mb: int
    calls: int


@dataclass(slots=True)
class Line:
    """An operation, and its cost by the size of the table.

    Attributes:
        of: what the sizes count: files, partitions, snapshots or columns.
        operation: the operation in words.
        costs: the cost of each size, the smallest first.
    """

    of: str
    operation: str
    costs: dict[int, Cost] = field(default_factory=dict)

    @property
    def exponent(self) -> float:
        """The growth of the CPU time between the two largest sizes; NaN: one size, or too little time."""
        if len(self.costs) < 2:
            return math.nan
        (small, before), (large, after) = list(self.costs.items())[-2:]
        if after.seconds < _LEAST_SECONDS:
            return math.nan
        return math.log(after.seconds / max(before.seconds, _LEAST_SECONDS / 10)) / math.log(large / small)


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of growth: how to make a table of a size, and the operations to measure on it."""

    of: str
    sizes: Sequence[int]
    make: Callable[[Arena, int], Table]
    operations: Mapping[str, tuple[str, ...]]
    """The action of `benchmarks.once` and its arguments, by the operation in words; they run in this order."""


def table_of_existing_files(arena: Arena, files: int) -> Table:
    """Create a table whose files exist, without content, and one orphan for each partition."""
    table = table_of_manifests(arena, f"files_{files}", files)
    maker = Maker(table, table.scan(filter="dt = 0").plan().splits[0].files[0])
    for partition in range(PARTITIONS):
        maker.touch(partition, range(files // PARTITIONS + 1))
    return table


def table_of_partitions(arena: Arena, partitions: int) -> Table:
    """Create a table with a file in each partition."""
    return table_of_manifests(arena, f"partitions_{partitions}", partitions, partitions)


def table_of_history(arena: Arena, snapshots: int) -> Table:
    """Create a table of 1,000 files and many snapshots. Each snapshot replaced two files."""
    return table_of_snapshots(arena, f"history_{snapshots}", PARTITIONS * 10, snapshots, 2)


def table_of_columns(arena: Arena, columns: int) -> Table:
    """Create a keyed table of 1,000 rows with this number of columns, and commit half of them twice."""
    names = ["id", *(f"c{number}" for number in range(columns - 1))]
    schema = pa.schema([pa.field(name, pa.int64(), name != "id") for name in names])
    catalog = FileSystemCatalog(str(arena.warehouse))
    catalog.create_database("default", ignore_if_exists=True)
    options = {"bucket": "1", "write-only": "true"}
    table = catalog.create_table(f"default.columns_{columns}", Schema(schema, primary_keys=["id"], options=options))
    for rows in (_ROWS, _ROWS // 2):
        table.write(pa.table([np.arange(rows)] * columns, schema=schema))
    return table


_METADATA = {
    "plan": ("plan", ""),
    "plan of a partition": ("plan", "dt = 7"),
    "look up a key": ("get",),
    "write and commit a row": ("commit", "7"),
    "tag, create and delete": ("tag",),
    "`$files`": ("$files", "read"),
    "`$partitions`": ("$partitions", "read"),
    "advice": ("advice",),
}


def subjects(most: int) -> tuple[Subject, ...]:
    """Return the kinds of growth. `most`: the largest number of files; other sizes end a tenth or hundredth below."""
    return (
        Subject(
            "files",
            [size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= most],
            table_of_existing_files,
            {
                **_METADATA,
                "find orphan files": ("orphans", "now"),
                "verify": ("verify",),
                "drop a partition": ("drop", "9"),
            },
        ),
        Subject(
            "partitions",
            [size for size in (100, 1_000, 10_000, 100_000) if size <= most // 10],
            table_of_partitions,
            {**_METADATA, "drop a partition": ("drop", "9")},
        ),
        Subject(
            "snapshots",
            [size for size in (10, 100, 1_000, 10_000) if size <= most // 100],
            table_of_history,
            {
                "plan": ("plan", ""),
                "write and commit a row": ("commit", "7"),
                "`$snapshots`": ("$snapshots", "read"),
                "find orphan files": ("orphans", "now"),
                "expire all but one": ("expire", "1"),
            },
        ),
        Subject(
            "columns",
            [size for size in (20, 200, 2_000) if size <= most // 50],
            table_of_columns,
            {
                "plan with a filter": ("plan", "c1 > 5"),
                "read 1,000 rows of two runs": ("read",),
                "write and commit a row": ("commit", "0"),
                "verify": ("verify",),
            },
        ),
    )


def measured(arena: Arena, subject: Subject) -> Iterator[Line]:
    """Yield each operation of a kind of growth with its costs; tables are created size by size."""
    lines = {name: Line(subject.of, name) for name in subject.operations}
    for size in subject.sizes:
        table = subject.make(arena, size)
        for name, action in subject.operations.items():
            lines[name].costs[size] = cost(table, action)
    yield from lines.values()


def cost(table: Table, action: tuple[str, ...]) -> Cost:
    """Run an action in two processes, each on a table in the same state, and return its cost."""
    path = table.path
    if action[0].startswith("$"):
        path, action = path + action[0], action[1:]
    changing = action[0] in ("expire", "drop")
    other = copied(table, f"{Path(table.path).name}_copy").path if changing else path
    timing, answer = once(action[0], path, *action[1:])
    _, counted = once(action[0], other, *action[1:], calls=True)
    return Cost(round(timing.cpu, 3), answer["peak_mb"], counted["calls"])


def page_table(lines: Sequence[Line]) -> str:
    """Return Markdown tables, one for each kind of growth, with seconds, calls, memory and exponents."""
    parts = []
    for of in dict.fromkeys(line.of for line in lines):
        mine = [line for line in lines if line.of == of]
        sizes = list(mine[0].costs)
        head = [f"{size:,} {of}" for size in sizes]
        parts += [
            f"| operation | {' | '.join(head)} | exponent | peak memory | calls |",
            "|---" * (len(sizes) + 4) + "|",
        ]
        for line in mine:
            costs = list(line.costs.values())
            seconds = " | ".join(f"{cost.seconds:.2f} s" for cost in costs)
            exponent = "-" if math.isnan(line.exponent) else f"{line.exponent:.1f}"
            memory, calls = (f"{_few(values)}" for values in zip(*((c.peak_mb, c.calls) for c in costs), strict=True))
            parts.append(f"| {line.operation} | {seconds} | {exponent} | {memory} MB | {calls} |")
        parts.append("")
    return "\n".join(parts)


def _few(values: Sequence[int]) -> str:
    """Return the value of each size, or one value if all sizes have it."""
    return f"{values[0]:,}" if len(set(values)) == 1 else ", ".join(f"{value:,}" for value in values)


def page_with(text: str, lines: Sequence[Line], machine: str) -> str:
    """Return the text of the page with these figures."""
    place = re.search(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", text, re.DOTALL)
    assert place, f"{PAGE} lacks the comments of its figures"
    return f"{text[: place.start()]}\nMachine: {machine}.\n\n{page_table(lines)}\n{text[place.end() :]}"


def main() -> None:
    """Parse the command line, measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--most", type=int, default=1_000_000, help="the largest number of files (default %(default)s)")
    parser.add_argument("--of", nargs="+", help="files, partitions, snapshots or columns; by default all")
    parser.add_argument("--page", action="store_true", help="write the figures into docs/internals/scale.md")
    parser.add_argument("--output", type=Path, default=Path("artifacts"))
    chosen = parser.parse_args()
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="paimon-scale-") as place:
        arena = Arena(Path(place), 0, 0, {})
        for subject in subjects(chosen.most):
            if chosen.of is None or subject.of in chosen.of:
                lines += measured(arena, subject)
                print(page_table([line for line in lines if line.of == subject.of]), flush=True)
    machine = report.machine()
    chosen.output.mkdir(parents=True, exist_ok=True)
    raw = {"machine": machine, "lines": [asdict(line) for line in lines]}
    (chosen.output / "scale.json").write_text(json.dumps(raw, indent=1))
    if chosen.page:
        PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), lines, machine), encoding="utf-8")


if __name__ == "__main__":
    main()
