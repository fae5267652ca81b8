"""The changes of a table that a server decides: snapshots, schemas, rollbacks and branches."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, ClassVar

from paimon_core.catalog.identifier import Identifier
from paimon_core.catalog.rest.api import RestApi
from paimon_core.catalog.rest.client import RestNotFoundError, RestServerError, was_repeated
from paimon_core.catalog.rest.permissions import permissions_of
from paimon_core.errors import (
    NotFoundError,
    OutOfRangeError,
    PaimonError,
    TableChangedError,
    UnsupportedError,
)
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.options.bucket import PARTITION_DEFAULT_NAME, PARTITION_LEGACY_NAME
from paimon_core.predicate.permissions import Permissions
from paimon_core.schema.change import SchemaChange, apply
from paimon_core.schema.schemas import Changes, Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.branches import MAIN
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.drop import STAGED
from paimon_core.store.environment import Branch, CatalogEnvironment, RefusedError
from paimon_core.store.layout import is_blank, partition_text


@dataclass(frozen=True, slots=True)
class RestEnvironment(CatalogEnvironment):
    """The part of a REST catalog in the changes of one table.

    ``table_id``: the id of the table that was opened. The server refuses commits to another table of the same name.
    ``options``: the options with which another process opens the catalog.
    """

    api: RestApi
    name: Identifier
    table_id: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    decided_by_server: ClassVar[bool] = True

    def address(self) -> dict[str, str]:
        """Return the options with which another process opens the catalog, and the name of the table."""
        return {**self.options, "table": str(self.name)}

    def permissions(self, store: Branch) -> Permissions:
        """Return what the user may see of a branch now. Raises UnsupportedError for a rule that is not known."""
        return _permissions(self.api, self.name, store)

    def publish_snapshot(self, store: Branch, snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> bool:
        """Publish a snapshot by the server; return False if it lost. Arguments and errors: `CatalogEnvironment`.

        If the server does not answer, its snapshot with this id decides. Without one, the outcome is unknown.
        """
        if store.branch.startswith(STAGED):  # the server does not know this branch, which no other process writes to
            return super(RestEnvironment, self).publish_snapshot(store, snapshot, entries)
        name = self._branch(store)
        body = {"snapshot": json.loads(snapshot.to_json()), "statistics": _statistics(store, entries)}
        base = None if snapshot.id == 1 else store.snapshots.find(snapshot.id - 1)
        if base is not None and base.uuid is not None:
            body["baseSnapshotUuid"] = base.uuid
        try:
            table_id = self.table_id if name.branch is None else self.api.table(name).table_id
            published = self.api.commit(name, table_id, body)
        except RestNotFoundError as error:
            raise self._unless_repeated(error, self._dropped(error)) from error
        except PaimonError as error:
            raise self._unless_repeated(error, error) from error
        except RestServerError:
            stored = self.api.snapshot(name, snapshot.id)
            if stored is None:
                raise
            return _is_same(stored, snapshot)
        if published:
            return True
        stored = self.api.snapshot(name, snapshot.id)  # of this commit, if the client repeated its request
        return stored is not None and _is_same(stored, snapshot)

    def publish_schema(self, schemas: Schemas, schema: TableSchema) -> bool:
        """Raise UnsupportedError: only the server publishes schemas, by `alter`."""
        raise UnsupportedError(
            f"the schema of table {str(self.name)!r} cannot be replaced: the interface of REST catalogs changes a "
            "schema only column by column and option by option. Alter the table, or drop it and create it again"
        )

    def alter(self, store: Branch, changes: Changes) -> TableSchema:
        """Apply schema changes by the server, and return the new schema; raises as `Schemas.apply`.

        The changes are first applied here, so a change that breaks a rule of this engine is never sent.
        """
        planned = _planned(self.name, store, changes)
        if planned is None:
            return _newest(self.name, store)
        before, expected, schema_changes = planned
        try:
            self.api.alter_table(self._branch(store), schema_changes)
        except RestNotFoundError as error:
            raise self._dropped(error) from error
        except RestServerError:
            after = _newest(self.name, store)
            if after.id == before.id or not _agree(after, expected):
                raise
            return after
        after = _newest(self.name, store)
        if after.id == before.id and not _agree(after, expected):
            raise UnsupportedError(
                f"the server has changed the schema of table {str(self.name)!r}, but not its files at {store.root}, "
                "which this engine reads: check the table with the catalog's own tools"
            )
        return after

    def report_done(self, store: Branch, partitions: Sequence[bytes]) -> bool:
        """Mark partitions as done by the server; return True. Raises UnsupportedError if the server does not do it."""
        self.api.report_done(self._branch(store), _specs(store, partitions))
        return True

    def roll_back(self, store: Branch, target: Snapshot, tag: str | None) -> bool:
        """Roll back by the server; return True. Raises OutOfRangeError for a snapshot that the server does not have."""
        try:
            self.api.roll_back(self._branch(store), target.id if tag is None else tag)
        except RestNotFoundError as error:
            if error.kind in ("SNAPSHOT", "TAG"):
                raise OutOfRangeError(
                    f"table {str(self.name)!r} cannot be rolled back to snapshot {target.id}, which its server does "
                    f"not have: {error}"
                ) from error
            raise self._dropped(error) from error
        return True

    def create_branch(self, store: Branch, name: str, tag: str | None) -> bool:
        """Create a branch by the server; return True."""
        return self._asked(lambda: self.api.create_branch(self.name, name, tag))

    def drop_branch(self, store: Branch, name: str) -> bool:
        """Delete a branch by the server; return True."""
        return self._asked(lambda: self.api.drop_branch(self.name, name))

    def rename_branch(self, store: Branch, name: str, target: str) -> bool:
        """Raise UnsupportedError: clients of the server would not see the new name."""
        raise UnsupportedError(
            f"branch {name!r} of table {str(self.name)!r} cannot be renamed: the Java engine cannot do so in a REST "
            "catalog either. Create a branch from a tag, and delete this one"
        )

    def fast_forward(self, store: Branch, name: str) -> bool:
        """Fast-forward ``main`` by the server; return True."""
        return self._asked(lambda: self.api.fast_forward(self.name, name))

    # ---- inside

    def _asked(self, request: Callable[[], None]) -> bool:
        try:
            request()
        except RestNotFoundError as error:
            if error.kind == "TABLE":
                raise self._dropped(error) from error
            raise
        return True

    def _branch(self, store: Branch) -> Identifier:
        return replace(self.name, branch=None if store.branch == MAIN else store.branch)

    def _dropped(self, error: Exception) -> TableChangedError:
        return TableChangedError(
            f"table {str(self.name)!r} was dropped, renamed or created again since it was opened: open it again "
            f"({error})"
        )

    def _unless_repeated(self, refusal: Exception, cause: PaimonError) -> Exception:
        """Return the error that refuses a commit; after a repetition, an error of unknown outcome."""
        if was_repeated(refusal):
            return RestServerError(f"a commit to {str(self.name)!r} was refused when it was repeated: {refusal}")
        return RefusedError(cause)


@dataclass(frozen=True, slots=True)
class ExternalEnvironment(CatalogEnvironment):
    """The part of a REST catalog in the changes of an external table: only schema changes reach the server."""

    api: RestApi
    name: Identifier
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    def address(self) -> dict[str, str]:
        """Return the options with which another process opens the catalog, and the name of the table."""
        return {**self.options, "table": str(self.name)}

    def permissions(self, store: Branch) -> Permissions:
        """Return what the user may see of a branch now. Raises UnsupportedError for a rule that is not known."""
        return _permissions(self.api, self.name, store)

    def report_done(self, store: Branch, partitions: Sequence[bytes]) -> bool:
        """Mark partitions as done by the server; return True. Raises UnsupportedError if the server does not do it."""
        of_branch = replace(self.name, branch=None if store.branch == MAIN else store.branch)
        self.api.report_done(of_branch, _specs(store, partitions))
        return True

    def alter(self, store: Branch, changes: Changes) -> TableSchema:
        """Apply schema changes by the server, and in the files if the server leaves these to its clients."""
        planned = _planned(self.name, store, changes)
        if planned is not None:
            before, expected, schema_changes = planned
            self.api.alter_table(self.name, schema_changes)
            if _newest(self.name, store).id == before.id:
                store.schemas.commit(replace(expected, time_millis=store.now()))
        return _newest(self.name, store)


def _permissions(api: RestApi, name: Identifier, store: Branch) -> Permissions:
    of_branch = replace(name, branch=None if store.branch == MAIN else store.branch)
    return permissions_of(api.permissions(of_branch), store.schema.fields, of_branch)


def _newest(name: Identifier, store: Branch) -> TableSchema:
    newest = store.schemas.latest()
    if newest is None:
        raise NotFoundError(f"there is no table {str(name)!r}")
    return newest


def _planned(
    name: Identifier, store: Branch, changes: Changes
) -> tuple[TableSchema, TableSchema, Sequence[SchemaChange]] | None:
    """Return the newest schema, the schema after the changes, and the changes; `None`: there are no changes."""
    before = _newest(name, store)
    schema_changes = changes(before) if callable(changes) else changes
    if not schema_changes:
        return None
    has_snapshots = store.snapshots.latest_id() is not None
    return before, apply(before, schema_changes, has_snapshots=has_snapshots), schema_changes


def _is_same(stored: Snapshot, snapshot: Snapshot) -> bool:
    """Return True if the server's snapshot is from this attempt: names of manifest lists are unique."""
    return (
        stored.commit_user == snapshot.commit_user
        and stored.commit_identifier == snapshot.commit_identifier
        and stored.commit_kind == snapshot.commit_kind
        and stored.delta_manifest_list == snapshot.delta_manifest_list
    )


