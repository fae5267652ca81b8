"""Opponents that live in processes of their own: PyPaimon and pypaimon_rust in their own environment, Java in a JVM."""

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measure import Timing
from tests.conformance.judge import Judge

ROOT = Path(__file__).resolve().parent.parent
PYPAIMON = ("pypaimon==2.1.0", "pypaimon-rust==0.4.0")
# An installed package is compiled: a process must not compile the modules that it imports.
_BYTECODE = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(ROOT / ".venvs" / "bytecode")}
SPARK_35 = ("pyspark==3.5.*", "pyarrow>=17", "pandas<3", "numpy", "setuptools<80")


def environment(name: str, requirements: tuple[str, ...]) -> Path:
    """The Python of ``.venvs/name``, made with these requirements when it is not there."""
    home = ROOT / ".venvs" / name
    python, made = home / "bin" / "python", home / ".made"
    if not made.exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        made.touch()
    return python


class PyPaimon:
    """PyPaimon 2.1 as a server of one-line JSON commands; ``native`` has pypaimon_rust do the work."""

    def __init__(self, warehouse: Path) -> None:
        script = Path(__file__).with_name("pypaimon_worker.py")
        self._process = subprocess.Popen(
            [environment("pypaimon-bench", PYPAIMON), script, str(warehouse)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def call(self, **command: Any) -> dict[str, Any]:
        """One command and its answer; RuntimeError with what went wrong there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline() or '{"error": "the worker died"}')
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def timing(self, **command: Any) -> Timing:
        """The same for a command that measures itself."""
        answer = self.call(**command)
        return Timing(answer["wall"], answer["cpu"], answer["rows"])

    def close(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)


class Java:
    """The official engine, asked through the conformance tests' judge."""

    def __init__(self, warehouse: Path) -> None:
        self._judge = Judge(warehouse, heap="3g")
        self._cpu = psutil.Process(self._judge._process.pid)

    def read(self, table: str, threads: int = 1, columns: list[str] | None = None) -> Timing:
        """Read everything, counting; splits are read by ``threads`` threads."""
        projection = {"projection": columns} if columns else {}
        return self._timed("read_seconds", "count_read", table=table, threads=threads, **projection)

    def read_from_plan_on(self, table: str, **arguments: Any) -> Timing:
        """Plan and read everything, by one thread."""
        return self._timed("seconds", "count_read", table=table, **arguments)

    def write(self, table: str, rows: int, seed: int, **keys: int) -> Timing:
        """Generate and write rows in random order, without the commit that follows; ``keys``: the judge's key_*."""
        return self._timed("write_seconds", "write_generated", table=table, rows=rows, seed=seed, shuffle=True, **keys)

    def compact(self, table: str) -> Timing:
        """Full compaction of a table, with its commit; rows are not counted."""
        return self._timed("seconds", "compact", table=table, kind="full")

    def expire_snapshots(self, table: str, retained: int) -> Timing:
        """Expire all snapshots but the newest ``retained`` ones; a row is an expired snapshot."""
        return self._timed(
            "seconds", "expire_snapshots", "expired", table=table, retain_max=retained, retain_min=1, time_retained_ms=0
        )

    def find_orphans(self, table: str, older_than: int) -> Timing:
        """Look for orphans that were written before a moment (epoch ms); a row is an orphan."""
        return self._timed(
            "seconds", "remove_orphan_files", "deleted", table=table, older_than_ms=older_than, dry_run=True
        )

    def tags(self, table: str, count: int, first: int, **what: bool) -> Timing:
        """Create tags for the snapshots from ``first`` on, or delete them, or both; rows are not counted."""
        return self._timed("seconds", "many_tags", table=table, count=count, first=first, **what)

    def _timed(self, seconds: str, command: str, counted: str = "rows", **arguments: Any) -> Timing:
        before = self._cpu.cpu_times()
        answer = self._judge.call(command, **arguments)
        after = self._cpu.cpu_times()
        cpu = after.user + after.system - before.user - before.system
        return Timing(answer[seconds], cpu, answer.get(counted, 0))

    def close(self) -> None:
        """Stop the JVM."""
        self._judge.close()


def once(action: str, path: str, *arguments: object, calls: bool = False) -> tuple[Timing, dict[str, Any]]:
    """Run an action of `benchmarks.once` on the table at a path in a new process; return its time, and what it said.

    `calls`: count the calls to the storage, too.
    """
    code = [sys.executable, "-m", "benchmarks.once", action, path, *map(str, arguments)]
    environment = {**_BYTECODE, "COUNT_CALLS": "1" if calls else ""}
    done = subprocess.run(code, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{action} of {path} failed: {done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return Timing(answer["wall"], answer["cpu"], answer["rows"]), answer


@contextmanager
def opponents(warehouse: Path, wanted: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Start the requested opponents among ``pypaimon`` and ``java``; report and omit an opponent that cannot start."""
    running: dict[str, Any] = {}
    for name, start in (("pypaimon", PyPaimon), ("java", Java)):
        if name in wanted:
            try:
                running[name] = start(warehouse)
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                print(f"without {name}: {error}", file=sys.stderr)
    try:
        yield running
    finally:
        for worker in running.values():
            worker.close()
