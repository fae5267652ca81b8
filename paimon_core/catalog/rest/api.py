"""The requests of the REST interface of Paimon, version 1: one method for each, named by what it does."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from paimon_core.catalog.identifier import Identifier
from paimon_core.catalog.rest.client import RestClient, RestNotFoundError, RestServerError, encoded
from paimon_core.catalog.rest.models import (
    RestPartition,
    RestTable,
    changes_to_json,
    counts_to_json,
    identifier_to_json,
    object_name,
    partition_spec,
    schema_to_json,
)
from paimon_core.catalog.view import CatalogFunction, View
from paimon_core.errors import UnsupportedError
from paimon_core.format_table.registry import PartitionCounts
from paimon_core.schema.change import SchemaChange
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot

_V1: Final = "/v1"
Json = dict[str, Any]


def merged_options(client: RestClient, warehouse: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a catalog, completed by its server.

    The server's overrides replace the client's options, and the client's replace the server's defaults.
    """
    answer = client.get(f"{_V1}/config", {"warehouse": warehouse} if warehouse else None)
    given = {}
    for key in ("defaults", "overrides"):
        given[key] = answer.get(key) or {}
        if not isinstance(given[key], dict):
            raise RestServerError(f"the catalog's server answers with {key!r} that are not an object")
    merged = {**given["defaults"], **options, **given["overrides"]}
    return {str(key): str(value) for key, value in merged.items() if value is not None}


