"""The partitions of files of other tools: texts of paths as values of the table's partition columns."""

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
    """Return the type of a partition column: INT, BIGINT or DATE if every text is what such a value prints as.

    Any other column is a STRING, also if all texts are NULL. So ``007`` stays what it is.
    """
    known = [text for text in texts if text is not None]
    if known and all(map(_INTEGER.fullmatch, known)):
        numbers = [int(text) for text in known]
        for kind, bits in ((datatype.INT, 31), (datatype.BIGINT, 63)):
            if -(1 << bits) <= min(numbers) and max(numbers) < 1 << bits:
                return kind
    return datatype.DATE if known and all(map(_is_day, known)) else datatype.STRING


def _is_day(text: str) -> bool:
    try:
        return _DAY.fullmatch(text) is not None and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def check_names(file: SourceFile, keys: Sequence[str], given: Spec, table: str) -> None:
    """Raise InvalidInputError unless path and ``given`` name a value for every partition column, and no other."""
    named = {**file.partition, **given}
    for column in named:
        if column not in keys:
            raise InvalidInputError(
                f"{file.path}: {column!r} is no partition column of {table}, which is partitioned by "
                f"{listed_names(column, keys)}"
            )
    lacking = [key for key in keys if key not in named]
    if lacking:
        raise InvalidInputError(
            f"{file.path} is in no directory '{lacking[0]}=value', and {table} is partitioned by {list(keys)}: name "
            "the partition of the files"
        )


def serialized_partitions(schema: TableSchema, files: Sequence[SourceFile], given: Spec) -> list[bytes]:
    """Return the partition of each file, serialised.

    Args:
        schema: of the table.
        files: with the texts of their paths.
        given: values of partition columns for all files; a path may say the same, and nothing else.

    Raises InvalidInputError for a text that is no value of its column, and for a path that contradicts ``given``.
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
        known = [values[file.partition[key]] if key in file.partition else None for file in files]
        if key in given:
            value = given[key]
            value = _value(schema, key, value, f"partition {dict(given)}") if isinstance(value, str) else value
            for file, own in zip(files, known, strict=True):
                if key in file.partition and own != value:
                    raise InvalidInputError(
                        f"{file.path} is in partition {key}={file.partition[key]}, not in {key}={given[key]}"
                    )
            known = [value] * len(files)
        if not kind.nullable and any(value is None for value in known):
            raise InvalidInputError(f"partition column {key!r} is {kind}, and a path names NULL")
        try:
            columns.append(pa.array(known, to_arrow(kind)))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(f"partition {dict(given)}: {key!r} is {kind}: {error}") from error
    if not keys:
        return [EMPTY_ROW] * len(files)
    codes, found = partition_codes(pa.RecordBatch.from_arrays(columns, names=list(keys)), keys)
    return [found[code] for code in codes]


def _value(schema: TableSchema, key: str, text: str | None, what: str) -> Value:
    """Return the value of a text; the name that the table gives the partition of NULL is NULL as well."""
    if text is None or text == schema.options.value(PARTITION_DEFAULT_NAME):
        return None
    return value_of_text(key, text, schema.field(key).type, what)


def check_partition_columns(schema: TableSchema, file: FileDescription, partition: bytes) -> None:
    """Raise InvalidInputError if a file holds a partition column that may differ from the value of its path.

    Filters on the partition would skip rows of such a file, or not, depending on the engine.
    """
    stored = {field.name for field in file.fields}
    own = [key for key in schema.partition_keys if key in stored]
    if not own:
        return
    values = dict(zip(schema.partition_keys, deserialize(partition, schema.partition_arrow), strict=True))
    for key in own:
        known, value = file.bounds.get(key), values[key]
        if value is None:
            same = known is not None and known.null_count == file.row_count
        else:
            same = known is not None and known.null_count == 0 and known.min == value == known.max
        if not same:
            shown = None if value is None else partition_text(value, schema.field(key), legacy=False)
            raise InvalidInputError(
                f"{file.path} has the partition column {key!r} in the file as well, and its footer does not say that "
                f"all values are {shown!r}, as its path does: write the files without the column"
            )
