"""A table as one picklable value: its storage, path, schema, options and branch."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from uuid import uuid4

from paimon_core.errors import InvalidInputError, NotFoundError, UnsupportedError, hide_secrets, listed_names
from paimon_core.fileio.fileio import FileIO, absolute, join
from paimon_core.fileio.paths import check_name
from paimon_core.manifest.bucket import BucketRef
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.index_entry import IndexManifestEntry
from paimon_core.manifest.manifests import Manifests
from paimon_core.manifest.remembered import RememberedFiles
from paimon_core.options import ALL_OPTIONS
from paimon_core.options.bucket import BUCKET_FUNCTION_TYPE
from paimon_core.options.file import (
    BLOB_EXTERNAL_PATHS_ALLOWED,
    DATA_FILE_EXTERNAL_PATHS,
    DATA_FILE_EXTERNAL_PATHS_ALLOWED,
    INDEX_FILE_IN_DATA_FILE_DIR,
)
from paimon_core.options.option import Options
from paimon_core.options.snapshot import COMMIT_SYNC
from paimon_core.predicate.permissions import UNRESTRICTED, Permissions
from paimon_core.row.binary_row import deserialize, internal_values
from paimon_core.schema.continuity import is_replaced
from paimon_core.schema.merge import MERGE_OPTIONS, MergeRules, rules_of
from paimon_core.schema.microseconds import finer_columns, in_microseconds
from paimon_core.schema.read_rules import with_rules_of
from paimon_core.schema.references import options_at
from paimon_core.schema.schemas import Changes, Schemas
from paimon_core.schema.support import QUERY_AUTH, check_readable
from paimon_core.schema.table_schema import TableSchema
from paimon_core.schema.validate import check_dynamic, warn_of_stored
from paimon_core.snapshot.branches import list_branches
from paimon_core.snapshot.changelogs import Changelogs
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.snapshot.tags import Tags
from paimon_core.store.current_schema import current_schema
from paimon_core.store.environment import NO_CATALOG, CatalogEnvironment
from paimon_core.store.external_paths import NO_TRUST, Trust, check_blob, check_external, is_inside
from paimon_core.store.layout import (
    MAIN_BRANCH,
    branch_directory,
    bucket_directory,
    index_directory,
    manifest_directory,
    partition_path,
    partition_paths,
)
from paimon_core.store.storage_options import check_storage_options
from paimon_core.store.traits import TableTraits


def now_millis() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def fresh_name() -> str:
    """Return a unique name: a random UUID as text."""
    return str(uuid4())


_NOT_OF_THE_SCHEMA = {
    "path", "branch", "primary-key", "partition", DATA_FILE_EXTERNAL_PATHS_ALLOWED.key, BLOB_EXTERNAL_PATHS_ALLOWED.key
}  # fmt: skip


class OtherTables(Protocol):
    """The tables of the catalog that a table belongs to. A picklable value."""

    def store(self, name: str) -> "FileStore":
        """Return a table by its name with its database, such as ``db.t``. Raises NotFoundError for a missing one."""


@dataclass(frozen=True, slots=True)
class FileStore:
    """The storage, schema and options of a table, as scans, writers and commits use them.

    ``schema`` contains the dynamic options. ``now`` (milliseconds) and ``new_name`` are the only sources of time and
    of names, so that a test can fix both. REQUIRES: both are module-level functions if the value is pickled.
    """

    io: FileIO
    root: str = field(repr=False)
    schema: TableSchema
    branch: str = MAIN_BRANCH
    now: Callable[[], int] = now_millis
    new_name: Callable[[], str] = fresh_name
    trust: Trust = NO_TRUST
    """The paths outside of ``root`` that the caller allows."""
    in_micros: frozenset[int] = frozenset()
    """Ids of the columns that are stored in nanoseconds and read in microseconds; for reading only."""
    merge_rules: MergeRules | None = None
    """The schema changes that a write may make first, by the options ``write.merge-schema``; `None`: no changes."""
    remembered: RememberedFiles | None = field(default=None, compare=False, repr=False)
    """The files of metadata that are not read again; `None`: every read reads the storage."""
    of_all_queries: RememberedFiles | None = field(default=None, compare=False, repr=False)
    """The files of metadata that all queries of a catalog share; `None`: its tables share none. See `for_query`."""
    environment: CatalogEnvironment = field(default=NO_CATALOG, compare=False, repr=False)
    """The part of the table's catalog in its changes."""
    others: OtherTables | None = field(default=None, compare=False, repr=False)
    """The tables of the same catalog, which rows may name; `None`: the table was opened by its path."""
    permissions: Permissions | None = None
    """The rows and values that the user may see; `None`: no server was asked."""
    schemas: Schemas = field(init=False, compare=False, repr=False)
    """All versions of this branch's schema. Versions that were read are cached with this object."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "io", self.io.inside(self.root, self.branch_root))
        object.__setattr__(self, "schemas", Schemas(self.io, self.branch_root, self.in_micros))

    @staticmethod
    def open(
        root: str,
        storage_options: Mapping[str, Any] | None = None,
        options: Mapping[str, str | None] | None = None,
        branch: str | None = None,
    ) -> "FileStore":
        """Open the table at ``root`` in the newest version of its schema.

        Args:
            root: the directory of the table.
            storage_options: the options of the file system; `None`: no options.
            options: dynamic options on top of the stored options; a value `None` removes an option.
            branch: the branch; `None`: the option ``branch``, or ``main``.

        Raises NotFoundError if the table or the branch does not exist, InvalidInputError for options that do not fit.
        """
        check_storage_options(storage_options or {})
        root = join(absolute(root))
        io = FileIO.of(root, storage_options or {})
        branch = _chosen_branch(branch, (options or {}).get("branch"))
        schemas = Schemas(io, branch_directory(root, branch))
        schema = current_schema(schemas)
        if schema is None:
            raise _unfinished(root) if schemas.ids() else _missing(io, root, branch)
        warn_of_stored(schema, f"the table {root}")
        return FileStore(io, root, schema, branch).with_options(options or {})

    @property
    def options(self) -> Options:
        """The stored options with the dynamic options on top."""
        return self.schema.options

    @property
    def traits(self) -> TableTraits:
        """The facts that follow from the keys and options of the table."""
        return TableTraits(self.schema)

    @property
    def branch_root(self) -> str:
        """The directory of this branch's schemas, snapshots and tags."""
        return branch_directory(self.root, self.branch)

    @property
    def snapshots(self) -> Snapshots:
        """The snapshots of this branch."""
        return Snapshots(self.io, self.branch_root)

    @property
    def changelogs(self) -> Changelogs:
        """The changelogs of this branch."""
        return Changelogs(self.io, self.branch_root)

    @property
    def tags(self) -> Tags:
        """The tags of this branch."""
        return Tags(self.io, self.branch_root)

    @property
    def manifests(self) -> Manifests:
        """The manifests of all branches. Each object numbers its new files from 0, so write with a single object.

        Raises UnsupportedError if the user may not see everything, unless the read applies the rules.
        """
        self._check_enforced()
        directory = manifest_directory(self.root)
        partitions = self.schema.partition_arrow
        return Manifests(self.io, directory, self.options, partitions, self.new_name, self.remembered)

    @property
    def bucket_function(self) -> str:
        """The function from bucket keys to buckets: ``default``, ``mod`` or ``hive``."""
        return str(self.options.value(BUCKET_FUNCTION_TYPE)).lower()

    def with_options(self, options: Mapping[str, str | None]) -> "FileStore":
        """Return the table with additional dynamic options. Raises InvalidInputError for options that do not fit."""
        if not options:
            return self
        if not isinstance(options, Mapping):
            raise InvalidInputError(f"the options are {options!r}: pass {{name: value}}")
        branch = options.get("branch")
        if branch is not None and branch != self.branch:
            raise InvalidInputError(f"this table is open on branch {self.branch!r}: open it on {branch!r} instead")
        path = options.get("path")
        if path is not None and join(absolute(path)) != self.root:
            raise InvalidInputError(f"option 'path' is {path!r}, but this table is at {self.root}: open that table")
        if not options.keys().isdisjoint(MERGE_OPTIONS):
            other_options = {key: value for key, value in options.items() if key not in MERGE_OPTIONS}
            return replace(self.with_options(other_options), merge_rules=rules_of(options, self.merge_rules))
        check_dynamic(self.schema, options)
        store = self.with_schema(
            self.schema.copy({key: value for key, value in options.items() if key not in _NOT_OF_THE_SCHEMA})
        )
        trust, allowed = self.trust, DATA_FILE_EXTERNAL_PATHS_ALLOWED
        if allowed.key in options:
            trust = replace(trust, roots=allowed.parse(options[allowed.key] or ""))
        allowed = BLOB_EXTERNAL_PATHS_ALLOWED
        if allowed.key in options:
            trust = replace(trust, blob_roots=allowed.parse(options[allowed.key] or ""))
        return replace(store, trust=trust)

    def remembering(self) -> "FileStore":
        """Return the table for a statement that reads no manifest and no manifest list twice, or itself if it is one.

        Memory: see `RememberedFiles`. Snapshots, schemas and hints are read each time, because they may change.
        """
        return self if self.remembered is not None else replace(self, remembered=RememberedFiles())

    def for_query(self) -> "FileStore":
        """Return the table for a query, which does not read manifests that another query of its catalog has read.

        Only for queries. A commit, or an operation that deletes files, must fail if a manifest is missing, and so reads
        it. Versions of the schema that this object has read are shared with the result.
        """
        if self.remembered is not None or self.of_all_queries is None:
            return self
        store = replace(self, remembered=self.of_all_queries)
        object.__setattr__(store, "schemas", self.schemas)
        return store

    def forgetting(self) -> "FileStore":
        """Return the table for a reader that must see what the storage has: it reads every file."""
        return replace(self, remembered=None)

    def within(self, warehouse: str) -> "FileStore":
        """Return the table with ``warehouse`` as the caller's warehouse: see `Trust`."""
        return replace(self, trust=replace(self.trust, warehouse=absolute(warehouse)))

    def trusting(self, trust: Trust) -> "FileStore":
        """Return the table with the paths that ``trust`` allows where its own options allow none."""
        own = self.trust
        allowed = Trust(own.roots or trust.roots, own.warehouse or trust.warehouse, own.blob_roots or trust.blob_roots)
        return replace(self, trust=allowed)

    def in_microseconds(self) -> "FileStore":
        """Return the table with timestamps cut to microseconds, for reading only.

        Columns whose finer digits matter keep them: see `finer_columns`.
        """
        columns = finer_columns(self.schema)
        if not columns:
            return self
        return replace(self, schema=in_microseconds(self.schema, columns), in_micros=columns)

    def of_catalog(self, environment: CatalogEnvironment) -> "FileStore":
        """Return the table as one of a catalog."""
        return replace(self, environment=environment)

    @property
    def is_restricted(self) -> bool:
        """True if the user may not see all rows and values."""
        return self.permissions is not None and self.permissions.restricts

    def check_readable(self, *, enforcing: bool = False) -> None:
        """Raise UnsupportedError if this engine cannot read the rows right.

        ``enforcing``: True for a read that applies the row filter and the masks of ``permissions``.
        """
        check_readable(self.schema, permitted=self.permissions is not None)
        if self.permissions is None:
            return
        if self.is_restricted and not enforcing:
            raise self._hidden()
        self._check_enforced()
        self.permissions.check_columns(self.schema.fields, f"schema {self.schema.id} of {hide_secrets(self.root)}")

    def check_unrestricted(self) -> None:
        """Raise UnsupportedError if the user may not see everything, or if no server was asked that decides it."""
        if self.is_restricted:
            raise self._hidden()
        if self.permissions is None and self.options.value(ALL_OPTIONS[QUERY_AUTH]):
            check_readable(self.schema)

    def check_still_readable(self) -> None:
        """Raise UnsupportedError if the server of the catalog has restricted the user since the table was opened."""
        if self.permissions is not None:
            now = self.environment.permissions(self)
            if now is None or now.restricts:
                raise self._hidden()

    def enforcing(self) -> "FileStore":
        """Return the table for a read that applies the row filter and the masks of ``permissions``."""
        if self.permissions is None or not self.is_restricted:
            return self
        return replace(self, permissions=replace(self.permissions, enforced=True))

    def without_rules(self) -> "FileStore":
        """Return the table for the part of a read before the row filter and the masks are applied."""
        return replace(self, permissions=UNRESTRICTED)

    def _check_enforced(self) -> None:
        if self.permissions is not None and self.is_restricted and not self.permissions.enforced:
            raise self._hidden()

    def _hidden(self) -> UnsupportedError:
        return UnsupportedError(
            f"the catalog's server filters the rows or masks the columns of the table at {hide_secrets(self.root)} for "
            "this user. Only queries of rows apply its rules: this read or change would show, use or miss what is "
            "hidden. Ask for full access to the table"
        )

    def check_can_commit(self) -> None:
        """Raise UnsupportedError if neither the storage nor a server of the catalog can publish snapshots safely.

        Raises UnsupportedError, too, for a user who may not see everything.
        """
        self._check_enforced()
        if not self.environment.decided_by_server:
            self.io.check_can_commit()

    def with_schema(self, schema: TableSchema) -> "FileStore":
        """Return the table with another version of its schema."""
        return replace(self, schema=schema)

    def alter(self, changes: Changes) -> "FileStore":
        """Apply schema changes, all or none, and return the table with its new schema; raises as `Schemas.apply`."""
        return self.with_schema(self.environment.alter(self, changes))

    def publish_schema(self, schema: TableSchema) -> bool:
        """Publish a version of the schema; return False if another process has published its id."""
        return self.environment.publish_schema(self.schemas, schema)

    def at_schema(self, schema_id: int) -> "FileStore":
        """Return the table with an older version of its schema and the current options.

        Options that name columns use the column names of the older version. Options of `schema.read_rules` have its
        values, and all options if the table was replaced since.
        """
        if schema_id == self.schema.id:
            return self
        then = self.schemas.get(schema_id)
        if is_replaced(then, self.schema):
            return self.keeping_options(then)
        return self.with_schema(with_rules_of(replace(then, options=Options(options_at(self.schema, then))), then))

    def at_newest_schema(self) -> "FileStore":
        """Return the table with the newest version of its schema, under the dynamic options of this object."""
        newest = self.schemas.latest()
        return self if newest is None or newest.id == self.schema.id else self.keeping_options(newest)

    def keeping_options(self, schema: TableSchema) -> "FileStore":
        """Return the table with another version of its schema, under the dynamic options of this object."""
        stored, current = dict(self.schemas.get(self.schema.id).options.items()), dict(self.options.items())
        dynamic = {key: current.get(key) for key in {**stored, **current} if current.get(key) != stored.get(key)}
        return self.with_schema(schema.copy(dynamic))

    def partition_values(self, partition: bytes) -> tuple[Any, ...]:
        """Return the internal values of a serialised partition, in partition order."""
        return deserialize(partition, self.schema.partition_arrow) if self.schema.partition_keys else ()

    def partition_rows(self, partitions: Sequence[bytes]) -> list[tuple[Any, ...]]:
        """Return the `partition_values` of serialised partitions, which are decoded together."""
        if not self.schema.partition_keys:
            return [()] * len(partitions)
        return list(zip(*internal_values(partitions, self.schema.partition_arrow), strict=True))

    def partition_path(self, partition: bytes) -> str:
        """Return ``k1=v1/k2=v2`` of a serialised partition."""
        return partition_path(self.partition_values(partition), self.schema.partition_fields, self.options)

    def bucket_path(self, bucket: BucketRef) -> str:
        """Return the directory of a bucket."""
        return bucket_directory(self.root, self.partition_path(bucket.partition), bucket.bucket, self.options)

    def bucket_paths(self, buckets: Sequence[BucketRef]) -> list[str]:
        """Return the directories of buckets, whose partitions are decoded together."""
        rows = self.partition_rows([bucket.partition for bucket in buckets])
        paths = partition_paths(rows, self.schema.partition_fields, self.options)
        return [
            bucket_directory(self.root, path, bucket.bucket, self.options)
            for bucket, path in zip(buckets, paths, strict=True)
        ]

    def file_path(self, bucket: BucketRef, meta: DataFileMeta) -> str:
        """Return the path of a data file: its external path if it has one, else a path in its bucket's directory.

        Raises as `check_external` for an external path that is not allowed.
        """
        if meta.external_path:
            return self._external(meta.external_path)
        return join(self.bucket_path(bucket), meta.file_name)

    def file_paths(self, bucket: BucketRef, meta: DataFileMeta) -> list[str]:
        """Return the paths of a data file and of its index files in the same directory. Raises as `file_path`."""
        path = self.file_path(bucket, meta)
        return [path, *(join(path.rpartition("/")[0], name) for name in meta.extra_files)]

    def paths_of_files(self, files: Iterable[tuple[BucketRef, DataFileMeta]]) -> Iterator[list[str]]:
        """Yield the `file_paths` of each file. The directory of a bucket is computed once for all of its files."""
        directories: dict[BucketRef, str] = {}
        for bucket, meta in files:
            if meta.external_path:
                yield self.file_paths(bucket, meta)
                continue
            directory = directories.get(bucket)
            if directory is None:
                directory = directories[bucket] = join(self.bucket_path(bucket), "x")[:-1]
            yield [directory + name for name in (meta.file_name, *meta.extra_files)]

    def deletable_paths(self, bucket: BucketRef, meta: DataFileMeta) -> list[str]:
        """Return the paths of a data file and of its index files, if this engine may delete them.

        Empty for a file outside of the table, unless the file is below a root of `trust`.
        """
        path = meta.external_path or join(self.bucket_path(bucket), meta.file_name)
        if meta.external_path and not self._is_deletable(meta.external_path):
            return []
        return [path, *(join(path.rpartition("/")[0], name) for name in meta.extra_files)]

    def delete_file(self, bucket: BucketRef, meta: DataFileMeta) -> None:
        """Delete a data file and its index files, if `deletable_paths` returns them."""
        for path in self.deletable_paths(bucket, meta):
            self.io.delete(path)

    def sync(self, paths: Iterable[str]) -> None:
        """Make files and their directory entries survive a power failure, unless ``commit.sync`` is false."""
        if self.options.value(COMMIT_SYNC):
            self.io.sync(paths, self.root)

    def index_path(self, entry: IndexManifestEntry) -> str:
        """Return the path of an index file: its external path, or a path in `index_directory`.

        Raises as `check_external` for an external path that is not allowed.
        """
        if entry.external_path is not None:
            return self._external(entry.external_path)
        return join(self.index_directory(entry.bucket_ref), entry.file_name)

    def deletable_index_paths(self, entry: IndexManifestEntry) -> list[str]:
        """Return the path of an index file, if this engine may delete it.

        Empty for a file outside of the table, unless the file is below a root of `trust`.
        """
        if entry.external_path is None:
            return [join(self.index_directory(entry.bucket_ref), entry.file_name)]
        return [entry.external_path] if self._is_deletable(entry.external_path) else []

    def delete_index(self, entry: IndexManifestEntry) -> None:
        """Delete an index file, if `deletable_index_paths` returns it."""
        for path in self.deletable_index_paths(entry):
            self.io.delete(path)

    def index_directory(self, bucket: BucketRef) -> str:
        """Return the directory of a bucket's new index files: the bucket's directory, or `layout.index_directory`."""
        in_bucket = self.options.value(INDEX_FILE_IN_DATA_FILE_DIR)
        return self.bucket_path(bucket) if in_bucket else index_directory(self.root)

    def _external(self, path: str) -> str:
        declared = self.options.value(DATA_FILE_EXTERNAL_PATHS)
        return check_external(path, declared, self.trust, self.root)

    def blob_path(self, path: str) -> str:
        """Return the path of a blob that a value describes. Raises as `check_blob` for one that is not allowed."""
        declared = self.options.value(DATA_FILE_EXTERNAL_PATHS)
        return check_blob(path, declared, self.trust, self.root)

    def may_read_blob(self, path: str) -> bool:
        """Return True if `blob_path` returns a path, False if it raises."""
        with suppress(InvalidInputError):
            return bool(self.blob_path(path))
        return False

    def _is_deletable(self, path: str) -> bool:
        return is_inside(path, (self.root, *self.trust.roots))


