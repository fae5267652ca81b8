"""A client of a Hive metastore: its calls over Thrift, with several addresses and broken connections.

It needs ``pip install 'pyspark-paimon[hive]'``. Versions 2.3 to 4 answer its calls.
"""

import os
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from threading import RLock
from typing import Any, Final

from paimon_core.catalog.hive.settings import HiveSettings
from paimon_core.errors import MissingDependencyError, PaimonError

_ROUNDS: Final = 3  # attempts at each address
_PAUSE: Final = 0.2  # seconds before the next round
_BATCH: Final = 300  # tables per request
_PARTITIONS: Final = 1000  # partitions per request
_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError, struct.error)
"""The errors of Thrift's decoder for bytes that are not the answer to a request."""


class MetastoreError(PaimonError):
    """The metastore cannot be reached, or has refused a request. ``kind``: the name of its exception, if it has one."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class LostAnswerError(MetastoreError):
    """The connection broke after a request was sent: it may have been carried out."""


@dataclass(frozen=True, slots=True)
class _Thrift:
    """The modules of the generated client and of Thrift."""

    service: Any
    types: Any
    socket: Any
    transport: Any
    protocol: Any
    error: type[Exception]


@lru_cache(maxsize=1)
def thrift() -> _Thrift:
    """Return the modules of the client. Raises MissingDependencyError if they are not installed."""
    try:
        from pymetastore.hive_metastore import ThriftHiveMetastore, ttypes  # noqa: PLC0415  optional
        from thrift.protocol import TBinaryProtocol  # noqa: PLC0415
        from thrift.Thrift import TException  # noqa: PLC0415
        from thrift.transport import TSocket, TTransport  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError("a Hive catalog needs pymetastore; pip install 'pyspark-paimon[hive]'") from error
    return _Thrift(ThriftHiveMetastore, ttypes, TSocket, TTransport, TBinaryProtocol, TException)


class MetastoreClient:
    """A connection to a metastore, which threads share and a forked process opens again.

    A request whose connection breaks is sent again to the next address if it can be repeated; otherwise LostAnswerError
    says that the caller must look.
    """

    def __init__(self, settings: HiveSettings) -> None:
        self.settings = settings
        self.types = thrift().types
        self._lock = RLock()
        self._open: tuple[int, Any, Any] | None = None  # process, transport, client
        self._next = 0

    def __repr__(self) -> str:
        return f"MetastoreClient({self.settings.shown!r})"

    # ---- databases

    def databases(self) -> list[str]:
        """Return the names of all databases."""
        return list(self.call("get_all_databases"))

    def database(self, name: str) -> Any | None:
        """Return a database; `None` if it does not exist."""
        return self._or_none("get_database", name)

    # ---- tables

    def table_names(self, database: str) -> list[str]:
        """Return the names of all tables and views of a database, also of other engines."""
        return list(self.call("get_all_tables", database))

    def tables(self, database: str) -> list[Any]:
        """Return all tables of a database."""
        names, found = self.table_names(database), list[Any]()
        for start in range(0, len(names), _BATCH):
            request = self.types.GetTablesRequest(dbName=database, tblNames=names[start : start + _BATCH])
            found += self.call("get_table_objects_by_name_req", request).tables or []
        return found

    def table(self, database: str, name: str) -> Any | None:
        """Return a table or a view; `None` if it does not exist."""
        answer = self._or_none("get_table_req", self.types.GetTableRequest(dbName=database, tblName=name))
        return None if answer is None else answer.table

    def alter_table(self, database: str, name: str, table: Any, *, renames: bool = False) -> None:
        """Replace the description of a table. ``renames``: True if it has another name, so it cannot be sent twice."""
        settings = self.settings
        flag = str(settings.skip_statistics or table.parameters.get("DO_NOT_UPDATE_STATS") == "true").lower()
        properties = {"DO_NOT_UPDATE_STATS": flag, **({"CASCADE": "true"} if settings.cascade else {})}
        context = self.types.EnvironmentContext(properties=properties)
        self.call("alter_table_with_environment_context", database, name, table, context, repeat=not renames)

    def drop_table(self, database: str, name: str) -> bool:
        """Remove a table from the metastore, not its files; return False if it does not exist."""
        try:
            self.call("drop_table", database, name, False, repeat=False)
        except LostAnswerError:
            if self.table(database, name) is not None:
                raise
        except MetastoreError as error:
            if error.kind == "NoSuchObjectException":
                return False
            raise
        return True

    # ---- partitions

    def add_partitions(self, database: str, table: str, partitions: Sequence[Any]) -> None:
        """Add the partitions that do not exist yet."""
        for start in range(0, len(partitions), _PARTITIONS):
            part = list(partitions[start : start + _PARTITIONS])
            request = self.types.AddPartitionsRequest(
                dbName=database, tblName=table, parts=part, ifNotExists=True, needResult=False
            )
            self.call("add_partitions_req", request)

    def partition(self, database: str, table: str, values: Sequence[str]) -> Any | None:
        """Return a partition; `None` if it does not exist."""
        return self._or_none("get_partition", database, table, list(values))

    def drop_partition(self, database: str, table: str, values: Sequence[str]) -> None:
        """Remove a partition from the metastore, not its files, if it exists."""
        self._or_none("drop_partition", database, table, list(values), False)

    # ---- the connection

    def call(self, method: str, *arguments: Any, repeat: bool = True) -> Any:
        """Send a request and return its answer.

        ``repeat``: True if it may be sent twice. Raises MetastoreError with the exception of the metastore, or if no
        address answers; LostAnswerError if the connection broke and it must not be repeated.
        """
        modules = thrift()
        with self._lock:
            failure: Exception | None = None
            for _ in range(_ROUNDS):
                client = self._connected()
                try:
                    return getattr(client, method)(*arguments)
                except (modules.transport.TTransportException, OSError, EOFError) as error:
                    self.close()
                    self._next += 1
                    failure = error
                    if not repeat:
                        break
                    time.sleep(_PAUSE)
                except modules.error as error:
                    raise self._refused(method, error) from error
                except _UNREADABLE as error:
                    self.close()
                    raise (MetastoreError if repeat else LostAnswerError)(
                        f"the Hive metastore at {self.settings.shown} answered {method!r} with bytes that are not "
                        f"an answer: {type(error).__name__}: {error}"
                    ) from error
        raise (MetastoreError if repeat else LostAnswerError)(
            f"the Hive metastore at {self.settings.shown} did not answer {method!r}: {failure}"
            + ("" if repeat else "; it may have been carried out")
        ) from failure

    def close(self) -> None:
        """Close the connection; the next request opens one."""
        with self._lock, suppress(Exception):
            opened, self._open = self._open, None
            if opened is not None and opened[0] == os.getpid():
                opened[1].close()

    def _or_none(self, method: str, *arguments: Any) -> Any | None:
        try:
            return self.call(method, *arguments)
        except MetastoreError as error:
            if error.kind in {"NoSuchObjectException", "UnknownTableException"}:
                return None
            raise

    def _refused(self, method: str, error: Exception) -> MetastoreError:
        kind = type(error).__name__
        text = getattr(error, "message", None) or str(error)
        return MetastoreError(
            f"the Hive metastore at {self.settings.shown} refused {method!r}: {kind}: {str(text).strip()[:500]}", kind
        )

    def _connected(self) -> Any:
        """Return the client of the open connection, or of a new one to the first address that answers."""
        if self._open is not None and self._open[0] == os.getpid():
            return self._open[2]
        addresses, failure = self.settings.addresses, None
        for attempt in range(_ROUNDS * len(addresses)):
            host, port = addresses[(self._next + attempt) % len(addresses)]
            try:
                transport, client = self._connect(host, port)
            except (thrift().error, OSError) as error:
                failure = error
                if (attempt + 1) % len(addresses) == 0:
                    time.sleep(_PAUSE)
                continue
            self._next, self._open = (self._next + attempt) % len(addresses), (os.getpid(), transport, client)
            return client
        raise MetastoreError(
            f"no Hive metastore answers at {self.settings.shown}: {failure}; check the option 'uri' and the service"
        ) from failure

    def _connect(self, host: str, port: int) -> tuple[Any, Any]:
        modules = thrift()
        socket = modules.socket.TSocket(host, port)
        socket.setTimeout(self.settings.timeout * 1000)
        transport = modules.transport.TBufferedTransport(socket)
        transport.open()
        client = modules.service.Client(modules.protocol.TBinaryProtocol(transport))
        with suppress(modules.types.MetaException, modules.service.TApplicationException):
            client.set_ugi(self.settings.user, [])  # a metastore that checks owners asks for it
        return transport, client


_clients: dict[HiveSettings, MetastoreClient] = {}
_clients_lock = RLock()


def client_of(
    settings: HiveSettings, new: Callable[[HiveSettings], MetastoreClient] = MetastoreClient
) -> MetastoreClient:
    """Return the client of this process for a metastore."""
    with _clients_lock:
        if settings not in _clients:
            _clients[settings] = new(settings)
        return _clients[settings]
