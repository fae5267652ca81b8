"""A Google Cloud Storage in memory, as a process: fake-gcs-server."""

import json
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from tests.support.places.go import built
from tests.support.servers import free_port, listens, server

VERSION = "1.56.1"
_PACKAGE = "github.com/fsouza/fake-gcs-server"
_CONNECTIONS = 8
_AT_ONCE = 1000


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


def fill(port: int, directory: str, names: Iterable[str]) -> None:
    """Put empty objects into a directory, which begins with the bucket."""
    bucket, _, prefix = directory.partition("/")
    target = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(prefix, safe='')}%2F"
    _send_all(port, "POST", (target + name for name in names), {"Content-Type": "application/octet-stream"})


def options(port: int) -> dict[str, str]:
    """Return the storage options with which the engine reaches the server."""
    return {"gs.project.id": "p", "gs.auth.type": "UNAUTHENTICATED", "gs.storage.root.url": f"http://127.0.0.1:{port}"}


def _send_all(port: int, method: str, targets: Iterable[str], headers: Mapping[str, str]) -> None:
    """Send a request without a body to each target, over a few connections that stay open.

    Raises OSError if the server refuses one.
    """
    left = iter(targets)
    parts = iter(lambda: list(islice(left, _AT_ONCE)), [])
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        for _ in pool.map(lambda part: _send(port, method, part, headers), parts):
            pass


def _send(port: int, method: str, targets: Iterable[str], headers: Mapping[str, str]) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        for target in targets:
            connection.request(method, target, b"", dict(headers))
            answer = connection.getresponse()
            body = answer.read()
            if answer.status >= 300:
                raise OSError(f"{method} {target}: {answer.status} {body[:200]!r}")
    finally:
        connection.close()
