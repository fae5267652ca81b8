"""The scans and writes of one table of a catalog."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import UnsupportedError
from paimon_spark.row_level.statements import describe as describe_changes
from paimon_spark.sql.partitions import list_partitions, partition_spec
from paimon_spark.sql.reads import TableReads
from paimon_spark.sql.session_options import read_options, session_options
from paimon_spark.sql.statements.row_level import Counts, RowLevelStatement, delete_rows, merge_rows, update_rows
from paimon_spark.sql.write import TableWrites

_log = logging.getLogger(__name__)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass
class TableFunction(TableReads):
    """The answers to what Spark asks a table: a method for each question of ``Bridge.java``."""

    catalog: FileSystemCatalog
    name: str = ""

    def _read_options(self, options: str) -> dict[str, str]:
        """Return the options of a read: of the session, under those of the statement."""
        given: dict[str, str] = json.loads(options)
        catalog, database, table = self.name.split(".", 2)
        session = session_options(self.jvm.active_session(), catalog, database, table)
        return read_options(session, given, moment=bool(self.when)) if session else given

    def truncate(self) -> bool:
        """Remove every row."""
        self.table.truncate()
        return True

    def list_partitions(self, names: Any, values: Any) -> Any:
        """Return the partitions that have these values in these columns, as arrays of texts."""
        found = list_partitions(self.table, list(names), list(values))
        return self.jvm.array("java.lang.Object", [self.jvm.array("java.lang.Object", texts) for texts in found])

    def create_partition(self, values: Any) -> None:
        """Log that there is nothing to do: a partition exists from its first row on."""
        _log.warning("ADD PARTITION has no effect on %s: a partition exists from its first row on", self.table.path)

    def drop_partition(self, values: Any) -> bool:
        """Remove the rows of a partition; return False if there are none."""
        texts = list(values)
        if not list_partitions(self.table, self.schema.partition_keys, texts):
            return False
        self.table.drop_partitions([partition_spec(self.table, texts)])
        return True

    def load_partition(self, values: Any) -> Any:
        """Return the properties of a partition: none."""
        return self.jvm.map({})

    def set_partition_properties(self, values: Any) -> None:
        """Raise UnsupportedError."""
        raise UnsupportedError("a partition has no properties and no location of its own: set those of the table")

    def source_write(self, mode: str, info: Any, options: str) -> Any:
        """Return a write of the Python data source, for a dynamic overwrite or a stream."""
        return self._writes().source_write(mode, info, options)

    def check_write(self, mode: str, trees: str, options: str) -> None:
        """Raise an error for options, and for rows to replace, that `insert` will refuse."""
        self._writes().check(mode, trees, options)

    def insert(self, rows: Any, mode: str, trees: str, options: str) -> None:
        """Write the rows of a DataFrame in one commit."""
        self._writes().insert(rows, mode, trees, options)

    def _writes(self) -> TableWrites:
        catalog, database, table = [*self.name.split(".", 2), "", ""][:3]  # a table by its path has no database
        return TableWrites(self.jvm, (catalog, database, table), self.table, self._options())

    def _options(self) -> dict[str, str]:
        storage = {str(key): str(value) for key, value in self.catalog.storage_options.items()}
        view = replace(self.table.location, branch=None)
        return {**storage, "path": str(view), "branch": self.table.store.branch}

    def change_way(self) -> str:
        """Return how DELETE, UPDATE and MERGE change the rows of the table, for EXPLAIN."""
        return describe_changes(self.table)

    def delete_rows(self, session: Any, plan: Any) -> Any:
        """Run DELETE and return its row of counts."""
        return self._change(delete_rows, session, plan)

    def update_rows(self, session: Any, plan: Any) -> Any:
        """Run UPDATE and return its row of counts."""
        return self._change(update_rows, session, plan)

    def merge_rows(self, session: Any, plan: Any) -> Any:
        """Run MERGE INTO and return its row of counts."""
        return self._change(merge_rows, session, plan)

    def _change(self, run: Callable[[RowLevelStatement], Counts], session: Any, plan: Any) -> Any:
        """Run a statement on rows; Spark forgets what it has cached of the table, and reads it again."""
        spark = self.jvm.session(session)
        counts = run(RowLevelStatement(self.jvm, spark, self.table, self._options(), session, plan))
        catalog, _, own = self.name.partition(".")
        parts = [own] if own.startswith("`") else [_quoted(part) for part in own.split(".", 1)]  # a path is quoted
        spark.catalog.refreshTable(".".join([_quoted(catalog), *parts]))
        return self.jvm.rows(counts)
