"""The ten methods of FileIO behave equally on every store that needs no network."""

import multiprocessing
import os
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_core.errors import MissingDependencyError, UnsupportedError
from paimon_core.fileio import exclusive
from paimon_core.fileio.fileio import FileIO, absolute, join
from tests.support.faulty_io import MemoryIO


@pytest.fixture(params=["plain", "file-url", "fsspec-memory", "dictionary"])
def place(request, tmp_path):
    if request.param == "plain":
        yield FileIO.of(str(tmp_path)), str(tmp_path)
    elif request.param == "file-url":
        yield FileIO.of(f"file://{tmp_path}"), f"file://{tmp_path}"
    elif request.param == "fsspec-memory":
        root = f"memory://{tmp_path.name}"
        yield FileIO.of(root), root
        fsspec.filesystem("memory").store.clear()
    else:
        yield MemoryIO(), "memory://t"


def test_methods_agree_on_every_store(place):
    io, root = place
    path = join(root, "a", "b", "file")
    assert not io.exists(path)
    assert io.list(join(root, "a")) == []
    with pytest.raises(FileNotFoundError):
        io.read(path)
    with pytest.raises(FileNotFoundError):
        io.open(path).read()
    with io.create(path) as stream:
        stream.write(b"he")
        stream.write(pa.py_buffer(b"llo"))
        assert stream.tell() == 5
    assert io.read(path) == b"hello"
    with io.open(path) as source:
        source.seek(1)
        assert (source.read(2), source.tell(), source.size()) == (b"el", 3, 5)
    io.write(path, b"bye")
    io.write(join(root, "a", "c"), b"")
    assert io.read(path) == b"bye"
    assert io.open(join(root, "a", "c")).read() == b""
    actual = sorted(io.list(join(root, "a")), key=lambda status: status.name)
    assert [(s.name, s.path, s.is_directory) for s in actual] == [
        ("b", join(root, "a", "b"), True),
        ("c", join(root, "a", "c"), False),
    ]
    assert actual[1].size == 0
    assert io.exists(join(root, "a"))
    io.rename_directory(join(root, "a"), join(root, "z"))
    assert not io.exists(path)
    assert io.read(join(root, "z", "b", "file")) == b"bye"
    io.write(path, b"1")
    with pytest.raises(FileExistsError):
        io.rename_directory(join(root, "a"), join(root, "z"))
    io.delete(path)
    io.delete(path)
    io.delete_directory(join(root, "z"))
    io.delete_directory(join(root, "z"))
    assert not io.exists(join(root, "z", "b", "file"))


def test_parquet_passes_through_streams_of_every_store(place):
    io, root = place
    table = pa.table({"a": range(1000), "b": ["x"] * 1000})
    with io.create(join(root, "t.parquet")) as sink:
        pq.write_table(table, sink)
    assert pq.read_table(io.open(join(root, "t.parquet"))) == table


def test_large_remote_file_is_read_in_windows():
    io = FileIO.of("memory://large")
    data = os.urandom(1 << 20) * 9
    io.write("memory://large/f", data)
    with io.open("memory://large/f") as source:
        assert source.size() == len(data)
        source.seek(5 << 20)
        assert source.read(100) == data[5 << 20 : (5 << 20) + 100]
    fsspec.filesystem("memory").store.clear()


def test_exclusive_creation_has_one_winner_among_threads(tmp_path):
    io = FileIO.of(str(tmp_path))
    path = str(tmp_path / "snapshot" / "snapshot-1")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: io.create_exclusive(path, b"%d" % n * 1000), range(8)))
    assert won.count(True) == 1
    assert io.read(path) == b"%d" % won.index(True) * 1000
    assert [status.name for status in io.list(str(tmp_path / "snapshot"))] == ["snapshot-1"]


def race(arguments):
    io, path, content = arguments
    return io.create_exclusive(path, content)


def test_exclusive_creation_has_one_winner_among_processes(tmp_path):
    io = FileIO.of(str(tmp_path), {"s3.secret-key": "travels"})
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for turn in range(5):
            tries = [(io, str(tmp_path / f"f{turn}"), b"%d" % n) for n in range(4)]
            assert list(pool.map(race, tries)).count(True) == 1


