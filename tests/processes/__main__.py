"""``python -m tests.processes --minutes 10``: processes share tables, are killed at random, and must lose nothing."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.processes.killing import PEOPLE, Killing, check, place
from tests.processes.mutants import MUTANTS


def main() -> int:
    """Run once, check, and print what happened. Return 1, and keep the files, if a check fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.processes", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long processes are killed")
    parser.add_argument("--place", choices=["disk", "hdfs", "s3"], default="disk", help="where the tables are")
    parser.add_argument("--seed", type=int, default=1, help="the seed of who is killed")
    parser.add_argument("--without", nargs="+", default=(), choices=PEOPLE, help="processes that do not run")
    parser.add_argument("--mutant", default="", choices=MUTANTS, help="a guard that Python processes lack")
    arguments = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="processes-"))
    with place(arguments.place, home) as at:
        run = Killing(home, at, arguments.seed, arguments.without, arguments.mutant)
        try:
            run.run(arguments.minutes * 60)
            print(check(run), flush=True)
        except AssertionError as error:
            print(f"{error}\nthe notes and logs are in {home}", flush=True)
            return 1
    shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
