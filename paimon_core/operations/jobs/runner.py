"""Runners: they run the tasks of a plan, in this process or in the processes of a query engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from paimon_core.fileio.parallel import parallel_map
from paimon_core.lazy import deferred
from paimon_core.memory import MemoryShares

if TYPE_CHECKING:
    from paimon_core.commit.clean_up import delete_written_files
    from paimon_core.manifest.commit_message import CommitMessage
    from paimon_core.operations.jobs.task import CompactionTask
    from paimon_core.store.file_store import FileStore
else:
    delete_written_files = deferred("paimon_core.commit.clean_up", "delete_written_files")

Task = TypeVar("Task", bound="CompactionTask")
Part = TypeVar("Part")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]
"""A function that is called after every task with the bytes done and the total bytes."""
_RUNNERS = 2  # tasks at a time; each task also decodes and encodes its columns in parallel


class Runner(Protocol):
    """An object that runs the tasks of a plan: in this process, or in the processes of a query engine."""

    @property
    def parts(self) -> int:
        """Return the number of tasks into which it pays to divide a divisible task."""

    def run_all(
        self,
        store: FileStore,
        tasks: Sequence[Task],
        run: Callable[[FileStore, Task], CommitMessage],
        progress: Progress | None,
    ) -> list[CommitMessage]:
        """Return the messages of ``run`` for all tasks, in the order of the tasks.

        REQUIRES: ``run`` is a module-level function or a partial of one, because it may be pickled. After an error no
        new file remains, as far as the runner knows the written files.
        """

    def map(
        self, store: FileStore, function: Callable[[FileStore, Part], Result], parts: Sequence[Part]
    ) -> Iterator[Result]:
        """Yield ``function(store, part)`` for all parts, in the order of the parts; raise the first error.

        REQUIRES: ``function`` may run twice for a part. The function, the parts and the results are picklable.
        """


class _Local:
    """A runner with a few threads of this process."""

    parts = 1

    def run_all(
        self,
        store: FileStore,
        tasks: Sequence[Task],
        run: Callable[[FileStore, Task], CommitMessage],
        progress: Progress | None,
    ) -> list[CommitMessage]:
        written: list[CommitMessage] = []  # of all finished tasks, even if their results were not read

        def one(task: Task) -> tuple[Task, CommitMessage]:
            message = run(store, task)
            written.append(message)
            return task, message

        total, bytes_done = sum(task.size for task in tasks), 0
        messages = []
        try:
            for task, message in parallel_map(one, tasks, threads=_threads(store)):
                messages.append(message)
                bytes_done += task.size
                if progress is not None:
                    progress(bytes_done, total)
        except BaseException:
            delete_written_files(store, written)
            raise
        return messages

    def map(
        self, store: FileStore, function: Callable[[FileStore, Part], Result], parts: Sequence[Part]
    ) -> Iterator[Result]:
        return parallel_map(partial(function, store), parts, threads=_threads(store))


def _threads(store: FileStore) -> int:
    """Return the number of tasks at a time: one with ``memory-limit``, which each task may take."""
    return MemoryShares.of(store.options).at_most(_RUNNERS)


LOCAL: Runner = _Local()
