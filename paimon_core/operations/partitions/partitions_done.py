"""Mark complete partitions, with a file ``_SUCCESS`` in their directories or on a server, for external schedulers."""

import logging
from collections.abc import Collection, Mapping, Sequence

from paimon_core.commit.overwrite import partition_predicate
from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError, hide_secrets
from paimon_core.fileio.fileio import join
from paimon_core.manifest.bucket import BucketRef
from paimon_core.operations.partitions.success_file import write_success_file
from paimon_core.options.bucket import PARTITION_END_INPUT_TO_DONE, PARTITION_MARK_DONE_ACTION
from paimon_core.scan.entries import live_entries
from paimon_core.store.file_store import FileStore

_log = logging.getLogger(__name__)
_SUCCESS_FILE = "success-file"
_EVENT = "mark-event"


def record_done(store: FileStore, partitions: Sequence[Mapping[str, object]]) -> list[str]:
    """Mark each partition {column: value} as done; return the paths of the success files.

    A missing column stands for all its values. The option ``partition.mark-done-action`` says how: with a file in the
    directory of the partition, by the server of the table, or both.

    Raises NotFoundError for a partition without rows (nothing is marked), InvalidInputError for a table without
    partitions, UnsupportedError for another action, and for a server that cannot mark partitions or does not exist.
    """
    actions = store.options.value(PARTITION_MARK_DONE_ACTION)
    if not actions or not {*actions} <= {_SUCCESS_FILE, _EVENT}:
        raise UnsupportedError(
            f"option {PARTITION_MARK_DONE_ACTION.key!r} of {store.root} is {','.join(actions)!r}: only "
            f"{_SUCCESS_FILE!r} and {_EVENT!r} are supported"
        )
    if not store.schema.partition_keys:
        raise InvalidInputError(f"{store.root} has no partitions")
    snapshot = store.snapshots.latest()
    done_partitions: dict[bytes, None] = {}
    for spec in partitions:
        where = partition_predicate(store, [spec])
        live = () if snapshot is None else live_entries(store, snapshot, partition=where, with_stats=False).live
        matching = sorted({entry.bucket_ref.partition for entry in live})
        if not matching:
            raise NotFoundError(f"partition {dict(spec)} of {store.root} has no rows")
        done_partitions.update(dict.fromkeys(matching))
    if _EVENT in actions and not store.environment.report_done(store, list(done_partitions)):
        raise UnsupportedError(
            f"option {PARTITION_MARK_DONE_ACTION.key!r} of {store.root} is {_EVENT!r}, but the table is not opened "
            "through a REST catalog, whose server marks partitions: open it there, or set 'success-file'"
        )
    return _write_success_files(store, done_partitions) if _SUCCESS_FILE in actions else []


def record_done_after_commit(store: FileStore, written: Collection[BucketRef]) -> None:
    """Mark the partitions that a batch wrote as done, if ``partition.end-input-to-done`` is set.

    Never fails: the rows are already committed, so errors are logged.
    """
    if not (written and store.schema.partition_keys and store.options.value(PARTITION_END_INPUT_TO_DONE)):
        return
    try:
        _write_success_files(store, sorted({bucket.partition for bucket in written}))
    except Exception as error:
        _log.warning(
            "the rows are committed to %s, but not all of their partitions were marked as done; "
            "call the procedure mark_partition_done: %s",
            hide_secrets(store.root),
            hide_secrets(str(error)),
        )


def _write_success_files(store: FileStore, partitions: Collection[bytes]) -> list[str]:
    directories = [store.bucket_path(BucketRef(partition, 0)).rpartition("/")[0] for partition in partitions]
    paths = [join(directory, "_SUCCESS") for directory in directories]
    for path in paths:
        write_success_file(store, path)
    store.sync(paths)
    return paths
