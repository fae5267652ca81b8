"""Selection of the row groups of a Parquet file by the values of the filter's columns.

The bounds of a row group exclude few values if rows are not sorted. A filter for some values of a column matches in few
row groups all the same, so its columns are decoded first, and the other columns only where a row matches.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.compute as pc

from paimon_core.fileio.parallel import parallel_map
from paimon_core.format.batch_size import encoded_bytes
from paimon_core.format.conform import conform_batch
from paimon_core.format.corruption import as_corrupted, decoded
from paimon_core.format.file_format import ReadRequest
from paimon_core.format.int96 import has_int96
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.rewrite import columns, pinned_values

_MOST_VALUES = 100
_LEAST_SHARE = 2
"""The encoded bytes of the other columns, in those of the filter's columns, from which a probe pays off."""


def probed_columns(metadata: Any, groups: Sequence[int], request: ReadRequest, least_bytes: int) -> list[str] | None:
    """Return the filter's columns if it pays off to decode them before the other columns; `None`: it does not.

    The filter must name a few values of a column whose values are not in a dictionary: a value in a dictionary is
    likely to occur in each row group. If bounds have excluded most row groups, rows are sorted, and the others match.

    Args:
        metadata: the footer.
        groups: the row groups that may have matches.
        request: the columns and the predicate.
        least_bytes: the smallest number of encoded bytes of the other columns.
    """
    predicate, stored = request.predicate, set(metadata.schema.to_arrow_schema().names)
    if predicate is None or not groups or request.row_mask is not None or has_int96(metadata):
        return None
    if request.part is None and 2 * len(groups) <= metadata.num_row_groups:
        return None
    names = columns(predicate)
    fields = [field.name for field in request.fields if field.name in stored]
    others = [name for name in fields if name not in names]
    if not others or not names <= set(fields) or not _has_few_values(predicate, _without_dictionary(metadata, groups)):
        return None
    rest = encoded_bytes(metadata, groups, others)
    pays_off = rest >= least_bytes and rest >= _LEAST_SHARE * encoded_bytes(metadata, groups, list(names))
    return [name for name in fields if name in names] if pays_off else None


def _has_few_values(predicate: Predicate, names: set[str]) -> bool:
    """Return True if the predicate accepts only a few values of one of these columns."""
    pinned = (pinned_values(predicate, [name]) for name in sorted(names & columns(predicate)))
    return any(values is not None and all(len(v) <= _MOST_VALUES for v in values.values()) for values in pinned)


def _without_dictionary(metadata: Any, groups: Sequence[int]) -> set[str]:
    """Return the paths of the columns that have no dictionary in any of these row groups."""
    of_groups = [metadata.row_group(group) for group in groups]
    return {
        metadata.schema.column(i).path
        for i in range(metadata.num_columns)
        if not any(group.column(i).has_dictionary_page for group in of_groups)
    }


def groups_with_matches(
    opened: Callable[[], Any], groups: Sequence[int], request: ReadRequest, names: Sequence[str]
) -> list[int]:
    """Return the row groups that have a row for which the predicate is true. Memory: a batch per core.

    Args:
        opened: a function that opens the file; threads share its source.
        groups: the row groups to decode.
        request: the predicate, and the fields of its columns.
        names: the columns of the predicate.
    """
    fields = [field for field in request.fields if field.name in names]
    predicate, path = request.predicate, request.path
    assert predicate is not None

    def has_match(group: int) -> bool:
        with as_corrupted(path):
            batches = opened().iter_batches(
                request.batch_rows, row_groups=[group], columns=list(names), use_threads=False
            )
        rows = (conform_batch(batch, fields, path) for batch in decoded(batches, path))
        return any(pc.any(evaluate(predicate, batch)).as_py() for batch in rows if batch.num_rows)

    matches = list(parallel_map(has_match, groups, os.cpu_count()))
    return [group for group, match in zip(groups, matches, strict=True) if match]
