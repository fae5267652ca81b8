"""The interface for engines, such as the Spark connector and the command, besides the public names.

Import from here, from `paimon_core`, and from `errors`, `types` and `options`. Any other module may move or change
without notice; a test keeps the connectors to these modules. The groups follow the path of a job.
"""

from typing import TYPE_CHECKING

from paimon_core.lazy import lazy_names

if TYPE_CHECKING:
    from paimon_core.catalog.catalog_options import is_catalog_option
    from paimon_core.catalog.identifier import SYSTEM_DATABASE, Identifier, split_parts
    from paimon_core.catalog.opening import in_directories, open_at
    from paimon_core.catalog.view import SPARK_DIALECT
    from paimon_core.commit.commit_messages import commit_messages
    from paimon_core.commit.hash_indexes import hash_entries
    from paimon_core.commit.idempotent import IdempotentCommits, OnUnknown
    from paimon_core.commit.load_history import LOAD_PROPERTY, LOAD_USER, LoadedFile, LoadHistory, LoadSource
    from paimon_core.commit.measure import operation_metrics
    from paimon_core.commit.overwrite import DYNAMIC, partition_predicate
    from paimon_core.commit.overwrite_partitions import overwrite_partitions
    from paimon_core.commit.retry import retry_on_conflict
    from paimon_core.commit.schema_check import check_knows_columns
    from paimon_core.datafile.encoded_file import EncodedColumn, EncodedFile, EncoderPlan
    from paimon_core.datafile.file_columns import is_all_null
    from paimon_core.datafile.row_tracking import tracking_fields
    from paimon_core.deletion.live_rows import live_mask, mask_bytes, packed_mask
    from paimon_core.deletion.vector_files import StoredVector, load_vectors
    from paimon_core.fileio.fileio import UNKNOWN_MODIFIED, FileIO, absolute, join
    from paimon_core.fileio.parallel import parallel_map
    from paimon_core.fileio.paths import check_name, scheme_of
    from paimon_core.fileio.stores import is_storage_option
    from paimon_core.format import DESCRIBED_FORMATS, FORMATS
    from paimon_core.format.blob_descriptor import DESCRIPTOR_HEAD, DESCRIPTOR_VERSION
    from paimon_core.format_table.directories import FormatFile
    from paimon_core.format_table.read import FormatTableRead, tasks_of
    from paimon_core.format_table.settings import FORMAT_TABLE_FORMATS, is_format_table
    from paimon_core.format_table.write import FormatTableWriter, StagedFile
    from paimon_core.inspect.advice.report import SEVERE
    from paimon_core.inspect.explain.explain import execute, explain
    from paimon_core.inspect.explain.limits import DEFAULT_LISTED
    from paimon_core.inspect.html.render import TablePage, notebook_html, summary_html
    from paimon_core.inspect.html.repr_text import summary as repr_text
    from paimon_core.inspect.html.warehouse_page import WarehouseState
    from paimon_core.inspect.system_tables.kind import Part
    from paimon_core.inspect.system_tables.row_tables import AUDIT_LOG, BINLOG, row_fields
    from paimon_core.inspect.system_tables.row_tables import listed as listed_field
    from paimon_core.inspect.system_tables.row_tables import packed as packed_rows
    from paimon_core.inspect.system_tables.system_read import SystemRead
    from paimon_core.inspect.system_tables.value_text import is_secret, shown_options
    from paimon_core.inspect.verify.verify_report import Fault
    from paimon_core.manifest.bucket import group_by_bucket
    from paimon_core.manifest.entry import ManifestEntry
    from paimon_core.memory import MemoryShares
    from paimon_core.metrics.listeners import LOGGER, collect
    from paimon_core.migration.migrate import SourceTable
    from paimon_core.migration.read_rows import IMPORTED_FORMATS, RowsOfFiles, TextForm, rows_of_files
    from paimon_core.migration.source import SourceFile
    from paimon_core.operations.analyze import (
        ColumnStatistics,
        TableStatistics,
        commit_statistics,
        read_statistics,
        to_text,
    )
    from paimon_core.operations.compaction.after_commit import after_commit
    from paimon_core.operations.compaction.compact_table import plan_table
    from paimon_core.operations.compaction.rescale import outdated_files
    from paimon_core.operations.distributed_write import DistributedWrite, PreparedWrite, TaskWrite
    from paimon_core.operations.history.read_guard import protect_read, protected_read
    from paimon_core.operations.history.rollback import rollback as roll_back
    from paimon_core.operations.history.rollback import target_of
    from paimon_core.operations.jobs.runner import LOCAL, Progress, Runner
    from paimon_core.operations.jobs.task import CompactionTask
    from paimon_core.operations.row_changes.data_evolution import NewValues, RowRanges
    from paimon_core.operations.row_changes.delete import (
        RETRIES,
        Dropped,
        check_deletes,
        drop_counted,
        drops_partitions,
        shows_all,
    )
    from paimon_core.operations.row_changes.delete import replace_rows as replace_matching_rows
    from paimon_core.operations.row_changes.remove_rows import RowPositions, remove_rows
    from paimon_core.operations.row_changes.statement import (
        SEVERAL,
        check_added_names,
        check_updates,
        null_unless_changed,
        position_fields,
    )
    from paimon_core.predicate.compute import evaluate
    from paimon_core.predicate.expr import FALSE, TEXT_TESTS, TRUE, And, Constant, Leaf, Not, Or, Predicate, conjunction
    from paimon_core.predicate.filter import Filter, bound_filter
    from paimon_core.predicate.parse import parse_predicate
    from paimon_core.predicate.rewrite import bind, most_keys, tests_fields
    from paimon_core.predicate.rewrite import columns as predicate_columns
    from paimon_core.procedures.procedure import (
        DONE,
        Call,
        Parameter,
        Procedure,
        Rows,
        TableNotFoundError,
        checked_values,
        procedure,
    )
    from paimon_core.procedures.procedure_registry import PROCEDURES, find_procedure
    from paimon_core.read.change_feed import FeedRead
    from paimon_core.read.changed_rows import ChangeRead
    from paimon_core.read.few_matches import MatchLimits, few_matches
    from paimon_core.read.merge_masks import key_condition, merge_masks, merged_sections, section_digest
    from paimon_core.read.metadata_columns import check_files_known
    from paimon_core.read.newer_rows import newer_rows
    from paimon_core.row.bucket import buckets as bucket_numbers
    from paimon_core.scan.base_run import base_run
    from paimon_core.scan.batch_limits import NO_LIMITS, Limits
    from paimon_core.scan.change_feed import (
        CHANGE_FIELDS,
        ChangeFeed,
        FeedRange,
        FeedSplit,
        check_changes,
        time_range,
        version_range,
    )
    from paimon_core.scan.entries import live_entries, live_partitions
    from paimon_core.scan.fallback import branch_splits, reads_branches
    from paimon_core.scan.feed_stream import FeedStream
    from paimon_core.scan.footers import prune_by_footers
    from paimon_core.scan.interval import DIFF, Interval, interval_of
    from paimon_core.scan.metadata_aggregate import Function as AggregateFunction
    from paimon_core.scan.metadata_aggregate import LiveRows
    from paimon_core.scan.metadata_aggregate import aggregate as aggregate_metadata
    from paimon_core.scan.position import ALL as ALL_ROWS
    from paimon_core.scan.position import Position as StreamPosition
    from paimon_core.scan.projection import metadata_fields, project, readable_fields, variant_field
    from paimon_core.scan.stream_lag import LagCounter
    from paimon_core.scan.stream_scan import BatchSplit, StreamScan
    from paimon_core.scan.task_plan import pack_tasks, packing_of_tasks, plan_tasks
    from paimon_core.scan.task_plan import weight as split_weight
    from paimon_core.scan.top_rows import TopRows, first_rows
    from paimon_core.schema.blob_columns import in_blob_files, read_by_reference, stored_as_views
    from paimon_core.schema.change import FIRST, DropPrimaryKey, SchemaChange
    from paimon_core.schema.change import Position as ColumnPosition
    from paimon_core.schema.change import apply as apply_changes
    from paimon_core.schema.evolution import evolve
    from paimon_core.schema.merge import MERGE_OPTIONS, MergeRules, merge_changes
    from paimon_core.schema.partition_spec import PartitionText, Spec, partition_spec, partition_values, value_of_text
    from paimon_core.schema.support import check_writable
    from paimon_core.schema.validate import create as new_schema
    from paimon_core.snapshot.consumers import Consumers
    from paimon_core.snapshot.snapshot import Operation
    from paimon_core.snapshot.started_from import Guard, StartedFrom
    from paimon_core.snapshot.time_travel import OPTIONS as TIME_TRAVEL_OPTIONS
    from paimon_core.snapshot.time_travel import epoch_millis
    from paimon_core.store.expired import EXPIRED, expiry
    from paimon_core.store.external_paths import Trust
    from paimon_core.store.file_store import FileStore
    from paimon_core.store.layout import MAIN_BRANCH
    from paimon_core.store.location import READ_OPTIMIZED, SEPARATOR, split_name
    from paimon_core.store.traits import TableTraits
    from paimon_core.table import AnyTable, open_any, read_only, resolved_snapshot, table_summary, viewed
    from paimon_core.types.parse import parse_type
    from paimon_core.write.align import align, column_positions
    from paimon_core.write.routing import BucketMode, KeyShard, bucket_mode
    from paimon_core.write.routing.bucket_assigner import BucketAssigner
    from paimon_core.write.routing.postpone import default_buckets

