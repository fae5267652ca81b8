"""Batch writes of ``df.write.format("paimon").save(path)`` in a classic session, committed by this process.

The rows stay in the tasks of the DataFrame: `paimon_spark.clustered` shuffles them if the program calls it. Streams are
writes of the Python data source.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from paimon_core import Table
from paimon_core.engine import Predicate, predicate_columns
from paimon_core.errors import PaimonError, UnsupportedError
from paimon_spark.frame_write import write_table
from paimon_spark.options import WriteRequest, write_request
from paimon_spark.report import error_text
from paimon_spark.sql.bridge.conversions import frame_of
from paimon_spark.sql.bridge.endpoints import FormatWriteEndpoint
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.bridge.spark_errors import illegal, unsupported
from paimon_spark.sql.session_options import NATIVE_WRITES, native_writes
from paimon_spark.sql.writes.native_writes import native_results
from paimon_spark.sql.writes.replace import replace_rows
from paimon_spark.sql.writes.replacement import (
    check_mode,
    check_replacement,
    pop_stated,
    replace_matching,
    replacement_of,
    where_predicate,
)
from paimon_spark.writer import table_to_write


@dataclass
class FormatWrites(FormatWriteEndpoint):
    """The batch writes of the format, for ``FormatWrite.java``."""

    jvm: Jvm

    def write(self, rows: Any, overwrite: bool, options: str) -> None:
        """Write the rows of a Java Dataset in one commit; create a missing table from their columns and the options.

        Args:
            rows: the rows to write.
            overwrite: True if the rows replace rows of the table.
            options: the options of the write, as JSON.

        The text of an error has the form of the data source's errors.
        """
        try:
            self._write(frame_of(self.jvm, rows), overwrite, json.loads(options))
        except PaimonError as error:
            raised = unsupported if isinstance(error, UnsupportedError) else illegal
            raise raised(self.jvm, error_text(error)) from None

    def _write(self, frame: DataFrame, overwrite: bool, options: Mapping[str, str]) -> None:
        native_writes(frame.sparkSession.conf.get(NATIVE_WRITES, None))  # refuse a value that is not a boolean
        lower = {key.lower(): value for key, value in options.items()}  # as Spark passes them to Python
        found = pop_stated(lower, in_sql=False)
        request = write_request(lower, frame.schema.names)
        check_mode(found, request, overwrite=overwrite)
        table = table_to_write(request, frame.schema)
        replacement = replacement_of(found, table)
        if replacement is not None:
            check_replacement(replacement, request, table)
            if replacement.where is None:
                location = {**request.address.others, "path": table.path, "branch": table.store.branch}
                replace_matching(frame, table, replacement, request, location)
            else:
                _replace(frame, table, request, where_predicate(frame, replacement.where, table))
            return
        write_table(frame, table, request, overwrite=overwrite, shuffles=False, native=native_results)


def _replace(frame: DataFrame, table: Table, request: WriteRequest, condition: Predicate) -> None:
    """Replace the rows that match the bound condition; whole partitions are dropped unread."""
    if predicate_columns(condition) <= set(table.schema.partition_keys):
        write_table(frame, table, request, overwrite=True, replaced=condition, shuffles=False, native=native_results)
    else:
        replace_rows(frame, table, request, condition)
