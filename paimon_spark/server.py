"""A server for SQL clients: Spark Connect, and Spark's Thrift server for JDBC, in the JVM of a classic session.

Clients need no package and no jar. Their sessions find the catalogs that the session of the server has installed, and
the Python process of that session answers for them.
"""

import ipaddress
import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType

from pyspark.sql import SparkSession

from paimon_core.errors import AlreadyExistsError, InvalidInputError, UnsupportedError
from paimon_spark.internals import is_classic
from paimon_spark.session_checks import check_session
from paimon_spark.spark_servers import ConnectService, ThriftService, has_ended, has_stopped
from paimon_spark.sql.bridge.jvm import Jvm
from paimon_spark.sql.format import install_format

CONNECT_ADDRESS = "127.0.0.1:15002"
"""The address of Spark Connect unless another one is set."""
THRIFT_ADDRESS = "127.0.0.1:10000"
"""The address of the Thrift server unless another one is set."""
GRACE = 30.0
"""The seconds that running statements have to finish."""
_CANCEL = 10.0
"""The seconds that cancelled statements have to end."""
_PAUSE = 0.1
_START = 30.0
"""The seconds that a server has to listen."""
_TOKEN = "spark.connect.authenticate.token"
_HOST, _PORT = (f"spark.connect.grpc.binding.{part}" for part in ("address", "port"))
_TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_THRIFT_AUTHENTICATION = "hive.server2.authentication"
_AUTHENTICATION = {
    "connect": f"set a token (the variable {_TOKEN_VARIABLE})",
    "thrift": f"set spark.hadoop.{_THRIFT_AUTHENTICATION} to LDAP, KERBEROS, PAM or CUSTOM",
}
"""The advice to make clients authenticate, by server."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the address of a text ``host:port``. Raises InvalidInputError for another text."""
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise InvalidInputError(f"{text!r} is not an address: write host:port, such as {CONNECT_ADDRESS}")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def is_loopback(self) -> bool:
        """Return True if only this machine can connect. Raises InvalidInputError for an unknown host."""
        return all(ipaddress.ip_address(ip).is_loopback for ip in self._resolved())

    def check_free(self) -> None:
        """Raise AlreadyExistsError if another program listens on the address."""
        for ip in self._resolved()[:1]:
            family = socket.AF_INET6 if ":" in ip else socket.AF_INET
            with socket.socket(family) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((ip, self.port))
                except OSError as error:
                    raise AlreadyExistsError(
                        f"cannot listen on {self}: {error.strerror}; choose another port"
                    ) from None

    def wait_until_open(self) -> None:
        """Wait until connections are accepted. Raises InvalidInputError if none is in time."""
        end = time.monotonic() + _START
        while True:
            with suppress(OSError), socket.create_connection((self.host, self.port), timeout=_PAUSE * 10):
                return
            if time.monotonic() > end:
                raise InvalidInputError(f"nothing listens on {self} after {_START:.0f} s: the log of Spark says why")
            time.sleep(_PAUSE)

    def _resolved(self) -> list[str]:
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise InvalidInputError(f"the host of {self} is unknown: {error}") from None
        return [str(address[0]).partition("%")[0] for _, _, _, _, address in found]


