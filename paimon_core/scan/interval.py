"""The two ends of a batch read of changes, and the source of the changes (behaviour 9.3)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from paimon_core.errors import InvalidInputError, NotFoundError, OutOfRangeError
from paimon_core.options.merge import CHANGELOG_PRODUCER
from paimon_core.options.scan import (
    INCREMENTAL_BETWEEN,
    INCREMENTAL_BETWEEN_SCAN_MODE,
    INCREMENTAL_BETWEEN_TAG_TO_SNAPSHOT,
    INCREMENTAL_BETWEEN_TIMESTAMP,
    INCREMENTAL_TO_AUTO_TAG,
)
from paimon_core.snapshot.snapshot import Snapshot
from paimon_core.snapshot.tags import Tag
from paimon_core.snapshot.time_travel import epoch_millis
from paimon_core.store.change_range import earliest_change
from paimon_core.store.file_store import FileStore

AUTO, DELTA, CHANGELOG, DIFF = MODES = ("auto", "delta", "changelog", "diff")
_LATEST = "latest"
_AUTO_TAG = re.compile(r"\d{4}(-?)\d{2}\1\d{2}( \d{2})?")
_ENDS = (INCREMENTAL_BETWEEN, INCREMENTAL_BETWEEN_TIMESTAMP, INCREMENTAL_TO_AUTO_TAG)


@dataclass(frozen=True, slots=True)
class Interval:
    """The changes after snapshot ``first`` (0: before every snapshot) through snapshot ``last``.

    ``mode``: ``delta``, rows that commits wrote; ``changelog``, rows of the changelog; ``auto``, the changelog if the
    table has a producer, else the written rows; ``diff``, the difference of the rows of both snapshots. ``compared``:
    these two snapshots (`None`: a table without rows), in mode ``diff`` only; they may be expired snapshots with a tag.
    ``versions``: the tags that were compared.
    """

    first: int
    last: int
    mode: str = AUTO
    compared: tuple[Snapshot | None, Snapshot | None] | None = None
    versions: tuple[str, str] | None = None

    @property
    def is_empty(self) -> bool:
        """True if there is no snapshot between the two ends."""
        return self.first == self.last

    def source(self, store: FileStore) -> FileStore:
        """Return the table as the mode reads its changes. InvalidInputError if the mode needs a missing changelog."""
        producer = store.traits.changelog_producer
        if self.mode == CHANGELOG and producer == "none":
            raise InvalidInputError(
                f"{INCREMENTAL_BETWEEN_SCAN_MODE.key!r} = {CHANGELOG!r} needs a changelog, which {store.root} does not "
                f"have: its {CHANGELOG_PRODUCER.key!r} is 'none'. Use {DELTA!r} for written rows, or {DIFF!r}"
            )
        if self.mode != DELTA or producer == "none":
            return store
        return store.with_schema(store.schema.copy({CHANGELOG_PRODUCER.key: "none"}))


def interval_of(store: FileStore) -> Interval | None:
    """Return the interval that the table's options ``incremental-*`` define; `None`: none of them is set.

    Raises InvalidInputError for invalid values, NotFoundError for unknown tags, OutOfRangeError for snapshots that do
    not exist.
    """
    options = store.options
    mode = options.value(INCREMENTAL_BETWEEN_SCAN_MODE)
    if (text := options.value(INCREMENTAL_BETWEEN)) is not None:
        first, last = _pair(INCREMENTAL_BETWEEN.key, text, "'3,7' or 'tag1,tag2'")
        as_ids = options.value(INCREMENTAL_BETWEEN_TAG_TO_SNAPSHOT)
        return interval_between(store, first, last, mode, tags_as_snapshots=as_ids)
    if (text := options.value(INCREMENTAL_BETWEEN_TIMESTAMP)) is not None:
        start, end = _pair(INCREMENTAL_BETWEEN_TIMESTAMP.key, text, "'2026-01-31 12:00:00,2026-02-01 12:00:00'")
        return interval_between_times(store, epoch_millis(start), epoch_millis(end), mode)
    tag = options.value(INCREMENTAL_TO_AUTO_TAG)
    return None if tag is None else interval_to_auto_tag(store, tag)


def asks_for_changes(store: FileStore) -> bool:
    """Return True if an option ``incremental-*`` sets the ends of a read of changes."""
    return any(store.options.has(option) for option in _ENDS)


def interval_between(
    store: FileStore, first: int | str, last: int | str | None, mode: str = AUTO, *, tags_as_snapshots: bool = False
) -> Interval:
    """Return the interval after ``first`` through ``last``, which are two snapshots or two tags.

    A text is the name of a tag or a number; a tag wins over a snapshot of the same number. Two tags are always compared
    in mode ``diff``, but with ``tags_as_snapshots`` they stand for their snapshots. ``last`` is the newest snapshot if
    it is `None`, or "latest" if no tag has this name. Raises the errors of `interval_of`.
    """
    if mode not in MODES:
        raise InvalidInputError(f"unknown mode {mode!r} of a read of changes: use one of {', '.join(MODES)}")
    ends = [str(end).strip() for end in (first, last)]
    pairs = zip((first, last), ends, strict=True)
    tags = [store.tags.find(text) if isinstance(end, str) else None for end, text in pairs]
    if tags[1] is None and (last is None or ends[1].lower() == _LATEST):
        ends[1] = str(_newest(store))
        if tags[0] is not None:
            return _since_tag(store, tags[0], mode, as_snapshot=tags_as_snapshots)
    if tags[0] is not None and tags[1] is not None:
        if not tags_as_snapshots:
            return _compared(store, tags[0], tags[1])
        ends = [str(tag.snapshot.id) for tag in tags if tag is not None]
    _check_numbers(store, ends, [tag is not None for tag in tags])
    low, high = map(int, ends)
    _check_order(store, low, high)
    return _between_ids(store, low, high, mode)


def interval_between_times(store: FileStore, start: int, end: int, mode: str = AUTO) -> Interval:
    """Return the interval between the newest snapshots at two times (epoch ms).

    A ``start`` before the oldest snapshot selects all changes up to ``end``. Without a snapshot between the times the
    interval is empty. Raises InvalidInputError for times in the wrong order, OutOfRangeError in mode ``diff`` if the
    rows at the first time are unknown.
    """
    if start > end:
        raise InvalidInputError(f"the first time, {start}, is after the second time, {end}")
    last = store.snapshots.at_or_before(end)
    if last is None:
        newest = _newest(store)
        return Interval(newest, newest, mode)
    first = store.snapshots.at_or_before(start)
    return _between_ids(store, (store.snapshots.earliest_id() or 1) - 1 if first is None else first.id, last.id, mode)


def interval_to_auto_tag(store: FileStore, name: str) -> Interval:
    """Return the interval from the previous automatic tag to the tag ``name``; empty if one of them does not exist.

    Raises InvalidInputError for a name that automatic tags cannot have.
    """
    name = name.strip()
    pattern = _AUTO_TAG.fullmatch(name)
    if pattern is None:
        raise InvalidInputError(
            f"{name!r} is not the name of an automatic tag, such as '2026-01-31' or '2026-01-31 12'"
        )
    tags = {tag.name: tag for tag in store.tags.list()}
    alike = [(m, n) for n in sorted(tags) if (m := _AUTO_TAG.fullmatch(n)) and m[1] == pattern[1]]
    before = [n for m, n in alike if n < name and (m[2] is None) == (pattern[2] is None)]
    if name not in tags or not before:
        newest = _newest(store)
        return Interval(newest, newest, DIFF, (None, None))
    return _compared(store, tags[before[-1]], tags[name])


def _between_ids(store: FileStore, first: int, last: int, mode: str) -> Interval:
    """Return the interval between two snapshots. OutOfRangeError if their changes do not exist."""
    newest = _newest(store)
    if mode == DIFF:
        if first == last <= newest:
            return Interval(first, last, mode, (None, None))
        before = None if first == 0 else store.snapshots.get(first)
        return Interval(first, last, mode, (before, store.snapshots.get(last)))
    least = (earliest_change(store) or 1) - 1
    if not least <= first <= last <= newest:
        raise OutOfRangeError(
            f"{store.root} has no changes from {first} to {last}: it has changes from {least} to {newest}; "
            + _available(store)
        )
    return Interval(first, last, mode)


def _since_tag(store: FileStore, tag: Tag, mode: str, *, as_snapshot: bool) -> Interval:
    """Return the interval from a tag to the newest snapshot, in mode ``diff`` unless ``mode`` names another source."""
    if as_snapshot or mode not in (AUTO, DIFF):
        return _between_ids(store, tag.snapshot.id, _newest(store), mode)
    newest = store.snapshots.latest()
    last = tag.snapshot if newest is None else newest
    return Interval(tag.snapshot.id, last.id, DIFF, (tag.snapshot, last))


def _compared(store: FileStore, before: Tag, after: Tag) -> Interval:
    """Return the difference of two tags. OutOfRangeError if they are in the wrong order."""
    first, last = before.snapshot, after.snapshot
    _check_order(store, first.id, last.id)
    return Interval(first.id, last.id, DIFF, (first, last), (before.name, after.name))


def _check_order(store: FileStore, first: int, last: int) -> None:
    if first > last:
        raise OutOfRangeError(
            f"the first snapshot, {first}, is after the last snapshot, {last}: swap them; {_available(store)}"
        )


def _check_numbers(store: FileStore, ends: Sequence[str], is_tag: Sequence[bool]) -> None:
    """Raise NotFoundError or InvalidInputError unless both ends are numbers."""
    numbers = [end.isascii() and end.removeprefix("-").isdigit() for end in ends]
    if all(numbers):
        return
    unknown = next((e for e, number, tag in zip(ends, numbers, is_tag, strict=True) if not (number or tag)), None)
    if unknown is not None:
        raise NotFoundError(
            f"{unknown!r} is neither a snapshot nor a tag of {store.root}: {store.tags.summary(unknown)}"
        )
    raise InvalidInputError(f"{ends[0]!r} and {ends[1]!r} mix a tag and a snapshot: use two tags or two snapshots")


def _pair(key: str, text: str, example: str) -> tuple[str, str]:
    """Return the two parts of an option's text. InvalidInputError if it does not have two parts."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise InvalidInputError(f"option {key!r} is {text!r}: it must name two ends, such as {example}")
    return parts[0], parts[1]


def _available(store: FileStore) -> str:
    return f"the table has snapshots {earliest_change(store) or 0} to {_newest(store)}"


def _newest(store: FileStore) -> int:
    return store.snapshots.latest_id() or 0