def _chosen_branch(argument: str | None, option: str | None) -> str:
    """Return the branch that the argument or the option ``branch`` names; both may name it if they agree."""
    named = {name for name in (argument, option) if name and name != MAIN_BRANCH}
    for name in named:
        check_name(name, name)
    if len(named) > 1:
        raise InvalidInputError(f"two branches are set: {argument!r}, and option 'branch' = {option!r}: remove one")
    return named.pop() if named else MAIN_BRANCH


def _unfinished(root: str) -> NotFoundError:
    return NotFoundError(
        f"the table at {root} has a schema, but not yet the rows that it is created with: the CREATE TABLE AS SELECT "
        "or clone is still running, or was interrupted; repeat the clone, or drop the table and create it again"
    )


def _contents(io: FileIO, root: str) -> str:
    """Return what a directory has instead of a table, with advice and a semicolon; empty: nothing that is known."""
    try:
        entries = io.list(root)
    except OSError:  # the error of the missing table matters more
        return ""
    databases = sorted(entry.name for entry in entries if entry.is_directory and entry.name.endswith(".db"))
    if databases:
        return f"it is a warehouse, name a table as in {join(root, databases[0])}/<table>; "
    formats = {entry.name.rpartition(".")[2].lower() for entry in entries if not entry.is_directory}
    data = next((name for name in ("parquet", "orc", "avro") if name in formats), None)
    return "" if data is None else f"it has {data} files without a table, which import_table copies into a table; "


def _missing(io: FileIO, root: str, branch: str) -> NotFoundError:
    if branch != MAIN_BRANCH and Schemas(io, root).ids():
        names = listed_names(branch, list_branches(io, root))
        return NotFoundError(f"no branch {branch!r} in the table at {root}; there are {names}")
    return NotFoundError(
        f"no table at {root}: {_contents(io, root)}there is no schema file in "
        f"{join(branch_directory(root, branch), 'schema')}"
    )
