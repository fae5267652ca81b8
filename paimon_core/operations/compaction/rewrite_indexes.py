"""Write missing file indexes: the data files stay, and one COMPACT replaces their manifest entries."""

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
from paimon_core.operations.jobs.execute import run_plan
from paimon_core.operations.jobs.runner import LOCAL, Progress, Runner
from paimon_core.operations.jobs.task import BucketFiles, PlanRequest, live_files, partition_choice
from paimon_core.options.file_index import indexed
from paimon_core.predicate.expr import Predicate
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore

_TASK_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class RewriteIndexTask(BucketFiles):
    """A task that writes the indexes of some files of one bucket."""


@dataclass(frozen=True, slots=True)
class IndexRewrite:
    """The result of an index rewrite.

    Fields: the new snapshot (`None` if no file lacked an index), the number of partitions with new entries, and the
    number of files that got indexes.
    """

    snapshot: Snapshot | None
    partitions: int
    files: int


def rewrite_file_index(
    store: FileStore,
    *,
    partitions: Sequence[Mapping[str, object]] | None = None,
    filter: Predicate | None = None,
    runner: Runner = LOCAL,
    progress: Progress | None = None,
) -> IndexRewrite:
    """Write the missing indexes of data files in one commit.

    The table's options determine the indexes. Arguments and errors: see `compact_table`.
    """
    request = PlanRequest(True, partition_choice(store, partitions, filter))
    files: dict[BucketRef, int] = {}  # a bucket that is planned again replaces its number

    def count(messages: Sequence[CommitMessage]) -> Sequence[CommitMessage]:
        for bucket in {message.bucket_ref for message in messages}:
            files[bucket] = sum(len(m.compact_after) for m in messages if m.bucket_ref == bucket)
        return messages

    snapshot, obsolete = run_plan(store, plan_indexes, run, request, runner=runner, progress=progress, join=count)
    for message in obsolete:
        files.pop(message.bucket_ref, None)
    indexed_files = {bucket: number for bucket, number in files.items() if number}
    return IndexRewrite(snapshot, len({bucket.partition for bucket in indexed_files}), sum(indexed_files.values()))


def plan_indexes(store: FileStore, request: PlanRequest) -> list[RewriteIndexTask]:
    """Return tasks for the files that lack an index; only the tasks read the files.

    A level-0 file whose rows may be as new as the rows of a later file is left out: its new entry would follow the
    later file, and other rows would win. A compaction will write its indexes.
    """
    request = request.at_snapshot(store)
    if not any(indexed(store.options)):
        return []
    tasks = []
    for bucket, files in live_files(store, request, with_stats=True).items():
        ref = BucketRef(bucket.partition, bucket.bucket)
        due = _movable(store, files)
        lacking = parallel_map(partial(lacks_indexes, store, ref), due)
        selected = [file for file, lacks in zip(due, lacking, strict=True) if lacks]
        tasks += [RewriteIndexTask(*bucket, group) for group in _groups(selected)]
    return tasks


def run(store: FileStore, task: RewriteIndexTask) -> CommitMessage:
    """Write the index files, which are invisible until the message is committed. After an error no file remains."""
    replaced: list[tuple[DataFileMeta, DataFileMeta]] = []
    try:
        for file in task.files:
            indexed_file = with_indexes(store, task.bucket_ref, file)
            if indexed_file is not file:
                replaced.append((file, indexed_file))
    except BaseException:
        with best_effort("deleting the files of a failed index rewrite"):
            delete_written_files(store, [_message(task, replaced)])
        raise
    return _message(task, replaced)


def _message(task: RewriteIndexTask, replaced: Sequence[tuple[DataFileMeta, DataFileMeta]]) -> CommitMessage:
    before, after = tuple(old for old, _ in replaced), tuple(new for _, new in replaced)
    return CommitMessage(*task.location, compact_before=before, compact_after=after)


def _movable(store: FileStore, files: Sequence[DataFileMeta]) -> list[DataFileMeta]:
    """Return the files whose entries may move behind all other entries of the bucket."""
    if not store.schema.primary_keys:
        return list(files)
    fixed = set(later_ties([file for file in files if not file.level], store.schema.key_arrow))
    return [file for file in files if file.file_name not in fixed]


def _groups(files: Sequence[DataFileMeta]) -> Iterator[tuple[DataFileMeta, ...]]:
    """Yield the files in order, in one group for each task."""
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
