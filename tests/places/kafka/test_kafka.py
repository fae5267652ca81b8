"""Kafka to Paimon: after a kill of the broker, of an executor or of the driver, the tables equal what was produced.

The queries come from demo/kafka.py, and run on a standalone cluster of two workers. Change records are Debezium's:
creates, updates, deletes with tombstones, snapshot reads, repetitions. Some keys change their partition, so that their
records come out of order, and the orders get a column halfway.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress

import psutil
import pytest

from paimon_core import Table
from tests.places.kafka.follow import UP
from tests.spark.conftest import standalone  # noqa: F401
from tests.stream.test_soak import Processes, check_commits
from tests.support.markdown import ROOT
from tests.support.places.kafka import Broker, Producer, connector_jars

pytestmark = [pytest.mark.places, pytest.mark.spark]
PARTITIONS, KEYS, WANDERING = 3, 60, 12
PATIENCE = 300  # seconds until the tables have caught up
VICTIMS = ("broker", "executor", "driver")


class Source:
    """The database and the devices behind the topics, and what the tables must hold."""

    def __init__(self, producer, drawn):
        self.producer, self.drawn, self.noted = producer, drawn, False
        self.orders, self.events, self.lsn = {}, 0, 0
        self.sent = [[] for _ in range(PARTITIONS)]

    def produce(self, count):
        """Send records of both topics; return when the broker has acknowledged them."""
        for _ in range(count):
            self._event()
            self._change()
            if self.drawn.random() < 0.05:
                self._repeat()
        self.producer.flush()

    def _event(self):
        value = json.dumps({"id": self.events, "device": f"d{self.events % 5}", "value": self.events / 2})
        self.producer.send("events", self.drawn.randrange(PARTITIONS), "e", value)
        self.events += 1

    def _change(self):
        key, self.lsn = self.drawn.randrange(KEYS), self.lsn + 1
        before = self.orders.get(key)
        if before is not None and key >= WANDERING and self.drawn.random() < 0.3:
            op, after = "d", None
            del self.orders[key]
        else:
            op = "u" if before else self.drawn.choice("cr")
            after = {"id": key, "customer": f"c{self.drawn.randrange(9)}", "amount": f"{self.lsn}.25"}
            if self.noted:
                after["note"] = self.drawn.choice([None, f"n{self.lsn}"])
            self.orders[key] = {**after, "lsn": self.lsn}
        before = before and {name: value for name, value in before.items() if name != "lsn"}
        value = {"before": before, "after": after, "op": op, "source": {"lsn": self.lsn, "table": "orders"}}
        self._send(key, json.dumps(value))
        if op == "d":
            self._send(key, None)

    def _send(self, key, value):
        """Records of a key keep their order, except for wandering keys, which are never deleted."""
        partition = self.drawn.randrange(PARTITIONS) if key < WANDERING else key % PARTITIONS
        if key >= WANDERING:
            self.sent[partition].append((key, value))
        self.producer.send("orders", partition, json.dumps({"id": key}), value)

    def _repeat(self):
        """Send the last records of a partition again, as a connector does that starts again."""
        partition = self.drawn.randrange(PARTITIONS)
        for key, value in self.sent[partition][-8:]:
            self.producer.send("orders", partition, json.dumps({"id": key}), value)


class Pipeline:
    """A broker, its producer, and the driver of the queries: what can be killed, and what must come out."""

    def __init__(self, directory, master, seed):
        self.directory, self.master, self.warehouse = directory, master, str(directory / "warehouse")
        self.broker, self.drawn, self.columns = Broker(directory / "broker", PARTITIONS), random.Random(seed), ()
        self.broker.start()
        self.source = Source(Producer(self.broker.address, directory / "producer.log"), random.Random(seed + 1))
        self.kills, self.drivers = Counter(), []

    def start(self):
        """Start the driver."""
        arguments = self.broker.address, self.warehouse, self.master, *self.columns
        log = self.directory / f"driver-{len(self.drivers)}.log"
        self.drivers.append(Processes(log, "tests.places.kafka.follow", *arguments))

    def close(self):
        """End every process."""
        for driver in self.drivers:
            driver.kill()
        self.source.producer.close()
        self.broker.stop()

    def strike(self, victim):
        """Kill a process while records are produced."""
        producing = threading.Thread(target=lambda: [self.source.produce(40) for _ in range(8)])
        producing.start()
        time.sleep(self.drawn.uniform(0, 3))
        if victim == "broker":
            self.broker.kill()
            time.sleep(self.drawn.uniform(0, 3))
            self.broker.start()
        elif victim == "driver":
            self.drivers[-1].kill()
            self.start()
        else:
            self.drawn.choice(executors()).kill()
        self.kills[victim] += 1
        producing.join(PATIENCE)
        assert not producing.is_alive(), "the broker does not acknowledge records"

    def settle(self):
        """Wait until the tables equal the source; no event may be in its table twice at any time."""
        end, differences = time.monotonic() + PATIENCE, ["not compared yet"]
        while differences:
            driver = self.drivers[-1]
            if driver.ended():  # without its broker a query may end, and a scheduler starts it again
                assert "org.apache.kafka" in driver.log.read_text(errors="replace"), driver.tail()
                self.start()
            assert time.monotonic() < end, f"{self.kills}: {differences}\n{driver.tail()}"
            time.sleep(0.5)
            differences = self.differences() if self.drivers[-1].said(UP) else ["the driver starts"]

    def differences(self):
        """Return the names of the tables that differ from the source."""
        names = [name for name in ("orders", "merged") if self.orders_in(name) != self.source.orders]
        events = self.table("events").to_arrow(["id", "partition", "offset"])
        ids = events["id"].to_pylist()
        assert len(set(ids)) == len(ids), "an event is in the table twice"
        places = set(zip(events["partition"].to_pylist(), events["offset"].to_pylist(), strict=True))
        assert len(places) == len(ids)
        return names + ["events"] * (sorted(ids) != list(range(self.source.events)))

    def orders_in(self, name):
        """Return the rows of a table of orders as the source has them."""
        rows = self.table(name).to_arrow().to_pylist()
        found = {row["id"]: {**row, "amount": str(row["amount"])} for row in rows}
        assert len(found) == len(rows), f"{name}: a key is there twice"
        if "note" in self.columns:
            return {
                key: row if "note" in self.source.orders.get(key, row) else without(row) for key, row in found.items()
            }
        return found

    def table(self, name):
        """Return a table."""
        return Table.open(f"{self.warehouse}/shop.db/{name}")


def without(row):
    """Return a row without its note, which must be NULL."""
    assert row["note"] is None
    return {name: value for name, value in row.items() if name != "note"}


def executors():
    """Return the executors of the cluster of this process."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = [one for one in psutil.Process().children(recursive=True) if is_executor(one)]
        if found:
            return found
        time.sleep(0.2)
    raise TimeoutError("no executor runs")


