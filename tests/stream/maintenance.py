"""Compaction and expiry during the chain, as a process: `python -m tests.stream.maintenance PLACE a,b SEED`.

It prints `EXPIRES` and the name of a table before each expiry, and `EXPIRED` after it.
"""

import random
import sys
import time

from paimon_core.table import Table
from tests.stream.chain import place

EXPIRES, EXPIRED = "expires", "expired"


def main(warehouse: str, names: str, seed: str) -> None:
    """Run random maintenance until killed."""
    drawn = random.Random(int(seed))
    tables = [(name, Table.open(place(warehouse, name))) for name in names.split(",")]
    while True:
        name, table = drawn.choice(tables)
        if drawn.random() < 0.5:
            table.compact(full=drawn.random() < 0.3)
        else:
            print(EXPIRES, name, flush=True)
            table.maintenance.expire_snapshots(retain_max=drawn.randint(2, 8), retain_min=1)
            print(EXPIRED, name, flush=True)
        time.sleep(drawn.uniform(0, 0.5))


if __name__ == "__main__":
    main(*sys.argv[1:])