@dataclass(frozen=True)
class Server:
    """A running server. Leaving its block stops it.

    Attributes:
        spark: the session whose catalogs it serves.
        connect: the address of Spark Connect; `None`: no Spark Connect.
        thrift: the address of the Thrift server; `None`: no Thrift server.
        authenticated: True for ``connect`` or ``thrift`` if its clients must authenticate.
    """

    spark: SparkSession
    connect: Address | None
    thrift: Address | None
    authenticated: Mapping[str, bool]
    _services: tuple[ConnectService | ThriftService, ...] = field(repr=False)
    _settings: Mapping[str, str | None] = field(repr=False)
    """The settings of the context that the server changed, as they were before."""

    def running(self) -> int:
        """Return the number of statements that run now."""
        return sum(service.running() for service in self._services)

    def wait(self, until: Callable[[], bool]) -> bool:
        """Wait until a function returns True; return False if the JVM ends before."""
        while not until():
            if has_ended(self.spark):
                return False
            time.sleep(_PAUSE)
        return True

    def stop(self, grace: float = GRACE) -> int:
        """Stop listening, and return the number of statements that were cancelled.

        Args:
            grace: the seconds that running statements have to finish; then they are cancelled.
        """
        self._until_idle(grace)
        cancelled = self.running()
        stopped = has_stopped(self.spark)
        if cancelled and not stopped:
            self.spark.sparkContext.cancelAllJobs()
            for service in self._services:
                service.cancel()
            self._until_idle(_CANCEL)
        for service in self._services:
            service.stop()
        jvm = Jvm(self.spark)
        jvm.call("ServerEnd", "expect")
        for key, value in self._settings.items() if not stopped else ():
            jvm.set_in_context(key, value)
        return cancelled

    def _until_idle(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self.running() and time.monotonic() < end:
            time.sleep(_PAUSE)

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not has_ended(self.spark):
            self.stop()


def serve(
    spark: SparkSession,
    *,
    connect: str | None = CONNECT_ADDRESS,
    thrift: str | None = None,
    token: str | None = None,
    insecure: bool = False,
) -> Server:
    """Serve the catalogs of a session to SQL clients of other processes, and return the running server.

    Each client has a session of its own: current database, temporary views and settings.

    Args:
        spark: a classic session, with the catalogs that clients use.
        connect: the address of Spark Connect, ``host:port``; `None`: no Spark Connect.
        thrift: the address of the Thrift server, for JDBC and ODBC; `None`: no Thrift server.
        token: the token that Connect clients must send; `None`: the variable ``SPARK_CONNECT_AUTHENTICATE_TOKEN`` or
            the setting ``spark.connect.authenticate.token``, if there is one.
        insecure: accept an address that other machines reach, although clients need not authenticate.

    Examples:
        >>> spark = paimon_spark.session(warehouse="/tmp/warehouse")
        >>> server = paimon_spark.serve(spark)
        >>> server.stop()
        0

    Raises InvalidInputError for an address that other machines reach without authentication, AlreadyExistsError for an
    address in use. Raises UnsupportedError for a session of Spark Connect, and for a Spark without these servers.
    """
    if not is_classic(spark):
        raise UnsupportedError("a server needs a classic session, but this is a Spark Connect session")
    check_session(spark)
    jvm = Jvm(spark)
    secret = token if token is not None else os.environ.get(_TOKEN_VARIABLE) or jvm.context_setting(_TOKEN)
    method = jvm.context_setting(f"spark.hadoop.{_THRIFT_AUTHENTICATION}")
    addresses, secrets = check_addresses(connect, thrift, secret, method, insecure)
    install_format(spark)
    changed = (_TOKEN, _HOST, _PORT) if "connect" in addresses else ()
    before = {key: jvm.context_setting(key) for key in changed}
    services = _services(jvm, addresses, secret, before)
    jvm.call("ServerEnd", "announce")
    return Server(spark, addresses.get("connect"), addresses.get("thrift"), secrets, services, before)


def _services(
    jvm: Jvm, addresses: Mapping[str, Address], token: str | None, before: Mapping[str, str | None]
) -> tuple[ConnectService | ThriftService, ...]:
    """Start the services, all or none. If one does not start, the context gets its settings of ``before`` back."""
    services: list[ConnectService | ThriftService] = []
    try:
        if "connect" in addresses:
            address = addresses["connect"]
            if token is not None:  # of the argument, or of a variable that the JVM may lack
                jvm.set_in_context(_TOKEN, token)
            jvm.set_in_context(_HOST, address.host)
            jvm.set_in_context(_PORT, str(address.port))
            services.append(ConnectService(jvm))
        if "thrift" in addresses:
            services.append(ThriftService(jvm, addresses["thrift"].host, addresses["thrift"].port))
        for address in addresses.values():  # the Thrift server starts to listen in a thread of its own
            address.wait_until_open()
    except BaseException:
        for service in services:
            service.stop()
        for key, value in before.items():
            jvm.set_in_context(key, value)
        raise
    return tuple(services)


def check_addresses(
    connect: str | None, thrift: str | None, token: str | None, thrift_method: str | None, insecure: bool = False
) -> tuple[dict[str, Address], dict[str, bool]]:
    """Return the addresses, and whether clients must authenticate, by ``connect`` and ``thrift``.

    Args:
        connect: the address of Spark Connect; `None`: no Spark Connect.
        thrift: the address of the Thrift server; `None`: no Thrift server.
        token: the token of Connect clients; `None`: no token.
        thrift_method: the setting ``hive.server2.authentication``; `None`: its default, no password.
        insecure: accept an address that other machines reach, although clients need not authenticate.

    Raises the errors of `serve`.
    """
    addresses = {
        name: Address.parse(text) for name, text in (("connect", connect), ("thrift", thrift)) if text is not None
    }
    if not addresses:
        raise InvalidInputError("nothing to serve: name an address for connect, for thrift, or for both")
    if len(set(addresses.values())) < len(addresses):
        raise InvalidInputError(f"connect and thrift cannot share {addresses['connect']}: choose two ports")
    if token is not None and not token.strip():
        raise InvalidInputError("the token is empty: choose a long random text, or leave it out")
    secrets = {"connect": token is not None, "thrift": (thrift_method or "NONE").upper() not in ("NONE", "NOSASL")}
    for name, address in addresses.items():
        if not (secrets[name] or insecure or address.is_loopback()):
            raise InvalidInputError(
                f"other machines reach {address}, and {name} would let everyone in: {_AUTHENTICATION[name]}, listen on "
                "127.0.0.1, or allow it (insecure)"
            )
        address.check_free()
    return addresses, secrets
