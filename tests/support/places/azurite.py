"""An Azure Blob Storage in memory, as a process: azurite."""

import json
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from tests.support.servers import cache, cannot_install, free_port, listens, server

VERSION = "3.37.0"
ACCOUNT, KEY = "places", "cGxhY2Vz"
_INSTALL_SECONDS = 1800
_FILL = Path(__file__).with_name("azurite_fill.js")
_FILL_PORTS: dict[int, int] = {}
"""The port of `_FILL` in each server that runs, by the server's port."""


def _program() -> Path:
    """Return the script of azurite, which the first call installs: a minute. Skip the test without npm."""
    directory = cache() / f"azurite-{VERSION}"
    script = directory / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    if script.exists():
        return script
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("azurite cannot be installed: the commands node and npm are missing")
    directory.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(directory), f"azurite@{VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
    if not script.exists():
        cannot_install(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
    return script


@contextmanager
def azurite() -> Iterator[int]:
    """Start the server with the container ``box``; yield its port."""
    script = _program()
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        command = [
            "node",
            "--require",
            str(_FILL),
            str(script),
            "--inMemoryPersistence",
            "--blobHost",
            "127.0.0.1",
            "--blobPort",
            str(port),
        ]
        command += ["--skipApiVersionCheck", "--disableTelemetry", "--silent"]
        _FILL_PORTS[port] = free_port()
        environment = {
            "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}",
            "AZURITE": str(script.parent),
            "FILL_PORT": str(_FILL_PORTS[port]),
        }
        with server(command, Path(directory) / "log", listens(port), environment=environment):
            with BlobServiceClient.from_connection_string(options(port)["azure.connection.string"]) as client:
                client.create_container("box")
            yield port
        del _FILL_PORTS[port]


def fill(port: int, directory: str, names: Iterable[str]) -> None:
    """Put empty blobs into a directory, which begins with the container. A request for each would take minutes."""
    container, _, prefix = directory.partition("/")
    first, *others = (f"{prefix}/{name}" for name in names)
    with BlobServiceClient.from_connection_string(options(port)["azure.connection.string"]) as client:
        client.get_blob_client(container, first).upload_blob(b"")
    body = json.dumps({"first": first, "names": others}).encode()
    urllib.request.urlopen(f"http://127.0.0.1:{_FILL_PORTS[port]}", body, timeout=300).close()


def options(port: int) -> dict[str, str]:
    """Return the storage options with which the engine reaches the server."""
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    text = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint};"
    return {"azure.connection.string": text}
