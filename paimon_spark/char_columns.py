"""CHAR(n) and VARCHAR(n) in Spark: the marks of columns, and the padding of CHAR values.

Spark represents both types as strings whose metadata have the declared type. For a marked column of a batch read Spark
pads CHAR values to their length, and for comparisons it pads literals. Values that other engines stored have any number
of blanks. So the connector pads what Spark does not: the rows of streams, rows that are written, and the rows of a
statement as its conditions see them.
"""

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from paimon_core.errors import UnsupportedError
from paimon_core.types.datatype import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType
from paimon_spark.internals import renamed, select_texts
from paimon_spark.types import declared_schema, spark_schema, spark_type

DECLARED_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""The key of the declared type in the metadata of a column."""
_AS_STRING = "spark.sql.legacy.charVarcharAsString"
_PADS_READS = "spark.sql.readSideCharPadding"
_PRESERVES = "spark.sql.preserveCharVarcharTypeInfo"
"""With this setting, Spark neither pads nor checks these types as it does otherwise, and PySpark refuses them."""


def pads_writes(spark: SparkSession, fields: Iterable[DataField]) -> bool:
    """Return True if columns contain CHAR, and the session pads CHAR values that it writes."""
    return any(has_char(field.type) for field in fields) and not _is_set(spark, _AS_STRING, "false")


def pads_reads(spark: SparkSession) -> bool:
    """Return True if the session pads CHAR values that it reads."""
    return not _is_set(spark, _AS_STRING, "false") and _is_set(spark, _PADS_READS, "true")


def _is_set(spark: SparkSession, key: str, default: str) -> bool:
    return str(spark.conf.get(key, default)).strip().lower() == "true"


def has_char(type_: DataType, roots: Sequence[str] = ("CHAR",)) -> bool:
    """Return True if the type is CHAR or contains it. ``roots``: the types to look for instead."""
    match type_:
        case AtomicType(root=root):
            return root in roots
        case ArrayType(element) | MultisetType(element):
            return has_char(element, roots)
        case MapType(key, value):
            return has_char(key, roots) or has_char(value, roots)
        case RowType(fields):
            return any(has_char(field.type, roots) for field in fields)
    return False


def check_types_replaced(spark: SparkSession, fields: Iterable[DataField]) -> None:
    """Raise UnsupportedError for a CHAR or VARCHAR column in a session that does not represent it as a string.

    `Description.java` does the same when Spark loads a table.
    """
    found = next((field.name for field in fields if has_char(field.type, ("CHAR", "VARCHAR"))), None)
    if found is not None and _is_set(spark, _PRESERVES, "false"):
        raise UnsupportedError(
            f"column {found!r} has a type CHAR or VARCHAR, which is not supported with {_PRESERVES} = true: set it to "
            "false for this statement"
        )


# ---- marks


def catalog_columns(fields: Sequence[DataField]) -> spark.StructType:
    """Return the columns of a table for Spark's catalogs, with CHAR(n) and VARCHAR(n) at every depth.

    A column with a struct field whose name needs quotes is marked instead: Spark cannot parse its own text of the type.
    """
    pairs = zip(declared_schema(fields), marked(spark_schema(fields), fields), strict=True)
    quoted = "`"
    return spark.StructType([plain if quoted in plain.metadata.get(DECLARED_TYPE, "") else own for own, plain in pairs])


def marked(columns: spark.StructType, fields: Iterable[DataField]) -> spark.StructType:
    """Return the columns with the declared types of CHAR and VARCHAR as metadata. Columns without a field keep theirs.

    Args:
        columns: the columns as Spark sees them.
        fields: the columns of the table.
    """
    types = {field.name: field.type for field in fields}
    return spark.StructType([_marked(column, types.get(column.name)) for column in columns.fields])


def unmarked(columns: spark.StructType) -> spark.StructType:
    """Return the columns without the marks of `marked`."""
    return spark.StructType(
        [
            spark.StructField(
                c.name,
                c.dataType,
                c.nullable,
                {key: value for key, value in c.metadata.items() if key != DECLARED_TYPE},
            )
            for c in columns.fields
        ]
    )


def _marked(column: spark.StructField, type_: DataType | None) -> spark.StructField:
    declared = column.dataType if type_ is None else spark_type(type_, column.name, declared=True)
    if declared == column.dataType:
        return column
    return spark.StructField(
        column.name, column.dataType, column.nullable, {**column.metadata, DECLARED_TYPE: _sql(declared)}
    )


def _sql(kind: spark.DataType) -> str:
    """Return a type in Spark SQL syntax, as Spark writes it in the metadata of a column."""
    match kind:
        case spark.ArrayType():
            return f"array<{_sql(kind.elementType)}>"
        case spark.MapType():
            return f"map<{_sql(kind.keyType)},{_sql(kind.valueType)}>"
        case spark.StructType():
            return f"struct<{','.join(f'{_quoted(field.name)}:{_sql(field.dataType)}' for field in kind.fields)}>"
    return kind.simpleString()


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else "`" + name.replace("`", "``") + "`"


# ---- padding


def padded_text(value: str, type_: DataType, depth: int = 0) -> str:
    """Return SQL text for a value with all CHAR values in it padded; `value` itself if there is no CHAR.

    Args:
        value: SQL text of the value.
        type_: the type of the value.
        depth: the number of enclosing lambda functions.
    """
    if not has_char(type_):
        return value
    item = f"x{depth}"
    match type_:
        case AtomicType(length=length):
            return f"CASE WHEN char_length({value}) < {length} THEN rpad({value}, {length}, ' ') ELSE {value} END"
        case ArrayType(element):
            return f"transform({value}, {item} -> {padded_text(item, element, depth + 1)})"
        case MapType(key, element):
            keys = padded_text(f"k{depth}", key, depth + 1)
            with_keys = value if not has_char(key) else f"transform_keys({value}, (k{depth}, {item}) -> {keys})"
            values = padded_text(item, element, depth + 1)
            return f"transform_values({with_keys}, (k{depth}, {item}) -> {values})" if has_char(element) else with_keys
        case MultisetType(key):
            keys = padded_text(f"k{depth}", key, depth + 1)
            return f"transform_keys({value}, (k{depth}, {item}) -> {keys})"
        case RowType(fields):
            parts = ", ".join(
                f"'{_escaped(field.name)}', {padded_text(f'{value}.{_quoted(field.name)}', field.type, depth)}"
                for field in fields
            )
            return f"CASE WHEN {value} IS NOT NULL THEN named_struct({parts}) END"
    return value


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "\\'")


def padded_frame(frame: DataFrame, fields: Iterable[DataField]) -> DataFrame:
    """Return the rows with the values of CHAR columns padded, but not the CHAR values inside of nested columns.

    `fields`: the columns of the table; names match in any case.
    """
    chars = {field.name.lower(): field.type for field in fields if getattr(field.type, "root", None) == "CHAR"}
    columns = frame.schema.fields if chars else []
    texts = [
        padded_text(f"c{n}", chars[column.name.lower()])
        if column.name.lower() in chars and isinstance(column.dataType, spark.StringType)
        else f"c{n}"
        for n, column in enumerate(columns)
    ]
    names = [f"c{n}" for n in range(len(columns))]
    if texts == names:
        return frame
    rows = select_texts(renamed(frame, names), [f"{text} AS {name}" for text, name in zip(texts, names, strict=True)])
    return renamed(rows, [column.name for column in columns])


def padded_batch(batch: pa.RecordBatch, fields: Sequence[DataField | None]) -> pa.RecordBatch:
    """Return the rows with all CHAR values padded.

    `fields`: the table's column of each column of the batch; `None`: a column that the table lacks.
    """
    if not any(field is not None and has_char(field.type) for field in fields):
        return batch
    arrays = [
        column if field is None else _padded(column, field.type)
        for column, field in zip(batch.columns, fields, strict=True)
    ]
    named = [
        column.with_type(array.type) if not column.type.equals(array.type) else column
        for column, array in zip(batch.schema, arrays, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(named))


def _padded(array: pa.Array, type_: DataType) -> pa.Array:
    if not has_char(type_):
        return array
    kinds = pa.types
    match type_:
        case AtomicType(length=length) if kinds.is_string(array.type) or kinds.is_large_string(array.type):
            return pc.utf8_rpad(array, length or 1, " ")
        case RowType(fields) if kinds.is_struct(array.type):
            types = {field.name.lower(): field.type for field in fields}
            children = [
                _padded(array.field(i), types[name.lower()]) if name.lower() in types else array.field(i)
                for i, name in enumerate(array.type.names)
            ]
            mask = pc.is_null(array) if array.null_count else None
            return pa.StructArray.from_arrays(children, fields=list(array.type), mask=mask)
        case ArrayType(element) if kinds.is_list(array.type):
            return _with_values(array, [_padded(array.values, element)])
        case MapType(key, value) if kinds.is_map(array.type):
            return _with_entries(array, key, value)
        case MultisetType(key) if kinds.is_map(array.type):
            return _with_entries(array, key, None)
    return array  # the writer refuses, or converts, an array of another type


def _with_entries(array: pa.Array, key: DataType, value: DataType | None) -> pa.Array:
    pair = [_padded(array.keys, key), array.items if value is None else _padded(array.items, value)]
    entries = pa.StructArray.from_arrays(pair, fields=[array.type.key_field, array.type.item_field])
    return _with_values(array, [entries])


def _with_values(lists: pa.Array, values: list[pa.Array]) -> pa.Array:
    """Return lists or maps with the same offsets and new values. The type does not change."""
    shared = lists.buffers()[:2]
    return pa.Array.from_buffers(lists.type, len(lists), shared, lists.null_count, lists.offset, children=values)
