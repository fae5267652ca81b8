"""Hive metastores as ordinary processes, and Java's HiveCatalog as the other engine. Maven brings the jars.

Version 3.1.3 has everything; 4.0.1 has no tables for locks, because they need scripts that no jar contains.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.servers import cache, free_port, listens, server

_JAVA = Path(__file__).parent / "java"
_NOTHING = ("*:*",)
_BROKEN = ("jdk.tools:jdk.tools", "org.apache.hadoop:*", "org.pentaho:*")
"""Dependencies of a metastore that Maven cannot resolve, or that other jars replace."""
_HADOOP = (("org.apache.hadoop:hadoop-client-api:3.3.6", ()), ("org.apache.hadoop:hadoop-client-runtime:3.3.6", ()))
_SERVER = (
    *_HADOOP,
    ("org.apache.hadoop:hadoop-client-minicluster:3.3.6", ()),
    ("org.apache.derby:derby:10.14.2.0", ()),
    ("commons-cli:commons-cli:1.5.0", ()),
    ("commons-collections:commons-collections:3.2.2", ()),
)
_CLIENT = (
    ("org.apache.paimon:paimon-bundle:1.4.2", ()),
    *_HADOOP,
    ("org.slf4j:slf4j-api:1.7.36", ()),
    ("org.slf4j:slf4j-nop:1.7.36", ()),
    ("org.xerial.snappy:snappy-java:1.1.10.5", ()),
    ("org.apache.hive:hive-metastore:2.3.10", _NOTHING),
    ("org.apache.hive:hive-common:2.3.10", _NOTHING),
    ("org.apache.hive:hive-serde:2.3.10", _NOTHING),
    ("org.apache.hive:hive-storage-api:2.7.0", _NOTHING),
    ("org.apache.hive:hive-exec:2.3.10", _NOTHING),
    ("org.apache.hive.shims:hive-shims-common:2.3.10", _NOTHING),
    ("org.apache.hive.shims:hive-shims-0.23:2.3.10", _NOTHING),
    ("org.apache.thrift:libthrift:0.14.1", _NOTHING),
    ("org.apache.thrift:libfb303:0.9.3", _NOTHING),
    ("com.google.guava:guava:27.0-jre", ()),
    ("commons-lang:commons-lang:2.6", ()),
    ("org.apache.commons:commons-lang3:3.12.0", ()),
    ("commons-logging:commons-logging:1.2", ()),
    ("javax.jdo:jdo-api:3.0.1", ()),
)
_JARS = {
    "hive-3.1.3": (("org.apache.hive:hive-standalone-metastore:3.1.3", _BROKEN), *_SERVER),
    "hive-4.0.1": (("org.apache.hive:hive-standalone-metastore-server:4.0.1", _BROKEN), *_SERVER),
    "hive-client-2.3.10-exec": _CLIENT,
}
_OPENS = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "net", "nio", "util")]


@contextmanager
def metastore(directory: Path, version: str = "3.1.3", lock_seconds: int = 300) -> Iterator[str]:
    """Run a metastore until the block ends; yields its URI.

    ``directory``: for its log and its own warehouse; ``version``: "3.1.3" or "4.0.1"; ``lock_seconds``: the time after
    which it gives up a lock whose holder is silent.
    """
    directory.mkdir(parents=True, exist_ok=True)
    port, jars = free_port(), _jars(f"hive-{version}")
    classes = _compiled("Metastore.java", jars)
    command = ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", *_OPENS, "-cp", f"{classes}:{jars}/*", "Metastore"]
    command += [str(port), str(directory / "warehouse"), str(lock_seconds)]
    with server(command, directory / "metastore.log", listens(port)):
        yield f"thrift://127.0.0.1:{port}"


class JavaCatalog:
    """A catalog of Java in a process that takes one command at a time."""

    def __init__(self, program: str, log: Path, options: Mapping[str, str]) -> None:
        """Start it. ``program``: the Java file, without its ending; ``options``: the options of the catalog."""
        jars = _jars("hive-client-2.3.10-exec")
        classes = _compiled(f"{program}.java", jars)
        given = {**options, "cache-enabled": "false"}
        command = ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", *_OPENS, "-cp", f"{classes}:{jars}/*", program]
        self._log = log.open("wb")
        self._process = subprocess.Popen(
            [*command, *(f"{key}={value}" for key, value in given.items())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> "JavaCatalog":
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):
            self._process.stdin.close()
        self._process.terminate()
        self._process.wait(20)
        self._log.close()

    def tell(self, *words: object) -> str:
        """Give a command and return its answer; raise RuntimeError for an error of the engine."""
        answer = self.ask(*words)
        if answer.startswith("error"):
            raise RuntimeError(f"{words}: {answer}")
        return answer

    def ask(self, *words: object) -> str:
        """Give a command and return its answer, which begins with "error" if the engine refused it."""
        self.begin(*words)
        return self.answer()

    def begin(self, *words: object) -> None:
        """Give a command without waiting for its answer."""
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Wait for the answer to the oldest command."""
        for line in self._process.stdout:
            if line.startswith("= "):
                return line[2:].strip()
        raise RuntimeError(f"Java's catalog has ended: {Path(self._log.name).read_text()[-3000:]}")


class HiveJudge(JavaCatalog):
    """Java's HiveCatalog on a metastore."""

    def __init__(self, uri: str, warehouse: str, log: Path, **options: str) -> None:
        """Start it. ``options``: further options of the catalog, with underscores for dots."""
        given = {key.replace("_", "."): value for key, value in options.items()}
        super().__init__("HiveJudge", log, {"metastore": "hive", "uri": uri, "warehouse": warehouse, **given})


def _jars(name: str) -> Path:
    """Return the directory with jars, which Maven fills on first use."""
    directory = cache() / name
    if (directory / "complete").exists():
        return directory
    if shutil.which("mvn") is None:
        raise RuntimeError(f"{name} cannot be installed: mvn is not on PATH; install Maven")
    work = cache() / f"{name}.{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    (work / "pom.xml").write_text(_pom(_JARS[name]))
    done = subprocess.run(
        ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=."],
        cwd=work,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{name} cannot be installed: {done.stdout[-2000:]}{done.stderr[-500:]}")
    (work / "complete").touch()
    with suppress(OSError):  # another process was faster
        work.rename(directory)
    return directory


def _pom(artifacts: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
    lines = ['<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>']
    lines.append("<groupId>places</groupId><artifactId>places</artifactId><version>1</version><dependencies>")
    for artifact, excluded in artifacts:
        group, name, version = artifact.split(":")
        lines.append(f"<dependency>{_coordinates(group, name)}<version>{version}</version><exclusions>")
        lines += [f"<exclusion>{_coordinates(*other.split(':'))}</exclusion>" for other in excluded]
        lines.append("</exclusions></dependency>")
    return "\n".join([*lines, "</dependencies></project>"])


def _coordinates(group: str, artifact: str) -> str:
    return f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId>"


def _compiled(source: str, jars: Path) -> Path:
    """Return the directory with the classes of a source, compiled once."""
    text = (_JAVA / source).read_bytes()
    directory = cache() / f"{jars.name}-{source.removesuffix('.java')}-{hashlib.sha256(text).hexdigest()[:12]}"
    if not directory.exists():
        work = directory.with_suffix(f".{os.getpid()}")
        command = ["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(work), str(_JAVA / source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{source} does not compile: {done.stderr[-3000:]}")
        with suppress(OSError):  # another process was faster
            work.rename(directory)
    return directory
