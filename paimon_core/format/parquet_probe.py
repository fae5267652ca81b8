"""Selection of the rows of a Parquet file by the values of the filter's columns, before other columns are decoded.

The bounds of a row group exclude few values if rows are not sorted. A filter for some values of a column matches in few
row groups all the same, so its columns are decoded first, and the other columns only where a row matches.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.fileio.parallel import parallel_map
from paimon_core.format.batch_size import encoded_bytes, parquet_row_bytes, rows_within
from paimon_core.format.conform import conform_batch
from paimon_core.format.corruption import as_corrupted, decoded
from paimon_core.format.file_format import Matches, ReadRequest
from paimon_core.format.int96 import has_int96
from paimon_core.format.parquet_columns import paths_to_decode, schema_of
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.prune import Mask
from paimon_core.predicate.rewrite import columns, pinned_values, restrict
from paimon_core.types.datatype import DataField

_MOST_VALUES = 100
_LEAST_SHARE = 2
"""A probe pays off if the other columns have at least this many times the encoded bytes of the filter's columns."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A filter on stored columns, which is decoded before the other columns of a file."""

    predicate: Predicate
    """A predicate that is true for every row that the filter of the read accepts."""
    fields: Sequence[DataField]
    """The columns of the predicate."""
    paths: Sequence[str]
    """The paths of their stored columns."""
    filter_bytes: int
    """The encoded bytes of these columns in the row groups that may have matches."""
    other_bytes: int
    """The encoded bytes of the other columns of the read in these row groups."""

    @property
    def pays_off(self) -> bool:
        """True if a read of all matching row groups is much cheaper after a probe, even if many match."""
        return self.other_bytes >= _LEAST_SHARE * self.filter_bytes


def probe_of(metadata: Any, groups: Sequence[int], request: ReadRequest) -> Probe | None:
    """Return the probe of a read; `None`: its filter does not name a few values of a column without a dictionary.

    A value in a dictionary is likely to occur in each row group.

    Args:
        metadata: the footer.
        groups: the row groups that may have matches.
        request: the columns and the predicate.
    """
    if request.predicate is None or not groups or has_int96(metadata):
        return None
    stored = schema_of(metadata).to_arrow_schema()
    in_file = set(stored.names)
    fields = [field for field in request.fields if field.name in in_file]
    predicate = restrict(request.predicate, {field.name for field in fields})
    if predicate is None or not _has_few_values(predicate, _without_dictionary(metadata, groups)):
        return None
    names = columns(predicate)
    tested = [field for field in fields if field.name in names]
    with as_corrupted(request.path):
        paths = paths_to_decode(stored, tested)
        others = paths_to_decode(stored, [field for field in fields if field.name not in names])
    return Probe(
        predicate,
        tested,
        paths,
        encoded_bytes(metadata, groups, paths),
        encoded_bytes(metadata, groups, others) if others else 0,
    )


def _has_few_values(predicate: Predicate, names: set[str]) -> bool:
    """Return True if the predicate accepts only a few values of one of these columns."""
    pinned = (pinned_values(predicate, [name]) for name in sorted(names & columns(predicate)))
    return any(values is not None and all(len(v) <= _MOST_VALUES for v in values.values()) for values in pinned)


def _without_dictionary(metadata: Any, groups: Sequence[int]) -> set[str]:
    """Return the paths of the columns that have no dictionary in any of these row groups."""
    of_groups, schema = [metadata.row_group(group) for group in groups], schema_of(metadata)
    return {
        schema.column(i).path
        for i in range(metadata.num_columns)
        if not any(group.column(i).has_dictionary_page for group in of_groups)
    }


def groups_with_matches(
    opened: Callable[[], Any], groups: Sequence[int], probe: Probe, request: ReadRequest
) -> list[int]:
    """Return the row groups that have a row for which the predicate is true. Memory: a batch per thread.

    Args:
        opened: a function that opens the file; threads share its source.
        groups: the row groups to decode.
        probe: the filter.
        request: the size of a batch, the number of threads, and the file's name in messages.
    """
    threads, rows = _limits(opened, groups, probe, request)

    def has_match(group: int) -> bool:
        return any(map(_any, _matches(opened, group, probe, rows, request.path)))

    matches = parallel_map(has_match, groups, threads)
    return [group for group, match in zip(groups, matches, strict=True) if match]


def find_matches(
    opened: Callable[[], Any], groups: Sequence[int], probe: Probe, request: ReadRequest, metadata: Any
) -> Matches:
    """Return the rows of the file for which the predicate is true.

    Arguments are as for `groups_with_matches`; `metadata` is the footer.
    """
    ends = np.cumsum([metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)])
    mask = np.zeros(metadata.num_rows, bool)
    threads, rows = _limits(opened, groups, probe, request)

    def of_group(group: int) -> Mask:
        found = _matches(opened, group, probe, rows, request.path)
        return np.concatenate([match.to_numpy(zero_copy_only=False) for match in found])

    for group, matches in zip(groups, parallel_map(of_group, groups, threads), strict=True):
        mask[ends[group] - len(matches) : ends[group]] = matches
    matching = np.unique(np.searchsorted(ends, np.flatnonzero(mask), "right")).tolist()
    paths = paths_to_decode(schema_of(metadata).to_arrow_schema(), request.fields)
    return Matches(mask, encoded_bytes(metadata, matching, paths) if matching else 0)


def _limits(opened: Callable[[], Any], groups: Sequence[int], probe: Probe, request: ReadRequest) -> tuple[int, int]:
    """Return the number of threads, and the most rows of a batch that each of them decodes.

    Without a limit of the threads, rows are not measured: this would decode some of them once more.
    """
    cores = os.cpu_count() or 1
    if request.threads is None or request.batch_bytes is None:
        return cores, request.batch_rows
    threads = min(cores, request.threads)
    most = request.batch_bytes // threads
    with as_corrupted(request.path):
        row_bytes = parquet_row_bytes(opened(), groups, probe.paths, most)
    return threads, rows_within(request.batch_rows, most, row_bytes)


def _matches(
    opened: Callable[[], Any], group: int, probe: Probe, batch_rows: int, path: str
) -> Iterator[pa.BooleanArray]:
    """Yield for each batch of a row group a mask of the rows for which the predicate is true."""
    with as_corrupted(path):
        batches = opened().iter_batches(batch_rows, row_groups=[group], columns=probe.paths, use_threads=False)
    for batch in decoded(batches, path):
        yield evaluate(probe.predicate, conform_batch(batch, probe.fields, path))


def _any(mask: pa.BooleanArray) -> bool:
    return bool(pc.any(mask).as_py())
