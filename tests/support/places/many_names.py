"""A table with many files that no snapshot refers to: listings by pages, and operations that need listings."""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeAlias

import psutil

from paimon_core.fileio.fileio import FileIO
from tests.support.places.network import Link

Fill: TypeAlias = Callable[[str, Collection[str]], None]
"""A function that puts empty files with these names into a directory."""

_THREADS = 32
_BYTES_FOR_EACH_NAME = 2000
"""The most memory of a listing: its entries, and those of the client."""
_FIXED_BYTES = 64 << 20
"""The most memory of a listing besides: pages that are decoded, and connections."""


def by_client(link: Link) -> Fill:
    """Return the function for a store whose server is asked through its client."""
    near = FileIO.of(link.path, link.options)

    def fill(directory: str, names: Collection[str]) -> None:
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(lambda name: near.write(f"{directory}/{name}", b""), names))

    return fill


def check_many_names(link: Link, fill: Fill, count: int, deleted: int, pages: int) -> str:
    """Fill and delete a directory; fill the bucket of a table, list it, expire, and find the orphans.

    ``count``, ``deleted``: the numbers of files in the bucket and in the deleted directory. ``pages``: the least number
    of requests of a listing of the bucket. Returns the seconds and the calls of each operation.
    """
    near, directory, other = FileIO.of(link.path, link.options), f"{link.path}/bucket-0", f"{link.path}/bucket-1"
    before = {status.name for status in near.list(directory)}
    names = {f"left-{number:06}.parquet" for number in range(count)}
    expected, far = link.rows(), FileIO.of(link.far_path, link.far_options)
    report: list[str] = []

    @contextmanager
    def measured(operation: str) -> Iterator[None]:
        link.proxy.arm("delay", lambda number, line: False)
        begun = time.monotonic()
        yield
        report.append(f"{operation} {time.monotonic() - begun:.1f} s, {len(link.proxy.seen)} calls")

    fill(other, {f"left-{number:06}.parquet" for number in range(deleted)})
    with measured(f"delete {deleted}"):
        far.delete_directory(f"{link.far_path}/bucket-1")
    assert near.list(other) == []
    with measured("fill"):
        fill(directory, names)
    time.sleep(1)  # stores keep times in seconds
    with measured("list"), _Memory() as memory:
        listed = [status.name for status in far.list(f"{link.far_path}/bucket-0")]
    report[-1] += f", {memory.grown >> 20} MB"
    assert len(link.proxy.seen) >= pages, link.proxy.seen
    assert memory.grown <= _FIXED_BYTES + _BYTES_FOR_EACH_NAME * count, memory.grown
    assert len(listed) == len(before) + count
    assert {*listed} == before | names
    with measured("expire"):
        link.far().maintenance.expire_snapshots(retain_max=1)
    assert link.rows() == expected
    with measured("find orphans"):
        found = link.far().maintenance.remove_orphan_files(int(time.time() * 1000), dry_run=True)
    assert {path.rpartition("/")[2] for path in found.paths} == names
    return f"{count} names: {'; '.join(report)}"


class _Memory:
    """The resident memory of this process while a block runs, looked at a hundred times a second.

    Attributes:
        grown: after the block, the most bytes beyond those at its begin.
    """

    def __enter__(self) -> "_Memory":
        self._process, self._ended = psutil.Process(), threading.Event()
        self._before = self._process.memory_info().rss
        self.grown = 0
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._watch.join()

    def _look(self) -> None:
        ended = False
        while not ended:
            ended = self._ended.wait(0.01)
            self.grown = max(self.grown, self._process.memory_info().rss - self._before)
