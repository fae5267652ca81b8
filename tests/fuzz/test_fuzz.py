"""Decoders and parsers keep their promises on hostile inputs: see the README of this folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import corpus
from tests.fuzz.table_targets import Jail
from tests.fuzz.target import ROOT, Escape, Target, check
from tests.fuzz.targets import TARGETS

WHOLE_TABLES = sorted(name for name in TARGETS if name.startswith("table-") or name == "call")
OTHERS = sorted(TARGETS.keys() - set(WHOLE_TABLES))


@pytest.mark.parametrize("name", OTHERS)
def test_stored_inputs_keep_promises(name):
    for kind, data in corpus.stored(name):
        fault = check(TARGETS[name], data)
        assert fault is None, (kind, data[:500], fault.trace)


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE_TABLES)
def test_stored_inputs_of_whole_tables_keep_promises(name):
    for kind, data in [*corpus.stored(name), *(("seed", seed) for seed in TARGETS[name].seeds())]:
        fault = check(TARGETS[name], data)
        assert fault is None, (kind, data[:500], fault.trace)


@pytest.mark.parametrize(
    "minutes", [pytest.param("1", marks=pytest.mark.minutes), pytest.param("60", marks=pytest.mark.slow)]
)
def test_every_target_runs_from_its_seeds(tmp_path, minutes):
    command = [sys.executable, "-m", "tests.fuzz", "--minutes", minutes, "--directory", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_corpus_has_no_file_without_target():
    assert {path.stem for path in corpus.CORPUS.glob("*.txt")} <= TARGETS.keys()
    assert sum(path.stat().st_size for path in corpus.CORPUS.glob("*.txt")) < 100_000


def broken(error: BaseException) -> Target:
    def run(data: bytes) -> None:
        raise error

    return Target("broken", "bytes", lambda: [b""], run)


@pytest.mark.parametrize("error", [KeyError("a"), MemoryError(), Escape("open"), RecursionError()], ids=repr)
def test_broken_promise_is_a_fault(error):
    fault = check(broken(error), b"")
    assert fault is not None
    assert fault.kind == type(error).__name__


def test_file_outside_of_table_is_an_escape():
    io = Jail()
    for path in ("memory://w/db.db/other", "/etc/passwd", "memory://w/db.db/t/../other", "memory://w/db.db/t2"):
        with pytest.raises(Escape):
            io.read(path)
    assert io.list("memory://w/db.db/t/snapshot") == []


def test_corpus_keeps_inputs(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus, "CORPUS", Path(tmp_path))
    corpus.keep("a", [b"fault"], [b"edge", b"x" * 9])
    corpus.keep("a", [b"other"], [])
    stored = [("edge", b"edge"), ("edge", b"x" * 9), ("fault", b"fault"), ("fault", b"other")]
    assert sorted(corpus.stored("a")) == stored
