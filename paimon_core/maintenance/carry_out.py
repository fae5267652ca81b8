"""Plans carried out: tasks run side by side, here or wherever a runner takes them, their messages committed once."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from paimon_core.commit.table_commit import TableCommit
from paimon_core.fileio.parallel import parallel_map
from paimon_core.maintenance.task import Buckets, CompactionTask
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

__all__ = ["HERE", "Progress", "Runner", "carry_out"]

Task = TypeVar("Task", bound=CompactionTask)
Progress = Callable[[int, int], None]
"""Told after every task how many bytes are done, of how many."""
_ROUNDS = 5  # a bucket that others replace again and again needs none from us
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


class _Here:
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


HERE: Runner = _Here()


def carry_out(
    store: FileStore,
    plan: Callable[[Buckets | None], Sequence[Task]],
    run: Callable[[FileStore, Task], CommitMessage],
    *,
    runner: Runner = HERE,
    progress: Progress | None = None,
    join: Callable[[Sequence[CommitMessage]], Sequence[CommitMessage]] = list,
) -> tuple[Snapshot | None, list[CommitMessage]]:
    """Run what ``plan(None)`` gives and commit it once; the snapshot, and the messages that others made obsolete.

    Buckets whose files were replaced meanwhile are planned (``plan(buckets)``), run and committed again, a few times.
    The snapshot is None where there was nothing to do. ``join`` makes whole messages of those of parts. After an error
    no file is left, but for CommitUnknownError.
    """
    committer = TableCommit(store)
    made: Snapshot | None = None
    late: list[CommitMessage] = []
    for _ in range(_ROUNDS):
        tasks = plan({(m.partition, m.bucket) for m in late} if late else None)
        if not tasks:
            return made, []
        messages = runner.run_all(store, tasks, run, progress)
        snapshot, late = committer.or_abort(messages, partial(_joined, committer, join, messages))
        made = snapshot or made
        if not late:
            break
    return made, late


def _joined(
    committer: TableCommit,
    join: Callable[[Sequence[CommitMessage]], Sequence[CommitMessage]],
    messages: Sequence[CommitMessage],
) -> tuple[Snapshot | None, list[CommitMessage]]:
    return committer.compact(join(messages))
