"""Filters as SQL text: the quotes of the session, and conditions that only Spark can evaluate."""

import re

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from paimon_core import Table
from paimon_core.engine import FALSE, Filter, live_entries, parse_predicate, partition_predicate
from paimon_core.errors import InvalidInputError
from paimon_core.types.datatype import BIGINT, DataField
from paimon_spark.types import spark_schema

_QUOTED = re.compile(r"""'(?:[^']|'')*'|`(?:[^`]|``)*`|"(?P<name>(?:[^"]|"")*)\"""")
_POSITION = "__position"


def with_session_quotes(spark: SparkSession, text: str) -> str:
    """Return a filter for the engine, where double quotes enclose strings.

    With ``spark.sql.ansi.doubleQuotedIdentifiers`` they enclose names in the session, which become names in backticks.
    """
    settings = ("spark.sql.ansi.enabled", "true"), ("spark.sql.ansi.doubleQuotedIdentifiers", "false")
    if '"' not in text or not all(str(spark.conf.get(key, usual)) == "true" for key, usual in settings):
        return text
    return _QUOTED.sub(lambda match: match[0] if match["name"] is None else _in_backticks(match["name"]), text)


def needs_spark(spark: SparkSession, text: str | None) -> bool:
    """Return True for a filter that the engine cannot parse, or would parse with other quotes than the session."""
    if text is None:
        return False
    try:
        parse_predicate(text)
    except InvalidInputError:
        return True
    return with_session_quotes(spark, text) != text


def matching_partitions(spark: SparkSession, table: Table, text: str, error: InvalidInputError) -> Filter:
    """Return a filter for the partitions for which Spark finds that a condition is true.

    Args:
        spark: the session that evaluates the condition.
        table: the table; only partitions with files in its newest snapshot can match.
        text: the condition, on partition columns.
        error: the reason why the engine cannot parse the condition.

    Raises ``error`` if the table has no partitions or Spark cannot parse the condition, InvalidInputError if Spark
    cannot evaluate it.
    """
    fields, snapshot = table.schema.partition_fields, table.snapshot()
    if not fields:
        raise error
    live = () if snapshot is None else live_entries(table.store, snapshot, with_stats=False).live
    rows = [table.store.partition_values(partition) for partition in sorted({entry.partition for entry in live})]
    columns = [
        pa.array([row[position] for row in rows], field.type)
        for position, field in enumerate(table.schema.partition_arrow)
    ]
    schema = spark_schema((*fields, DataField(-1, _POSITION, BIGINT)))
    partitions = pa.table([*columns, pa.array(range(len(rows)), pa.int64())], names=schema.names)
    try:
        matches = spark.createDataFrame(partitions, schema).where(F.expr(text)).select(_POSITION).collect()
    except ParseException:
        raise error from None
    except AnalysisException as refusal:
        names = ", ".join(field.name for field in fields)
        reason = str(refusal).splitlines()[0]
        raise InvalidInputError(
            f"cannot evaluate the filter {text!r} on the partition columns {names}: {reason}"
        ) from None
    keys = table.schema.partition_keys
    specs = [dict(zip(keys, rows[match[0]], strict=True)) for match in matches]
    return partition_predicate(table.store, specs) if specs else FALSE


def _in_backticks(name: str) -> str:
    return "`" + name.replace('""', '"').replace("`", "``") + "`"
