"""UPDATE and MERGE, with and without Spark: the result of a statement, and the checks that a table supports it.

A statement whose new rows a merge of the table would hide is refused by name.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from paimon_core.errors import UnsupportedError, hide_secrets
from paimon_core.metrics.listeners import OperationMetrics
from paimon_core.options.file import ROW_TRACKING_ENABLED
from paimon_core.options.merge import FIELDS_DEFAULT_AGGREGATE_FUNCTION, ROWKIND_FIELD, SEQUENCE_FIELD
from paimon_core.options.per_field import split_field_option, split_list
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.store.traits import TableTraits
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import FILE_PATH, ROW_ID, ROW_INDEX, ROW_KIND
from paimon_core.write.routing import BucketMode, bucket_mode

SEVERAL = "MERGE INTO: several source rows match one row of the target; make the source unique by the columns of ON"


@dataclass(frozen=True)
class RowChanges:
    """The numbers of rows that a statement changed, and its snapshot; `None`: no row changed.

    ``num_deleted_rows``: `None` if whole partitions were dropped without counting their rows. ``metrics``: measures the
    commit, the compaction after it, and failed attempts before it.
    """

    num_updated_rows: int = 0
    num_deleted_rows: int | None = 0
    num_inserted_rows: int = 0
    snapshot: Snapshot | None = None
    metrics: OperationMetrics = field(default_factory=OperationMetrics, compare=False, repr=False)

    @property
    def num_affected_rows(self) -> int | None:
        """The number of rows updated, deleted and inserted; `None` if the deleted rows were not counted."""
        deleted = self.num_deleted_rows
        return None if deleted is None else self.num_updated_rows + deleted + self.num_inserted_rows


def check_updates(schema: TableSchema, columns: Collection[str], operation: str) -> None:
    """Raise UnsupportedError for new values that a merge would discard, or that would move a row with a primary key.

    Args:
        schema: the schema of the table.
        columns: the names of the columns that change.
        operation: the keyword of the statement, for errors.
    """
    if not schema.primary_keys:
        moving = sorted(set(schema.partition_keys) & set(columns))
        if moving and TableTraits(schema).data_evolution:
            raise UnsupportedError(
                f"{operation} cannot change {', '.join(moving)}: rows of a table with 'data-evolution.enabled' do not "
                "move to other partitions; delete and insert them instead"
            )
        return
    if bucket_mode(schema) is BucketMode.POSTPONE:
        raise UnsupportedError(
            f"{operation} of a table with 'bucket' = -2 is not possible: its reads show writes only after a compaction"
        )
    if schema.options.value(ROWKIND_FIELD) is not None:
        raise UnsupportedError(
            f"{operation} of a table with 'rowkind.field' is not possible: write rows with their kinds"
        )
    engine = TableTraits(schema).engine_type.name
    if engine not in ("deduplicate", "partial-update"):
        raise UnsupportedError(
            f"{operation} of a table with merge engine {engine} is not possible: its merge would discard new values; "
            "insert rows instead"
        )
    if merged := sorted(_merged_otherwise(schema) & set(columns)):
        raise UnsupportedError(
            f"{operation} cannot change {', '.join(merged)}: a sequence group or an aggregate function of "
            "partial-update computes the value; insert rows instead"
        )
    wrong = sorted({*schema.primary_keys, *schema.partition_keys} & set(columns))
    if wrong:
        raise UnsupportedError(
            f"{operation} cannot change {', '.join(wrong)}: columns of the key or the partition; delete the rows and "
            "insert new ones"
        )


def _merged_otherwise(schema: TableSchema) -> set[str]:
    """Return the columns of partial-update with a sequence group or an aggregate function."""
    names: set[str] = set()
    for key, value in schema.options.items():
        parts = split_field_option(key)
        if parts is not None and parts[1] in ("sequence-group", "aggregate-function"):
            names.update(parts[0], split_list(value) if parts[1] == "sequence-group" else ())
    if schema.options.has(FIELDS_DEFAULT_AGGREGATE_FUNCTION):
        names.update(field.name for field in schema.fields)
    return names if TableTraits(schema).engine_type.name == "partial-update" else set()


def null_unless_changed(schema: TableSchema) -> frozenset[str]:
    """Return the names of the columns that a changed row leaves NULL unless they change: the merge keeps the old value.

    These are columns of tables with merge engine partial-update.
    """
    if not schema.primary_keys or TableTraits(schema).engine_type.name != "partial-update":
        return frozenset()
    always = {*schema.primary_keys, *schema.partition_keys, *schema.options.value(SEQUENCE_FIELD)}
    return frozenset(f.name for f in schema.fields if f.type.nullable and f.name not in always)


def position_fields(store: FileStore) -> tuple[DataField, ...]:
    """Return the metadata columns with the stored position of a row; empty if the table has a primary key.

    Raises UnsupportedError for a table with columns of these names.
    """
    schema = store.schema
    if schema.primary_keys:
        fields: tuple[DataField, ...] = ()
    elif store.traits.data_evolution:
        fields = (ROW_ID,)
    else:
        fields = (FILE_PATH, ROW_INDEX, *((ROW_ID,) if schema.options.value(ROW_TRACKING_ENABLED) else ()))
    check_added_names(store, *fields, ROW_KIND)
    return fields


def check_added_names(store: FileStore, *fields: DataField) -> None:
    """Raise UnsupportedError if a table column has the name, in any case, of a column that a statement adds."""
    added = {field.name.lower() for field in fields}
    hiding = [name for name in store.schema.names if name.lower() in added]
    if hiding:
        raise UnsupportedError(
            f"rows of {hide_secrets(store.root)} cannot be changed: its columns {', '.join(hiding)} have the names of "
            "metadata columns that the statement needs; rename them"
        )
