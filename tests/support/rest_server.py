"""Servers of the REST interface in this process: one with scripted answers, and a small catalog over a directory."""

import json
import shutil
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.parse import unquote_plus

from paimon_core import FileSystemCatalog, Schema, Table
from paimon_core.errors import AlreadyExistsError, NotFoundError
from paimon_core.schema.change import AddColumn, SetOption
from paimon_core.types.parse import field_from_json, parse_type

_ENDS = ("source", "destination")
BREAK = object()
"""An answer that breaks the connection instead."""


@dataclass
class Asked:
    """A request that the server received."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class ScriptedServer:
    """A server that answers each request with ``answer``, a function of the request.

    The function returns a status, a JSON object or `None`, and optionally headers; or `BREAK`.
    """

    uri: str = ""
    answer: Callable[[Asked], Any] = lambda asked: (404, {})
    asked: list[Asked] = field(default_factory=list)

    def script(self, *answers: Any) -> None:
        """Answer the next requests with these, in order."""
        left = list(answers)
        self.answer = lambda asked: left.pop(0)


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """Run a `ScriptedServer` in threads of this process."""
    scripted = ScriptedServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = Asked(self.command, self.path, dict(self.headers), json.loads(text) if text else None)
            scripted.asked.append(asked)
            answer = scripted.answer(asked)
            if answer is BREAK:
                linger = struct.pack("ii", 1, 0)  # a reset instead of an orderly end
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.close_connection = True
                return
            status, body, *headers = answer
            content = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            for name, value in (headers[0] if headers else {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _serve

        def log_message(self, format: str, *arguments: Any) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    scripted.uri = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield scripted
    finally:
        server.shutdown()
        server.server_close()


_COUNTS = ("recordCount", "fileSizeInBytes", "fileCount")


@dataclass
class CatalogServer:
    """A small REST catalog over a directory, for tests without Java. It commits as a server of Paimon does.

    Only what the tests use: databases, tables, options and columns added by ALTER, commits, rollbacks, tokens.
    """

    directory: Path | str
    server: ScriptedServer
    defaults: dict[str, str] = field(default_factory=dict)
    storage: dict[str, str] = field(default_factory=dict)
    """The options of the storage of the directory."""
    tables: dict[str, str] = field(default_factory=dict)
    """The ids of the tables."""
    commits: list[Any] = field(default_factory=list)
    """The bodies of the commits that the server received."""
    faults: list[Any] = field(default_factory=list)
    """Answers to give to the next commits: each is a function of the usual one, which it may call or not."""
    objects: dict[tuple[str, str, str], Any] = field(default_factory=dict)
    """The views and functions, by kind, database and name."""
    refused: list[Any] = field(default_factory=list)
    """Answers to give to the next creations of views and functions instead."""
    permissions: dict[str, Any] = field(default_factory=dict)
    """The row filters and column masks of tables, by name, as answers; without an answer everything may be seen."""
    moved: dict[str, str] = field(default_factory=dict)
    """For the names of some tables the names of the tables whose files they have."""
    format_tables: dict[str, Any] = field(default_factory=dict)
    """The schemas of the format tables, by name, as JSON."""
    partitions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The partitions that the server lists of format tables, by the name of the table, as JSON."""
    paths: dict[str, str] = field(default_factory=dict)
    """The directories of renamed format tables, by name."""
    done: list[Any] | None = None
    """The partitions that were marked as done, as pairs of a table and {column: value}; `None`: it marks none."""
    tokens: list[Any] = field(default_factory=list)
    """The answers to the requests for credentials; the last one stays."""

    def __post_init__(self) -> None:
        self.catalog = FileSystemCatalog(str(self.directory), self.storage)
        self.server.answer = self.answer
        self._lock = Lock()

    @property
    def options(self) -> dict[str, str]:
        """The options of a catalog of this server."""
        return {"metastore": "rest", "uri": self.server.uri, "warehouse": "w", "token.provider": "bear", "token": "t"}

    def answer(self, asked: Asked) -> Any:
        """Answer a request."""
        path = asked.path.partition("?")[0]
        parts = [unquote_plus(part) for part in path.strip("/").split("/")][1:]
        try:
            with self._lock:
                return self._answer(asked, parts)
        except NotFoundError as error:
            kind = "TABLE" if "no table" in str(error) else "DATABASE"
            return 404, {"message": str(error), "resourceType": kind, "code": 404}
        except AlreadyExistsError as error:
            return 409, {"message": str(error), "code": 409}

    def _answer(self, asked: Asked, parts: list[str]) -> Any:
        method, catalog = asked.method, self.catalog
        match parts:
            case ["config"]:
                return 200, {"defaults": {"prefix": "p", **self.defaults}, "overrides": {}}
            case ["p", "databases"] if method == "GET":
                return 200, {"databases": catalog.list_databases()}
            case ["p", "databases"]:
                catalog.create_database(asked.body["name"], properties=asked.body["options"])
            case ["p", "databases", database] if method == "GET":
                return 200, {"name": database, "options": catalog.database_properties(database), "location": "/x"}
            case ["p", "databases", database] if method == "DELETE":
                catalog.drop_database(database)
            case ["p", "databases", database, ("views" | "functions") as kind, *rest]:
                return self._object(asked, kind, database, rest)
            case ["p", "views", "rename"]:
                source, target = ((body["database"], body["object"]) for body in map(asked.body.get, _ENDS))
                self.objects[("views", *target)] = self.objects.pop(("views", *source))
            case ["p", "tables", "rename"]:
                source, target = (".".join(asked.body[end].values()) for end in _ENDS)
                if source in self.format_tables:
                    self.paths[target] = self._format_path(source)
                    self.format_tables[target] = self.format_tables.pop(source)
                    self.partitions[target] = self.partitions.pop(source, [])
                    return 200, None
                catalog.rename_table(source, target)
                self.tables[target] = self.tables.pop(source)
            case ["p", "databases", database, "tables"] if method == "GET":
                others = [name.partition(".")[2] for name in self.format_tables if name.startswith(f"{database}.")]
                return 200, {"tables": catalog.list_tables(database) + others}
            case ["p", "databases", database, "tables"]:
                name, given = asked.body["identifier"]["object"], asked.body["schema"]
                if f"{database}.{name}" in self.format_tables:
                    raise AlreadyExistsError(name)
                if given["options"].get("type") == "format-table":
                    self._create_format_table(f"{database}.{name}", given)
                    return 200, None
                fields = [field_from_json(column) for column in given["fields"]]
                schema = Schema(fields, given["primaryKeys"], given["partitionKeys"], given["options"])
                catalog.create_table(f"{database}.{name}", schema)
                self.tables[f"{database}.{name}"] = f"id-{len(self.tables)}"
            case ["p", "databases", database, "tables", name, *rest]:
                return self._table(asked, f"{database}.{name}", rest)
            case _:
                return 501, {"message": f"no {'/'.join(parts)}", "code": 501}
        return 200, None

    def _object(self, asked: Asked, kind: str, database: str, rest: list[str]) -> Any:
        """Answer a request about a view or a function."""
        self.catalog.database_properties(database)
        name = rest[0] if rest else asked.body and (asked.body.get("name") or asked.body["identifier"]["object"])
        key = kind, database, name
        match asked.method, rest:
            case "GET", []:
                return 200, {kind: [at[2] for at in self.objects if at[:2] == (kind, database)]}
            case "POST", []:
                if key in self.objects:
                    return 409, {"message": f"{name} exists", "code": 409}
                if self.refused:
                    return self.refused.pop()
                self.objects[key] = asked.body
                return 200, None
            case _ if key not in self.objects:
                return 404, {"message": f"no {name}", "resourceType": kind[:-1].upper(), "code": 404}
            case "GET", _:
                return 200, {"id": "1", "name": name, **self.objects[key]}
            case "DELETE", _:
                del self.objects[key]
            case _:
                for change in asked.body["changes"]:
                    _change_view(self.objects[key]["schema"], change)
        return 200, None

    def _create_format_table(self, name: str, schema: Any) -> None:
        if self.catalog.table_exists(name):
            raise AlreadyExistsError(name)
        self.catalog.database_properties(name.partition(".")[0])
        self.format_tables[name] = schema

    def _format_path(self, name: str) -> str:
        usual = self.paths.get(name, f"{self.directory}/{name.replace('.', '.db/')}")
        return str(self.format_tables[name]["options"].get("path", usual))

    def _format_table(self, asked: Asked, name: str, rest: list[str]) -> Any:
        """Answer a request about a format table."""
        schema, path = self.format_tables[name], self._format_path(name)
        external = "path" in schema["options"]
        match asked.method, rest:
            case "GET", []:
                described = {"id": name, "name": name, "path": path, "isExternal": external, "schemaId": 0}
                return 200, {**described, "schema": schema}
            case "DELETE", []:
                del self.format_tables[name]
                self.partitions.pop(name, None)
                if not external:
                    shutil.rmtree(path, ignore_errors=True)
            case "POST", []:
                for change in asked.body["changes"]:
                    _change_format_table(schema, change)
            case "GET", ["partitions"]:
                return 200, {"partitions": self.partitions.get(name, [])}
            case "POST", ["partitions"]:
                return self._create_partitions(name, asked.body)
            case "POST", ["partitions", "drop"]:
                dropped = asked.body["partitionSpecs"]
                self.partitions[name] = [p for p in self.partitions.get(name, []) if p["spec"] not in dropped]
            case _:
                return 501, {"message": f"no {rest}", "code": 501}
        return 200, None

    def _create_partitions(self, name: str, body: Any) -> Any:
        """Add partitions, and replace or add what they hold, as Paimon's own server does."""
        stored = {tuple(p["spec"].items()): p for p in self.partitions.setdefault(name, [])}
        for spec in body["partitionSpecs"]:
            if tuple(spec.items()) not in stored:
                stored[tuple(spec.items())] = {"spec": spec, **dict.fromkeys(_COUNTS, -1)}
        for counts in body.get("partitionStatistics") or ():
            partition = stored[tuple(counts["spec"].items())]
            for key in _COUNTS:
                old = 0 if body["replaceStatistics"] else max(0, partition[key])
                partition[key] = old + counts[key]
        self.partitions[name] = list(stored.values())
        return 200, {"created": [], "existed": []}

    def _table(self, asked: Asked, name: str, rest: list[str]) -> Any:
        if name in self.format_tables:
            return self._format_table(asked, name, rest)
        table = self.catalog.table(self.moved.get(name, name))
        match asked.method, rest:
            case "GET", []:
                return 200, self._described(name, table)
            case "DELETE", []:
                self.catalog.drop_table(name)
            case "POST", []:
                table.alter([_change(change) for change in asked.body["changes"]])
            case "POST", ["commit"]:
                self.commits.append(asked.body)
                usual = partial(self._commit, name, table, asked.body)
                return self.faults.pop(0)(usual) if self.faults else usual()
            case "GET", ["snapshots", version]:
                found = table.store.snapshots.find(int(version))
                if found is None:
                    return 404, {"message": "No Snapshot", "resourceType": "SNAPSHOT", "code": 404}
                return 200, {"snapshot": json.loads(found.to_json())}
            case "POST", ["rollback"]:
                table.rollback_to(asked.body["instant"]["snapshotId"])
            case "POST", ["partitions", "mark"] if self.done is not None:
                self.done += [(name, spec) for spec in asked.body["specs"]]
            case "POST", ["auth"]:
                return 200, self.permissions.get(name, {})
            case "GET", ["token"]:
                return 200, self.tokens.pop(0) if len(self.tokens) > 1 else self.tokens[0]
            case _:
                return 501, {"message": f"no {rest}", "code": 501}
        return 200, None

    def _commit(self, name: str, table: Table, body: Any) -> Any:
        if body["tableId"] != self.tables[name]:
            return 404, {"message": "no such table", "resourceType": "TABLE", "code": 404}
        path = table.store.snapshots.path(body["snapshot"]["id"])
        return 200, {"success": table.store.io.create_exclusive(path, json.dumps(body["snapshot"]).encode())}

    def _described(self, name: str, table: Table) -> dict[str, Any]:
        schema = json.loads(table.schema.to_json())
        described = {"fields": schema["fields"], "options": schema["options"], "primaryKeys": schema["primaryKeys"]}
        return {
            "id": self.tables[name],
            "name": name.partition(".")[2],
            "path": f"file:{table.path}" if table.path.startswith("/") else table.path,
            "isExternal": False,
            "schemaId": schema["id"],
            "schema": {**described, "partitionKeys": schema["partitionKeys"]},
            "owner": "ann",
        }


