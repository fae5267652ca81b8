"""The summary of a table as one value: every number and every bar that the templates show."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from paimon_core.errors import hide_secrets
from paimon_core.inspect.advice.history_bytes import HistoryBytes, history_bytes
from paimon_core.inspect.html.fact_lines import (
    AdviceLine,
    Column,
    Measure,
    Setting,
    Tile,
    advice_of,
    columns_of,
    health_of,
    kind_of,
    settings_of,
    tiles_of,
)
from paimon_core.inspect.html.file_sums import MOST_FILES, FileColumns, live_files, number_of_files
from paimon_core.inspect.html.preview import Preview
from paimon_core.inspect.html.section import Section, attempt
from paimon_core.inspect.html.storage import Storage, storage_of
from paimon_core.inspect.html.timeline_chart import Timeline, timeline_of
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.store.layout import MAIN_BRANCH
from paimon_core.store.location import TableLocation
from paimon_core.types.human_text import age, moment

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableSummary:
    """The summary of a table at one snapshot."""

    name: str
    location: str
    comment: str
    kind: Section[tuple[str, ...]]
    snapshot: Section[Snapshot]
    time: str
    age: str
    """The age of the snapshot in words."""
    made: str
    """The time at which the summary was made."""
    anchor: str
    """A prefix of the ids in the HTML, so that two pages of one notebook have different ids."""
    unread: int
    """Number of live files of a table that has too many to read; 0 if all are read."""
    tiles: Section[tuple[Tile, ...]]
    health: Section[tuple[Measure, ...]]
    advice: Section[tuple[AdviceLine, ...]]
    timeline: Section[Timeline]
    storage: Section[Storage]
    columns: Section[tuple[Column, ...]]
    all_columns: int
    settings: Section[tuple[Setting, ...]]
    schema_id: int
    preview: Section[Preview] | None
    """The first rows; `None`: not read."""

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors of all parts, without repetitions."""
        parts: tuple[Section[object], ...] = (
            *(self.kind, self.snapshot, self.tiles, self.health, self.advice),
            *(self.timeline, self.storage, self.columns, self.settings),
            *(() if self.preview is None else (self.preview,)),
        )
        return tuple(dict.fromkeys(part.error for part in parts if part.error is not None))


def summary_of(
    store: FileStore,
    location: TableLocation,
    travel: Callable[[], tuple[FileStore, Snapshot | None]],
    preview: Callable[[FileStore, Snapshot | None], Preview] | None = None,
) -> TableSummary:
    """Return the summary of a table; a part that cannot be read holds its error instead.

    Reads the snapshot, its manifests, and a few small files for each of the last snapshots; lists the directories of
    buckets. Only the preview reads data files.

    Args:
        store: the table.
        location: the location of the table.
        travel: returns the table and the snapshot to show (`None` if the table is empty).
        preview: returns the first rows of a table at a snapshot; `None`: read no row.
    """
    moment_shown = attempt(travel)
    store, snapshot = moment_shown.value or (store, None)
    unread = attempt(lambda: _too_many(store, snapshot))
    failed = moment_shown.error or unread.error
    files: Section[FileColumns] = Section(None, failed)
    if failed is None and not unread.value:
        files = attempt(lambda: live_files(store, snapshot))
    first_rows: Section[Preview] | None = None
    if preview is not None and moment_shown.error is None:
        first_rows = attempt(lambda: preview(store, snapshot))
    now = store.now()
    live_bytes = None if files.value is None else int(files.value.size.sum())
    tiles = attempt(lambda: tiles_of(store, snapshot, files.value, _history(store, snapshot, files.value)))

    return TableSummary(
        name_of(location),
        hide_secrets(str(location)),
        store.schema.comment or "",
        attempt(lambda: kind_of(store, location.system_table)),
        Section(snapshot, moment_shown.error),
        "" if snapshot is None else moment(snapshot.time_millis),
        "" if snapshot is None else age(now - snapshot.time_millis),
        moment(now),
        _anchor(location, snapshot),
        unread.value or 0,
        tiles,
        _of_files(files, lambda found: health_of(store, snapshot, found)),
        _of_files(files, lambda found: advice_of(store, snapshot)),
        attempt(lambda: timeline_of(store, snapshot, live_bytes)),
        _of_files(files, lambda found: storage_of(store, found)),
        attempt(lambda: columns_of(store)),
        len(store.schema.fields),
        attempt(lambda: settings_of(store)),
        store.schema.id,
        first_rows,
    )


def _anchor(location: TableLocation, snapshot: Snapshot | None) -> str:
    shown = f"{location} {None if snapshot is None else snapshot.fingerprint}"
    return f"pmn-{hashlib.sha256(shown.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def _history(store: FileStore, snapshot: Snapshot | None, files: FileColumns | None) -> HistoryBytes | None:
    """Return the bytes that the newest snapshot of the main branch does not need; `None` for another snapshot."""
    if files is None or snapshot is None or store.branch != MAIN_BRANCH:
        return None
    return history_bytes(store, frozenset(files.names)) if store.snapshots.latest_id() == snapshot.id else None


def name_of(location: TableLocation) -> str:
    """Return the name of a table, with its database if the directory names one: ``shop.orders``."""
    parent, _, name = hide_secrets(str(location)).rstrip("/").rpartition("/")
    database = parent.rpartition("/")[2]
    suffix = ".db"
    return f"{database.removesuffix(suffix)}.{name}" if database.endswith(suffix) and database != suffix else name


def _too_many(store: FileStore, snapshot: Snapshot | None) -> int:
    number = 0 if snapshot is None else number_of_files(store, snapshot)
    return number if number > MOST_FILES else 0


def _of_files(files: Section[FileColumns], build: Callable[[FileColumns], T]) -> Section[T]:
    """Return a part that is built from the files, or the error of reading the files."""
    columns = files.value
    return Section(None, files.error) if columns is None else attempt(lambda: build(columns))
