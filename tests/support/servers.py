"""Servers of stores and catalogs as ordinary processes: free ports, start, and stop by process id.

A server ends when the process that started it ends, even if that process is killed.
What a server needs is built or downloaded once, at a pinned version, into `cache`. Tests that need one have
the marker ``places``.
"""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

_STOP_SECONDS = 10.0
_WATCH = 'read -r line; kill -s KILL -- "-$1"'
"""A script that waits for the end of its input, and kills a group of processes. The kernel's signal at the death of a
parent would not do: a server that changes its user, as databases do, loses this signal.
"""


def cannot_install(reason: str) -> NoReturn:
    """Fail because a server cannot be installed.

    Skip the test instead if ``PAIMON_TEST_UNINSTALLED`` is ``skip``, as in CI: a registry may be out of reach there.
    """
    if os.environ.get("PAIMON_TEST_UNINSTALLED") == "skip":
        pytest.skip(reason)
    raise RuntimeError(reason)


def cache() -> Path:
    """Return the directory of built and downloaded servers: ``$PAIMON_TEST_SERVERS``, or one in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(os.environ.get("PAIMON_TEST_SERVERS") or Path(base) / "pyspark-paimon-servers")
    path.mkdir(parents=True, exist_ok=True)
    return path


def free_port() -> int:
    """Return a port of the loopback address that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> Callable[[], bool]:
    """Return a check whether a server accepts connections on a loopback port."""

    def check() -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", port)) == 0

    return check


@contextmanager
def server(
    command: Sequence[str],
    log: Path,
    ready: Callable[[], bool],
    seconds: float = 90.0,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the block ends; raise with the end of its log if it is not ready within ``seconds``.

    ``command``: the program and its arguments; ``log``: the file for its output; ``ready``: called until it returns
    True; ``environment``: variables added to the environment of this process.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    watch = subprocess.Popen(
        ["/bin/sh", "-c", _WATCH, "sh", str(process.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + seconds
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{command[0]} did not start: {log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        watch.kill()
        watch.communicate()


def wait_until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until a condition holds. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s")
        time.sleep(0.05)
