"""A table as one picklable value: its storage, place, schema, options and branch."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from paimon_core.errors import InvalidInputError, NotFoundError
from paimon_core.fileio.fileio import FileIO, absolute, join
from paimon_core.fileio.paths import check_name
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.manifest.manifests import Manifests
from paimon_core.options.bucket import BUCKET_FUNCTION_TYPE
from paimon_core.options.file import (
    DATA_FILE_EXTERNAL_PATHS,
    DATA_FILE_EXTERNAL_PATHS_ALLOWED,
    INDEX_FILE_IN_DATA_FILE_DIR,
)
from paimon_core.options.option import Options
from paimon_core.options.snapshot import COMMIT_SYNC
from paimon_core.row.binary_row import deserialize
from paimon_core.schema.change import SchemaChange
from paimon_core.schema.microseconds import finer_columns, in_microseconds
from paimon_core.schema.references import options_at
from paimon_core.schema.schemas import Schemas
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import check_dynamic, warn_of_stored
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.snapshot.tags import Tags
from paimon_core.store.external_paths import NO_TRUST, Trust, check_external, is_below
from paimon_core.store.layout import (
    MAIN_BRANCH,
    branch_directory,
    bucket_directory,
    index_directory,
    manifest_directory,
    partition_path,
)


def now_millis() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def fresh_name() -> str:
    """A name nobody else has: a random UUID as text."""
    return str(uuid4())


_NOT_OF_THE_SCHEMA = {"path", "branch", "primary-key", "partition", DATA_FILE_EXTERNAL_PATHS_ALLOWED.key}


@dataclass(frozen=True, slots=True)
class FileStore:
    """Everything a scan, a writer or a commit needs to know of one version of a table.

    ``schema`` already carries the dynamic options. ``now`` (milliseconds) and ``new_name`` are the only sources of
    time and of names, so that a test can fix both; to travel between processes they must be module-level functions.
    """

    io: FileIO
    root: str = field(repr=False)
    schema: TableSchema
    branch: str = MAIN_BRANCH
    now: Callable[[], int] = now_millis
    new_name: Callable[[], str] = fresh_name
    trust: Trust = NO_TRUST
    """What the caller says of files outside of ``root``."""
    in_micros: frozenset[int] = frozenset()
    """Ids of the columns whose timestamps are seen in microseconds, though stored finer; for reading only."""
    schemas: Schemas = field(init=False, compare=False, repr=False)
    """All versions of the schema of this branch; those once read are remembered as long as this store lives."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "schemas", Schemas(self.io, self.branch_root, self.in_micros))

    @staticmethod
    def open(
        root: str,
        storage_options: Mapping[str, Any] | None = None,
        options: Mapping[str, str | None] | None = None,
        branch: str | None = None,
    ) -> "FileStore":
        """The newest version of the table at ``root``, under dynamic ``options``.

        Raises NotFoundError where no table or no such branch is, InvalidInputError for options that do not fit.
        """
        root = join(absolute(root))
        io = FileIO.of(root, storage_options or {})
        branch = _chosen_branch(branch, (options or {}).get("branch"))
        schema = Schemas(io, branch_directory(root, branch)).latest()
        if schema is None:
            raise _missing(io, root, branch)
        warn_of_stored(schema, f"the table {root}")
        return FileStore(io, root, schema, branch).with_options(options or {})

    @property
    def options(self) -> Options:
        """Stored options with the dynamic ones on top."""
        return self.schema.options

    @property
    def branch_root(self) -> str:
        """Where this branch keeps schemas, snapshots and tags."""
        return branch_directory(self.root, self.branch)

    @property
    def snapshots(self) -> Snapshots:
        """The timeline."""
        return Snapshots(self.io, self.branch_root)

    @property
    def tags(self) -> Tags:
        """Named snapshots."""
        return Tags(self.io, self.branch_root)

    @property
    def manifests(self) -> Manifests:
        """The manifests, of all branches. Its file names count from 0: keep one object while writing."""
        directory = manifest_directory(self.root)
        return Manifests(self.io, directory, self.options, self.schema.partition_arrow, self.new_name)

    @property
    def bucket_function(self) -> str:
        """How bucket keys become buckets: ``default``, ``mod`` or ``hive``."""
        return str(self.options.value(BUCKET_FUNCTION_TYPE)).lower()

    def with_options(self, options: Mapping[str, str | None]) -> "FileStore":
        """The same table under more dynamic options. Raises InvalidInputError for those that do not fit."""
        if not options:
            return self
        branch = options.get("branch")
        if branch is not None and branch != self.branch:
            raise InvalidInputError(f"this table is open on branch {self.branch!r}: open it on {branch!r} instead")
        place = options.get("path")
        if place is not None and join(absolute(place)) != self.root:
            raise InvalidInputError(f"option 'path' is {place!r}, but this table is at {self.root}: open that one")
        check_dynamic(self.schema, options)
        store = self.with_schema(
            self.schema.copy({key: value for key, value in options.items() if key not in _NOT_OF_THE_SCHEMA})
        )
        if DATA_FILE_EXTERNAL_PATHS_ALLOWED.key not in options:
            return store
        roots = DATA_FILE_EXTERNAL_PATHS_ALLOWED.parse(options[DATA_FILE_EXTERNAL_PATHS_ALLOWED.key] or "")
        return replace(store, trust=replace(self.trust, roots=roots))

    def within(self, warehouse: str) -> "FileStore":
        """The same table, of a caller who said in which ``warehouse`` it is."""
        return replace(self, trust=replace(self.trust, warehouse=absolute(warehouse)))

    def in_microseconds(self) -> "FileStore":
        """Return the same table as an engine reads it that cuts timestamps to microseconds; it must not be written to.

        Columns whose finer digits decide something stay as they are: see `finer_columns`.
        """
        columns = finer_columns(self.schema)
        if not columns:
            return self
        return replace(self, schema=in_microseconds(self.schema, columns), in_micros=columns)

    def with_schema(self, schema: TableSchema) -> "FileStore":
        """The same table seen through another version of its schema."""
        return replace(self, schema=schema)

    def alter(self, changes: Sequence[SchemaChange]) -> "FileStore":
        """Apply schema changes, all or none, and return the table with its new schema; raises as `Schemas.apply`."""
        return self.with_schema(self.schemas.apply(changes, lambda: self.snapshots.latest_id() is not None, self.now))

    def at_schema(self, schema_id: int) -> "FileStore":
        """The table as of an older version of its schema, under the options of now; they name columns as of then."""
        if schema_id == self.schema.id:
            return self
        then = self.schemas.get(schema_id)
        return self.with_schema(replace(then, options=Options(options_at(self.schema, then))))

    def partition_values(self, partition: bytes) -> tuple[Any, ...]:
        """The internal values of a serialised partition, in partition order."""
        return deserialize(partition, self.schema.partition_arrow) if self.schema.partition_keys else ()

    def partition_path(self, partition: bytes) -> str:
        """``k1=v1/k2=v2`` of a serialised partition."""
        return partition_path(self.partition_values(partition), self.schema.partition_fields, self.options)

    def bucket_path(self, partition: bytes, bucket: int) -> str:
        """The directory of a bucket."""
        return bucket_directory(self.root, self.partition_path(partition), bucket, self.options)

    def file_path(self, partition: bytes, bucket: int, meta: DataFileMeta) -> str:
        """The place of a data file: its external path if it has one, else its bucket's directory.

        Raises as `check_external` does for an external path that is not believed.
        """
        if meta.external_path:
            return self._external(meta.external_path)
        return join(self.bucket_path(partition, bucket), meta.file_name)

    def file_paths(self, partition: bytes, bucket: int, meta: DataFileMeta) -> list[str]:
        """Return the places of a data file and of its indexes beside it. Raises as `file_path`."""
        path = self.file_path(partition, bucket, meta)
        return [path, *(join(path.rpartition("/")[0], name) for name in meta.extra_files)]

    def deletable_paths(self, partition: bytes, bucket: int, meta: DataFileMeta) -> list[str]:
        """The places of a data file and of its indexes beside it.

        None outside of the table, but below a root that the caller named.
        """
        path = meta.external_path or join(self.bucket_path(partition, bucket), meta.file_name)
        if meta.external_path and not self._is_deletable(meta.external_path):
            return []
        return [path, *(join(path.rpartition("/")[0], name) for name in meta.extra_files)]

    def delete_file(self, partition: bytes, bucket: int, meta: DataFileMeta) -> None:
        """Delete a data file and what lies beside it, as far as `deletable_paths` goes."""
        for path in self.deletable_paths(partition, bucket, meta):
            self.io.delete(path)

    def sync(self, paths: Iterable[str]) -> None:
        """Make files and their names survive a power cut, unless ``commit.sync`` is false."""
        if self.options.value(COMMIT_SYNC):
            self.io.sync(paths, self.root)

    def index_path(self, entry: IndexManifestEntry) -> str:
        """The place of an index file: its external path, its bucket's directory, or the table's for indexes.

        Raises as `check_external` does for an external path that is not believed.
        """
        if entry.external_path is not None:
            return self._external(entry.external_path)
        return join(self.index_directory(entry.partition, entry.bucket), entry.file_name)

    def deletable_index_paths(self, entry: IndexManifestEntry) -> list[str]:
        """The place of an index file; none outside of the table, but below a root that the caller named."""
        if entry.external_path is None:
            return [join(self.index_directory(entry.partition, entry.bucket), entry.file_name)]
        return [entry.external_path] if self._is_deletable(entry.external_path) else []

    def delete_index(self, entry: IndexManifestEntry) -> None:
        """Delete an index file, as far as `deletable_index_paths` goes."""
        for path in self.deletable_index_paths(entry):
            self.io.delete(path)

    def index_directory(self, partition: bytes, bucket: int) -> str:
        """Where new index files of a bucket go."""
        beside = self.options.value(INDEX_FILE_IN_DATA_FILE_DIR)
        return self.bucket_path(partition, bucket) if beside else index_directory(self.root)

    def _external(self, path: str) -> str:
        declared = self.options.value(DATA_FILE_EXTERNAL_PATHS)
        return check_external(path, declared, self.trust, self.root)

    def _is_deletable(self, path: str) -> bool:
        return is_below(path, (self.root, *self.trust.roots))


def _chosen_branch(argument: str | None, option: str | None) -> str:
    """The branch named by the argument or the option ``branch``; both may, but not differently."""
    named = {name for name in (argument, option) if name and name != MAIN_BRANCH}
    for name in named:
        check_name(name, name)
    if len(named) > 1:
        raise InvalidInputError(f"branch is given as {argument!r} and as option 'branch' = {option!r}: leave one")
    return named.pop() if named else MAIN_BRANCH


def _missing(io: FileIO, root: str, branch: str) -> NotFoundError:
    if branch != MAIN_BRANCH and Schemas(io, root).ids():
        return NotFoundError(f"no branch {branch!r} in the table at {root}")
    return NotFoundError(
        f"no table at {root}: there is no schema file in {join(branch_directory(root, branch), 'schema')}"
    )
