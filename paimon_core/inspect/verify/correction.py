"""Correct the newest snapshot of a branch: publish the same rows again with metadata that fits them.

Snapshots never change, so a new snapshot carries the correction, and older snapshots keep their faults until they
expire. Nothing is guessed: manifests, counts and hash indexes follow from the files they describe, and the metadata of
a data file is used only if its rows agree with it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paimon_core.commit.changes import Changes, Corrections
from paimon_core.commit.corrected import publish_corrected
from paimon_core.commit.hash_indexes import delete_indexes
from paimon_core.datafile.deletion_vectors import read_entries, restrict_to_files, write_vectors
from paimon_core.datafile.hash_index import write_hashes
from paimon_core.datafile.measured import measured
from paimon_core.datafile.reader import read_file
from paimon_core.datafile.rebuild_index import index_bodies
from paimon_core.deletion.vector import DeletionVector
from paimon_core.errors import CorruptedError, PaimonError
from paimon_core.fileindex.index_file import pack
from paimon_core.inspect.verify.branch_metadata import BranchMetadata, State, wrong_numbers
from paimon_core.inspect.verify.content import FileContent
from paimon_core.inspect.verify.stored_files import StoredFiles
from paimon_core.inspect.verify.verify_report import Fault
from paimon_core.manifest.bucket import BucketRef, group_by_bucket
from paimon_core.manifest.data_file import DataFileMeta
from paimon_core.manifest.entry import DELETE, Identity, ManifestEntry
from paimon_core.manifest.index_entry import DELETION_VECTORS, HASH, IndexManifestEntry
from paimon_core.options.merge import DELETION_VECTORS_ENABLED
from paimon_core.row.encode import encode
from paimon_core.row.murmur import hashes as hash_rows
from paimon_core.scan.entries import manifest_metas
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.types.sorted_values import distinct

MANIFESTS = frozenset(
    {"added-twice", "deleted-without-add", "wrong-manifest-counts", "wrong-manifest-ranges", "wrong-record-count"}
)
"""Kinds of faults that new manifests of the live files correct."""
MEASURED = frozenset(
    {
        "unreadable-key",
        "wrong-delete-count",
        "wrong-file-metadata",
        "wrong-key-range",
        "wrong-sequences",
        "wrong-statistics",
    }
)
"""Kinds of faults in the metadata of a data file, which is measured again from its rows."""
INDEXES = frozenset(
    {
        "missing-index-file",
        "missing-index-manifest",
        "stray-vector",
        "unreadable-index-manifest",
        "wrong-index",
        "wrong-size",
    }
)
"""Kinds of faults of index files."""
EMBEDDED = frozenset({"unreadable-file-index", "wrong-file-index"})
CORRECTED = MANIFESTS | MEASURED | INDEXES | EMBEDDED | {"wrong-row-ids"}
"""Kinds of faults that a new snapshot can correct."""

_Hashes = Mapping[BucketRef, np.ndarray]
_Vectors = Mapping[BucketRef, Mapping[str, DeletionVector]]


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction of one snapshot. ``repaired``: the faults that the corrected snapshot no longer has.

    ``indexes``: the index files to keep; `None`: all. ``hashes`` and ``vectors``: the content of new index files.
    """

    repaired: tuple[Fault, ...]
    live: tuple[ManifestEntry, ...]
    indexes: tuple[IndexManifestEntry, ...] | None
    hashes: _Hashes
    vectors: _Vectors
    next_row_id: int | None

    def changes(self, store: FileStore) -> Changes:
        """Write the new index files and return the changes to commit. After an error no new file remains."""
        written: list[IndexManifestEntry] = []
        try:
            for bucket, hashes in self.hashes.items():
                written.append(write_hashes(store, bucket, hashes))
            for bucket, vectors in self.vectors.items():
                written += write_vectors(store, bucket, vectors)
        except BaseException:
            delete_indexes(store, written)
            raise
        new = tuple(written)
        indexes = None if self.indexes is None else (*self.indexes, *new)
        corrections = Corrections(self.live, indexes, self.next_row_id)
        return Changes(
            CommitKind.COMPACT, (), built_on_base=True, new_indexes=new, written_indexes=new, corrections=corrections
        )


def publish_correction(store: FileStore, faults: Sequence[Fault]) -> tuple[Snapshot | None, tuple[Fault, ...]]:
    """Publish a corrected newest snapshot; return it and the faults that it corrects.

    The snapshot is `None` if no fault can be corrected. ``faults``: the faults that a verification found in the branch;
    faults that only rows reveal are corrected only if they are among these.
    """
    repaired: tuple[Fault, ...] = ()

    def corrected(base: Snapshot) -> Changes | None:
        nonlocal repaired
        correction = find_correction(store, base, faults)
        repaired = () if correction is None else correction.repaired
        return None if correction is None else correction.changes(store)

    return publish_corrected(store, corrected), repaired


