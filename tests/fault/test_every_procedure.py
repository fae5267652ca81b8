"""Every action has a case in which each of its storage calls fails."""

import pytest

from paimon_core.procedures.procedure_registry import PROCEDURES
from tests.fault import test_commit_faults, test_expiry_faults, test_maintenance_faults, test_orphan_faults

COMMITS, EXPIRY, MAINTENANCE = test_commit_faults.CASES, test_expiry_faults.CASES, test_maintenance_faults.CASES
CASES = {
    "compact": (COMMITS, "compact"),
    "compact_database": (COMMITS, "compact"),
    "compact_manifest": (MAINTENANCE, "compact manifests"),
    "materialize_deletion_vectors": (COMMITS, "materialize vectors"),
    "rewrite_file_index": (COMMITS, "indexes for old files"),
    "rescale": (COMMITS, "rescale"),
    "reassign_row_id": (MAINTENANCE, "reassign row ids"),
    "expire_snapshots": (EXPIRY, "changelogs and a tag"),
    "mark_partition_done": (MAINTENANCE, "mark partitions as done"),
    "expire_partitions": (MAINTENANCE, "expire partitions"),
    "remove_unexisting_files": (MAINTENANCE, "remove missing files"),
    "purge_files": (MAINTENANCE, "purge"),
    "rollback": (MAINTENANCE, "roll back"),
    "rollback_to_timestamp": (MAINTENANCE, "roll back"),
    "rollback_to_watermark": (MAINTENANCE, "roll back"),
    "rollback_to_as_latest": (COMMITS, "restore"),
    "create_tag": (MAINTENANCE, "create a tag"),
    "create_tag_from_timestamp": (MAINTENANCE, "create a tag"),
    "replace_tag": (MAINTENANCE, "replace a tag"),
    "rename_tag": (MAINTENANCE, "rename a tag"),
    "delete_tag": (MAINTENANCE, "delete a tag"),
    "expire_tags": (MAINTENANCE, "expire tags"),
    "trigger_tag_automatic_creation": (MAINTENANCE, "automatic tags"),
    "create_branch": (MAINTENANCE, "create a branch of a tag"),
    "delete_branch": (MAINTENANCE, "delete a branch"),
    "rename_branch": (MAINTENANCE, "rename a branch"),
    "fast_forward": (MAINTENANCE, "fast forward"),
    "merge_branch": (MAINTENANCE, "merge a branch"),
    "reset_consumer": (MAINTENANCE, "reset a consumer"),
    "clear_consumers": (MAINTENANCE, "clear consumers"),
    "repair_table": (MAINTENANCE, "repair"),
    "repair_earliest_snapshot": (MAINTENANCE, "repair the oldest snapshot"),
}
"""The case of each action; actions of one function share one."""
ELSEWHERE = {
    "remove_orphan_files": test_orphan_faults.test_survives_fault_at_every_call,
    "repair": None,  # changes a metastore, no table: tests/core/catalog/test_hive.py
    "verify_table": None,  # changes nothing
}
MOVING = {"add_files", "clone", "migrate_database", "migrate_table"}
"""Actions that bring files of other tables, which have their own tests in tests/core/migration."""


def test_every_procedure_has_case():
    assert CASES.keys() | ELSEWHERE.keys() | MOVING == PROCEDURES.keys()


@pytest.mark.parametrize("name", CASES)
def test_case_of_procedure_exists(name):
    cases, case = CASES[name]
    assert case in cases
