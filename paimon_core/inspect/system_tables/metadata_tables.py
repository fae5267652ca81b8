"""The system tables of metadata files: manifests, index files and statistics of a snapshot."""

import json
from collections.abc import Iterator

import pyarrow as pa

from paimon_core.inspect.system_tables.kind import (
    SOME_INT,
    SOME_LONG,
    SOME_TEXT,
    Fixed,
    Part,
    Request,
    SystemTableKind,
    batch_of,
    columns,
)
from paimon_core.inspect.system_tables.value_text import braced_all
from paimon_core.manifest.index_entry import GlobalIndex, IndexManifestEntry
from paimon_core.operations.analyze import TableStatistics, read_statistics
from paimon_core.scan.entries import manifest_metas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.datatype import BIGINT, INT, STRING, ArrayType, DataField, RowType

_MANIFESTS = columns(
    ("file_name", SOME_TEXT),
    ("file_size", SOME_LONG),
    ("num_added_files", SOME_LONG),
    ("num_deleted_files", SOME_LONG),
    ("schema_id", SOME_LONG),
    ("min_partition_stats", STRING),
    ("max_partition_stats", STRING),
    ("min_row_id", BIGINT),
    ("max_row_id", BIGINT),
)
_RANGE = RowType(
    (
        DataField(0, "f0", SOME_TEXT),
        DataField(1, "f1", SOME_INT),
        DataField(2, "f2", SOME_INT),
        DataField(3, "_CARDINALITY", BIGINT),
    )
)
_TABLE_INDEXES = columns(
    ("partition", STRING),
    ("bucket", SOME_INT),
    ("index_type", SOME_TEXT),
    ("file_name", SOME_TEXT),
    ("file_size", SOME_LONG),
    ("row_count", SOME_LONG),
    ("dv_ranges", ArrayType(_RANGE)),
    ("row_range_start", BIGINT),
    ("row_range_end", BIGINT),
    ("index_field_id", INT),
    ("index_field_name", STRING),
)
_STATISTICS = columns(
    ("snapshot_id", SOME_LONG),
    ("schema_id", SOME_LONG),
    ("mergedRecordCount", BIGINT),
    ("mergedRecordSize", BIGINT),
    ("colstat", STRING),
)


def _read_manifests(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each manifest of the snapshot, oldest first, then for each manifest of its changelog."""
    store, snapshot = request.store, request.snapshot
    metas = [] if snapshot is None else manifest_metas(store, snapshot)
    if snapshot is not None and snapshot.changelog_manifest_list is not None:
        metas += store.manifests.read_list(snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size)
    yield batch_of(
        _MANIFESTS,
        request.columns,
        {
            **{
                name: [getattr(meta, name) for meta in metas]
                for name in (
                    *("file_name", "file_size", "num_added_files", "num_deleted_files", "schema_id"),
                    *("min_row_id", "max_row_id"),
                )
            },
            "min_partition_stats": lambda: braced_all(store, [meta.partition_stats.min_values for meta in metas]),
            "max_partition_stats": lambda: braced_all(store, [meta.partition_stats.max_values for meta in metas]),
        },
    )


def _read_table_indexes(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each index file of the snapshot."""
    store, snapshot = request.store, request.snapshot
    entries: list[IndexManifestEntry] = []
    if snapshot is not None and snapshot.index_manifest is not None:
        entries = store.manifests.read_index(snapshot.index_manifest)
    global_indexes = [entry.global_index for entry in entries]
    yield batch_of(
        _TABLE_INDEXES,
        request.columns,
        {
            "partition": braced_all(store, [entry.partition for entry in entries]),
            **{
                name: [getattr(entry, name) for entry in entries]
                for name in ("bucket", "index_type", "file_name", "file_size", "row_count")
            },
            "dv_ranges": [_ranges(entry) for entry in entries],
            **{
                name: [None if index is None else getattr(index, name) for index in global_indexes]
                for name in ("row_range_start", "row_range_end", "index_field_id")
            },
            "index_field_name": [
                None if index is None else _field_names(index, store.schema) for index in global_indexes
            ],
        },
    )


def _ranges(entry: IndexManifestEntry) -> list[dict[str, object]] | None:
    if entry.deletion_ranges is None:
        return None
    return [
        {"f0": r.data_file, "f1": r.offset, "f2": r.length, "_CARDINALITY": r.cardinality}
        for r in entry.deletion_ranges
    ]


def _field_names(index: GlobalIndex, schema: TableSchema) -> str | None:
    """Return the column names of an index; `None` if the schema no longer has any of the columns."""
    names = {field.id: field.name for field in schema.fields}
    column_names = [names[i] for i in index.extra_field_ids or (index.index_field_id,) if i in names]
    return ",".join(column_names) or None


def _read_statistics(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield one row if the snapshot has statistics."""
    statistics = None if request.snapshot is None else read_statistics(request.store, request.snapshot)
    rows = [] if statistics is None else [statistics]
    yield batch_of(
        _STATISTICS,
        request.columns,
        {
            "snapshot_id": [s.snapshot_id for s in rows],
            "schema_id": [s.schema_id for s in rows],
            "mergedRecordCount": [s.record_count for s in rows],
            "mergedRecordSize": [s.size for s in rows],
            "colstat": [_colstat(s) for s in rows],
        },
    )


def _colstat(statistics: TableStatistics) -> str:
    """Return the column statistics in Java's JSON layout."""
    columns = json.loads(statistics.to_json())["colStats"]
    return json.dumps(columns, indent=2, separators=(",", " : "), ensure_ascii=False) if columns else "{ }"


MANIFESTS = SystemTableKind("manifests", Fixed(_MANIFESTS), _read_manifests, travels=True)
TABLE_INDEXES = SystemTableKind("table_indexes", Fixed(_TABLE_INDEXES), _read_table_indexes, travels=True)
STATISTICS = SystemTableKind("statistics", Fixed(_STATISTICS), _read_statistics, travels=True)
