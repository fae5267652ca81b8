"""Targets of servers: the answers of a REST catalog, and the Thrift messages of a Hive metastore."""

import functools
import json
from collections.abc import Callable
from typing import Any

from paimon_core.catalog.hive import client as hive_client
from paimon_core.catalog.hive.client import MetastoreClient, thrift
from paimon_core.catalog.hive.metastore_table import database_location_of, is_view, location_of, view_of
from paimon_core.catalog.hive.settings import HiveSettings
from paimon_core.catalog.identifier import Identifier
from paimon_core.catalog.rest.api import RestApi, merged_options
from paimon_core.catalog.rest.auth import DlfKey
from paimon_core.catalog.rest.client import RestClient, RestServerError
from paimon_core.catalog.rest.data_tokens import DataToken
from paimon_core.errors import PaimonError
from tests.fuzz.goldens import contents
from tests.fuzz.target import Target

NAME = Identifier.parse("db.t")
hive_client._PAUSE = 0  # type: ignore[misc]  # no server is asked, so no answer is worth waiting for


# ---- REST


class Answered(RestClient):
    """A client to which each request has the same answer."""

    def __init__(self, data: bytes, status: int) -> None:
        super().__init__("http://localhost:1", {"token.provider": "bear", "token": "x"}, sleep=lambda seconds: None)
        self.data, self.status = data, status

    def _send(self, request: Any) -> Any:
        import requests  # noqa: PLC0415  an optional dependency

        answer = requests.Response()
        answer._content, answer.status_code = self.data, self.status
        answer.headers.update({"Retry-After": self.data[:20].decode("latin-1"), "x-request-id": "1"})
        return answer


_REQUESTS: tuple[Callable[[RestApi], Any], ...] = (
    lambda api: api.databases(),
    lambda api: api.database("db"),
    lambda api: api.tables("db"),
    lambda api: _described(api.table(NAME)),
    lambda api: api.partitions(NAME),
    lambda api: api.views("db"),
    lambda api: api.view(NAME).to_json(),
    lambda api: api.functions("db"),
    lambda api: api.function(NAME).to_json(),
    lambda api: api.snapshot(NAME, 1),
    lambda api: api.partition_specs(NAME),
    lambda api: api.permissions(NAME),
    lambda api: DataToken.from_json(api.token(NAME), NAME) if isinstance(api.token(NAME), dict) else None,
)


def _described(table: Any) -> None:
    repr(table), table.schema if hasattr(table, "schema") else None


def _attempt(use: Callable[[], Any]) -> None:
    try:
        use()
    except (PaimonError, RestServerError):
        return


def rest(data: bytes) -> None:
    _attempt(lambda: merged_options(Answered(data, 200), "w", {}))
    for request in _REQUESTS:
        _attempt(functools.partial(request, RestApi(Answered(data, 200))))
    for status in (400, 401, 403, 404, 409, 429, 500, 501, 503):
        _attempt(lambda status=status: RestApi(Answered(data, status)).database("db"))
    _attempt(lambda: DlfKey.from_json(data.decode("utf-8", "replace"), "the key"))


def rest_seeds() -> list[bytes]:
    schema = json.loads(contents("/schema/schema-0")()[0])
    table = {"id": "1", "name": "t", "path": "file:/w/t", "isExternal": False, "schemaId": 0, "schema": schema}
    snapshot = json.loads(contents("/snapshot/snapshot-")()[0])
    documents: list[Any] = [
        {"defaults": {"a": "b"}, "overrides": {"prefix": "p"}},
        {"databases": ["a", "b"], "tables": ["t"], "views": ["v"], "functions": ["f"], "nextPageToken": "x"},
        {"name": "db", "location": "/w/db", "options": {"a": "b"}},
        table,
        {
            "partitions": [
                {
                    "spec": {"p": "a"},
                    "recordCount": 3,
                    "fileSizeInBytes": 4,
                    "fileCount": 1,
                    "lastFileCreationTime": 5,
                    "done": True,
                }
            ]
        },
        {
            "schema": {
                "fields": schema["fields"],
                "query": "SELECT 1",
                "dialects": {"spark": "x"},
                "comment": "c",
                "options": {},
            }
        },
        {
            "inputParams": schema["fields"],
            "returnParams": [],
            "deterministic": True,
            "definitions": {"spark": {"type": "lambda", "definition": "x", "language": "JAVA"}},
            "comment": None,
            "options": {},
        },
        {"snapshot": {"snapshot": snapshot, "recordCount": 1}},
        {"token": {"fs.oss.accessKeyId": "a"}, "expiresAtMillis": 4_000_000_000_000},
        {"message": "no", "code": 404, "resourceType": "TABLE", "resourceName": "t"},
        {"AccessKeyId": "a", "AccessKeySecret": "b", "SecurityToken": "c", "Expiration": "2030-01-01T00:00:00Z"},
    ]
    return [json.dumps(document).encode() for document in documents]


