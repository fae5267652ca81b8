"""The part of a Hive metastore in the changes of a table: its lock, its description and its partitions."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from paimon_core.catalog.hive.client import LostAnswerError, MetastoreClient, MetastoreError, client_of
from paimon_core.catalog.hive.lock import table_lock
from paimon_core.catalog.hive.metastore_table import (
    described,
    has_partitions,
    is_paimon,
    location_of,
    new_partition,
    new_table,
    same_description,
    update_table,
)
from paimon_core.catalog.hive.settings import HiveSettings
from paimon_core.errors import AlreadyExistsError, PaimonError, TableChangedError, hide_secrets
from paimon_core.fileio.fileio import join
from paimon_core.manifest.entry import ADD, DELETE, ManifestEntry
from paimon_core.options.bucket import PARTITION_DEFAULT_NAME, PARTITION_LEGACY_NAME
from paimon_core.scan.entries import live_entries, partitions_predicate
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.drop import drop_directory
from paimon_core.store.environment import NO_CATALOG, Branch, CatalogEnvironment
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import MAIN_BRANCH, is_blank, partition_path, partition_text

_EXISTS: Final = "AlreadyExistsException"
_REFUSED: Final = "InvalidOperationException"
_REPAIR: Final = "CALL sys.repair"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HiveEnvironment(CatalogEnvironment):
    """The environment of a table in a Hive metastore.

    ``path``: the directory of the table; ``locks``: True if commits and schema changes take Hive's lock; ``external``:
    True if the files of the table, once created, outlive it.
    """

    settings: HiveSettings
    database: str
    table: str
    path: str
    locks: bool = False
    external: bool = False

    def address(self) -> dict[str, str]:
        """Return the options of the catalog, with the warehouse, and the name of the table."""
        settings, parts = self.settings, (self.database, self.table)
        name = ".".join(f"`{part.replace('`', '``')}`" for part in parts)
        return {**settings.options, "warehouse": settings.warehouse, "table": name}

    def locked(self) -> AbstractContextManager[None]:
        """Return a context that holds Hive's lock of the table, or nothing if the catalog takes no locks."""
        return table_lock(self._client, self.database, self.table) if self.locks else nullcontext()

    def publish_schema(self, schemas: Schemas, schema: TableSchema) -> bool:
        """Publish a version of the schema, and describe it in the metastore; as `CatalogEnvironment.publish_schema`.

        The first version is registered once it is published, because its file decides between two processes. A later
        version is described before, so that one that the metastore refuses is never published. Raises MetastoreError.
        """
        if schemas.table_root.rstrip("/") != self.path.rstrip("/"):  # a branch, which Hive does not see
            return CatalogEnvironment.publish_schema(self, schemas, schema)
        self._planned(schema)  # raises for a type that Hive does not have
        if schema.id == 0:
            self._check_free()
            published = CatalogEnvironment.publish_schema(self, schemas, schema)
            if published:
                self._register(schemas, schema)
            return published
        with self.locked():
            self._describe(schema, schemas.get(schema.id - 1))
            published = NO_CATALOG.publish_schema(schemas, schema)
            if not published and (newest := schemas.latest()) is not None:
                self._describe(newest, schema)
            return published

    def snapshot_published(self, store: Branch, snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> None:
        """Register the partitions that a commit has added files to, and remove the partitions that it has emptied."""
        if not has_partitions(store.schema):
            return
        added = dict.fromkeys(entry.partition for entry in entries if entry.kind == ADD)
        removed = {entry.partition for entry in entries if entry.kind == DELETE} - set(added)
        if added:
            self.add_partitions(store, list(added))
        if removed and isinstance(store, FileStore):
            self._drop_empty_partitions(store, snapshot, removed)

    def _drop_empty_partitions(self, store: FileStore, snapshot: Snapshot, partitions: set[bytes]) -> None:
        """Remove partitions without files, unless a branch may have files in them."""
        if store.branch != MAIN_BRANCH or store.io.list(join(store.root, "branch")):
            return
        predicate = partitions_predicate(store, partitions, most=len(partitions))
        live = live_entries(store, snapshot, partition=predicate, with_stats=False).live
        for values, _ in self._names(store, sorted(partitions - {entry.partition for entry in live})):
            self._client.drop_partition(self.database, self.table, values)

    def add_partitions(self, store: Branch, partitions: Sequence[bytes]) -> None:
        """Register partitions that the metastore does not have. ``partitions``: serialised rows."""
        client, described_table = self._client, self._client.table(self.database, self.table)
        if described_table is None or not described_table.partitionKeys:
            return
        new = {
            tuple(values): new_partition(client.types, described_table, values, directory, self.settings)
            for values, directory in self._names(store, partitions)
        }
        client.add_partitions(self.database, self.table, list(new.values()))

    def _names(self, store: Branch, partitions: Sequence[bytes]) -> Iterator[tuple[list[str], str]]:
        """Yield the values of each partition as texts, and its directory ``k1=v1/k2=v2``."""
        fields, options = store.schema.partition_fields, store.schema.options
        default, legacy = options.value(PARTITION_DEFAULT_NAME), options.value(PARTITION_LEGACY_NAME)
        for row in store.partition_rows(partitions):
            texts = [
                None if value is None else partition_text(value, field, legacy=legacy)
                for value, field in zip(row, fields, strict=True)
            ]
            values = [default if text is None or is_blank(text) else text for text in texts]
            yield values, partition_path(row, fields, options)

    def register(self, schema: TableSchema) -> None:
        """Describe an existing table in the metastore, or bring its description up to date.

        Raises AlreadyExistsError if the name belongs to a table in another directory, or of another engine.
        """
        found = self._client.table(self.database, self.table)
        if found is None:
            self._create(schema)
            return
        self._check_same(found)
        planned = self._planned(schema)
        if not same_description(found, planned):
            stored = list(found.sd.cols)
            update_table(self._client.types, found, schema, (), self.settings)
            self._replace(found, stored)

    @property
    def _client(self) -> MetastoreClient:
        return client_of(self.settings)

    @property
    def _name(self) -> str:
        return f"{self.database}.{self.table}"

    def _planned(self, schema: TableSchema) -> Any:
        types, settings = self._client.types, self.settings
        return new_table(types, self.database, self.table, schema, self.path, settings, external=self.external)

    def _check_free(self) -> None:
        found = self._client.table(self.database, self.table)
        if found is not None:
            self._check_same(found)

    def _check_same(self, found: Any) -> None:
        """Raise AlreadyExistsError unless a table of the metastore is the Paimon table in this directory."""
        if not is_paimon(found):
            raise AlreadyExistsError(
                f"{self._name} exists already: it is {described(found)}, not a Paimon table; choose another name"
            )
        path = location_of(found)
        if path != self.path.rstrip("/"):
            raise AlreadyExistsError(f"table {self._name!r} exists already, at {hide_secrets(path or 'no location')}")

    def _register(self, schemas: Schemas, schema: TableSchema) -> None:
        """Describe a table that this process has just created. If another table has the name, delete its files."""
        try:
            self.register(schema)
        except AlreadyExistsError:
            drop_directory(schemas.io, self.path)
            raise
        except PaimonError as error:
            raise MetastoreError(
                f"table {self._name!r} was created at {hide_secrets(self.path)}, but the metastore may not list it: "
                f"{error}; run {_REPAIR}, or create it again after deleting this directory"
            ) from error

    def _create(self, schema: TableSchema) -> None:
        """Create the description. A lost answer, and a lost race, show what exists."""
        try:
            self._client.call("create_table", self._planned(schema), repeat=False)
        except MetastoreError as error:
            found = self._client.table(self.database, self.table)
            if found is None:
                raise
            self._check_same(found)
            if not isinstance(error, LostAnswerError) and error.kind != _EXISTS:
                _log.warning("the metastore has created %s, but answered: %s", self._name, error)

    def _describe(self, schema: TableSchema, before: TableSchema) -> None:
        """Change the description of the table from one version of its schema to another."""
        found = self._client.table(self.database, self.table)
        if found is None or not is_paimon(found):
            raise TableChangedError(
                f"table {self._name!r} is no longer a Paimon table in {self.settings.shown}: another process has "
                "dropped or renamed it; open it again"
            )
        stored = list(found.sd.cols)
        update_table(self._client.types, found, schema, set(before.options) - set(schema.options), self.settings)
        self._replace(found, stored)

    def _replace(self, table: Any, stored: list[Any]) -> None:
        """Store a description. ``stored``: the columns in the metastore.

        A metastore refuses a column of another type in the place of an old one, for the sake of formats without names.
        Then the columns from the first difference on are removed first.
        """
        client = self._client
        try:
            client.alter_table(self.database, self.table, table)
        except MetastoreError as error:
            if error.kind != _REFUSED:
                raise
            wanted = table.sd.cols
            same = [new for new, old in takewhile(_is_same_column, zip(wanted, stored, strict=False))]
            table.sd.cols = same
            client.alter_table(self.database, self.table, table)
            table.sd.cols = wanted
            client.alter_table(self.database, self.table, table)


def _is_same_column(columns: tuple[Any, Any]) -> bool:
    new, old = columns
    return bool((new.name, new.type) == (old.name, old.type))
