"""The hash indexes of a table with dynamic buckets, and what must hold of them."""

from pathlib import Path

import numpy as np

from paimon_core.datafile.hash_index import read_hashes
from paimon_core.manifest.index_entry import HASH
from paimon_core.row.encode import encode
from paimon_core.row.murmur import hashes as hash_rows
from paimon_core.scan.table_scan import TableScan
from paimon_core.table import Table


def indexes_of(table: Table) -> dict[tuple[bytes, int], np.ndarray]:
    """The hashes of every bucket of the newest snapshot."""
    snapshot = table.snapshot()
    if snapshot is None or snapshot.index_manifest is None:
        return {}
    entries = table.store.manifests.read_index(snapshot.index_manifest)
    return {e.bucket_ref: read_hashes(table.store, e) for e in entries if e.index_type == HASH}


def check_indexes(table: Table) -> dict[int, int]:
    """Check that every key is in the index of its bucket only, and return the number of keys of each bucket.

    For a table in a directory, also check that each index file is named by a snapshot.
    """
    store, actual = table.store, indexes_of(table)
    for at in {partition for partition, _ in actual}:
        hashes = [h for (partition, _), some in actual.items() if partition == at for h in some.tolist()]
        assert len(hashes) == len(set(hashes))
    snapshot = table.snapshot()
    keys = list(store.schema.trimmed_primary_keys)
    for split in [] if snapshot is None else TableScan(store, snapshot).plan().splits:
        for batch in table.reader(keys).to_batches(split):
            stored = hash_rows(encode(batch))
            assert set(stored.tolist()) <= set(actual[split.bucket_ref].tolist())
    named = {
        e.file_name for s in table.snapshots() if s.index_manifest for e in store.manifests.read_index(s.index_manifest)
    }
    assert {path.name for path in (Path(table.path) / "index").glob("*")} <= named
    sizes: dict[int, int] = {}
    for (_, bucket), some in sorted(actual.items()):
        sizes[bucket] = sizes.get(bucket, 0) + len(some)
    return sizes