__all__: list[str] = []

__all__ += [
    "MAIN_BRANCH",
    "READ_OPTIMIZED",
    "SEPARATOR",
    "SPARK_DIALECT",
    "SYSTEM_DATABASE",
    "AnyTable",
    "FileStore",
    "Identifier",
    "TableTraits",
    "Trust",
    "in_directories",
    "is_catalog_option",
    "open_any",
    "open_at",
    "read_only",
    "resolved_snapshot",
    "split_name",
    "split_parts",
    "table_summary",
    "viewed",
]
"""Tables: tables and system tables by path, their stores, and the parts of their names."""

__all__ += ["AUDIT_LOG", "BINLOG", "Part", "SystemRead", "listed_field", "packed_rows", "row_fields", "shown_options"]
"""System tables: reads of system tables, and the rows of `$audit_log` and `$binlog`."""

__all__ += [
    "FORMAT_TABLE_FORMATS",
    "FormatFile",
    "FormatTableRead",
    "FormatTableWriter",
    "StagedFile",
    "is_format_table",
    "tasks_of",
]
"""Format tables: their reads, and the files of their writes."""

__all__ += [
    "FALSE",
    "TEXT_TESTS",
    "TRUE",
    "And",
    "Constant",
    "Filter",
    "Leaf",
    "Not",
    "Or",
    "Predicate",
    "bind",
    "bound_filter",
    "conjunction",
    "evaluate",
    "most_keys",
    "parse_predicate",
    "predicate_columns",
    "tests_fields",
]
"""Filters: predicates: their nodes, their text, and how they bind to columns and evaluate on rows."""

