"""The buckets that lookups search. The metadata of a large table are read for the partitions of the keys only."""

import threading
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from paimon_core.manifest.bucket import InCountedBucket
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import files_by_bucket
from paimon_core.predicate.expr import Or
from paimon_core.predicate.rewrite import bind
from paimon_core.read.key_cache import group_codes
from paimon_core.row.binary_row import decode_rows
from paimon_core.scan.entries import has_one_encoding, is_partition, live_entries, manifest_metas
from paimon_core.scan.table_scan import TableScan
from paimon_core.snapshot.snapshot import Snapshot

_FEW_FILES = 20_000  # a table with at most this number of live files is read as a whole
_MOST_PARTITIONS = 16  # partitions that one call reads by themselves
_MOST_LOADS = 16  # calls that read some partitions; the next one reads all of them


@dataclass(frozen=True)
class LookupBucket(InCountedBucket):
    """The visible files of one bucket."""

    partition: bytes
    bucket: int
    total_buckets: int
    files: tuple[DataFileMeta, ...]
    key_schema: pa.Schema

    @cached_property
    def bounds(self) -> pa.Table:
        """The smallest keys of the files, then the largest."""
        rows = [f.min_key for f in self.files] + [f.max_key for f in self.files]
        return pa.Table.from_batches([decode_rows(rows, self.key_schema)])


class LookupBuckets:
    """The buckets of one snapshot. Thread-safe."""

    def __init__(self, scan: TableScan) -> None:
        """Read all buckets, unless the table is so large that `of_keys` reads the partitions of its keys."""
        self._scan, self._store = scan, scan.store
        self._lock = threading.Lock()
        self._buckets: list[LookupBucket] = []
        self._partitions: set[tuple[object, ...]] = set()  # the values of the partitions in _buckets
        self._loads = 0
        self._complete = scan.snapshot is None
        if scan.snapshot is not None:
            metas = manifest_metas(self._store, scan.snapshot)
            few = sum(meta.num_added_files - meta.num_deleted_files for meta in metas) <= _FEW_FILES
            if few or not self._keys_have_partitions():
                self._load(scan.snapshot, None)

    def of_keys(self, keys: pa.Table) -> list[LookupBucket]:
        """Return the buckets of the partitions of these primary keys, and all buckets that were read before."""
        with self._lock:
            if not self._complete and self._scan.snapshot is not None:
                self._load(self._scan.snapshot, self._missing_partitions(keys))
            return list(self._buckets)

    def _keys_have_partitions(self) -> bool:
        """Return True if a primary key names one partition, by values with one encoding."""
        schema = self._store.schema
        named = bool(schema.partition_keys) and set(schema.partition_keys) <= set(schema.primary_keys)
        return named and all(map(has_one_encoding, schema.partition_arrow.types))

    def _missing_partitions(self, keys: pa.Table) -> set[tuple[object, ...]] | None:
        """Return the partitions of the keys that were not read. `None`: all partitions should be read at once."""
        columns = self._store.schema.partition_keys
        _, first = group_codes(keys, columns)
        rows = keys.select(columns).take(pa.array(first)).to_pylist()
        missing = {tuple(row[column] for column in columns) for row in rows} - self._partitions
        return None if self._loads >= _MOST_LOADS or len(missing) > _MOST_PARTITIONS else missing

    def _load(self, snapshot: Snapshot, partitions: set[tuple[object, ...]] | None) -> None:
        """Add the buckets of these partitions. ``partitions``: `None`: read all buckets again."""
        if partitions is not None and not partitions:
            return
        schema = self._store.schema
        where = None
        if partitions is not None:
            tests = [is_partition(schema.partition_keys, values) for values in partitions]
            where = bind(Or(tuple(tests)), schema.partition_fields)
        live = live_entries(self._store, snapshot, partition=where, with_stats=False).live
        files_of = files_by_bucket(self._scan.visible(live))
        buckets = [LookupBucket(*bucket, tuple(files), schema.key_arrow) for bucket, files in files_of.items()]
        if partitions is None:
            self._buckets, self._complete = buckets, True
        else:
            self._buckets += buckets
            self._partitions |= partitions
            self._loads += 1
