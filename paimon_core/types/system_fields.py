"""Columns the engine adds to data files, their fixed ids, and the names users may not take (format 7.1)."""

from collections.abc import Iterable

from paimon_core.errors import InvalidInputError
from paimon_core.types.datatype import BIGINT, STRING, AtomicType, DataField

KEY_PREFIX = "_KEY_"
"""Key columns of primary-key tables are stored a second time under this prefix."""

KEY_ID_START = 1073741823
"""Added to a column's id to get the id of its ``_KEY_`` twin."""

SEQUENCE_NUMBER = DataField(2147483646, "_SEQUENCE_NUMBER", AtomicType("BIGINT", nullable=False))
VALUE_KIND = DataField(2147483645, "_VALUE_KIND", AtomicType("TINYINT", nullable=False))
LEVEL = DataField(2147483644, "_LEVEL", AtomicType("INT", nullable=False))
ROW_KIND = DataField(2147483643, "rowkind", STRING)
ROW_ID = DataField(2147483642, "_ROW_ID", BIGINT)

ROW_POSITION = DataField(2147483600, "_ROW_POSITION", AtomicType("BIGINT", nullable=False))
"""The number of a row in its data file, from 0: known while the file is read, stored nowhere."""

ROW_SEQUENCE = DataField(SEQUENCE_NUMBER.id, SEQUENCE_NUMBER.name, BIGINT)
"""The snapshot that changed a row last, where rows are tracked; a file may leave it to its metadata."""
TRACKING_FIELDS = (ROW_ID, ROW_SEQUENCE)
"""What rows of a table with ``row-tracking.enabled`` have beside its columns."""

SYSTEM_FIELDS = (SEQUENCE_NUMBER, VALUE_KIND, LEVEL, ROW_KIND, ROW_ID)

RESERVED = frozenset(field.name for field in SYSTEM_FIELDS)
"""Names no user column may have."""


def key_field(field: DataField) -> DataField:
    """The ``_KEY_`` twin of a key column, of the same type."""
    return DataField(field.id + KEY_ID_START, KEY_PREFIX + field.name, field.type)


def is_reserved(name: str) -> bool:
    """Whether a name belongs to the engine."""
    return name in RESERVED or name.startswith(KEY_PREFIX)


def check_names(names: Iterable[str]) -> None:
    """Refuse column names that belong to the engine, naming all of them."""
    taken = [name for name in names if is_reserved(name)]
    if taken:
        raise InvalidInputError(
            f"column names {', '.join(map(repr, taken))} are reserved: rename them "
            f"(reserved are {', '.join(sorted(RESERVED))} and every name starting with {KEY_PREFIX})"
        )
