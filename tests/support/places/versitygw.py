"""An S3 server in front of a directory, as a process: versitygw, which honours conditional puts."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.places.go import built
from tests.support.servers import free_port, listens, server

VERSION = "1.8.0"
_PACKAGE = "github.com/versity/versitygw/cmd/versitygw"
KEY, SECRET = "test", "testtest12"
_DATA: dict[int, Path] = {}
"""The directory of each server that runs, by its port."""


@contextmanager
def versitygw() -> Iterator[int]:
    """Start the server with the bucket ``bucket``; yield its port."""
    program = built("versitygw", _PACKAGE, VERSION)
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "data"
        (data / "bucket").mkdir(parents=True)
        port = free_port()
        command = [str(program), "--port", f"127.0.0.1:{port}", "--region", "us-east-1", "posix", str(data)]
        account = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
        with server(command, Path(directory) / "log", listens(port), environment=account):
            _DATA[port] = data
            yield port
            del _DATA[port]


def fill(port: int, directory: str, names: Iterable[str]) -> None:
    """Put empty objects into a directory, which begins with the bucket: they are files of the server."""
    path = _DATA[port] / directory
    path.mkdir(parents=True, exist_ok=True)
    for name in names:
        (path / name).touch()


def options(port: int) -> dict[str, str]:
    """Return the storage options with which the engine reaches the server."""
    return {
        "s3.endpoint": f"http://127.0.0.1:{port}",
        "s3.path.style.access": "true",
        "s3.region": "us-east-1",
        "s3.access-key": KEY,
        "s3.secret-key": SECRET,
    }


def java_options(port: int) -> dict[str, str]:
    """Return the options with which Paimon's Java engine reaches the server."""
    return {name.replace("s3.region", "s3.endpoint.region"): value for name, value in options(port).items()}
