"""Execute plans: a runner runs the tasks in parallel, and one commit publishes their messages."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from paimon_core.commit.clean_up import delete_written_files
from paimon_core.commit.commit_messages import commit_compactions
from paimon_core.commit.publisher import Publisher
from paimon_core.errors import OutOfRangeError
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.operations.jobs.runner import LOCAL, Progress, Runner, Task
from paimon_core.operations.jobs.task import ALL_DUE, CompactionTask, PlanRequest
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore

_ATTEMPTS = 5  # a bucket whose files other processes replace each time needs no compaction from this one
_TOO_LATE: Final = 0  # a marker in place of the number of buckets, which is never 0: files of the task have expired


def run_plan(
    store: FileStore,
    plan: Callable[[FileStore, PlanRequest], Sequence[Task]],
    run: Callable[[FileStore, Task], CommitMessage],
    request: PlanRequest = ALL_DUE,
    *,
    runner: Runner = LOCAL,
    progress: Progress | None = None,
    join: Callable[[Sequence[CommitMessage]], Sequence[CommitMessage]] = list,
) -> tuple[Snapshot | None, list[CommitMessage]]:
    """Plan the newest snapshot, run the tasks and commit their messages once.

    If another commit replaces files of a bucket at the same time (and expiry may already have deleted the old files),
    the bucket is planned, run and committed again, a few times.

    Args:
        store: the table to work on.
        plan: returns the tasks for a request with a snapshot.
        run: runs one task; see `Runner.run_all`.
        request: the request to plan, in each attempt for the newest snapshot.
        runner: runs the tasks.
        progress: called after every task with the bytes done and the total bytes; `None`: no progress reports.
        join: joins the messages of a divided task into one.

    Return the last new snapshot (``None`` if nothing was due), and a message for each task that other commits made
    obsolete in every attempt. Raises CorruptedError for a file that is missing although its snapshot exists,
    OutOfRangeError if the newest snapshot expired in each attempt. After an error, except CommitUnknownError, no new
    file remains.
    """
    publisher = Publisher(store)
    last: Snapshot | None = None
    obsolete: list[CommitMessage] = []
    for attempts_left in reversed(range(_ATTEMPTS)):
        newest = store.snapshots.latest()
        if newest is None:
            return last, []
        try:
            with raise_if_expired(store, newest):
                tasks = plan(store, replace(request, snapshot=newest))
        except OutOfRangeError:
            if attempts_left or obsolete:
                continue
            raise
        if not tasks:
            return last, []
        messages = runner.run_all(store, tasks, partial(_in_time, run, newest), progress)
        snapshot, obsolete = publisher.publish_or_delete(_commit_in_time, messages, join)
        last = snapshot or last
        if not obsolete:
            break
        request = replace(request, buckets={m.bucket_ref for m in obsolete})
    return last, obsolete


def _in_time(
    run: Callable[[FileStore, Any], CommitMessage], planned: Snapshot, store: FileStore, task: CompactionTask
) -> CommitMessage:
    """Return the message of a task of snapshot ``planned``, or a message marked ``_TOO_LATE`` if its files expired."""
    started = time.monotonic()
    try:
        with raise_if_expired(store, planned):
            message = run(store, task)
            return replace(message, compact_seconds=time.monotonic() - started)
    except OutOfRangeError:
        return CommitMessage(*task.bucket_ref, _TOO_LATE)


def _commit_in_time(
    publisher: Publisher,
    messages: Sequence[CommitMessage],
    join: Callable[[Sequence[CommitMessage]], Sequence[CommitMessage]],
) -> tuple[Snapshot | None, list[CommitMessage]]:
    """Commit the messages of buckets whose files all existed; return the snapshot and the messages to redo.

    If files of one task of a bucket had expired, all tasks of the bucket are redone.
    """
    expired = {m.bucket_ref: m for m in messages if m.total_buckets == _TOO_LATE}
    delete_written_files(publisher.store, [m for m in messages if m.bucket_ref in expired])
    in_time = [m for m in messages if m.bucket_ref not in expired]
    snapshot, obsolete = commit_compactions(publisher, join(in_time)) if in_time else (None, [])
    return snapshot, [*obsolete, *expired.values()]
