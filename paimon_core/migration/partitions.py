"""Convert the partition texts in the paths of other tools' files to values of the table's partition columns."""

import re
from collections.abc import Mapping, Sequence
from datetime import date

import pyarrow as pa

from paimon_core.errors import InvalidInputError, listed_names
from paimon_core.format.file_description import FileDescription
from paimon_core.migration.source import SourceFile
from paimon_core.options.bucket import PARTITION_DEFAULT_NAME
from paimon_core.row.binary_row import EMPTY_ROW, deserialize
from paimon_core.schema.partition_spec import value_of_text
from paimon_core.schema.table_schema import TableSchema
from paimon_core.store.layout import partition_text
from paimon_core.types import datatype
from paimon_core.types.arrow import to_arrow
from paimon_core.types.datatype import DataType
from paimon_core.write.routing.partition import partition_codes

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
Value = object
Spec = Mapping[str, Value]


def type_of_texts(texts: Sequence[str | None]) -> DataType:
    """Return the type of a partition column: INT, BIGINT or DATE if every text is the canonical form of a value.

    Any other column is a STRING, even if all texts are NULL. Thus ``007`` remains a text.
    """
    values = [text for text in texts if text is not None]
    if values and all(map(_INTEGER.fullmatch, values)):
        numbers = [int(text) for text in values]
        for kind, bits in ((datatype.INT, 31), (datatype.BIGINT, 63)):
            if -(1 << bits) <= min(numbers) and max(numbers) < 1 << bits:
                return kind
    return datatype.DATE if values and all(map(_is_day, values)) else datatype.STRING


def _is_day(text: str) -> bool:
    try:
        return _DAY.fullmatch(text) is not None and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def check_names(file: SourceFile, keys: Sequence[str], spec: Spec, table: str) -> None:
    """Raise InvalidInputError unless path and ``spec`` together name exactly the partition columns."""
    texts = {**file.partition, **spec}
    for column in texts:
        if column not in keys:
            raise InvalidInputError(
                f"{file.path}: {column!r} is not a partition column of {table}, which is partitioned by "
                f"{listed_names(column, keys)}"
            )
    lacking = [key for key in keys if key not in texts]
    if lacking:
        raise InvalidInputError(
            f"{file.path} is not in a directory '{lacking[0]}=value', and {table} is partitioned by {list(keys)}: "
            "pass the partition of the files"
        )


def serialized_partitions(schema: TableSchema, files: Sequence[SourceFile], spec: Spec) -> list[bytes]:
    """Return the serialised partition of each file.

    Args:
        schema: the schema of the table.
        files: the files, with the texts of their paths.
        spec: values of partition columns for all files; a path may repeat but not contradict them.

    Raises InvalidInputError for a text that is not a value of its column, and for a path that contradicts ``spec``.
    """
    keys = schema.partition_keys
    columns = []
    for key in keys:
        kind = schema.field(key).type
        values: dict[str | None, Value] = {}
        for file in files:
            text = file.partition.get(key)
            if key in file.partition and text not in values:
                values[text] = _value(schema, key, text, f"the path of {file.path}")
        column_values = [values[file.partition[key]] if key in file.partition else None for file in files]
        if key in spec:
            value = spec[key]
            value = _value(schema, key, value, f"partition {dict(spec)}") if isinstance(value, str) else value
            for file, value_of_file in zip(files, column_values, strict=True):
                if key in file.partition and value_of_file != value:
                    raise InvalidInputError(
                        f"{file.path} is in partition {key}={file.partition[key]}, not in {key}={spec[key]}"
                    )
            column_values = [value] * len(files)
        if not kind.nullable and any(value is None for value in column_values):
            raise InvalidInputError(f"partition column {key!r} is {kind}, but a path names NULL")
        try:
            columns.append(pa.array(column_values, to_arrow(kind)))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(f"partition {dict(spec)}: {key!r} is {kind}: {error}") from error
    if not keys:
        return [EMPTY_ROW] * len(files)
    codes, distinct = partition_codes(pa.RecordBatch.from_arrays(columns, names=list(keys)), keys)
    return [distinct[code] for code in codes]


def _value(schema: TableSchema, key: str, text: str | None, origin: str) -> Value:
    """Return the value of a text; the table's default partition name is also NULL."""
    if text is None or text == schema.options.value(PARTITION_DEFAULT_NAME):
        return None
    return value_of_text(key, text, schema.field(key).type, origin)


def check_partition_columns(schema: TableSchema, file: FileDescription, partition: bytes) -> None:
    """Raise InvalidInputError if a partition column stored in a file may differ from the value in its path.

    For such files, engines would disagree on the rows that a partition filter skips.
    """
    stored = {field.name for field in file.fields}
    stored_keys = [key for key in schema.partition_keys if key in stored]
    if not stored_keys:
        return
    values = dict(zip(schema.partition_keys, deserialize(partition, schema.partition_arrow), strict=True))
    for key in stored_keys:
        bounds, value = file.bounds.get(key), values[key]
        if value is None:
            same = bounds is not None and bounds.null_count == file.row_count
        else:
            same = bounds is not None and bounds.null_count == 0 and bounds.min == value == bounds.max
        if not same:
            text = None if value is None else partition_text(value, schema.field(key), legacy=False)
            raise InvalidInputError(
                f"{file.path} also stores the partition column {key!r}, and its footer does not prove that all values "
                f"are {text!r}, as in its path: write the files without the column"
            )
