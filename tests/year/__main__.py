"""Simulate a year of a warehouse: ``python -m tests.year --commits-per-day 48``; 1440 is a commit per minute."""

import argparse
from pathlib import Path
from statistics import median
from time import monotonic

from tests.year.end import simulate
from tests.year.year import TABLES, Length


def main() -> None:
    """Run a year, check it, and print what was done."""
    parser = argparse.ArgumentParser(prog="python -m tests.year", description=__doc__.partition(":")[0])
    parser.add_argument("--days", type=int, default=366)
    parser.add_argument("--commits-per-day", type=int, default=48)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--days-between-checks", type=int, default=7)
    parser.add_argument(
        "--begin", default="2028-01-01T00:00:00", help="local time in Europe/Berlin; 2028 is a leap year"
    )
    parser.add_argument(
        "--tables", nargs="+", choices=[*TABLES], default=[*TABLES], help="only these: each may have its own process"
    )
    parser.add_argument("--state", type=Path, help="a file for the run, which goes on after a stop of the process")
    given = parser.parse_args()
    begun = monotonic()
    tables = tuple(given.tables)
    length = Length(given.days, given.commits_per_day, given.seed, given.days_between_checks, given.begin, tables)
    year = simulate(
        length,
        seconds=True,
        state=given.state,
        report=lambda text: print(f"{monotonic() - begun:7.0f} s  {text}", flush=True),
    )
    print(f"{given.days} days in {monotonic() - begun:.0f} s: " + ", ".join(f"{n} {k}" for k, n in year.done.items()))
    for name, samples in sorted(year.steps.items()):
        millis = 1000 * median(sample.amount for sample in samples)
        calls = median(sample.count for sample in samples)
        print(f"  {name}: {len(samples)} times, median {calls:.0f} requests and {millis:.1f} ms of CPU time")


if __name__ == "__main__":
    main()
