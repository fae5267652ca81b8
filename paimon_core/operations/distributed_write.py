"""A write by many independent tasks: every task writes files, and one commit publishes all of them.

An engine may run a task twice or stop a job at any point. Files that no committed message lists are never read.

Compaction. A task that receives every row of its buckets compacts them while it writes (``WriterRole.exclusive``). A
task cannot always know this, so `DistributedWrite.prepare`, which sees the results of all tasks, drops the compaction
of every bucket that several tasks wrote to. `DistributedWrite.finish` compacts what is still due after the commit.

Dynamic and postponed buckets. A key must get the same bucket in every task. Therefore all tasks read one snapshot,
which the job chooses before they start. The snapshot determines the buckets of existing keys, and the number of buckets
of partitions. A new key's bucket depends only on its hash and this snapshot. The commit joins the tasks' additions to
the index of each bucket. A task that receives all rows of its keys (``KeyShard``) counts the keys instead, and fills
one bucket after the other.

Keys that move between partitions. The result of a row depends on all other rows of its key. Tasks that do not receive
all rows of their keys stage their rows in files that no snapshot refers to. `DistributedWrite.prepare` writes the
staged rows again with a single writer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from paimon_core.commit.clean_up import delete_written_files, without_compaction
from paimon_core.commit.compaction import has_compaction
from paimon_core.errors import InvalidInputError
from paimon_core.lazy import deferred
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.operations.jobs.runner import LOCAL, Runner
from paimon_core.snapshot.started_from import StartedFrom
from paimon_core.store.file_store import FileStore
from paimon_core.write.routing import BucketMode, KeyShard, bucket_mode
from paimon_core.write.table_write import TableWrite, WriterRole

if TYPE_CHECKING:
    from paimon_core.operations.compaction.after_commit import after_commit
    from paimon_core.operations.compaction.staging import drop_staged, route_staged, staging
    from paimon_core.operations.partitions.partitions_done import record_done_after_commit
else:
    after_commit = deferred("paimon_core.operations.compaction.after_commit", "after_commit")
    drop_staged = deferred("paimon_core.operations.compaction.staging", "drop_staged")
    route_staged = deferred("paimon_core.operations.compaction.staging", "route_staged")
    staging = deferred("paimon_core.operations.compaction.staging", "staging")
    record_done_after_commit = deferred("paimon_core.operations.partitions.partitions_done", "record_done_after_commit")

MAX_TASKS: Final = 1 << 20
"""Largest number of tasks in a job. Task i numbers its rows ``i, i + MAX_TASKS, ...``. Thus no two rows of a job share
a sequence number, regardless of the tasks that write to a bucket, and a repeated task assigns the same numbers."""


@dataclass(frozen=True, slots=True)
class TaskWrite:
    """The result of one task: its messages, and the snapshot that its writer read (``None``: no snapshot)."""

    messages: tuple[CommitMessage, ...] = ()
    started_from: StartedFrom | None = None


@dataclass(frozen=True, slots=True)
class PreparedWrite:
    """The messages of a whole job, ready to be committed with ``started_from``."""

    messages: tuple[CommitMessage, ...]
    started_from: StartedFrom | None


@dataclass(frozen=True)
class DistributedWrite:
    """One write by many tasks; it pickles, so that every task and the commit can use a copy of it.

    The steps of a write: `task_writer` in every task, then `prepare`, a commit of the prepared messages, and `finish`.

    Args:
        store: the table to write.
        overwrite: True if the rows replace rows of the table.
        user: the commit user, which is part of the names of files whose order matters.
        sharded: True if every task receives all rows of its keys (`WriterRole.shard`).
        started_from: the snapshot that all tasks read. The default is the newest snapshot if the bucket of a row
            depends on it; otherwise every task reads the newest snapshot when it starts.
        keeps_row_ids: see `TableWrite`.
    """

    store: FileStore
    overwrite: bool = False
    user: str | None = None
    sharded: bool = False
    started_from: StartedFrom | None = None
    keeps_row_ids: bool = False
    staged: bool = field(init=False)
    """The tasks stage their rows: keys may move between partitions, and a task does not receive all rows of a key."""

    def __post_init__(self) -> None:
        mode = bucket_mode(self.store.schema)
        depends = mode not in (BucketMode.HASH_FIXED, BucketMode.BUCKET_UNAWARE)
        if self.started_from is None and depends:
            object.__setattr__(self, "started_from", StartedFrom.of(self.store.snapshots.latest()))
        object.__setattr__(self, "staged", mode is BucketMode.KEY_DYNAMIC and not self.sharded)

    def task_writer(self, task: int, *, exclusive: bool = False, shard: KeyShard | None = None) -> TableWrite:
        """Return the writer of one task.

        Args:
            task: number of the task, from 0. Raises InvalidInputError for ``MAX_TASKS`` or more.
            exclusive: True if no other task writes to the buckets of this task.
            shard: the keys whose rows all go to this task; ``None``: rows of any key may go to any task.
        """
        if task >= MAX_TASKS:
            raise InvalidInputError(
                f"a write may have at most {MAX_TASKS} tasks, but this is task {task}: coalesce first"
            )
        store = staging(self.store) if self.staged else self.store
        role = WriterRole(task, MAX_TASKS, exclusive=exclusive, shard=shard)
        return TableWrite(
            store,
            overwrite=self.overwrite,
            role=role,
            started_from=self.started_from,
            commit_user=self.user,
            keeps_row_ids=self.keeps_row_ids,
        )

    def prepare(self, writes: Sequence[TaskWrite]) -> PreparedWrite:
        """Return the messages to commit from the results of all tasks, after writing staged rows to buckets."""
        messages = [message for write in writes for message in write.messages]
        if self.staged:
            return self._route(messages)
        started_from = StartedFrom.oldest(write.started_from for write in writes)
        tasks = Counter(message.bucket_ref for message in messages)
        store = self.store
        return PreparedWrite(
            tuple(
                without_compaction(store, message)
                if has_compaction(message) and tasks[message.bucket_ref] > 1
                else message
                for message in messages
            ),
            started_from,
        )

    def _route(self, staged: Sequence[CommitMessage]) -> PreparedWrite:
        try:
            with TableWrite(
                self.store, overwrite=self.overwrite, started_from=self.started_from, commit_user=self.user
            ) as writer:
                messages = tuple(route_staged(writer, self.store, staged))
                return PreparedWrite(messages, writer.started_from)
        finally:
            drop_staged(self.store, staged)

    def finish(self, prepared: PreparedWrite, number: int | None = None, runner: Runner = LOCAL) -> None:
        """Compact and expire after the commit of ``prepared``; a batch marks its partitions as done if configured.

        ``number``: the commit's number in a stream, else `None`. ``runner``: runs the compactions.
        """
        buckets = {message.bucket_ref for message in prepared.messages}
        if number is None:
            record_done_after_commit(self.store, buckets)
        after_commit(self.store, buckets, writes_changelog=not self.overwrite, number=number, runner=runner)

    def abort(self, writes: Sequence[TaskWrite]) -> None:
        """Delete the files of the tasks of a job that will not be committed."""
        messages = [message for write in writes for message in write.messages]
        if self.staged:
            drop_staged(self.store, messages)
        else:
            delete_written_files(self.store, messages)
