"""A Google Cloud Storage in memory or on a disk, as a process: fake-gcs-server."""

import json
import os
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from tests.support.places.go import built
from tests.support.servers import free_port, listens, server

VERSION = "1.56.1"
_PACKAGE = "github.com/fsouza/fake-gcs-server"
_METADATA = "user.metadata"
"""The attribute of a file in which a server on a disk keeps what it knows about the object."""
_DATA: dict[int, Path] = {}
"""The directory of each server on a disk that runs, by its port."""


@contextmanager
def fake_gcs(public: int | None = None, *, on_disk: bool = False) -> Iterator[int]:
    """Start the server with the bucket ``bucket``; yield its port.

    ``public``: the port that clients use, which the server writes into its answers; `None`: its own.
    ``on_disk``: True: the objects are files, for `fill`.
    """
    program = built("fake-gcs-server", _PACKAGE, VERSION)
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        data = Path(directory) / "data"
        backend = ["-backend", "filesystem", "-filesystem-root", str(data)] if on_disk else ["-backend", "memory"]
        command = [str(program), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), *backend]
        command += ["-log-level", "warn", "-external-url", f"http://127.0.0.1:{public or port}"]
        with server(command, Path(directory) / "log", listens(port)):
            make_bucket(port, "bucket")
            _DATA[port] = data
            yield port
            del _DATA[port]


def make_bucket(port: int, name: str) -> None:
    """Create an empty bucket on the server at a port."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/storage/v1/b?project=p",
        data=json.dumps({"name": name}).encode(),
        headers={"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=30).close()


def fill(port: int, directory: str, names: Iterable[str]) -> None:
    """Put empty objects into a directory, which begins with the bucket, of a server on a disk.

    A request for each would take an hour: each compares its name with every object's name.
    """
    first, *others = names
    bucket, _, prefix = directory.partition("/")
    target = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(f'{prefix}/{first}', safe='')}"
    urllib.request.urlopen(f"http://127.0.0.1:{port}{target}", b"", timeout=30).close()
    path = _DATA[port] / directory
    metadata = os.getxattr(path / first, _METADATA)
    for name in others:
        (path / name).touch()
        os.setxattr(path / name, _METADATA, metadata)


def options(port: int) -> dict[str, str]:
    """Return the storage options with which the engine reaches the server."""
    return {"gs.project.id": "p", "gs.auth.type": "UNAUTHENTICATED", "gs.storage.root.url": f"http://127.0.0.1:{port}"}
