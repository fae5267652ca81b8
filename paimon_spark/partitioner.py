"""The partitioner of a shuffle by bucket, which assigns each bucket to a task."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_core import Table, TableSchema
from paimon_core.engine import BucketAssigner, BucketMode, bucket_mode, bucket_numbers, default_buckets, hash_entries
from paimon_core.errors import InvalidInputError
from paimon_core.options.bucket import BUCKET_FUNCTION_TYPE, POSTPONE_BATCH_WRITE_FIXED_BUCKET
from paimon_core.types.arrow import arrow_schema
from paimon_core.types.coerce import coerce_array
from paimon_core.types.datatype import DataField


class BucketPartitioner:
    """A partitioner of rows: ``task = (bucket + hash(partition)) % tasks``.

    On a table with dynamic buckets ``bucket`` is the slot of the key: new keys of a slot go to buckets of that slot,
    which one task fills one by one. If keys may move between partitions, ``task = hash(key) % tasks``.
    """

    def __init__(self, schema: TableSchema, tasks: int, slots: int = 0) -> None:
        self.tasks = tasks
        self.slots = slots
        """The number of slots of each partition; 0: buckets are not dynamic."""
        self.by_key = bucket_mode(schema) is BucketMode.KEY_DYNAMIC
        """True if a task receives all rows of its keys and no others, whatever their partition."""
        self._buckets = tasks if self.by_key else slots or max(1, shuffle_targets(schema))
        self._function = "default" if self.by_key else schema.options.value(BUCKET_FUNCTION_TYPE)
        self._partition = () if self.by_key else schema.partition_fields
        keys = schema.primary_keys if self.by_key else schema.bucket_keys
        self._key = tuple(schema.field(name) for name in keys) if self._buckets > 1 else ()
        self.fields = (*self._partition, *(f for f in self._key if f not in self._partition))

    @property
    def hashed(self) -> Sequence[tuple[Sequence[DataField], int]]:
        """The columns to hash and their numbers of buckets, whose bucket sum gives the task.

        Empty if the table has another bucket function than the default.
        """
        parts = ((self._partition, self.tasks), (self._key, self._buckets))
        return [(fields, count) for fields, count in parts if fields] if self._function == "default" else ()

    @property
    def column_suffix(self) -> str:
        """The suffix of the column of task numbers, which describes this partitioner to the writer; "": no column."""
        return f"_of_{self.tasks}" if self.by_key else f"_of_{self.tasks}_by_{self.slots}" if self.slots else ""

    @staticmethod
    def of(schema: TableSchema, tasks: int | None, slots: int = 0) -> "BucketPartitioner | None":
        """Return the partitioner of a table; `None`: the table has neither buckets nor partitions.

        Args:
            schema: the schema of the table.
            tasks: the number of tasks; `None`: one per bucket, at least 8 if the table is partitioned.
            slots: the number of slots of a partition with dynamic buckets; 0: buckets are not dynamic.

        Raises InvalidInputError for less than one task.
        """
        count = slots or shuffle_targets(schema)
        if tasks is not None and tasks < 1:
            raise InvalidInputError(f"tasks must be 1 or more, got {tasks}")
        if count < 1 and not schema.partition_keys:
            return None
        return BucketPartitioner(schema, tasks or max(count, 8 if schema.partition_keys else 1), slots)

    def owns(self, task: int, rows: pa.RecordBatch) -> bool:
        """Return True if every row belongs to this task; always False if there is only one task.

        A false positive is very unlikely: rows that were not shuffled belong to many tasks.
        """
        if self.tasks < 2 or not self.fields:
            return False
        names = {name.lower(): i for i, name in enumerate(rows.schema.names)}
        names.update((name, i) for i, name in enumerate(rows.schema.names))
        indices = [names.get(field.name, names.get(field.name.lower())) for field in self.fields]
        if None in indices:
            return False
        return bool(pc.all(pc.equal(self.task_of(*map(rows.column, indices)), task)).as_py())

    def task_of(self, *columns: pa.Array) -> pa.Array:
        """Return the task numbers (int32) of rows, given their columns in the order of `fields`."""
        stored = {
            field.name: coerce_array(column, field.type, field.name)
            for field, column in zip(self.fields, columns, strict=True)
        }
        task = np.zeros(len(columns[0]), dtype=np.int64)
        if self._partition:
            task += bucket_numbers(_rows(stored, self._partition), self.tasks)
        if self._key:
            task += bucket_numbers(_rows(stored, self._key), self._buckets, self._function)
        return pa.array(np.mod(task, self.tasks).astype(np.int32))


def shuffle_targets(schema: TableSchema) -> int:
    """Return the number of buckets of a partition; 0: a row's columns do not determine its bucket."""
    match bucket_mode(schema):
        case BucketMode.HASH_FIXED:
            return schema.bucket
        case BucketMode.POSTPONE if schema.options.value(POSTPONE_BATCH_WRITE_FIXED_BUCKET):
            return default_buckets(schema.options)
    return 0


def slots_for(table: Table) -> int:
    """Return the number of slots of a partition for a shuffle by key; 0: buckets are not dynamic.

    It is the number of buckets that the largest partition needs. A table without partitions gets the maximum.
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
