"""Collect the names of all files that snapshots, tags and changelogs of all branches refer to, as hashes.

A name is a hash of 8 bytes, so that a table with millions of files fits in memory. If two names have the same hash, an
unneeded file stays. File names are unique in a table, so directories do not matter.

The metadata is not read atomically, so the order of the reads matters: branches, then the snapshots, tags and
changelogs of each branch. A tag or changelog created for a snapshot that has expired since is read after that snapshot.
If a listed object disappears before it is read, or a branch appears, everything is listed again: a later snapshot,
another tag or another branch may refer to the same files.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt

from paimon_core.errors import CorruptedError, OutOfRangeError
from paimon_core.fileio.parallel import parallel_map
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.manifest.manifest_file import ManifestFileMeta
from paimon_core.manifest.vectorized_decode import EntryColumns
from paimon_core.operations.history.remembered_names import Key, RememberedNames
from paimon_core.operations.jobs.runner import Runner
from paimon_core.snapshot.branches import MAIN, branch_root, list_branches
from paimon_core.snapshot.changelogs import Changelogs
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.snapshots import Snapshots
from paimon_core.snapshot.tags import Tags
from paimon_core.store.expired import is_missing
from paimon_core.store.file_store import FileStore

Hashes = npt.NDArray[np.uint64]
_TRIES = 10
_GROUP = 16  # manifests per task
_NAMES_AT_ONCE = 1 << 15
_LONG_NAME = 1024  # bytes: the limit of S3
_SEED = np.uint64(0x9E3779B97F4A7C15)
_WAITING = 1 << 20  # number of hashes that a union collects before it sorts them


@dataclass(frozen=True, slots=True)
class ManifestNames:
    """The names in a manifest: hashes of data files and their indexes, and 1 where added, -1 where deleted."""

    hashes: Hashes
    signs: npt.NDArray[np.int8]

    @property
    def added(self) -> Hashes:
        """The hashes of added files."""
        return self.hashes[self.signs > 0]

    def where(self, mask: npt.NDArray[np.bool_]) -> "ManifestNames":
        """Return the names at which ``mask`` is true."""
        return ManifestNames(self.hashes[mask], self.signs[mask])


def names_in(entries: Sequence[ManifestEntry]) -> tuple[list[tuple[ManifestEntry, int]], ManifestNames]:
    """Return the names in manifest entries, and for each name its entry and its index in `file_names`."""
    origins = [(entry, index) for entry in entries for index in range(1 + len(entry.file.extra_files))]
    hashes = name_hashes([name for entry in entries for name in file_names(entry.file)])
    return origins, ManifestNames(hashes, np.array([1 if entry.kind == ADD else -1 for entry, _ in origins], np.int8))


def live_names(manifests: Sequence[ManifestNames]) -> Hashes:
    """Return the names that the manifests of a snapshot add more often than they delete them."""
    if not manifests:
        return np.empty(0, np.uint64)
    hashes, where = np.unique(np.concatenate([names.hashes for names in manifests]), return_inverse=True)
    counts = np.bincount(where, np.concatenate([names.signs for names in manifests]), len(hashes))
    return hashes[counts > 0]


def union(parts: Iterable[Hashes]) -> Hashes:
    """Return the distinct values of all parts, sorted. Memory: a few times the result, for any number of parts."""
    distinct, waiting, count = np.empty(0, np.uint64), list[Hashes](), 0
    for part in parts:
        waiting.append(part)
        count += len(part)
        if count > len(distinct) + _WAITING:
            distinct, waiting, count = _distinct([distinct, *waiting]), [], 0
    return _distinct([distinct, *waiting])


def _distinct(parts: Sequence[Hashes]) -> Hashes:
    """Return the distinct values of all parts, sorted: as `numpy.unique`, in a fraction of its time."""
    values = np.concatenate(parts)
    values.sort()
    return values[np.append(True, values[1:] != values[:-1])] if len(values) else values


def contains(sorted_hashes: Hashes, hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Return a mask that is true at each hash that is in ``sorted_hashes``."""
    if not len(sorted_hashes):
        return np.zeros(len(hashes), np.bool_)
    return np.equal(sorted_hashes[np.minimum(np.searchsorted(sorted_hashes, hashes), len(sorted_hashes) - 1)], hashes)


def file_names(file: DataFileMeta) -> tuple[str, ...]:
    """Return the name of a data file and the names of its extra files."""
    return (file.file_name, *file.extra_files)


