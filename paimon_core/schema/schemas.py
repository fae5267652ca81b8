"""The schema versions of a table or branch: a directory of small immutable files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeAlias

from paimon_core.errors import CorruptedError, NotFoundError
from paimon_core.fileio.directory import numbers_in
from paimon_core.fileio.fileio import FileIO, join
from paimon_core.schema.change import SchemaChange, apply
from paimon_core.schema.microseconds import in_microseconds
from paimon_core.schema.table_schema import TableSchema

PREFIX = "schema-"
DROPPING = ".dropping"
"""The file that marks a table that is being deleted in several steps: see `store.drop`."""

MAX_REMEMBERED = 256
Changes: TypeAlias = Sequence[SchemaChange] | Callable[[TableSchema], Sequence[SchemaChange]]
"""Changes in their order, or a function of the newest schema that returns them."""


@dataclass(frozen=True, slots=True)
class Schemas:
    """The schemas in ``<table_root>/schema``. For a branch, ``table_root`` is the branch's directory.

    ``in_micros``: the ids of columns whose timestamps are read in microseconds: see `schema.microseconds`. At most 256
    versions are cached.
    """

    io: FileIO
    table_root: str = field(repr=False)
    in_micros: frozenset[int] = field(default=frozenset(), repr=False)
    _known: dict[int, TableSchema] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the cache."""
        return Schemas, (self.io, self.table_root, self.in_micros)

    def path(self, schema_id: int) -> str:
        """Return the path of a version's file."""
        return join(self.table_root, "schema", f"{PREFIX}{schema_id}")

    def ids(self) -> list[int]:
        """Return the ids of all versions, ascending. Empty: no table, or a table that is being dropped.

        Costs one listing.
        """
        entries = self.io.list(join(self.table_root, "schema"))
        return [] if any(entry.name == DROPPING for entry in entries) else numbers_in(entries, PREFIX)

    def latest(self) -> TableSchema | None:
        """Return the newest version; `None`: no table."""
        ids = self.ids()
        return self._load(ids[-1]) if ids else None

    def latest_stored(self) -> TableSchema | None:
        """Return the newest version, even of a table that is being dropped. `None`: no schema file."""
        ids = numbers_in(self.io.list(join(self.table_root, "schema")), PREFIX)
        return self._load(ids[-1]) if ids else None

    def get(self, schema_id: int) -> TableSchema:
        """Return a version by id, from the cache if possible. Raises NotFoundError naming the file."""
        cached = self._known.get(schema_id)
        return self._load(schema_id) if cached is None else cached

    def read(self, schema_id: int) -> TableSchema:
        """Return a version by id, as it is stored now. Raises NotFoundError naming the file."""
        return self._load(schema_id)

    def commit(self, schema: TableSchema) -> bool:
        """Publish a new version atomically. Return False if another process has published its id."""
        return self.io.create_or_match(self.path(schema.id), schema.to_json())

    def apply(
        self,
        changes: Changes,
        has_snapshots: Callable[[], bool],
        now: Callable[[], int],
        publish: Callable[[TableSchema], bool] | None = None,
    ) -> TableSchema:
        """Apply changes, all or none, to the newest version and publish the result.

        If another process publishes the id first, the changes are applied to its version, until one attempt wins.

        Args:
            changes: the changes, in order; or a function of the newest version. If it returns no change, nothing is
                published.
            has_snapshots: a function that returns True if the table has data.
            now: a function that returns the time in epoch ms.
            publish: a function that publishes a version as `commit` does; `None`: `commit`.

        Raises NotFoundError without a table, and as `schema.change.apply` does.
        """
        while True:
            current = self.latest()
            if current is None:
                raise NotFoundError(f"there is no table at {self.table_root}")
            schema_changes = changes(current) if callable(changes) else changes
            if callable(changes) and not schema_changes:
                return current
            changed = replace(apply(current, schema_changes, has_snapshots=has_snapshots()), time_millis=now())
            if (publish or self.commit)(changed):
                return changed

    def _load(self, schema_id: int) -> TableSchema:
        path = self.path(schema_id)
        try:
            data = self.io.read(path)
        except FileNotFoundError as missing:
            raise NotFoundError(f"schema file {path} does not exist") from missing
        schema = _parsed(data, path)
        if schema.id != schema_id:
            raise CorruptedError(f"schema file {path} contains the schema with id {schema.id}")
        if self.in_micros:
            schema = in_microseconds(schema, self.in_micros)
        if len(self._known) >= MAX_REMEMBERED:
            self._known.pop(next(iter(self._known)), None)
        self._known[schema_id] = schema
        return schema


@lru_cache(maxsize=MAX_REMEMBERED)
def _parsed(data: bytes, path: str) -> TableSchema:
    """Parse a schema file. A catalog opens the same tables for every query."""
    return TableSchema.from_json(data, path)