__all__ += [
    "AggregateFunction",
    "LiveRows",
    "ManifestEntry",
    "MatchLimits",
    "MemoryShares",
    "StoredVector",
    "TopRows",
    "aggregate_metadata",
    "base_run",
    "branch_splits",
    "check_files_known",
    "few_matches",
    "first_rows",
    "group_by_bucket",
    "is_all_null",
    "key_condition",
    "live_entries",
    "live_mask",
    "live_partitions",
    "load_vectors",
    "mask_bytes",
    "merge_masks",
    "merged_sections",
    "metadata_fields",
    "newer_rows",
    "pack_tasks",
    "packed_mask",
    "packing_of_tasks",
    "plan_tasks",
    "project",
    "prune_by_footers",
    "readable_fields",
    "reads_branches",
    "section_digest",
    "split_weight",
    "tracking_fields",
    "variant_field",
]
"""Scans: plans: columns of a read, splits, tasks, and answers from metadata."""

__all__ += [
    "ALL_ROWS",
    "CHANGE_FIELDS",
    "DIFF",
    "NO_LIMITS",
    "BatchSplit",
    "ChangeFeed",
    "ChangeRead",
    "Consumers",
    "FeedRange",
    "FeedRead",
    "FeedSplit",
    "FeedStream",
    "Interval",
    "LagCounter",
    "Limits",
    "StreamPosition",
    "StreamScan",
    "check_changes",
    "interval_of",
    "time_range",
    "version_range",
]
"""Changes and streams: changes between two snapshots, change feeds, streams and their positions, limits and lag."""

