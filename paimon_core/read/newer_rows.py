"""The rows that were written after the base run of a plan."""

from collections.abc import Iterable

import pyarrow as pa

from paimon_core.read.table_read import TableRead
from paimon_core.scan.split import DataSplit
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.system_fields import VALUE_KIND


def newer_rows(store: FileStore, splits: Iterable[DataSplit]) -> pa.Table:
    """Return the newest row of each key, deletes included: its kind ``_VALUE_KIND`` (int8), then all columns.

    Memory: all rows; see `base_run` for their limits. Raises the errors of `TableRead.to_batches`.
    """
    fields = store.schema.fields
    read = TableRead(store, fields)
    batches = [batch for split in splits for batch in read.changelog_batches(split)]
    return pa.Table.from_batches(batches, arrow_schema((VALUE_KIND, *fields)))
