"""Check the metadata of one branch: schemas, snapshots, tags, changelogs, and the manifests that they name.

The full state is computed for the first and the last snapshot, for snapshots after a gap, and for tags whose snapshots
have expired. For every other snapshot only its changes are read. The cost therefore grows with the number of manifests,
not with the product of snapshots and manifests.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TypeVar

from paimon_core.errors import CorruptedError, PaimonError
from paimon_core.fileio.directory import Hint, NumberedDirectory
from paimon_core.fileio.fileio import join
from paimon_core.inspect.verify.verify_report import Fault
from paimon_core.manifest.entry import ADD, ManifestEntry, merge_entries
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.expired import is_missing
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import statistics_directory

T = TypeVar("T")
Name = TypeVar("Name")


@dataclass(frozen=True, slots=True)
class State:
    """The live files of a snapshot."""

    snapshot: Snapshot
    live: list[ManifestEntry]


@dataclass(frozen=True, slots=True)
class _Summary:
    """A summary of a manifest: numbers of entries, and the ranges of buckets and levels (`None` without entries)."""

    added: int
    deleted: int
    buckets: tuple[int, int] | None
    levels: tuple[int, int] | None

    @classmethod
    def of(cls, entries: Sequence[ManifestEntry]) -> "_Summary":
        added = sum(entry.kind == ADD for entry in entries)
        buckets, levels = [entry.bucket for entry in entries], [entry.file.level for entry in entries]
        ranges = [(min(values), max(values)) if values else None for values in (buckets, levels)]
        return cls(added, len(entries) - added, *ranges)


@dataclass(slots=True)
class BranchMetadata:
    """The metadata of a branch. `check` fills the other fields.

    ``states``: full states, newest last. ``added``: entries of files that must exist although no full state has them:
    changes between snapshots, and changelog files. ``read``: the readable snapshots and tags.
    """

    store: FileStore
    faults: list[Fault] = field(default_factory=list)
    snapshots: int = 0
    states: list[State] = field(default_factory=list)
    added: list[ManifestEntry] = field(default_factory=list)
    read: list[Snapshot] = field(default_factory=list)
    _lists: dict[str, list[ManifestFileMeta] | None] = field(default_factory=dict)
    _summaries: dict[str, "_Summary | None"] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)
    _rows: int | None = None  # rows of the files of the last checked snapshot; `None`: unknown

    def check(self) -> None:
        """Follow every reference of the branch down to the entries of manifests."""
        schemas = self._schemas()
        self._hints()
        snapshots = self._existing()
        fingerprints = {snapshot.fingerprint for snapshot in snapshots}
        tagged = [tag for tag in self._tagged() if tag.fingerprint not in fingerprints]
        changelogs = list(self._changelogs())
        self._consumers()
        self.read = [*snapshots, *tagged]
        self.snapshots = len(self.read) + len(changelogs)
        for snapshot in (*snapshots, *tagged, *changelogs):
            if snapshot.schema_id not in schemas:
                path = self.store.schemas.path(snapshot.schema_id)
                self._found("missing-schema", path, f"snapshot {snapshot.id} has schema {snapshot.schema_id}")
        for snapshot in tagged:
            self._whole(snapshot)
        before: Snapshot | None = None
        for position, snapshot in enumerate(snapshots):
            if before is None or before.id + 1 != snapshot.id:
                before = self._rows = None
            elif not snapshot.was_built_on(before):
                message = (
                    f"snapshot {snapshot.id} was not built on snapshot {before.id}: a rollback overtook its commit"
                )
                self._found("wrong-parent", self.store.snapshots.path(snapshot.id), message)
                continue  # it is not part of the history
            self._changes(snapshot, before)
            if before is None or position == len(snapshots) - 1:
                self._rows = self._whole(snapshot)
            before = snapshot
        for changelog in changelogs:
            self._changelog_files(changelog)

    def check_one(self, snapshot: Snapshot) -> None:
        """Follow the references of one snapshot; `states` then holds its state only."""
        self._changes(snapshot, None)
        self._whole(snapshot)

    # ---- files that refer to other files

    def _schemas(self) -> set[int]:
        schemas, ids = self.store.schemas, set()
        for number in schemas.ids():
            if self._readable("unreadable-schema", schemas.path(number), partial(schemas.get, number)) is not None:
                ids.add(number)
        return ids

    def _hints(self) -> None:
        directory = NumberedDirectory(self.store.io, join(self.store.branch_root, "snapshot"), "snapshot-")
        ids = directory.ids()
        kinds: tuple[Hint, ...] = ("LATEST", "EARLIEST")
        for kind in kinds:
            path = join(directory.directory, kind)
            if not self.store.io.exists(path):
                continue
            hint = directory.hint(kind)
            if hint is None:
                self._found("wrong-hint", path, "the hint is not a number")
            elif ids and hint not in ids and not (kind == "EARLIEST" and hint < ids[0]):
                self._found("wrong-hint", path, f"the hint is {hint}, but the snapshots are {ids[0]} to {ids[-1]}")
            elif not ids and kind == "LATEST":
                self._found("missing-snapshot", directory.path(hint), "the hint LATEST names it, and there is no other")

    def _existing(self) -> list[Snapshot]:
        """Return the readable snapshots; a gap between two snapshots is a fault."""
        snapshots = self.store.snapshots
        ids = snapshots.ids()
        for before, after in pairwise(ids):
            if after > before + 1:
                message = f"after snapshot {before} comes {after}"
                self._found("missing-snapshot", snapshots.path(before + 1), message)
        return list(self._read("unreadable-snapshot", ids, snapshots.path, snapshots.find))

    def _tagged(self) -> Iterator[Snapshot]:
        tags = self.store.tags
        for tag in self._read("unreadable-tag", tags.names(), tags.path, tags.find):
            yield tag.snapshot

    def _changelogs(self) -> Iterator[Snapshot]:
        changelogs = self.store.changelogs
        yield from self._read("unreadable-changelog", changelogs.ids(), changelogs.path, changelogs.find)

    def _consumers(self) -> None:
        root = self.store.branch_root
        self._readable("unreadable-consumer", join(root, "consumer"), Consumers(self.store.io, root).list)

    def _read(
        self, kind: str, names: Iterable[Name], path: Callable[[Name], str], read: Callable[[Name], T | None]
    ) -> Iterator[T]:
        for name in names:
            value = self._readable(kind, path(name), partial(read, name))
            if value is not None:
                yield value

    # ---- manifests

    def _changes(self, snapshot: Snapshot, before: Snapshot | None) -> None:
        """Check the changes of a snapshot. ``before``: the preceding snapshot; `None` if it has expired."""
        base = self._list(snapshot.base_manifest_list, snapshot.base_manifest_list_size)
        delta = self._list(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
        for meta in (*(base or ()), *(delta or ())):
            self._manifest(meta)
        self._index_manifest(snapshot)
        self._statistics(snapshot)
        self._changelog_files(snapshot)
        if delta is None:
            return
        entries = [entry for meta in delta for entry in self._entries(meta) or ()]
        counted = sum(entry.file.row_count * (1 if entry.kind == ADD else -1) for entry in entries)
        self._rows = None if self._rows is None else self._rows + counted
        path = self.store.snapshots.path(snapshot.id)
        if snapshot.delta_record_count is not None and counted != snapshot.delta_record_count:
            message = f"deltaRecordCount is {snapshot.delta_record_count}, but the changes have {counted} rows"
            self._found("wrong-record-count", path, message)
        if before is None:
            return
        self.added += [entry for entry in entries if entry.kind == ADD]
        expected = self._rows
        if expected is None and before.total_record_count is not None:
            expected = before.total_record_count + counted
        if None not in (expected, snapshot.total_record_count) and expected != snapshot.total_record_count:
            self._found("wrong-record-count", path, _wrong_total(snapshot, expected))
        if None not in (before.next_row_id, snapshot.next_row_id) and snapshot.next_row_id < before.next_row_id:  # type: ignore[operator]
            self._found("wrong-row-ids", path, f"nextRowId falls from {before.next_row_id} to {snapshot.next_row_id}")

    def _changelog_files(self, snapshot: Snapshot) -> None:
        """Read the changelog manifests of a snapshot and record their files, which must exist."""
        if snapshot.changelog_manifest_list is None:
            return
        metas = self._list(snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size) or ()
        for meta in metas:
            self._manifest(meta)
            self.added += [entry for entry in self._entries(meta) or () if entry.kind == ADD]

    def _whole(self, snapshot: Snapshot) -> int | None:
        """Compute the live files of a snapshot; return their number of rows, or `None` if metadata is missing."""
        names = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        sizes = (snapshot.base_manifest_list_size, snapshot.delta_manifest_list_size)
        lists = [self._list(name, size) for name, size in zip(names, sizes, strict=True)]
        self._index_manifest(snapshot)
        self._statistics(snapshot)
        for meta in (meta_ for metas in lists for meta_ in metas or ()):
            self._manifest(meta)
        read = [self._entries(meta) for metas in lists for meta in metas or ()]
        path = self.store.manifests.path(names[0])
        if None in lists or None in read:
            return None  # the missing metadata is already a fault
        try:
            merged = merge_entries([entry for entries in read for entry in entries or ()])
        except CorruptedError as error:
            self._found("added-twice", path, f"snapshot {snapshot.id}: {error}")
            return None
        live = [entry for entry in merged if entry.kind == ADD]
        for entry in merged:
            if entry.kind != ADD:
                message = f"snapshot {snapshot.id} deletes {entry.file.file_name}, which no manifest adds"
                self._found("deleted-without-add", path, message)
        rows = sum(entry.file.row_count for entry in live)
        if snapshot.total_record_count is not None and rows != snapshot.total_record_count:
            self._found("wrong-record-count", self.store.snapshots.path(snapshot.id), _wrong_total(snapshot, rows))
        self.states.append(State(snapshot, live))
        return rows

    def _list(self, name: str, size: int | None) -> list[ManifestFileMeta] | None:
        if name not in self._lists:
            path = self.store.manifests.path(name)
            self._lists[name] = self._readable(
                "manifest-list", path, lambda: self.store.manifests.read_list(name, size), prefixed=True
            )
        return self._lists[name]

    def _manifest(self, meta: ManifestFileMeta) -> None:
        """Compare a manifest's summary in its manifest list with its entries, which are checked once."""
        path = self.store.manifests.path(meta.file_name)
        if meta.file_name not in self._summaries:
            entries = self._entries(meta)
            self._summaries[meta.file_name] = None if entries is None else _Summary.of(entries)
            for entry in entries or ():
                wrong = wrong_numbers(entry)
                if wrong is not None:
                    name = entry.file.file_name
                    self._found("wrong-file-metadata", path, f"{name}: {wrong}", name)
        summary = self._summaries[meta.file_name]
        if summary is None:
            return
        if (summary.added, summary.deleted) != (meta.num_added_files, meta.num_deleted_files):
            counts = f"its list says {meta.num_added_files} added and {meta.num_deleted_files} deleted files"
            self._found("wrong-manifest-counts", path, f"{counts}, but it has {summary.added} and {summary.deleted}")
        for name, values, low, high in (
            ("buckets", summary.buckets, meta.min_bucket, meta.max_bucket),
            ("levels", summary.levels, meta.min_level, meta.max_level),
        ):
            if (
                values is not None
                and low is not None
                and high is not None
                and not low <= values[0] <= values[1] <= high
            ):
                message = f"its list says {name} {low} to {high}, but it has {values[0]} to {values[1]}"
                self._found("wrong-manifest-ranges", path, message)

    def _entries(self, meta: ManifestFileMeta) -> list[ManifestEntry] | None:
        path, manifests = self.store.manifests.path(meta.file_name), self.store.manifests
        if meta.file_name in self._known:
            try:
                return manifests.read(meta.file_name, meta.file_size)
            except CorruptedError:
                return None
        return self._readable("manifest", path, lambda: manifests.read(meta.file_name, meta.file_size), prefixed=True)

    def _index_manifest(self, snapshot: Snapshot) -> None:
        name = snapshot.index_manifest
        if name is not None and name not in self._known:
            self._known.add(name)
            path = self.store.manifests.path(name)
            self._readable("index-manifest", path, lambda: self.store.manifests.read_index(name), prefixed=True)

    def _statistics(self, snapshot: Snapshot) -> None:
        name = snapshot.statistics
        if name is not None and name not in self._known:
            self._known.add(name)
            path = join(statistics_directory(self.store.root), name)
            self._readable("statistics", path, lambda: self.store.io.read(path), prefixed=True)

    # ---- faults

    def _readable(self, kind: str, path: str, read: Callable[[], T], *, prefixed: bool = False) -> T | None:
        """Return the result of ``read``; on an error, record a fault and return `None`.

        ``prefixed``: the kind of the fault is "missing-" or "unreadable-" plus ``kind``.
        """
        try:
            return read()
        except FileNotFoundError:
            self._found(f"missing-{kind}" if prefixed else kind, path, "the file is missing")
        except PaimonError as error:
            missing = isinstance(error, CorruptedError) and is_missing(error)
            self._found(f"{'missing' if missing else 'unreadable'}-{kind}" if prefixed else kind, path, str(error))
        return None

    def _found(self, kind: str, path: str, message: str, data_file: str | None = None) -> None:
        self.faults.append(Fault(kind, path, message, data_file))


def _wrong_total(snapshot: Snapshot, rows: int | None) -> str:
    return f"totalRecordCount is {snapshot.total_record_count}, but the files have {rows} rows"


def wrong_numbers(entry: ManifestEntry) -> str | None:
    """Return the contradictory values of an entry as text; `None` if they are consistent."""
    file = entry.file
    if entry.total_buckets > 0 and not 0 <= entry.bucket < entry.total_buckets:
        return f"bucket {entry.bucket} of {entry.total_buckets}"
    if file.row_count < 0 or file.file_size < 0 or file.level < 0:
        return f"{file.row_count} rows, {file.file_size} bytes, level {file.level}"
    if file.delete_row_count is not None and file.delete_row_count > file.row_count:
        return f"{file.delete_row_count} of {file.row_count} rows delete"
    if file.min_sequence_number > file.max_sequence_number:
        return f"sequence numbers {file.min_sequence_number} to {file.max_sequence_number}"
    return None
