"""File indexes for the data files that lack some: the files stay, and their entries are replaced in one COMPACT."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from paimon_core.commit.best_effort import best_effort
from paimon_core.commit.clean_up import delete_written_files
from paimon_core.commit.conflict import later_ties
from paimon_core.datafile.rebuild_index import lacks_indexes, with_indexes
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.commit_message import CommitMessage
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.operations.jobs.execute import LOCAL, Progress, Runner, run_plan
from paimon_core.operations.jobs.task import BucketFiles, PlanRequest, live_files, partition_choice
from paimon_core.options.file_index import indexed
from paimon_core.predicate.expr import Predicate
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

_TASK_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class RewriteIndexTask(BucketFiles):
    """A task that makes the indexes of some files of one bucket."""


def rewrite_file_index(
    store: FileStore,
    *,
    partitions: Sequence[Mapping[str, object]] | None = None,
    filter: Predicate | None = None,
    runner: Runner = LOCAL,
    progress: Progress | None = None,
) -> Snapshot | None:
    """Give each data file the indexes that the options of the table ask for, in one commit; `None`: no file lacks one.

    Arguments and errors are those of `compact_table`.
    """
    request = PlanRequest(True, partition_choice(store, partitions, filter))
    return run_plan(store, plan_indexes, run, request, runner=runner, progress=progress)[0]


def plan_indexes(store: FileStore, request: PlanRequest) -> list[RewriteIndexTask]:
    """Return tasks for the files that lack an index; files are read by the task only.

    A file of level 0 with rows that may be as new as those of a later file stays as it is: its new entry would come
    after that file, and other rows would win. A compaction gives it its indexes.
    """
    request = request.at_snapshot(store)
    if not any(indexed(store.options)):
        return []
    tasks = []
    for bucket, files in live_files(store, request, with_stats=True).items():
        ref = BucketRef(bucket.partition, bucket.bucket)
        due = _movable(store, files)
        lacking = parallel_map(partial(lacks_indexes, store, ref), due)
        chosen = [file for file, lacks in zip(due, lacking, strict=True) if lacks]
        tasks += [RewriteIndexTask(*bucket, group) for group in _groups(chosen)]
    return tasks


def run(store: FileStore, task: RewriteIndexTask) -> CommitMessage:
    """Write the index files; no reader sees them until the message is committed. After an error no file is left."""
    made: list[tuple[DataFileMeta, DataFileMeta]] = []
    try:
        for file in task.files:
            indexed_file = with_indexes(store, task.bucket_ref, file)
            if indexed_file is not file:
                made.append((file, indexed_file))
    except BaseException:
        with best_effort("deleting the files of a failed rewriting of indexes"):
            delete_written_files(store, [_message(task, made)])
        raise
    return _message(task, made)


def _message(task: RewriteIndexTask, made: Sequence[tuple[DataFileMeta, DataFileMeta]]) -> CommitMessage:
    before, after = tuple(old for old, _ in made), tuple(new for _, new in made)
    return CommitMessage(*task.location, compact_before=before, compact_after=after)


def _movable(store: FileStore, files: Sequence[DataFileMeta]) -> list[DataFileMeta]:
    """Return the files whose entries may move behind all others of the bucket."""
    if not store.schema.primary_keys:
        return list(files)
    fixed = set(later_ties([file for file in files if not file.level], store.schema.key_arrow))
    return [file for file in files if file.file_name not in fixed]


def _groups(files: Sequence[DataFileMeta]) -> Iterator[tuple[DataFileMeta, ...]]:
    """Yield the files, in order, in groups for one task each."""
    group: list[DataFileMeta] = []
    size = 0
    for file in files:
        group.append(file)
        size += file.file_size
        if size >= _TASK_BYTES:
            yield tuple(group)
            group, size = [], 0
    if group:
        yield tuple(group)
