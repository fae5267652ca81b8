"""A writer in a process: ``python -m tests.support.places.racer``; it commits rows one by one and reports each commit.

It reads a JSON object from its input: the path of a table, the storage options, the number of the writer and the number
of commits. It prints the id of every row whose commit was acknowledged.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from paimon_core import Schema, Table

STEP = 1_000_000
"""The ids of writer n are ``n * STEP`` and the following."""
_ROOT = Path(__file__).parents[3]
COLUMNS = pa.schema([pa.field("id", pa.int64(), False)])
SCHEMA = Schema(COLUMNS)


def commit_rows(path: str, options: Mapping[str, str], writer: int, commits: int) -> None:
    """Append one row per commit, and print the id of each row after its commit."""
    table = Table.open(path, options)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(commits):
        table.write(pa.table({"id": [writer * STEP + number]}, schema=COLUMNS))
        print(writer * STEP + number, flush=True)


class Racer:
    """A writer in a process. After `go`, its lines are read in another thread."""

    def __init__(self, path: str, options: Mapping[str, str], writer: int, commits: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.places.racer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
        )
        self.acknowledged: list[int] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._send(json.dumps([path, dict(options), writer, commits]))

    def wait_ready(self) -> None:
        """Wait until the table is open."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line == "ready", (line, self.errors())

    def go(self) -> None:
        """Begin to commit."""
        self._reader.start()
        self._send("go")

    def join(self, seconds: float = 300) -> int:
        """Wait for the end of the process; return its exit code."""
        code = self.process.wait(seconds)
        self._reader.join(30)
        return code

    def errors(self) -> str:
        """Return what the process wrote to its error output, after its end."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def _send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.acknowledged.append(int(line))


if __name__ == "__main__":
    given = json.loads(sys.stdin.readline())
    commit_rows(*given)
