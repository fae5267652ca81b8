"""The system tables by name. To add one, define a `SystemTableKind` and add a line here."""

from collections.abc import Sequence
from typing import Final

from paimon_core.errors import InvalidInputError, nearest_name
from paimon_core.inspect.system_tables.definition import AGGREGATION_FIELDS, OPTIONS, SCHEMAS
from paimon_core.inspect.system_tables.file_indexes import FILE_INDEXES
from paimon_core.inspect.system_tables.file_tables import FILE_KEY_RANGES, FILES
from paimon_core.inspect.system_tables.groups import BUCKETS, PARTITIONS
from paimon_core.inspect.system_tables.history_tables import BRANCHES, CONSUMERS, SNAPSHOTS, TAGS
from paimon_core.inspect.system_tables.kind import SystemTableKind
from paimon_core.inspect.system_tables.metadata_tables import MANIFESTS, STATISTICS, TABLE_INDEXES
from paimon_core.inspect.system_tables.row_tables import AUDIT_LOG, BINLOG, ROW_TRACKING
from paimon_core.store.location import READ_OPTIMIZED, SEPARATOR

_KINDS: Final = (
    *(SNAPSHOTS, SCHEMAS, OPTIONS, TAGS, BRANCHES, CONSUMERS, AGGREGATION_FIELDS),
    *(FILES, FILE_KEY_RANGES, FILE_INDEXES, PARTITIONS, BUCKETS, MANIFESTS, TABLE_INDEXES, STATISTICS),
    *(AUDIT_LOG, BINLOG, ROW_TRACKING),
)
SYSTEM_TABLES: Final = {kind.name: kind for kind in _KINDS}
"""The system tables, except the view ``ro``, which reads the table itself."""


def system_table_kind(name: str, shown: str) -> SystemTableKind:
    """Return the system table of a name in lower case.

    Raises InvalidInputError for an unknown name; the error quotes ``shown`` and suggests the nearest system table.
    """
    kind = SYSTEM_TABLES.get(name)
    if name == READ_OPTIMIZED:
        raise InvalidInputError(
            f"{shown!r} is a view of the table's own rows: use Table.read_optimized() or Table.open"
        )
    if kind is None:
        raise unknown_table(shown, [*SYSTEM_TABLES, READ_OPTIMIZED], SEPARATOR, name)
    return kind


def unknown_table(shown: str, known: Sequence[str], prefix: str, name: str = "") -> InvalidInputError:
    """Return the error for a system table that does not exist.

    Args:
        shown: the name or path as the user wrote it.
        known: the existing names.
        prefix: the text before a name.
        name: the name after the prefix; empty: the rest of ``shown`` after the prefix.
    """
    table_name = name or shown.removeprefix(prefix)
    near = nearest_name(table_name, known)
    hint = "." if near is None else f"; did you mean {prefix + near!r}?"
    every = ", ".join(prefix + table for table in sorted(known))
    return InvalidInputError(f"{shown!r}: there is no system table {prefix + table_name!r}{hint} There are {every}")