def _change_format_table(schema: dict[str, Any], change: dict[str, Any]) -> None:
    names = [column["name"] for column in schema["fields"]]
    match change["action"]:
        case "setOption":
            schema["options"][change["key"]] = change["value"]
        case "removeOption":
            schema["options"].pop(change["key"], None)
        case "updateComment":
            schema["comment"] = change["comment"]
        case "addColumn":
            added = {"id": len(names), "name": change["fieldNames"][0], "type": change["dataType"]}
            schema["fields"].append({**added, "description": change["comment"]})
        case "dropColumn":
            del schema["fields"][names.index(change["fieldNames"][0])]
        case "updateColumnComment":
            schema["fields"][names.index(change["fieldNames"][0])]["description"] = change["newComment"]
        case action:
            raise NotImplementedError(action)


def _change_view(schema: dict[str, Any], change: dict[str, Any]) -> None:
    match change["action"]:
        case "setOption":
            schema["options"][change["key"]] = change["value"]
        case "removeOption":
            del schema["options"][change["key"]]
        case "updateComment":
            schema["comment"] = change["comment"]
        case "dropDialect":
            del schema["dialects"][change["dialect"]]
        case "addDialect" | "updateDialect" as action:
            assert (change["dialect"] in schema["dialects"]) == (action == "updateDialect")
            schema["dialects"][change["dialect"]] = change["query"]


def _change(record: dict[str, Any]) -> Any:
    match record["action"]:
        case "setOption":
            return SetOption(record["key"], record["value"])
        case "addColumn":
            return AddColumn(record["fieldNames"], parse_type(record["dataType"]), record["comment"])
    raise NotImplementedError(record)


@contextmanager
def catalog_server(
    directory: Path | str, storage: dict[str, str] | None = None, **defaults: str
) -> Iterator[CatalogServer]:
    """Run a `CatalogServer`.

    ``storage``: the options of the storage of the directory. ``defaults``: options that the server gives to its
    clients, with ``_`` for ``.`` in their names.
    """
    with scripted_server() as running:
        yield CatalogServer(
            directory, running, {key.replace("_", "."): value for key, value in defaults.items()}, storage or {}
        )
