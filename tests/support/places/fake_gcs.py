"""A Google Cloud Storage in memory, as a process: fake-gcs-server."""

import json
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.places.go import built
from tests.support.servers import free_port, listens, server

VERSION = "1.56.1"
_PACKAGE = "github.com/fsouza/fake-gcs-server"


@contextmanager
def fake_gcs(public: int | None = None) -> Iterator[int]:
    """Start the server with the bucket ``bucket``; yield its port.

    ``public``: the port that clients use, which the server writes into its answers; `None`: its own.
    """
    program = built("fake-gcs-server", _PACKAGE, VERSION)
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        command = [str(program), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
        command += ["-log-level", "warn", "-external-url", f"http://127.0.0.1:{public or port}"]
        with server(command, Path(directory) / "log", listens(port)):
            _make_bucket(port)
            yield port


def _make_bucket(port: int) -> None:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/storage/v1/b?project=p",
        data=json.dumps({"name": "bucket"}).encode(),
        headers={"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=30).close()


def options(port: int) -> dict[str, str]:
    """Return the storage options with which the engine reaches the server."""
    return {"gs.project.id": "p", "gs.auth.type": "UNAUTHENTICATED", "gs.storage.root.url": f"http://127.0.0.1:{port}"}
