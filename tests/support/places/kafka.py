"""One Kafka broker (KRaft) as a process that can be killed and started again, and a producer whose records arrive once.

The jars (45 MB) come from Maven once, into `servers.cache`. The broker needs 10 s to start and about 400 MB.
"""

import base64
import hashlib
import os
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import pyspark

from tests.support.servers import cache, free_port, listens, server

SOURCE = Path(__file__).parent / "java" / "Producer.java"
BROKER = ("org.apache.kafka:kafka_2.13:4.1.1", "org.slf4j:slf4j-simple:1.7.36")
CONNECTORS = {"4.1": "4.1.1", "4.2": "4.2.0", "4.3": "4.2.0"}
"""The version of Spark's Kafka connector for a version of Spark: its own, or the newest on Maven Central before it."""
_DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
_OF_SPARK = "".join(
    f"<exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion>"
    for group, name in (("org.apache.hadoop", "*"), ("org.scala-lang", "*"), ("org.slf4j", "*"), ("org.lz4", "*"))
)
"""What Spark has itself."""
_PROJECT = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>places</groupId>'
    "<artifactId>kafka</artifactId><version>1</version><dependencies>{}</dependencies></project>"
)
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={logs}
num.partitions={partitions}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def connector_jars() -> list[Path]:
    """Return the jars of Spark's Kafka connector, for the option ``spark.jars``."""
    version = CONNECTORS[".".join(pyspark.__version__.split(".")[:2])]
    home = _jars((f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",), _OF_SPARK)
    return sorted(home.glob("*.jar"))


class Broker:
    """A broker with its data in a directory; `start` again after `kill` continues with the same data and port."""

    def __init__(self, directory: Path, partitions: int) -> None:
        """Prepare the data. ``partitions``: of each new topic."""
        self._jars, self._directory, self._running = _jars(BROKER), directory, ExitStack()
        self.port, self.starts = free_port(), 0
        directory.mkdir(parents=True)
        self._settings = directory / "server.properties"
        logs = directory / "logs"
        text = _SETTINGS.format(port=self.port, controller=free_port(), logs=logs, partitions=partitions)
        self._settings.write_text(text)
        name = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        _run(*self._java("256m"), "kafka.tools.StorageTool", "format", "-t", name, "-c", str(self._settings))

    @property
    def address(self) -> str:
        """The host and port for clients."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the process and wait until it accepts connections."""
        self.starts += 1
        command = [*self._java("400m"), "kafka.Kafka", str(self._settings)]
        log = self._directory / f"broker-{self.starts}.log"
        self._process = self._running.enter_context(server(command, log, listens(self.port), seconds=180))

    def kill(self) -> None:
        """Send SIGKILL to the process."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End the process."""
        self._running.close()

    def _java(self, heap: str) -> list[str]:
        return ["java", f"-Xmx{heap}", "-XX:TieredStopAtLevel=1", "-cp", f"{self._jars}/*"]


class Producer:
    """A process that sends records, and repeats records without an acknowledgement, without doubling them."""

    def __init__(self, address: str, log: Path) -> None:
        """Start it. ``address``: of the broker; ``log``: the file for its messages."""
        jars = _jars(BROKER)
        classes = _compiled(jars)
        self._log = log.open("wb")
        self._process = subprocess.Popen(
            ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{jars}/*", "Producer", address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def send(self, topic: str, partition: int, key: str, value: str | None) -> None:
        """Hand over a record; ``value`` `None`: a tombstone."""
        self._process.stdin.write(f"{topic}\t{partition}\t{key}\t{chr(92) + 'N' if value is None else value}\n")

    def flush(self) -> int:
        """Wait until the broker has acknowledged every record, and return their number since the last flush."""
        self._process.stdin.write("flush\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer.startswith("= "):
            raise RuntimeError(f"the producer has ended: {Path(self._log.name).read_text()[-3000:]}")
        return int(answer[2:])

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._log.close()


def _jars(artifacts: Sequence[str], exclusions: str = "") -> Path:
    """Return the directory with artifacts and their dependencies, which Maven fills on first use."""
    directory = cache() / f"kafka-{hashlib.sha256((''.join(artifacts) + exclusions).encode()).hexdigest()[:12]}"
    if directory.exists():
        return directory
    work = directory.with_suffix(f".{os.getpid()}")
    work.mkdir()
    excluded = f"<exclusions>{exclusions}</exclusions>" if exclusions else ""
    dependencies = "".join(_DEPENDENCY.format(*artifact.split(":"), excluded) for artifact in artifacts)
    (work / "pom.xml").write_text(_PROJECT.format(dependencies))
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=."]
    try:
        _run("mvn", "-q", "-B", "-f", str(work / "pom.xml"), *goal)
    except (FileNotFoundError, RuntimeError) as error:
        shutil.rmtree(work)
        raise RuntimeError(f"{artifacts[0]} cannot be installed: {error}") from error
    with suppress(OSError):  # another process was faster
        work.rename(directory)
    return directory


def _compiled(jars: Path) -> Path:
    """Return the directory with the class of the producer, compiled once."""
    directory = cache() / f"{jars.name}-Producer-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]}"
    if not directory.exists():
        work = directory.with_suffix(f".{os.getpid()}")
        _run("javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(work), str(SOURCE))
        with suppress(OSError):  # another process was faster
            work.rename(directory)
    return directory


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stdout[-1000:]}{done.stderr[-1000:]}")
