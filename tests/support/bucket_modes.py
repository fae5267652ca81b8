"""A table of every bucket mode with columns of any types."""

import pyarrow as pa

from paimon_core.schema.schema import Schema
from paimon_core.table import Table
from paimon_core.types.arrow import assign_ids
from paimon_core.types.datatype import NO_ID, DataField
from paimon_core.types.parse import parse_type
from tests.support.samples import EVERYWHERE

MODES = {
    "fixed": (["id"], {"bucket": "2"}),
    "fixed, append": ([], {"bucket": "2", "bucket-key": "id"}),
    "dynamic": (["id", "p"], {"bucket": "-1"}),
    "cross-partition": (["id"], {"bucket": "-1"}),
    "postponed": (["id", "p"], {"bucket": "-2"}),
    "postponed, waiting": (["id", "p"], {"bucket": "-2", "postpone.batch-write-fixed-bucket": "false"}),
    "no buckets": ([], {"bucket": "-1"}),
}
NANOS = ("TIMESTAMP(9)", "TIMESTAMP(9) WITH LOCAL TIME ZONE", "ROW<q TIMESTAMP(9)>", "TIME(9)")
VARIANTS = ("VARIANT", "ROW<v VARIANT>", "ARRAY<VARIANT>")
VALUES = {f"c{i}": text for i, text in enumerate((*(t for t in EVERYWHERE if t != "TIMESTAMP(0)"), *NANOS, *VARIANTS))}
"""Columns of every type; random values do not fit TIMESTAMP(0)."""


def fields_of(columns):
    """Fields of columns {name: type}."""
    return assign_ids([DataField(NO_ID, name, parse_type(text)) for name, text in columns.items()], 0)[0]


def table_of(path, mode, columns):
    """A new table with these columns, among them id and p."""
    keys, options = MODES[mode]
    partitions = [] if mode == "fixed" else ["p"]
    options = {**options, "partition.legacy-name": "false"}  # the old names of directories exclude binary values
    return Table.create(str(path), Schema(fields_of(columns), keys, partitions, options))


def numbered(values, first, partition):
    """Rows with ids from `first` on, all in one partition."""
    ids = pa.array(range(first, first + values.num_rows), pa.int32())
    keys = {"id": ids, "p": pa.array([partition] * len(ids), pa.int32())}
    return pa.table({**keys, **dict(zip(values.column_names, values.columns, strict=True))})
