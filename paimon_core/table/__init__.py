"""The table of the public interface, its system tables, and what a read of them selects."""

from typing import TYPE_CHECKING

from paimon_core.lazy import lazy_names

if TYPE_CHECKING:
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

_NAMES = {
    "paimon_core.table.opening": "AnyTable open_any viewed",
    "paimon_core.table.readable": "ReadableTable",
    "paimon_core.table.selection": "Selection",
    "paimon_core.table.stored_table": "resolved_snapshot table_summary",
    "paimon_core.table.system_table": "SystemTable read_only",
    "paimon_core.table.table": "Table",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES, __all__)
