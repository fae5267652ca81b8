"""Selection of the row groups of a Parquet file that can hold a requested row."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.format.file_format import ReadRequest
from paimon_core.format.parquet_columns import schema_of
from paimon_core.predicate.expr import VariantPath
from paimon_core.predicate.prune import ColumnStats, may_match
from paimon_core.predicate.rewrite import columns, tested
from paimon_core.types.arrow import to_arrow
from paimon_core.variant.partial import leaf_group
from paimon_core.variant.paths import variant_steps, variant_value_type


def row_groups_to_read(metadata: Any, request: ReadRequest) -> list[int]:
    """Return the numbers of the row groups to read, in order, given the footer of the file.

    A row group without statistics, or with statistics of an unexpected type, is read.
    """
    groups = list(range(metadata.num_row_groups))
    counts = np.array([metadata.row_group(g).num_rows for g in groups], np.int64)
    ends, row_mask, part = np.cumsum(counts), request.row_mask, request.part
    if row_mask is not None and len(row_mask) == metadata.num_rows:
        groups = np.unique(np.searchsorted(ends, np.flatnonzero(row_mask), "right")).tolist()
    if part is not None:
        middles = (ends - counts + counts // 2).tolist()
        groups = [g for g in groups if middles[g] in part]
    if request.predicate is None or not groups:
        return groups
    referenced = columns(request.predicate)
    schema = schema_of(metadata)
    leaves = {schema.column(i).path: i for i in range(metadata.num_columns)}
    stored = schema.to_arrow_schema()
    in_file, known = set(stored.names), {}
    for field in request.fields:
        name = field.name
        if name in referenced and "." not in name and name in leaves and name in in_file:
            leaf, arrow = leaves[name], to_arrow(field.type)
            if stored.field(name).type == arrow and schema.column(leaf).physical_type != "INT96":
                known[name] = row_group_bounds(metadata, groups, leaf, arrow)
    for values in tested(request.predicate):
        if isinstance(values, VariantPath) and values.type is not None and values.parts[0] in in_file:
            bounds = _bounds_in_variants(metadata, groups, stored.field(values.parts[0]).type, values)
            known |= {} if bounds is None else {values: bounds}
    matching = may_match(request.predicate, known, counts[groups], len(groups))
    return [g for g, match in zip(groups, matching, strict=True) if match]


def _bounds_in_variants(
    metadata: Any, groups: list[int], stored: pa.DataType, values: VariantPath
) -> ColumnStats | None:
    """Return the bounds of the values at a path of shredded variants; `None`: the file has no column of this type.

    A row group has bounds only if all values are in the typed column. Whole numbers may be stored in a narrower type.

    Args:
        metadata: the footer.
        groups: numbers of row groups.
        stored: the type of the column of variants.
        values: the path, and the type of the values.
    """
    steps, target = variant_steps(values.path), to_arrow(variant_value_type(values.type or ""))
    group = leaf_group(stored, steps) if len(values.parts) == 1 else None
    if group is None:
        return None
    kind, at = group
    typed = kind.field("typed_value").type
    whole = pa.types.is_signed_integer(typed) and pa.types.is_signed_integer(target)
    prefix = ".".join((values.parts[0], *at))
    schema = schema_of(metadata)
    paths = [schema.column(i).path for i in range(metadata.num_columns)]
    leaf, others = (
        [i for i, path in enumerate(paths) if path == f"{prefix}.{name}"] for name in ("typed_value", "value")
    )
    if len(leaf) != 1 or len(others) > 1 or not (typed == target or whole):  # dots in names may make two paths equal
        return None
    if schema.column(leaf[0]).physical_type == "INT96":
        return None
    bounds = row_group_bounds(metadata, groups, leaf[0], target)
    only_typed = [all(_is_null(metadata.row_group(g), i) for i in others) for g in groups]
    unknown = pa.nulls(len(groups), target)
    exact = typed == target  # else a value that the wanted type cannot hold is NULL
    return ColumnStats(
        pc.if_else(pa.array(only_typed), bounds.min, unknown),
        pc.if_else(pa.array(only_typed), bounds.max, unknown),
        np.where(only_typed, bounds.null_count, -1) if exact else np.full(len(groups), -1),
    )


def _is_null(group: Any, leaf: int) -> bool:
    """Return True if the footer says that a stored column has no value in a row group."""
    statistics = group.column(leaf).statistics
    return statistics is not None and statistics.has_null_count and statistics.null_count == group.num_rows


def row_group_bounds(metadata: Any, groups: list[int], leaf: int, arrow: pa.DataType) -> ColumnStats:
    """Return the bounds of one column in these row groups; a bound is unknown if the footer has no readable one.

    Args:
        metadata: the footer.
        groups: numbers of row groups.
        leaf: the number of the stored column.
        arrow: its type.
    """
    lows, highs, nulls = [], [], []
    for group in groups:
        stats = metadata.row_group(group).column(leaf).statistics
        try:
            bounds = (stats.min, stats.max) if stats is not None and stats.has_min_max else (None, None)
            pa.array(bounds, arrow)
        except (pa.ArrowException, ValueError, OverflowError, TypeError):  # out of range, or cut inside a character
            bounds = (None, None)
        lows.append(bounds[0])
        highs.append(bounds[1])
        nulls.append(stats.null_count if stats is not None and stats.has_null_count else -1)
    return ColumnStats(pa.array(lows, arrow), pa.array(highs, arrow), np.array(nulls, dtype=np.int64))
