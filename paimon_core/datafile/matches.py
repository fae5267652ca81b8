"""The rows of one data file that match a filter, by statistics and by the columns of the filter."""

from collections.abc import Sequence

import numpy as np

from paimon_core.datafile.file_columns import file_format
from paimon_core.datafile.indexes import indexed_rows
from paimon_core.datafile.reader import BATCH_ROWS
from paimon_core.format.file_format import Matches, ReadRequest
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.memory import MemoryShares
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import to_file
from paimon_core.schema.evolution import evolve
from paimon_core.store.file_store import FileStore
from paimon_core.types.datatype import DataField


def file_matches(
    store: FileStore,
    bucket: BucketRef,
    meta: DataFileMeta,
    fields: Sequence[DataField],
    predicate: Predicate,
    max_bytes: int,
) -> Matches | None:
    """Return the rows of a file that match a filter, and perhaps others; `None`: see `FileFormat.matching_rows`.

    Args:
        store: the table.
        bucket: the file's bucket.
        meta: metadata of the file.
        fields: columns of the table, including the columns of the predicate.
        predicate: the filter, bound to the table's schema.
        max_bytes: the most encoded bytes of the filter's columns to decode.

    Raises the errors of `read_file`.
    """
    file_schema = store.schemas.get(meta.schema_id)
    pushed = to_file(predicate, store.schema.fields, file_schema.fields)
    if pushed is None:
        return None
    path = store.file_path(bucket, meta)
    candidates = indexed_rows(store, path, meta, pushed)
    if candidates is False:
        return Matches(np.zeros(meta.row_count, bool), 0)
    mask = candidates if isinstance(candidates, np.ndarray) else None
    stored = tuple(field for field in fields if field.name not in store.schema.partition_keys)
    columns = evolve(file_schema.fields, stored).file_columns
    shares = MemoryShares.of(store.options)
    request = ReadRequest(
        columns, BATCH_ROWS, shares.batches, pushed, mask, None, meta.row_count, path, threads=shares.threads
    )
    with store.io.open(path, meta.file_size) as source:
        matches = file_format(store, meta).matching_rows(source, request, max_bytes)
    return matches if matches is None or mask is None else Matches(matches.mask & mask, matches.encoded_bytes)


def file_may_match(
    store: FileStore, bucket: BucketRef, meta: DataFileMeta, predicate: Predicate, part: range | None
) -> bool:
    """Return False if the statistics in a file exclude that one of its rows matches a filter.

    Args:
        store: the table.
        bucket: the file's bucket.
        meta: metadata of the file.
        predicate: the filter, bound to the table's schema.
        part: the rows to look at; `None`: the whole file.

    Raises CorruptedError if the file is missing or damaged.
    """
    file_schema = store.schemas.get(meta.schema_id)
    pushed = to_file(predicate, store.schema.fields, file_schema.fields)
    if pushed is None:
        return True
    path = store.file_path(bucket, meta)
    columns = evolve(file_schema.fields, store.schema.fields).file_columns
    request = ReadRequest(columns, BATCH_ROWS, None, pushed, None, part, meta.row_count, path)
    with store.io.open(path, meta.file_size) as source:
        return file_format(store, meta).may_match(source, request)
