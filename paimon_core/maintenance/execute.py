"""Plans carried out: tasks run side by side, here or wherever a runner takes them, their messages committed once."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from paimon_core.commit.table_commit import TableCommit
from paimon_core.errors import OutOfRangeError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.maintenance.task import Buckets, CompactionTask
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import raise_if_expired
from paimon_core.store.file_store import FileStore

__all__ = ["LOCAL", "Progress", "Runner", "run_plan"]

Task = TypeVar("Task", bound=CompactionTask)
Progress = Callable[[int, int], None]
"""Told after every task how many bytes are done, of how many."""
_ROUNDS = 5  # a bucket that others replace again and again needs none from us
_TOO_LATE: Final = 0  # in place of a number of buckets, which is never 0: files of the task were gone
_RUNNERS = 2  # tasks at a time; each decodes and encodes its columns in parallel as well


class Runner(Protocol):
    """Where the tasks of a plan run: in this process, or in those of an engine that has many."""

    @property
    def parts(self) -> int:
        """How many tasks are worth making of one that can be divided."""

    def run_all(
        self,
        store: FileStore,
        tasks: Sequence[Task],
        run: Callable[[FileStore, Task], CommitMessage],
        progress: Progress | None,
    ) -> list[CommitMessage]:
        """What ``run`` says of every task, in their order. ``run`` is a module-level function: it may travel.

        After an error no file is left, as far as it can be known what was written.
        """


class _Local:
    """A few threads of this process."""

    parts = 1

    def run_all(
        self,
        store: FileStore,
        tasks: Sequence[Task],
        run: Callable[[FileStore, Task], CommitMessage],
        progress: Progress | None,
    ) -> list[CommitMessage]:
        written: list[CommitMessage] = []  # by tasks that ended, also those whose result nobody came to look at

        def one(task: Task) -> tuple[Task, CommitMessage]:
            message = run(store, task)
            written.append(message)
            return task, message

        total, done = sum(task.size for task in tasks), 0
        messages = []
        try:
            for task, message in parallel_map(one, tasks, threads=_RUNNERS):
                messages.append(message)
                done += task.size
                if progress is not None:
                    progress(done, total)
        except BaseException:
            TableCommit(store).abort(written)
            raise
        return messages


LOCAL: Runner = _Local()


def run_plan(
    store: FileStore,
    plan: Callable[[Snapshot, Buckets | None], Sequence[Task]],
    run: Callable[[FileStore, Task], CommitMessage],
    *,
    runner: Runner = LOCAL,
    progress: Progress | None = None,
    join: Callable[[Sequence[CommitMessage]], Sequence[CommitMessage]] = list,
) -> tuple[Snapshot | None, list[CommitMessage]]:
    """Run what ``plan`` makes of the newest snapshot and commit it once; the snapshot, and a message for each task that
    others made obsolete.

    Buckets whose files others replaced meanwhile, and may have deleted with their snapshot, are planned (``plan(newest,
    buckets)``), run and committed again, a few times. The snapshot is None where there was nothing to do. ``join``
    makes whole messages of those of parts. Raises CorruptedError for a file that is missing while its snapshot exists,
    OutOfRangeError where the newest snapshot expired each time it was planned. After an error no file is left, but for
    CommitUnknownError.
    """
    committer = TableCommit(store)
    made: Snapshot | None = None
    late: list[CommitMessage] = []
    for left in reversed(range(_ROUNDS)):
        newest = store.snapshots.latest()
        if newest is None:
            return made, []
        try:
            with raise_if_expired(store, newest.id):
                tasks = plan(newest, {(m.partition, m.bucket) for m in late} if late else None)
        except OutOfRangeError:
            if left or late:
                continue
            raise
        if not tasks:
            return made, []
        messages = runner.run_all(store, tasks, partial(_in_time, run, newest.id), progress)
        with committer.aborting_on_failure(messages):
            snapshot, late = _committed(committer, join, messages)
        made = snapshot or made
        if not late:
            break
    return made, late


def _in_time(
    run: Callable[[FileStore, Any], CommitMessage], planned: int, store: FileStore, task: Any
) -> CommitMessage:
    """Return what ``run`` makes of a task of this snapshot, or a message that says that the task's files are gone."""
    try:
        with raise_if_expired(store, planned):
            return run(store, task)
    except OutOfRangeError:
        return CommitMessage(task.partition, task.bucket, _TOO_LATE)


def _committed(
    committer: TableCommit,
    join: Callable[[Sequence[CommitMessage]], Sequence[CommitMessage]],
    messages: Sequence[CommitMessage],
) -> tuple[Snapshot | None, list[CommitMessage]]:
    """Commit what can be; a bucket is done again whole if files of one of its tasks were gone."""
    gone = {(m.partition, m.bucket): m for m in messages if m.total_buckets == _TOO_LATE}
    committer.abort([m for m in messages if (m.partition, m.bucket) in gone])
    in_time = [m for m in messages if (m.partition, m.bucket) not in gone]
    snapshot, late = committer.compact(join(in_time)) if in_time else (None, [])
    return snapshot, [*late, *gone.values()]
