"""The processes of a run: who runs, who is killed when, and the end, when all must have what was acknowledged."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from paimon_core import open_catalog
from paimon_core.catalog.catalog import Catalog
from tests.conformance.judge import Judge
from tests.processes.clients import ROLES as CLIENTS
from tests.processes.clients import java_rows
from tests.processes.history import Counts, History, histories, read_notes, violations
from tests.processes.tables import SCHEMAS, WRITTEN, TornError, check_touched, counts_of
from tests.support.places.hdfs import hdfs_server
from tests.support.places.jdbc_judge import drivers, s3_jar
from tests.support.places.postgres import postgres
from tests.support.places.versitygw import java_options, options, versitygw
from tests.support.servers import free_port

ROOT = Path(__file__).parents[2]
SERVER = "server"
PEOPLE = {
    "python": "python",
    "second": "python",
    "numbered": "numbered",
    "java": "java",
    "sql": "sql",
    "stream": "stream",
    "reader": "reader",
    "compactor": "compactor",
    "expirer": "expirer",
    "orphans": "orphans",
    SERVER: SERVER,
}
"""The role of each process that runs at the same time as the others. Java and the server have a JVM besides."""
WEIGHTS = {"python": 4, "second": 4, "numbered": 5, "java": 2, "sql": 2, "stream": 1, "compactor": 5, "expirer": 3}
WEIGHTS |= {"orphans": 3, "reader": 1}
LIFE_SECONDS = {"stream": 60.0, SERVER: 120.0}
"""The least age of a process that is killed, of those without notes. They also live until their client has worked."""
NOTED_BYTES = dict.fromkeys(("python", "second", "numbered", "java", "sql"), 900)
"""The least length of the notes of a process that is killed: some writes. Others: 1 byte, for one piece of work."""
DRAIN_SECONDS = 240.0
"""The longest time without a new row in the copy."""
BY_ITSELF = ("java", "sql", "stream", SERVER)
"""Processes that may end by themselves: their server was killed, or Java does not know the outcome of a commit."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tables are: the options of the catalog for this engine and for Java."""

    catalog: Mapping[str, str]
    java: Mapping[str, str]


@contextmanager
def place(name: str, home: Path) -> Iterator[Place]:
    """Prepare a place for tables: ``disk``, ``hdfs``, or ``s3`` with the locks of a JDBC catalog, as Java needs."""
    if name == "disk":
        yield Place({"warehouse": str(home / "warehouse")}, {})
        return
    if name == "hdfs":
        (home / "hdfs").mkdir()
        with hdfs_server(home / "hdfs") as (url, _):
            yield Place({"warehouse": f"{url}/wh"}, {})
        return
    with ExitStack() as stack:
        port, url = stack.enter_context(versitygw()), stack.enter_context(postgres())
        shared = {"metastore": "jdbc", "uri": f"{url}/postgres", "jdbc.user": "postgres", "catalog-key": "run"}
        # who is killed with the lock keeps it for this long; who has it publishes in far less
        shared |= {"lock-acquire-timeout": "20 s", "lock-check-max-sleep": "200 ms"}
        yield Place({**shared, **options(port), "warehouse": "s3://bucket/wh"}, {**shared, **java_options(port)})


