"""The engine on HDFS: files, tables, races of processes, kills, and name nodes that do not answer."""

import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.errors import NotFoundError, PaimonError
from paimon_core.fileio.fileio import FileIO, MissingDirectoryError
from paimon_core.store.file_store import FileStore
from tests.support.faulty_io import MODES, Crash, FaultyIO

pytestmark = pytest.mark.places

KEYED = Schema(
    pa.schema([pa.field("k", pa.int64(), False), pa.field("v", pa.string())]),
    primary_keys=["k"],
    options={"bucket": "1", "write-only": "true"},
)
LOG = Schema(pa.schema([pa.field("n", pa.int64()), pa.field("by", pa.int64())]))


def rows(*keys, v="v"):
    return pa.table({"k": keys, "v": [v] * len(keys)})


def test_files_and_directories(root):
    io = FileIO.of(root)
    assert not io.exists(root)
    assert io.list(root) == []
    data = os.urandom(20 << 20)
    with io.create(f"{root}/a/big ü=%2F") as sink:
        for at in range(0, len(data), 3 << 20):
            sink.write(memoryview(data)[at : at + (3 << 20)])
        assert sink.tell() == len(data)
    with io.open(f"{root}/a/big ü=%2F") as file:
        file.seek(12345678)
        assert file.read(100) == data[12345678:12345778]
        file.seek(0)
        assert file.read() == data
    assert io.create_exclusive(f"{root}/a/x", b"1")
    assert not io.create_exclusive(f"{root}/a/x", b"2")
    io.write(f"{root}/a/x", b"3")
    assert io.read(f"{root}/a/x") == b"3"
    listed = {status.name: status for status in io.list(f"{root}/a")}
    assert set(listed) == {"big ü=%2F", "x"}
    assert listed["x"].path == f"{root}/a/x"
    assert (listed["x"].size, listed["big ü=%2F"].size, listed["x"].is_directory) == (1, len(data), False)
    assert abs(listed["x"].modified_ms - time.time() * 1000) < 60_000
    assert io.list(f"{root}/a/x") == []
    assert not io.exists(f"{root}/a/x/y")
    assert not io.delete_empty_directory(f"{root}/a")
    assert not io.delete_empty_directory(f"{root}/a/x")
    io.rename_directory(f"{root}/a", f"{root}/b/c")
    with pytest.raises(FileExistsError):
        io.rename_directory(f"{root}/b/c", f"{root}/b")
    with pytest.raises(FileNotFoundError):
        io.rename_directory(f"{root}/a", f"{root}/d")
    with pytest.raises(MissingDirectoryError):
        io.inside(f"{root}/a").write(f"{root}/a/y/z", b"")
    with pytest.raises(NotADirectoryError):
        io.write(f"{root}/b/c/x/y", b"")
    io.delete(f"{root}/b/c/x")
    io.delete(f"{root}/b/c/x")
    with pytest.raises(FileNotFoundError):
        io.read(f"{root}/b/c/x")
    io.delete_directory(f"{root}/b")
    io.delete_directory(f"{root}/b")
    assert io.list(root) == []


def test_listing_of_many_pages(root):
    io = FileIO.of(root)
    names = {f"d{i}" for i in range(2500)}  # the name node lists 1000 at a time
    client = io._storage(root)._client
    directory = "/" + root.rpartition("/")[2]

    def make(inner):
        for name in names:
            inner.mkdirs(f"{directory}/{name}", 0o755, True)

    client.call(root, make)
    assert {status.name for status in io.list(root)} == names


def test_name_services_and_mount_tables(cluster, root):
    port = cluster[0].rpartition(":")[2]
    path = "/" + root.rpartition("/")[2]
    FileIO.of(root).write(f"{root}/f", b"1")
    service = {
        "dfs.nameservices": "Lake",
        "dfs.ha.namenodes.Lake": "down,up",
        "dfs.namenode.rpc-address.Lake.down": "localhost:1",
        "dfs.namenode.rpc-address.Lake.up": f"localhost:{port}",
    }
    assert FileIO.of("hdfs://Lake/", service).read(f"hdfs://Lake{path}/f") == b"1"
    default = {**service, "fs.defaultFS": "hdfs://Lake"}
    assert FileIO.of("hdfs:///", default).read(f"hdfs://{path}/f") == b"1"
    mounted = {"fs.viewfs.mounttable.all.link./here": root, "fs.viewfs.mounttable.all.linkFallback": cluster[0]}
    io = FileIO.of("viewfs://all/", mounted)
    assert io.create_exclusive("viewfs://all/here/g", b"2")
    assert not io.create_exclusive("viewfs://all/here/g", b"3")
    assert FileIO.of(root).read(f"{root}/g") == b"2"


def test_tables_are_renamed_and_dropped_in_one_step(root):
    catalog = FileSystemCatalog(root)
    catalog.create_database("d")
    table = catalog.create_table("d.t", KEYED)
    table.write(rows(1, 2))
    catalog.rename_table("d.t", "d.u")
    with pytest.raises((NotFoundError, FileNotFoundError)):
        table.write(rows(3))
    renamed = catalog.table("d.u")
    renamed.write(rows(2, 3))
    renamed.maintenance.compact(full=True)
    assert sorted(renamed.to_arrow()["k"].to_pylist()) == [1, 2, 3]
    catalog.drop_table("d.u")
    with pytest.raises(NotFoundError):
        renamed.write(rows(4))
    assert not FileIO.of(root).exists(f"{root}/d.db/u")
    assert not FileIO.of(root).exists(f"{root}/d.db/t")


