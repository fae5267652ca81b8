"""Rows that match a filter for a few values, read in this process if a filter's columns show that they are few."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from paimon_core.datafile.matches import file_matches
from paimon_core.datafile.reader import ReadOptions, read_file
from paimon_core.datafile.row_tracking import tracking_fields
from paimon_core.deletion.vector_files import load_vectors
from paimon_core.fileio.parallel import parallel_map
from paimon_core.format.file_format import Matches
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.memory import MemoryShares
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.prune import Mask
from paimon_core.predicate.rewrite import columns
from paimon_core.scan.split import DataSplit
from paimon_core.schema.blob_columns import read_by_reference
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.datatype import DataField
from paimon_core.types.selection import filter_rows

_File: TypeAlias = tuple[BucketRef, DataFileMeta]
_ALWAYS_FEW_BYTES = 8 << 20
_LARGEST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class MatchLimits:
    """The largest reads of `few_matches`."""

    rows: int
    """The most rows to return."""
    files: int
    """The most files to open."""
    file_bytes: int
    """The most bytes of all files."""
    filter_bytes: int
    """The most encoded bytes of the filter's columns."""


def few_matches(
    store: FileStore,
    splits: Sequence[DataSplit],
    fields: Sequence[DataField],
    predicate: Predicate,
    limits: MatchLimits,
) -> pa.Table | None:
    """Return the rows that match a filter; `None`: they are too many, or another reader finds them faster.

    The columns of the filter are decoded first. The other columns are decoded if at most 8 MiB or a quarter of the
    bytes of the files is left. Memory: a bool for each row of the files, and the rows.

    Args:
        store: the table.
        splits: splits without a merge.
        fields: the columns of the rows.
        predicate: the filter, bound to the columns of the table and of row tracking.
        limits: the largest read.

    Raises CorruptedError for a missing or damaged file.
    """
    store.check_readable()
    if not all(split.raw_convertible for split in splits):
        return None
    if not read_by_reference(store.schema).isdisjoint(field.name for field in fields):
        return None
    files = list({file.file_name: (split.bucket_ref, file) for split in splits for file in split.files}.values())
    size = sum(file.file_size for _, file in files)
    if not files or len(files) > limits.files or size > limits.file_bytes:
        return None
    extra = columns(predicate) - {field.name for field in fields}
    needed = (*fields, *(f for f in (*store.schema.fields, *tracking_fields(store.schema)) if f.name in extra))
    matches = _matches(store, files, needed, predicate, limits)
    if matches is None or sum(m.encoded_bytes for m in matches) > max(_ALWAYS_FEW_BYTES, _LARGEST_SHARE * size):
        return None
    _drop_deleted(store, splits, {file.file_name: m.mask for (_, file), m in zip(files, matches, strict=True)})
    rows = (
        filter_rows(batch, evaluate(predicate, batch)).select([field.name for field in fields])
        for (bucket, file), m in zip(files, matches, strict=True)
        if m.mask.any()
        for batch in read_file(store, bucket, file, needed, ReadOptions(predicate, row_mask=m.mask))
    )
    return pa.Table.from_batches(rows, arrow_schema(fields))


def _drop_deleted(store: FileStore, splits: Sequence[DataSplit], masks: Mapping[str, Mask]) -> None:
    """Clear the bits of deleted rows in the masks of files. Only the vectors of files with matches are read.

    Raises the errors of `load_vectors`.
    """
    matching = {name for name, mask in masks.items() if mask.any()}
    stored = {v.data_file: v for split in splits for v in split.vectors if v.data_file in matching}
    for name, vector in load_vectors(store.io, stored.values()).items():
        positions = vector.positions()
        masks[name][positions[: np.searchsorted(positions, len(masks[name]))]] = False


def _matches(
    store: FileStore, files: Sequence[_File], needed: Sequence[DataField], predicate: Predicate, limits: MatchLimits
) -> list[Matches] | None:
    """Return the matches of each file; `None`: a file needs another reader, or there are too many rows."""
    max_bytes = limits.filter_bytes // len(files)
    matches: list[Matches] = []
    rows = 0
    threads = MemoryShares.of(store.options).threads
    for of_file in parallel_map(lambda f: file_matches(store, *f, needed, predicate, max_bytes), files, threads):
        if of_file is None:
            return None
        matches.append(of_file)
        rows += int(np.count_nonzero(of_file.mask))
        if rows > limits.rows:
            return None
    return matches
