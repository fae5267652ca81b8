"""The options that decide how the stored rows of a key are read.

The compactions that wrote the files decide how the rows of a key in several levels are read:

| compactions | files above level 0 | a batch read |
|---|---|---|
| without lookups | partial results of the merge engine | merges the rows of all levels |
| with lookups | whole results, which older ones may follow | merges level 0 with the row of the smallest level |
| with deletion vectors | whole results; vectors mark older ones | returns rows without a mark, but not level 0 |

With ``ignore-delete``, stored rows of kind -U and -D have no effect (``first-row`` stores none). `merge_options` define
the merge itself.

So a snapshot is read by the options under which it was committed. They may change only if the newest snapshot has the
same rows under both (`commit.read_rules`). Merge engines that return stored rows, as ``deduplicate`` does, read the
first two kinds of files in the same way.
"""

from typing import NamedTuple

from paimon_core.merge import engine_type, needs_lookup
from paimon_core.options import ALL_OPTIONS
from paimon_core.options.lsm import FORCE_LOOKUP
from paimon_core.options.merge import CHANGELOG_PRODUCER, DELETION_VECTORS_ENABLED, IGNORE_DELETE
from paimon_core.options.option import Option
from paimon_core.schema.merge_options import changed_merge, merge_options
from paimon_core.schema.table_schema import TableSchema

READ_RULES = (DELETION_VECTORS_ENABLED.key, CHANGELOG_PRODUCER.key, FORCE_LOOKUP.key, IGNORE_DELETE.key)
"""The keys of these options, except for `merge_options`."""


class ReadRules(NamedTuple):
    """The rules for reading the rows of a key.

    Attributes:
        vectors: deletion vectors mark the rows that are not read.
        whole: above level 0, only the row of the smallest level is read.
        ignores_deletes: rows of kind -U and -D have no effect.
    """

    vectors: bool
    whole: bool
    ignores_deletes: bool


def rules_of(schema: TableSchema) -> ReadRules:
    """Return the rules that a schema defines."""
    options, keyed = schema.options, bool(schema.primary_keys)
    ignores = keyed and not engine_type(options).skips_level_0 and options.value(IGNORE_DELETE)
    return ReadRules(options.value(DELETION_VECTORS_ENABLED), _is_partial(schema) and needs_lookup(options), ignores)


def changed_rule(old: TableSchema, new: TableSchema) -> str | None:
    """Return an option that makes ``new`` read the files of ``old`` in another way. `None`: both read them the same.

    ``old`` and ``new`` are schemas of one table.
    """
    if rules_of(old) != rules_of(new):
        for key in READ_RULES:
            if rule_text(old, key) != rule_text(new, key):
                return key
    return changed_merge(old, new)


def rule_text(schema: TableSchema, key: str) -> str:
    """Return the value of an option as text; only options in `READ_RULES` have their defaults."""
    if key not in READ_RULES:
        return schema.options.get(key, "nothing")
    option: Option[object] = ALL_OPTIONS[key]
    return str(schema.options.value(option)).lower()


def with_rules_of(schema: TableSchema, then: TableSchema) -> TableSchema:
    """Return ``schema`` with the rules of ``then``, or itself if it has them."""
    if changed_rule(then, schema) is None:
        return schema
    return schema.copy(merge_options(schema, then) | {key: rule_text(then, key) for key in READ_RULES})


def _is_partial(schema: TableSchema) -> bool:
    """Return True if a stored row may be only a part of the row of its key."""
    return bool(schema.primary_keys) and not engine_type(schema.options).keeps_rows
