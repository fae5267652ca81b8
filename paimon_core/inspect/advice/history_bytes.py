"""The bytes of data files that the newest snapshot does not need, from listings of the table's directories."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from paimon_core.datafile.blob_references import MANAGED_BLOB
from paimon_core.datafile.blob_references import SUFFIX as BLOB_REFERENCES
from paimon_core.datafile.indexes import INDEX_SUFFIX
from paimon_core.fileio.fileio import join
from paimon_core.fileio.parallel import parallel_map
from paimon_core.fileio.storage import FileStatus
from paimon_core.options.file import DATA_FILE_PATH_DIRECTORY
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import is_bucket_name

MOST_DIRECTORIES = 2_000
"""The most directories that `history_bytes` lists by default."""


@dataclass(frozen=True, slots=True)
class HistoryBytes:
    """Bytes on disk besides the live files.

    Args:
        bytes: the size of these files.
        complete: False if the table has more directories than were listed, so that there may be more bytes.
    """

    bytes: int
    complete: bool


def history_bytes(
    store: FileStore, live: Collection[str], most_directories: int = MOST_DIRECTORIES, threads: int | None = None
) -> HistoryBytes:
    """Return the bytes in the table's bucket directories that do not belong to live files.

    Older snapshots, tags, branches and changelogs hold these files, or nothing refers to them. Files outside of the
    table's directory do not count. Cost: a listing of each partition and each bucket.

    Args:
        store: the table.
        live: the names of the live files of the newest snapshot of the main branch.
        most_directories: the most directories to list.
        threads: the number of listings at a time; `None`: the default number of threads.
    """
    remaining = most_directories
    complete = True

    def listed(directories: list[str]) -> Iterator[FileStatus]:
        nonlocal remaining, complete
        complete = complete and len(directories) <= remaining
        directories = directories[: max(0, remaining)]
        remaining -= len(directories)
        for statuses in parallel_map(store.io.list, directories, threads):
            yield from statuses

    level = [join(store.root, store.options.value(DATA_FILE_PATH_DIRECTORY) or "")]
    for _ in store.schema.partition_keys:
        level = [status.path for status in listed(level) if status.is_directory and "=" in status.name]
    buckets = [status.path for status in listed(level) if status.is_directory and is_bucket_name(status.name)]
    total = sum(
        status.size
        for status in listed(buckets)
        if not status.is_directory
        and not status.name.endswith(MANAGED_BLOB)  # which of them are in use is unknown
        and status.name.removesuffix(INDEX_SUFFIX).removesuffix(BLOB_REFERENCES) not in live
    )
    return HistoryBytes(total, complete)
