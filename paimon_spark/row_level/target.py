"""The table of a statement, and its rows as a DataFrame."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from paimon_core import Snapshot, Table
from paimon_core.engine import readable_fields, shows_all
from paimon_core.errors import UnsupportedError
from paimon_core.options.file import ROW_TRACKING_ENABLED
from paimon_core.options.merge import SEQUENCE_FIELD, SEQUENCE_FIELD_SORT_ORDER
from paimon_core.types.datatype import DataField
from paimon_core.types.system_fields import FILE_PATH, ROW_ID, ROW_INDEX, ROW_KIND
from paimon_spark.row_level.texts import text_of
from paimon_spark.types import spark_schema


@dataclass(frozen=True)
class TargetRows:
    """Rows of the table that a statement changes.

    Args:
        frame: the table's columns, and further ones.
        columns: the names of the table's columns.
        fields: the table's columns by name.
        positions: names of the further columns, which say where a row is stored; none if rows have a primary key.
        identity: names of the columns that no two rows share.
        sequence: names of the columns by which a newer row replaces an older one.
        descending: True if the row with the smaller sequence is the newer one.
        left_out: names of columns that are NULL in a changed row unless they change: the merge keeps their old value.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    fields: Mapping[str, DataField]
    positions: tuple[str, ...]
    identity: tuple[str, ...]
    sequence: tuple[str, ...] = ()
    descending: bool = False
    left_out: frozenset[str] = frozenset()

    def texts(self) -> dict[str, str]:
        """Return the column of each name in the numbered rows of `frame`, or of rows that begin with its columns."""
        return {name: f"c{number}" for number, name in enumerate(self.frame.columns)}

    def where(self, condition: Column | None) -> "TargetRows":
        """Return the rows for which the condition is true; `None`: all rows."""
        if condition is None:
            return self
        return replace(self, frame=self.frame.where(condition))

    def changed(self, name: str, old: str, value: str | None, key: str | None = None) -> str:
        """Return the value of a column in a changed row.

        The job fails if the new row would not replace the old one: if its sequence is smaller, or its key another.

        Args:
            name: of the column.
            old: its value.
            value: the new one; `None`: the column keeps its value.
            key: the value that the column must have already; `None`: any.
        """
        if value is None and name in self.left_out:
            return f"CASE WHEN false THEN {old} END"
        if value is None:
            return old if key is None else _only_if(f"{old} <=> {key}", old, f"MERGE INTO cannot change key {name}")
        if name in self.left_out:
            shows = f"{value} IS NOT NULL OR {old} IS NULL"
            value = _only_if(shows, value, f"column {name} cannot become NULL: partial-update would not show it")
        if name not in self.sequence:
            return value
        follows = f"{old} IS NULL OR {value} {'<=' if self.descending else '>='} {old}"
        return _only_if(follows, value, f"the new value of sequence field {name} is older than that of the row")


class RowAccess:
    """Reads the rows of a target and writes the changes, with tasks of Spark, through Python."""

    def stored(
        self, spark: SparkSession, table: Table, snapshot: Snapshot, positions: Sequence[str]
    ) -> DataFrame | None:
        """Return the rows of a snapshot as Spark's own scan reads them; `None`: others must read them.

        The columns are those of the table, then these columns of positions.
        """
        return None

    def small(self, spark: SparkSession, options: Mapping[str, str], columns: StructType) -> DataFrame | None:
        """Return the rows that the data source would read with these options; `None`: they are not few."""
        return None

    def few_changes(self, rows: DataFrame) -> pa.Table | None:
        """Return the rows to write if they are few; `None`: tasks write them."""
        return None


@dataclass(frozen=True)
class Target:
    """The table that a statement changes.

    Args:
        spark: the session of the statement.
        table: the table.
        options: where the table is, and table options for reads and writes.
        bind: gives the rows the names by which the statement calls them.
        filter: a filter of the engine, as a text: other rows are not changed. `None`: all rows may be.
        filter_column: a column that is equal to the filter; `None`: only the engine evaluates it.
        commit: options of the commit.
        access: reads the rows and collects few changes; its scan by Spark also needs Spark to evaluate the filter.
        metadata: names of the metadata columns that the statement uses.
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
        """Return the rows of a snapshot; no rows if there is none."""
        schema = self.table.schema
        positions = position_fields(self.table)
        columns = tuple(field.name for field in schema.fields)
        names = tuple(field.name for field in positions)
        further = [field for field in readable_fields(schema) if field.name in set(self.metadata) - set(names)]
        fields = spark_schema((*schema.fields, *positions, *further))
        stored = None
        if snapshot is not None and (self.filter is None or self.filter_column is not None) and not further:
            stored = self.access.stored(self.spark, self.table, snapshot, names)
        if stored is not None:
            frame = stored if self.filter_column is None else stored.where(self.filter_column)
        elif snapshot is None:
            frame = self.spark.createDataFrame([], fields)
        else:
            given = {**self.options, **shows_all(schema), "read.rows-of-snapshot": str(snapshot.id)}
            if self.filter is not None:
                given["filter"] = self.filter
            small = self.access.small(self.spark, given, fields)
            frame = self.spark.read.format("paimon").options(**given).schema(fields).load() if small is None else small
        identity = tuple(schema.primary_keys) or names
        return TargetRows(
            self.bind(frame),
            columns,
            {field.name: field for field in schema.fields},
            names,
            identity,
            schema.options.value(SEQUENCE_FIELD),
            schema.options.value(SEQUENCE_FIELD_SORT_ORDER) == "descending",
            self._left_out(),
        )

    def _left_out(self) -> frozenset[str]:
        schema = self.table.schema
        if not schema.primary_keys or self.table.store.traits.engine_type.name != "partial-update":
            return frozenset()
        always = {*schema.primary_keys, *schema.partition_keys, *schema.options.value(SEQUENCE_FIELD)}
        return frozenset(f.name for f in schema.fields if f.type.nullable and f.name not in always)


def position_fields(table: Table) -> tuple[DataField, ...]:
    """Return the columns that say where a row of a table is stored; none if rows have a primary key.

    Raises UnsupportedError for a table with columns of these names.
    """
    schema = table.schema
    if schema.primary_keys:
        found: tuple[DataField, ...] = ()
    elif table.store.traits.data_evolution:
        found = (ROW_ID,)
    else:
        found = (FILE_PATH, ROW_INDEX, *((ROW_ID,) if schema.options.value(ROW_TRACKING_ENABLED) else ()))
    check_added_names(table, *found, ROW_KIND)
    return found


def check_added_names(table: Table, *fields: DataField) -> None:
    """Raise UnsupportedError for a table with a column that, in any case, is called as one that a statement adds."""
    added = {field.name.lower() for field in fields}
    hiding = [name for name in table.schema.names if name.lower() in added]
    if hiding:
        raise UnsupportedError(
            f"rows of {table.path} cannot be changed: its columns {', '.join(hiding)} hide where a row is stored, or "
            "how it changes; rename them"
        )


def _only_if(condition: str, value: str, message: str) -> str:
    """Return the value; the job fails unless the condition is true."""
    return f"CASE WHEN {condition} THEN {value} ELSE raise_error({text_of(message)}) END"
