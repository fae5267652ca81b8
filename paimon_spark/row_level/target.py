"""The table that a statement changes, and its rows as a DataFrame."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from paimon_core import Snapshot, Table
from paimon_core.engine import null_unless_changed, position_fields, readable_fields, shows_all
from paimon_core.options.merge import SEQUENCE_FIELD, SEQUENCE_FIELD_SORT_ORDER
from paimon_core.types.columns import free_prefix
from paimon_core.types.datatype import DataField
from paimon_spark.char_columns import has_char, marked, padded_text, pads_reads
from paimon_spark.internals import renamed
from paimon_spark.row_level.texts import text_of
from paimon_spark.types import spark_schema


@dataclass(frozen=True)
class TargetRows:
    """Rows of the table that a statement changes.

    Args:
        frame: the rows, with the table's columns and extra columns.
        columns: the names of the table's columns.
        fields: the table's columns by name.
        positions: the names of the extra columns with the stored position of a row; empty if rows have a primary key.
        identity: the names of the columns that identify a row.
        sequence: the names of the sequence fields, which decide which row is newer.
        descending: True if the row with the smaller sequence is the newer one.
        left_out: the names of columns that a changed row leaves NULL unless they change: the merge keeps the old value.
        as_stored: the names of the extra columns with the stored values of columns that `frame` has with padded CHAR
            values. Unchanged values, and the keys of old rows, must be written as they are stored.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    fields: Mapping[str, DataField]
    positions: tuple[str, ...]
    identity: tuple[str, ...]
    sequence: tuple[str, ...] = ()
    descending: bool = False
    left_out: frozenset[str] = frozenset()
    as_stored: Mapping[str, str] = field(default_factory=dict)

    def texts(self) -> dict[str, str]:
        """Return the numbered column (``c0`` ...) of each column of `frame`, with the value as it is stored."""
        numbers = {name: f"c{number}" for number, name in enumerate(self.frame.columns)}
        return numbers | {name: numbers[stored] for name, stored in self.as_stored.items()}

    def where(self, condition: Column | None) -> "TargetRows":
        """Return the rows for which the condition is true; `None`: all rows."""
        if condition is None:
            return self
        return replace(self, frame=self.frame.where(condition))

    def changed(self, name: str, old: str, value: str | None, key: str | None = None) -> str:
        """Return the SQL text of a column's value in a changed row.

        The job fails if the new row would not replace the old one, because its sequence is older or its key differs.

        Args:
            name: the name of the column.
            old: the text of the old value.
            value: the text of the new value; `None`: the column keeps its value.
            key: the text of the value that the column must already have; `None`: any value.
        """
        if value is None and name in self.left_out:
            return f"CASE WHEN false THEN {old} END"
        if value is None:
            same = f"rtrim({old}) <=> rtrim({key})" if has_char(self.fields[name].type) else f"{old} <=> {key}"
            return old if key is None else _only_if(same, old, f"MERGE INTO cannot change key {name}")
        if name in self.left_out:
            shows = f"{value} IS NOT NULL OR {old} IS NULL"
            value = _only_if(shows, value, f"column {name} cannot become NULL: partial-update would keep the old value")
        if name not in self.sequence:
            return value
        follows = f"{old} IS NULL OR {value} {'<=' if self.descending else '>='} {old}"
        return _only_if(follows, value, f"the new value of sequence field {name} is older than the value of the row")


class RowAccess:
    """The way to read the rows of a target and to write its changes: here, Spark tasks that run Python."""

    def stored(
        self, spark: SparkSession, table: Table, snapshot: Snapshot, positions: Sequence[str]
    ) -> DataFrame | None:
        """Return the rows of a snapshot from Spark's own scan; `None`: that scan cannot read them.

        The columns are the table's columns, followed by `positions`.
        """
        return None

    def small(self, spark: SparkSession, options: Mapping[str, str], columns: StructType) -> DataFrame | None:
        """Return the rows that the data source would read with these options if they are few, else `None`."""
        return None

    def few_changes(self, rows: DataFrame) -> pa.Table | None:
        """Return the rows to write if they are few; `None`: Spark tasks write them."""
        return None


