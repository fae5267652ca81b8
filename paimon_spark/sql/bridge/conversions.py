"""Conversion of Python values to Java, and of Java DataFrames to Python."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from paimon_spark.internals import java_session
from paimon_spark.sql.bridge.jvm import Jvm


def java_array(jvm: Jvm, kind: str, items: Iterable[Any]) -> Any:
    """Return a Java array of the class ``kind``. Cost: one JVM call per item."""
    values = list(items)
    array = jvm.gateway.new_array(jvm.type(kind), len(values))
    for i, value in enumerate(values):
        array[i] = value
    return array


def text_array(jvm: Jvm, items: Iterable[str | None]) -> Any:
    """Return a Java array of texts. Cost: one call."""
    return jvm.call("Trees", "strings", json.dumps(list(items)))


def row_arrays(jvm: Jvm, rows: Iterable[Iterable[Any]]) -> Any:
    """Return rows as a Java array of arrays. Cost: one JVM call per value."""
    return java_array(jvm, "java.lang.Object", [java_array(jvm, "java.lang.Object", row) for row in rows])


def java_list(jvm: Jvm, items: Iterable[str]) -> Any:
    """Return a ``java.util.ArrayList``. Cost: one call."""
    return jvm.call("Trees", "collection", json.dumps(list(items)))


def java_map(jvm: Jvm, values: Mapping[str, str]) -> Any:
    """Return a ``java.util.Map``. Cost: one call."""
    return jvm.call("Trees", "collection", json.dumps(dict(values)))


def texts_of(jvm: Jvm, values: Any) -> dict[str, str]:
    """Return the texts of a ``java.util.Map`` of texts. Cost: one call, where iteration costs one or more for each."""
    texts: dict[str, str] = json.loads(jvm.call("Trees", "texts", values))
    return texts


def java_struct(jvm: Jvm, schema: StructType) -> Any:
    """Return a schema as Java's StructType."""
    return java_session(jvm.spark).parseDataType(schema.json())


def struct_of_ddl(jvm: Jvm, definitions: str) -> Any:
    """Return columns, written as in ``CREATE TABLE``, as Java's StructType."""
    return jvm.type("org.apache.spark.sql.types.StructType").fromDDL(definitions)


def frame_of(jvm: Jvm, rows: Any) -> DataFrame:
    """Return a Java Dataset as a DataFrame of the Dataset's session."""
    return DataFrame(rows, jvm.session(rows.sparkSession()))
