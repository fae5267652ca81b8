"""The data files that Iceberg readers see, and their records in Iceberg's manifests."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from paimon_core.errors import UnsupportedError
from paimon_core.iceberg.manifest_files import ADDED, Record, avro_name
from paimon_core.iceberg.values import encode_bounds
from paimon_core.lsm.universal import num_levels
from paimon_core.manifest.entry import ADD, ManifestEntry
from paimon_core.manifest.index_entry import DELETION_VECTORS
from paimon_core.manifest.stats import stats_schema
from paimon_core.row.binary_row import decode_rows
from paimon_core.scan.entries import live_in_parts
from paimon_core.scan.file_filter import files_of_equal_stats, stats_fields
from paimon_core.schema.iceberg import described_type
from paimon_core.snapshot.snapshot import CommitKind, Snapshot
from paimon_core.store.file_store import FileStore

_OF_OTHER_TOOLS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-[0-9a-f]{8}\.parquet")
"""The end of the name of a file that `migration.add_files` has added from another tool."""


def top_level(store: FileStore) -> int | None:
    """Return the only level that is shown, because its files need no merge. `None`: all levels are shown."""
    return num_levels(store.options) - 1 if store.schema.primary_keys else None


def is_shown(entry: ManifestEntry, top: int | None) -> bool:
    """Return True if Iceberg readers see the file of an entry."""
    return entry.bucket >= 0 and (top is None or entry.file.level == top)


def check_no_vectors(store: FileStore, snapshot: Snapshot) -> None:
    """Raise UnsupportedError if rows of the snapshot are deleted by vectors, which Iceberg readers would not see."""
    if snapshot.index_manifest is None:
        return
    if any(e.index_type == DELETION_VECTORS for e in store.manifests.read_index(snapshot.index_manifest)):
        raise UnsupportedError(
            f"snapshot {snapshot.id} of {store.root} has deletion vectors, which its Iceberg metadata cannot show: "
            "run a full compaction, which rewrites these files"
        )


def shown_files(store: FileStore, snapshot: Snapshot) -> Iterator[list[ManifestEntry]]:
    """Yield the files that readers see of a snapshot, some thousands at a time."""
    top = top_level(store)
    for entries in live_in_parts(store, snapshot, levels=None if top is None else {top}):
        yield [entry for entry in entries if is_shown(entry, top)]


def changed_files(
    store: FileStore, snapshots: Sequence[Snapshot]
) -> tuple[dict[str, ManifestEntry], dict[str, ManifestEntry]] | None:
    """Return the files that these snapshots add for Iceberg readers, and the files that they remove, by name.

    ``snapshots``: snapshots without a gap, oldest first. `None`: the changes are unknown, because a snapshot replaced
    the list of files itself, or removed a file that was added again.
    """
    top, last = top_level(store), dict[tuple[str, int], ManifestEntry]()
    for snapshot in snapshots:
        metas = store.manifests.read_list(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
        if not metas and snapshot.commit_kind == CommitKind.COMPACT:
            return None
        for meta in metas:
            for entry in store.manifests.read(meta.file_name, meta.file_size):
                identity = entry.file.file_name, entry.file.level
                if not is_shown(entry, top):
                    continue
                if entry.kind == ADD and identity in last:
                    return None
                last[identity] = entry
    added = {name: entry for (name, _), entry in last.items() if entry.kind == ADD}
    return added, {name: entry for (name, _), entry in last.items() if entry.kind != ADD}


def added_records(
    store: FileStore, entries: Iterable[ManifestEntry], snapshot_id: int, location: str
) -> Iterator[Record]:
    """Yield the records of files in a manifest, as added by a snapshot.

    Args:
        store: the table to describe.
        entries: the entries of the files, which readers see.
        snapshot_id: the id of the snapshot.
        location: the directory of the table as the metadata spell it.

    Raises UnsupportedError for a file that Iceberg readers would not read correctly.
    """
    for group in files_of_equal_stats(list(entries)):
        for entry, stats in zip(group, _statistics(store, group), strict=True):
            yield {
                "status": ADDED,
                "snapshot_id": snapshot_id,
                "sequence_number": snapshot_id,
                "file_sequence_number": snapshot_id,
                "data_file": {**_data_file(store, entry, location), **stats},
            }


def partition_record(store: FileStore, partition: bytes) -> Record:
    """Return the values of a serialised partition by their names in Avro."""
    values = store.partition_values(partition)
    return {avro_name(name): value for name, value in zip(store.schema.partition_keys, values, strict=True)}


def _data_file(store: FileStore, entry: ManifestEntry, location: str) -> Record:
    file, path = entry.file, store.file_path(entry.bucket_ref, entry.file)
    if not file.file_name.endswith(".parquet"):
        raise UnsupportedError(f"{path} is not a Parquet file, so it has no column ids: compact the table")
    if _OF_OTHER_TOOLS.fullmatch(file.file_name[-len("01234567-0123-0123-0123-0123456789ab-01234567.parquet") :]):
        raise UnsupportedError(
            f"{path} was written by another tool, so it lacks the column ids that Iceberg readers need: rewrite it, "
            "for example by INSERT OVERWRITE with the rows of the table itself"
        )
    if file.delete_row_count:
        raise UnsupportedError(f"{path} holds deleted rows, which Iceberg readers would show: compact the table")
    return {
        "content": 0,
        "file_path": location + path.removeprefix(store.root) if path.startswith(store.root) else path,
        "file_format": "parquet",
        "partition": partition_record(store, entry.partition),
        "record_count": file.row_count,
        "file_size_in_bytes": file.file_size,
    }


def _statistics(store: FileStore, group: Sequence[ManifestEntry]) -> list[Record]:
    """Return null counts and bounds by field id, for files with statistics of the same columns of one schema."""
    result: list[Record] = [{"null_value_counts": [], "lower_bounds": [], "upper_bounds": []} for _ in group]
    fields = stats_fields(store, group[0].file)
    stats = [entry.file.value_stats for entry in group]
    schema = stats_schema(fields)
    with_bounds = [i for i, s in enumerate(stats) if fields and int.from_bytes(s.min_values[:4], "big") == len(fields)]
    if not with_bounds:
        return result
    columns = list(range(len(fields)))
    low = decode_rows([stats[i].min_values for i in with_bounds], schema, columns)
    high = decode_rows([stats[i].max_values for i in with_bounds], schema, columns)
    for at, field in enumerate(fields):
        kind = described_type(field.type, field.id)
        # Other engines pad the bounds of CHAR with spaces, so that a shorter value may be outside of them.
        bounded = getattr(field.type, "root", None) not in (None, "CHAR")
        lows: Sequence[Any] = encode_bounds(low.column(at), kind) if bounded else [None] * len(with_bounds)
        highs: Sequence[Any] = encode_bounds(high.column(at), kind) if bounded else lows
        for row, i in enumerate(with_bounds):
            nulls = stats[i].null_counts[at] if at < len(stats[i].null_counts) else None
            if nulls is not None:
                result[i]["null_value_counts"].append({"key": field.id, "value": nulls})
            if lows[row] is not None and highs[row] is not None:
                result[i]["lower_bounds"].append({"key": field.id, "value": lows[row]})
                result[i]["upper_bounds"].append({"key": field.id, "value": highs[row]})
    return result
