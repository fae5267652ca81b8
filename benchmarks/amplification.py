"""``python -m benchmarks.amplification``: what limits on the size of newer runs cost in writes and save in reads.

The limits are values of ``compaction.max-size-amplification-percent``. For each of them, and for several kinds of keys,
it prints two numbers. The first is the rows in files for each row of the table, averaged over the states after every
tenth commit. The second is the bytes written for each byte that writers flushed.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks import rows
from benchmarks.engine import Arena
from benchmarks.lsm import amplification
from paimon_core import Table

LIMITS = (200, 100, 75, 50)
COMMITS, SIZE = 200, 5_000
Keys = npt.NDArray[np.int64]


def _keys(kind: str) -> Iterator[Keys]:
    """The keys of each commit."""
    random = np.random.default_rng(1)
    for n in range(COMMITS):
        if kind == "200,000 keys, each in turn":
            yield np.arange(SIZE) * 40 + n % 40
        elif kind == "half new keys, half old ones":
            old = random.choice((n + 1) * SIZE // 2, SIZE // 2, replace=False)
            yield np.unique(np.concatenate([old, np.arange(n * SIZE // 2, (n + 1) * SIZE // 2)]))
        elif kind == "a few hot keys":
            yield np.unique(np.minimum(random.zipf(1.3, 12 * SIZE), 10**6))[:SIZE]
        elif kind == "only new keys, rising":
            yield np.arange(n * SIZE, (n + 1) * SIZE)
        else:
            yield random.choice(2**40, SIZE, replace=False)


KINDS = (
    "200,000 keys, each in turn",
    "half new keys, half old ones",
    "a few hot keys",
    "only new keys, rising",
    "only new keys, random",
)


def measure(table: Table, keys: Iterator[Keys]) -> tuple[float, float]:
    """Upsert all keys; return the rows in files for each row of the table, and the write amplification."""
    seen, shares = np.empty(0, np.int64), []
    for number, chosen in enumerate(keys):
        data = rows.make(len(chosen), "int", number, overlap=1.0)
        table.write(data.set_column(0, data.schema.field(0), pa.array(chosen, pa.int64())))
        seen = np.union1d(seen, chosen)
        if number % 10 == 9:
            files = [file for split in table.scan().plan().splits for file in split.files]
            shares.append(sum(file.row_count for file in files) / len(seen))
    return float(np.mean(shares)), amplification(table)


def main() -> None:
    """Print the table."""
    print("| upserts |", " | ".join(f"rows at {limit}, bytes" for limit in LIMITS), "|")
    print("|---" * (1 + len(LIMITS)) + "|")
    with tempfile.TemporaryDirectory(prefix="paimon-amplification-") as place:
        arena = Arena(Path(place), COMMITS * SIZE, 1, {}, 0)
        for number, kind in enumerate(KINDS):
            found = []
            for limit in LIMITS:
                options = {"write-only": "false", "compaction.max-size-amplification-percent": str(limit)}
                table = arena.table(f"amplification_{number}_{limit}", "int", keyed=True, options=options)
                found.append("{:.2f}, {:.2f}".format(*measure(table, _keys(kind))))
            print(f"| {kind} |", " | ".join(found), "|", flush=True)


if __name__ == "__main__":
    main()
