"""COPY INTO: load CSV, JSON and Parquet files into a table, or unload a table or a query into files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from paimon_core.engine import LoadSource
from paimon_core.errors import InvalidInputError, NotFoundError, hide_secrets
from paimon_spark.internals import session_state
from paimon_spark.sql.bridge.catalogs import open_table
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.statements.load_files import ABORT, ON_ERROR, RESULT_COLUMNS, ListedFile, Load
from paimon_spark.sql.statements.tokens import Cursor

_TEXTS = (
    "dateFormat",
    "encoding",
    "lineSep",
    "locale",
    "multiLine",
    "timestampFormat",
    "timestampNTZFormat",
    "timeZone",
)
_CSV = ("comment", "emptyValue", "escape", "header", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "nullValue")
_OPTIONS = {
    "CSV": (*_TEXTS, *_CSV, "delimiter", "nanValue", "negativeInf", "positiveInf", "quote", "sep"),
    "JSON": (*_TEXTS, "allowComments", "allowSingleQuotes", "allowUnquotedFieldNames", "primitivesAsString"),
    "PARQUET": ("datetimeRebaseMode", "int96RebaseMode"),
}
"""The options of Spark's sources that FILE_FORMAT accepts, by format; writes also accept ``compression``."""


@dataclass(frozen=True)
class FileFormat:
    """``FILE_FORMAT = (TYPE = type, option = value, ...)``."""

    name: str
    options: Mapping[str, str]

    def checked(self, *more: str) -> dict[str, str]:
        """Return the options by Spark's names. Raise InvalidInputError for an unknown format or option."""
        if self.name not in _OPTIONS:
            raise InvalidInputError(f"FILE_FORMAT TYPE is {self.name!r}: it must be one of {', '.join(_OPTIONS)}")
        spelled = {name.lower(): name for name in (*_OPTIONS[self.name], *more)}
        unknown = next((key for key in self.options if key.lower() not in spelled), None)
        if unknown is not None:
            raise InvalidInputError(
                f"FILE_FORMAT option {unknown!r} is unknown for {self.name}: known are {', '.join(spelled.values())}"
            )
        return {spelled[key.lower()]: value for key, value in self.options.items()}


