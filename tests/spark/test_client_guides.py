"""The clients that serve.md, dbt.md and pipelines.md show, each as its page says."""

import os
import re
import shutil
import subprocess
import sys
import venv
from contextlib import contextmanager
from pathlib import Path

import pytest

import paimon_spark
from paimon_core import Table
from tests.support.markdown import ROOT, fences
from tests.support.servers import free_port

pytestmark = [pytest.mark.spark, pytest.mark.more]

GUIDES = ROOT / "docs" / "guides"
SECONDS = 600
_FILE = re.compile(r"^`(?P<name>[\w./-]+)`:\n\n```[a-z ]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def write_files(page, folder, **replaced):
    """Write the files that a page shows, with other ports and directories."""
    for found in _FILE.finditer((GUIDES / page).read_text()):
        path = folder / found["name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        text = found["text"]
        for shown, used in replaced.items():
            text = text.replace({"port": "10000", "warehouse": "/tmp/warehouse"}[shown], used)
        path.write_text(text)


def run(command, folder, **variables):
    """Run a program; return what it printed. Fails with its output unless it ends well."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def rows(warehouse, table, *columns):
    """Return the values of some columns of a table, sorted."""
    found = Table.open(f"{warehouse}/shop.db/{table}").to_arrow(columns)
    return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.fixture
def orders(spark, warehouse):
    """A catalog `paimon` with the table `shop.orders`."""
    paimon_spark.catalog(spark, "paimon", warehouse=warehouse)
    spark.sql("CREATE DATABASE paimon.shop")
    spark.sql("CREATE TABLE paimon.shop.orders (id BIGINT, customer STRING, amount DOUBLE)")
    spark.sql("INSERT INTO paimon.shop.orders VALUES (1, 'ann', 10.5), (2, 'bob', 20.0)")


def test_pipeline(spark, warehouse, orders, tmp_path):
    pytest.importorskip("yaml", reason="pyspark[pipelines] is not installed")
    write_files("pipelines.md", tmp_path, warehouse=warehouse)
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "pyspark.pipelines.cli", "run", "--spec", "spark-pipeline.yml"]
    with paimon_spark.serve(spark, connect=address):
        assert "Run is COMPLETED" in run(command, tmp_path, SPARK_REMOTE=f"sc://{address}")
        spark.sql("INSERT INTO paimon.shop.orders VALUES (2, 'bob', 5.0), (3, 'cid', 1.0)")
        assert "Run is COMPLETED" in run(command, tmp_path, SPARK_REMOTE=f"sc://{address}")
    assert rows(warehouse, "totals", "customer", "amount") == [("ann", 10.5), ("bob", 25.0), ("cid", 1.0)]
    assert rows(warehouse, "latest", "id", "amount") == [(1, 10.5), (2, 5.0), (3, 1.0)]
    assert Table.open(f"{warehouse}/shop.db/latest").schema.primary_keys == ("id",)


@contextmanager
def served(warehouse):
    """Run `paimon-spark serve` in a process of its own; yield the ports of Connect and Thrift."""
    connect, thrift = free_port(), free_port()
    command = [sys.executable, "-m", "paimon_command", "serve", "-w", warehouse]
    command += ["--connect", f"127.0.0.1:{connect}", "--thrift", f"127.0.0.1:{thrift}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert any(line.startswith("Ctrl-C stops") for line in iter(process.stdout.readline, ""))
        try:
            yield str(connect), str(thrift)
        finally:
            process.terminate()
            process.communicate(timeout=60)


@pytest.fixture(scope="module")
def dbt(tmp_path_factory):
    """The Python of an environment with dbt and PyHive."""
    folder = tmp_path_factory.mktemp("dbt")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run([python, "-m", "pip", "install", "--quiet", "dbt-core==1.10.23", "dbt-spark[PyHive]==1.10.3"], folder)
    return python


@pytest.mark.slow
def test_dbt(dbt, warehouse, tmp_path):
    with served(warehouse) as (_, port):
        write_files("dbt.md", tmp_path, port=port)
        command = [dbt.with_name("dbt"), "--no-use-colors", "build"]
        variables = {"DBT_PROFILES_DIR": str(tmp_path), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
        assert "ERROR=0" in run(command, tmp_path, **variables)
        with (tmp_path / "seeds" / "orders.csv").open("a") as seeds:
            seeds.write("3,cid,1.0,2026-01-03 00:00:00\n")
        text = (tmp_path / "seeds" / "orders.csv").read_text()
        (tmp_path / "seeds" / "orders.csv").write_text(text.replace("20.0,2026-01-01", "25.0,2026-01-02"))
        assert "ERROR=0" in run(command, tmp_path, **variables)
    assert rows(warehouse, "latest_orders", "id", "amount") == [(1, 10.5), (2, 25.0), (3, 1.0)]
    assert rows(warehouse, "by_customer", "customer", "amount") == [("ann", 10.5), ("bob", 25.0), ("cid", 1.0)]
    history = Table.open(f"{warehouse}/shop.db/order_history").to_arrow(["id", "amount", "dbt_valid_to"]).to_pylist()
    versions = sorted((row["id"], row["amount"], row["dbt_valid_to"] is None) for row in history)
    assert versions == [(1, 10.5, True), (2, 20.0, False), (2, 25.0, True), (3, 1.0, True)]


def block(info, reason):
    """Return the code of the block of serve.md with a kind and a word of the reason why it is not run there."""
    (found,) = (fence for fence in fences(GUIDES / "serve.md") if fence.info == info and reason in fence.reason)
    return found.code


@pytest.mark.slow
def test_python_client_of_thrift(spark, dbt, warehouse, orders, tmp_path):
    code = block("python fragment", "PyHive")
    with served(warehouse) as (_, port):
        printed = run([dbt, "-c", code.replace("10000", port)], tmp_path)
    assert printed.splitlines()[-1] == "[(1, 'ann'), (2, 'bob')]"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_go_client_of_connect(spark, warehouse, orders, tmp_path):
    with served(warehouse) as (port, _):
        (tmp_path / "main.go").write_text(block("go", "Go").replace("15002", port))
        run(["go", "mod", "init", "client"], tmp_path)
        run(["go", "get", "github.com/apache/spark-connect-go@v0.1.1-0.20250826122459-0e3d565b63e6"], tmp_path)
        run(["go", "mod", "tidy"], tmp_path)
        printed = run(["go", "run", "."], tmp_path)
    assert printed.splitlines()[-2:] == ["1 ann", "2 bob"]


def test_pages_show_files(tmp_path):
    write_files("dbt.md", tmp_path)
    write_files("pipelines.md", tmp_path)
    assert len([path for path in Path(tmp_path).rglob("*") if path.is_file()]) == 10
