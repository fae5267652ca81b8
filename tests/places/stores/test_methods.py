"""The methods of FileIO on every object store: names, ranges, uploads in parts, pages of listings, copies, deletion."""

import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.fileio.fileio import FileIO

ODD = "dt=a%3Ab c/x#y?z+&é~'\"<b>"
"""A name with characters that URLs, XML and queries escape."""
LISTED = 2500
"""More names than a page of any store."""


@pytest.fixture
def io(root, options):
    return FileIO.of(root, options)


def names(statuses):
    return sorted(status.name for status in statuses)


def test_files_and_directories(io, root):
    io = pickle.loads(pickle.dumps(io))
    assert io.can_commit
    assert not io.renames_atomically
    assert io.list(f"{root}/t") == []
    assert not io.exists(f"{root}/t")
    for read in (io.read, io.open):
        with pytest.raises(FileNotFoundError):
            read(f"{root}/t/f")
    io.write(f"{root}/t/f", b"one")
    io.write(f"{root}/t/f", b"two")
    io.write(f"{root}/t/d/g", b"")
    io.write(f"{root}/t2/f", b"of another directory")
    found = sorted(io.list(f"{root}/t"), key=lambda status: status.name)
    assert [(s.path, s.size, s.is_directory) for s in found] == [(f"{root}/t/d", 0, True), (f"{root}/t/f", 3, False)]
    assert 1_600_000_000_000 < found[1].modified_ms < 2**53
    assert (io.read(f"{root}/t/f"), io.read(f"{root}/t/d/g")) == (b"two", b"")
    assert io.exists(f"{root}/t")
    assert io.exists(f"{root}/t/f")
    io.delete(f"{root}/t/f")
    io.delete(f"{root}/t/f")
    io.delete_directory(f"{root}/t")
    io.delete_directory(f"{root}/t")
    assert not io.exists(f"{root}/t")
    assert io.read(f"{root}/t2/f") == b"of another directory"


def test_odd_names(io, root):
    io.write(f"{root}/{ODD}", b"odd")
    directory, name = ODD.split("/")
    assert names(io.list(root)) == [directory]
    assert names(io.list(f"{root}/{directory}")) == [name]
    assert io.read(f"{root}/{ODD}") == b"odd"
    io.delete_directory(f"{root}/{directory}")
    assert io.list(root) == []


def test_exclusive_creation(io, root, options):
    path = f"{root}/snapshot/snapshot-1"
    racers = [FileIO.of(root, options) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: racers[n].create_exclusive(path, b"%d" % n), range(8)))
    assert won.count(True) == 1
    assert io.read(path) == b"%d" % won.index(True)
    assert names(io.list(f"{root}/snapshot")) == ["snapshot-1"]
    io.delete(path)
    assert io.create_exclusive(path, b"again")


def test_uploads_in_parts_and_ranges(io, root):
    data = bytes(range(256)) * (80 << 10)  # larger than what is read at once
    path = f"{root}/parts"
    with io.create(path) as sink:
        for start in range(0, len(data), 3_000_000):
            sink.write(data[start : start + 3_000_000])
            assert not io.exists(path)
    io.write_parts(f"{root}/small", [b"one", b"two"])
    assert io.read(f"{root}/small") == b"onetwo"
    assert io.read(path) == data
    with io.open(path) as file:
        for start, length in ((0, 1), (5_000_001, 1000), (len(data) - 3, 10), (9_999_999, 6 << 20)):
            file.seek(start)
            assert file.read(length) == data[start : start + length]
    assert io.copy_within(path, f"{root}/copy")
    assert io.read(f"{root}/copy") == data


def test_failed_upload_leaves_nothing(io, root):
    for size in (10, 12 << 20):  # nothing has been sent yet, and a part has

        def fail(size=size):
            with io.create(f"{root}/failed") as sink:
                sink.write(b"x" * size)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert not io.exists(f"{root}/failed")


def test_parquet(io, root):
    for rows in (1000, 1_500_000):
        table = pa.table({"a": pa.array(range(rows)), "b": pa.array(range(rows))})
        with io.create(f"{root}/{rows}.parquet") as sink:
            pq.write_table(table, sink, compression="none", use_dictionary=False)
        assert pq.read_table(io.open(f"{root}/{rows}.parquet"), columns=["b"]) == table.select(["b"])


def test_renames_are_copies(io, root):
    for name in ("f", "d/g", "d/e/h"):
        io.write(f"{root}/old/{name}", name.encode())
    io.rename_directory(f"{root}/old", f"{root}/new")
    assert [io.read(f"{root}/new/{name}") for name in ("f", "d/g", "d/e/h")] == [b"f", b"d/g", b"d/e/h"]
    assert not io.exists(f"{root}/old")
    with pytest.raises(FileNotFoundError):
        io.rename_directory(f"{root}/old", f"{root}/newer")
    io.write(f"{root}/old/f", b"")
    with pytest.raises(FileExistsError):
        io.rename_directory(f"{root}/old", f"{root}/new")


@pytest.mark.more
def test_pages_of_listings(io, root):
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: io.write(f"{root}/many/f{n}", b"x"), range(LISTED)))
        list(pool.map(lambda n: io.write(f"{root}/many/d{n}/f", b"x"), range(3)))
    assert len(io.list(f"{root}/many")) == LISTED + 3
    io.delete_directory(f"{root}/many")
    assert io.list(f"{root}/many") == []


def test_forked_child_opens_new_connections(io, root):
    io.write(f"{root}/forked", b"seen")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=lambda: answers.put(io.read(f"{root}/forked")))
    child.start()
    child.join(30)
    if child.is_alive():
        child.kill()
    assert child.exitcode == 0
    assert answers.get() == b"seen"