@dataclass(frozen=True)
class Target:
    """The table that a statement changes.

    Args:
        spark: the session of the statement.
        table: the table.
        options: the location of the table, and table options for reads and writes.
        bind: adds to the rows the alias or names that the statement uses.
        filter: the engine's filter, as SQL text, of the rows that may change; `None`: all rows.
        filter_column: a column that is equivalent to the filter; `None`: only the engine can evaluate the filter.
        commit: options of the commit.
        access: reads the rows and collects few changes. It can use Spark's own scan only if Spark can evaluate the
            filter.
        metadata: the names of the metadata columns that the statement uses.
    """

    spark: SparkSession
    table: Table
    options: Mapping[str, str]
    bind: Callable[[DataFrame], DataFrame] = lambda rows: rows
    filter: str | None = None
    filter_column: Column | None = None
    commit: Mapping[str, str] = field(default_factory=dict)
    access: RowAccess = field(default_factory=RowAccess)
    metadata: tuple[str, ...] = ()

    def rows(self, snapshot: Snapshot | None) -> TargetRows:
        """Return the rows of a snapshot; `None`: the table is empty."""
        schema = self.table.schema
        positions = position_fields(self.table.store)
        columns = tuple(field.name for field in schema.fields)
        names = tuple(field.name for field in positions)
        metadata = [field for field in readable_fields(schema) if field.name in set(self.metadata) - set(names)]
        fields = spark_schema((*schema.fields, *positions, *metadata))
        stored = None
        if snapshot is not None and (self.filter is None or self.filter_column is not None) and not metadata:
            stored = self.access.stored(self.spark, self.table, snapshot, names)
        if stored is not None:
            frame = stored if self.filter_column is None else stored.where(self.filter_column)
        elif snapshot is None:
            frame = self.spark.createDataFrame([], fields)
        else:
            read_options = {**self.options, **shows_all(schema), "read.rows-of-snapshot": str(snapshot.id)}
            if self.filter is not None:
                read_options["filter"] = self.filter
            small = self.access.small(self.spark, read_options, fields)
            frame = (
                self.spark.read.format("paimon").options(**read_options).schema(fields).load()
                if small is None
                else small
            )
        identity = tuple(schema.primary_keys) or names
        frame, as_stored = self._padded(frame)
        return TargetRows(
            self.bind(frame),
            columns,
            {field.name: field for field in schema.fields},
            names,
            identity,
            schema.options.value(SEQUENCE_FIELD),
            schema.options.value(SEQUENCE_FIELD_SORT_ORDER) == "descending",
            null_unless_changed(schema),
            as_stored,
        )

    def _padded(self, frame: DataFrame) -> tuple[DataFrame, Mapping[str, str]]:
        """Return the rows with padded CHAR values, as a query of the session would read them.

        Also return the name of the extra column with the stored values of each column with such values.
        """
        fields = {field.name: field for field in self.table.schema.fields if has_char(field.type)}
        if not fields or not pads_reads(self.spark):
            return frame, {}
        prefix = free_prefix("__paimon_stored_", frame.columns)
        as_stored = {name: f"{prefix}{number}" for number, name in enumerate(fields)}
        numbers = {name: f"c{number}" for number, name in enumerate(frame.columns)}
        numbered = renamed(frame, list(numbers.values()))
        columns = marked(frame.schema, fields.values()).fields
        shown = [
            F.expr(padded_text(numbers[c.name], fields[c.name].type)).alias(c.name, metadata=c.metadata)
            if c.name in fields
            else F.col(numbers[c.name]).alias(c.name)
            for c in columns
        ]
        stored = (F.col(numbers[name]).alias(copy) for name, copy in as_stored.items())
        return numbered.select(*shown, *stored), as_stored


def _only_if(condition: str, value: str, message: str) -> str:
    """Return SQL text for a value; the job fails with `message` unless `condition` is true."""
    return f"CASE WHEN {condition} THEN {value} ELSE raise_error({text_of(message)}) END"
