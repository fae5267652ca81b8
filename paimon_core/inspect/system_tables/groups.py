"""The system tables of partitions and of buckets: sums over their data files."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.inspect.system_tables.file_tables import files_of
from paimon_core.inspect.system_tables.kind import (
    LOCAL_TIME,
    SOME_INT,
    SOME_LONG,
    Fixed,
    Part,
    Request,
    SystemTableKind,
    batch_of,
    columns,
)
from paimon_core.inspect.system_tables.value_text import braced, named, named_predicate
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.scan.entries import live_in_parts
from paimon_core.types.datatype import BIGINT, BOOLEAN, STRING, with_nullable

_PARTITIONS = columns(
    ("partition", STRING),
    ("record_count", SOME_LONG),
    ("file_size_in_bytes", SOME_LONG),
    ("file_count", SOME_LONG),
    ("last_update_time", LOCAL_TIME),
    ("created_at", LOCAL_TIME),
    ("created_by", STRING),
    ("updated_by", STRING),
    ("options", STRING),
    ("total_buckets", SOME_INT),
    ("done", with_nullable(BOOLEAN, False)),
    ("deleted_record_count", BIGINT),
)
_BUCKETS = columns(
    ("partition", STRING),
    ("bucket", SOME_INT),
    ("record_count", SOME_LONG),
    ("file_size_in_bytes", SOME_LONG),
    ("file_count", SOME_LONG),
    ("last_update_time", LOCAL_TIME),
)
_SUMS = [("rows", "sum"), ("size", "sum"), ("files", "sum"), ("created", "max"), ("total", "max")]


def grouped(entry_lists: Iterator[list[ManifestEntry]], keys: Sequence[str]) -> pa.Table:
    """Return the sums of files grouped by ``keys``: "partition" (a serialised row), "bucket", or both.

    The sums are "rows", "size" (bytes), "files", "created" (of the newest file, ms) and "total" (number of buckets).
    Memory: the groups, and the entries of one manifest.
    """
    sums = _sums([], keys)
    for entries in entry_lists:
        sums = _merged(pa.concat_tables([sums, _sums(entries, keys)]), keys)
    return sums


def _sums(entries: Sequence[ManifestEntry], keys: Sequence[str]) -> pa.Table:
    files = [entry.file for entry in entries]
    table = pa.table(
        {
            "partition": pa.array([entry.partition for entry in entries], pa.binary()),
            "bucket": pa.array([entry.bucket for entry in entries], pa.int32()),
            "rows": pa.array([file.row_count for file in files], pa.int64()),
            "size": pa.array([file.file_size for file in files], pa.int64()),
            "files": pa.array([1] * len(files), pa.int64()),
            "created": pa.array([file.creation_time for file in files], pa.int64()),
            "total": pa.array([entry.total_buckets for entry in entries], pa.int32()),
        }
    )
    return _merged(table, keys)


def _merged(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    summed = table.group_by(list(keys)).aggregate(_SUMS)
    return summed.select([*keys, *(f"{name}_{how}" for name, how in _SUMS)]).rename_columns(
        [*keys, *(name for name, _ in _SUMS)]
    )


def partition_sums(request: Request) -> pa.Table:
    """Return the sums (see `grouped`) of the partitions that a filter on the column ``partition`` does not exclude."""
    if request.snapshot is None:
        return _sums([], ["partition"])
    partition = named_predicate(request.store, request.pinned("partition"))
    entry_lists = live_in_parts(request.store, request.snapshot, partition=partition, with_stats=False)
    return grouped(([entry for entry in entries if entry.bucket >= 0] for entries in entry_lists), ["partition"])


def _read_partitions(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each partition, sorted by name."""
    sums = partition_sums(request)
    names = pa.array([named(request.store, p) for p in sums["partition"].to_pylist()], pa.string())
    order = pc.array_sort_indices(names)
    sums, nothing = sums.take(order), [None] * len(names)
    yield batch_of(
        _PARTITIONS,
        request.columns,
        {
            "partition": names.take(order),
            "record_count": _column(sums, "rows"),
            "file_size_in_bytes": _column(sums, "size"),
            "file_count": _column(sums, "files"),
            "last_update_time": _column(sums, "created").cast(pa.timestamp("ms")),
            **dict.fromkeys(("created_at", "created_by", "updated_by", "options", "deleted_record_count"), nothing),
            "total_buckets": _column(sums, "total"),
            "done": [False] * len(names),
        },
    )


def _read_buckets(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each bucket, sorted by partition and number."""
    store, keys = request.store, ["partition", "bucket"]
    sums = grouped(files_of(request), keys)
    partition_texts = {partition: braced(store, partition) for partition in set(sums["partition"].to_pylist())}
    texts = pa.array([partition_texts[partition] for partition in sums["partition"].to_pylist()], pa.string())
    order = pc.sort_indices(
        pa.table({"partition": texts, "bucket": sums["bucket"]}), [(key, "ascending") for key in keys]
    )
    sums = sums.take(order)
    yield batch_of(
        _BUCKETS,
        request.columns,
        {
            "partition": texts.take(order),
            "bucket": _column(sums, "bucket"),
            "record_count": _column(sums, "rows"),
            "file_size_in_bytes": _column(sums, "size"),
            "file_count": _column(sums, "files"),
            "last_update_time": _column(sums, "created").cast(pa.timestamp("ms")),
        },
    )


def _column(table: pa.Table, name: str) -> pa.Array:
    return table[name].combine_chunks()


PARTITIONS = SystemTableKind("partitions", Fixed(_PARTITIONS), _read_partitions, travels=True)
BUCKETS = SystemTableKind("buckets", Fixed(_BUCKETS), _read_buckets, travels=True)
