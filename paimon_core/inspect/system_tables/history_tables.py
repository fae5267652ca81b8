"""The system tables of the timeline: snapshots, tags, branches and consumers."""

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from paimon_core.fileio.parallel import parallel_map
from paimon_core.inspect.system_tables.kind import (
    LOCAL_TIME,
    SOME_LONG,
    SOME_TEXT,
    SOME_TIME,
    Fixed,
    Part,
    Request,
    SystemTableKind,
    batch_of,
    columns,
)
from paimon_core.inspect.system_tables.value_text import iso_duration
from paimon_core.predicate.compute import evaluate
from paimon_core.predicate.rewrite import restrict
from paimon_core.snapshot.branches import branch_times
from paimon_core.snapshot.consumers import Consumers
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.tags import Tag
from paimon_core.types.datatype import BIGINT, STRING
from paimon_core.types.human_text import wall_millis

_SNAPSHOTS = columns(
    ("snapshot_id", SOME_LONG),
    ("schema_id", SOME_LONG),
    ("commit_user", SOME_TEXT),
    ("commit_identifier", SOME_LONG),
    ("commit_kind", SOME_TEXT),
    ("commit_time", SOME_TIME),
    ("base_manifest_list", SOME_TEXT),
    ("delta_manifest_list", SOME_TEXT),
    ("changelog_manifest_list", STRING),
    ("total_record_count", BIGINT),
    ("delta_record_count", BIGINT),
    ("changelog_record_count", BIGINT),
    ("watermark", BIGINT),
    ("next_row_id", BIGINT),
    ("operation", STRING),
    ("writer_version", STRING),
)
_TAGS = columns(
    ("tag_name", SOME_TEXT),
    ("snapshot_id", SOME_LONG),
    ("schema_id", SOME_LONG),
    ("commit_time", SOME_TIME),
    ("record_count", BIGINT),
    ("create_time", LOCAL_TIME),
    ("time_retained", STRING),
)
_BRANCHES = columns(("branch_name", SOME_TEXT), ("create_time", SOME_TIME))
_CONSUMERS = columns(("consumer_id", SOME_TEXT), ("next_snapshot_id", SOME_LONG))
_BATCH = 4096
_OF_ALL_ROWS = {"total_record_count", "delta_record_count", "changelog_record_count", "next_row_id", "record_count"}
"""The columns that count rows. They are NULL if a server hides rows from the user."""


def _read_snapshots(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each snapshot, oldest first; a filter on ``snapshot_id`` limits the files that are read."""
    snapshots = request.store.snapshots
    waiting: list[Snapshot] = []
    for snapshot in parallel_map(snapshots.find, _requested_ids(request)):
        if snapshot is not None:
            waiting.append(snapshot)
        if len(waiting) == _BATCH:
            yield _snapshot_rows(request, waiting)
            waiting = []
    yield _snapshot_rows(request, waiting)


def _requested_ids(request: Request) -> list[int]:
    pinned = request.pinned("snapshot_id")
    if pinned is not None:
        return sorted(pinned)
    ids = request.store.snapshots.ids()
    on_ids = None if request.predicate is None else restrict(request.predicate, {"snapshot_id"})
    if on_ids is None or not ids:
        return ids
    id_batch = pa.RecordBatch.from_arrays([pa.array(ids, pa.int64())], ["snapshot_id"])
    matching: list[int] = id_batch.column(0).filter(evaluate(on_ids, id_batch)).to_pylist()
    return matching


def _snapshot_rows(request: Request, snapshots: list[Snapshot]) -> pa.RecordBatch:
    renamed = {"snapshot_id": "id"}
    values = {
        f.name: [getattr(s, renamed.get(f.name, f.name)) for s in snapshots]
        for f in _SNAPSHOTS
        if f.name != "commit_time"
    }
    values["commit_time"] = [wall_millis(s.time_millis) for s in snapshots]
    return batch_of(_SNAPSHOTS, request.columns, _shown(request, values))


def _shown(request: Request, values: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the values that the user may see, by column."""
    if not request.store.is_restricted:
        return values
    return {name: [None] * len(column) if name in _OF_ALL_ROWS else column for name, column in values.items()}


def _read_tags(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each tag, sorted by snapshot; a filter on ``tag_name`` limits the files that are read."""
    tags, names = request.store.tags, request.pinned("tag_name")
    tag_list: list[Tag] = tags.list() if names is None else [t for t in map(tags.find, sorted(names)) if t is not None]
    values: dict[str, list[Any]] = {
        "tag_name": [t.name for t in tag_list],
        "snapshot_id": [t.snapshot.id for t in tag_list],
        "schema_id": [t.snapshot.schema_id for t in tag_list],
        "commit_time": [wall_millis(t.snapshot.time_millis) for t in tag_list],
        "record_count": [t.snapshot.total_record_count for t in tag_list],
        "create_time": [None if t.create_time is None else _millis(t.create_time) for t in tag_list],
        "time_retained": [None if t.time_retained is None else iso_duration(t.time_retained) for t in tag_list],
    }
    yield batch_of(_TAGS, request.columns, _shown(request, values))


def _millis(time: datetime) -> int:
    """Return a wall clock time without a zone in milliseconds, as if it were UTC."""
    return int(time.replace(tzinfo=timezone.utc).timestamp() * 1000)


def _read_branches(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each branch except ``main``, with its directory's time, or 0 if the storage has no times."""
    times = sorted(branch_times(request.store.io, request.store.root).items())
    yield batch_of(
        _BRANCHES,
        request.columns,
        {"branch_name": [name for name, _ in times], "create_time": [wall_millis(millis) for _, millis in times]},
    )


def _read_consumers(request: Request, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield a row for each consumer."""
    consumers = Consumers(request.store.io, request.store.branch_root).list()
    yield batch_of(
        _CONSUMERS, request.columns, {"consumer_id": list(consumers), "next_snapshot_id": list(consumers.values())}
    )


SNAPSHOTS = SystemTableKind("snapshots", Fixed(_SNAPSHOTS), _read_snapshots)
TAGS = SystemTableKind("tags", Fixed(_TAGS), _read_tags)
BRANCHES = SystemTableKind("branches", Fixed(_BRANCHES), _read_branches)
CONSUMERS = SystemTableKind("consumers", Fixed(_CONSUMERS), _read_consumers)
