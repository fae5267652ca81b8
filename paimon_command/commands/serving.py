"""A server for SQL clients."""

import logging
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import click

from paimon_command.invocation import Invocation, command
from paimon_command.output import Answer
from paimon_command.spark import connector
from paimon_command.sql_session import SESSION_OPTIONS, check_session_options, start_session, storage_of
from paimon_core.errors import InvalidInputError
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
    *SESSION_OPTIONS,
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

    Without --connect and --thrift, it serves Spark Connect. The catalog of --warehouse is the default.
    """
    catalogs, storage = check_session_options(call), storage_of(call)
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
    spark = start_session(call, catalogs, storage)
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
