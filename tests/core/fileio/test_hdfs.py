"""HDFS without a cluster: options, errors, time limits and lost answers, with a client in memory."""

import builtins
import errno
import os
import threading
from types import SimpleNamespace

import pytest

from paimon_core.errors import InvalidInputError, MissingDependencyError, UnsupportedError
from paimon_core.fileio import hdfs_client
from paimon_core.fileio.fileio import FileIO, MissingDirectoryError
from paimon_core.fileio.hdfs_client import HdfsSettings, hdfs_errors, hdfs_settings

ROOT = "hdfs://name-node:8020"
STACK = "\n\tat org.apache.hadoop.Somewhere.run(Somewhere.java:1)"


class PanicException(BaseException):
    """As hdfs-native's panics are."""


class Cluster:
    """Files by path, and what happens to renames: `None` once they behave."""

    def __init__(self):
        self.files, self.directories, self.clients = {}, {"", "/"}, []
        self.rename_fault = None
        self.lost_ends = 0  # of files whose data node has closed the connection

    def client(self, url, config=None, directory=None, **kerberos):
        self.clients.append((url, config, directory, kerberos))
        return Client(self)


class Client:
    def __init__(self, cluster):
        self.cluster = cluster

    def create(self, path, options):
        if path.rpartition("/")[0] not in self.cluster.directories:
            raise FileNotFoundError(f"Parent directory doesn't exist{STACK}")
        return Writer(self.cluster, path)

    def mkdirs(self, path, permission, parents):
        above = path.rpartition("/")[0]
        if not parents and above not in self.cluster.directories:
            raise FileNotFoundError(f"Parent directory doesn't exist{STACK}")
        while path:
            self.cluster.directories.add(path)
            path = path.rpartition("/")[0]

    def rename(self, old, new, overwrite):
        fault, self.cluster.rename_fault = self.cluster.rename_fault, None
        if fault == "lost before":
            raise OSError("RPC listener disconnected")
        if fault == "dropped":
            self.cluster.files.clear()
        if new in self.cluster.files and not overwrite:
            raise FileExistsError(f"rename destination {new} already exists{STACK}")
        if old not in self.cluster.files:
            raise FileNotFoundError(f"rename source {old} is not found.{STACK}")
        self.cluster.files[new] = self.cluster.files.pop(old)
        if fault == "lost after":
            raise OSError("RPC listener disconnected")
        if fault == "repeated":
            raise FileNotFoundError(f"rename source {old} is not found.{STACK}")

    def delete(self, path, recursive):
        return self.cluster.files.pop(path, None) is not None

    def get_file_info(self, path):
        if path == "/panic":
            raise PanicException("Cannot read past end of the file")
        if path == "/zone":
            raise NotImplementedError("File encryption")
        if path == "/secret":
            name = "org.apache.hadoop.security.AccessControlException"
            raise RuntimeError(f'RPCError("{name}", "Permission denied: user=anna\\n\\tat {STACK}")')
        if path == "/hangs":
            threading.Event().wait(30)
        if path not in self.cluster.files and path not in self.cluster.directories:
            raise FileNotFoundError(path)
        return SimpleNamespace(isdir=path in self.cluster.directories)

    def read(self, path):
        if path not in self.cluster.files:
            raise FileNotFoundError(f"File does not exist: {path}{STACK}")
        return Reader(self.cluster.files[path])


class Reader:
    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def read_range(self, at, size):
        if at + size > len(self.data):
            raise PanicException("Cannot read past end of the file")
        return self.data[at : at + size]


class Writer:
    def __init__(self, cluster, path):
        self.cluster, self.path, self.data, self.synced = cluster, path, b"", 0

    def write(self, data):
        self.data += data

    def hsync(self):
        self.synced = len(self.data)

    def close(self):
        assert self.synced == len(self.data), "a file was closed that a power cut may lose"
        if self.cluster.lost_ends:
            self.cluster.lost_ends -= 1
            raise RuntimeError('DataTransferError("All nodes failed for write")')
        self.cluster.files[self.path] = self.data


@pytest.fixture
def cluster(monkeypatch):
    found = Cluster()
    package = SimpleNamespace(Client=found.client, WriteOptions=lambda **options: options)
    monkeypatch.setattr(hdfs_client, "_package", lambda: package)
    monkeypatch.setattr(hdfs_client, "_clients", {})
    monkeypatch.setattr(hdfs_client, "_inherited", [])
    return found


def test_one_of_two_writers_wins_and_hidden_files_disappear(cluster):
    io = FileIO.of(ROOT)
    assert io.create_exclusive(f"{ROOT}/t/snapshot-1", b"mine")
    assert not io.create_exclusive(f"{ROOT}/t/snapshot-1", b"other")
    assert cluster.files == {"/t/snapshot-1": b"mine"}
    assert io.can_commit
    assert io.renames_atomically


