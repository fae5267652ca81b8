"""Decide if a later schema continues an earlier one, so that rows written with the earlier one may stay in the table.

``REPLACE TABLE`` publishes its schema as the next version of the table, and gives every column a new id
(`catalog.staged`). So the ids of the columns distinguish a replacement from an ``ALTER TABLE``.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from paimon_core.options import ALL_OPTIONS
from paimon_core.schema.merge_options import column_merged_otherwise
from paimon_core.schema.mutability import IMMUTABLE
from paimon_core.schema.read_rules import changed_rule, rule_text
from paimon_core.schema.table_schema import TableSchema
from paimon_core.types.cast import can_cast
from paimon_core.types.datatype import ArrayType, DataField, MapType, MultisetType, RowType, is_nested, with_nullable

_REPLACES = "replaces"
_NUMBER = re.compile(r"-?[0-9]{1,18}")

_NAMES = frozenset({"bucket-key", "partition", "primary-key", "rowkind.field"})
"""Options that name columns. The columns are compared by their ids, because a column may have been renamed."""

_OPTIONS = (*sorted(IMMUTABLE - _NAMES), "changelog-producer", "deletion-vectors.enabled")


def replacing(schema: TableSchema, version: int) -> TableSchema:
    """Return the schema with the mark that it replaces the table of ``version`` once its rows are committed.

    The mark is the key ``replaces`` of the schema file. Until the newest snapshot has a later schema than ``version``,
    readers see the table of ``version``; -1: they see no table.
    """
    return replace(unmarked(schema), extra=(*unmarked(schema).extra, (_REPLACES, str(version))))


def unmarked(schema: TableSchema) -> TableSchema:
    """Return the schema without the mark that `replacing` added."""
    return replace(schema, extra=tuple(item for item in schema.extra if item[0] != _REPLACES))


def replaced_version(schema: TableSchema) -> int | None:
    """Return the version in the mark of `replacing`, which later versions keep. `None`: the schema has no mark."""
    text = dict(schema.extra).get(_REPLACES, "")
    version = int(text) if _NUMBER.fullmatch(text) else schema.id
    return version if -1 <= version < schema.id else None


def is_replaced(old: TableSchema, new: TableSchema) -> bool:
    """Return True if rows of ``new``, a later version, cannot be read as rows of ``old``: the table was replaced."""
    version = replaced_version(new)
    return (version is not None and version >= old.id) or not _shared(old, new)


def continues(old: TableSchema, new: TableSchema) -> bool:
    """Return True if rows written with ``old`` are correct rows of the table under ``new``, a later version.

    False: ``new`` replaces the table, may replace it, or stores rows in another way. An ``ALTER TABLE`` gives False if
    no column of ``old`` keeps its name. REQUIRES: both versions are as stored, without dynamic options.
    """
    return why_not_continued(old, new) is None


def why_not_continued(old: TableSchema, new: TableSchema) -> str | None:
    """Return the reason why `continues` is False, as a clause for an error message. `None`: it is True."""
    return _other_table(old, new) or _other_keys(old, new) or _other_options(old, new) or _stricter(old, new)


def why_unreadable(old: TableSchema, new: TableSchema) -> str | None:
    """Return a clause that says why columns of ``old`` may not hold rows of ``new``, a later version. `None`: they can.

    A value of another type would be wrapped, truncated or rounded, and a NOT NULL column cannot hold NULL. Columns may
    be added, moved and renamed. A column that was dropped and may be NULL is NULL in later rows.
    """
    now = {field.id: field for field in new.fields}
    for field in old.fields:
        later = now.get(field.id)
        if later is None:
            if not field.type.nullable:
                return f"column {field.name!r} is NOT NULL in schema {old.id}, and was dropped by schema {new.id}"
        elif not _same_values(field.type, later.type):
            return f"column {field.name!r}, {field.type} in schema {old.id}, became {later.type} in schema {new.id}"
        elif _is_stricter(later.type, field.type):
            return f"column {field.name!r}, or a field in it, is NOT NULL in schema {old.id}, and may be NULL now"
    return None


def _other_table(old: TableSchema, new: TableSchema) -> str | None:
    """Return a reason if no ``ALTER TABLE`` leads from ``old`` to ``new``.

    The Java engine (from 2.0 on) numbers the columns of a replacement from 0 again. The types or a lower
    ``highest_field_id`` may reveal this, but need not.
    """
    fell = new.id < old.id or new.highest_field_id < old.highest_field_id
    if fell or (new.id == old.id and new.time_millis != old.time_millis):
        return "the table was dropped and created again"
    shared = _shared(old, new)
    if (
        is_replaced(old, new)
        or not any(then.name == now.name for then, now in shared)
        or not all(_is_cast(*pair) for pair in shared)
    ):
        return (
            "the table was replaced, or all of its columns were (after a REPLACE TABLE that was interrupted, run it "
            "again, or roll the table back to its newest snapshot)"
        )
    return None


def _other_keys(old: TableSchema, new: TableSchema) -> str | None:
    for what, then, now in (
        ("primary key", old.primary_keys, new.primary_keys),
        ("partition columns", old.partition_keys, new.partition_keys),
        ("bucket key", old.bucket_keys, new.bucket_keys),
        ("row kind column", _row_kind(old), _row_kind(new)),
    ):
        if _columns(old, then) != _columns(new, now):
            return f"the {what} changed from ({', '.join(then)}) to ({', '.join(now)})"
    return None


def _other_options(old: TableSchema, new: TableSchema) -> str | None:
    if _bucket_mode(old) != _bucket_mode(new):
        return f"option 'bucket' changed from {old.bucket} to {new.bucket}"
    for key in _OPTIONS:
        then, now = (schema.options.value(ALL_OPTIONS[key]) for schema in (old, new))
        if then != now:
            return f"option {key!r} changed from {then!r} to {now!r}"
    rule = changed_rule(old, new)
    if rule is not None:
        return f"option {rule!r} changed from {rule_text(old, rule)} to {rule_text(new, rule)}"
    column = column_merged_otherwise(old, new)
    return None if column is None else f"column {column!r} decides how rows are merged, and its type changed"


def _stricter(old: TableSchema, new: TableSchema) -> str | None:
    old_ids = {field.id for field in old.fields}
    for field in new.fields:
        if not field.type.nullable and field.id not in old_ids:
            return f"column {field.name!r} was added and is NOT NULL"
    for then, now in _shared(old, new):
        if _is_stricter(then.type, now.type):
            return f"column {now.name!r}, or a field in it, became NOT NULL"
    return None


def _shared(old: TableSchema, new: TableSchema) -> list[tuple[DataField, DataField]]:
    """Return the columns that both versions have."""
    before = {field.id: field for field in old.fields}
    return [(before[field.id], field) for field in new.fields if field.id in before]


def _is_cast(old: DataField, new: DataField) -> bool:
    """Return True if a column of the old type can have been altered to the new type."""
    if is_nested(old.type) or is_nested(new.type):
        return type(old.type) is type(new.type)
    return can_cast(old.type, new.type, explicit=True)


def _columns(schema: TableSchema, names: Sequence[str]) -> list[tuple[int, Any]]:
    """Return the ids and types of columns."""
    fields: list[DataField] = [schema.field(name) for name in names]
    return [(field.id, with_nullable(field.type, True)) for field in fields]


def _row_kind(schema: TableSchema) -> tuple[str, ...]:
    name = schema.options.value(ALL_OPTIONS["rowkind.field"])
    return (name,) if name else ()


def _bucket_mode(schema: TableSchema) -> int:
    """Return -2: postponed, -1: no fixed number, 1: any fixed number. Each file records its own number of buckets."""
    return min(schema.bucket, 1)


def _same_values(old: Any, new: Any) -> bool:
    """Return True if the types are equal, regardless of nullability and of fields that only one of them has."""
    match old, new:
        case RowType(), RowType():
            now = {field.id: field.type for field in new.fields}
            return all(_same_values(field.type, now[field.id]) for field in old.fields if field.id in now)
        case (ArrayType(), ArrayType()) | (MultisetType(), MultisetType()):
            return _same_values(old.element, new.element)
        case MapType(), MapType():
            return _same_values(old.key, new.key) and _same_values(old.value, new.value)
    return bool(with_nullable(old, True) == with_nullable(new, True))


def _is_stricter(old: Any, new: Any) -> bool:
    """Return True if the new type forbids NULL where the old type allows it."""
    if old.nullable and not new.nullable:
        return True
    match old, new:
        case RowType(), RowType():
            before = {field.id: field.type for field in old.fields}
            return any(
                _is_stricter(before[field.id], field.type) if field.id in before else not field.type.nullable
                for field in new.fields
            )
        case ArrayType(), ArrayType():
            return _is_stricter(old.element, new.element)
        case MapType(), MapType():
            return _is_stricter(old.value, new.value)
    return False
