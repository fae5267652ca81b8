"""Compact manifests: publish the newest snapshot again with the smallest number of manifests."""

from paimon_core.commit.changes import Changes
from paimon_core.commit.publisher import Publisher
from paimon_core.options.snapshot import (
    MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE,
    MANIFEST_MERGE_MIN_COUNT,
    MANIFEST_TARGET_FILE_SIZE,
)
from paimon_core.scan.entries import manifest_metas
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.file_store import FileStore


def compact_manifests(store: FileStore) -> Snapshot | None:
    """Merge the manifests of the newest snapshot into a few large ones, in a COMPACT; `None` if nothing changes."""
    always = {MANIFEST_FULL_COMPACTION_THRESHOLD_SIZE.key: "1 b", MANIFEST_MERGE_MIN_COUNT.key: "1"}
    publisher = Publisher(store.with_options(always))

    def decide(base: Snapshot | None) -> Changes | None:
        due = base is not None and manifests_to_compact(store, base)
        return Changes(CommitKind.COMPACT, (), built_on_base=True) if due else None

    return publisher.publish(publisher.identity(), decide, CommitKind.COMPACT)


def manifests_to_compact(store: FileStore, snapshot: Snapshot) -> bool:
    """Return True if a full merge would change manifests: several are small, or one has deleted files' entries."""
    target, metas = store.options.value(MANIFEST_TARGET_FILE_SIZE), manifest_metas(store, snapshot)
    small = sum(meta.file_size < target for meta in metas)
    return small > 1 or (len(metas) > 1 and any(meta.num_deleted_files for meta in metas))
