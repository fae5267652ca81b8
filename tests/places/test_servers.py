"""Servers of the tests do not survive the tests."""

import signal
import subprocess
import sys
import time

import psutil

TESTS = """
import sys, time
from pathlib import Path
from tests.support.servers import server

with server(["sh", "-c", "sleep 600 & echo $!; wait"], log := Path(sys.argv[1]), lambda: log.stat().st_size) as process:
    print(process.pid, log.read_text(), flush=True)
    time.sleep(600)
"""


def runs(pid):
    """Return True if a process exists and has not ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_server_ends_if_its_tests_are_killed(tmp_path):
    command = [sys.executable, "-c", TESTS, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tests:
        pids = [int(pid) for pid in tests.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(runs, pids))
        tests.send_signal(signal.SIGKILL)
    end = time.monotonic() + 10
    while any(map(runs, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(runs, pids))