@pytest.mark.parametrize("fault", ["lost after", "repeated"])
def test_rename_with_a_lost_answer_counts(cluster, fault):
    io = FileIO.of(ROOT)
    cluster.rename_fault = fault
    assert io.create_exclusive(f"{ROOT}/t/snapshot-1", b"mine")
    cluster.rename_fault = fault
    io.write(f"{ROOT}/t/LATEST", b"1")
    assert cluster.files == {"/t/snapshot-1": b"mine", "/t/LATEST": b"1"}


def test_rename_that_did_not_happen_never_happens(cluster):
    io = FileIO.of(ROOT)
    for create in (io.create_exclusive, io.write):
        cluster.rename_fault = "lost before"
        with pytest.raises(OSError, match="disconnected"):
            create(f"{ROOT}/t/snapshot-1", b"mine")
        assert cluster.files == {}  # without its source, a late rename fails


def test_write_into_a_directory_that_is_dropped_meanwhile_fails(cluster):
    cluster.rename_fault = "dropped"
    with pytest.raises(FileNotFoundError, match="is not found"):
        FileIO.of(ROOT).write(f"{ROOT}/t/LATEST", b"1")


def test_dropped_directory_is_not_created_again(cluster):
    io = FileIO.of(ROOT).inside(f"{ROOT}/t")
    with pytest.raises(MissingDirectoryError, match="dropped or renamed"):
        io.write(f"{ROOT}/t/bucket-0/f", b"1")
    cluster.directories.add("/t")
    io.write(f"{ROOT}/t/bucket-0/f", b"1")
    assert cluster.files == {"/t/bucket-0/f": b"1"}


def test_failures_are_os_errors_of_one_line(cluster):
    io = FileIO.of(ROOT)
    with pytest.raises(FileNotFoundError) as missing:
        io.read(f"{ROOT}/f")
    assert str(missing.value) == f"[Errno 2] File does not exist: /f: '{ROOT}/f'"
    with pytest.raises(PermissionError, match="AccessControlException: Permission denied: user=anna: "):
        io.exists(f"{ROOT}/secret")
    with pytest.raises(OSError, match="Cannot read past") as panic:
        io.exists(f"{ROOT}/panic")
    assert panic.value.errno == errno.EIO
    with pytest.raises(OSError, match="hdfs-native does not support this: File encryption") as zone:
        io.exists(f"{ROOT}/zone")
    assert zone.value.errno == errno.ENOTSUP


GSS = 'GSSAPIError(GssMajorCodes { raw: "0x00070000", routine_error: "%s", supplementary_info: "0" }, 2529, "%s")'


@pytest.mark.parametrize(
    ("raised", "number", "message"),
    [
        (
            RuntimeError(GSS % ("GSS_S_NO_CRED", "no cache")),
            errno.EACCES,
            "needs a Kerberos ticket .*: no cache: 'hdfs",
        ),
        (RuntimeError(GSS % ("GSS_S_FAILURE", "no KDC")), errno.EIO, "^.Errno 5. Kerberos failed: no KDC: 'hdfs"),
        (
            OSError("RPC listener disconnected"),
            errno.EIO,
            "disconnected; if the name node needs Kerberos, set hadoop.sec",
        ),
        (
            OSError("All DataNodes failed: [DatanodeInfoProto { id: 1 }]"),
            errno.EIO,
            "failed; .*dfs.data.transfer.protection",
        ),
    ],
)
def test_errors_of_kerberos_name_missing_setting(raised, number, message):
    with pytest.raises(OSError, match=message) as failure, hdfs_errors(ROOT):
        raise raised
    assert failure.value.errno == number


def test_name_node_that_does_not_answer_is_left_behind(cluster):
    io = FileIO.of(ROOT, {"ipc.client.rpc-timeout.ms": "300"})
    with pytest.raises(TimeoutError, match=r"within 0.3 seconds \(ipc.client.rpc-timeout.ms\)"):
        io.exists(f"{ROOT}/hangs")
    assert not io.exists(f"{ROOT}/missing")
    assert len(cluster.clients) == 2


def test_reads_stay_within_the_file(cluster):
    io = FileIO.of(ROOT)
    data = os.urandom(9 << 20)
    io.write(f"{ROOT}/big", data)
    io.write(f"{ROOT}/empty", b"")
    with io.open(f"{ROOT}/big") as file:
        file.seek(len(data) - 10)
        assert file.read(100) == data[-10:]
        file.seek(5)
        assert (file.read(10), file.size()) == (data[5:15], len(data))
    assert (io.read(f"{ROOT}/big"), io.read(f"{ROOT}/empty"), io.open(f"{ROOT}/empty").read()) == (data, b"", b"")


def test_stream_that_fails_leaves_no_file(cluster):
    def fail():
        with FileIO.of(ROOT).create(f"{ROOT}/f") as sink:
            sink.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert cluster.files == {}


def test_small_file_is_written_again_if_its_end_is_lost(cluster):
    cluster.lost_ends = 3
    FileIO.of(ROOT).write(f"{ROOT}/f", b"small")
    assert FileIO.of(ROOT).read(f"{ROOT}/f") == b"small"
    cluster.lost_ends = 4
    with pytest.raises(OSError, match="All nodes failed for write"):
        FileIO.of(ROOT).write(f"{ROOT}/g", b"small")


