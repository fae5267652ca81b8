"""The merge order: rows are sorted by key, and within a key from the oldest row to the newest."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.merge.normalized_keys import Column, KeyWord, comparable, filled, nullable_key_words, words
from paimon_core.merge.row_kinds import FILE_AGE, SEQUENCE_NUMBER, VALUE_KIND, is_retract_batch
from paimon_core.types.float_order import in_key_order
from paimon_core.types.selection import Positions, only_chunk


@dataclass(frozen=True, slots=True)
class MergeOrder:
    """Names of the columns to merge by.

    Rows are grouped by ``key``. Within a key they are ordered by, in this order:

    1. ``sequence_fields``; nulls are smallest, even if ``descending`` inverts the comparison of values.
    2. ``_SEQUENCE_NUMBER``.
    3. ``FILE_AGE``, if the rows have it.
    4. The kind: rows that retract come before rows that add.
    5. The run: older runs come first.

    With ``by_run`` the run follows ``sequence_fields`` directly, and the rows need no ``_SEQUENCE_NUMBER``.
    With ``nullable`` keys may contain nulls, which are equal to each other and smaller than all values.
    """

    key: tuple[str, ...]
    sequence_fields: tuple[str, ...] = ()
    descending: bool = False
    by_run: bool = False
    nullable: bool = False


def ascending_order(spans: Sequence[tuple[int, int]]) -> list[int] | None:
    """Return the order in which the spans (least, largest) ascend without overlap; `None` if two spans overlap."""
    order = sorted(range(len(spans)), key=spans.__getitem__)
    if any(spans[later][0] <= spans[earlier][1] for earlier, later in itertools.pairwise(order)):
        return None
    return order


def key_columns(rows: pa.RecordBatch | pa.Table, order: MergeOrder) -> list[Column]:
    """Return the key columns in comparable form, without nulls: a nullable column follows a column of its validity.

    InvalidInputError for a null in a key that is not nullable.
    """
    columns = []
    for name in order.key:
        column: Column = rows.column(name) if isinstance(rows, pa.RecordBatch) else only_chunk(rows, name)
        if order.nullable:
            columns += [column.is_valid().cast(pa.int8()), filled(comparable(in_key_order(column), name))]
            continue
        if column.null_count:
            raise InvalidInputError(f"Key column {name!r} holds {column.null_count} nulls; keys cannot be null.")
        columns.append(comparable(in_key_order(column), name))
    return columns


def key_words(rows: pa.Table, order: MergeOrder, extremes: Positions | None = None) -> list[KeyWord]:
    """Return the words of the key; ``extremes``: rows that include the least and largest value of its first column."""
    if order.nullable:
        columns = ((name, in_key_order(only_chunk(rows, name))) for name in order.key)
        return [word for name, column in columns for word in nullable_key_words(column, name)]
    return [
        word
        for i, name in enumerate(order.key)
        for word in words(in_key_order(only_chunk(rows, name)), name, None if i else extremes)
    ]


def sequence_words(rows: pa.Table, order: MergeOrder) -> list[KeyWord]:
    """Return the words of the sequence fields. InvalidInputError for NaN, which equals every value in Java's order."""
    sorted_by: list[KeyWord] = []
    for name in order.sequence_fields:
        column = only_chunk(rows, name)
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            raise InvalidInputError(
                f"column {name!r} orders rows ('sequence.field') and holds NaN, which is neither older nor newer than "
                "anything; store NULL, which is older than everything"
            )
        sorted_by += nullable_key_words(column, name, descending=order.descending)
    return sorted_by


def age_words(rows: pa.Table) -> list[KeyWord]:
    """Return the words of sequence number, file age and kind; columns that the rows lack are skipped."""
    sorted_by: list[KeyWord] = []
    if SEQUENCE_NUMBER in rows.column_names:
        sorted_by += words(only_chunk(rows, SEQUENCE_NUMBER), SEQUENCE_NUMBER)
    if FILE_AGE in rows.column_names:
        ages = only_chunk(rows, FILE_AGE).to_numpy()
        sorted_by.append(lambda at: (ages if at is None else ages[at]).astype(np.uint64))
    if VALUE_KIND in rows.column_names:
        adds = ~is_retract_batch(rows.column(VALUE_KIND))
        sorted_by.append(lambda at: (adds if at is None else adds[at]).astype(np.uint64))
    return sorted_by
