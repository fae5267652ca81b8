"""Apache Paimon tables in pure Python: create, write, merge, read and travel in time, on any Arrow data.

::

    from paimon_core import FileSystemCatalog, Schema, Table

    catalog = FileSystemCatalog("/warehouse")
    catalog.create_database("db", ignore_if_exists=True)
    table = catalog.create_table("db.orders", Schema(arrow_schema, primary_keys=["id"], options={"bucket": "4"}))
    table.write(arrow_table)
    table.to_arrow(columns=["id", "price"], filter="price > 10")
"""

from typing import TYPE_CHECKING

from paimon_core.lazy import lazy_names

if TYPE_CHECKING:
    from paimon_core.catalog.catalog import Catalog
    from paimon_core.catalog.filesystem import FileSystemCatalog
    from paimon_core.catalog.opening import open_catalog
    from paimon_core.catalog.staged import StagedTable
    from paimon_core.catalog.view import CatalogFunction, View
    from paimon_core.commit.table_commit import TableCommit
    from paimon_core.errors import (
        AlreadyExistsError,
        CommitConflictError,
        CommitUnknownError,
        CorruptedError,
        InvalidInputError,
        MissingDependencyError,
        NotFoundError,
        OutOfRangeError,
        PaimonError,
        PermissionDeniedError,
        TableChangedError,
        UnsupportedError,
    )
    from paimon_core.format.blob_view import blob_views
    from paimon_core.inspect.advice.report import Advice, TableHealth
    from paimon_core.inspect.explain.explanation import Explanation
    from paimon_core.inspect.verify.repair import RepairReport
    from paimon_core.inspect.verify.verify_report import VerifyReport
    from paimon_core.manifest.bucket import BucketLocation, BucketRef
    from paimon_core.manifest.commit_message import CommitMessage
    from paimon_core.manifest.data_file import DataFileMeta
    from paimon_core.migration.add_files import AddedFiles
    from paimon_core.operations.compaction.request import CompactionArguments, CompactionRequest, RescaleRequest
    from paimon_core.operations.compaction.rewrite_indexes import IndexRewrite
    from paimon_core.operations.compaction.rewrite_result import RewriteResult, RewrittenFiles
    from paimon_core.operations.history.expire_snapshots import Expired
    from paimon_core.operations.history.orphan_files import OrphanFiles
    from paimon_core.operations.history.table_branches import TableBranches
    from paimon_core.operations.history.table_consumers import TableConsumers
    from paimon_core.operations.history.table_tags import TableTags
    from paimon_core.operations.row_changes.delete import DeletedRows
    from paimon_core.operations.row_changes.statement import RowChanges
    from paimon_core.operations.table_maintenance import TableMaintenance
    from paimon_core.predicate.expr import col
    from paimon_core.read.stream import Stream
    from paimon_core.read.table_read import TableRead
    from paimon_core.scan.split import DataSplit
    from paimon_core.scan.stream_lag import StreamLag
    from paimon_core.scan.stream_scan import ChangeSplit
    from paimon_core.scan.table_scan import Plan, TableScan
    from paimon_core.schema.change import (
        AddColumn,
        DropColumn,
        MoveColumn,
        RemoveOption,
        RenameColumn,
        SetOption,
        UpdateComment,
        UpdateDefault,
        UpdateNullability,
        UpdateTableComment,
        UpdateType,
    )
    from paimon_core.schema.schema import Schema
    from paimon_core.schema.table_schema import TableSchema
    from paimon_core.snapshot.snapshot import Snapshot
    from paimon_core.snapshot.tags import Tag
    from paimon_core.snapshot.time_travel import TimeTravelArguments
    from paimon_core.store.location import TableLocation
    from paimon_core.table import ReadableTable, SystemTable, Table
    from paimon_core.table.format_table import FormatTable
    from paimon_core.table.merging import MergeBuilder
    from paimon_core.table.stored_table import StoredTable
    from paimon_core.types.datatype import DataField
    from paimon_core.variant.paths import variant_get, variant_set
    from paimon_core.write.table_write import TableWrite

