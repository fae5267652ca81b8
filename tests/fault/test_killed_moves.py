"""kill -9 of a process that migrates, imports or clones, at calls of its storage: no row is lost or doubled.

Unlike `test_moving_faults`, a real process dies on a real disk, with its threads and its open files.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.catalog.filesystem import FileSystemCatalog
from paimon_core.errors import InvalidInputError
from paimon_core.fileio.fileio import FileIO
from paimon_core.schema.schema import Schema
from tests.support.faulty_io import FaultyIO
from tests.support.tables import ORDERS, orders

T = TypeVar("T")
ROOT = Path(__file__).parent.parent.parent
IDS = range(12)
RUN = "from tests.fault.test_killed_moves import main; main()"


def catalogs(home: Path) -> tuple[FileSystemCatalog, FileSystemCatalog]:
    return FileSystemCatalog(str(home / "w")), FileSystemCatalog(str(home / "x"))


def prepare(home: Path) -> None:
    """Three files of four ids each, an empty table for them, and a table with the same ids to clone."""
    for number in range(3):
        (home / f"in/day={number}").mkdir(parents=True)
        data = orders(*((i, "v", i) for i in IDS[4 * number : 4 * number + 4]))
        pq.write_table(data, home / f"in/day={number}/a.parquet")
    here, there = catalogs(home)
    here.create_database("db")
    there.create_database("db")
    here.create_table("db.loaded", Schema(ORDERS.append(pa.field("day", pa.int32())), partition_keys=["day"]))
    source = here.create_table("db.source", Schema(ORDERS, ["id"], options={"bucket": "2"}))
    for start in range(0, len(IDS), 4):
        source.write(orders(*((i, "v", i) for i in IDS[start : start + 4])))


def migrate(home: Path) -> None:
    catalogs(home)[0].migrate(str(home / "in"), "db.migrated", move=True)


def load(home: Path) -> None:
    catalogs(home)[0].table("db.loaded").add_files(str(home / "in"), move=True)


def clone(home: Path) -> None:
    here, there = catalogs(home)
    here.clone("db.source", there, "db.cloned")


OPERATIONS: dict[str, Callable[[Path], None]] = {"migrate": migrate, "load": load, "clone": clone}


class KillingIO(FaultyIO):
    """Kills its process at call number ``at``, in the middle of a call that has a middle."""

    def _call(self, verb: str, path: str, act: Callable[[], T], half: Callable[[], object] | None = None) -> T:
        with self._lock:
            number = len(self.log)
            self.log.append((verb, path))
        if number == self.at:
            if half is not None:
                half()
            os.kill(os.getpid(), signal.SIGKILL)
        return act()


def main() -> None:
    """Run an operation in a process of its own, which is killed at a call; print the number of calls if it lives."""
    name, home, at = sys.argv[1:]
    real, made = FileIO.of, {}

    def of(*given: object) -> FileIO:
        if "io" not in made:
            made["io"] = KillingIO(real(*given), int(at))
        return made["io"]

    FileIO.of = staticmethod(of)
    OPERATIONS[name](Path(home))
    print(made["io"].calls)


def run(name: str, home: Path, at: int) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", RUN, name, str(home), str(at)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def rows(home: Path, name: str) -> list[int]:
    """Return the ids in the table that an operation fills; empty: there is no table yet."""
    catalog, table = catalogs(home)[name == "clone"], {"migrate": "migrated", "load": "loaded", "clone": "cloned"}[name]
    if not catalog.table_exists(f"db.{table}"):
        return []
    opened = catalog.table(f"db.{table}")
    assert not opened.verify(deep=True).faults
    return sorted(opened.to_arrow(["id"]).column("id").to_pylist())


def check_killed(name: str, home: Path, at: int) -> bool:
    """Kill an operation at a call, then run it again; return False if it ended before."""
    prepare(home)
    killed = run(name, home, at)
    if killed.returncode == 0:
        return False
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    found = rows(home, name)
    assert found in ([], [*IDS]), at
    allowed = suppress(InvalidInputError) if found else nullcontext()  # all files were moved, or the table is there
    with allowed:
        OPERATIONS[name](home)
    assert rows(home, name) == [*IDS], at
    return True


@pytest.mark.more
@pytest.mark.parametrize(("name", "at"), [("migrate", 30), ("load", 25), ("clone", 40)])
def test_killed_operation_is_finished_by_next_call(tmp_path, name, at):
    assert check_killed(name, tmp_path, at)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_is_killed_at_every_call(tmp_path, name):
    at = 0
    while check_killed(name, tmp_path / str(at), at):
        at += 1
    print(f"{name}: killed at each of {at} calls")
    assert at > 30
