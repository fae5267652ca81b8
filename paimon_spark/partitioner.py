"""Which task of a job owns which bucket, when rows are shuffled by bucket."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core.commit.hash_indexes import hash_entries
from paimon_core.errors import InvalidInputError
from paimon_core.options.bucket import BUCKET_FUNCTION_TYPE, POSTPONE_BATCH_WRITE_FIXED_BUCKET
from paimon_core.row.bucket import buckets
from paimon_core.schema.table_schema import TableSchema
from paimon_core.table import Table
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.cast import coerce_array
from paimon_core.types.datatype import DataField
from paimon_core.write.routing import BucketMode, bucket_mode
from paimon_core.write.routing.bucket_assigner import BucketAssigner
from paimon_core.write.routing.postpone import default_buckets


class BucketPartitioner:
    """Which task a row goes to: its bucket, moved on by its partition's hash, modulo the number of tasks.

    Where buckets are dynamic a key's slot stands for its bucket: new keys of a slot go to buckets of its own, which its
    task fills one after the other. Where keys may move between partitions only the key counts.
    """

    def __init__(self, schema: TableSchema, tasks: int, slots: int = 0) -> None:
        self.tasks = tasks
        self.slots = slots
        """Slots of each partition; 0 where buckets are not dynamic."""
        self.shares = bucket_mode(schema) is BucketMode.KEY_DYNAMIC
        """Whether a task must get all rows of its keys, and no others, whatever their partition."""
        self._buckets = tasks if self.shares else slots or max(1, shuffle_targets(schema))
        self._function = "default" if self.shares else schema.options.value(BUCKET_FUNCTION_TYPE)
        self._partition = () if self.shares else schema.partition_fields
        keys = schema.primary_keys if self.shares else schema.bucket_keys
        self._key = tuple(schema.field(name) for name in keys) if self._buckets > 1 else ()
        self.fields = (*self._partition, *(f for f in self._key if f not in self._partition))

    @property
    def told(self) -> str:
        """Return what a column must be called beside ``TASK_COLUMN`` to tell this placing; "" where none needs to."""
        return f"_of_{self.tasks}" if self.shares else f"_of_{self.tasks}_by_{self.slots}" if self.slots else ""

    @staticmethod
    def of(schema: TableSchema, tasks: int | None, slots: int = 0) -> "BucketPartitioner | None":
        """Return the placing for a table; ``None`` where rows belong nowhere in particular.

        ``slots``: those of a partition whose buckets are dynamic.
        """
        count = slots or shuffle_targets(schema)
        if tasks is not None and tasks < 1:
            raise InvalidInputError(f"tasks must be 1 or more, got {tasks}")
        if count < 1 and not schema.partition_keys:
            return None
        return BucketPartitioner(schema, tasks or max(count, 8 if schema.partition_keys else 1), slots)

    def owns(self, task: int, rows: pa.RecordBatch) -> bool:
        """Whether all these rows go to this task: hardly so by chance, and never if there is only one to go to."""
        if self.tasks < 2 or not self.fields:
            return False
        names = {name.lower(): i for i, name in enumerate(rows.schema.names)}
        names.update((name, i) for i, name in enumerate(rows.schema.names))
        at = [names.get(field.name, names.get(field.name.lower())) for field in self.fields]
        if None in at:
            return False
        return bool(pc.all(pc.equal(self.task_of(*(rows.column(i) for i in at)), task)).as_py())

    def task_of(self, *columns: pa.Array) -> pa.Array:
        """Task numbers of rows given as the columns of `fields`, in their order."""
        stored = {
            field.name: coerce_array(column, field.type, field.name)
            for field, column in zip(self.fields, columns, strict=True)
        }
        task = np.zeros(len(columns[0]), dtype=np.int64)
        if self._partition:
            task += buckets(_rows(stored, self._partition), self.tasks)
        if self._key:
            task += buckets(_rows(stored, self._key), self._buckets, self._function)
        return pa.array(np.mod(task, self.tasks).astype(np.int32))


def shuffle_targets(schema: TableSchema) -> int:
    """Buckets of a partition, or what stands for them; 0 where the row alone does not tell its bucket."""
    match bucket_mode(schema):
        case BucketMode.HASH_FIXED:
            return schema.bucket
        case BucketMode.POSTPONE if schema.options.value(POSTPONE_BATCH_WRITE_FIXED_BUCKET):
            return default_buckets(schema.options)
    return 0


def slots_for(table: Table) -> int:
    """Return the slots of a partition for a shuffle by key; 0 where buckets are not dynamic.

    As many as the buckets of the largest partition; in a table without partitions no fewer than tasks share it.
    """
    schema = table.schema
    if bucket_mode(schema) is not BucketMode.HASH_DYNAMIC:
        return 0
    rule, snapshot = BucketAssigner.of(schema.options, shared=True), table.snapshot()
    partitions = hash_entries(table.store, snapshot).values() if schema.partition_keys else ()
    most = max((sum(e.row_count for e in entries.values()) for entries in partitions), default=0)
    return rule.expecting(most if schema.partition_keys else None).slots


def _rows(columns: dict[str, pa.Array], fields: tuple[DataField, ...]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([columns[f.name] for f in fields], schema=arrow_schema(fields))
