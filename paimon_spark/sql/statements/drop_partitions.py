"""ALTER TABLE ... DROP PARTITION with some of the partition columns, for which Spark requires all of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from paimon_core import FormatTable, Table, TableSchema
from paimon_core.engine import PartitionText, live_entries, partition_predicate, partition_values
from paimon_core.errors import UnsupportedError
from paimon_core.options.bucket import PARTITION_DEFAULT_NAME
from paimon_core.types.datatype import TEXT_ROOTS
from paimon_spark.sql.bridge.catalogs import open_any_kind
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.bridge.spark_errors import analysis_error
from paimon_spark.sql.statements.tokens import Cursor, SyntaxMismatch
from paimon_spark.times import date_text_sql, in_utc

_COMMAND = "ALTER TABLE ... DROP PARTITION"
_TYPED = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_WITH_SUFFIX = re.compile(r"([0-9]+)(Y|S|L|F|D|BD)", re.IGNORECASE)
Spec = dict[str, str | None]
"""Texts of values by partition column; `None`: NULL."""


class _Literal(str):
    """A literal of SQL, which Spark converts to text."""


@dataclass(frozen=True)
class DropPartitionsStatement:
    """``ALTER TABLE t DROP [IF EXISTS] PARTITION (p = v), ...``."""

    table: tuple[str, ...]
    specs: tuple[Spec, ...]
    ignore: bool
    columns: str = ""

    @property
    def title(self) -> str:
        """A line for EXPLAIN."""
        return f"Paimon ALTER TABLE {'.'.join(self.table)} DROP PARTITION"

    def is_ours(self, jvm: Jvm, spark: SparkSession) -> bool:
        """Return True if Spark would refuse the statement, or drop another day than a literal names.

        Spark refuses a partition that leaves out a column. It turns literals into text, under ``LEGACY`` with other
        days: see `date_text_sql`. It runs, or refuses, all other statements.
        """
        try:
            table, _ = open_any_kind(jvm, spark, self.table, _COMMAND)
        except (Py4JJavaError, UnsupportedError):
            return False  # Spark reports a missing table
        if not isinstance(table, Table | FormatTable):
            return False
        keys = {key.lower() for key in table.schema.partition_keys}
        names = [{name.lower() for name in spec} for spec in self.specs]
        if not all(spec_names <= keys for spec_names in names):
            return False
        dates = any(
            isinstance(text, _Literal) and text.startswith("DATE") for spec in self.specs for text in spec.values()
        )
        legacy = dates and str(spark.conf.get("spark.sql.legacy.timeParserPolicy")).upper() == "LEGACY"
        return legacy or any(spec_names < keys for spec_names in names)

    def run(self, jvm: Jvm, spark: SparkSession) -> Sequence[Sequence[Any]]:
        """Remove the partitions, in one commit for a table of Paimon; return no row.

        Raises PARTITIONS_NOT_FOUND, and removes nothing, if one of them matches no partition; not with IF EXISTS.
        """
        table, _ = open_any_kind(jvm, spark, self.table, _COMMAND)
        assert isinstance(table, Table | FormatTable)
        partitions = [
            partition_values(table.schema, _texts(spec, table.schema, spark), _COMMAND, table.path)
            for spec in self.specs
        ]
        missing = [spec for spec, values in zip(self.specs, partitions, strict=True) if not _exists(table, values)]
        if missing and not self.ignore:
            raise _not_found(jvm, table.path, missing)
        if isinstance(table, Table):
            table.drop_partitions(partitions)
        else:
            for values in partitions:
                table.drop_partitions(values)
        return []


def parse_drop_partitions(text: str) -> DropPartitionsStatement | None:
    """Parse ``ALTER TABLE t DROP PARTITION (...)``; `None`: another statement, or a value that Spark must parse."""
    cursor = Cursor(text)
    if not cursor.accept("ALTER", "TABLE") or cursor.next.kind not in ("name", "quoted", "number"):
        return None
    table = cursor.parts()
    if not cursor.accept("DROP"):
        return None
    ignore, specs = cursor.accept("IF", "EXISTS"), []
    try:
        cursor.expect("PARTITION")
        specs.append(_spec(cursor))
        while cursor.accept(","):
            cursor.expect("PARTITION")
            specs.append(_spec(cursor))
        cursor.accept("PURGE")
        cursor.end()
    except SyntaxMismatch:
        return None
    return DropPartitionsStatement(table, tuple(specs), ignore)


def _spec(cursor: Cursor) -> Spec:
    """Parse ``(p = v, ...)``. Raises SyntaxMismatch for anything else, and for a column that occurs twice."""
    cursor.expect("(")
    spec: Spec = {}
    while True:
        name = cursor.name()
        if name.lower() in map(str.lower, spec):
            raise cursor.mismatch()
        if not cursor.accept("="):
            cursor.expect("=", "=")
        spec[name] = _value(cursor)
        if not cursor.accept(","):
            cursor.expect(")")
            return spec


def _value(cursor: Cursor) -> str | None:
    if cursor.accept("NULL"):
        return None
    for word in ("TRUE", "FALSE"):
        if cursor.accept(word):
            return word.lower()
    for word in _TYPED:
        if cursor.accept(word):
            mismatch, text = cursor.mismatch(), cursor.text()
            if re.search(r"['\\]", text):
                raise mismatch
            return _Literal(f"{word}'{text}'")
    if cursor.next.kind == "string":
        return cursor.text()
    number = ("-" if cursor.accept("-") else "") + _digits(cursor)
    return _Literal(f"{number}.{_digits(cursor)}" if number[-1].isdigit() and cursor.accept(".") else number)


def _digits(cursor: Cursor) -> str:
    """Return digits with the suffix of a type, if they have one."""
    if cursor.next.kind == "name" and _WITH_SUFFIX.fullmatch(cursor.next.text):
        return cursor.name()
    return cursor.digits()


def _texts(spec: Spec, schema: TableSchema, spark: SparkSession) -> list[PartitionText]:
    """Return the values of a partition for `partition_values`, which takes instants with their zone."""
    null_name = schema.options.value(PARTITION_DEFAULT_NAME)
    roots = {field.name.lower(): getattr(field.type, "root", "") for field in schema.partition_fields}
    texts = []
    for name, text in spec.items():
        root = roots.get(name.lower(), "")
        if text is None:
            texts.append(PartitionText(name, null_name))
            continue
        if isinstance(text, _Literal):  # 3D means '3.0' in a column of texts
            is_day = text.startswith("DATE") and root not in TEXT_ROOTS
            text = spark.sql(f"SELECT {date_text_sql(text) if is_day else f'CAST({text} AS STRING)'}").collect()[0][0]
        texts.append(PartitionText(name, in_utc(text, spark) if root == "TIMESTAMP_LTZ" else text, quoted=True))
    return texts


def _exists(table: Table | FormatTable, values: dict[str, object]) -> bool:
    if isinstance(table, FormatTable):
        return bool(table.partitions_with(values))
    snapshot = table.snapshot()
    if snapshot is None:
        return False
    where = partition_predicate(table.store, [values])
    return bool(live_entries(table.store, snapshot, partition=where, with_stats=False).live)


def _not_found(jvm: Jvm, path: str, specs: Sequence[Spec]) -> Py4JJavaError:
    """Return PARTITIONS_NOT_FOUND for these partitions; `path`: the directory of the table."""
    database, table = path.rstrip("/").split("/")[-2:]
    converters = jvm.java.scala.jdk.javaapi.CollectionConverters
    scala_map, maps = jvm.scala("scala.collection.immutable.Map"), jvm.java.java.util.ArrayList()
    for spec in specs:
        texts = jvm.java.java.util.LinkedHashMap()
        for column, text in spec.items():
            texts.put(column, text)
        maps.add(getattr(scala_map, "from")(converters.asScala(texts)))
    sequence = converters.asScala(maps).toSeq()
    return analysis_error(jvm, "NoSuchPartitionsException", database.removesuffix(".db"), table, sequence)