def find_correction(store: FileStore, snapshot: Snapshot, known_faults: Sequence[Fault]) -> Correction | None:
    """Return the correction of a snapshot; `None` if no fault can be corrected or metadata is missing.

    Reads the rows of data files with wrong metadata, and of buckets whose hash index is lost. ``known_faults``: see
    ``faults`` of `publish_correction`.
    """
    live = known_live(store, snapshot)
    if live is None:
        return None
    try:
        indexes = [] if snapshot.index_manifest is None else store.manifests.read_index(snapshot.index_manifest)
        lost = False
    except CorruptedError:
        indexes, lost = [], True
    faults = newest_faults(store, snapshot, live, known_faults)
    corrected = _measured(store, live, faults)
    before, after = (_of_files(store, snapshot, files, indexes) for files in (live, corrected))
    if set(after) - set(before):  # the measured metadata contradicts itself, so the correct values are unknown
        corrected = live
    remaining, hashes, vectors = _indexes(store, corrected, indexes, faults, lost=lost)
    if lost and not hashes:
        return None
    needed = _next_row_id(snapshot, corrected)
    corrected_snapshot = replace(snapshot, next_row_id=snapshot.next_row_id if needed is None else needed)
    remaining_faults = {
        *_of_files(store, corrected_snapshot, corrected, remaining),
        *_of_rows(store, live, corrected, faults),
    }
    wrong = {entry.file.file_name for entry in corrected if wrong_numbers(entry) is not None}
    replaced = {store.index_path(entry) for entry in indexes if entry not in remaining}

    def is_repaired(fault: Fault) -> bool:
        if fault.kind in INDEXES:
            return lost if fault.kind.endswith("-index-manifest") else fault.path in replaced
        if fault.kind == "wrong-file-metadata":
            return fault.data_file not in wrong
        if fault.kind == "wrong-record-count" and any(entry.file.row_count < 0 for entry in corrected):
            return False
        return fault.kind in CORRECTED and fault not in remaining_faults

    repaired = tuple(filter(is_repaired, faults))
    if not repaired:
        return None
    same = not lost and not replaced
    return Correction(repaired, tuple(corrected), None if same else tuple(remaining), hashes, vectors, needed)


def newest_faults(
    store: FileStore, snapshot: Snapshot, live: Sequence[ManifestEntry] | None, known_faults: Iterable[Fault]
) -> list[Fault]:
    """Return the faults of one snapshot: detected now, or among ``known_faults`` and about its files.

    ``live``: the files of the snapshot; `None` if unknown.
    """
    metadata = BranchMetadata(store)
    metadata.check_one(snapshot)
    stored = StoredFiles(store)
    paths = set()
    if live is not None:
        stored.check_existence(live)
        stored.check_state(State(snapshot, list(live)))
        paths = {store.file_path(entry.bucket_ref, entry.file) for entry in live}
    return list(
        dict.fromkeys([*metadata.faults, *stored.faults, *(fault for fault in known_faults if fault.path in paths)])
    )


def known_live(store: FileStore, snapshot: Snapshot) -> list[ManifestEntry] | None:
    """Return the live files of a snapshot, even if manifests repeat an entry or delete a file that is not there.

    `None` if an entry is missing, has fields of a newer version, or contradicts another entry.
    """
    try:
        metas = manifest_metas(store, snapshot)
        entries = [e for m in metas for e in store.manifests.read(m.file_name, m.file_size, lossless=True)]
    except PaimonError:
        return None
    live: dict[Identity, ManifestEntry] = {}
    deleted: set[Identity] = set()
    for entry in entries:
        identity = entry.identity
        if entry.kind == DELETE:
            if live.pop(identity, None) is None:
                deleted.add(identity)
        elif identity in deleted or live.get(identity, entry) != entry:
            return None  # added after its delete, or added twice with different metadata
        else:
            live[identity] = entry
    return list(live.values())


def _of_files(
    store: FileStore, snapshot: Snapshot, live: Sequence[ManifestEntry], indexes: Sequence[IndexManifestEntry]
) -> list[Fault]:
    """Return the faults between data files of a bucket, and of index files."""
    stored, state = StoredFiles(store), State(replace(snapshot, index_manifest=None), list(live))
    stored.check_state(state)
    stored.check_indexes(state, indexes)
    return stored.faults


def _of_rows(
    store: FileStore, live: Sequence[ManifestEntry], corrected: Sequence[ManifestEntry], faults: Iterable[Fault]
) -> list[Fault]:
    """Return the faults that only rows reveal and that remain because the metadata of their files is unchanged."""
    stay = {store.file_path(a.bucket_ref, a.file) for a, b in zip(live, corrected, strict=True) if a.file == b.file}
    return [fault for fault in faults if fault.kind in MEASURED | EMBEDDED and fault.path in stay]


# ---- data files


