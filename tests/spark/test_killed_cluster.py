"""Both workers of a standalone cluster are killed again and again while statements write, merge and compact."""

import json
import os
import random
import subprocess
import sys
import time

import pytest

from paimon_core import Table
from tests.spark.conftest import MODE, ROOT
from tests.support.standalone import StandaloneCluster


@pytest.mark.spark
@pytest.mark.skipif(MODE != "classic", reason="it starts a cluster of its own")
@pytest.mark.parametrize(
    "seconds", [pytest.param(180, marks=pytest.mark.slow), pytest.param(1800, marks=pytest.mark.slow)]
)
def test_killed_workers_lose_no_row_and_leave_no_part(tmp_path, seed, seconds):
    rng, warehouse, log = random.Random(seed), tmp_path / "warehouse", tmp_path / "driver.log"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = processes = 0
    with StandaloneCluster(tmp_path) as cluster, log.open("w") as out:
        command = [sys.executable, "-m", "tests.spark.killed_cluster", cluster.url, str(warehouse), str(seconds)]
        driver = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
        try:
            while driver.poll() is None:
                first, age = rng.randrange(2), rng.uniform(5, 40)
                victims = [first, 1 - first] if rng.random() < 0.25 else [first]
                while driver.poll() is None and cluster.seconds_of_executor(first) < age:
                    time.sleep(0.2)
                if driver.poll() is not None:
                    break
                processes += sum(map(cluster.kill, victims))
                killed += len(victims)
                time.sleep(rng.uniform(0, 3))
                for victim in victims:
                    cluster.restart(victim)
        finally:
            driver.kill()
            driver.wait()
    text = log.read_text(errors="replace")
    assert driver.returncode == 0, text[-8000:]
    counts = json.loads(text.splitlines()[-1])
    print(f"{killed} workers killed, {processes} processes: {counts}")
    assert killed > seconds / 60
    assert counts["acknowledged"] > seconds / 60
    for name in ("log", "counts"):
        table = Table.open(str(warehouse / "d.db" / name))
        table.maintenance.remove_orphan_files(table.store.now())
        assert table.verify(deep=True).sound
