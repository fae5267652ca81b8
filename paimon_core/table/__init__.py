"""The table of the public interface."""

from paimon_core.table.table import SystemTable, Table, moment_of, table_summary, viewed, with_store

__all__ = ["SystemTable", "Table", "moment_of", "table_summary", "viewed", "with_store"]
