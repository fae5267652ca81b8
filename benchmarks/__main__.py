"""``python -m benchmarks``: run, print each row once it is measured, keep table, numbers and picture.

Exits with 1 if a row became slower than in the kept runs, relative to Parquet or pyarrow.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchmarks import (
    advice,
    cluster,
    engine,
    files,
    history,
    indexes,
    lsm,
    maintenance,
    metadata,
    pictures,
    report,
    small_files,
    spark,
    start,
    streaming,
    tpch,
)
from benchmarks.engine import Arena
from benchmarks.measure import Row
from benchmarks.workers import opponents

PARTS = {
    "engine": engine.benchmarks,
    "lsm": lsm.benchmarks,
    "indexes": indexes.benchmarks,
    "metadata": metadata.benchmarks,
    "files": files.benchmarks,
    "maintenance": maintenance.benchmarks,
    "advice": advice.benchmarks,
}
THROUGH_SPARK = {
    "start": start.benchmarks,
    "spark": spark.benchmarks,
    "small_files": small_files.benchmarks,
    "streaming": streaming.benchmarks,
    "sql": tpch.statements,
    "tpch": tpch.benchmarks,
    "cluster": cluster.benchmarks,
}


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000, help="rows of a run or a write (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds after the one to warm up (default %(default)s)")
    parser.add_argument("--files", type=int, default=1_000_000, help="files of the part files (default %(default)s)")
    parser.add_argument("--parts", nargs="+", choices=[*PARTS, *THROUGH_SPARK], default=[*PARTS, *THROUGH_SPARK])
    parser.add_argument("--opponents", nargs="*", choices=("pypaimon", "java"), default=["pypaimon", "java"])
    parser.add_argument("--output", type=Path, default=Path("artifacts"))
    keep_help = "add the ratios to benchmarks/history.jsonl, and redraw docs/reference/performance.md"
    add_help = "begin with the rows of an interrupted run: its benchmarks.json, which each part saves"
    parser.add_argument("--add", type=Path, help=add_help)
    parser.add_argument("--keep", action="store_true", help=keep_help)
    chosen = parser.parse_args()
    done = report.load(chosen.add) if chosen.add else []
    print(report.machine(), report.header(), *map(report.line, done), sep="\n", flush=True)
    with tempfile.TemporaryDirectory(prefix="paimon-benchmarks-") as place:
        warehouse = Path(place)
        with opponents(warehouse, frozenset(chosen.opponents)) as workers:
            arena = Arena(warehouse, chosen.rows, chosen.rounds, workers, chosen.files)
            for part in (part for part in chosen.parts if part in PARTS):
                measure(PARTS[part](arena), done, chosen.output)
        sides = ("ours", "java") if "java" in chosen.opponents else ("ours",)
        for part in (part for part in chosen.parts if part in THROUGH_SPARK):
            rows = THROUGH_SPARK[part](Arena(warehouse, chosen.rows, chosen.rounds, {}), sides)
            measure(rows, done, chosen.output)
        saved = report.save(done, chosen.output)
        print(*saved, sep="\n")
    slower = history.slower(history.ratios_of(done), history.earlier())
    if chosen.keep:
        history.keep(history.sitting(done, report.machine(), Path(__file__).parent))
        pictures.main(next(str(path) for path in saved if path.suffix == ".json"))
    if slower:
        sys.exit("\n".join(slower))


def measure(rows: Iterable[Row], done: list[Row], directory: Path) -> None:
    """Measure the rows of a part, print each of them and add it to ``done``, and save what is done so far."""
    for row in rows:
        done.append(row)
        print(report.line(row), flush=True)
    report.save(done, directory)


if __name__ == "__main__":
    main()
