"""The load of files by COPY INTO: its new files, its valid rows, one commit, and a result row for each file.

A first pass over the files counts their rows and finds invalid rows. A second pass inserts the rows. The load history
of the table (`LoadHistory`) decides which files are new, so that two statements never load the same file twice.
"""

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types
from pyspark.sql.types import StructField, StructType

from paimon_core import Table
from paimon_core.engine import LOAD_PROPERTY, LOAD_USER, LoadedFile, LoadHistory, LoadSource
from paimon_core.errors import CommitConflictError
from paimon_core.types.columns import free_prefix
from paimon_core.types.datatype import TEXT_ROOTS, AtomicType, DataField
from paimon_spark.internals import quoted
from paimon_spark.types import STRING_LENGTH

_CORRUPT = "columnNameOfCorruptRecord"
ABORT, CONTINUE, SKIP_FILE = "ABORT_STATEMENT", "CONTINUE", "SKIP_FILE"
ON_ERROR = (ABORT, CONTINUE, SKIP_FILE)
RESULT_COLUMNS = (
    "file_name STRING, status STRING, rows_loaded BIGINT, rows_parsed BIGINT, errors_seen BIGINT, first_error STRING"
)
LOADED, PARTLY, FAILED, SKIPPED = "LOADED", "PARTIALLY_LOADED", "LOAD_FAILED", "SKIPPED"
_ATTEMPTS = 10
_LONGEST_ERROR = 500  # characters
_SPARK_ERROR = re.compile(r"\[[A-Z_.]+\][^\n]*")


@dataclass(frozen=True)
class ListedFile:
    """A file under the path of the statement; `name`: its path below that path, `uri`: its path as Spark shows it."""

    source: LoadSource
    name: str
    uri: str


@dataclass(frozen=True)
class _Counts:
    """The rows of a file, its invalid rows, and the reason of the first error; `None`: no error."""

    rows: int = 0
    invalid: int = 0
    error: str | None = None
    readable: bool = True


