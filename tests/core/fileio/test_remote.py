"""The storage of remote files when a client hides failures, or repeats requests whose answers were lost."""

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from paimon_core.errors import UnsupportedError
from paimon_core.fileio.remote import RemoteStorage

DIRECTORY = "memory://remote"


class Client(MemoryFileSystem):
    """Files in memory. Its methods fail without an error, as clients of object stores do."""

    cachable = False
    kept = 0
    """The number of recursive deletions that leave one file and do not say so."""
    lost = False
    """True: the first exclusive creation is repeated, because its answer was lost."""
    honours = True
    """False: exclusive creations replace files."""

    def rm(self, path, recursive=False, maxdepth=None):
        files = self.find(path)
        for file in files[1:] if self.kept > 0 else files:
            super().rm_file(file)
        self.kept -= 1
        raise FileNotFoundError(path)  # of another file

    def rm_file(self, path):
        super().rm_file(path)
        super().rm_file(path)  # its answer was lost

    def pipe_file(self, path, value, mode="overwrite", **arguments):
        if mode == "create" and self.honours and self.exists(path):
            raise FileExistsError(path)
        super().pipe_file(path, value)
        if mode == "create" and self.lost:
            self.lost = False
            raise FileExistsError(path)


@pytest.fixture
def client():
    found = Client(skip_instance_cache=True)
    found.store = {}
    found.pseudo_dirs = [""]
    return found


def storage(client, proven=True):
    return RemoteStorage(client, None, proven, flat=True)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_directory_is_deleted_again_while_files_are_left(client, kept):
    remote = storage(client)
    for name in ("a", "b", "d/c"):
        remote.write(f"{DIRECTORY}/{name}", b"1")
    client.kept = kept
    remote.delete_directory(DIRECTORY)
    assert client.find("/remote") == []


def test_files_that_stay_are_an_error(client):
    remote = storage(client)
    remote.write(f"{DIRECTORY}/snapshot-1", b"1")
    client.kept = 100
    with pytest.raises(OSError, match=r"still has entries after 3 deletions, such as snapshot-1"):
        remote.delete_directory(DIRECTORY)


def test_renames_survive_lost_answers(client):
    remote = storage(client)
    remote.write(f"{DIRECTORY}/old/f", b"1")
    remote.rename_directory(f"{DIRECTORY}/old", f"{DIRECTORY}/new")
    assert remote.read(f"{DIRECTORY}/new/f") == b"1"
    assert not remote.exists(f"{DIRECTORY}/old/f")


def test_lost_answer_to_the_probe_of_conditional_puts(client):
    client.lost = True
    client.rm_file = lambda path: MemoryFileSystem.rm_file(client, path)
    remote = storage(client, proven=False)
    assert remote.create_exclusive(f"{DIRECTORY}/snapshot-1", b"1")
    assert not remote.create_exclusive(f"{DIRECTORY}/snapshot-1", b"2")
    assert [status.name for status in remote.list(DIRECTORY)] == ["snapshot-1"]
    client.lost, client.honours = True, False
    with pytest.raises(UnsupportedError, match="does not honour conditional puts"):
        storage(client, proven=False).create_exclusive(f"{DIRECTORY}/snapshot-2", b"1")
