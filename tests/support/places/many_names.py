"""A table with many files that no snapshot refers to: listings by pages, and operations that need listings."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from paimon_core.fileio.fileio import FileIO
from tests.support.places.network import Link

_THREADS = 32


def check_many_names(link: Link, count: int) -> str:
    """Put ``count`` files into the bucket of a table; list them, expire, find the orphans, delete the directory.

    Returns the seconds and the calls of each.
    """
    near, directory = FileIO.of(link.path, link.options), f"{link.path}/bucket-0"
    before = {status.name for status in near.list(directory)}
    names = {f"left-{number:06}.parquet" for number in range(count)}
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda name: near.write(f"{directory}/{name}", b""), names))
    time.sleep(1)  # stores keep times in seconds
    expected, far, far_directory = link.rows(), FileIO.of(link.far_path, link.far_options), f"{link.far_path}/bucket-0"
    report: list[str] = []

    @contextmanager
    def measured(operation: str) -> Iterator[None]:
        link.proxy.arm("delay", lambda number, line: False)
        begun = time.monotonic()
        yield
        report.append(f"{operation} {time.monotonic() - begun:.1f} s, {len(link.proxy.seen)} calls")

    with measured("list"):
        listed = [status.name for status in far.list(far_directory)]
    assert len(listed) == len(before) + count
    assert {*listed} == before | names
    with measured("expire"):
        link.far().maintenance.expire_snapshots(retain_max=1)
    assert link.rows() == expected
    with measured("find orphans"):
        found = link.far().maintenance.remove_orphan_files(int(time.time() * 1000), dry_run=True)
    assert {path.rpartition("/")[2] for path in found.paths} == names
    with measured("delete"):
        far.delete_directory(far_directory)
    assert near.list(directory) == []
    return f"{count} names: {'; '.join(report)}"
