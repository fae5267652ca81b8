"""A server for SQL clients."""

import json
import logging
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import click

from paimon_command.invocation import Invocation, command, pairs
from paimon_command.output import Answer
from paimon_command.spark import connector
from paimon_core.engine import is_secret
from paimon_core.errors import InvalidInputError, PaimonError
from paimon_core.types.human_text import count

_CONNECT, _THRIFT = "127.0.0.1:15002", "127.0.0.1:10000"
_TOKEN, _TOKEN_VARIABLE = "spark.connect.authenticate.token", "SPARK_CONNECT_AUTHENTICATE_TOKEN"


def _addressed(name: str, default: str, what: str) -> click.Option:
    return click.Option(
        [f"--{name}"],
        is_flag=False,
        flag_value=default,
        metavar="[HOST:PORT]",
        help=f"Listen for {what}; the address is {default} if it is left out.",
    )


@command(
    "serve",
    _addressed("connect", _CONNECT, "Spark Connect"),
    _addressed("thrift", _THRIFT, "JDBC and ODBC, with Spark's Thrift server"),
    click.Option(["--name"], default="paimon", show_default=True, help="The name of the catalog of --warehouse."),
    click.Option(
        ["--catalog"], multiple=True, callback=pairs, metavar="NAME=DIRECTORY", help="A further catalog. Repeatable."
    ),
    click.Option(["--master"], help="The Spark master, such as 'local[4]', 'spark://host:7077' or 'yarn'."),
    click.Option(
        ["--conf"], multiple=True, callback=pairs, metavar="KEY=VALUE", help="A setting of Spark. Repeatable."
    ),
    click.Option(
        ["--storage-file"],
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A JSON file with options of the storage, such as s3.access-key.",
    ),
    click.Option(
        ["--token-file"],
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A file with the token of Connect clients. Default: the variable SPARK_CONNECT_AUTHENTICATE_TOKEN.",
    ),
    click.Option(["--insecure"], is_flag=True, help="Let other machines connect without a token or password."),
    click.Option(
        ["--grace"],
        type=click.FloatRange(min=0),
        default=30.0,
        show_default=True,
        help="Seconds that statements have to finish at the end.",
    ),
    table=False,
)
def serve(call: Invocation) -> Answer | None:
    """Serve a warehouse to SQL clients, until Ctrl-C or SIGTERM: Spark Connect, JDBC and ODBC.

    Without --connect and --thrift, it serves Spark Connect. Without --thrift, the catalog of --warehouse is the default
    catalog of clients.
    """
    _check_secrets("--conf", call["conf"])
    _check_secrets("--option", call["option"])
    if call["name"] in call["catalog"]:
        raise click.UsageError(f"two catalogs are called {call['name']!r}: choose other names with --name or --catalog")
    catalogs = {call["name"]: call.catalog().warehouse, **call["catalog"]}
    storage = {**_storage(call["storage_file"]), **call["option"]}
    connect = call["connect"] if call["connect"] or call["thrift"] else _CONNECT
    token = call["token_file"].read_text().strip() if call["token_file"] else None
    server_module = connector("paimon_spark.server")
    settings = {**connector("paimon_spark.session_start").file_settings(), **call["conf"]}
    server_module.check_addresses(
        connect,
        call["thrift"],
        token if token is not None else os.environ.get(_TOKEN_VARIABLE) or settings.get(_TOKEN),
        settings.get("spark.hadoop.hive.server2.authentication"),
        call["insecure"],
    )
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # clients receive the errors that it would log
    spark = _session(call, catalogs, storage, has_default=call["thrift"] is None)
    try:
        server = server_module.serve(
            spark, connect=connect, thrift=call["thrift"], token=token, insecure=call["insecure"]
        )
        stopping = _signals()
        click.echo("\n".join(_lines(server, catalogs)))
        if not server.wait(stopping.is_set):
            raise InvalidInputError("Spark's JVM has ended, so the server ends; its log says why")
        click.echo(f"Stopping: {count(server.running(), 'statement')} to finish within {call['grace']:g} s.")
        cancelled = server.stop(call["grace"])
    finally:
        connector("paimon_spark.spark_servers").end(spark)
    return Answer({"cancelled": cancelled}, f"Stopped; {count(cancelled, 'statement')} cancelled.")


def _session(call: Invocation, catalogs: Mapping[str, str], storage: Mapping[str, str], *, has_default: bool) -> Any:
    """Start the session of the server, and install its catalogs.

    Args:
        call: the call of the command.
        catalogs: the warehouses of the catalogs, by name.
        storage: options of the storage.
        has_default: make the first catalog the default. The Thrift server cannot open sessions then,
            because it looks up the catalog with a class loader of Hive, which does not know the connector's classes.
    """
    start, install = connector("paimon_spark.session_start"), connector("paimon_spark.sql.catalog")
    config = {"spark.app.name": "paimon-spark serve", "spark.api.mode": "classic", **call["conf"]}
    if call["master"]:
        config["spark.master"] = call["master"]
    try:
        spark = start.session(config=config)
    except PaimonError:
        raise
    except Exception as error:  # of py4j, of Java and of Spark
        reason = str(error).strip().partition("\n")[0]
        raise InvalidInputError(f"Spark does not start: {reason}") from error
    for number, (name, warehouse) in enumerate(catalogs.items()):
        install.catalog(spark, name, warehouse=warehouse, default=has_default and number == 0, storage_options=storage)
    return spark


def _storage(file: Path | None) -> dict[str, str]:
    """Return the options of ``--storage-file``. Raises UsageError unless it is a JSON object of texts."""
    if file is None:
        return {}
    try:
        options = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:  # the error would show part of a secret
        options = None
    if not isinstance(options, dict) or not all(isinstance(value, str) for value in options.values()):
        raise click.UsageError(
            f'--storage-file {file} is not a JSON object of texts, such as {{"s3.access-key": "..."}}'
        )
    return options


def _check_secrets(option: str, values: Mapping[str, str]) -> None:
    """Raise UsageError for a secret on the command line, which everyone who lists processes would see."""
    for key in values:
        if is_secret(key):
            raise click.UsageError(
                f"{option} {key} would show a secret in the list of processes: set it in conf/spark-defaults.conf "
                "(SPARK_CONF_DIR), in --storage-file, or in --token-file"
            )


def _signals() -> threading.Event:
    """Return the event that Ctrl-C and SIGTERM set. A second Ctrl-C ends the process at once."""
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    return stopping


def _lines(server: Any, catalogs: Mapping[str, str]) -> Sequence[str]:
    """Return the lines that say what is served, and who can connect."""
    lines = [f"Catalog {name}: {warehouse}" for name, warehouse in catalogs.items()]
    if server.connect is not None:
        lines.append(f"Spark Connect: sc://{server.connect}, {_who(server, 'connect', server.connect, 'token')}")
    if server.thrift is not None:
        lines.append(f"JDBC: jdbc:hive2://{server.thrift}, {_who(server, 'thrift', server.thrift, 'password')}")
    return [*lines, "Ctrl-C stops the server."]


def _who(server: Any, name: str, address: Any, secret: str) -> str:
    machines = "from this machine only" if address.is_loopback() else "from every machine that reaches this one"
    return f"{machines}, {'with' if server.authenticated[name] else 'without'} a {secret}"
