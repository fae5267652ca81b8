"""PaimonTable: a table opened by its path, in classic Spark sessions and over Connect."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from paimon_core import (
    AddedFiles,
    Explanation,
    RowChanges,
    Snapshot,
    SystemTable,
    Table,
    TableLocation,
    TableSchema,
)
from paimon_core.engine import (
    DEFAULT_LISTED,
    MAIN_BRANCH,
    MERGE_OPTIONS,
    READ_OPTIMIZED,
    FileStore,
    Filter,
    MergeRules,
    Predicate,
    Progress,
    SchemaChange,
    TablePage,
    bind,
    collect,
    drop_counted,
    drops_partitions,
    notebook_html,
    parse_predicate,
    position_fields,
    repr_text,
    resolved_snapshot,
    summary_html,
    table_summary,
    tests_fields,
    tracking_fields,
)
from paimon_core.errors import InvalidInputError, hide_secrets
from paimon_spark.distribute import parallelism
from paimon_spark.filter_text import with_session_quotes
from paimon_spark.frame_overwrite import overwrite_frame
from paimon_spark.maintained_table import MaintainedTable
from paimon_spark.option_names import canonical
from paimon_spark.options import TableAddress, pop_merge_rules, read_request
from paimon_spark.reader import open_any, open_table
from paimon_spark.row_level.filter_column import filter_column
from paimon_spark.row_level.merge_builder import MergeBuilder
from paimon_spark.row_level.new_values import as_column, assigned
from paimon_spark.row_level.run import delete, update
from paimon_spark.row_level.target import Target
from paimon_spark.sql.format import install_format
from paimon_spark.sql.reads.path_table import explain, options_of_name, path_frame
from paimon_spark.sql.writes.native_writes import native_results
from paimon_spark.sql.writes.target_access import DriverAccess
from paimon_spark.times import in_session_zone
from paimon_spark.worker_python import check_worker_python

_MIN_TASKS = "read.min-tasks"


class PaimonTable(MaintainedTable):
    """A table opened by its path, in classic and Connect sessions. The driver reads and writes small results itself.

    Examples:
        >>> from paimon_spark import PaimonTable
        >>> table = PaimonTable.forPath(spark, "/tmp/warehouse/shop.db/items")
        >>> table.update("id = 1", set={"name": "'red pen'"}).num_updated_rows
        1
        >>> table.toDF().orderBy("id").collect()
        [Row(id=1, name='red pen'), Row(id=2, name='blue ink')]
    """

    def __init__(self, spark: SparkSession, address: TableAddress, options: Mapping[str, str]) -> None:
        merging = {
            key: value for key, value in options.items() if not canonical({key: value}).keys().isdisjoint(MERGE_OPTIONS)
        }
        super().__init__(spark, address, {key: value for key, value in options.items() if key not in merging})
        self._merging = merging
        self._parallelism: int | None = None
        self._alias: str | None = None

    @classmethod
    def forPath(cls, spark: SparkSession, path: str, **options: str) -> "PaimonTable":
        """Return the table in the directory `path`, for `spark`; `options`: read options and storage options.

        Raises MissingDependencyError if the workers of a local session lack this package.
        """
        check_worker_python(spark)
        read_options = in_session_zone({**options, "path": path}, lambda: spark)
        install_format(spark)
        return cls(spark, read_request(read_options).address, read_options)

    @classmethod
    def forName(cls, spark: SparkSession, name: str, **options: str) -> "PaimonTable":
        """Return the table with a name such as ``"paimon.db.t"``, which `spark`, a classic session, resolves.

        `options`: as in `forPath`. Raises UnsupportedError for Spark Connect and for a table of another format.
        """
        located = options_of_name(spark, name, "PaimonTable.forName")
        return cls.forPath(spark, **{**located, **options})

    def toDF(self, **options: str) -> DataFrame:
        """Return the rows as a DataFrame; `options` apply to this read only.

        As in SQL, Spark's own Parquet scan reads files that need no merge; `explain` shows which. By default,
        'read.min-tasks' is the number of tasks that the cluster runs at a time, so a large read uses the whole cluster.
        """
        read_options = {**self._options, **in_session_zone(options, lambda: self._spark)}
        full = dict(read_options)
        if _MIN_TASKS not in canonical(read_options):
            self._parallelism = self._parallelism or parallelism(self._spark)
            full[_MIN_TASKS] = str(self._parallelism)
        frame = path_frame(self._spark, read_options, full)
        return self._spark.read.format("paimon").options(**full).load() if frame is None else frame

    def explain(
        self,
        columns: Sequence[str] | None = None,
        filter: Filter = None,
        *,
        analyze: bool = False,
        listed: int = DEFAULT_LISTED,
    ) -> Explanation:
        """Return the plan of `toDF`, and why Spark or Python reads each part (docs/guides/explain-reads.md).

        The text is the same as for EXPLAIN in SQL. Raises UnsupportedError for a read of changes.

        Args:
            columns: the names of the columns to read; `None`: all columns.
            filter: a filter as SQL text or as a predicate; `None`: all rows.
            analyze: True: Spark tasks read the rows with Python, discard them and measure the read.
            listed: the most splits, and the most sections, that the text lists.
        """
        return explain(self._spark, self._options, columns, filter, analyze=analyze, listed=listed)

    def alias(self, name: str) -> "PaimonTable":
        """Return the table with an alias, for use in conditions and new values of `update` and `merge`."""
        named = PaimonTable(self._spark, self._address, {**self._options, **self._merging})
        named._alias = name
        return named

    def delete(self, filter: str | Predicate | Column, *, progress: Progress | bool | None = None) -> RowChanges:
        """Delete the rows that match a filter in one commit; return their number and the snapshot.

        Spark reads the matching rows. Without a primary key, their positions are added to deletion vectors, or the
        files that contain them are rewritten. With a primary key, they are written back as deletes. A filter on
        partition columns only drops the partitions without reading them.

        Args:
            filter: a condition as SQL text, a predicate of the engine, or a Spark condition as a Column. Spark
                evaluates a text that the engine cannot parse, such as one with functions.
            progress: as in `compact`, for the files that are rewritten.

        Raises UnsupportedError if the table does not accept deletes, CommitConflictError if other commits changed the
        same rows during every attempt.
        """
        table = self._newest_table("deleted from")
        if isinstance(filter, Column):
            with self._progress("delete from", progress) as report:
                return delete(self._target(table), filter, report)
        try:
            text = with_session_quotes(self._spark, filter) if isinstance(filter, str) else ""
            predicate = parse_predicate(text) if isinstance(filter, str) else filter
        except InvalidInputError as error:
            try:
                return self.delete(F.expr(str(filter)), progress=progress)
            except ParseException:
                raise error from None
        if isinstance(filter, str) and tests_fields(predicate):  # or on columns with the alias of the table
            return self.delete(F.expr(filter), progress=progress)
        bound = bind(predicate, (*table.schema.fields, *tracking_fields(table.schema)))
        if drops_partitions(table.schema, bound):
            with collect() as metrics:
                dropped = drop_counted(table.store, bound)
                if dropped is not None:
                    return RowChanges(num_deleted_rows=dropped.rows, snapshot=dropped.snapshot, metrics=metrics)
                snapshot = table.delete(predicate)
            deleted = 0 if snapshot is None else None
            return RowChanges(num_deleted_rows=deleted, snapshot=snapshot, metrics=metrics)
        column = filter_column(bound, (*table.schema.fields, *position_fields(table.store)))
        target = replace(self._target(table, str(predicate)), filter_column=column)
        with self._progress("delete from", progress) as report:
            return delete(target, None, report)

    def update(
        self,
        condition: str | Column | None,
        set: Mapping[str, str | Column],
        *,
        progress: Progress | bool | None = None,
    ) -> RowChanges:
        """Set columns to new values in the rows that match, in one commit; return their number and the snapshot.

        With a primary key, the changed rows are written as upserts, and no file is rewritten. Without one, the changed
        rows are written to new files, and the old rows are removed as in `delete`.

        Args:
            condition: the rows to update, as Spark SQL text or as a Column; `None`: all rows.
            set: the new value of each column that changes, as Spark SQL text or as a Column.
            progress: as in `delete`.

        Raises InvalidInputError for an unknown column, UnsupportedError if a merge of the table would discard the new
        values, CommitConflictError if other commits changed the same rows during every attempt.
        """
        table = self._newest_table("updated")
        values = assigned(table.schema, set, self._alias)
        with self._progress("update", progress) as report:
            return update(self._target(table), as_column(condition), values, report)

    def merge(self, source: DataFrame, condition: str | Column) -> MergeBuilder:
        """Return a builder of a MERGE from `source`, which `execute` runs.

        Args:
            source: the source rows; name the source and the table with `alias`.
            condition: the join condition of source rows and table rows, as Spark SQL text or as a Column.

        If this object has the option 'write.merge-schema', clauses for all columns add the columns that the table
        lacks.
        """
        target = self._target(self._newest_table("merged into"))
        return MergeBuilder(target, self._alias, source, condition, self._merge_rules)

    def _merge_rules(self, demanded: bool) -> MergeRules | None:
        """Return the schema changes that options allow, or that a statement demands; `None`: no schema changes."""
        return pop_merge_rules(canonical(self._merging), demanded=demanded)

    def _target(self, table: Table, filter: str | None = None) -> Target:
        """Return the table as the target of a statement."""
        address = self._address
        job_options = {**address.others, **read_request(self._options).options, "path": address.path}
        if address.branch is not None:
            job_options["branch"] = address.branch
        alias = self._alias
        bind = (lambda rows: rows) if alias is None else (lambda rows: rows.alias(alias))
        return Target(self._spark, table, job_options, bind, filter, access=DriverAccess())

    def addFiles(
        self, paths: str | Sequence[str], partition: Mapping[str, object] | None = None, *, move: bool = False
    ) -> AddedFiles:
        """Add existing Parquet, ORC or Avro files, or directories of them: see `paimon_core.Table.add_files`.

        This process reads the footers and copies or moves the files, so it needs access to the files and the table.
        """
        return self._newest_table("added to").add_files(paths, partition, move=move)

    def overwrite(self, data: DataFrame, partition: Mapping[str, object] | str | None = None) -> Snapshot | None:
        """Replace rows with the rows of a DataFrame in one commit; return its snapshot, `None` if nothing changed.

        The columns are matched by name. If this object has the option 'write.merge-schema', columns that the table
        lacks are added first.

        Args:
            data: the new rows. Reads of the same table see the rows before the overwrite.
            partition: the rows to replace. {column: value}: one partition, which also sets the partition columns that
                `data` lacks; "dynamic": the partitions that `data` has rows of; `None`: the whole table, or "dynamic"
                if the option 'dynamic-partition-overwrite' is true.

        Raises InvalidInputError for columns or rows that the table or the partition cannot hold. After an error the
        rows of the table are unchanged.
        """
        table = self._newest_table("overwritten")
        return overwrite_frame(data, table, {**self._target(table).options, **self._merging}, partition, native_results)

    def alter(self, changes: Sequence[SchemaChange] | Callable[[TableSchema], Sequence[SchemaChange]]) -> "PaimonTable":
        """Apply schema changes, all or none; return this object, whose later reads have the new schema.

        Args:
            changes: changes such as `paimon_core.AddColumn`, in their order; or a function of the newest schema that
                returns them. It is called again if another process changes the schema at the same time.

        Raises NotFoundError for a column that the table lacks, InvalidInputError or UnsupportedError for any other
        change that the table cannot make.
        """
        self._newest_table("altered").alter(changes)
        return self

    def truncate(self) -> Snapshot | None:
        """Remove every row in one commit, and return its snapshot; older snapshots stay readable."""
        return self._newest_table("truncated").truncate()

    def dropPartitions(self, partitions: Sequence[Mapping[str, object]]) -> Snapshot | None:
        """Drop `partitions`, each {column: value}, in one commit; return its snapshot, `None` if they have no rows."""
        return self._newest_table("changed").drop_partitions(partitions)

    def page(self, rows: int = 0) -> TablePage:
        """Return the HTML page of the table: see `paimon_core.Table.page`. This process reads metadata and rows.

        Args:
            rows: the number of rows to show, from 0 to 100; 0: read no data file.

        Raises UnsupportedError for a system table.
        """
        request = read_request(self._options)
        return open_table(request).page(rows, **request.when)

    def _repr_html_(self) -> str | None:
        """Return an HTML summary of the table for a notebook; this process reads the metadata."""
        return notebook_html(hide_secrets(self._address.path), self._page)

    def _page(self) -> str | None:
        request = read_request(self._options)
        table = open_any(request)
        if isinstance(table, SystemTable) or not request.when:
            return table._repr_html_()
        return summary_html(table_summary(table, **request.when))

    def __repr__(self) -> str:
        """Return the path, the snapshot, its rows and files, or the error of reading them. Reads a few small files."""
        address = self._address
        branch = None if address.branch == MAIN_BRANCH else address.branch
        path = hide_secrets(str(TableLocation(address.path, branch, address.system_table)))
        details = "" if address.system_table not in (None, READ_OPTIMIZED) else f", {repr_text(self._resolved)}"
        return f"PaimonTable({path!r}{details})"

    def _resolved(self) -> tuple[FileStore, Snapshot | None]:
        request = read_request(self._options)
        return resolved_snapshot(open_table(request), **request.when)
