"""The aggregate function listagg, which joins texts."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.errors import InvalidInputError
from paimon_core.merge.aggregate.field import FieldOptions
from paimon_core.merge.aggregate.input import Aggregate, AggregateInput, offsets, refuse_retract, valid
from paimon_core.merge.normalized_keys import Column
from paimon_core.merge.segments import any_of
from paimon_core.types.datatype import MAX_LENGTH, AtomicType
from paimon_core.types.selection import Positions
from paimon_core.types.sorted_values import run_starts


def listagg(field: FieldOptions) -> Aggregate:
    """Make listagg: texts joined by the delimiter, null and empty ones skipped. Associative.

    If all texts are empty, the result is empty. With distinct, the first text is unchanged, and only the new tokens of
    later texts, split at the delimiter, are added. This is associative too.
    """
    root = isinstance(field.type, AtomicType) and field.type.root == "VARCHAR" and field.type.length == MAX_LENGTH
    field.check_type("listagg", root, "STRING")
    if field.distinct and not field.delimiter:
        raise InvalidInputError(
            f"option 'fields.{field.name}.distinct' of listagg needs a delimiter to separate texts, and "
            f"'fields.{field.name}.list-agg-delimiter' is empty"
        )

    def aggregate(column: Column, inputs: AggregateInput) -> Column:
        refuse_retract(field, "listagg", inputs)
        order = inputs.final_order()
        if order is not None:
            column = column.take(pa.array(order))
        filled = pc.fill_null(pc.greater(pc.binary_length(column), 0), False)
        rows = np.flatnonzero(filled.to_numpy(zero_copy_only=False))
        texts, group = column.take(pa.array(rows)), inputs.group()[rows]
        if field.distinct:
            texts, group = _new_tokens(texts, group, field.delimiter)
        counts = np.bincount(group, minlength=len(inputs.starts))
        lists = pa.ListArray.from_arrays(pa.array(offsets(counts)), texts)
        absent = pa.array(~any_of(valid(column), inputs.starts))
        return pc.if_else(absent, None, pc.binary_join(lists, field.delimiter))

    return aggregate


def _new_tokens(texts: Column, group: Positions, delimiter: str) -> tuple[Column, Positions]:
    """Return each group's first text unchanged, followed by the tokens of its other texts that are new in the group."""
    if not len(texts):
        return texts, group
    opens = run_starts(group)
    lists = pc.split_pattern(texts, delimiter)
    tokens, text_of = lists.flatten(), np.repeat(np.arange(len(texts)), np.diff(lists.offsets.to_numpy()))
    codes = tokens.dictionary_encode().indices.to_numpy().astype(np.int64)
    codes += group[text_of] * (int(codes.max()) + 1)
    firsts = np.unique(codes, return_index=True)[1]
    not_empty = pc.greater(pc.binary_length(tokens), 0).to_numpy(zero_copy_only=False)
    fresh = np.sort(firsts[(~opens[text_of] & not_empty)[firsts]])
    elements = pa.concat_arrays([texts.filter(pa.array(opens)), tokens.take(pa.array(fresh))])
    groups = np.concatenate([group[opens], group[text_of[fresh]]])
    order = np.argsort(groups, kind="stable")
    return elements.take(pa.array(order)), groups[order]
