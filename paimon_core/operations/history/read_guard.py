"""Protect the files of a planned read from expiry with a tag (``scan.plan-auto-tag-for-read.time-retained``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from paimon_core.commit.best_effort import best_effort
from paimon_core.errors import NotFoundError
from paimon_core.lazy import deferred
from paimon_core.options.scan import SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.tags import Tag
from paimon_core.store.file_store import FileStore

if TYPE_CHECKING:
    from paimon_core.operations.history.delete_tag import is_in_timeline
    from paimon_core.operations.history.table_tags import TableTags
else:
    is_in_timeline = deferred("paimon_core.operations.history.delete_tag", "is_in_timeline")
    TableTags = deferred("paimon_core.operations.history.table_tags", "TableTags")

PREFIX = "batch-read-"


def protect_read(store: FileStore, snapshot: Snapshot | None) -> Tag | None:
    """Tag the snapshot of a read for the time in the option; `None` if the option is not set or no tag is needed.

    Like other tags, the tag is deleted after a commit once its retention time has passed. Raises OutOfRangeError if the
    snapshot has just expired, OSError if the storage cannot be written.
    """
    age = store.options.value(SCAN_PLAN_AUTO_TAG_FOR_READ_TIME_RETAINED)
    if age is None or snapshot is None or not is_in_timeline(store, snapshot):  # a tag already keeps its files
        return None
    return TableTags(store).create(f"{PREFIX}{snapshot.id}-{store.new_name()[:8]}", snapshot.id, age)


@contextmanager
def protected_read(store: FileStore, snapshot: Snapshot | None) -> Iterator[None]:
    """Protect the snapshot of a read during the block; afterwards delete the tag if it still exists."""
    tag = protect_read(store, snapshot)
    try:
        yield
    finally:
        if tag is not None:
            with best_effort("deleting the tag of a read", (OSError, NotFoundError)):
                TableTags(store).delete(tag.name)
