"""Removal of orphan files that fails at any call, and that meets commits, expiries, tags and writing processes.

In every case no referenced file is removed, and a second removal finishes the work of the first.
"""

import multiprocessing
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon_core.errors import OutOfRangeError, PaimonError
from paimon_core.fileio.fileio import FileIO, FileStatus
from paimon_core.table import Table
from tests.core.operations.history.test_orphan_files import ROOT, STRAYS, history, needed_files, opened, searched, shown
from tests.support.draws import draws, points
from tests.support.faulty_io import MODES, Crash, FaultyIO, MemoryIO, Mode
from tests.support.schedule import interleave
from tests.support.tables import keyed_table, orders, rows_of
from tests.support.timeline import all_files


class AgedIO(MemoryIO):
    """A store whose initial files are old and whose later files are young."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files)
        self.old = set(files)

    def copy(self) -> "AgedIO":
        return AgedIO(self.files)

    def list(self, directory: str) -> list[FileStatus]:
        found = super().list(directory)
        return [one if one.is_directory or one.path in self.old else one._replace(modified_ms=2000) for one in found]


def remove(io: FileIO) -> int:
    return opened(io).maintenance.remove_orphan_files(older_than=1000).count


def littered(**options: str) -> AgedIO:
    io = history(**options)
    for name in STRAYS:
        io.write(f"{ROOT}/{name}", b"stray")
    return AgedIO(io.files)


@pytest.mark.drawn
@pytest.mark.parametrize("mode", [pytest.param(m, marks=[pytest.mark.slow] * (m == "torn")) for m in MODES])
def test_survives_fault_at_every_call(mode: Mode):
    base = littered(**{"deletion-vectors.enabled": "true"})
    rows, dry = shown(base), FaultyIO(base.copy())
    assert remove(dry) == len(STRAYS)
    after = set(dry.inner.files)
    for at in points(range(dry.calls)):
        io = base.copy()
        with suppress(OSError, PaimonError, Crash):
            remove(FaultyIO(io, at, mode))
        assert after <= set(io.files) <= set(base.files), (at, dry.log[at])
        remove(io)
        assert set(io.files) == after
    assert shown(dry.inner) == rows


# ---- meetings

turns = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 30)), max_size=20)


def write(*rows):
    def run(io: FileIO) -> None:
        while True:
            with suppress(OutOfRangeError):
                opened(io).write(orders(*rows))
                return

    return run


def expire(io: FileIO) -> None:
    opened(io).maintenance.expire_snapshots(older_than=2**50, retain_max=1, retain_min=1)


def retag(io: FileIO) -> None:
    opened(io).tags.rename("v1", "a")
    opened(io).branches.create("c", tag="a")
    opened(io).tags.delete("a")


def compact(io: FileIO) -> None:
    opened(io).compact(full=True)


@draws(60)
@given(
    turns,
    st.sampled_from([write((1, "x", 1)), compact, retag]),
    st.sampled_from([write((2, "y", 1), (1, "z", 1)), expire]),
    st.sampled_from([{}, {"changelog-producer": "lookup"}, {"deletion-vectors.enabled": "true"}]),
)
def test_removal_keeps_files_of_concurrent_operations(drawn, one, other, options):
    base = littered(**options)
    results = interleave(base, [remove, one, other], drawn)
    assert not [r for r in results if isinstance(r, Exception)], results
    assert needed_files(opened(base).store) <= set(base.files)
    for branch in ("main", *opened(base).branches.list()):
        for snapshot in opened(base, branch).snapshots():
            opened(base, branch).to_arrow(snapshot_id=snapshot.id)
    base.old = set(base.files)
    remove(base)
    assert not {f"{ROOT}/{name}" for name in STRAYS} & set(base.files)
    assert searched(base) <= needed_files(opened(base).store) | optional(base)


def optional(io: FileIO) -> set[str]:
    """The metadata of changelogs that are the written files themselves: expiry deletes them with the changelog."""
    return {path for path in searched(io) if "/manifest/" in path}


def _write_often(path: str, number: int, seconds: float) -> None:
    """Write until the time is over; each write announces its start, see `_before_writes`."""
    table, end, i = Table.open(path), time.monotonic() + seconds, 0
    started = Path(f"{path}/started-{number}")
    while time.monotonic() < end:
        started.with_suffix(".new").write_text(str(table.store.now()))
        started.with_suffix(".new").replace(started)
        with suppress(OutOfRangeError):
            table.write(orders((number * 100_000 + i, "w", i), (number, "mine", i)))
            i += 1
    with open(f"{path}/written-{number}", "w") as file:
        file.write(str(i))


def _before_writes(table: Table, writers: int) -> int:
    """Return a time (epoch ms) before the start of every running write, however slow the machine is.

    The tenth of a second: files bear the time of the kernel's last tick.
    """
    starts = [Path(f"{table.path}/started-{number}") for number in range(1, writers + 1)]
    return min(int(start.read_text()) if start.exists() else 0 for start in starts) - 100


@pytest.mark.parametrize("seconds", [pytest.param(6, marks=pytest.mark.more), pytest.param(30, marks=pytest.mark.slow)])
def test_writers_of_other_processes_lose_no_row(tmp_path, seconds):
    """Files from before the start of both running writes are removed all the time."""
    table = keyed_table(
        tmp_path / "t",
        **{"bucket": "1", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"},
    )
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_often, args=(table.path, n, seconds)) for n in (1, 2)]
    for writer in writers:
        writer.start()
    removals = 0
    while any(writer.is_alive() for writer in writers):
        with suppress(OutOfRangeError):
            table.maintenance.remove_orphan_files(older_than=_before_writes(table, 2))
            removals += 1
    assert [writer.exitcode for writer in writers] == [0, 0]
    counts = [int((tmp_path / "t" / f"written-{n}").read_text()) for n in (1, 2)]
    rows = rows_of(Table.open(table.path).to_arrow())
    expected = {n * 100_000 + i for n, count in zip((1, 2), counts, strict=True) for i in range(count)} | {1, 2}
    assert {row["id"] for row in rows} == expected
    assert removals > 1
    assert min(counts) > 0
    table = Table.open(table.path)
    time.sleep(0.01)
    table.maintenance.remove_orphan_files(older_than=table.store.now())
    left = {p for p in all_files(table.store.io, table.path) if "/manifest/" in p or "/bucket-" in p}
    assert left == needed_files(table.store)


def _read_often(path: str, number: int, seconds: float) -> None:
    """Read the newest snapshot and one that is about to expire; no error but OutOfRangeError may come."""
    end, reads, late = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        table = Table.open(path)
        try:
            newest = table.snapshot()
            rows = table.to_arrow(snapshot_id=newest.id)
            assert {1, 2} <= set(rows.column("id").to_pylist())
            table.to_arrow(snapshot_id=table.snapshots()[0].id)
            reads += 1
        except OutOfRangeError:
            late += 1
    with open(f"{path}/read-{number}", "w") as file:
        file.write(f"{reads} {late}")


@pytest.mark.slow
def test_readers_and_writers_of_other_processes(tmp_path):
    """Expire snapshots and remove orphans from before all running writes, while four readers and four writers run."""
    seconds = 40
    table = keyed_table(
        tmp_path / "t",
        **{"bucket": "1", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2", "write-only": "true"},
    )
    table.write(orders((1, "mine", 0), (2, "mine", 0)))
    context = multiprocessing.get_context("spawn")
    works = [context.Process(target=work, args=(table.path, n, seconds)) for work in (_write_often, _read_often)
             for n in (1, 2, 3, 4)]  # fmt: skip
    for work in works:
        work.start()
    rounds = 0
    while any(work.is_alive() for work in works):
        with suppress(OutOfRangeError):
            table.maintenance.expire_snapshots(retain_max=2, retain_min=1)
            table.maintenance.remove_orphan_files(older_than=_before_writes(table, 4))
            rounds += 1
    assert [work.exitcode for work in works] == [0] * 8
    assert rounds > 1
    counts = [int((tmp_path / "t" / f"written-{n}").read_text()) for n in (1, 2, 3, 4)]
    reads = [list(map(int, (tmp_path / "t" / f"read-{n}").read_text().split())) for n in (1, 2, 3, 4)]
    assert min(done for done, _ in reads) > 0
    expected = {n * 100_000 + i for n, count in enumerate(counts, 1) for i in range(count)} | {1, 2, 3, 4}
    actual = {row["id"] for row in rows_of(Table.open(table.path).to_arrow())}
    assert actual == expected - {n for n, count in enumerate(counts, 1) if not count and n > 2}
    assert Table.open(table.path).verify(deep=True).sound