__all__ = [
    "AddColumn",
    "AddedFiles",
    "Advice",
    "AlreadyExistsError",
    "BucketLocation",
    "BucketRef",
    "Catalog",
    "CatalogFunction",
    "ChangeSplit",
    "CommitConflictError",
    "CommitMessage",
    "CommitUnknownError",
    "CompactionArguments",
    "CompactionRequest",
    "CorruptedError",
    "DataField",
    "DataFileMeta",
    "DataSplit",
    "DeletedRows",
    "DropColumn",
    "Expired",
    "Explanation",
    "FileSystemCatalog",
    "FormatTable",
    "IndexRewrite",
    "InvalidInputError",
    "MergeBuilder",
    "MissingDependencyError",
    "MoveColumn",
    "NotFoundError",
    "OrphanFiles",
    "OutOfRangeError",
    "PaimonError",
    "PermissionDeniedError",
    "Plan",
    "ReadableTable",
    "RemoveOption",
    "RenameColumn",
    "RepairReport",
    "RescaleRequest",
    "RewriteResult",
    "RewrittenFiles",
    "RowChanges",
    "Schema",
    "SetOption",
    "Snapshot",
    "StagedTable",
    "StoredTable",
    "Stream",
    "StreamLag",
    "SystemTable",
    "Table",
    "TableBranches",
    "TableChangedError",
    "TableCommit",
    "TableConsumers",
    "TableHealth",
    "TableLocation",
    "TableMaintenance",
    "TableRead",
    "TableScan",
    "TableSchema",
    "TableTags",
    "TableWrite",
    "Tag",
    "TimeTravelArguments",
    "UnsupportedError",
    "UpdateComment",
    "UpdateDefault",
    "UpdateNullability",
    "UpdateTableComment",
    "UpdateType",
    "VerifyReport",
    "View",
    "blob_views",
    "col",
    "open_catalog",
    "variant_get",
    "variant_set",
]

_NAMES = {
    "paimon_core.catalog.catalog": "Catalog",
    "paimon_core.catalog.filesystem": "FileSystemCatalog",
    "paimon_core.catalog.opening": "open_catalog",
    "paimon_core.catalog.staged": "StagedTable",
    "paimon_core.catalog.view": "CatalogFunction View",
    "paimon_core.commit.table_commit": "TableCommit",
    "paimon_core.errors": (
        "AlreadyExistsError CommitConflictError CommitUnknownError CorruptedError InvalidInputError "
        "MissingDependencyError NotFoundError OutOfRangeError PaimonError PermissionDeniedError TableChangedError "
        "UnsupportedError"
    ),
    "paimon_core.format.blob_view": "blob_views",
    "paimon_core.variant.paths": "variant_get variant_set",
    "paimon_core.inspect.advice.report": "Advice TableHealth",
    "paimon_core.inspect.explain.explanation": "Explanation",
    "paimon_core.inspect.verify.repair": "RepairReport",
    "paimon_core.inspect.verify.verify_report": "VerifyReport",
    "paimon_core.manifest.bucket": "BucketLocation BucketRef",
    "paimon_core.manifest.commit_message": "CommitMessage",
    "paimon_core.manifest.data_file": "DataFileMeta",
    "paimon_core.migration.add_files": "AddedFiles",
    "paimon_core.operations.compaction.request": "CompactionArguments CompactionRequest RescaleRequest",
    "paimon_core.operations.compaction.rewrite_indexes": "IndexRewrite",
    "paimon_core.operations.compaction.rewrite_result": "RewriteResult RewrittenFiles",
    "paimon_core.operations.history.expire_snapshots": "Expired",
    "paimon_core.operations.history.orphan_files": "OrphanFiles",
    "paimon_core.operations.history.table_branches": "TableBranches",
    "paimon_core.operations.history.table_consumers": "TableConsumers",
    "paimon_core.operations.history.table_tags": "TableTags",
    "paimon_core.operations.row_changes.delete": "DeletedRows",
    "paimon_core.operations.row_changes.statement": "RowChanges",
    "paimon_core.operations.table_maintenance": "TableMaintenance",
    "paimon_core.predicate.expr": "col",
    "paimon_core.read.stream": "Stream",
    "paimon_core.read.table_read": "TableRead",
    "paimon_core.scan.split": "DataSplit",
    "paimon_core.scan.stream_lag": "StreamLag",
    "paimon_core.scan.stream_scan": "ChangeSplit",
    "paimon_core.scan.table_scan": "Plan TableScan",
    "paimon_core.schema.change": (
        "AddColumn DropColumn MoveColumn RemoveOption RenameColumn SetOption UpdateComment UpdateDefault "
        "UpdateNullability UpdateTableComment UpdateType"
    ),
    "paimon_core.schema.schema": "Schema",
    "paimon_core.schema.table_schema": "TableSchema",
    "paimon_core.snapshot.snapshot": "Snapshot",
    "paimon_core.snapshot.tags": "Tag",
    "paimon_core.snapshot.time_travel": "TimeTravelArguments",
    "paimon_core.store.location": "TableLocation",
    "paimon_core.table": "ReadableTable SystemTable Table",
    "paimon_core.table.format_table": "FormatTable",
    "paimon_core.table.merging": "MergeBuilder",
    "paimon_core.table.stored_table": "StoredTable",
    "paimon_core.types.datatype": "DataField",
    "paimon_core.write.table_write": "TableWrite",
}
"""The modules of the public names, which are imported when a name is first used."""

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES, __all__)