@dataclass(frozen=True, slots=True)
class _Timeline:
    """The snapshots and changelogs of a branch, and its tags whose snapshots have expired."""

    branch: str
    snapshots: Sequence[Snapshot]
    tagged: Sequence[Snapshot]
    changelogs: Sequence[Snapshot]

    @property
    def whole(self) -> list[Snapshot]:
        """Return the snapshots to read in full; together with later added files they cover all files of the timeline.

        These are the first and the last snapshot, snapshots after a gap, and tagged ones. The last snapshot would
        follow from the others; it is read because readers depend on it most.
        """
        first = [
            s for before, s in zip((None, *self.snapshots), self.snapshots, strict=False) if not _follows(before, s)
        ]
        return [*first, *self.snapshots[-1:], *self.tagged]

    @property
    def whole_lists(self) -> list[str]:
        """Return the manifest lists of `whole`."""
        return [name for snapshot in self.whole for name in _state_lists(snapshot)]

    @property
    def changed_lists(self) -> list[str]:
        """Return the manifest lists of changes and of changelog files, whose added files are needed.

        The changelog files of a tagged snapshot expire with the snapshot, so they are not included.
        """
        files = [name for s in (*self.snapshots[1:], *self.changelogs) for name in _present(s.changelog_manifest_list)]
        return [*(snapshot.delta_manifest_list for snapshot in self.snapshots), *files]

    @property
    def needed_lists(self) -> list[str]:
        """Return all manifest lists that must exist."""
        return [*(n for s in (*self.snapshots, *self.tagged) for n in _state_lists(s)), *self.changed_lists]

    @property
    def optional_lists(self) -> list[str]:
        """Return the manifest lists that are needed if they exist.

        The first ones belong to changelogs without changelog files, which keep the written files; expiry deletes a part
        of them. The last one belongs to the oldest snapshot, which a branch or a rollback may have created from a tag.
        """
        written = [name for s in self.changelogs if s.changelog_manifest_list is None for name in _state_lists(s)]
        return [*written, *(name for s in self.snapshots[:1] for name in _present(s.changelog_manifest_list))]

    @property
    def list_sizes(self) -> dict[str, int | None]:
        """Return the sizes in bytes of the manifest lists by name; `None` if the writer did not record the size."""
        sizes: dict[str, int | None] = {}
        for s in (*self.snapshots, *self.tagged, *self.changelogs):
            sizes[s.base_manifest_list] = s.base_manifest_list_size
            sizes[s.delta_manifest_list] = s.delta_manifest_list_size
            sizes |= dict.fromkeys(_present(s.changelog_manifest_list), s.changelog_manifest_list_size)
        return sizes


def _follows(before: Snapshot | None, after: Snapshot) -> bool:
    return before is not None and before.id + 1 == after.id