class Process:
    """A process in a session of its own, with its output in a file."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log, self.begin = log, time.monotonic()
        environment = {**os.environ, "TMPDIR": str(log.parents[1] / "tmp")}  # who is killed leaves files there
        with log.open("wb") as output:
            self._leader = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.begin

    def ended(self) -> bool:
        """Return True if the process has ended."""
        return self._leader.poll() is not None

    def signal(self, number: int) -> None:
        """Send a signal to the process and its children."""
        with suppress(ProcessLookupError):
            os.killpg(self._leader.pid, number)

    def kill(self) -> None:
        """Kill the process and its children."""
        self.signal(signal.SIGKILL)
        self._leader.wait()

    def kill_jvm(self) -> None:
        """Kill the JVM of the process only."""
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self._leader.pid).children(recursive=True):
                if child.name() == "java":
                    child.kill()

    def reason(self) -> str:
        """Return the last line of the output."""
        lines = self.log.read_text(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip() and not line.startswith(" ")), "")[:300]


@dataclass
class Killing:
    """A run: all processes at the same time; one after the other is killed and started again."""

    home: Path
    at: Place
    seed: int
    without: Collection[str] = ()
    """Names in `PEOPLE` of the processes that do not run."""
    mutant: str = ""
    """The name in `mutants.MUTANTS` of the guard that Python processes lack."""
    running: dict[str, Process] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)
    pauses: int = 0
    ended: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._dice, self._lives = random.Random(self.seed), Counter[str]()
        self._port = free_port()
        for directory in ("notes", "logs", "tmp"):
            (self.home / directory).mkdir(parents=True)
        given = {"catalog": dict(self.at.catalog), "java": dict(self.at.java), "port": self._port, "seed": self.seed}
        given["mutant"] = self.mutant
        self._config = self.home / "config.json"
        self._config.write_text(json.dumps(given))
        storage = {key: value for key, value in self.at.catalog.items() if key != "warehouse"}
        (self.home / "storage.json").write_text(json.dumps(storage))
        self.catalog: Catalog = open_catalog(options=self.at.catalog)
        self.catalog.create_database("db")
        for name, schema in SCHEMAS.items():
            self.catalog.create_table(f"db.{name}", schema)

    def run(self, seconds: float) -> None:
        """Let all processes work and die for this number of seconds, and let the stream copy the rest."""
        end = time.monotonic() + seconds
        try:
            for name in PEOPLE:
                if name not in self.without:
                    self._start(name)
            while time.monotonic() < end:
                time.sleep(self._dice.uniform(0.5, 3.5))
                self._restart_ended()
                self._strike()
            for name in self.running.keys() - {SERVER, "stream"}:
                self.running.pop(name).kill()
            if "stream" in self.running:
                self._drain()
        finally:
            for process in self.running.values():
                process.kill()

    def _strike(self) -> None:
        """Kill a process, or stop it for some seconds."""
        old = [name for name in self.running if self._has_worked(name)]
        if not old:
            return
        (name,) = self._dice.choices(old, [WEIGHTS.get(one, 1) for one in old])
        process = self.running[name]
        if self._dice.random() < 0.1 and name != SERVER:
            self.pauses += 1
            process.signal(signal.SIGSTOP)
            time.sleep(self._dice.uniform(0.5, 4))
            process.signal(signal.SIGCONT)
            return
        self.kills[name] += 1
        if name in (SERVER, "java") and self._dice.random() < 0.5:
            process.kill_jvm()
            time.sleep(self._dice.uniform(0, 1))  # then its Python processes go on for a moment
        process.kill()
        self._start(name)

    def _has_worked(self, name: str) -> bool:
        if name in LIFE_SECONDS:
            return self.running[name].age > LIFE_SECONDS[name] and self._has_worked("sql")
        notes = self.home / "notes" / f"{self._life(name)}.jsonl"
        return notes.exists() and notes.stat().st_size >= NOTED_BYTES.get(name, 1)

    def _life(self, name: str) -> str:
        """Return the name of the running process: each start of a role has its own."""
        return f"{name}-{self._lives[name]}"

    def _restart_ended(self) -> None:
        for name, process in list(self.running.items()):
            if process.ended():
                reason = f"{name}: {process.reason()}"
                assert PEOPLE[name] in BY_ITSELF, f"{reason}, see {process.log}"
                self.ended[reason] += 1
                process.kill()
                self._start(name)

    def _start(self, name: str) -> None:
        self._lives[name] += 1
        life = self._life(name)
        module = "clients" if PEOPLE[name] in CLIENTS else "actors"
        command = [f"tests.processes.{module}", PEOPLE[name], life, str(self._config)]
        if name == SERVER:
            command = ["paimon_command", "serve", "-w", self.at.catalog["warehouse"], "--master", "local[2]"]
            command += ["--connect", f"127.0.0.1:{self._port}", "--storage-file", str(self.home / "storage.json")]
            command += ["--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=2"]
            command += ["--conf", "spark.driver.memory=1g"]
        self.running[name] = Process(command, self.home / "logs" / f"{life}.log")

    def _drain(self) -> None:
        """Wait until the stream has copied all rows."""
        copied, end = self.counts("copy"), time.monotonic() + DRAIN_SECONDS
        while copied != self.counts("log"):
            assert time.monotonic() < end, f"the stream does not go on: {self.running['stream'].reason()}"
            if copied != (copied := self.counts("copy")):
                end = time.monotonic() + DRAIN_SECONDS
            self._restart_ended()
            time.sleep(1)

    def counts(self, table: str) -> Counts:
        """Return the writes that a table has now."""
        return counts_of(table, self.catalog.table(f"db.{table}").to_arrow())

    def notes(self) -> list[dict[str, Any]]:
        """Return what the processes noted."""
        return read_notes((self.home / "notes").iterdir())


def check(run: Killing) -> str:
    """Check the end and the histories of a run; return what happened in it. Raises AssertionError for a difference."""
    notes = run.notes()
    found = histories(notes)
    _check_torn(run)
    for name in WRITTEN:
        begin = time.monotonic()
        counts = run.counts(name)
        note = {"do": "read", "table": name, "reader": "the end", "begin": begin, "at": time.monotonic()}
        notes.append({**note, "counts": counts})
        history = histories(notes)[name]
        wrong = violations(history)
        assert not wrong, f"{name}: {len(wrong)} violations, such as\n" + "\n".join(wrong[:10])
        for write in history.acknowledged:
            assert write.number < counts.get(write.writer, 0), f"{name} lacks {write}"
    _check_java(run)
    rows = run.catalog.table("db.log").to_arrow()
    sure = Counter((n["writer"], n["before"]) for n in notes if n["do"] == "updated" and n["sure"])
    tried = Counter((n["writer"], n["before"]) for n in notes if n["do"] == "update")
    refused = Counter((n["writer"], n["before"]) for n in notes if n["do"] == "updated" and not n["sure"])
    updates = check_touched(rows, [(*one, bool(sure[one])) for one in tried if not refused[one]])
    files = _check_tables(run)
    return _summary(run, notes, found, updates, files)


def _check_torn(run: Killing) -> None:
    for log in (run.home / "logs").iterdir():
        text = log.read_text(errors="replace")
        assert TornError.__name__ not in text, f"{log}: {text[-2000:]}"


def _check_java(run: Killing) -> None:
    warehouse = run.at.catalog["warehouse"]
    jars = [*drivers(), s3_jar()] if run.at.java else []
    with Judge(warehouse, heap="500m", options=run.at.java, jars=jars) as judge:
        for name in SCHEMAS:
            assert counts_of(name, java_rows(judge, name)) == run.counts(name), f"Java reads other rows of {name}"


def _check_tables(run: Killing) -> int:
    """Check that the tables are sound without the files that killed processes left; return the number of these."""
    removed = 0
    for name in SCHEMAS:
        table, counts = run.catalog.table(f"db.{name}"), run.counts(name)
        removed += table.maintenance.remove_orphan_files(older_than=int(time.time() * 1000)).count
        faults = table.verify(deep=True).faults
        assert not faults, f"{name}: {faults[:5]}"
        assert run.counts(name) == counts, f"{name} has other rows without its orphan files"
    return removed


def _summary(run: Killing, notes: list[dict[str, Any]], found: Mapping[str, History], updates: int, files: int) -> str:
    by = Counter(write.writer.split("-")[0] for one in found.values() for write in one.acknowledged)
    reads = Counter(read.reader.split("-")[0] for one in found.values() for read in one.reads)
    longest = max((write.end - write.begin for one in found.values() for write in one.acknowledged), default=0)
    begun = sum(len(one.writes) for one in found.values())
    refused = Counter(f"{n['what']}: {n['error']}" for n in notes if n["do"] in ("refused", "missed", "unknown"))
    expired, removed = (sum(n["count"] for n in notes if n["do"] == do) for do in ("expired", "removed"))
    newest = {name: run.catalog.table(f"db.{name}").snapshot() for name in SCHEMAS}
    snapshots = {name: 0 if snapshot is None else snapshot.id for name, snapshot in newest.items()}
    lines = [
        f"{run.kills.total()} kills {dict(run.kills.most_common())}, {run.pauses} pauses",
        f"{by.total()} acknowledged writes of {begun} begun {dict(by.most_common())}, {updates} updates, "
        f"the longest write took {longest:.0f} s",
        f"{reads.total()} reads {dict(reads.most_common())}",
        f"snapshots {snapshots}, {sum(n['do'] == 'compacted' for n in notes)} compactions, {expired} snapshots expired",
        f"{removed} orphan files removed during the run and {files} at the end",
        f"refused or missed: {dict(refused.most_common(12))}",
        f"ended by themselves: {dict(run.ended.most_common(12))}",
    ]
    return "\n".join(lines)
