"""The columns that the engine adds to data files, their fixed ids, and the reserved names (format 7.1)."""

from collections.abc import Iterable

from paimon_core.errors import InvalidInputError
from paimon_core.types.datatype import BIGINT, INT, STRING, AtomicType, DataField, RowType

KEY_PREFIX = "_KEY_"
"""The prefix of the second copy of the key columns, in files of primary-key tables."""

KEY_ID_START = 1073741823
"""The difference between the id of a ``_KEY_`` column and the id of its key column."""

SEQUENCE_NUMBER = DataField(2147483646, "_SEQUENCE_NUMBER", AtomicType("BIGINT", nullable=False))
VALUE_KIND = DataField(2147483645, "_VALUE_KIND", AtomicType("TINYINT", nullable=False))
LEVEL = DataField(2147483644, "_LEVEL", AtomicType("INT", nullable=False))
ROW_KIND = DataField(2147483643, "rowkind", STRING)
ROW_ID = DataField(2147483642, "_ROW_ID", BIGINT)

ROW_POSITION = DataField(2147483600, "_ROW_POSITION", AtomicType("BIGINT", nullable=False))
"""The number of a row in its data file, from 0: readers compute it, no file stores it."""

ROW_SEQUENCE = DataField(SEQUENCE_NUMBER.id, SEQUENCE_NUMBER.name, BIGINT)
"""The snapshot that last changed a tracked row; null in a file: the metadata of the file holds the snapshot id."""
TRACKING_FIELDS = (ROW_ID, ROW_SEQUENCE)
"""The additional columns of a table with ``row-tracking.enabled``."""

FILE_PATH = DataField(2147483599, "__paimon_file_path", STRING)
"""The path of a row's data file; readers compute this metadata column and the three that follow."""
ROW_INDEX = DataField(ROW_POSITION.id, "__paimon_row_index", BIGINT)
"""The position of a row in its data file, counted from 0 before deletes."""
BUCKET = DataField(2147483598, "__paimon_bucket", INT)
"""The bucket of a row."""
_PARTITION_ID, _PARTITION_NAME = 2147483597, "__paimon_partition"

LARGEST_COLUMN_ID = _PARTITION_ID - 1
"""The largest id of a user column; system fields have larger ids."""

SYSTEM_FIELDS = (SEQUENCE_NUMBER, VALUE_KIND, LEVEL, ROW_KIND, ROW_ID)

RESERVED = frozenset(field.name for field in SYSTEM_FIELDS)
"""The names that user columns must not have."""


def partition_field(fields: Iterable[DataField]) -> DataField:
    """Return the metadata column of a row's partition: a ROW of the partition columns, empty without partitions."""
    return DataField(_PARTITION_ID, _PARTITION_NAME, RowType(tuple(fields)))


def is_partition_field(field: DataField) -> bool:
    """Return True if the field is one that `partition_field` returns."""
    return field.id == _PARTITION_ID


def key_field(field: DataField) -> DataField:
    """Return the ``_KEY_`` column of a key column, of the same type."""
    return DataField(field.id + KEY_ID_START, KEY_PREFIX + field.name, field.type)


def is_reserved(name: str) -> bool:
    """Return True if the name is reserved for the engine."""
    return name in RESERVED or name.startswith(KEY_PREFIX)


def check_names(names: Iterable[str]) -> None:
    """Raise InvalidInputError, listing them, if column names are reserved."""
    reserved = [name for name in names if is_reserved(name)]
    if reserved:
        raise InvalidInputError(
            f"column names {', '.join(map(repr, reserved))} are reserved: rename them "
            f"(reserved are {', '.join(sorted(RESERVED))} and every name starting with {KEY_PREFIX})"
        )