def is_executor(process):
    """Return True for a running executor of Spark."""
    with suppress(psutil.NoSuchProcess):  # a process that has ended, too
        return "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline()
    return False


@pytest.fixture
def pipeline(tmp_path, standalone, seed):  # noqa: F811
    """A pipeline whose first records have arrived."""
    running = Pipeline(tmp_path, standalone, seed)
    try:
        running.source.produce(100)
        running.start()
        running.settle()
        yield running
    finally:
        running.close()


def check(pipeline, rounds):
    """Kill each process, add a column, and kill each again."""
    for _ in range(rounds):
        for victim in VICTIMS:
            pipeline.strike(victim)
            pipeline.settle()
    pipeline.drivers[-1].kill()
    pipeline.columns = ("note",)
    pipeline.start()
    pipeline.settle()
    pipeline.source.noted = True
    for _ in range(rounds):
        for victim in VICTIMS:
            pipeline.strike(victim)
            pipeline.settle()
    print(f"kills {dict(pipeline.kills)}, {pipeline.source.events:,} events, {pipeline.source.lsn:,} changes")
    for name in ("events", "orders"):
        check_commits(name, pipeline.table(name))
        assert pipeline.table(name).verify(deep=True).sound


def test_kills_change_no_table(pipeline):
    check(pipeline, rounds=1)


@pytest.mark.slow
def test_many_kills_change_no_table(pipeline):
    check(pipeline, rounds=6)


def test_demo_ends_with_equal_tables(tmp_path):
    broker = Broker(tmp_path / "broker", PARTITIONS)
    broker.start()
    try:
        jars = ",".join(map(str, connector_jars()))
        command = [sys.executable, "demo/kafka.py", broker.address, str(tmp_path / "warehouse"), jars]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    finally:
        broker.stop()
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Both tables of orders have the same rows, and every event is there once." in done.stdout
