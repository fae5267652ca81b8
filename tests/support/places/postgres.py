"""PostgreSQL as an ordinary process, from the package of the system."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.servers import free_port, listens, server


def as_user(user: str, directory: Path) -> list[str]:
    """Return the beginning of a command that runs as a user who owns a directory; root cannot run databases."""
    if os.geteuid() != 0:
        return []
    shutil.chown(directory, user)
    return ["runuser", "-u", user, "--"]


@contextmanager
def postgres() -> Iterator[str]:
    """Run an empty server, and yield its JDBC URL without the database: append ``/postgres``. The user is postgres."""
    if shutil.which("initdb") is None or shutil.which("postgres") is None:
        pytest.skip("PostgreSQL cannot be installed: install the package postgresql, with initdb on the path")
    directory, port = Path(tempfile.mkdtemp(prefix="postgres-", dir="/tmp")), free_port()
    try:
        directory.chmod(0o755)
        data = directory / "data"
        run = as_user("postgres", directory)
        made = subprocess.run(
            [*run, "initdb", "-D", data, "-A", "trust", "-U", "postgres"], capture_output=True, text=True
        )
        assert made.returncode == 0, made.stderr
        command = [*run, "postgres", "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(directory)]
        command += ["-N", "2000"]  # Java leaves a connection open for each lock
        with server(command, directory / "log", listens(port)):
            yield f"jdbc:postgresql://127.0.0.1:{port}"
    finally:
        shutil.rmtree(directory, ignore_errors=True)
