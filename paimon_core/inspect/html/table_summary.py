"""The summary of a table as one value: every number and every bar that the templates show."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from paimon_core.errors import hide_secrets
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
from paimon_core.inspect.html.section import Section, attempt
from paimon_core.inspect.html.storage import Storage, storage_of
from paimon_core.inspect.html.timeline_chart import Timeline, timeline_of
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.store.file_store import FileStore
from paimon_core.store.location import TableLocation
from paimon_core.types.human_text import moment

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

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors of all parts, without repetitions."""
        parts: tuple[Section[object], ...] = (
            *(self.kind, self.snapshot, self.tiles, self.health, self.advice),
            *(self.timeline, self.storage, self.columns, self.settings),
        )
        return tuple(dict.fromkeys(part.error for part in parts if part.error is not None))


def summary_of(
    store: FileStore, location: TableLocation, travel: Callable[[], tuple[FileStore, Snapshot | None]]
) -> TableSummary:
    """Return the summary of a table; a part that cannot be read holds its error instead.

    Reads the snapshot, its manifests, and one or two small files for each of the last snapshots, but no data file.

    Args:
        store: the table.
        location: the location of the table.
        travel: returns the table and the snapshot to show (`None` if the table is empty).
    """
    moment_shown = attempt(travel)
    store, snapshot = moment_shown.value or (store, None)
    unread = attempt(lambda: _too_many(store, snapshot))
    failed = moment_shown.error or unread.error
    files: Section[FileColumns] = Section(None, failed)
    if failed is None and not unread.value:
        files = attempt(lambda: live_files(store, snapshot))

    return TableSummary(
        name_of(location),
        hide_secrets(str(location)),
        store.schema.comment or "",
        attempt(lambda: kind_of(store, location.system_table)),
        Section(snapshot, moment_shown.error),
        "" if snapshot is None else moment(snapshot.time_millis),
        unread.value or 0,
        attempt(lambda: tiles_of(store, snapshot, files.value)),
        _of_files(files, lambda found: health_of(store, snapshot, found)),
        _of_files(files, lambda found: advice_of(store, snapshot)),
        attempt(lambda: timeline_of(store, snapshot)),
        _of_files(files, lambda found: storage_of(store, found)),
        attempt(lambda: columns_of(store)),
        len(store.schema.fields),
        attempt(lambda: settings_of(store)),
        store.schema.id,
    )


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
