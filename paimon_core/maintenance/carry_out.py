"""Plans carried out here and now: tasks run side by side, their messages committed once."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from paimon_core.commit.table_commit import TableCommit
from paimon_core.errors import CommitUnknownError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.maintenance.task import CompactionTask
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

__all__ = ["Progress", "carry_out"]

Task = TypeVar("Task", bound=CompactionTask)
Progress = Callable[[int, int], None]
"""Told after every task how many bytes are done, of how many."""
_RUNNERS = 2  # tasks at a time; each decodes and encodes its columns in parallel as well


def carry_out(
    store: FileStore,
    tasks: Sequence[Task],
    run: Callable[[FileStore, Task], CommitMessage],
    *,
    progress: Progress | None = None,
    join: Callable[[Sequence[CommitMessage]], Sequence[CommitMessage]] = list,
) -> Snapshot | None:
    """Run all tasks and commit what they did; None when there is none. After an error the table is as it was and no
    file is left, but for CommitUnknownError, where the snapshot may refer to them."""
    if not tasks:
        return None
    committer = TableCommit(store)
    written: list[CommitMessage] = []  # by tasks that ended, also those whose result nobody came to look at

    def one(task: Task) -> tuple[Task, CommitMessage]:
        message = run(store, task)
        written.append(message)
        return task, message

    total, done = sum(task.size for task in tasks), 0
    try:
        messages = []
        for task, message in parallel_map(one, tasks, threads=_RUNNERS):
            messages.append(message)
            done += task.size
            if progress is not None:
                progress(done, total)
        joined = join(messages)
    except BaseException:
        committer.abort(written)
        raise
    try:
        return committer.commit(joined)
    except CommitUnknownError:
        raise
    except Exception:
        committer.abort(written)
        raise
