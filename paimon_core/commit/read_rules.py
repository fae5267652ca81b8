"""Check that a commit changes no row of its base by new `READ_RULES`, and loses no change by a new producer."""

from paimon_core.errors import InvalidInputError
from paimon_core.options.merge import CHANGELOG_PRODUCER, IGNORE_DELETE
from paimon_core.scan.changelog_rules import why_other_changes
from paimon_core.scan.read_rules import committed_with, why_other_rows
from paimon_core.schema.read_rules import READ_RULES, changed_rule, rule_text
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore


def check_rules(store: FileStore, base: Snapshot | None, schema_id: int) -> None:
    """Raise InvalidInputError if a commit under another schema would change how the files of its base are read.

    The same if streams would read changes of these files twice, or never (`scan.changelog_rules`).

    This engine refuses an ``ALTER TABLE`` like this, but other engines allow it, and a compaction may commit at the
    same time. Until then, reads use the rules of the base. A change of ``ignore-delete`` is not refused here, because
    it cannot be taken back, and neither is a change of the merge.
    """
    if base is None or base.schema_id == schema_id:
        return
    new = store.schemas.get(schema_id)
    old = committed_with(store, base, new)
    key = changed_rule(old, new)
    if key in READ_RULES and key != IGNORE_DELETE.key and (reason := why_other_rows(store, base, old, new)):
        raise _refused(old, key, reason)
    if reason := why_other_changes(store, base, old, new):
        raise _refused(old, CHANGELOG_PRODUCER.key, reason)


def _refused(old: TableSchema, key: str, reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"nothing is committed: option {key!r} was changed, but {reason}; set it to {rule_text(old, key)!r} again, "
        "call compact(full=True) or CALL sys.compact, and then change it"
    )