# ---- Hive

_METHODS: tuple[tuple[str, Callable[[MetastoreClient], Any]], ...] = (
    ("get_all_databases", lambda client: client.databases()),
    ("get_database", lambda client: _located(database_location_of, client.database("db"))),
    ("get_all_tables", lambda client: client.table_names("db")),
    ("get_table_req", lambda client: _hive_table(client.table("db", "t"))),
    ("get_table_objects_by_name_req", lambda client: client.call("get_table_objects_by_name_req", None).tables),
    ("get_partition", lambda client: _located(location_of, client.partition("db", "t", ["a"]))),
)


def _located(location: Callable[[Any], Any], found: Any) -> None:
    if found is not None:
        location(found)


def _hive_table(table: Any) -> None:
    if table is None:
        return
    is_view(table), location_of(table)
    view_of(table).to_json()


class Replaying(MetastoreClient):
    """A client that reads the same bytes after each request."""

    def __init__(self, data: bytes) -> None:
        super().__init__(HiveSettings((("localhost", 1),), "me"))
        self.data = data

    def _connect(self, host: str, port: int) -> tuple[Any, Any]:
        from thrift.transport.TTransport import TMemoryBuffer  # noqa: PLC0415  an optional dependency

        protocol = thrift().protocol.TBinaryProtocol
        sent, received = TMemoryBuffer(), TMemoryBuffer(self.data)
        return received, thrift().service.Client(protocol(received), protocol(sent))


def hive(data: bytes) -> None:
    _, use = _METHODS[data[0] % len(_METHODS)] if data else _METHODS[0]
    use(Replaying(data[1:]))


def hive_seeds() -> list[bytes]:
    from thrift.transport.TTransport import TMemoryBuffer  # noqa: PLC0415

    modules, made = thrift(), []
    types, service = modules.types, modules.service
    table = types.Table(
        tableName="t",
        dbName="db",
        parameters={"a": "b"},
        tableType="VIRTUAL_VIEW",
        viewOriginalText="SELECT 1",
        partitionKeys=[],
        sd=types.StorageDescriptor(
            cols=[types.FieldSchema("a", "int", "c"), types.FieldSchema("b", "array<string>", None)],
            location="file:/w/t",
        ),
    )
    answers = (
        ["a", "b"],
        types.Database(name="db", locationUri="file:/w/db.db", parameters={"a": "b"}),
        ["t"],
        types.GetTableResult(table=table),
        types.GetTablesResult(tables=[table]),
        types.Partition(values=["a"], parameters={}, sd=table.sd),
    )
    for number, ((method, _), answer) in enumerate(zip(_METHODS, answers, strict=True)):
        buffer = TMemoryBuffer()
        protocol = modules.protocol.TBinaryProtocol(buffer)
        protocol.writeMessageBegin(method, 2, 0)
        getattr(service, f"{method}_result")(success=answer).write(protocol)
        protocol.writeMessageEnd()
        made.append(bytes([number]) + buffer.getvalue())
    return made


TARGETS = (
    Target("rest", "json", rest_seeds, rest),
    Target("hive", "selected", hive_seeds, hive),
)
