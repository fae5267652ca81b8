"""``python -m tests.memory``: run operations under an enforced ``memory-limit``, and print their peaks."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.memory.cases import CASES
from tests.memory.limited import measure


def main() -> int:
    """Run cases and print a table. Return 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.memory", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"one of {', '.join(CASES)}; by default all")
    parser.add_argument("--limit", type=int, default=256, help="memory-limit in MB (default: 256)")
    parser.add_argument("--times", type=float, default=10, help="the size of the rows, in limits (default: 10)")
    parser.add_argument("--enforced", type=int, help="MB to enforce; by default the limit; 0: nothing is enforced")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        parser.error(f"unknown cases: {', '.join(sorted(unknown))}")
    failed = False
    print("| operation | rows | limit | peak | seconds |\n|---|---|---|---|---|", flush=True)
    for name in arguments.cases or CASES:
        with tempfile.TemporaryDirectory(prefix="paimon-memory-") as directory:
            result = measure(name, Path(directory), arguments.limit, arguments.times, arguments.enforced)
        failed = failed or result.error is not None
        peak = f"{result.peak} MB" if result.error is None else f"failed: {result.error.splitlines()[-1]}"
        print(
            f"| {CASES[name].what} | {result.megabytes} MB | {arguments.limit} MB | {peak} | {result.seconds:.0f} |",
            flush=True,
        )
        if result.error is not None:
            print(result.error, file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