def _measured(store: FileStore, live: Sequence[ManifestEntry], faults: Iterable[Fault]) -> list[ManifestEntry]:
    """Return the entries, with measured metadata where the current metadata is wrong and the measured one is right."""
    kinds: dict[str, set[str]] = defaultdict(set)  # by data file name, or by path of data file or bucket
    for fault in faults:
        if fault.kind in MEASURED | EMBEDDED:
            kinds[fault.path if fault.data_file is None else fault.data_file].add(fault.kind)
    entries = []
    for entry in live:
        ref = entry.bucket_ref
        wrong = kinds[entry.file.file_name] | (kinds[store.bucket_path(ref)] & {"unreadable-key"})
        if wrong:
            entry = _right(store, entry, wrong)
        entries.append(entry)
    return entries


def _right(store: FileStore, entry: ManifestEntry, wrong: set[str]) -> ManifestEntry:
    """Correct the metadata of an entry by the rows of its file. Return the unchanged entry if that is not possible."""
    file = entry.file
    try:
        if wrong & MEASURED:
            file = measured(store, entry.bucket_ref, file)
        if wrong & EMBEDDED and file.embedded_index is not None:
            bodies = index_bodies(store, entry.bucket_ref, file)
            file = replace(file, embedded_index=pack(bodies) if bodies else None)
    except (PaimonError, OSError, ValueError):
        return entry
    right = replace(entry, file=file)
    return entry if any(FileContent(store, right).check()) else right


def _next_row_id(snapshot: Snapshot, live: Iterable[ManifestEntry]) -> int | None:
    """Return the last row id plus 1 if the snapshot's next row id is smaller, else `None`."""
    behind = [e.file.first_row_id + e.file.row_count for e in live if e.file.first_row_id is not None]
    needed = max(behind, default=0)
    return needed if snapshot.next_row_id is not None and snapshot.next_row_id < needed else None


# ---- index files


def _indexes(
    store: FileStore,
    live: Sequence[ManifestEntry],
    indexes: Sequence[IndexManifestEntry],
    faults: Iterable[Fault],
    *,
    lost: bool,
) -> tuple[list[IndexManifestEntry], _Hashes, _Vectors]:
    """Return the index files to keep, and the content of the index files that replace the others.

    ``lost``: the index manifest is unreadable; all hash indexes are then rebuilt, if the table has no other indexes.
    """
    files = {bucket: [e.file for e in entries] for bucket, entries in group_by_bucket(live).items()}
    if lost:
        rebuilt = {bucket: _hashes(store, bucket, of_bucket) for bucket, of_bucket in files.items()}
        complete = {bucket: keys for bucket, keys in rebuilt.items() if keys is not None}
        return [], complete if len(complete) == len(rebuilt) and _only_hashes(store) else {}, {}
    wrong = {fault.path for fault in faults if fault.kind in INDEXES}
    remaining: list[IndexManifestEntry] = []
    hashes: dict[BucketRef, np.ndarray] = {}
    vectors: dict[BucketRef, dict[str, DeletionVector]] = defaultdict(dict)
    for entry in indexes:
        ref = entry.bucket_ref
        of_bucket = files.get(ref, []) if store.index_path(entry) in wrong else None
        keys = None if of_bucket is None or entry.index_type != HASH else _hashes(store, ref, of_bucket)
        deleted = None
        if of_bucket is not None and entry.index_type == DELETION_VECTORS:
            deleted = _readable_vectors(store, entry, of_bucket)
        if keys is not None:
            hashes[ref] = keys
        elif deleted is not None:
            vectors[ref] |= deleted
        else:
            remaining.append(entry)
    return remaining, hashes, vectors


def _only_hashes(store: FileStore) -> bool:
    """Return True if the table has dynamic buckets and never had deletion vectors: all indexes follow from rows."""
    schemas = [store.schemas.get(number) for number in store.schemas.ids()]
    dynamic = bool(store.schema.primary_keys) and store.schema.bucket == -1 and not store.schema.is_cross_partition
    return dynamic and not any(schema.options.value(DELETION_VECTORS_ENABLED) for schema in schemas)


def _hashes(store: FileStore, bucket: BucketRef, files: Iterable[DataFileMeta]) -> np.ndarray | None:
    """Return the distinct key hashes of the files of a bucket; `None` if a file is unreadable."""
    keys = [store.schema.field(name) for name in store.schema.trimmed_primary_keys]
    parts = [np.empty(0, np.int32)]
    try:
        for file in files:
            parts += [hash_rows(encode(batch)) for batch in read_file(store, bucket, file, keys)]
    except (PaimonError, OSError, ValueError):
        return None
    return distinct(np.sort(np.concatenate(parts).astype(np.int32)))


def _readable_vectors(
    store: FileStore, entry: IndexManifestEntry, files: Iterable[DataFileMeta]
) -> dict[str, DeletionVector] | None:
    """Return the vectors of the existing files; `None` if one is unreadable or does not fit its file."""
    rows = {file.file_name: file.row_count for file in files}
    try:
        vectors = read_entries(store, restrict_to_files([entry], rows))
    except (PaimonError, OSError):
        return None
    fit = all(not v.cardinality or int(v.positions().max()) < rows[name] for name, v in vectors.items())
    return vectors if fit else None
