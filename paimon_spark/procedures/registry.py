"""All procedures by name, and the reasons of those that are refused. A new procedure is one line of `PROCEDURES`."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pyspark.sql import SparkSession

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError
from paimon_spark.procedures import branches, compaction, consumers, copying, expiry, rollback, tags
from paimon_spark.procedures.procedure import Call, Procedure, Rows

PROCEDURES: Mapping[str, Procedure] = {
    one.name: one
    for one in (
        compaction.compact,
        compaction.compact_manifest,
        compaction.compact_database,
        compaction.rescale,
        copying.copy,
        expiry.expire_snapshots,
        expiry.record_partitions_done,
        expiry.expire_partitions,
        expiry.remove_orphan_files,
        expiry.remove_unexisting_files,
        expiry.purge_files,
        rollback.rollback,
        rollback.rollback_to_timestamp,
        rollback.rollback_to_watermark,
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
        consumers.reset_consumer,
        consumers.clear_consumers,
    )
}
NOT_YET: Mapping[str, str] = {
    "materialize_deletion_vectors": "use compact with compact_strategy => 'full'",
    "merge_branch": "insert the rows of `t$branch_b` into the table",
    "reassign_row_id": "row ids stay as they are",
    "repair_earliest_snapshot": "a wrong hint EARLIEST is found out and ignored",
    "rewrite_file_index": "set the options of indexes and use compact: new files have them",
}
"""Procedures that are not built yet: what to do instead."""
_METASTORE, _REST = "it needs a Hive metastore", "it needs a REST catalog"
NEVER: Mapping[str, str] = {
    "alter_function": _REST,
    "alter_view_dialect": _REST,
    "compact_chain_table": "chain tables are not supported",
    "create_function": _REST,
    "create_global_index": "global indexes are not supported",
    "drop_function": _REST,
    "drop_global_index": "global indexes are not supported",
    "migrate_database": _METASTORE,
    "migrate_table": _METASTORE,
    "repair": _METASTORE,
}
"""Procedures of the Java connector that this one does not have: the reason."""


def find_procedure(name: str) -> Procedure:
    """Return a procedure; names are case-sensitive.

    Raises UnsupportedError with the reason for a procedure of the Java connector that is missing here, NotFoundError
    with the nearest name for any other.
    """
    if name in PROCEDURES:
        return PROCEDURES[name]
    if name in NOT_YET:
        raise UnsupportedError(f"procedure {name!r} is not there yet: {NOT_YET[name]}")
    if name in NEVER:
        raise UnsupportedError(f"procedure {name!r} is not possible: {NEVER[name]}")
    near = get_close_matches(name.lower(), PROCEDURES, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(PROCEDURES))}"
    raise NotFoundError(f"there is no procedure {name!r}; {hint}")


def call_procedure(
    spark: SparkSession, catalog: FileSystemCatalog, catalog_name: str, name: str, arguments: Mapping[str, Any]
) -> Rows:
    """Run a procedure and return its rows.

    Args:
        spark: the session that runs the work; its current database completes the names of tables.
        catalog: of the tables.
        catalog_name: its name in Spark.
        name: of the procedure.
        arguments: by the names of the parameters; others are NULL.

    Raises InvalidInputError with the nearest name for an unknown argument and for a missing one; `find_procedure` and
    each procedure say what else.
    """
    found = find_procedure(name)
    known = [one.name for one in found.parameters]
    for argument in arguments:
        if argument not in known:
            near = get_close_matches(argument, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"its arguments are {found.signature}"
            raise InvalidInputError(f"procedure {name!r} has no argument {argument!r}; {hint}")
    missing = [one.name for one in found.parameters if one.required and one.name not in arguments]
    if missing:
        raise InvalidInputError(f"argument {missing[0]!r} is missing: {found.signature}")
    return found.run(Call(spark, catalog, catalog_name, found, {**dict.fromkeys(known), **arguments}))
