"""The live files of a snapshot, pruned by partition and bucket while they are read."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa

from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.bucket_filter import BucketFilter
from paimon_core.manifest.entry import ADD, ManifestEntry, merge_entries
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.manifest.prune import keep
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import And, Leaf, Predicate, disjunction
from paimon_core.row.binary_row import decode_rows
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

MAX_PARTITIONS = 256  # partitions named in one predicate; for more, everything is read


@dataclass(frozen=True, slots=True)
class Entries:
    """Live entries, and what was passed over to find them."""

    live: list[ManifestEntry]
    manifests: int
    manifests_read: int


def manifest_metas(store: FileStore, snapshot: Snapshot) -> list[ManifestFileMeta]:
    """All manifests of a snapshot, oldest first."""
    lists = (
        (snapshot.base_manifest_list, snapshot.base_manifest_list_size),
        (snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
    )
    return [meta for name, size in lists for meta in store.manifests.read_list(name, size)]


def live_entries(
    store: FileStore,
    snapshot: Snapshot,
    *,
    partition: Predicate | None = None,
    buckets: Collection[BucketRef] | None = None,
    with_stats: bool = True,
) -> Entries:
    """Files of the snapshot that are in partitions matching ``partition`` (bound) and in one of ``buckets``.

    Whole identities are kept or dropped: an entry that adds a file and the one that deletes it share partition and
    bucket, so filtering by either never brings a deleted file back.
    """
    metas = manifest_metas(store, snapshot)
    fields = store.schema.partition_fields
    wanted = keep(metas, partition, fields, buckets=None if buckets is None else {b for _, b in buckets})
    test = PartitionFilter(partition, store.schema.partition_arrow) if partition is not None else None

    manifests = store.manifests
    only = None if buckets is None else BucketFilter.for_buckets(buckets)

    def read(meta: ManifestFileMeta) -> list[ManifestEntry]:
        entries = manifests.read(meta.file_name, meta.file_size, with_stats=with_stats, only=only)
        if test is not None:
            passed = test.matching({e.partition for e in entries})
            entries = [e for e in entries if e.partition in passed]
        return entries

    found = [entry for entries in parallel_map(read, wanted) for entry in entries]
    return Entries([e for e in merge_entries(found) if e.kind == ADD], len(metas), len(wanted))


def partitions_predicate(store: FileStore, partitions: Collection[bytes]) -> Predicate | None:
    """A bound predicate that holds in these partitions; None where there are too many, or no columns, to say it."""
    keys = store.schema.partition_keys
    if not keys or len(partitions) > MAX_PARTITIONS:
        return None
    return disjunction([_is_partition(keys, store.partition_values(p)) for p in partitions])


def _is_partition(keys: Sequence[str], values: Sequence[object]) -> Predicate:
    tests = [Leaf("is null", k) if v is None else Leaf("=", k, (v,)) for k, v in zip(keys, values, strict=True)]
    return And(tuple(tests)) if len(tests) > 1 else tests[0]


class PartitionFilter:
    """A partition predicate evaluated once per distinct partition."""

    def __init__(self, predicate: Predicate, schema: pa.Schema) -> None:
        self._predicate, self._schema = predicate, schema
        self._known: dict[bytes, bool] = {}

    def matching(self, partitions: Collection[bytes]) -> set[bytes]:
        """Those of the partitions that match."""
        new = [p for p in partitions if p not in self._known]
        if new:
            passed = evaluate(self._predicate, decode_rows(new, self._schema))
            self._known.update(zip(new, passed.to_numpy(zero_copy_only=False).tolist(), strict=True))
        return {p for p in partitions if self._known[p]}
