"""An Azure Blob Storage in memory, as a process: azurite."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from tests.support.servers import cache, free_port, listens, server

VERSION = "3.37.0"
ACCOUNT, KEY = "places", "cGxhY2Vz"
_INSTALL_SECONDS = 1800


def _program() -> Path:
    """Return the script of azurite, which the first call installs: minutes. Skip the test without npm."""
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
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
    return script


@contextmanager
def azurite() -> Iterator[int]:
    """Start the server with the container ``box``; yield its port."""
    script = _program()
    with tempfile.TemporaryDirectory() as directory:
        port = free_port()
        command = ["node", str(script), "--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
        command += ["--skipApiVersionCheck", "--disableTelemetry", "--silent"]
        accounts = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
        with server(command, Path(directory) / "log", listens(port), environment=accounts):
            with BlobServiceClient.from_connection_string(options(port)["azure.connection.string"]) as client:
                client.create_container("box")
            yield port


def options(port: int) -> dict[str, str]:
    """Return the storage options with which the engine reaches the server."""
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    text = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint};"
    return {"azure.connection.string": text}