__all__ += [
    "EXPIRED",
    "TIME_TRAVEL_OPTIONS",
    "Guard",
    "Operation",
    "StartedFrom",
    "epoch_millis",
    "expiry",
    "protect_read",
    "protected_read",
]
"""Snapshots: time travel, what a job started from, and snapshots that expire during a read."""

__all__ += [
    "BucketAssigner",
    "BucketMode",
    "DistributedWrite",
    "EncodedColumn",
    "EncodedFile",
    "EncoderPlan",
    "KeyShard",
    "PreparedWrite",
    "TaskWrite",
    "align",
    "bucket_mode",
    "bucket_numbers",
    "column_positions",
    "default_buckets",
]
"""Writes: rows to files: columns in the order of the table, buckets, writers in tasks, and files of other encoders."""

__all__ += [
    "DYNAMIC",
    "LOAD_PROPERTY",
    "LOAD_USER",
    "IdempotentCommits",
    "LoadHistory",
    "LoadSource",
    "LoadedFile",
    "OnUnknown",
    "after_commit",
    "check_knows_columns",
    "commit_messages",
    "hash_entries",
    "operation_metrics",
    "overwrite_partitions",
    "partition_predicate",
    "retry_on_conflict",
]
"""Commits: messages of writers to snapshots: retries, idempotent commits, overwrites, and the work after a commit."""

__all__ += [
    "RETRIES",
    "SEVERAL",
    "Dropped",
    "NewValues",
    "RowPositions",
    "RowRanges",
    "check_added_names",
    "check_deletes",
    "check_updates",
    "drop_counted",
    "drops_partitions",
    "null_unless_changed",
    "position_fields",
    "remove_rows",
    "replace_matching_rows",
    "shows_all",
]
"""Changes of rows: DELETE, UPDATE and MERGE: partitions to drop, rows to remove, and new values of columns."""

__all__ += [
    "IMPORTED_FORMATS",
    "LOCAL",
    "ColumnStatistics",
    "CompactionTask",
    "Progress",
    "RowsOfFiles",
    "Runner",
    "SourceFile",
    "SourceTable",
    "TableStatistics",
    "TextForm",
    "commit_statistics",
    "outdated_files",
    "plan_table",
    "read_statistics",
    "roll_back",
    "rows_of_files",
    "target_of",
    "to_text",
]
"""Maintenance: compaction tasks and their runners, rollback, statistics, and imports of files of other tools."""

__all__ += [
    "DONE",
    "PROCEDURES",
    "Call",
    "Parameter",
    "Procedure",
    "Rows",
    "TableNotFoundError",
    "checked_values",
    "find_procedure",
    "procedure",
]
"""Procedures: procedures by name, their parameters and their calls."""

__all__ += [
    "FIRST",
    "MERGE_OPTIONS",
    "ColumnPosition",
    "DropPrimaryKey",
    "MergeRules",
    "PartitionText",
    "SchemaChange",
    "Spec",
    "apply_changes",
    "check_writable",
    "evolve",
    "in_blob_files",
    "merge_changes",
    "new_schema",
    "parse_type",
    "partition_spec",
    "partition_values",
    "read_by_reference",
    "stored_as_views",
    "value_of_text",
]
"""Schemas: changes and merges of schemas, and texts of partitions."""

__all__ += [
    "DESCRIBED_FORMATS",
    "DESCRIPTOR_HEAD",
    "DESCRIPTOR_VERSION",
    "FORMATS",
    "UNKNOWN_MODIFIED",
    "FileIO",
    "absolute",
    "check_name",
    "is_secret",
    "is_storage_option",
    "join",
    "parallel_map",
    "scheme_of",
]
"""Files: storage, paths, formats and threads."""

__all__ += [
    "DEFAULT_LISTED",
    "LOGGER",
    "SEVERE",
    "Fault",
    "TablePage",
    "WarehouseState",
    "collect",
    "execute",
    "explain",
    "notebook_html",
    "repr_text",
    "summary_html",
]
"""Inspection: explanations, advice, HTML summaries, and metrics."""

