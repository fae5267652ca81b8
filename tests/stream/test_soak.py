"""A chain of streaming queries, killed again and again, ends with exactly what went in.

Killed at drawn moments, most of them near a commit: all processes of the chain, or its JVM alone, so that Python
processes are left that go on by themselves while the chain starts again, or one Python process; now and then
the process that compacts and expires at the same time.
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from paimon_core.manifest.entry import ADD
from paimon_core.snapshot.snapshot import CommitKind
from paimon_core.table import Table
from tests.stream.chain import DELETED_OF, DRAINED, GROUPS, KEYS, UP, make, numbers_sent
from tests.stream.maintenance import EXPIRES
from tests.support.draws import rounds

pytestmark = [pytest.mark.spark, pytest.mark.long]
ROOT = Path(__file__).parent.parent.parent
SHORT, LONG = ("orders", "sums"), ("log", "orders", "mirror", "sums")
PATIENCE = 120  # seconds without a commit, or to drain: then it hangs


class Starved(Exception):
    """The chain ended because the machine was too busy to start its processes."""


class Processes:
    """A command in a session of its own: every process it starts, directly or not, is found by that session."""

    def __init__(self, log: Path, *command: str) -> None:
        self.log = log
        with log.open("wb") as out:
            command = (sys.executable, "-m", *command)
            self._leader = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out, start_new_session=True)

    def said(self, word: str) -> bool:
        """Return True if the output has this line."""
        return word in self.log.read_text(errors="replace").splitlines()

    def ended(self) -> bool:
        """Return True if the first process has ended."""
        return self._leader.poll() is not None

    def all(self) -> list[psutil.Process]:
        """Return the running processes."""
        return [process for process in psutil.process_iter() if _session(process) == self._leader.pid]

    def kill(self, victims: list[psutil.Process] | None = None) -> None:
        """SIGKILL, at once, to these or to all."""
        for process in self.all() if victims is None else victims:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if victims is None:
            self._leader.wait()

    def starved(self) -> bool:
        """Return True if Spark gave up on Python workers that did not start within ten seconds on a busy machine."""
        return "Python worker failed to connect back" in self.log.read_text(errors="replace")

    def tail(self) -> str:
        """The end of what it printed."""
        return self.log.read_text(errors="replace")[-6000:]


def _session(process: psutil.Process) -> int:
    with suppress(ProcessLookupError):
        return os.getsid(process.pid)
    return -1


def _name(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return process.name()
    return ""


class Soak:
    """The chain, its maintenance, and who gets killed when."""

    def __init__(self, directory: Path, module: str, chain: Sequence[str], seed: int) -> None:
        self.warehouse, self._directory = str(directory / "warehouse"), directory
        self.tables, self._module = make(self.warehouse, chain), module
        self._drawn = random.Random(seed)
        self._started: list[Processes] = []
        self.kills: Counter[str] = Counter()
        self.starved = 0

    def run(self, kills: int) -> None:
        """Kill the chain `kills` times, then run it to its end."""
        maintenance: Processes | None = None
        try:
            while sum(self.kills.values()) < kills:
                assert self.starved <= kills, "the machine is too busy to tell anything"
                chain = self._start(self._module)
                self._live(chain)
                if self._all_read() and (maintenance is None or self._drawn.random() < 0.3):
                    maintenance = self._again(maintenance)
            self._last(maintenance)
        finally:
            for processes in self._started:
                processes.kill()

    def sent(self) -> int:
        """Return how many numbers entered the chain."""
        return numbers_sent(f"{self.warehouse}/checkpoints/{next(iter(self.tables))}")

    def killed_expiries(self) -> set[str]:
        """Return the names of the tables whose expiry was killed before its end."""
        logs = [p.log.read_text(errors="replace").split() for p in self._started if p.log.stem.endswith("maintenance")]
        return {log[-1] for log in logs if log and log[-2] == EXPIRES}

    def _live(self, chain: Processes) -> None:
        """From the start of the chain to its death."""
        try:
            self._let_it_work(chain)
        except Starved:  # not killed by us, so it does not count; but the next has to go on from there as well
            self.starved += 1
            chain.kill()
            return
        whom = self._drawn.choices(["all", "jvm", "python"], [6, 2, 2])[0]
        if self._module != "chain" or not chain.said(UP):  # without a JVM, or one that may be about to start
            whom = "all"
        self.kills[whom] += 1
        if whom != "all":
            victims = [process for process in chain.all() if (_name(process) == "java") == (whom == "jvm")]
            chain.kill([self._drawn.choice(victims)] if victims else [])
            time.sleep(self._drawn.uniform(0, 1))
        if whom != "jvm":  # without its JVM, the rest of a chain goes on during the next one
            chain.kill()

    def _let_it_work(self, chain: Processes) -> None:
        if self._drawn.random() < 0.15:  # while it starts
            time.sleep(self._drawn.uniform(0, 8 if self._module == "chain" else 1))
        else:
            self._until(lambda: chain.said(UP), chain)
            for _ in range(self._drawn.randint(1, 3)):
                self._next_commit(self._drawn.choice(list(self.tables)), chain)
            time.sleep(self._drawn.choice([0, self._drawn.uniform(0, 0.3), self._drawn.uniform(0, 2)]))

    def _next_commit(self, table: str, chain: Processes) -> None:
        hint = Path(self.tables[table].path, "snapshot")
        before = _newest(hint)
        self._until(lambda: _newest(hint) != before, chain)

    def _until(self, true, chain: Processes) -> None:
        end = time.monotonic() + PATIENCE
        while not true():
            if chain.ended() and chain.starved():
                raise Starved
            assert not chain.ended(), f"the chain ended by itself:\n{chain.tail()}"
            assert time.monotonic() < end, f"nothing came for {PATIENCE} s:\n{chain.tail()}"
            time.sleep(0.02)

    def _again(self, maintenance: Processes | None) -> Processes:
        if maintenance is not None:
            assert not maintenance.ended(), f"maintenance ended by itself:\n{maintenance.tail()}"
            maintenance.kill()
        return self._start("maintenance", str(self._drawn.randrange(1 << 30)))

    def _all_read(self) -> bool:
        """Return True if every reading query has recorded its position, which expiry then respects."""
        read = list(self.tables.values())[:-1]
        return all(Path(table.path, "consumer", "consumer-next").exists() for table in read)

    def _last(self, maintenance: Processes | None) -> None:
        for processes in self._started:
            if processes is not maintenance:
                processes.kill()
        chain = self._start(self._module, "drain")
        end = time.monotonic() + PATIENCE
        while not chain.ended():
            assert time.monotonic() < end, f"not drained after {PATIENCE} s:\n{chain.tail()}"
            time.sleep(0.1)
            if chain.ended() and chain.starved():
                chain = self._start(self._module, "drain")
        assert chain.said(DRAINED), chain.tail()
        assert maintenance is None or not maintenance.ended(), f"maintenance ended by itself:\n{maintenance.tail()}"

    def _start(self, module: str, *arguments: str) -> Processes:
        command = f"tests.stream.{module}", self.warehouse, ",".join(self.tables), *arguments
        self._started.append(Processes(self._directory / f"{len(self._started)}-{module}.log", *command))
        return self._started[-1]


def _newest(snapshots: Path) -> int:
    """Listed, not read from the hint: that is written after the snapshot is there."""
    found = [int(name[9:]) for name in os.listdir(snapshots) if name[9:].isdecimal()] if snapshots.exists() else []
    return max(found, default=0)


def check(soak: Soak) -> None:
    """Every table holds what the numbers lead to."""
    count = soak.sent()
    newest = {v * 7919 % KEYS: v for v in range(count)}
    rows = {k: v for k, v in newest.items() if v % DELETED_OF != 5}
    for name, table in soak.tables.items():
        actual = table.to_arrow().to_pylist()
        if name == "log":
            assert sorted(row["v"] for row in actual) == list(range(count))
        elif name == "sums":
            sums = {row["g"]: (row["n"], row["total"]) for row in actual if row["n"]}
            groups = {g: [v for k, v in rows.items() if k % GROUPS == g] for g in range(GROUPS)}
            assert sums == {g: (len(values), sum(values)) for g, values in groups.items() if values}
        else:
            assert sorted((row["k"], row["v"]) for row in actual) == sorted(rows.items()), name
        check_commits(name, table)


def check_commits(name: str, table: Table) -> None:
    """Of what is kept: a batch landed once, after the one before it."""
    made = [s for s in table.snapshots() if s.commit_kind == CommitKind.APPEND]
    assert len({s.commit_user for s in made}) == 1, f"{name}: one query, one user, however often it started"
    batches = [s.commit_identifier for s in made]
    assert batches == sorted(set(batches)), name


def check_files(soak: Soak, kills: int) -> None:
    """History does not pile up: expiry keeps only the configured snapshots, and a kill leaves few orphan files.

    A killed expiry leaves the files of every snapshot it was expiring. Orphan removal deletes these, too.
    """
    left_by_expiry = soak.killed_expiries()
    for name, table in soak.tables.items():
        table.compact(full=True)
        table.maintenance.expire_snapshots(retain_max=2, retain_min=1)
        assert len(table.snapshots()) <= 3, name
        data, manifests = orphans(table)
        if name not in left_by_expiry:
            assert max(len(data), len(manifests)) <= 12 * (kills + 1), f"{name}: {sorted(data)}, {sorted(manifests)}"
        rows = table.to_arrow().num_rows
        table.maintenance.remove_orphan_files(older_than=table.store.now())
        assert orphans(table) == (set(), set()), name
        assert table.to_arrow().num_rows == rows, name


def orphans(table: Table) -> tuple[set[str], set[str]]:
    """Names of the files in buckets, and of those in `manifest`, that no snapshot refers to."""
    root, manifests = Path(table.path), table.store.manifests
    lists = [
        name
        for s in table.snapshots()
        for name in (s.base_manifest_list, s.delta_manifest_list, s.changelog_manifest_list)
        if name
    ]
    metas = {meta.file_name for name in lists for meta in manifests.read_list(name)}
    data = {entry.file.file_name for meta in metas for entry in manifests.read(meta) if entry.kind == ADD}
    indexes = {s.index_manifest for s in table.snapshots() if s.index_manifest}
    found = {path.name for path in root.rglob("bucket-*/*")}
    return found - data, {path.name for path in (root / "manifest").iterdir()} - {*lists, *metas, *indexes}


def soak(directory: Path, module: str, chain: Sequence[str], kills: int, seed: int) -> None:
    """The whole of it; what was done is printed. A seed repeats the draws, as far as processes can be repeated."""
    run = Soak(directory, module, chain, seed)
    run.run(kills)
    print(f"soak {seed}: killed {dict(run.kills)}, {run.sent():,} numbers through {' -> '.join(chain)}")
    check(run)
    check_files(run, kills)


@pytest.mark.slow
def test_killed_stream_chain_loses_no_rows(tmp_path, seed):
    soak(tmp_path, "chain", SHORT, kills=2, seed=seed + 1)


@pytest.mark.drawn
@pytest.mark.more
def test_killed_stream_chain_without_jvm_loses_no_rows(tmp_path, seed):
    soak(tmp_path, "bare_chain", LONG, kills=rounds(8), seed=seed + 1)


@pytest.mark.slow
@pytest.mark.parametrize("chain", [SHORT, LONG], ids=["short", "long"])
@pytest.mark.parametrize("run", [1, 2])
def test_stream_chain_killed_a_hundred_times_loses_no_rows(tmp_path, chain, run, seed):
    """A hundred kills in all."""
    soak(tmp_path, "chain", chain, kills=25, seed=seed + 10 * run)


@pytest.mark.slow
@pytest.mark.parametrize("chain", [SHORT, LONG], ids=["short", "long"])
def test_stream_chain_without_jvm_survives_hundreds_of_kills(tmp_path, chain, seed):
    soak(tmp_path, "bare_chain", chain, kills=200, seed=seed + 10)
