"""Add new columns of the rows to the table before a write: the option ``write.merge-schema``."""

from dataclasses import replace

import pyarrow as pa

from paimon_core.scan.read_rules import check_types
from paimon_core.schema.change import SchemaChange, apply
from paimon_core.schema.merge import merge_changes
from paimon_core.schema.table_schema import TableSchema
from paimon_core.store.file_store import FileStore
from paimon_core.types.arrow import fields_from_arrow
from paimon_core.write.input_data import Data


def with_columns_of(store: FileStore, data: Data) -> FileStore:
    """Add the columns of ``data`` that the table lacks, in one schema change. Return the changed table.

    Returns ``store`` if the option is not set. A column of type null has no usable type and is not added. Raises
    InvalidInputError for columns that cannot be merged, and as `check_types`.
    """
    rules = store.merge_rules
    if rules is None:
        return store
    fields = fields_from_arrow(pa.schema([field for field in data.schema if not pa.types.is_null(field.type)]))

    def changes(schema: TableSchema) -> list[SchemaChange]:
        made = merge_changes(schema.fields, fields, rules)
        if made:
            check_types(store, schema, apply(schema, made, has_snapshots=True))
        return made

    return replace(store.alter(changes), merge_rules=None)
