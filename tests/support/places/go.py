"""Servers that are Go programs: built once, at a pinned version, into the cache of servers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.servers import cache

_BUILD_SECONDS = 1800


def built(name: str, package: str, version: str) -> Path:
    """Return the program of a Go package, which the first call builds: minutes. Skip the test without Go."""
    directory = cache() / f"{name}-{version}"
    program = directory / name
    if program.exists():
        return program
    if shutil.which("go") is None:
        pytest.skip(f"{name} cannot be installed: the command go is missing")
    command = ["go", "install", f"{package}@v{version}"]
    environment = {**os.environ, "GOBIN": str(directory)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False)
    if not program.exists():
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
    return program