def test_stream_that_was_sent_in_parts_is_not_written_again(cluster):
    cluster.lost_ends = 1
    sink = FileIO.of(ROOT).create(f"{ROOT}/f")
    sink.write(b"x" * (1 << 20))
    sink.write(b"end")
    with pytest.raises(OSError, match="All nodes failed for write"):
        sink.close()


def test_options_have_the_names_of_hadoop_and_paimon():
    found = hdfs_settings(
        {
            "spark.hadoop.dfs.nameservices": "Lake",
            "hadoop.dfs.ha.namenodes.Lake": "a,b",
            "dfs.client.use.datanode.hostname": True,
            "fs.defaultFS": "hdfs://Lake",
            "hadoop.security.authentication": "kerberos",
            "hadoop-conf-dir": "/etc/hadoop",
            "dfs.replication": "2",
            "dfs.blocksize": "64m",
            "fs.permissions.umask-mode": "002",
            "ipc.client.rpc-timeout.ms": "30000",
            "security.kerberos.login.principal": "anna@LAKE",
            "security.kerberos.login.keytab": "/run/anna.keytab",
        }
    )
    assert found == HdfsSettings(
        config=(
            ("dfs.client.use.datanode.hostname", "true"),
            ("dfs.ha.namenodes.Lake", "a,b"),
            ("dfs.nameservices", "Lake"),
            ("fs.defaultFS", "hdfs://Lake"),
            ("hadoop.security.authentication", "kerberos"),
        ),
        directory="/etc/hadoop",
        principal="anna@LAKE",
        keytab="/run/anna.keytab",
        replication=2,
        block_size=64 << 20,
        umask=0o002,
        seconds=30.0,
    )


def test_names_in_lower_case_are_spelled_as_hadoop_does():
    """Options of a path in Spark have lost their capital letters."""
    found = hdfs_settings({"fs.defaultfs": "hdfs://a", "fs.viewfs.mounttable.all.linkfallback": "hdfs://b"})
    assert found.config == (("fs.defaultFS", "hdfs://a"), ("fs.viewfs.mounttable.all.linkFallback", "hdfs://b"))


def test_client_gets_the_options(cluster, monkeypatch):
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
    kerberos = {"security.kerberos.login.principal": "p", "security.kerberos.login.keytab": "k"}
    FileIO.of("hdfs://lake/t", {"dfs.nameservices": "lake", "hadoop-conf-dir": "c", **kerberos}).exists("hdfs://lake/t")
    FileIO.of("hdfs:///t", {"hdfs.user": "anna"}).exists("hdfs:/t")
    FileIO.of(f"{ROOT}/t", {"hdfs.user": "anna", "s3.access-key": "of another"}).exists(f"{ROOT}/t")
    assert cluster.clients == [
        ("hdfs://lake", {"dfs.nameservices": "lake"}, "c", {"kerberos_principal": "p", "kerberos_keytab": "k"}),
        ("hdfs://", {}, None, {}),
        (ROOT, {"dfs.client.failover.max.attempts": "4"}, None, {}),
    ]
    assert os.environ["HADOOP_USER_NAME"] == "anna"
    with pytest.raises(InvalidInputError, match="'ben', but this process acts as the user 'anna'"):
        FileIO.of(f"{ROOT}/t", {"hdfs.user": "ben"}).exists(f"{ROOT}/t")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "k"}, "storage option 'key' is not known for HDFS; accepted: hadoop-conf-dir, hdfs.user"),
        ({"hdfs.client": "libhdfs"}, "'hdfs.client' is not known"),
        ({"dfs.replication": "0"}, "'dfs.replication' must be a number from 1, not '0'"),
        ({"dfs.blocksize": "many"}, "'dfs.blocksize' must be a number from 512, not 'many'"),
        ({"fs.permissions.umask-mode": "u=rwx"}, "three octal digits, not 'u=rwx'"),
        ({"security.kerberos.login.keytab": "k"}, "must be set together"),
        ({"security.kerberos.login.use-ticket-cache": "false"}, "must be true unless"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        hdfs_settings(options)


def test_user_in_the_url_is_refused(cluster):
    with pytest.raises(InvalidInputError, match=r"cannot name a user before @: set the option hdfs.user"):
        FileIO.of("hdfs://anna@host/t").exists("hdfs://anna@host/t")


def test_forked_process_does_not_share_connections(cluster):
    FileIO.of(ROOT).exists(f"{ROOT}/t")
    used = hdfs_client._clients
    hdfs_client._after_fork()
    with pytest.raises(UnsupportedError, match="was forked from one that had used HDFS"):
        FileIO.of(ROOT).exists(f"{ROOT}/t")
    assert hdfs_client._inherited == [used]


def test_missing_package_names_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *others):
        if name == "hdfs_native":
            raise ImportError("No module named 'hdfs_native'")
        return real(name, *others)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pyspark-paimon\[hdfs\]'"):
        FileIO.of(ROOT).exists(f"{ROOT}/t")
