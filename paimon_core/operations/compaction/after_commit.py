"""The work after a commit of rows: compact the buckets that are due, then expire old snapshots.

The rows are already committed, so a failure here does not fail the write: the error is logged, and the next write or
`Table.compact` does the work.
"""

import logging
from collections.abc import Collection

from paimon_core.errors import hide_secrets
from paimon_core.manifest.bucket import BucketRef
from paimon_core.operations.compaction.compact_after_write import compact_written_buckets
from paimon_core.operations.history.expire import expire_after_commit
from paimon_core.operations.jobs.runner import LOCAL, Runner
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

_log = logging.getLogger(__name__)


def after_commit(
    store: FileStore,
    buckets: Collection[BucketRef],
    *,
    writes_changelog: bool = True,
    number: int | None = None,
    runner: Runner = LOCAL,
) -> Snapshot | None:
    """Compact the due buckets, then expire snapshots; return the snapshot of the compaction, or `None`.

    Args:
        store: the table that was written.
        buckets: the buckets that the commit wrote to.
        writes_changelog: False after an overwrite, which writes no changelog.
        number: the commit's number if its user numbers commits (see `compact_written_buckets`), else `None`.
        runner: runs the compactions.
    """
    snapshot = _compacted(store, buckets, writes_changelog, number, runner) if buckets else None
    expire_after_commit(store)
    return snapshot


def _compacted(
    store: FileStore, buckets: Collection[BucketRef], writes_changelog: bool, number: int | None, runner: Runner
) -> Snapshot | None:
    try:
        return compact_written_buckets(store, buckets, writes_changelog=writes_changelog, number=number, runner=runner)
    except Exception as error:
        _log.warning(
            "the rows are committed to %s, but not compacted; the next write or compact() does it%s: %s: %s",
            hide_secrets(store.root),
            ", and only then do they show" if store.traits.hides_level_0 else "",
            type(error).__name__,
            hide_secrets(str(error)),
        )
        return None
