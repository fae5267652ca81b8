"""The system tables of partitions and of buckets: sums over their data files."""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.inspect.system_tables.file_tables import columns_of
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
from paimon_core.inspect.system_tables.value_text import braced_all, named_all, named_predicate
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.entry_list import EntryList
from paimon_core.manifest.vectorized_decode import EntryColumns
from paimon_core.scan.entries import live_columns_in_parts
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
_ATTRIBUTES = ("row_count", "file_size", "creation_time")
_PENDING = 1 << 16  # rows of sums that are added up together; more, if there are more groups
_UNKNOWN = -(1 << 63)  # the creation time of a file that stores no time


def grouped(parts: Iterable[EntryColumns | list[ManifestEntry]], *, by_bucket: bool) -> pa.Table:
    """Return the sums of the files of each partition, or of each bucket, in the order of the first files.

    The columns are "partition" (a serialised row), "bucket" (only with `by_bucket`), "rows", "size" (bytes), "files",
    "created" (of the newest file, ms) and "total" (number of buckets). Memory: about 100 bytes for each group, and the
    files of one part. `parts`: files with `_ATTRIBUTES`.
    """
    partitions: dict[bytes, int] = {}
    sums, pending = np.zeros((7, 0), np.int64), 0
    waiting: list[np.ndarray] = []
    for part in parts:
        waiting.append(_summed(_numbers(part, partitions, by_bucket)))
        pending += waiting[-1].shape[1]
        if pending > max(_PENDING, sums.shape[1]):  # so the work grows with the files, not with parts * groups
            sums, pending, waiting = _summed(np.concatenate([sums, *waiting], axis=1)), 0, []
    sums = _summed(np.concatenate([sums, *waiting], axis=1))
    names = np.array(list(partitions), object)[sums[0]]
    columns = {
        "partition": pa.array(names, pa.binary()),
        "bucket": pa.array(sums[1], pa.int64()).cast(pa.int32()),
        "rows": pa.array(sums[2]),
        "size": pa.array(sums[3]),
        "files": pa.array(sums[4]),
        "created": pa.array(sums[5], mask=sums[5] == _UNKNOWN),
        "total": pa.array(sums[6], pa.int64()).cast(pa.int32()),
    }
    return pa.table({name: column for name, column in columns.items() if by_bucket or name != "bucket"})


def _numbers(
    part: EntryColumns | list[ManifestEntry], partitions: dict[bytes, int], by_bucket: bool
) -> npt.NDArray[np.int64]:
    """Return the columns of `grouped` of each file, with the number of its partition.

    New partitions are added to `partitions`. Without `by_bucket`, the number of each bucket is 0.
    """
    files = EntryList(part) if isinstance(part, list) else part
    numbers = [partitions.setdefault(partition, len(partitions)) for partition in files.partitions()]
    rows, sizes, created = (files.values(attribute) for attribute in _ATTRIBUTES)
    if not isinstance(created, np.ndarray):
        created = [_UNKNOWN if at is None else at for at in created]
    buckets = files.buckets() if by_bucket else np.zeros(len(numbers), np.int64)
    ones = np.ones(len(numbers), np.int64)
    columns = (numbers, buckets, rows, sizes, ones, created, files.total_buckets())
    return np.stack([np.asarray(column, np.int64) for column in columns])


def _summed(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Add up the columns of equal partition and bucket; the last two are the maximum. The result is sorted."""
    if not numbers.shape[1]:
        return numbers
    numbers = numbers[:, np.lexsort((numbers[1], numbers[0]))]
    starts = np.flatnonzero(np.r_[True, (numbers[:2, 1:] != numbers[:2, :-1]).any(axis=0)])
    sums = np.add.reduceat(numbers[2:5], starts, axis=1)
    return np.concatenate([numbers[:2, starts], sums, np.maximum.reduceat(numbers[5:], starts, axis=1)])


def _ready(parts: Iterable[EntryColumns | list[ManifestEntry]]) -> Iterator[EntryColumns | list[ManifestEntry]]:
    """Yield the files outside postponed buckets, whose rows reads do not show."""
    for part in parts:
        if isinstance(part, list):
            yield [entry for entry in part if entry.bucket >= 0]
        else:
            part.take(np.flatnonzero(part.buckets() >= 0))
            yield part


def partition_sums(request: Request) -> pa.Table:
    """Return the sums (see `grouped`) of the partitions that a filter on the column ``partition`` does not exclude."""
    if request.snapshot is None:
        return grouped((), by_bucket=False)
    partition = named_predicate(request.store, request.pinned("partition"))
    parts = live_columns_in_parts(request.store, request.snapshot, _ATTRIBUTES, partition=partition)
    return grouped(_ready(parts), by_bucket=False)


def _read_partitions(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each partition, sorted by name."""
    sums = partition_sums(request)
    names = pa.array(named_all(request.store, sums["partition"].to_pylist()), pa.string())
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
    keys = ["partition", "bucket"]
    sums = grouped(columns_of(request, _ATTRIBUTES), by_bucket=True)
    partitions = pc.dictionary_encode(sums["partition"].combine_chunks())
    distinct = pa.array(braced_all(request.store, partitions.dictionary.to_pylist()), pa.string())
    texts = distinct.take(partitions.indices)
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
