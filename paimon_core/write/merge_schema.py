"""Columns of rows that a write adds to its table first: ``write.merge-schema``."""

from dataclasses import replace

import pyarrow as pa

from paimon_core.schema.merge import merge_changes
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import fields_from_arrow
from paimon_core.write.input_data import Data


def with_columns_of(store: FileStore, data: Data) -> FileStore:
    """Return the table after it got the columns of rows that it lacks, in one change; itself without the option.

    A column of type null says nothing about its type and is not added. Raises InvalidInputError for columns that cannot
    be merged.
    """
    rules = store.merge_rules
    if rules is None:
        return store
    fields = fields_from_arrow(pa.schema([field for field in data.schema if not pa.types.is_null(field.type)]))
    return replace(store.alter(lambda schema: merge_changes(schema.fields, fields, rules)), merge_rules=None)
