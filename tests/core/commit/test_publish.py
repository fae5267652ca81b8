"""Outcomes of publishing a snapshot: one create-if-absent, and what it proves."""

from dataclasses import replace

import pytest

from paimon_core.commit.publish import Blocked, Indeterminate, Lost, Published, Unknown, is_ours, publish
from tests.support.faulty_io import MemoryIO
from tests.support.manifests import snapshot
from tests.support.text_tables import TextTable

OURS, THEIRS = snapshot(5, delta_manifest_list="ours"), snapshot(5, delta_manifest_list="theirs")
BASE = snapshot(4, delta_manifest_list="base")


@pytest.fixture
def store():
    return TextTable("table append").store


def put(store, *snapshots):
    for one in snapshots:
        store.io.write(store.snapshots.path(one.id), one.to_json())


def test_free_id_after_existing_snapshot_is_new(store):
    put(store, BASE)
    assert publish(store, OURS, BASE, frozenset()) == Published()
    assert store.snapshots.get(5) == OURS


def test_first_snapshot_has_no_predecessor(store):
    assert publish(store, snapshot(1), None, frozenset()) == Published()


def test_id_that_another_commit_has_is_lost(store):
    put(store, BASE, THEIRS)
    assert publish(store, OURS, BASE, frozenset()) == Lost()
    assert store.snapshots.get(5) == THEIRS


def test_repeated_create_that_finds_its_own_file_is_published(store):
    put(store, BASE, OURS)
    assert publish(store, OURS, BASE, frozenset()) == Published()


def test_error_of_storage_leaves_outcome_unknown(store):
    class Silent(MemoryIO):
        def create_exclusive(self, path, data):
            raise OSError("no answer")

    outcome = publish(replace(store, io=Silent(store.io.files)), OURS, BASE, frozenset())
    assert isinstance(outcome, Unknown)
    assert str(outcome.cause) == "no answer"


def test_base_expired_after_creation_is_published(store):
    """Expiry keeps the newest snapshot, so it may remove the base as soon as ours is there."""
    assert publish(store, OURS, BASE, frozenset()) == Published()


def test_base_rolled_back_withdraws_snapshot(store):
    put(store, snapshot(2))
    assert publish(store, OURS, BASE, frozenset()) == Lost()
    assert not store.snapshots.exists(5)


def test_base_with_reused_id_withdraws_snapshot(store):
    put(store, snapshot(3), snapshot(4, delta_manifest_list="after the rollback"))
    assert publish(store, OURS, BASE, frozenset()) == Lost()
    assert not store.snapshots.exists(5)


def test_orphan_of_another_history_blocks(store):
    orphan = snapshot(5, delta_manifest_list="orphan", parent_delta_manifest_list="rolled back")
    put(store, BASE, orphan)
    assert publish(store, OURS, BASE, frozenset()) == Blocked(orphan)
    assert store.snapshots.get(5) == orphan


@pytest.mark.parametrize(("added", "outcome"), [(frozenset({"a"}), Lost()), (frozenset(), Indeterminate())])
def test_later_snapshot_without_our_files_makes_ours_orphan(added, outcome):
    """Another commit used the id, and expired. Without new files the outcome is unknown. The orphan is deleted."""
    table = TextTable("table append")
    store = table.store
    following = table.commit("write +b")
    store.io.delete(store.snapshots.path(1))
    put(store, replace(following, id=6))
    assert publish(store, OURS, BASE, added) == outcome
    assert not store.snapshots.exists(5)


def test_later_snapshot_that_holds_our_files_follows_ours():
    table = TextTable("table append")
    store = table.store
    table.commit("write +a")
    following = table.commit("write +b")
    for number in (1, 2):
        store.io.delete(store.snapshots.path(number))
    put(store, replace(following, id=6))
    assert publish(store, OURS, BASE, frozenset({"a"})) == Published()


def test_manifest_lists_identify_attempt():
    assert is_ours(OURS, replace(OURS, time_millis=9))
    assert not is_ours(THEIRS, OURS)
