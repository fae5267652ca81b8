"""SQL from the terminal."""

import logging
import os
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from paimon_command.invocation import Invocation, command
from paimon_command.output import Answer
from paimon_command.spark import connector
from paimon_command.sql_prompt import Names, prompt_session, run_prompt
from paimon_command.sql_results import SqlRunner, message_of
from paimon_command.sql_session import SESSION_OPTIONS, check_session_options, start_session, storage_of
from paimon_command.sql_text import split_statements
from paimon_core.errors import InvalidInputError

_LIMIT = 1_000
_PORT = 15002
_SECONDS = 10.0
_TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"


@command(
    "sql",
    click.Option(["--execute", "-e", "execute"], multiple=True, metavar="SQL", help="Run statements. Repeatable."),
    click.Option(
        ["--file", "-f", "file"],
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Run the statements of a file. Repeatable.",
    ),
    click.Option(["--csv", "as_csv"], is_flag=True, help="Print CSV with a header; NULL is an empty field."),
    click.Option(
        ["--limit"],
        type=click.IntRange(min=0),
        help=f"Print at most this number of rows of a result; 0: all. Default: {_LIMIT} at the prompt, else all.",
    ),
    click.Option(["--time", "timing"], is_flag=True, help="Print the time of each statement, as the prompt does."),
    click.Option(
        ["--remote"],
        metavar="URL",
        help="Use a server of Spark Connect, such as sc://localhost:15002, instead of a session of its own.",
    ),
    click.Option(
        ["--token-file"],
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=f"A file with the token for --remote. Default: the variable {_TOKEN_VARIABLE}.",
    ),
    *SESSION_OPTIONS,
    table=False,
)
def sql(call: Invocation) -> Answer | None:
    """Run SQL: at a prompt, or the statements of -e, -f or standard input.

    It starts Spark with the catalog of --warehouse, or connects to a server with --remote. Statements end with a
    semicolon.
    At the first statement that fails, it exits with 1.
    """
    if call["as_csv"] and call.output.as_json:
        raise click.UsageError("choose either --json or --csv")
    texts = [*call["execute"], *(file.read_text(encoding="utf-8") for file in call["file"])]
    at_prompt = not texts and sys.stdin.isatty()
    if not texts and not at_prompt:
        texts = [sys.stdin.read()]
    form = "json" if call.output.as_json else "csv" if call["as_csv"] else "table"
    limit = call["limit"] if call["limit"] is not None else _LIMIT if at_prompt else 0
    with _session(call) as spark:
        runner = SqlRunner(spark, form, limit or None, timing=at_prompt or call["timing"])
        if at_prompt:
            names = Names(spark)
            run_prompt(runner, names, prompt_session(names))
        for text in texts:
            statements, rest = split_statements(text)
            for statement in [*statements, *([rest] if rest else [])]:
                runner.run(statement)
    return None


@contextmanager
def _session(call: Invocation) -> Iterator[Any]:
    """Yield a session with the catalogs of the options, or of the server of ``--remote``."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # the user receives the errors that it would log
    if call["remote"]:
        yield _remote_session(call)
        return
    spark = start_session(call, check_session_options(call), storage_of(call))
    try:
        yield spark
    finally:
        connector("paimon_spark.spark_servers").end(spark)


def _remote_session(call: Invocation) -> Any:
    """Return a session of a Connect server. Raises UsageError for a token in its URL, which other users could see."""
    url = call["remote"]
    if "token=" in url:
        raise click.UsageError(
            f"--remote would show the token in the list of processes: set it in --token-file or {_TOKEN_VARIABLE}"
        )
    token = call["token_file"].read_text().strip() if call["token_file"] else os.environ.get(_TOKEN_VARIABLE)
    url = _probed(url, needs_tls=bool(token))
    if token:
        url += ("" if "/;" in url else "/") + f";token={token}"
    try:
        spark = connector("pyspark.sql").SparkSession.builder.remote(url).getOrCreate()
        spark.version  # noqa: B018  connects
    except Exception as error:  # of Spark and of gRPC
        raise InvalidInputError(f"cannot use {call['remote']}: {message_of(error)}") from error
    return spark


def _probed(url: str, *, needs_tls: bool) -> str:
    """Return the URL of a server that listens; with a loopback address as ``localhost``.

    PySpark's client sends a token through TLS only, unless the host is ``localhost``, and it tries to connect for
    minutes. Raises UsageError for another URL, InvalidInputError if nothing listens, or if the server lacks TLS.
    """
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:  # a port that is no number
        host, port = None, _PORT
    if parts.scheme != "sc" or host is None:
        raise click.UsageError(f"--remote {url!r} is not a URL such as sc://localhost:15002")
    try:
        with socket.create_connection((host, port), timeout=_SECONDS) as connection:
            if host in ("127.0.0.1", "::1"):
                return url.replace(parts.netloc, f"localhost:{port}", 1)
            if needs_tls and host != "localhost":
                _check_tls(connection, f"{host}:{port}")
    except OSError as error:
        raise InvalidInputError(f"nothing listens on {host}:{port}: {error.strerror or error}") from None
    return url


def _check_tls(connection: socket.socket, address: str) -> None:
    """Raise InvalidInputError if a server does not speak TLS. The client verifies its certificate later."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        context.wrap_socket(connection).close()
    except (ssl.SSLError, ConnectionError, TimeoutError):
        raise InvalidInputError(
            f"{address} does not speak TLS, without which PySpark sends a token only to localhost: connect through a "
            "proxy that ends TLS, or through a tunnel (ssh -L) to localhost"
        ) from None
