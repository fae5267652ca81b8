"""The part of a catalog in the changes of its tables: how snapshots and schemas are published."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Protocol

from paimon_core.errors import CommitConflictError, PaimonError
from paimon_core.fileio.fileio import FileIO
from paimon_core.manifest.entry import ManifestEntry
from paimon_core.predicate.permissions import Permissions
from paimon_core.schema.schemas import Changes, Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.snapshots import Snapshots


class Branch(Protocol):
    """The branch of a table that changes: the attributes of `FileStore` that an environment may use."""

    @property
    def io(self) -> FileIO:
        """The storage."""

    @property
    def root(self) -> str:
        """The directory of the table."""

    @property
    def branch(self) -> str:
        """The name of the branch."""

    @property
    def schema(self) -> TableSchema:
        """The schema that the table was opened with."""

    @property
    def schemas(self) -> Schemas:
        """All versions of the schema."""

    @property
    def snapshots(self) -> Snapshots:
        """The snapshots."""

    @property
    def now(self) -> Callable[[], int]:
        """A function that returns the time in epoch ms."""

    def partition_rows(self, partitions: Sequence[bytes]) -> list[tuple[Any, ...]]:
        """Return the internal values of serialised partitions."""


class NotLockedError(CommitConflictError):
    """The lock of the catalog was not free in time, so nothing was published."""


class RefusedError(Exception):
    """The answer of a catalog that published nothing, and would not again. ``cause``: the error to raise."""

    def __init__(self, cause: PaimonError) -> None:
        super().__init__(cause)
        self.cause = cause


class CatalogEnvironment:
    """The part of a catalog in the changes of one table. This class is for a table that is opened by its path.

    Every snapshot and every schema of a table is published through the environment of its `FileStore`. A subclass may
    hold a lock at the same time, ask a server instead of creating a file, or store more in the catalog. It is an
    immutable value that can be pickled, and its repr shows no secrets.
    """

    __slots__ = ()

    decided_by_server: ClassVar[bool] = False
    """True if a server decides on snapshots, so that this engine withdraws none."""

    def address(self) -> dict[str, str]:
        """Return the options with which another process opens the catalog, and the name of the table as ``table``.

        They contain the warehouse and may contain secrets. Empty: the path of the table is enough.
        """
        return {}

    def locked(self) -> AbstractContextManager[None]:
        """Return a context that holds the lock of the table. Raises NotLockedError on entry.

        An error of the release is logged, not raised: what was published under the lock exists.
        """
        return nullcontext()

    def publish_snapshot(self, store: Branch, snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> bool:
        """Make a snapshot the next one of a branch, atomically; return False if another snapshot has its id.

        Args:
            store: the branch.
            snapshot: the snapshot, whose manifests are written.
            entries: the data files that it adds and deletes.

        Raises NotLockedError or RefusedError if nothing was published. After any other error the snapshot may exist.
        """
        with self.locked():
            return store.io.create_exclusive(store.snapshots.path(snapshot.id), snapshot.to_json())

    def snapshot_published(self, store: Branch, snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> None:
        """Do what the catalog wants after a commit, such as to register partitions. Arguments: `publish_snapshot`.

        The rows are visible already, so an error is logged, not raised.
        """

    def publish_schema(self, schemas: Schemas, schema: TableSchema) -> bool:
        """Publish a version of the schema, atomically; return False if another one has its id.

        The first version in the main branch creates the table: then it is registered in the catalog, too.

        Args:
            schemas: the schemas of the table, or of a branch of it.
            schema: the version to publish.

        Raises NotLockedError if nothing was published, AlreadyExistsError for a name that another table has taken.
        """
        with self.locked():
            return schemas.commit(schema)

    def permissions(self, store: Branch) -> Permissions | None:
        """Return what the user may see of a branch now; `None`: no server decides it."""
        return None

    def alter(self, store: Branch, changes: Changes) -> TableSchema:
        """Apply schema changes, all or none, and return the new schema; raises as `Schemas.apply`."""
        return store.schemas.apply(
            changes,
            lambda: store.snapshots.latest_id() is not None,
            store.now,
            lambda schema: self.publish_schema(store.schemas, schema),
        )

    def roll_back(self, store: Branch, target: Snapshot, tag: str | None) -> bool:
        """Make an older snapshot of a branch the newest one, if a server does it; return False if none does.

        ``tag``: the name of a tag of the snapshot; `None`: the snapshot has not expired.
        """
        return False

    def report_done(self, store: Branch, partitions: Sequence[bytes]) -> bool:
        """Mark serialised partitions of a branch as done, if a server does it; return False if none does."""
        return False

    def create_branch(self, store: Branch, name: str, tag: str | None) -> bool:
        """Create a branch, if a server does it; return False if none does. ``tag``: `None`: an empty branch."""
        return False

    def drop_branch(self, store: Branch, name: str) -> bool:
        """Delete a branch, if a server does it; return False if none does."""
        return False

    def rename_branch(self, store: Branch, name: str, target: str) -> bool:
        """Rename a branch, if a server does it; return False if none does. Raises UnsupportedError."""
        return False

    def fast_forward(self, store: Branch, name: str) -> bool:
        """Fast-forward ``main`` to a branch, if a server does it; return False if none does."""
        return False


NO_CATALOG = CatalogEnvironment()
"""The environment of a table that is opened by its path, or in a catalog of directories."""
