"""MariaDB as an ordinary process, from the package of the system."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.places.postgres import as_user
from tests.support.servers import free_port, listens, server


@contextmanager
def mariadb() -> Iterator[str]:
    """Run an empty server, and yield its JDBC URL without the database: append ``/paimon``, a database of this server.

    The user is paimon, with the password places.
    """
    if shutil.which("mariadbd") is None or shutil.which("mariadb-install-db") is None:
        pytest.skip("MariaDB cannot be installed: install the package mariadb-server")
    directory, port = Path(tempfile.mkdtemp(prefix="mariadb-", dir="/tmp")), free_port()
    try:
        directory.chmod(0o755)
        data = directory / "data"
        data.mkdir()
        run = as_user("mysql", directory)
        as_user("mysql", data)
        made = subprocess.run(
            [
                *run,
                "mariadb-install-db",
                "--no-defaults",
                f"--datadir={data}",
                "--skip-test-db",
                "--auth-root-authentication-method=normal",
            ],
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr
        start = directory / "start.sql"
        users = ("paimon@'%'", "paimon@localhost")  # an anonymous user of the new server would come first on localhost
        statements = [f"CREATE USER {user} IDENTIFIED BY 'places';\nGRANT ALL ON *.* TO {user};" for user in users]
        start.write_text("\n".join(["CREATE DATABASE paimon CHARACTER SET utf8mb3;", *statements, ""]))
        start.chmod(0o644)
        options = [f"--datadir={data}", f"--socket={directory / 's'}", f"--port={port}", "--bind-address=127.0.0.1"]
        options += ["--max-connections=5000"]  # Java leaves a connection open for each lock
        with server(
            [*run, "mariadbd", "--no-defaults", *options, f"--init-file={start}"], directory / "log", listens(port)
        ):
            yield f"jdbc:mysql://127.0.0.1:{port}"
    finally:
        shutil.rmtree(directory, ignore_errors=True)
