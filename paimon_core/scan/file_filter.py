"""Pruning of live files: the files that can hold matching rows, by bucket, statistics and indexes.

Pruning may keep too many files, never too few. If files of a bucket may overlap, a single file is pruned by the key
only: all versions of a row share the key. Other columns prune a whole bucket or nothing: an older version of a row must
not reappear because the file with its newer version was left out.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

import numpy as np
import pyarrow as pa

from paimon_core.datafile.indexes import embedded_rows
from paimon_core.manifest.data_file import DataFileMeta, StatsLayout
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.manifest.stats import SimpleStats, stats_schema
from paimon_core.predicate.expr import Predicate
from paimon_core.predicate.prune import ColumnStats, may_match
from paimon_core.predicate.rewrite import columns, pinned_values, restrict, to_file
from paimon_core.row.binary_row import decode_rows
from paimon_core.row.bucket import buckets as bucket_of
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_field
from paimon_core.types.datatype import DataField
from paimon_core.types.small_arrays import small_array

MAX_KEY_COMBINATIONS = 1_000

_Entries = list[ManifestEntry]
_STATS_LAYOUT_OF = attrgetter("file.schema_id", "file.value_stats_cols", "file.write_cols")


@dataclass(frozen=True, slots=True)
class PruningStep:
    """One step of the pruning of files: ``after`` of ``before`` files may hold rows that the read returns.

    ``name``: the cause, "partition", "visibility", "bucket", "key", "statistics", "index", "row ranges", "row ids",
    "limit" or "footers".
    """

    name: str
    before: int
    after: int


def prune_files(
    store: FileStore, entries: _Entries, predicate: Predicate, *, disjoint: bool = False
) -> tuple[_Entries, list[PruningStep]]:
    """Return the entries that can hold rows matching ``predicate``, and the steps that pruned the other entries.

    The steps are "bucket", "key" (if there is a primary key), "statistics" of values, and "index" for indexes that are
    embedded in the metadata.

    Args:
        store: the table.
        entries: live entries.
        predicate: the filter, bound to the table's schema.
        disjoint: deletion vectors leave at most one row of each key above level 0.
    """
    steps = []

    def done(name: str, remaining: _Entries) -> _Entries:
        steps.append(PruningStep(name, len(entries), len(remaining)))
        return remaining

    schema = store.schema
    on_keys = restrict(predicate, set(schema.trimmed_primary_keys)) if schema.primary_keys else None
    entries = done("bucket", _by_bucket(store, entries, predicate))
    if schema.primary_keys:
        remaining = entries if on_keys is None else _select(entries, _key_mask(store, entries, on_keys))
        entries = done("key", remaining)
    entries = done("statistics", _by_values(store, entries, _value_mask(store, entries, predicate), disjoint))
    if any(e.file.embedded_index is not None for e in entries):
        remaining = entries if on_keys is None else _select(entries, _index_mask(store, entries, on_keys))
        remaining = _by_values(store, remaining, _index_mask(store, remaining, predicate), disjoint)
        entries = done("index", remaining)
    return entries, steps


def _by_values(store: FileStore, entries: _Entries, matching: np.ndarray, disjoint: bool) -> _Entries:
    """Return the entries whose files can hold matching rows (bool per entry), and entries that must stay with them."""
    if not store.schema.primary_keys:
        return _select(entries, matching)
    return _whole_buckets(entries, matching, store.traits.keeps_rows, disjoint)


def _index_mask(store: FileStore, entries: _Entries, predicate: Predicate) -> np.ndarray:
    """Return False for each entry whose embedded indexes exclude the predicate."""
    on_files = {schema_id: _on_file(store, predicate, schema_id) for schema_id in {e.file.schema_id for e in entries}}

    def may_match(entry: ManifestEntry) -> bool:
        p = on_files[entry.file.schema_id]
        return p is None or embedded_rows(store, entry.file, p) is not False

    return np.array([may_match(e) for e in entries], bool)


def _on_file(store: FileStore, predicate: Predicate, schema_id: int) -> Predicate | None:
    """Return the predicate on the columns of files of a schema; `None`: any row of these files may match."""
    return to_file(predicate, store.schema.fields, store.schemas.get(schema_id).fields)


def _whole_buckets(entries: _Entries, matching: np.ndarray, keeps_rows: bool, disjoint: bool) -> _Entries:
    """Prune files of a merged table by values: single files if no files of the bucket overlap, else whole buckets.

    Args:
        entries: live entries.
        matching: bool per entry: the file can hold matching rows.
        keeps_rows: each merged row is one of the stored rows. Otherwise a merged row may match even if no file does,
            and nothing is pruned.
        disjoint: deletion vectors leave at most one row of each key above level 0.
    """
    groups: dict[tuple[bytes, int], list[int]] = {}
    for i, entry in enumerate(entries):
        groups.setdefault((entry.partition, entry.bucket), []).append(i)
    chosen = np.zeros(len(entries), bool)
    for members in groups.values():
        levels = {entries[i].file.level for i in members}
        no_overlap = len(members) == 1 or (len(levels) == 1 and 0 not in levels)
        if disjoint and 0 not in levels:
            no_overlap = no_overlap or not any(entries[i].file.may_delete for i in members)
        chosen[members] = matching[members] if no_overlap else (not keeps_rows or matching[members].any())
    return _select(entries, chosen)


def _select(entries: _Entries, mask: np.ndarray) -> _Entries:
    return list(itertools.compress(entries, mask.tolist()))


def _by_bucket(store: FileStore, entries: _Entries, predicate: Predicate) -> _Entries:
    """Return the entries in buckets of the bucket keys that the predicate allows; all entries if there are too many."""
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
        [small_array([row[i] for row in rows], f.type) for i, f in enumerate(key_schema)],
        schema=pa.schema([f.with_nullable(True) for f in key_schema]),
    )
    totals = {e.total_buckets for e in entries if e.total_buckets > 0}
    possible = {total: set(bucket_of(batch, total, store.bucket_function).tolist()) for total in totals}
    return [e for e in entries if e.total_buckets <= 0 or e.bucket < 0 or e.bucket in possible[e.total_buckets]]


def _key_mask(store: FileStore, entries: _Entries, predicate: Predicate) -> np.ndarray:
    """Return False for each entry whose key statistics exclude the predicate (on the key)."""
    fields = tuple(store.schema.field(k) for k in store.schema.trimmed_primary_keys)
    return _stats_mask(store, entries, predicate, lambda file: file.key_stats, lambda _: fields)


def _value_mask(store: FileStore, entries: _Entries, predicate: Predicate) -> np.ndarray:
    """Return False for each entry whose value statistics exclude the predicate."""
    on_files = restrict(predicate, columns(predicate) - set(store.schema.partition_keys))
    if on_files is None:
        return np.ones(len(entries), bool)
    return _stats_mask(store, entries, on_files, lambda file: file.value_stats, partial(stats_fields, store))


def stats_fields(store: FileStore, file: DataFileMeta | StatsLayout) -> tuple[DataField, ...]:
    """Return the columns that the value statistics of a file cover."""
    file_fields = store.schemas.get(file.schema_id).fields
    names = file.value_stats_cols if file.value_stats_cols is not None else file.write_cols
    if names is None:
        return file_fields
    by_name = {f.name: f for f in file_fields}
    return tuple(by_name[n] for n in names if n in by_name)


def _stats_mask(
    store: FileStore,
    entries: _Entries,
    predicate: Predicate,
    stats_of: Callable[[DataFileMeta], SimpleStats],
    fields_of: Callable[[DataFileMeta], Sequence[DataField]],
) -> np.ndarray:
    """Return False for each entry whose statistics exclude the predicate.

    Files that share schema and statistics columns are decoded together.
    """
    mask = np.ones(len(entries), bool)
    for members in _by_stats_layout(entries):
        file = entries[members[0]].file
        on_file = _on_file(store, predicate, file.schema_id)
        if on_file is None:
            continue
        fields = fields_of(file)
        arity = len(fields)
        with_stats = [i for i in members if _arity(stats_of(entries[i].file)) == arity]
        if not with_stats or not arity:
            continue
        stats = _column_stats([stats_of(entries[i].file) for i in with_stats], fields, columns(on_file))
        rows = np.array([entries[i].file.row_count for i in with_stats], np.int64)
        mask[with_stats] = may_match(on_file, stats, rows, len(with_stats))
    return mask


def _by_stats_layout(entries: Sequence[ManifestEntry]) -> list[list[int]]:
    """Return the indices of entries whose files have statistics of the same columns of one schema."""
    groups: dict[object, list[int]] = {}
    layouts = map(_STATS_LAYOUT_OF, entries)
    first = 0
    for layout, run in itertools.groupby(layouts):  # files of one layout are often adjacent
        count = sum(1 for _ in run)
        groups.setdefault(layout, []).extend(range(first, first + count))
        first += count
    return list(groups.values())


def _arity(stats: SimpleStats) -> int:
    return int.from_bytes(stats.min_values[:4], "big")


def files_of_equal_stats(entries: Sequence[ManifestEntry]) -> list[list[ManifestEntry]]:
    """Return the entries in groups whose files have statistics of the same columns of one schema."""
    groups = _by_stats_layout(entries)
    return [list(entries)] if len(groups) == 1 else [[entries[i] for i in members] for members in groups]


def stats_of_files(store: FileStore, entries: Sequence[ManifestEntry], field: DataField) -> ColumnStats | None:
    """Return the value statistics of a column of the files' schema, one row per file; `None` if a file lacks them.

    REQUIRES: ``entries`` is a group of `files_of_equal_stats`.
    """
    fields = stats_fields(store, entries[0].file)
    stats = [entry.file.value_stats for entry in entries]
    if any(_arity(s) != len(fields) for s in stats):
        return None
    return _column_stats(stats, fields, {field.name}).get(field.name)


def _column_stats(stats: Sequence[SimpleStats], fields: Sequence[DataField], names: set[str]) -> dict[str, ColumnStats]:
    """Return the statistics of the named columns, one row per file; null count -1: unknown."""
    schema = stats_schema(fields)
    # Other engines pad the bounds of CHAR in ORC files with spaces, so a shorter value may be outside the bounds.
    chosen = [i for i, f in enumerate(fields) if f.name in names and getattr(f.type, "root", None) != "CHAR"]
    if not chosen:
        return {}
    low = decode_rows([s.min_values for s in stats], schema, chosen)
    high = decode_rows([s.max_values for s in stats], schema, chosen)
    result = {}
    for position, i in enumerate(chosen):
        nulls = [s.null_counts[i] if i < len(s.null_counts) else None for s in stats]
        counts = np.array([-1 if n is None else n for n in nulls], np.int64)
        result[fields[i].name] = ColumnStats(low.column(position), high.column(position), counts)
    return result
