"""Apache Paimon tables in pure Python: create, write, merge, read and travel in time, on any Arrow data.

::

    from paimon_core import FileSystemCatalog, Schema, Table

    catalog = FileSystemCatalog("/warehouse")
    catalog.create_database("db", ignore_if_exists=True)
    table = catalog.create_table("db.orders", Schema(arrow_schema, primary_keys=["id"], options={"bucket": "4"}))
    table.write(arrow_table)
    table.to_arrow(columns=["id", "price"], filter="price > 10")
"""

import gc

_collecting = gc.isenabled()
gc.disable()  # objects that imports create stay alive: collecting during imports costs a sixth of the start
try:
    from paimon_core.catalog.filesystem import FileSystemCatalog
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
        TableChangedError,
        UnsupportedError,
    )
    from paimon_core.manifest.commit_message import CommitMessage
    from paimon_core.predicate.expr import col
    from paimon_core.scan.split import DataSplit
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
    from paimon_core.table import ReadableTable, SystemTable, Table
finally:
    if _collecting:
        gc.enable()

__all__ = [
    "AddColumn",
    "AlreadyExistsError",
    "CommitConflictError",
    "CommitMessage",
    "CommitUnknownError",
    "CorruptedError",
    "DataSplit",
    "DropColumn",
    "FileSystemCatalog",
    "InvalidInputError",
    "MissingDependencyError",
    "MoveColumn",
    "NotFoundError",
    "OutOfRangeError",
    "PaimonError",
    "ReadableTable",
    "RemoveOption",
    "RenameColumn",
    "Schema",
    "SetOption",
    "SystemTable",
    "Table",
    "TableChangedError",
    "UnsupportedError",
    "UpdateComment",
    "UpdateDefault",
    "UpdateNullability",
    "UpdateTableComment",
    "UpdateType",
    "col",
]