_NAMES = {
    "paimon_core.catalog.catalog_options": "is_catalog_option",
    "paimon_core.catalog.identifier": "SYSTEM_DATABASE Identifier split_parts",
    "paimon_core.catalog.opening": "in_directories open_at",
    "paimon_core.catalog.view": "SPARK_DIALECT",
    "paimon_core.commit.commit_messages": "commit_messages",
    "paimon_core.commit.hash_indexes": "hash_entries",
    "paimon_core.commit.idempotent": "IdempotentCommits OnUnknown",
    "paimon_core.commit.load_history": "LOAD_PROPERTY LOAD_USER LoadHistory LoadSource LoadedFile",
    "paimon_core.commit.measure": "operation_metrics",
    "paimon_core.commit.overwrite": "DYNAMIC partition_predicate",
    "paimon_core.commit.overwrite_partitions": "overwrite_partitions",
    "paimon_core.commit.retry": "retry_on_conflict",
    "paimon_core.commit.schema_check": "check_knows_columns",
    "paimon_core.datafile.encoded_file": "EncodedColumn EncodedFile EncoderPlan",
    "paimon_core.datafile.file_columns": "is_all_null",
    "paimon_core.datafile.row_tracking": "tracking_fields",
    "paimon_core.deletion.live_rows": "live_mask mask_bytes packed_mask",
    "paimon_core.deletion.vector_files": "StoredVector load_vectors",
    "paimon_core.fileio.fileio": "UNKNOWN_MODIFIED FileIO absolute join",
    "paimon_core.fileio.parallel": "parallel_map",
    "paimon_core.fileio.paths": "check_name scheme_of",
    "paimon_core.fileio.stores": "is_storage_option",
    "paimon_core.format": "DESCRIBED_FORMATS FORMATS",
    "paimon_core.format.blob_descriptor": "DESCRIPTOR_HEAD DESCRIPTOR_VERSION",
    "paimon_core.inspect.advice.report": "SEVERE",
    "paimon_core.inspect.explain.explain": "execute explain",
    "paimon_core.inspect.explain.limits": "DEFAULT_LISTED",
    "paimon_core.inspect.html.render": "TablePage notebook_html summary_html",
    "paimon_core.inspect.html.repr_text": "summary=repr_text",
    "paimon_core.inspect.html.warehouse_page": "WarehouseState",
    "paimon_core.inspect.system_tables.kind": "Part",
    "paimon_core.inspect.system_tables.row_tables": (
        "AUDIT_LOG BINLOG row_fields listed=listed_field packed=packed_rows"
    ),
    "paimon_core.inspect.system_tables.system_read": "SystemRead",
    "paimon_core.inspect.system_tables.value_text": "is_secret shown_options",
    "paimon_core.inspect.verify.verify_report": "Fault",
    "paimon_core.manifest.bucket": "group_by_bucket",
    "paimon_core.manifest.entry": "ManifestEntry",
    "paimon_core.memory": "MemoryShares",
    "paimon_core.metrics.listeners": "LOGGER collect",
    "paimon_core.migration.migrate": "SourceTable",
    "paimon_core.migration.read_rows": "IMPORTED_FORMATS RowsOfFiles TextForm rows_of_files",
    "paimon_core.migration.source": "SourceFile",
    "paimon_core.operations.analyze": "ColumnStatistics TableStatistics commit_statistics read_statistics to_text",
    "paimon_core.operations.compaction.after_commit": "after_commit",
    "paimon_core.operations.compaction.compact_table": "plan_table",
    "paimon_core.operations.compaction.rescale": "outdated_files",
    "paimon_core.operations.distributed_write": "DistributedWrite PreparedWrite TaskWrite",
    "paimon_core.operations.history.read_guard": "protect_read protected_read",
    "paimon_core.operations.history.rollback": "rollback=roll_back target_of",
    "paimon_core.operations.jobs.runner": "LOCAL Progress Runner",
    "paimon_core.operations.jobs.task": "CompactionTask",
    "paimon_core.operations.row_changes.data_evolution": "NewValues RowRanges",
    "paimon_core.operations.row_changes.delete": (
        "RETRIES Dropped check_deletes drop_counted drops_partitions shows_all replace_rows=replace_matching_rows"
    ),
    "paimon_core.operations.row_changes.remove_rows": "RowPositions remove_rows",
    "paimon_core.operations.row_changes.statement": (
        "SEVERAL check_added_names check_updates null_unless_changed position_fields"
    ),
    "paimon_core.predicate.compute": "evaluate",
    "paimon_core.predicate.expr": "FALSE TEXT_TESTS TRUE And Constant Leaf Not Or Predicate conjunction",
    "paimon_core.predicate.filter": "Filter bound_filter",
    "paimon_core.predicate.parse": "parse_predicate",
    "paimon_core.predicate.rewrite": "bind most_keys tests_fields columns=predicate_columns",
    "paimon_core.procedures.procedure": (
        "DONE Call Parameter Procedure Rows TableNotFoundError checked_values procedure"
    ),
    "paimon_core.procedures.procedure_registry": "PROCEDURES find_procedure",
    "paimon_core.read.change_feed": "FeedRead",
    "paimon_core.read.changed_rows": "ChangeRead",
    "paimon_core.read.few_matches": "MatchLimits few_matches",
    "paimon_core.read.merge_masks": "key_condition merge_masks merged_sections section_digest",
    "paimon_core.read.metadata_columns": "check_files_known",
    "paimon_core.read.newer_rows": "newer_rows",
    "paimon_core.row.bucket": "buckets=bucket_numbers",
    "paimon_core.scan.base_run": "base_run",
    "paimon_core.scan.entries": "live_entries live_partitions",
    "paimon_core.scan.change_feed": (
        "CHANGE_FIELDS ChangeFeed FeedRange FeedSplit check_changes time_range version_range"
    ),
    "paimon_core.scan.fallback": "branch_splits reads_branches",
    "paimon_core.scan.feed_stream": "FeedStream",
    "paimon_core.scan.footers": "prune_by_footers",
    "paimon_core.scan.interval": "DIFF Interval interval_of",
    "paimon_core.scan.metadata_aggregate": "Function=AggregateFunction LiveRows aggregate=aggregate_metadata",
    "paimon_core.scan.position": "ALL=ALL_ROWS Position=StreamPosition",
    "paimon_core.scan.projection": "metadata_fields project readable_fields variant_field",
    "paimon_core.scan.stream_lag": "LagCounter",
    "paimon_core.scan.batch_limits": "NO_LIMITS Limits",
    "paimon_core.scan.stream_scan": "BatchSplit StreamScan",
    "paimon_core.scan.task_plan": "pack_tasks packing_of_tasks plan_tasks weight=split_weight",
    "paimon_core.scan.top_rows": "TopRows first_rows",
    "paimon_core.schema.blob_columns": "in_blob_files read_by_reference stored_as_views",
    "paimon_core.schema.change": "FIRST DropPrimaryKey SchemaChange Position=ColumnPosition apply=apply_changes",
    "paimon_core.schema.evolution": "evolve",
    "paimon_core.schema.merge": "MERGE_OPTIONS MergeRules merge_changes",
    "paimon_core.schema.partition_spec": "PartitionText Spec partition_spec partition_values value_of_text",
    "paimon_core.schema.support": "check_writable",
    "paimon_core.schema.validate": "create=new_schema",
    "paimon_core.snapshot.consumers": "Consumers",
    "paimon_core.snapshot.snapshot": "Operation",
    "paimon_core.snapshot.started_from": "Guard StartedFrom",
    "paimon_core.snapshot.time_travel": "OPTIONS=TIME_TRAVEL_OPTIONS epoch_millis",
    "paimon_core.store.expired": "EXPIRED expiry",
    "paimon_core.store.external_paths": "Trust",
    "paimon_core.store.file_store": "FileStore",
    "paimon_core.store.layout": "MAIN_BRANCH",
    "paimon_core.store.location": "READ_OPTIMIZED SEPARATOR split_name",
    "paimon_core.store.traits": "TableTraits",
    "paimon_core.format_table.directories": "FormatFile",
    "paimon_core.format_table.read": "FormatTableRead tasks_of",
    "paimon_core.format_table.settings": "FORMAT_TABLE_FORMATS is_format_table",
    "paimon_core.format_table.write": "FormatTableWriter StagedFile",
    "paimon_core.table": "AnyTable open_any read_only resolved_snapshot table_summary viewed",
    "paimon_core.types.parse": "parse_type",
    "paimon_core.write.align": "align column_positions",
    "paimon_core.write.routing": "BucketMode KeyShard bucket_mode",
    "paimon_core.write.routing.bucket_assigner": "BucketAssigner",
    "paimon_core.write.routing.postpone": "default_buckets",
}
"""The modules of the names, which are imported when a name is first used."""

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES, __all__)
