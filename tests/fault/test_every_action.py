"""Every action has a case in which each of its storage calls fails."""

import pytest

from paimon_core.actions.registry import ACTIONS
from tests.fault import test_commit_faults, test_expiry_faults, test_orphan_faults, test_upkeep_faults

COMMITS, EXPIRY, UPKEEP = test_commit_faults.CASES, test_expiry_faults.CASES, test_upkeep_faults.CASES
CASES = {
    "compact": (COMMITS, "compact"),
    "compact_database": (COMMITS, "compact"),
    "compact_manifest": (UPKEEP, "compact manifests"),
    "materialize_deletion_vectors": (COMMITS, "materialize vectors"),
    "rewrite_file_index": (COMMITS, "indexes for old files"),
    "rescale": (COMMITS, "rescale"),
    "reassign_row_id": (UPKEEP, "reassign row ids"),
    "expire_snapshots": (EXPIRY, "changelogs and a tag"),
    "mark_partition_done": (UPKEEP, "mark partitions as done"),
    "expire_partitions": (UPKEEP, "expire partitions"),
    "remove_unexisting_files": (UPKEEP, "remove missing files"),
    "purge_files": (UPKEEP, "purge"),
    "rollback": (UPKEEP, "roll back"),
    "rollback_to_timestamp": (UPKEEP, "roll back"),
    "rollback_to_watermark": (UPKEEP, "roll back"),
    "rollback_to_as_latest": (COMMITS, "restore"),
    "create_tag": (UPKEEP, "create a tag"),
    "create_tag_from_timestamp": (UPKEEP, "create a tag"),
    "replace_tag": (UPKEEP, "replace a tag"),
    "rename_tag": (UPKEEP, "rename a tag"),
    "delete_tag": (UPKEEP, "delete a tag"),
    "expire_tags": (UPKEEP, "expire tags"),
    "trigger_tag_automatic_creation": (UPKEEP, "automatic tags"),
    "create_branch": (UPKEEP, "create a branch of a tag"),
    "delete_branch": (UPKEEP, "delete a branch"),
    "rename_branch": (UPKEEP, "rename a branch"),
    "fast_forward": (UPKEEP, "fast forward"),
    "merge_branch": (UPKEEP, "merge a branch"),
    "reset_consumer": (UPKEEP, "reset a consumer"),
    "clear_consumers": (UPKEEP, "clear consumers"),
    "repair_table": (UPKEEP, "repair"),
    "repair_earliest_snapshot": (UPKEEP, "repair the oldest snapshot"),
}
"""The case of each action; actions of one function share one."""
ELSEWHERE = {
    "remove_orphan_files": test_orphan_faults.test_survives_a_fault_at_every_call,
    "verify_table": None,  # changes nothing
}
MOVING = {"add_files", "clone", "migrate_database", "migrate_table"}
"""Actions that bring files of other tables, which have their own tests in tests/core/moving."""


def test_every_action_has_a_case():
    assert CASES.keys() | ELSEWHERE.keys() | MOVING == ACTIONS.keys()


@pytest.mark.parametrize("name", CASES)
def test_the_case_exists(name):
    cases, case = CASES[name]
    assert case in cases
