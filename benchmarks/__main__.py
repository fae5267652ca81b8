"""``python -m benchmarks``: run, print each row once it is measured, keep table, numbers and picture.

Exits with 1 if a row became slower than in the kept runs, relative to Parquet or pyarrow.
"""

import argparse
import itertools
import sys
import tempfile
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
    parser.add_argument("--keep", action="store_true", help=keep_help)
    chosen = parser.parse_args()
    print(report.machine(), report.header(), sep="\n", flush=True)
    done: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="paimon-benchmarks-") as place:
        warehouse = Path(place)
        with opponents(warehouse, frozenset(chosen.opponents)) as workers:
            arena = Arena(warehouse, chosen.rows, chosen.rounds, workers, chosen.files)
            for row in itertools.chain.from_iterable(PARTS[part](arena) for part in chosen.parts if part in PARTS):
                done.append(row)
                print(report.line(row), flush=True)
        sides = ("ours", "java") if "java" in chosen.opponents else ("ours",)
        for part in (part for part in chosen.parts if part in THROUGH_SPARK):
            for row in THROUGH_SPARK[part](Arena(warehouse, chosen.rows, chosen.rounds, {}), sides):
                done.append(row)
                print(report.line(row), flush=True)
        saved = report.save(done, chosen.output)
        print(*saved, sep="\n")
    slower = history.slower(history.ratios_of(done), history.earlier())
    if chosen.keep:
        history.keep(history.sitting(done, report.machine(), Path(__file__).parent))
        pictures.main(next(str(path) for path in saved if path.suffix == ".json"))
    if slower:
        sys.exit("\n".join(slower))


if __name__ == "__main__":
    main()