def _agree(stored: TableSchema, expected: TableSchema) -> bool:
    return (stored.fields, dict(stored.options), stored.primary_keys, stored.comment or None) == (
        expected.fields,
        dict(expected.options),
        expected.primary_keys,
        expected.comment or None,
    )


def _statistics(store: Branch, entries: Sequence[ManifestEntry]) -> list[dict[str, Any]]:
    """Return what a commit changes in each partition: rows, bytes and files, negative for deleted files."""
    ordered = sorted(entries, key=lambda entry: entry.partition)
    grouped = [(partition, list(group)) for partition, group in groupby(ordered, key=lambda entry: entry.partition)]
    specs = _specs(store, [partition for partition, _ in grouped])
    return [_counted(spec, group) for spec, (_, group) in zip(specs, grouped, strict=True)]


def _counted(spec: dict[str, str], entries: Sequence[ManifestEntry]) -> dict[str, Any]:
    signs = [1 if entry.kind == ADD else -1 for entry in entries]
    files = [entry.file for entry in entries]
    return {
        "spec": spec,
        "recordCount": sum(sign * file.row_count for sign, file in zip(signs, files, strict=True)),
        "fileSizeInBytes": sum(sign * file.file_size for sign, file in zip(signs, files, strict=True)),
        "fileCount": sum(signs),
        "lastFileCreationTime": max(file.creation_time or 0 for file in files),
        "totalBuckets": entries[-1].total_buckets,
    }


def _specs(store: Branch, partitions: Sequence[bytes]) -> list[dict[str, str]]:
    """Return the values of partitions as texts, by column."""
    options, fields = store.schema.options, store.schema.partition_fields
    default, legacy = options.value(PARTITION_DEFAULT_NAME), options.value(PARTITION_LEGACY_NAME)
    specs = []
    for row in store.partition_rows(partitions):
        texts = [None if v is None else partition_text(v, f, legacy=legacy) for v, f in zip(row, fields, strict=True)]
        named = zip((field.name for field in fields), texts, strict=True)
        specs.append({name: default if text is None or is_blank(text) else text for name, text in named})
    return specs