def name_hashes(names: Sequence[str]) -> Hashes:
    """Return the hash of each name, the same in every process.

    Eight bytes of all names are mixed at a time, with the finalizer of splitmix64 (https://prng.di.unimi.it/splitmix64.c).
    It is a bijection, so names of equal length that differ in one group of eight bytes never have the same hash.
    """
    parts = [_hashed(names[start : start + _NAMES_AT_ONCE]) for start in range(0, len(names), _NAMES_AT_ONCE)]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _hashed(names: Sequence[str]) -> Hashes:
    if len(names) > 1 and max(map(len, names)) > _LONG_NAME:  # an array has the longest name in every row
        return np.concatenate([_hashed([name]) for name in names])
    try:
        texts = np.array(names, np.bytes_)
    except UnicodeEncodeError:  # not ASCII
        texts = np.array([name.encode("utf-8", "surrogatepass") for name in names], np.bytes_)
    width = -(-texts.itemsize // 8)
    groups = texts.astype(f"S{8 * width}").view("<u8").reshape(len(names), width).astype(np.uint64)
    hashes = np.full(len(names), _SEED, np.uint64)
    for group in groups.T:
        mixed = (hashes ^ group) + _SEED
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        hashes = np.where(group != 0, mixed, hashes)  # no name has a zero byte: this one has ended
    return hashes


@dataclass(slots=True)
class ReferencedNames:
    """The names that a table's metadata refers to. A repeated `read` only reads new metadata.

    ``remembered``: names in manifests that are not read again even if they have been damaged or deleted, and that get
    the names in other ones; `None`: each manifest is read.
    """

    store: FileStore
    runner: Runner
    remembered: RememberedNames | None = None
    _lists: dict[str, list[ManifestFileMeta]] = field(default_factory=dict)
    _metas: dict[str, ManifestFileMeta] = field(default_factory=dict)  # one object for all lists that have it
    _entries: dict[str, ManifestNames] = field(default_factory=dict)
    _indexes: dict[str, list[str]] = field(default_factory=dict)

    def read(self) -> Hashes:
        """Return the hashes of all names, sorted and distinct.

        Raises CorruptedError if live metadata is missing or unreadable, or a branch has no schema, because the needed
        files are then unknown; OutOfRangeError if snapshots disappear during each of 10 attempts.
        """
        before: set[str] = set()
        for _ in range(_TRIES):
            timelines = self._timelines()
            if timelines is None:
                continue
            missing = self._load(timelines)
            if not missing:
                return self._hashes(timelines)
            again = sorted(missing & before)
            if again:  # its referrers were listed after it was found missing
                raise CorruptedError(
                    f"{self.store.manifests.path(again[0])} is missing, but a snapshot, tag or changelog of "
                    f"{self.store.root} refers to it, so the needed files are unknown. Restore it or delete the other"
                )
            before = missing
        raise OutOfRangeError(
            f"snapshots of {self.store.root} disappeared {_TRIES} times while being read, because of a rollback or an "
            "expiry: try again when that is done"
        )

    def of_manifest(self, name: str) -> ManifestNames | None:
        """Return the names in a manifest; `None` if `read` did not have to read it."""
        return self._entries.get(name)

    def _timelines(self) -> list[_Timeline] | None:
        """Return all timelines; ``None`` if a listed object disappeared (see the module)."""
        store = self.store
        branches = [MAIN, *list_branches(store.io, store.root)]
        timelines = []
        for branch in branches:
            timeline = self._timeline(branch)
            if timeline is None:
                return None
            timelines.append(timeline)
        return timelines if branches == [MAIN, *list_branches(store.io, store.root)] else None

    def _timeline(self, branch: str) -> _Timeline | None:
        """Return the timeline of a branch; ``None`` if a listed object disappeared.

        A branch without a schema is being created or deleted, or this was interrupted by a crash. During its creation,
        the tag or snapshot that it is created from refers to all its files.
        """
        io, root = self.store.io, branch_root(self.store.root, branch)
        snapshots, tags, changelogs = Snapshots(io, root), Tags(io, root), Changelogs(io, root)
        ids = snapshots.ids()
        existing = list(parallel_map(snapshots.find, ids))
        names = tags.names()
        tagged = [None if tag is None else tag.snapshot for tag in parallel_map(tags.find, names)]
        numbers = changelogs.ids()
        logs = list(parallel_map(changelogs.find, numbers))
        if None in existing or None in tagged or None in logs:
            return None
        fingerprints = {s.fingerprint for s in existing if s is not None}
        return _Timeline(
            branch,
            [s for s in existing if s is not None],
            [s for s in tagged if s is not None and s.fingerprint not in fingerprints],
            [s for s in logs if s is not None],
        )

    # ---- reading

    def _load(self, timelines: Sequence[_Timeline]) -> set[str]:
        """Read the new metadata that the timelines need; return the names of missing metadata files."""
        sizes = {name: size for timeline in timelines for name, size in timeline.list_sizes.items()}
        missing = self._load_lists({name for timeline in timelines for name in timeline.needed_lists}, sizes)
        self._load_lists({name for timeline in timelines for name in timeline.optional_lists}, sizes)
        missing |= self._load_indexes(
            {name for t in timelines for s in (*t.snapshots, *t.tagged) for name in _present(s.index_manifest)}
        )
        needed = {m.file_name: m for t in timelines for m in self._manifests((*t.whole_lists, *t.changed_lists))}
        optional = {m.file_name: m for t in timelines for m in self._manifests(t.optional_lists)}
        missing |= self._load_entries(list(needed.values()))
        self._load_entries(list(optional.values()))
        return missing

    def _manifests(self, lists: Iterable[str]) -> Iterator[ManifestFileMeta]:
        return (meta for name in lists for meta in self._lists.get(name, ()))

    def _load_lists(self, names: Iterable[str], sizes: Mapping[str, int | None]) -> set[str]:
        new = [name for name in names if name not in self._lists]

        def read(name: str) -> list[ManifestFileMeta] | None:
            try:
                return self.store.manifests.read_list(name, sizes[name])
            except CorruptedError as error:
                if not is_missing(error):
                    raise
                return None

        missing = set()
        for name, metas in zip(new, parallel_map(read, new), strict=True):
            if metas is None:
                missing.add(name)
            else:
                self._lists[name] = [self._metas.setdefault(meta.file_name, meta) for meta in metas]
        return missing

    def _load_indexes(self, names: Iterable[str]) -> set[str]:
        new = [name for name in names if name not in self._indexes]

        def read(name: str) -> list[str] | None:
            try:
                return [entry.file_name for entry in self.store.manifests.read_index(name)]
            except CorruptedError as error:
                if not is_missing(error):
                    raise
                return None

        names_of_index = dict(zip(new, parallel_map(read, new), strict=True))
        self._indexes.update({name: files for name, files in names_of_index.items() if files is not None})
        return {name for name, files in names_of_index.items() if files is None}

    def _load_entries(self, metas: Sequence[ManifestFileMeta]) -> set[str]:
        new = [(m.file_name, m.file_size) for m in metas if not self._is_known(m)]
        groups = [new[start : start + _GROUP] for start in range(0, len(new), _GROUP)]
        missing = set()
        for group, results in zip(groups, self.runner.map(self.store, _read_names, groups), strict=True):
            for (name, size), names in zip(group, results, strict=True):
                if names is None:
                    missing.add(name)
                else:
                    self._entries[name] = names
                    if self.remembered is not None:
                        self.remembered.put(self._key(name, size), (names.hashes, names.signs))
        return missing

    def _is_known(self, meta: ManifestFileMeta) -> bool:
        """Return True if the names in a manifest have been read, or are remembered."""
        if meta.file_name not in self._entries and self.remembered is not None:
            names = self.remembered.get(self._key(meta.file_name, meta.file_size))
            if names is not None:
                self._entries[meta.file_name] = ManifestNames(*names)
        return meta.file_name in self._entries

    def _key(self, name: str, size: int) -> Key:
        return self.store.io.identity, self.store.manifests.path(name), size

    # ---- the result

    def _hashes(self, timelines: Sequence[_Timeline]) -> Hashes:
        names: set[str] = set()
        for timeline in timelines:
            lists = {*timeline.needed_lists, *timeline.optional_lists}
            names |= lists | {meta.file_name for meta in self._manifests(lists)}
            for snapshot in (*timeline.snapshots, *timeline.tagged):
                names.update(_present(snapshot.statistics))
                for index in _present(snapshot.index_manifest):
                    names |= {index, *self._indexes[index]}
        return union(chain([name_hashes(list(names))], self._of_files(timelines)))

    def _of_files(self, timelines: Sequence[_Timeline]) -> Iterator[Hashes]:
        """Yield the hashes of the needed data and changelog files, with repetitions."""
        for timeline in timelines:
            changed = self._manifests((*timeline.changed_lists, *timeline.optional_lists))
            for name in {meta.file_name for meta in changed} & self._entries.keys():
                yield self._entries[name].added
            for snapshot in timeline.whole:
                metas = self._manifests(_state_lists(snapshot))
                yield live_names([self._entries[meta.file_name] for meta in metas])


def _read_names(store: FileStore, manifests: Sequence[tuple[str, int]]) -> list[ManifestNames | None]:
    """Return the names in each manifest (name, size); ``None`` for a missing manifest."""

    def load(manifest: tuple[str, int]) -> bytes | None:
        try:
            return store.manifests.load(*manifest)
        except CorruptedError as error:
            if not is_missing(error):
                raise
            return None

    loaded = zip(manifests, parallel_map(load, manifests), strict=True)
    return [None if data is None else _names(store, name, data) for (name, _), data in loaded]


def _names(store: FileStore, name: str, data: bytes) -> ManifestNames:
    batches = store.manifests.decode_columns(name, data, ("file_name", "extra_files"))
    parts = [_added_names(batch) if isinstance(batch, EntryColumns) else names_in(batch)[1] for batch in batches]
    if not parts:
        return names_in([])[1]
    return ManifestNames(np.concatenate([p.hashes for p in parts]), np.concatenate([p.signs for p in parts]))


def _added_names(columns: EntryColumns) -> ManifestNames:
    """Return the names of files that columns of entries add."""
    extra = (name for names in columns.values("extra_files") if names for name in names)
    hashes = name_hashes([*columns.values("file_name"), *extra])
    return ManifestNames(hashes, np.ones(len(hashes), np.int8))


def _state_lists(snapshot: Snapshot) -> tuple[str, str]:
    return snapshot.base_manifest_list, snapshot.delta_manifest_list


def _present(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)
