"""The test server of Paimon's REST catalog, version 1.4.2, from Maven Central. Needs a JDK and Maven."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers import cache, cannot_install, server

VERSION = "1.4.2"
TOKEN = "rest-test-token"
_SOURCE = Path(__file__).parent / "java" / "RestServer.java"
_JARS = (
    "com.squareup.okhttp3:mockwebserver:4.12.0",
    f"org.apache.paimon:paimon-bundle:{VERSION}",
    "org.apache.hadoop:hadoop-client-api:3.3.6",
    "org.apache.hadoop:hadoop-client-runtime:3.3.6",
    "org.slf4j:slf4j-nop:1.7.36",
    "org.xerial.snappy:snappy-java:1.1.10.5",
)
_TESTS_JAR = f"paimon-core-{VERSION}-tests.jar"
_TOOLS = ("java", "javac", "mvn")


@dataclass(frozen=True)
class RestServer:
    """A running server, whose ``warehouse`` is a local directory."""

    uri: str
    warehouse: Path
    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def options(self) -> dict[str, str]:
        """The options of a catalog of the server, as Paimon's Java engine names them."""
        return {
            "metastore": "rest",
            "uri": self.uri,
            "warehouse": "main",
            "token.provider": "bear",
            "token": TOKEN,
        }

    def tell(self, command: str) -> None:
        """Send a command, which ``RestServer.java`` describes, and wait until it is done."""
        done = self.log.read_text().count("DONE")
        self.process.stdin.write(f"{command}\n".encode())
        self.process.stdin.flush()
        end = time.monotonic() + 10
        while self.log.read_text().count("DONE") == done:
            assert time.monotonic() < end, f"the server did not answer {command!r}"
            time.sleep(0.01)


def unavailable() -> str | None:
    """Return why the server cannot run on this machine; `None`: it can."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    return f"{', '.join(missing)} not found on PATH: install a JDK and Maven" if missing else None


@contextmanager
def rest_server(directory: Path, **options: str) -> Iterator[RestServer]:
    """Run a server on a warehouse below ``directory``.

    ``options``: what it gives to its clients, with ``_`` for ``.`` in their names.
    """
    warehouse, log = directory / "warehouse", directory / "rest-server.log"
    warehouse.mkdir(parents=True)
    class_path = f"{_classes()}{os.pathsep}{_jars()}/*"
    given = [f"{key.replace('_', '.')}={value}" for key, value in options.items()]
    command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", class_path, "RestServer", str(warehouse), TOKEN, *given]
    with server(command, log, lambda: "READY" in log.read_text()) as process:
        uri = re.search(r"READY (\S+)", log.read_text())[1].rstrip("/")
        yield RestServer(uri, warehouse, process, log)


def _jars() -> Path:
    """Return the directory of the jars, which Maven downloads on first use."""
    kept = cache() / f"paimon-rest-{VERSION}"
    if kept.exists():
        return kept
    work = Path(tempfile.mkdtemp(dir=cache()))
    entries = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(
            *jar.split(":")
        )
        for jar in _JARS
    )
    project = "<modelVersion>4.0.0</modelVersion><groupId>places</groupId><artifactId>rest</artifactId>"
    (work / "pom.xml").write_text(
        f'<project xmlns="http://maven.apache.org/POM/4.0.0">{project}<version>1</version>'
        f"<dependencies>{entries}</dependencies></project>"
    )
    _run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=lib"], work)
    # The tests jar alone: the bundle has its dependencies, which are not on Maven Central one by one.
    tests_jar = f"org.apache.paimon:paimon-core:{VERSION}:jar:tests"
    _run(["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={tests_jar}", "-DoutputDirectory=lib"], work)
    assert (work / "lib" / _TESTS_JAR).exists()
    return _kept(work / "lib", kept, work)


def _classes() -> Path:
    """Return the directory of the compiled server."""
    kept = cache() / f"paimon-rest-classes-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]}"
    if kept.exists():
        return kept
    work = Path(tempfile.mkdtemp(dir=cache()))
    _run(["javac", "-nowarn", "-proc:none", "-cp", f"{_jars()}/*", "-d", "classes", str(_SOURCE)], work)
    return _kept(work / "classes", kept, work)


def _kept(made: Path, kept: Path, work: Path) -> Path:
    """Move a finished directory to its name, unless another process was faster; delete the working directory."""
    try:
        made.rename(kept)
    except OSError:
        assert kept.exists()
    shutil.rmtree(work, ignore_errors=True)
    return kept


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        cannot_install(f"{' '.join(command)} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
