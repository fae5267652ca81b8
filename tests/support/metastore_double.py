"""A stand-in for a Hive metastore in this process: names, tables, partitions and locks in dictionaries.

It answers over Thrift like a metastore, but knows none of Hive's checks; tests/places/hive runs the real one.
"""

import copy
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pymetastore.hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocolFactory
from thrift.server import TServer
from thrift.transport import TSocket, TTransport


class MetastoreDouble:
    """The handler of requests. ``lost``: methods whose next answer gets lost after they are carried out."""

    def __init__(self) -> None:
        self.databases: dict[str, ttypes.Database] = {"default": ttypes.Database(name="default", parameters={})}
        self.stored: dict[tuple[str, str], ttypes.Table] = {}
        self.partitions: dict[tuple[str, str], dict[tuple[str, ...], ttypes.Partition]] = {}
        self.locks: list[tuple[int, str]] = []
        self.lost: set[str] = set()
        self.calls: list[str] = []
        self._numbers = itertools.count(1)

    def set_ugi(self, user_name, group_names):
        return []

    def get_all_databases(self):
        return list(self.databases)

    def get_database(self, name):
        return self._found(self.databases, name)

    def create_database(self, database):
        if database.name in self.databases:
            raise ttypes.AlreadyExistsException(database.name)
        self.databases[database.name] = database

    def alter_database(self, name, database):
        self.databases[name] = database

    def drop_database(self, name, deleteData, cascade):
        self._found(self.databases, name)
        del self.databases[name]

    def get_all_tables(self, database):
        return [name for at, name in self.stored if at == database]

    def get_table_req(self, request):
        table = self._found(self.stored, (request.dbName, request.tblName))
        return ttypes.GetTableResult(table=copy.deepcopy(table))

    def get_table_objects_by_name_req(self, request):
        return ttypes.GetTablesResult(tables=[self.stored[request.dbName, name] for name in request.tblNames])

    def create_table(self, table):
        key = table.dbName, table.tableName
        if key in self.stored:
            raise ttypes.AlreadyExistsException(table.tableName)
        self.stored[key] = table

    def alter_table_with_environment_context(self, database, name, table, context):
        del self.stored[database, name]
        self.stored[table.dbName, table.tableName] = table

    def drop_table(self, database, name, delete):
        self._found(self.stored, (database, name))
        del self.stored[database, name]

    def add_partitions_req(self, request):
        known = self.partitions.setdefault((request.dbName, request.tblName), {})
        for partition in request.parts:
            known.setdefault(tuple(partition.values), partition)
        return ttypes.AddPartitionsResult()

    def drop_partition(self, database, name, values, delete):
        return self.partitions[database, name].pop(tuple(values), None) is not None

    def lock(self, request):
        number = next(self._numbers)
        self.locks.append((number, request.component[0].tablename))
        return ttypes.LockResponse(number, self._state(number))

    def check_lock(self, request):
        return ttypes.LockResponse(request.lockid, self._state(request.lockid))

    def unlock(self, request):
        self.locks = [lock for lock in self.locks if lock[0] != request.lockid]

    def _state(self, number):
        table = next(table for held, table in self.locks if held == number)
        first = next(held for held, of in self.locks if of == table)
        return ttypes.LockState.ACQUIRED if first == number else ttypes.LockState.WAITING

    def _found(self, known, name):
        if name not in known:
            raise ttypes.NoSuchObjectException(str(name))
        return known[name]


class _Losing:
    """Passes calls on, and breaks the connection instead of sending an answer that shall be lost."""

    def __init__(self, double: MetastoreDouble) -> None:
        self._double = double

    def __getattr__(self, name):
        method = getattr(self._double, name)

        def call(*arguments):
            self._double.calls.append(name)
            answer = method(*arguments)
            if name in self._double.lost:
                self._double.lost.remove(name)
                raise TTransport.TTransportException(message="the answer gets lost")
            return answer

        return call


@contextmanager
def metastore_double() -> Iterator[tuple[str, MetastoreDouble]]:
    """Answer until the block ends; yields the URI and the handler."""
    double = MetastoreDouble()
    socket = TSocket.TServerSocket("127.0.0.1", 0)
    socket.listen()
    port = socket.handle.getsockname()[1]
    socket.listen = lambda: None
    processor = ThriftHiveMetastore.Processor(_Losing(double))
    factories = TTransport.TBufferedTransportFactory(), TBinaryProtocolFactory()
    server = TServer.TThreadedServer(processor, socket, *factories, daemon=True)
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield f"thrift://127.0.0.1:{port}", double
    finally:
        socket.close()
