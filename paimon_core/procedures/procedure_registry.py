"""All procedures by name, and the reasons why some are missing. To add a procedure, add a line to `PROCEDURES`."""

from collections.abc import Mapping

from paimon_core.errors import NotFoundError, UnsupportedError, nearest_name
from paimon_core.procedures import branches, compaction, consumers, expiry, migration, repair, rollback, tags
from paimon_core.procedures.procedure import Procedure

PROCEDURES: Mapping[str, Procedure] = {
    one.name: one
    for one in (
        compaction.compact,
        compaction.compact_manifest,
        compaction.compact_database,
        compaction.materialize_deletion_vectors,
        compaction.rewrite_file_index,
        compaction.reassign_row_id,
        compaction.rescale,
        expiry.expire_snapshots,
        expiry.record_partitions_done,
        expiry.expire_partitions,
        expiry.remove_orphan_files,
        expiry.remove_unexisting_files,
        expiry.purge_files,
        rollback.rollback,
        rollback.rollback_to_timestamp,
        rollback.rollback_to_watermark,
        rollback.rollback_to_as_latest,
        tags.create_tag,
        tags.create_tag_from_timestamp,
        tags.replace_tag,
        tags.rename_tag,
        tags.delete_tag,
        tags.expire_tags,
        tags.trigger_tag_automatic_creation,
        branches.create_branch,
        branches.delete_branch,
        branches.rename_branch,
        branches.fast_forward,
        branches.merge_branch,
        consumers.reset_consumer,
        consumers.clear_consumers,
        migration.add_files,
        migration.migrate_table,
        migration.migrate_database,
        migration.clone,
        repair.verify_table,
        repair.repair_table,
        repair.repair_earliest_snapshot,
        repair.repair,
    )
}
_REST = "it needs a REST catalog"
NEVER: Mapping[str, str] = {
    "alter_function": _REST,
    "alter_view_dialect": "call the method alter_view of the catalog in Python, with dialects",
    "compact_chain_table": "chain tables are not supported",
    "create_function": "call the method create_function of a REST catalog in Python",
    "create_global_index": "global indexes are not supported; to skip files, set 'file-index.bloom-filter.columns'",
    "drop_function": "call the method drop_function of a REST catalog in Python",
    "drop_global_index": "global indexes are not supported, and no table has one",
}
"""Procedures of the Java connector that are not implemented, with the reason."""


def find_procedure(name: str, procedures: Mapping[str, Procedure] = PROCEDURES) -> Procedure:
    """Return a procedure by its case-sensitive name.

    Raises UnsupportedError with the reason for a Java connector's procedure that is not implemented, NotFoundError
    with the nearest name for any other name.
    """
    if name in procedures:
        return procedures[name]
    if name in NEVER:
        raise UnsupportedError(f"procedure {name!r} is not supported: {NEVER[name]}")
    near = nearest_name(name, procedures)
    hint = f"did you mean {near!r}?" if near else f"there are {', '.join(sorted(procedures))}"
    raise NotFoundError(f"there is no procedure {name!r}; {hint}")
