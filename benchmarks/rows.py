"""The rows all opponents get: six columns, about 41 bytes each, the same on every machine."""

import numpy as np
import pyarrow as pa

KEYS = ("int", "text")
OVERLAP = 2.5  # keys that runs of a table draw from, for each row of a run
COLUMNS = ("k", "a", "b", "c", "d", "s")


def schema(key: str) -> pa.Schema:
    """Key ``k`` as int64 or as text of 16 bytes, then int32, int64, double, int32, text of 6 bytes."""
    kind = {"int": pa.int64(), "text": pa.string()}[key]
    return pa.schema(
        [
            pa.field("k", kind, nullable=False),
            ("a", pa.int32()),
            ("b", pa.int64()),
            ("c", pa.float64()),
            ("d", pa.int32()),
            ("s", pa.string()),
        ]
    )


def make(count: int, key: str, seed: int, overlap: float = OVERLAP) -> pa.Table:
    """``count`` rows of distinct keys in random order, out of ``overlap * count`` keys: runs of all seeds overlap."""
    rng = np.random.default_rng(seed)
    ids = rng.choice(int(overlap * count), count, replace=False).astype(np.int64)
    columns = [
        pa.array(ids) if key == "int" else pa.array([f"key-{i:012d}" for i in ids.tolist()]),
        pa.array(rng.integers(0, 1 << 31, count).astype(np.int32)),
        pa.array(rng.integers(0, 1 << 62, count)),
        pa.array(rng.random(count)),
        pa.array((ids % 100).astype(np.int32)),
        pa.array([f"s{i:05d}" for i in (ids % 100_000).tolist()]),
    ]
    return pa.Table.from_arrays(columns, schema=schema(key))