def write_log(path, commits, number, barrier, results):
    """Commit rows as one of several processes, each with a connection of its own."""
    table = Table.open(path)
    barrier.wait()
    for n in range(commits):
        table.write(pa.table({"n": [n], "by": [number]}))
    results.put(number)


@pytest.mark.parametrize(
    ("writers", "commits"),
    [(2, 4), pytest.param(2, 30, marks=pytest.mark.slow), pytest.param(8, 8, marks=pytest.mark.slow)],
)
def test_processes_race_for_commits(root, writers, commits):
    catalog = FileSystemCatalog(root)
    catalog.create_database("d")
    table = catalog.create_table("d.t", LOG)
    race(table.path, writers, commits)
    assert_each_row_once(table.path, writers, commits)


def race(path, writers, commits):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(writers), context.Queue()
    arguments = [(path, commits, number, barrier, results) for number in range(writers)]
    processes = [context.Process(target=write_log, args=each) for each in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(600)
    assert [process.exitcode for process in processes] == [0] * writers


def assert_each_row_once(path, writers, commits):
    table = Table.open(path)
    found = sorted((row["by"], row["n"]) for row in table.to_arrow().to_pylist())
    assert found == [(by, n) for by in range(writers) for n in range(commits)]
    ids = [snapshot.id for snapshot in table.snapshots()]
    assert ids == list(range(1, len(ids) + 1))
    assert len(ids) >= writers * commits


KILLED = """
import sys
import pyarrow as pa
from paimon_core import Table
table = Table.open(sys.argv[1])
for n in range(1000):
    table.write(pa.table({"n": [n], "by": [int(sys.argv[2])]}))
    print(n, flush=True)
"""


def test_killed_writers_leave_whole_commits(root):
    catalog = FileSystemCatalog(root)
    catalog.create_database("d")
    table = catalog.create_table("d.t", LOG)
    for by in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", KILLED, table.path, str(by)], stdout=subprocess.PIPE, text=True
        )
        acknowledged = int(writer.stdout.readline())
        time.sleep(0.23 * by)
        writer.send_signal(signal.SIGKILL)
        acknowledged = max([acknowledged, *(int(line) for line in writer.stdout if line.endswith("\n"))])
        writer.wait()
        found = sorted(row["n"] for row in Table.open(table.path).to_arrow().to_pylist() if row["by"] == by)
        assert found in (list(range(acknowledged + 1)), list(range(acknowledged + 2)))
    table.write(pa.table({"n": [0], "by": [4]}))
    assert Table.open(table.path).to_arrow().num_rows == table.to_arrow().num_rows


def test_name_node_that_hangs(cluster, root):
    """A call ends within the limit, and a later one succeeds."""
    io = FileIO.of(root, {"ipc.client.rpc-timeout.ms": "1500"})
    io.write(f"{root}/f", b"1")
    os.kill(cluster[1], signal.SIGSTOP)
    try:
        begun = time.monotonic()
        with pytest.raises(TimeoutError, match=r"did not answer within 1.5 seconds"):
            io.create_exclusive(f"{root}/g", b"2")
        assert time.monotonic() - begun < 10
    finally:
        os.kill(cluster[1], signal.SIGCONT)
    assert io.read(f"{root}/f") == b"1"


def test_unreachable_name_node_is_an_error_in_seconds():
    begun = time.monotonic()
    with pytest.raises(OSError, match="Connection refused"):
        FileIO.of("hdfs://localhost:1/t").exists("hdfs://localhost:1/t")
    assert time.monotonic() - begun < 60


@pytest.mark.slow
def test_faults_at_calls_of_a_commit(root):
    """As in tests/fault/test_commit_faults.py: a table is as before or after the commit, and repeating it is safe."""
    catalog = FileSystemCatalog(root)
    catalog.create_database("d")
    points = 0
    for first, mode in enumerate(MODES):  # each call in one mode
        for at in itertools.count(first, len(MODES)):
            name = f"d.{mode.replace('-', '_')}_{at}"
            table = catalog.create_table(name, KEYED)
            table.write(rows(1))
            io = FaultyIO(FileIO.of(table.path), at, mode)
            done = attempt(io, table)
            before_or_after = sorted(Table.open(table.path).to_arrow()["k"].to_pylist())
            assert before_or_after in ([1], [1, 2])
            assert done is None or before_or_after == [1, 2]
            attempt(FileIO.of(table.path), table)
            assert sorted(Table.open(table.path).to_arrow()["k"].to_pylist()) == [1, 2]
            assert len([s for s in Table.open(table.path).snapshots() if s.commit_kind == "APPEND"]) == 2
            if io.calls <= at:
                break
            points += 1
    print(f"{points} fault points")


def attempt(io, table):
    """Write one row with an identity, so that a repetition is the same commit; return None if it fails."""
    try:
        opened = Table(FileStore(io, table.path, table.schema))
        writer = opened.writer()
        writer.write(rows(2))
        return opened.committer("writer-1").commit(writer.prepare_commit(), 7, started_from=writer.started_from)
    except (OSError, PaimonError, Crash):
        return None