class RestApi:
    """The requests to the catalog of a server. It may be pickled.

    Args:
        client: the client of the server.
        prefix: the part of the paths that the server gives to its clients; `None`: no part.
    """

    def __init__(self, client: RestClient, prefix: str | None = None) -> None:
        self.client, self._prefix = client, prefix

    def __repr__(self) -> str:
        return f"RestApi({self.client!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RestApi) and (self.client.uri, self._prefix) == (other.client.uri, other._prefix)

    def __hash__(self) -> int:
        return hash((self.client.uri, self._prefix))

    # ---- databases

    def databases(self) -> list[str]:
        """Return the names of all databases."""
        return self.client.names(self._path("databases"), "databases")

    def create_database(self, name: str, options: Mapping[str, str]) -> None:
        """Create a database. Raises AlreadyExistsError."""
        self.client.post(self._path("databases"), {"name": name, "options": dict(options)})

    def database(self, name: str) -> Json:
        """Return the description of a database. Raises RestNotFoundError."""
        return self.client.get(self._path("databases", name))

    def alter_database(self, name: str, removals: Sequence[str], updates: Mapping[str, str]) -> None:
        """Remove and set properties of a database."""
        body = {"removals": list(removals), "updates": dict(updates)}
        self.client.post(self._path("databases", name), body)

    def drop_database(self, name: str) -> None:
        """Drop a database."""
        self.client.delete(self._path("databases", name))

    # ---- tables

    def tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database."""
        return self.client.names(self._path("databases", database, "tables"), "tables")

    def table(self, name: Identifier) -> RestTable:
        """Return the description of a table or a branch. Raises RestNotFoundError."""
        return RestTable.from_json(self.client.get(self._table(name)), name)

    def create_table(self, name: Identifier, schema: TableSchema, path: str | None = None) -> None:
        """Create a table. ``path``: the directory of an external table; `None`: the server chooses one."""
        body = {"identifier": identifier_to_json(name), "schema": schema_to_json(schema, path)}
        self.client.post(self._path("databases", name.database, "tables"), body)

    def alter_table(self, name: Identifier, changes: Sequence[SchemaChange]) -> None:
        """Apply schema changes, all or none."""
        self.client.post(self._table(name), {"changes": changes_to_json(changes)})

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Rename a table."""
        body = {"source": identifier_to_json(source), "destination": identifier_to_json(target)}
        self.client.post(self._path("tables", "rename"), body)

    def drop_table(self, name: Identifier) -> None:
        """Drop a table; the server deletes the files of one that is not external."""
        self.client.delete(self._table(name))

    def token(self, name: Identifier) -> Json:
        """Return the credentials for the files of a table, and when they end."""
        return self.client.get(self._table(name, "token"))

    def permissions(self, name: Identifier) -> Json:
        """Return the row filters and the column masks of the user for a table or a branch."""
        return self.client.post(self._table(name, "auth"), {"select": None})

    def partitions(self, name: Identifier) -> list[RestPartition] | None:
        """Return the partitions of a table; `None`: the server does not count them."""
        try:
            found = list(self.client.pages(self._table(name, "partitions"), "partitions"))
        except UnsupportedError:
            return None
        return [RestPartition.from_json(record, name) for record in found]

    def partition_specs(self, name: Identifier) -> list[Mapping[str, str]]:
        """Return the texts of the values of the partitions of a table, by column.

        Raises RestServerError for an answer without them, UnsupportedError if the server does not list partitions.
        """
        found = list(self.client.pages(self._table(name, "partitions"), "partitions", all_pages=True))
        return [partition_spec(record, name) for record in found]

    def create_partitions(
        self, name: Identifier, specs: Sequence[Mapping[str, str]], counts: Sequence[PartitionCounts], *, total: bool
    ) -> None:
        """Add partitions to a table; one that exists keeps its entry.

        Args:
            name: the table.
            specs: the texts of the values of each partition, by column.
            counts: the rows, bytes and files of some of the partitions.
            total: True if the counts replace the counts of the server, False to add them.
        """
        body: Json = {"partitionSpecs": [dict(spec) for spec in specs], "ignoreIfExists": True}
        if counts:
            body |= {"partitionStatistics": list(map(counts_to_json, counts)), "replaceStatistics": total}
        self.client.post(self._table(name, "partitions"), body)

    def drop_partitions(self, name: Identifier, specs: Sequence[Mapping[str, str]]) -> None:
        """Remove partitions from a table, if they exist; the server deletes no files. ``specs``: as for creations."""
        body = {"partitionSpecs": [dict(spec) for spec in specs], "ignoreIfNotExists": True}
        self.client.post(self._table(name, "partitions", "drop"), body)

    def report_done(self, name: Identifier, partitions: Sequence[Mapping[str, str]]) -> None:
        """Mark partitions as done. ``partitions``: the values of each by column, as texts."""
        self.client.post(self._table(name, "partitions", "mark"), {"specs": [dict(spec) for spec in partitions]})

    # ---- snapshots

    def commit(self, name: Identifier, table_id: str, body: Json) -> bool:
        """Publish a snapshot; return False if another one has its id. ``body``: ``snapshot`` and ``statistics``."""
        return bool(self.client.post(self._table(name, "commit"), {"tableId": table_id, **body}).get("success"))

    def snapshot(self, name: Identifier, version: int | str) -> Snapshot | None:
        """Return a snapshot by id, or by ``EARLIEST``, ``LATEST`` or the name of a tag; `None`: no such snapshot."""
        try:
            answer = self.client.get(self._table(name, "snapshots", str(version)))
        except RestNotFoundError as error:
            if error.kind in ("SNAPSHOT", "TAG"):
                return None
            raise
        if "snapshot" not in answer:
            raise RestServerError(f"the catalog's server answers without snapshot {version} of {str(name)!r}")
        return Snapshot.from_json(json.dumps(answer["snapshot"]).encode(), f"snapshot {version} of {name}")

    def roll_back(self, name: Identifier, instant: int | str) -> None:
        """Make an older snapshot the newest one. ``instant``: a snapshot's id, or the name of a tag."""
        by_id = isinstance(instant, int)
        target = {"type": "snapshot", "snapshotId": instant} if by_id else {"type": "tag", "tagName": instant}
        self.client.post(self._table(name, "rollback"), {"instant": target})

    # ---- branches

    def create_branch(self, name: Identifier, branch: str, tag: str | None) -> None:
        """Create a branch. ``tag``: the tag to start from; `None`: the branch has no snapshot."""
        self.client.post(self._table(name, "branches"), {"branch": branch, "fromTag": tag})

    def drop_branch(self, name: Identifier, branch: str) -> None:
        """Drop a branch."""
        self.client.delete(self._table(name, "branches", branch))

    def fast_forward(self, name: Identifier, branch: str) -> None:
        """Fast-forward ``main`` to a branch."""
        self.client.post(self._table(name, "branches", branch, "forward"), {})

    # ---- views and functions

    def views(self, database: str) -> list[str]:
        """Return the names of the views of a database."""
        return self.client.names(self._path("databases", database, "views"), "views")

    def view(self, name: Identifier) -> View:
        """Return a view. Raises RestNotFoundError."""
        answer = self.client.get(self._path("databases", name.database, "views", name.table))
        return View.from_json(answer.get("schema") or {}, str(name))

    def create_view(self, name: Identifier, view: View) -> None:
        """Create a view. Raises AlreadyExistsError."""
        body = {"identifier": identifier_to_json(name), "schema": view.to_json()}
        self.client.post(self._path("databases", name.database, "views"), body)

    def alter_view(self, name: Identifier, changes: Sequence[Json]) -> None:
        """Apply changes to a view, all or none. ``changes``: see `view_changes_to_json`."""
        self.client.post(self._path("databases", name.database, "views", name.table), {"changes": list(changes)})

    def drop_view(self, name: Identifier) -> None:
        """Drop a view. Raises RestNotFoundError."""
        self.client.delete(self._path("databases", name.database, "views", name.table))

    def rename_view(self, source: Identifier, target: Identifier) -> None:
        """Rename a view. Raises AlreadyExistsError."""
        body = {"source": identifier_to_json(source), "destination": identifier_to_json(target)}
        self.client.post(self._path("views", "rename"), body)

    def functions(self, database: str) -> list[str]:
        """Return the names of the functions of a database."""
        return self.client.names(self._path("databases", database, "functions"), "functions")

    def function(self, name: Identifier) -> CatalogFunction:
        """Return a function. Raises RestNotFoundError."""
        answer = self.client.get(self._path("databases", name.database, "functions", name.table))
        return CatalogFunction.from_json(answer, str(name))

    def create_function(self, name: Identifier, function: CatalogFunction) -> None:
        """Create a function. Raises AlreadyExistsError."""
        body = {"name": name.table, **function.to_json()}
        self.client.post(self._path("databases", name.database, "functions"), body)

    def drop_function(self, name: Identifier) -> None:
        """Drop a function. Raises RestNotFoundError."""
        self.client.delete(self._path("databases", name.database, "functions", name.table))

    # ---- inside

    def _path(self, *names: str) -> str:
        return _V1 + (encoded(self._prefix) if self._prefix else "") + encoded(*names)

    def _table(self, name: Identifier, *names: str) -> str:
        return self._path("databases", name.database, "tables", object_name(name), *names)
