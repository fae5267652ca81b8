"""`serve`: clients of Spark Connect and of the Thrift server use the catalogs of a session."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest

import paimon_spark
from paimon_core import Table
from paimon_core.errors import AlreadyExistsError, InvalidInputError, UnsupportedError
from paimon_spark.internals import gateway_server
from paimon_spark.server import Address, check_addresses
from tests.support.command import run
from tests.support.servers import free_port, wait_until

CLIENT = Path(__file__).with_name("serve_client.py")
JARS = Path(pyspark.__file__).parent / "jars"
SECONDS = 120


def connect_client(url, **variables):
    """Run `serve_client.py`; return what it printed, or the end of its errors."""
    environment = {**os.environ, **variables}
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_AUTHENTICATE_TOKEN"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, CLIENT, url], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else done.stderr


def terminal(url, token, statement):
    """Run ``paimon-spark sql --remote``; return its exit code and what it printed."""
    command = [sys.executable, "-m", "paimon_command", "sql", "--remote", url, "--json"]
    done = subprocess.run(
        [*command, "-e", statement],
        env={**os.environ, "SPARK_CONNECT_AUTHENTICATE_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout


def beeline(address, *statements):
    """Run statements through JDBC; return the lines of their results."""
    command = ["java", "-cp", f"{JARS}/*", "org.apache.hive.beeline.BeeLine", "-u", f"jdbc:hive2://{address}"]
    texts = [part for statement in statements for part in ("-e", statement)]
    options = ["--outputformat=csv2", "--silent=true", "--showHeader=false"]
    done = subprocess.run(
        [*command, *options, *texts],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    lines = (re.sub(r"^(?:\d: jdbc:hive2://\S+> )+", "", line) for line in done.stdout.splitlines())
    return [line for line in lines if line], done.stderr


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", ":80", "h:0", "h:65536", "h:x", "h:-1"])
def test_address_needs_host_and_port(text):
    with pytest.raises(InvalidInputError, match="is not an address: write host:port"):
        Address.parse(text)


def test_addresses_of_ipv6_have_brackets():
    address = Address.parse("[::1]:10")
    assert (address.host, address.port, str(address), address.is_loopback()) == ("::1", 10, "[::1]:10", True)


@pytest.mark.parametrize(
    ("connect", "thrift", "token", "method", "fault"),
    [
        ("0.0.0.0:1", None, None, None, "and connect would let everyone in: set a token"),
        (None, "0.0.0.0:1", "t", "nosasl", "and thrift would let everyone in: set spark.hadoop.hive.server2.auth"),
        ("nowhere.invalid:1", None, None, None, "the host of nowhere.invalid:1 is unknown"),
        ("127.0.0.1:1", "127.0.0.1:1", None, None, "connect and thrift cannot share 127.0.0.1:1"),
        ("127.0.0.1:1", None, " ", None, "the token is empty"),
        (None, None, None, None, "nothing to serve"),
    ],
)
def test_unsafe_or_impossible_addresses_are_refused(connect, thrift, token, method, fault):
    with pytest.raises(InvalidInputError, match=fault):
        check_addresses(connect, thrift, token, method)


@pytest.mark.parametrize(("token", "method", "insecure"), [("t", "LDAP", False), (None, None, True)])
def test_other_machines_connect_with_authentication_or_on_request(token, method, insecure):
    addresses = f"0.0.0.0:{free_port()}", f"0.0.0.0:{free_port()}"
    _, secrets = check_addresses(*addresses, token, method, insecure)
    assert secrets == {"connect": not insecure, "thrift": not insecure}


def test_address_in_use_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(AlreadyExistsError, match=r"cannot listen on 127.0.0.1:\d+: Address already in use"):
            check_addresses(f"127.0.0.1:{taken.getsockname()[1]}", None, None, None)


def test_connect_session_cannot_serve():
    with pytest.raises(UnsupportedError, match="a server needs a classic session"):
        paimon_spark.serve(SimpleNamespace(sql=None))


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (
            ["--conf", "spark.hadoop.fs.s3a.secret.key=SECRET"],
            "--conf spark.hadoop.fs.s3a.secret.key would show a secret",
        ),
        (["-o", "s3.secret-key=SECRET"], "--option s3.secret-key would show a secret"),
        (["--catalog", "paimon=/other"], "two catalogs are called 'paimon'"),
        (["--storage-file", "{file}"], "is not a JSON object of texts"),
        (["--connect", "0.0.0.0:1"], "other machines reach 0.0.0.0:1"),
    ],
)
def test_command_refuses_before_spark_starts(tmp_path, monkeypatch, arguments, fault):
    monkeypatch.setattr("paimon_spark.session_start.session", None)
    file = tmp_path / "storage.json"
    file.write_text('{"s3.secret-key": "SECRET", ')
    result = run("serve", "-w", str(tmp_path), *(one.format(file=file) for one in arguments))
    assert result.exit_code in (1, 2)
    assert fault in result.output
    assert "SECRET" not in result.output


def test_token_of_configuration_file_lets_other_machines_connect(tmp_path, monkeypatch):
    """It is the place that the error for a secret on the command line names."""
    (tmp_path / "spark-defaults.conf").write_text("spark.connect.authenticate.token abc\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    started = []
    monkeypatch.setattr("paimon_spark.session_start.session", lambda config: started.append(config) or 1 / 0)
    result = run("serve", "-w", str(tmp_path), "--connect", f"0.0.0.0:{free_port()}")
    assert len(started) == 1, result.output


EXPECTED = {
    "merged": [[2, 1, 0, 1]],
    "rows": [[1, "a"], [2, "x"], [3, "new"]],
    "past": [[1, "a"], [2, "b"]],
    "updated": [[1]],
    "deleted": [[1]],
    "compacted": [[True]],
    "snapshots": [[True]],
    "named": [[1, "A", None], [3, "new", None], [9, "q", 5]],
    "condition": "TABLE_OR_VIEW_NOT_FOUND",
    "other session": {"catalog": "spark_catalog", "view": False, "setting": "4"},
    "package": False,
}


@pytest.mark.more
@pytest.mark.spark
def test_clients_without_package_use_catalog(spark, tmp_path):
    """One session serves both protocols; its clients share tables, and nothing else."""
    paimon_spark.catalog(spark, "served", warehouse=str(tmp_path))
    connect, thrift = (f"127.0.0.1:{free_port()}" for _ in range(2))
    with paimon_spark.serve(spark, connect=connect, thrift=thrift, token="sesame-42") as server:
        url = f"sc://{connect.replace('127.0.0.1', 'localhost')}/;token="
        assert "Invalid authentication token" in connect_client(url + "wrong")
        assert connect_client(url + "sesame-42") == EXPECTED
        statements = (
            "SELECT current_catalog()",
            "USE served",
            "UPDATE shop.orders SET pieces = 7 WHERE id = 1",
            "SELECT * FROM shop.orders ORDER BY id",
            "SELECT * FROM shop.orders VERSION AS OF 1 ORDER BY id",
        )
        lines, errors = beeline(thrift, *statements)
        assert lines == ["spark_catalog", "1", "1,A,7", "3,new,NULL", "9,q,5", "1,a", "2,b"], errors
        assert "TABLE_OR_VIEW_NOT_FOUND" in beeline(thrift, "SELECT * FROM served.shop.nothing")[1]
        counted = "SELECT count(*) AS n FROM served.shop.orders"
        assert terminal(f"sc://{connect}", "sesame-42", counted) == (0, '[\n{"n": 3}\n]\n')
        assert terminal(f"sc://{connect}", "wrong", counted) == (1, "")
        assert server.running() == 0
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", server.connect.port)) != 0, "the server still listens"
    again = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    first = paimon_spark.serve(spark, connect=f"127.0.0.1:{free_port()}", token="sesame-42")
    with paimon_spark.serve(spark, connect=None, thrift=f"127.0.0.1:{free_port()}"):
        first.stop()
    with paimon_spark.serve(spark, connect=again[0], thrift=again[1]) as server:
        assert server.authenticated == {"connect": False, "thrift": False}, "the token is of the former server"
        assert beeline(again[1], "SELECT count(*) FROM served.shop.orders")[0] == ["3"]
    assert Table.open(f"{tmp_path}/shop.db/orders").to_arrow().num_rows == 3


def closed_connections(spark):
    """The closed connections to Python that the JVM keeps."""
    client = gateway_server(spark.sparkContext).getCallbackClient()
    field = spark._jvm.java.lang.Class.forName("py4j.CallbackClient").getDeclaredField("connections")
    field.setAccessible(True)
    return [kept for kept in field.get(client).toArray() if kept.getSocket() is None]


def closed_in_python(spark):
    """The closed connections to the JVM that Python keeps."""
    return [kept for kept in list(spark.sparkContext._gateway._gateway_client.deque) if kept.socket is None]


@pytest.mark.more
@pytest.mark.spark
def test_statement_leaves_no_closed_connection_behind(spark, tmp_path):
    """A MERGE calls Python inside a call to Python, in a thread that ends afterwards."""
    paimon_spark.catalog(spark, "lasting", warehouse=str(tmp_path / "w"))
    spark.sql("CREATE DATABASE lasting.db")
    spark.sql("CREATE TABLE lasting.db.t (k INT, n INT) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')")
    address = f"127.0.0.1:{free_port()}"
    with paimon_spark.serve(spark, thrift=address):
        before = len(closed_connections(spark)), len(closed_in_python(spark))
        connection = spark._jvm.java.sql.DriverManager.getConnection(f"jdbc:hive2://{address}")
        for _ in range(2):
            statement = connection.createStatement()
            statement.execute(
                "MERGE INTO lasting.db.t t USING (SELECT 1 AS k, 1 AS n) s ON t.k = s.k "
                "WHEN MATCHED THEN UPDATE SET n = t.n + s.n WHEN NOT MATCHED THEN INSERT *"
            )
            statement.close()
        connection.close()
        # Python closes its end when its thread ends, a moment after the answer.
        wait_until(lambda: (len(closed_connections(spark)), len(closed_in_python(spark))) == before)
    assert [tuple(row) for row in spark.sql("SELECT * FROM lasting.db.t").collect()] == [(1, 2)]


@pytest.mark.more
@pytest.mark.spark
@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        pytest.param(signal.SIGTERM, 0, "Stopped; 0 statements cancelled.", id="terminated", marks=pytest.mark.slow),
        pytest.param(
            signal.SIGKILL,
            -signal.SIGKILL,
            "The Python process of the server has ended, so the server ends",
            id="killed",
        ),
    ],
)
def test_end_of_command_ends_jvm(tmp_path, number, status, message):
    connect, thrift = (f"127.0.0.1:{free_port()}" for _ in range(2))
    command = [sys.executable, "-m", "paimon_command", "serve", "-w", str(tmp_path)]
    command += ["--connect", connect, "--thrift", thrift]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        lines = iter(process.stdout.readline, "")
        assert any(line.startswith("Ctrl-C stops") for line in lines), "the server did not start"
        if number == signal.SIGTERM:
            # The first client of a new server decides which class loader all later sessions have.
            statements = ("SELECT current_catalog()", "CREATE DATABASE shop", "CREATE TABLE shop.t (a INT)")
            found, errors = beeline(thrift, *statements)
            assert found == ["paimon"], errors
            assert terminal(f"sc://{connect}", "", "SHOW TABLES IN shop")[1].startswith('[\n{"namespace": "shop"')
        process.send_signal(number)
        assert message in "".join(lines)  # which ends when the JVM, which inherited the pipe, has ended
    assert process.returncode == status


STOPPED = """
import sys
import paimon_spark

warehouse, connect, thrift = sys.argv[1:]
for _ in range(2):
    spark = paimon_spark.session(warehouse=warehouse)
    with paimon_spark.serve(spark, connect=connect, thrift=thrift) as server:
        assert server.running() == 0
        spark.stop()
print("served twice")
"""


@pytest.mark.more
@pytest.mark.spark
def test_session_stops_while_it_is_served(tmp_path):
    """Its server stops, too, and leaves its addresses to the next one."""
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    program = [sys.executable, "-c", STOPPED, str(tmp_path), *addresses]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "served twice\n"), done.stderr[-2000:]
