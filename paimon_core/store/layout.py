"""The directories of a table, relative to its root (format 1).

The values of partitions come from the metadata, not from directory names. The names still follow the rules of Paimon
exactly, so that a table written by several engines has one directory per partition.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from paimon_core.errors import UnsupportedError
from paimon_core.fileio.fileio import join
from paimon_core.options.bucket import PARTITION_DEFAULT_NAME, PARTITION_LEGACY_NAME
from paimon_core.options.file import DATA_FILE_PATH_DIRECTORY
from paimon_core.options.option import Options
from paimon_core.types.arrow import to_arrow
from paimon_core.types.calendar import iso_date
from paimon_core.types.datatype import AtomicType, DataField

POSTPONE_BUCKET = -2
MAIN_BRANCH = "main"
_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{}\[\]^]")
_BUCKET = re.compile(r"bucket-(\d+|postpone)")
_NOT_BLANK = "\x85\xa0\u2007\u202f"  # Python strips these characters, but Paimon does not count them as white space
_UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def escape(text: str) -> str:
    """Return a partition key or value as the text in a directory name."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def partition_path(values: Sequence[Any], fields: Sequence[DataField], options: Options) -> str:
    """Return ``k1=v1/k2=v2`` for internal values of the partition columns; empty for an unpartitioned table."""
    return next(partition_paths([values], fields, options))


def partition_paths(rows: Iterable[Sequence[Any]], fields: Sequence[DataField], options: Options) -> Iterator[str]:
    """Yield the `partition_path` of each row of internal values."""
    default, legacy = options.value(PARTITION_DEFAULT_NAME), options.value(PARTITION_LEGACY_NAME)
    columns = [(f"{escape(field.name)}=", field) for field in fields]
    for values in rows:
        parts = []
        for value, (name, field) in zip(values, columns, strict=True):
            text = None if value is None else partition_text(value, field, legacy=legacy)
            parts.append(name + escape(default if text is None or is_blank(text) else text))
        yield "/".join(parts)


def is_blank(text: str) -> bool:
    """Return True if a partition with this value has the same name as the NULL partition."""
    return not text.strip() and not any(char in _NOT_BLANK for char in text)


def partition_text(value: Any, field: DataField, *, legacy: bool) -> str:
    """Return an internal value as text.

    ``legacy``: True for the text that ``partition.legacy-name`` defines, False for a cast to string. Raises
    UnsupportedError for a binary value with ``legacy``.
    """
    assert isinstance(field.type, AtomicType), f"partition column {field.name} is nested"
    match field.type.root:
        case "BOOLEAN":
            return "true" if value else "false"
        case "DATE":
            return str(value) if legacy else iso_date(value)
        case "TIME":
            return str(value) if legacy else _time_text(value, field.type.precision or 0)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            seconds, nanos = _seconds_and_nanos(value, field)
            precision = 6 if field.type.precision is None else field.type.precision
            return _legacy_timestamp(seconds, nanos) if legacy else _timestamp_text(seconds, nanos, precision)
        case "DECIMAL":
            return format(value, "f") if isinstance(value, Decimal) else str(value)
        case "FLOAT":
            return java_float(np.float32(value))
        case "DOUBLE":
            return java_float(np.float64(value))
        case "BINARY" | "VARBINARY" if legacy:
            raise UnsupportedError(
                f"partition column {field.name!r} is {field.type}, whose legacy directory names do not contain the "
                "value: create the table with 'partition.legacy-name' = 'false'"
            )
        case "BINARY" | "VARBINARY":
            return str(bytes(value).decode("utf-8", "replace"))
        case _:
            return str(value)


def java_float(value: np.floating[Any]) -> str:
    """Return the shortest text that parses to the same number: plain from 0.001 to below 10^7, else ``d.dE±n``."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(value, unique=True, min_digits=1)
    mantissa, exponent = np.format_float_scientific(value, unique=True, min_digits=1).split("e")
    return f"{mantissa}E{int(exponent)}"


def bucket_name(bucket: int) -> str:
    """Return the name of a bucket's directory."""
    return "bucket-postpone" if bucket == POSTPONE_BUCKET else f"bucket-{bucket}"


def is_bucket_name(name: str) -> bool:
    """Return True for the name of a bucket's directory."""
    return _BUCKET.fullmatch(name) is not None


def bucket_directory(root: str, partition: str, bucket: int, options: Options) -> str:
    """Return the directory of a bucket.

    Args:
        root: the directory of the table.
        partition: the result of `partition_path`.
        bucket: the bucket, -2 for the postponed bucket.
        options: the options of the table.
    """
    return join(root, options.value(DATA_FILE_PATH_DIRECTORY) or "", partition, bucket_name(bucket))


def branch_directory(root: str, branch: str) -> str:
    """Return the directory of a branch's schemas, snapshots and tags. Its data files are in the table's directories."""
    return root if branch == MAIN_BRANCH else join(root, "branch", f"branch-{branch}")


def manifest_directory(root: str) -> str:
    """Return the directory of manifest lists, manifests and index manifests of all branches."""
    return join(root, "manifest")


def index_directory(root: str) -> str:
    """Return the directory of hash indexes and deletion vectors of all branches."""
    return join(root, "index")


def statistics_directory(root: str) -> str:
    """Return the directory of table statistics of all branches."""
    return join(root, "statistics")


def _seconds_and_nanos(value: int, field: DataField) -> tuple[int, int]:
    per_second = _UNITS_PER_SECOND[to_arrow(field.type).unit]
    seconds, rest = divmod(value, per_second)
    return seconds, rest * (10**9 // per_second)


def _clock(seconds: int) -> tuple[str, str, str]:
    return f"{seconds // 3600:02d}", f"{seconds // 60 % 60:02d}", f"{seconds % 60:02d}"


def _time_text(millis: int, precision: int) -> str:
    text = ":".join(_clock(millis // 1000))
    digits = f"{millis % 1000:03d}"[: min(precision, 3)]
    return f"{text}.{digits.rstrip('0') or '0'}" if digits else text


def _legacy_timestamp(seconds: int, nanos: int) -> str:
    days, second_of_day = divmod(seconds, 86_400)
    hour, minute, second = _clock(second_of_day)
    text = f"{iso_date(days)}T{hour}:{minute}"
    if second_of_day % 60 == 0 and nanos == 0:
        return text
    if nanos == 0:
        return f"{text}:{second}"
    digits = f"{nanos:09d}"
    shown = 3 if digits.endswith("000000") else 6 if digits.endswith("000") else 9
    return f"{text}:{second}.{digits[:shown]}"


def _timestamp_text(seconds: int, nanos: int, precision: int) -> str:
    days, second_of_day = divmod(seconds, 86_400)
    text = f"{iso_date(days)} {':'.join(_clock(second_of_day))}"
    digits = f"{nanos:09d}"
    digits = digits[:precision] + digits[precision:].rstrip("0")
    return f"{text}.{digits}" if digits else text
