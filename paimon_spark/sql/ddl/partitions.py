"""The partitions of a table for ``PartitionedTable.java``, as texts of Spark's internal values; `None`: NULL."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from paimon_core import Snapshot, Table
from paimon_core.engine import live_entries, live_partitions, value_of_text
from paimon_core.errors import UnsupportedError
from paimon_core.types.arrow import arrow_field
from paimon_core.types.datatype import DataField

Texts = Sequence[str | None]
_NANOS_OF_MILLI = 1_000_000
_REPLACED = "\N{REPLACEMENT CHARACTER}".encode().hex()


def list_partitions(table: Table, names: Sequence[str], values: Texts) -> list[list[str | None]]:
    """Return the partitions with data, in order of their values, `None` first.

    Args:
        table: the table.
        names: the partition columns to match.
        values: the text of the value of each column in `names`.
    """
    return [texts for _, texts in _matching(table, names, values)]


def drop_partitions(table: Table, partitions: Sequence[Texts]) -> bool:
    """Remove the rows of the partitions with these values in one commit; return False if none of them has rows.

    Raises UnsupportedError, and removes nothing, if some values match several partitions because their times differ by
    less than a microsecond.
    """
    keys = table.schema.partition_keys
    existing, exact = _by_values(table, keys), []
    for key, values in {_key(table, keys, values): values for values in partitions}.items():
        matches = existing.get(key, [])
        if len(matches) > 1 and not any(_are_chars(table, keys)):
            raise UnsupportedError(
                f"{len(matches)} partitions of {table.path} have the values {list(values)} in Spark, whose times end "
                "at microseconds: drop each of them with Table.drop_partitions"
            )
        exact += [dict(zip(keys, table.store.partition_values(partition), strict=True)) for partition, _ in matches]
    if exact:
        table.drop_partitions(exact)
    return bool(exact)


def partition_texts(partition: Mapping[str, Any], fields: Sequence[DataField]) -> list[str | None]:
    """Return the values of a partition of a format table as texts; ``fields``: the partition columns."""
    texts = []
    for field in fields:
        values = pa.array([partition[field.name]], arrow_field(field).type)
        if kinds.is_date32(values.type) or kinds.is_time32(values.type):
            values = values.view(pa.int32())
        elif kinds.is_timestamp(values.type):
            values = values.view(pa.int64())
        texts.append(_text(values[0].as_py(), arrow_field(field).type))
    return texts


def value_of_internal(text: str | None, field: DataField) -> Any:
    """Return the value of a partition column for the text of Spark's internal value.

    Raises UnsupportedError for times, whose texts have another unit.
    """
    if text is None:
        return None
    kind = arrow_field(field).type
    if kinds.is_timestamp(kind) or kinds.is_time(kind):
        raise UnsupportedError(f"ADD PARTITION is not possible for column {field.name!r}, a {field.type}: INSERT rows")
    return value_of_text(field.name, text, field.type, "PARTITION")


def partition_metadata(table: Table, values: Texts) -> dict[str, str]:
    """Return the numbers of rows, bytes and files of a partition, by the names of Paimon's connector.

    The rows are the sum of the rows of the files; a merge may show fewer. The map is empty for a partition without
    files. ``values``: as for `list_partitions`, for all partition columns.
    """
    snapshot, matches = table.snapshot(), {partition for partition, _ in _matching(table, _keys(table), values)}
    if snapshot is None or not matches:
        return {}
    rows, size, files = _sums(table, snapshot, matches)
    return {"recordCount": str(rows), "fileSizeInBytes": str(size), "fileCount": str(files)}


def table_size(table: Table) -> tuple[int, int, int]:
    """Return the numbers of rows, bytes and files of a table. The rows are the sum of the rows of the files."""
    snapshot = table.snapshot()
    return (0, 0, 0) if snapshot is None else _sums(table, snapshot, None)


def _sums(table: Table, snapshot: Snapshot, partitions: set[bytes] | None) -> tuple[int, int, int]:
    """Return the numbers of rows, bytes and files of partitions; `None`: of all partitions."""
    live = live_entries(table.store, snapshot, with_stats=False).live
    files = [e.file for e in live if (partitions is None or e.partition in partitions) and e.bucket >= 0]
    return sum(file.row_count for file in files), sum(file.file_size for file in files), len(files)


def _keys(table: Table) -> Sequence[str]:
    return table.schema.partition_keys


def _matching(table: Table, names: Sequence[str], values: Texts) -> list[tuple[bytes, list[str | None]]]:
    """Return the partitions with these values: the serialized partition, and its values as texts."""
    return _by_values(table, names).get(_key(table, names, values), [])


def _by_values(table: Table, names: Sequence[str]) -> dict[Texts, list[tuple[bytes, list[str | None]]]]:
    """Return the partitions with data, in order of their values, by their `_key` in these columns."""
    snapshot = table.snapshot()
    if snapshot is None:
        return {}
    schema, chars = table.schema.partition_arrow, _are_chars(table, names)
    positions = [schema.names.index(name) for name in names]
    partitions = list(live_partitions(table.store, snapshot))
    rows = table.store.partition_rows(partitions)
    found: dict[Texts, list[tuple[bytes, list[str | None]]]] = {}
    for n in sorted(range(len(rows)), key=lambda n: [_order(value) for value in rows[n]]):
        texts = [_text(value, kind) for value, kind in zip(rows[n], schema.types, strict=True)]
        key = _without_blanks([texts[position] for position in positions], chars)
        found.setdefault(key, []).append((partitions[n], texts))
    return found


def _key(table: Table, names: Sequence[str], values: Texts) -> Texts:
    """Return values of Spark in the form in which `_by_values` has them."""
    schema = table.schema.partition_arrow
    texts = [_canonical(text, schema.field(name).type) for name, text in zip(names, values, strict=True)]
    return _without_blanks(texts, _are_chars(table, names))


def _are_chars(table: Table, names: Sequence[str]) -> list[bool]:
    return [getattr(table.schema.field(name).type, "root", None) == "CHAR" for name in names]


def _without_blanks(texts: Texts, chars: Sequence[bool]) -> Texts:
    """Return the values without the blanks at the end of values in CHAR columns."""
    return tuple(
        text.rstrip(" ") if char and text is not None else text for text, char in zip(texts, chars, strict=True)
    )


def _order(value: Any) -> tuple[Any, ...]:
    """Return a key that sorts NULL first, NaN last and -0.0 before 0.0."""
    if value is None:
        return (0,)
    return (2,) if value != value else (1, value, isinstance(value, float) and math.copysign(1, value))


def _text(value: Any, kind: pa.DataType) -> str | None:
    """Return an engine value as the text of Spark's internal value, in a form that Java parses."""
    if value is None:
        return None
    if kinds.is_timestamp(kind):
        per_micro = {"s": 10**-6, "ms": 10**-3, "us": 1, "ns": 1000}[kind.unit]
        return str(value // per_micro if per_micro >= 1 else value * round(1 / per_micro))
    if kinds.is_time(kind):
        return str(value * _NANOS_OF_MILLI)
    if kinds.is_binary(kind):
        return bytes(value).hex()
    if kinds.is_decimal(kind):
        return format(value, "f")
    if kinds.is_floating(kind) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _canonical(text: str | None, kind: pa.DataType) -> str | None:
    """Convert Java's text of an internal value to the form of `_text`.

    Raises UnsupportedError for bytes that are not UTF-8, because Spark converts the literals of a partition to text.
    """
    if text is not None and kinds.is_binary(kind) and _REPLACED in text:
        raise UnsupportedError(
            "Spark replaces bytes that are not UTF-8 in PARTITION (...): name this partition by X'...' in the argument "
            "'partitions' of a procedure, or use Table.drop_partitions"
        )
    if text is None or not (kinds.is_floating(kind) or kinds.is_decimal(kind)):
        return text
    if kinds.is_decimal(kind):
        return format(Decimal(text), "f")
    return _text(float(np.float32(text)) if kinds.is_float32(kind) else float(text), kind)
