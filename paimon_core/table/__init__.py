"""The table of the public interface, its system tables, and what a read of them selects."""

from paimon_core.table.opening import AnyTable, open_any, viewed
from paimon_core.table.readable import ReadableTable
from paimon_core.table.selection import Selection
from paimon_core.table.stored_table import resolved_snapshot, table_summary
from paimon_core.table.system_table import SystemTable, read_only
from paimon_core.table.table import Table

__all__ = [
    "AnyTable",
    "ReadableTable",
    "Selection",
    "SystemTable",
    "Table",
    "open_any",
    "read_only",
    "resolved_snapshot",
    "table_summary",
    "viewed",
]
