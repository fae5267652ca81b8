"""Which live files can hold rows that match: by bucket, by key statistics, by value statistics.

Laws. Pruning may keep too much, never too little. Where files of a bucket may overlap, only key statistics may drop a
single file (all versions of a key share the key); value statistics then drop a whole bucket or nothing, because an
older version of a row must not come back when the file with the newer one is left out.
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from paimon_core.datafile.indexes import embedded_rows
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.stats import SimpleStats, stats_schema
from paimon_core.merge import merge_engine
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.prune import ColumnStats, may_match
from paimon_core.predicate.rewrite import columns, pinned_values, restrict, to_file
from paimon_core.row.binary_row import decode_rows
from paimon_core.row.bucket import buckets as bucket_of
from paimon_core.scan.split_plan import may_delete
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_field
from paimon_core.types.datatype import DataField

MAX_KEY_COMBINATIONS = 1_000


def prune_files(
    store: FileStore, entries: list[ManifestEntry], predicate: Predicate, *, disjoint: bool = False
) -> list[ManifestEntry]:
    """The entries that can hold rows matching ``predicate`` (bound to the table's schema).

    ``disjoint``: deletion vectors leave each key once above level 0.
    """
    entries = _by_bucket(store, entries, predicate)
    schema = store.schema
    if not schema.primary_keys:
        return _select(entries, _value_mask(store, entries, predicate))
    on_keys = restrict(predicate, set(schema.trimmed_primary_keys))
    if on_keys is not None:
        entries = _select(entries, _key_mask(store, entries, on_keys))
    others = columns(predicate) - set(schema.partition_keys)
    if not others or not entries:
        return entries
    keeps_rows = merge_engine(store.options, schema.fields, schema.primary_keys).keeps_rows
    return _whole_buckets(entries, _value_mask(store, entries, predicate), keeps_rows, disjoint)


def prune_by_index(
    store: FileStore, entries: list[ManifestEntry], predicate: Predicate, *, disjoint: bool = False
) -> list[ManifestEntry]:
    """The entries that can hold matching rows by the indexes in their metadata, under the laws of statistics."""
    schema = store.schema
    if all(e.file.embedded_index is None for e in entries):
        return entries
    if not schema.primary_keys:
        return _select(entries, _index_mask(store, entries, predicate))
    on_keys = restrict(predicate, set(schema.trimmed_primary_keys))
    if on_keys is not None:
        entries = _select(entries, _index_mask(store, entries, on_keys))
    keeps_rows = merge_engine(store.options, schema.fields, schema.primary_keys).keeps_rows
    return _whole_buckets(entries, _index_mask(store, entries, predicate), keeps_rows, disjoint)


def _index_mask(store: FileStore, entries: Sequence[ManifestEntry], predicate: Predicate) -> np.ndarray:
    moved = {
        schema_id: to_file(predicate, store.schema.fields, store.schemas.get(schema_id).fields)
        for schema_id in {e.file.schema_id for e in entries}
    }

    def may_match(entry: ManifestEntry) -> bool:
        p = moved[entry.file.schema_id]
        return p is None or embedded_rows(store, entry.file, p) is not False

    return np.array([may_match(e) for e in entries], bool)


def _whole_buckets(
    entries: list[ManifestEntry], matching: np.ndarray, keeps_rows: bool, disjoint: bool
) -> list[ManifestEntry]:
    """Value statistics on a merged table: file by file where nothing overlaps, else the bucket as a whole.

    Where a merged row need not be one of the rows it is made of, it may match though no file does: all stays.
    """
    groups: dict[tuple[bytes, int], list[int]] = {}
    for i, entry in enumerate(entries):
        groups.setdefault((entry.partition, entry.bucket), []).append(i)
    kept = np.zeros(len(entries), bool)
    for members in groups.values():
        levels = {entries[i].file.level for i in members}
        alone = len(members) == 1 or (len(levels) == 1 and 0 not in levels)
        if disjoint and 0 not in levels:
            alone = alone or not any(may_delete(entries[i].file) for i in members)
        kept[members] = matching[members] if alone else (not keeps_rows or matching[members].any())
    return _select(entries, kept)


def _select(entries: list[ManifestEntry], mask: np.ndarray) -> list[ManifestEntry]:
    return list(itertools.compress(entries, mask.tolist()))


def _by_bucket(store: FileStore, entries: list[ManifestEntry], predicate: Predicate) -> list[ManifestEntry]:
    schema = store.schema
    keys = schema.bucket_keys
    pinned = pinned_values(predicate, keys) if keys else None
    if pinned is None or any(k not in pinned for k in keys):
        return entries
    if np.prod([float(len(pinned[k])) for k in keys]) > MAX_KEY_COMBINATIONS:
        return entries
    key_schema = pa.schema([arrow_field(schema.field(k)) for k in keys])
    rows = list(itertools.product(*(pinned[k] for k in keys)))
    batch = pa.RecordBatch.from_arrays(
        [pa.array([row[i] for row in rows], f.type) for i, f in enumerate(key_schema)],
        schema=pa.schema([f.with_nullable(True) for f in key_schema]),
    )
    function = store.bucket_function
    possible: dict[int, set[int]] = {}

    def holds(entry: ManifestEntry) -> bool:
        total = entry.total_buckets
        if total <= 0 or entry.bucket < 0:
            return True
        if total not in possible:
            possible[total] = set(bucket_of(batch, total, function).tolist())
        return entry.bucket in possible[total]

    return [e for e in entries if holds(e)]


def _key_mask(store: FileStore, entries: list[ManifestEntry], predicate: Predicate) -> np.ndarray:
    fields = tuple(store.schema.field(k) for k in store.schema.trimmed_primary_keys)
    return _mask(
        entries,
        lambda e: e.file.schema_id,
        lambda e: e.file.key_stats,
        lambda e: fields,
        lambda file_id: to_file(predicate, store.schema.fields, store.schemas.get(file_id).fields),
        store,
    )


def _value_mask(store: FileStore, entries: list[ManifestEntry], predicate: Predicate) -> np.ndarray:
    def stats_fields(entry: ManifestEntry) -> tuple[DataField, ...]:
        file_fields = store.schemas.get(entry.file.schema_id).fields
        names = entry.file.value_stats_cols if entry.file.value_stats_cols is not None else entry.file.write_cols
        if names is None:
            return file_fields
        by_name = {f.name: f for f in file_fields}
        return tuple(by_name[n] for n in names if n in by_name)

    on_files = restrict(predicate, columns(predicate) - set(store.schema.partition_keys))
    if on_files is None:
        return np.ones(len(entries), bool)
    return _mask(
        entries,
        lambda e: (e.file.schema_id, e.file.value_stats_cols, e.file.write_cols),
        lambda e: e.file.value_stats,
        stats_fields,
        lambda key: to_file(on_files, store.schema.fields, store.schemas.get(key[0]).fields),
        store,
    )


def _mask(
    entries: Sequence[ManifestEntry],
    group_key: Callable[[ManifestEntry], object],
    stats_of: Callable[[ManifestEntry], SimpleStats],
    fields_of: Callable[[ManifestEntry], Sequence[DataField]],
    predicate_of: Callable[..., Predicate | None],
    store: FileStore,
) -> np.ndarray:
    """May-match per entry; entries that share schema and statistics columns are decoded and judged together."""
    mask = np.ones(len(entries), bool)
    groups: dict[object, list[int]] = {}
    for i, entry in enumerate(entries):
        groups.setdefault(group_key(entry), []).append(i)
    for key, members in groups.items():
        predicate = predicate_of(key)
        if predicate is None:
            continue
        fields = fields_of(entries[members[0]])
        arity = len(fields)
        judged = [i for i in members if int.from_bytes(stats_of(entries[i]).min_values[:4], "big") == arity]
        if not judged or not arity:
            continue
        stats = _column_stats([stats_of(entries[i]) for i in judged], fields, columns(predicate))
        rows = np.array([entries[i].file.row_count for i in judged], np.int64)
        mask[judged] = may_match(predicate, stats, rows, len(judged))
    return mask


def _column_stats(
    stats: Sequence[SimpleStats], fields: Sequence[DataField], wanted: set[str]
) -> dict[str, ColumnStats]:
    schema = stats_schema(fields)
    # Other engines pad the bounds of CHAR in ORC files with spaces, so that a shorter value may lie outside of them.
    picked = [i for i, f in enumerate(fields) if f.name in wanted and getattr(f.type, "root", None) != "CHAR"]
    if not picked:
        return {}
    low = decode_rows([s.min_values for s in stats], schema, picked)
    high = decode_rows([s.max_values for s in stats], schema, picked)
    result = {}
    for at, i in enumerate(picked):
        nulls = [s.null_counts[i] if i < len(s.null_counts) else None for s in stats]
        counts = np.array([-1 if n is None else n for n in nulls], np.int64)
        result[fields[i].name] = ColumnStats(low.column(at), high.column(at), counts)
    return result