def test_exclusive_creation_without_hard_links_still_has_one_winner(tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError(1, "Operation not permitted", source, None, target)

    monkeypatch.setattr(exclusive.os, "link", refuse)
    io = FileIO.of(str(tmp_path))
    assert io.create_exclusive(str(tmp_path / "f"), b"1")
    assert not io.create_exclusive(str(tmp_path / "f"), b"2")
    assert io.read(str(tmp_path / "f")) == b"1"
    assert [status.name for status in io.list(str(tmp_path))] == ["f"]


def test_replacing_is_atomic_for_readers(tmp_path):
    io = FileIO.of(str(tmp_path))
    path = str(tmp_path / "LATEST")
    contents = {bytes([letter]) * 100_000 for letter in b"abc"}
    io.write(path, b"a" * 100_000)
    with ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(io.write, path, content) for content in [*contents] * 20]
        reads = [pool.submit(io.read, path) for _ in range(100)]
        assert {read.result() for read in reads} <= contents
        assert [write.result() for write in writes] == [None] * 60
    assert len(io.list(str(tmp_path))) == 1


def test_stores_without_exclusive_creation_refuse_commits_with_reason():
    io = FileIO.of("memory://t")
    assert not io.can_commit
    with pytest.raises(UnsupportedError, match=r"cannot commit to memory://t.*local disks, S3"):
        io.check_can_commit()
    with pytest.raises(UnsupportedError, match="cannot commit"):
        io.create_exclusive("memory://t/f", b"")
    assert FileIO.of("/t").can_commit
    assert FileIO.of("s3a://b/t").can_commit


def test_unknown_stores_are_refused_by_name():
    with pytest.raises(UnsupportedError, match="nonsense://a/b"):
        FileIO.of("nonsense://a/b").read("nonsense://a/b")
    with pytest.raises((MissingDependencyError, UnsupportedError), match="box"):
        FileIO.of("box://a/b").read("box://a/b")


def test_one_io_serves_paths_of_several_stores(tmp_path):
    io = FileIO.of(str(tmp_path))
    io.write("memory://elsewhere/f", b"1")
    io.write(f"{tmp_path}/f", b"2")
    assert (io.read("memory://elsewhere/f"), io.read(f"file:{tmp_path}/f")) == (b"1", b"2")
    fsspec.filesystem("memory").store.clear()


def test_file_io_pickles_and_hides_secrets():
    options = {"s3.access-key": "AKIAX", "s3.secret-key": "hush"}
    io = FileIO.of("s3://user:pass@bucket/t", options)
    again = pickle.loads(pickle.dumps(io))
    assert again == io
    assert hash(again) == hash(io)
    assert again != FileIO.of("s3://user:pass@bucket/t")
    assert repr(io) == "FileIO('s3://***@bucket/t')"
    io = FileIO.of("/t", options)
    io.exists("/t")  # opened storages stay behind
    assert pickle.loads(pickle.dumps(io)) == io


def test_failed_local_write_leaves_nothing_behind(tmp_path):
    io = FileIO.of(str(tmp_path))
    (tmp_path / "directory").mkdir()
    with pytest.raises(OSError, match="irectory"):
        io.write(str(tmp_path / "directory"), b"x")
    assert [status.name for status in io.list(str(tmp_path))] == ["directory"]


@pytest.mark.parametrize(
    ("parts", "joined"),
    [
        (("/a/", "b"), "/a/b"),
        (("/", "a"), "/a"),
        (("a", "", "b/", "/c"), "a/b/c"),
        (("s3://b/", "x", "y"), "s3://b/x/y"),
        (("memory://", "x"), "memory://x"),
        (("file:///a", "b"), "file:///a/b"),
        (("file:///", "b"), "file:///b"),
        ((), ""),
    ],
)
def test_join_has_one_slash_between_parts(parts, joined):
    assert join(*parts) == joined


def test_absolute_changes_relative_local_paths_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute("w") == str(tmp_path / "w")
    for path in ("/a/b", "s3://b/a", "file:///a", "file:/a"):
        assert absolute(path) == path