@dataclass(frozen=True)
class Load:
    """A load of files into a table.

    Args:
        spark: the session of the statement.
        table: the table.
        target: the quoted name of the table.
        fields: the columns to load, in the order of the columns of CSV files.
        format: CSV, JSON or PARQUET.
        options: the reader options of the format.
        on_error: one of `ON_ERROR`.
        force: True: also load files that have been loaded before.
    """

    spark: SparkSession
    table: Table
    target: str
    fields: Sequence[StructField]
    format: str
    options: Mapping[str, str]
    on_error: str
    force: bool
    _stored: Mapping[str, DataField] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_stored", {f.name: f for f in self.table.schema.fields})

    def run(self, listed: Callable[[], Sequence[ListedFile]]) -> list[list[Any]]:
        """Load the new files in one commit, and return the result rows.

        `listed`: returns the files under the path; each attempt lists them again.

        Raises CommitConflictError if other statements load files into the table during every attempt.
        """
        history = LoadHistory(self.table.store)
        for _ in range(_ATTEMPTS):
            number = history.next_number()  # REQUIRES: before the history is read
            files = listed()
            done = set() if self.force else history.loaded(file.source for file in files)
            result = self._load(history, number, [file for file in files if file.source not in done])
            if result is not None:
                return [result.get(file) or [file.name, SKIPPED, 0, 0, 0, None] for file in files]
        raise CommitConflictError(
            f"COPY INTO {self.target}: other COPY INTO statements loaded files during each of {_ATTEMPTS} attempts: "
            "run the statement again"
        )

    def _load(
        self, history: LoadHistory, number: int, files: Sequence[ListedFile]
    ) -> dict[ListedFile, list[Any]] | None:
        """Load the files, and return their result rows; `None`: another statement has committed in the meantime."""
        counts = self._counts(files) if files else {}
        wrong = {file for file, count in counts.items() if count.invalid or not count.readable}
        if self.on_error == ABORT:
            loaded = {file: count.rows for file, count in counts.items()}
            wrong = set()
        elif self.on_error == SKIP_FILE:
            loaded = {file: count.rows for file, count in counts.items() if file not in wrong}
        else:
            loaded = {
                file: c.rows - c.invalid
                for file, c in counts.items()
                if c.readable and (c.rows > c.invalid or not c.invalid)
            }
        records = [LoadedFile(file.source, rows) for file, rows in loaded.items()]
        if any(loaded.values()) or any(not counts[file].readable for file in loaded):
            statement = uuid.uuid4().hex
            history.begin(number, statement, records)
            self._insert(
                list(loaded),
                {"txnAppId": LOAD_USER, "txnVersion": str(number), f"snapshot-property.{LOAD_PROPERTY}": statement},
                valid=bool(wrong),
            )
            if not history.finish(number, statement):
                return None
        else:
            history.record(records)
        return {file: self._result(file, count, loaded.get(file)) for file, count in counts.items()}

    def _result(self, file: ListedFile, count: _Counts, loaded: int | None) -> list[Any]:
        """Return the result row of a file. `loaded`: its loaded rows; `None`: it is not loaded."""
        if loaded is None:
            return [file.name, FAILED, 0, count.rows, max(1, count.invalid), count.error]
        if self.on_error == ABORT:
            return [file.name, LOADED, loaded, loaded, 0, None]
        return [file.name, PARTLY if count.invalid else LOADED, loaded, count.rows, count.invalid, count.error]

    # ---- reading

    @property
    def _corrupt(self) -> str:
        """A column for malformed records. By default, Spark would take a column `_corrupt_record` of the table."""
        return free_prefix("_corrupt_record", [column.name for column in self.fields])

    def _counts(self, files: Sequence[ListedFile]) -> dict[ListedFile, _Counts]:
        """Count the rows of each file, in one job; if that fails, in one job for each file."""
        try:
            return self._counted(files)
        except Exception as error:  # the class is Spark's
            if self.on_error == ABORT:
                raise
            if len(files) == 1:
                return {files[0]: _Counts(error=_first_line(error), readable=False)}
            return {file: count for each in files for file, count in self._counts([each]).items()}

    def _counted(self, files: Sequence[ListedFile]) -> dict[ListedFile, _Counts]:
        rows, reason = self._checked(files)
        values = F.to_json(F.struct(*(F.col(quoted(column.name)) for column in self.fields)))
        about = rows.metadataColumn("_metadata")  # also if the table has a column of that name
        grouped = rows.groupBy(about["file_path"].alias("uri")).agg(
            F.count(F.lit(1)).alias("rows"),
            F.count(reason).alias("invalid"),
            F.min(reason).alias("error"),
            F.sum(F.length(values)),  # Spark does not parse columns that a query does not use
        )
        found = {
            row.uri: _Counts(row.rows, row.invalid, row.error and row.error[:_LONGEST_ERROR])
            for row in grouped.collect()
        }
        return {file: _find(found, file.uri) for file in files}

    def _insert(self, files: Sequence[ListedFile], options: Mapping[str, str], *, valid: bool) -> None:
        """Insert the rows of the files in one commit. `valid`: only the valid rows; else an invalid row fails."""
        if valid and self.on_error == CONTINUE:
            rows, reason = self._checked(files)
            rows = rows.where(reason.isNull())
        else:
            rows = self._read(files, self.fields, {"mode": "FAILFAST", _CORRUPT: self._corrupt})
        rows = rows.select(*(self._converted(column) for column in self.fields))
        listed = ", ".join(quoted(column.name) for column in self.fields)
        stated = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        statement = f"INSERT INTO {self.target} WITH ({stated}) ({listed}) SELECT * FROM "
        self.spark.sql(statement.replace("{", "{{").replace("}", "}}") + "{rows}", rows=rows)

    def _read(self, files: Sequence[ListedFile], fields: Sequence[StructField], more: Mapping[str, str]) -> DataFrame:
        """Read files. CSV columns match by position, and headers must agree; others by name."""
        reader = self.spark.read.format(self.format.lower()).options(**self.options).option("__globPaths__", "false")
        if self.format != "PARQUET":
            reader = reader.schema(StructType(list(fields))).options(**more).option("enforceSchema", "false")
        return reader.load([file.source.path for file in files])

    def _checked(self, files: Sequence[ListedFile]) -> tuple[DataFrame, Any]:
        """Return the rows of the files, and a column with the reason why a row is invalid, NULL for a valid row."""
        fields = [*self.fields, StructField(self._corrupt, spark_types.StringType())]
        rows = self._read(files, fields, {"mode": "PERMISSIVE", _CORRUPT: self._corrupt})
        reasons = []
        if self.format != "PARQUET":
            record = F.col(quoted(self._corrupt))
            reasons.append(F.when(record.isNotNull(), F.concat(F.lit("malformed record: "), record)))
        for column in self.fields:
            value, kind = F.col(quoted(column.name)), self._stored[column.name].type
            converted, name = self._converted(column), f"column {column.name}"
            if self.format == "PARQUET":
                failed = value.isNotNull() & converted.isNull()
                reasons.append(F.when(failed, F.lit(f"{name}: a value is not a value of {kind}")))
            if not kind.nullable:
                reasons.append(F.when(value.isNull(), F.lit(f"{name} is NOT NULL, but the value is NULL")))
            limit = (kind.length or 1) if isinstance(kind, AtomicType) and kind.root in TEXT_ROOTS else STRING_LENGTH
            if limit < STRING_LENGTH:
                long = F.char_length(F.rtrim(converted)) > limit
                reasons.append(F.when(long, F.concat(F.lit(f"{name}: longer than {kind}: "), converted)))
        return rows, F.coalesce(*reasons, F.lit(None).cast("string"))

    def _converted(self, column: StructField) -> Any:
        """Return the value of a column in its type; NULL: a value of a Parquet file does not fit the type."""
        value = F.col(quoted(column.name))
        if self.format != "PARQUET" or self.on_error == ABORT:
            return value
        return value.try_cast(column.dataType).alias(column.name)


def _find(found: Mapping[str, _Counts], uri: str) -> _Counts:
    """Return the counts of a file; Spark writes a local path with one slash or three."""
    plain = uri.replace("file:///", "file:/")
    return next((count for name, count in found.items() if name.replace("file:///", "file:/") == plain), _Counts())


def _first_line(error: Exception) -> str:
    """Return the message of Spark's error, without its trace."""
    found = _SPARK_ERROR.search(str(error))
    return (found[0] if found else str(error).strip().partition("\n")[0])[:_LONGEST_ERROR]