@dataclass(frozen=True)
class LoadStatement:
    """``COPY INTO t [(columns)] FROM 'path' FILE_FORMAT = (...) ...``; `settings`: PATTERN, FORCE and ON_ERROR."""

    table: tuple[str, ...]
    names: Sequence[str]
    path: str
    format: FileFormat
    settings: Mapping[str, str]
    columns: str = RESULT_COLUMNS

    @property
    def title(self) -> str:
        """A line for EXPLAIN."""
        return f"Paimon COPY INTO {'.'.join(self.table)} FROM {hide_secrets(self.path)}"

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Insert the rows of the files that are not loaded yet in one commit; return one row for each file."""
        table = open_table(jvm, spark, self.table, "COPY INTO")
        on_error = self.settings.get("ON_ERROR", ABORT).upper()
        if on_error not in ON_ERROR:
            raise InvalidInputError(f"ON_ERROR is {on_error!r}: it must be one of {', '.join(ON_ERROR)}")
        force = self.settings.get("FORCE", "FALSE").upper()
        if force not in ("TRUE", "FALSE"):
            raise InvalidInputError(f"FORCE is {force!r}: it must be TRUE or FALSE")
        options = self.format.checked()
        target = ".".join(_quoted(part) for part in self.table)
        load = Load(
            spark,
            table,
            target,
            self._fields(spark.table(target).schema),
            self.format.name,
            options,
            on_error,
            force == "TRUE",
        )
        return load.run(lambda: self._files(jvm, spark))

    def _fields(self, schema: StructType) -> list[StructField]:
        by_name = {field.name.lower(): field for field in schema}
        unknown = next((name for name in self.names if name.lower() not in by_name), None)
        if unknown is not None:
            raise InvalidInputError(
                f"COPY INTO names the column {unknown!r}, but the table has the columns {schema.names}"
            )
        chosen = [by_name[name.lower()] for name in self.names] if self.names else list(schema)
        repeated = next((field.name for field in chosen if chosen.count(field) > 1), None)
        if repeated is not None:
            raise InvalidInputError(f"COPY INTO names the column {repeated!r} twice: name each column once")
        return [StructField(field.name, field.dataType) for field in chosen]

    def _files(self, jvm: Jvm, spark: SparkSession) -> list[ListedFile]:
        """Return the visible files under the path that match PATTERN. Raise NotFoundError if no file matches."""
        try:
            pattern = re.compile(self.settings.get("PATTERN", ".*"))
        except re.error as error:
            raise InvalidInputError(
                f"PATTERN {self.settings['PATTERN']!r} is not a regular expression: {error}"
            ) from None
        path = jvm.java.org.apache.hadoop.fs.Path(self.path)
        system = path.getFileSystem(session_state(spark).newHadoopConf())
        try:
            root, listing = str(system.getFileStatus(path).getPath()), system.listFiles(path, True)
        except Py4JJavaError as error:
            raise NotFoundError(f"COPY INTO cannot list {hide_secrets(self.path)}: {error.java_exception}") from None
        files = []
        while listing.hasNext():
            status = listing.next()
            name = str(status.getPath())
            parts = name.removeprefix(root).strip("/").split("/") if name != root else [name.rpartition("/")[2]]
            if pattern.fullmatch("/".join(parts)) and not any(part.startswith(("_", ".")) for part in parts):
                source = LoadSource(name, int(status.getLen()), int(status.getModificationTime()))
                files.append(ListedFile(source, "/".join(parts), str(status.getPath().toUri())))
        if not files:
            raise NotFoundError(f"no file in {hide_secrets(self.path)} matches {pattern.pattern!r}")
        return sorted(files, key=lambda file: file.source.path)


@dataclass(frozen=True)
class UnloadStatement:
    """``COPY INTO 'path' FROM t | (SELECT ...) FILE_FORMAT = (...) [OVERWRITE = true|false]``."""

    path: str
    table: tuple[str, ...]
    query: str
    format: FileFormat
    overwrite: bool
    columns: str = ""

    @property
    def title(self) -> str:
        """A line for EXPLAIN."""
        return f"Paimon COPY INTO {hide_secrets(self.path)} FROM {'.'.join(self.table) or '(' + self.query + ')'}"

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Write the rows as files in a new directory; return no row."""
        options = self.format.checked("compression")
        rows = spark.table(".".join(map(_quoted, self.table))) if self.table else spark.sql(self.query)
        mode = "overwrite" if self.overwrite else "errorifexists"
        rows.write.format(self.format.name.lower()).options(**options).mode(mode).save(self.path)
        return []


def parse_copy(text: str) -> LoadStatement | UnloadStatement | None:
    """Parse ``COPY INTO``; `None`: another statement."""
    cursor = Cursor(text)
    if not cursor.accept("COPY", "INTO"):
        return None
    if cursor.next.kind == "string":
        return _unload(cursor)
    table, names = cursor.parts(), []
    if cursor.accept("("):
        names.append(cursor.name())
        while cursor.accept(","):
            names.append(cursor.name())
        cursor.expect(")")
    cursor.expect("FROM")
    path, file_format, settings = cursor.text(), _file_format(cursor), {}
    for key in ("PATTERN", "FORCE", "ON_ERROR"):
        if cursor.accept(key):
            cursor.expect("=")
            settings[key] = cursor.text() if key == "PATTERN" else cursor.value()
    cursor.end()
    return LoadStatement(table, names, path, file_format, settings)


def _unload(cursor: Cursor) -> UnloadStatement:
    path = cursor.text()
    cursor.expect("FROM")
    is_query = cursor.next.text == "("
    table, query = ((), cursor.parenthesised()) if is_query else (cursor.parts(), "")
    file_format, overwrite = _file_format(cursor), False
    if cursor.accept("OVERWRITE"):
        cursor.expect("=")
        overwrite = cursor.accept("TRUE")
        if not overwrite:
            cursor.expect("FALSE")
    cursor.end()
    return UnloadStatement(path, table, query, file_format, overwrite)


def _file_format(cursor: Cursor) -> FileFormat:
    cursor.expect("FILE_FORMAT", "=", "(")
    options: dict[str, str] = {}
    while True:
        key = cursor.value()
        cursor.expect("=")
        options[key] = cursor.value()
        if not cursor.accept(","):
            break
    cursor.expect(")")
    kind = next((key for key in options if key.upper() == "TYPE"), None)
    return FileFormat("" if kind is None else options.pop(kind).upper(), options)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
