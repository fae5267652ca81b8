"""A standalone cluster of Spark on this machine: a master, and workers of one core that can be killed."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pyspark

from tests.support.servers import free_port, listens


class StandaloneCluster:
    """A running cluster. Use it in a ``with`` block."""

    def __init__(self, work: Path, hosts: Sequence[str] = ("127.0.0.1", "127.0.0.1")) -> None:
        """Start a master, and a worker on each host. ``work``: a directory for logs and for the files of executors."""
        self._work, self._hosts = work, hosts
        self._log = (work / "log").open("wb")
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._workers: list[subprocess.Popen[bytes]] = []
        self._master = self._start("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        try:
            wait_for(port, 240)
        except TimeoutError:
            self.__exit__()
            raise
        self._workers = [self._worker(number) for number in range(len(hosts))]

    def __enter__(self) -> "StandaloneCluster":
        return self

    def __exit__(self, *error: object) -> None:
        for process in (*self._workers, self._master):
            process.terminate()
            process.wait(timeout=30)
        self._log.close()

    def seconds_of_executor(self, number: int) -> float:
        """Return for how long the executor of a worker has run; 0: there is no executor yet."""
        with suppress(psutil.NoSuchProcess):
            executors = psutil.Process(self._workers[number].pid).children()
            return max((time.time() - executor.create_time() for executor in executors), default=0.0)
        return 0.0

    def kill(self, number: int) -> int:
        """Kill a worker, its executors and their Python processes with ``kill -9``. Return how many processes died."""
        process = psutil.Process(self._workers[number].pid)
        victims = [process, *process.children(recursive=True)]
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.send_signal(signal.SIGKILL)
        self._workers[number].wait(timeout=30)
        return len(victims)

    def restart(self, number: int) -> None:
        """Start a worker in place of one that was killed."""
        self._workers[number] = self._worker(number)

    def _worker(self, number: int) -> subprocess.Popen[bytes]:
        place = ("--host", self._hosts[number], "--work-dir", str(self._work / str(number + 1)))
        return self._start("worker.Worker", *place, *["--cores", "1", "--memory", "1g", "--webui-port", "0"], self.url)

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
        environment["SPARK_MASTER_OPTS"] = "-Dspark.deploy.maxExecutorRetries=-1"  # as often as workers are killed
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        return subprocess.Popen(command, env=environment, stdout=self._log, stderr=self._log)


def wait_for(port: int, seconds: float = 60) -> None:
    """Wait until something listens on a port of this machine. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if listens(port)():
            return
        time.sleep(0.2)
    raise TimeoutError(f"nothing listens on port {port} after {seconds} s")
